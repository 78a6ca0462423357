"""What is wrong is an error with a reason, and leaves the process able to step."""

import ctypes as c
import re
from dataclasses import replace

import stepc
import torch
from checks.machine import Check, Failed, Skipped
from checks.steps import Guarded, Steps, expect_equal, stepped
from stepc import _abi
from stepc._library import Instance

CASE = "example.muon"


def expect(error, pattern, function):
    """The error that a call raises, which has to be of that class and say that."""
    try:
        function()
    except error as raised:
        if not re.search(pattern, str(raised)):
            raise Failed(f"expected an error that says '{pattern}', found '{raised}'") from raised
        return str(raised).splitlines()[0]
    raise Failed(f"expected {error.__name__}, found none")


def only_on_a_gpu(machine):
    if machine.dry:
        raise Skipped("no GPU")


def create(machine, case=CASE, **changes):
    return Instance(machine.library(case), device=replace(machine.place.options(), **changes))


def another_chip(machine):
    only_on_a_gpu(machine)
    if torch.cuda.get_device_capability(machine.place.device)[0] == 12:
        raise Skipped("the GPU runs what is for sm_120")
    return expect(
        stepc.DeviceError, "has code for sm_120, found '.*', which is sm_", lambda: create(machine, "chip")
    )


def step_for_the_gpu(machine):
    only_on_a_gpu(machine)
    major, minor = torch.cuda.get_device_capability(machine.place.device)
    wanted = "cuda:sm_90a" if (major, minor) == (9, 0) else "cuda:sm_80"
    instance = create(machine)
    taken = instance.library.chip.split(",")[0]
    instance.close()
    if taken != wanted:
        raise Failed(f"expected the step for {wanted} on sm_{major}{minor}, found that for {taken}")
    return taken


def another_device(machine):
    other = _abi.DEVICE_CUDA if machine.dry else _abi.DEVICE_CPU
    return expect(stepc.ArgumentError, "expected device", lambda: create(machine, kind=other))


def no_such_device(machine):
    if machine.dry:
        return expect(stepc.ArgumentError, "number 0", lambda: create(machine, ordinal=1))
    count = torch.cuda.device_count()
    wanted = f"expected the number of a GPU below {count}, found "
    expect(stepc.DeviceError, wanted + "-1", lambda: create(machine, ordinal=-1))
    return expect(stepc.DeviceError, wanted + str(count), lambda: create(machine, ordinal=count))


def foreign_stream(machine):
    only_on_a_gpu(machine)
    driver = c.CDLL("libcuda.so.1")
    context, stream, device = c.c_void_p(), c.c_void_p(), c.c_int()
    torch.cuda.synchronize()

    def call(name, *arguments):
        if status := getattr(driver, name)(*arguments):
            raise Failed(f"{name} failed with {status}")

    call("cuDeviceGet", c.byref(device), machine.place.device.index)
    call("cuCtxCreate_v2", c.byref(context), 0, device)
    call("cuStreamCreate", c.byref(stream), 1)
    call("cuCtxPopCurrent_v2", c.byref(c.c_void_p()))
    try:
        wanted = "expected a stream of the GPU's primary context, found one of another context"
        return expect(stepc.DeviceError, wanted, lambda: create(machine, stream=stream.value))
    finally:
        call("cuCtxDestroy_v2", context)


class Refusing:
    """An allocator whose memory is used up."""

    def allocate(self, size, alignment):
        return 0

    def release(self, address):
        raise AssertionError("nothing was given")


def no_workspace(machine):
    return expect(
        stepc.StepcMemoryError, "a workspace of [0-9]+ bytes", lambda: create(machine, allocator=Refusing())
    )


def short_memory(machine):
    """Bytes that are not the shard's, and addresses that its type cannot have."""
    steps = Steps(machine.library(CASE), machine.place, 1)
    one = steps.instance.parameters[0]
    made = steps.memory[f"param:{one.name}"]
    size = made.bytes.numel()
    expect(stepc.ArgumentError, "bytes given, the local shard", lambda: steps.instance.bind_parameter(one.index, made.pointer, size - 2))
    text = expect(stepc.ArgumentError, "not aligned to", lambda: steps.instance.bind_parameter(one.index, made.pointer + 1, size))
    expect(stepc.ArgumentError, "null", lambda: steps.instance.bind_parameter(one.index, 0, size))
    steps.step(1)
    steps.close()
    return text


def memory_elsewhere(machine):
    """Of the host, pinned or not, and of another GPU, where there is one."""
    only_on_a_gpu(machine)
    steps = Steps(machine.library(CASE), machine.place, 3)
    one = steps.instance.parameters[0]
    size = steps.memory[f"param:{one.name}"].bytes.numel()
    index, count = machine.place.device.index, torch.cuda.device_count()
    memory = {"memory of the host": [torch.empty(size, dtype=torch.uint8, pin_memory=pinned) for pinned in (False, True)]}
    if count > 1:
        memory[f"memory of GPU {count - 1}"] = [
            torch.empty(size, dtype=torch.uint8, device=f"cuda:{count - 1}")
        ]
    for found, tensors in memory.items():
        for wrong in tensors:
            text = f"expected memory of GPU {index}, found {found}"
            said = expect(stepc.ArgumentError, text, lambda wrong=wrong: steps.instance.bind_parameter(one.index, wrong.data_ptr(), size))
            gradients = (c.c_uint64 * len(steps.instance.parameters))(wrong.data_ptr())
            expect(stepc.ArgumentError, text, lambda gradients=gradients: steps.instance.bind_gradients(gradients, len(gradients)))
    counts = torch.zeros(len(steps.instance.parameters), dtype=torch.int64, device=machine.place.device)
    expect(stepc.ArgumentError, "expected memory of the host", lambda: steps.instance.bind_steps(counts.data_ptr()))
    steps.step(1)
    steps.close()
    return said


def absent_gradient(machine):
    """A step that is refused changes nothing, and the next one steps."""
    steps = Steps(machine.library(CASE), machine.place, 2)
    before = {name: values.clone() for name, (_, values, _) in steps.values().items()}
    gradients = steps.draw_gradients(1)
    steps.use([Guarded(steps.place, 0), *gradients[1:]])
    text = expect(stepc.GradientError, steps.instance.parameters[0].name, steps.instance.enqueue)
    expect_equal(
        {name: values for name, (_, values, _) in steps.values().items()}, before, "before the refused step"
    )
    steps.step(1)
    steps.close()
    return text


def destroyed_under_way(machine):
    """An instance may go while its step runs; the memory is free to use afterwards."""
    for number in range(5):
        steps = Steps(machine.library(CASE), machine.place, number)
        steps.use(steps.draw_gradients(1))
        steps.instance.enqueue()
        steps.instance.close()
        if steps.allocator.overrun or steps.allocator.given:
            raise Failed("the workspace was overrun, or not given back")
    expect_equal(stepped(machine.library(CASE), machine.place, 5), stepped(machine.library(CASE), machine.place, 5), "before")
    return "5 instances were destroyed behind an enqueued step"


def several_instances(machine):
    """Two instances step in turns, on streams of their own."""
    alone = [stepped(machine.library(CASE), machine.place, seed, count=4) for seed in (1, 2)]
    streams = [machine.place.stream() for _ in alone]
    both = []
    for seed, stream in zip((1, 2), streams, strict=True):
        with machine.place.on(stream):
            both.append(Steps(machine.library(CASE), machine.place, seed))
    machine.place.synchronize()
    for number in range(1, 5):
        sets = [steps.draw_gradients(number) for steps in both]
        machine.place.synchronize()
        for steps, gradients in zip(both, sets, strict=True):
            steps.use(gradients)
            steps.instance.enqueue()
        machine.place.synchronize()
    for steps, expected in zip(both, alone, strict=True):
        expect_equal({name: values for name, (_, values, _) in steps.values().items()}, expected, "alone")
        steps.close()
    return "two instances at once have the bits that each has alone"


def checks(machine):
    for function in (another_chip, step_for_the_gpu, another_device, no_such_device, foreign_stream, no_workspace, short_memory, memory_elsewhere,
                     absent_gradient, destroyed_under_way, several_instances):  # fmt: skip
        yield Check(f"errors.{function.__name__}", 30, lambda function=function: function(machine))
