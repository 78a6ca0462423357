"""`stepc.torch` on the GPU: the optimizer as a trainer uses it, and the example that trains a GPT."""

import os
import re
import subprocess
import sys
import tempfile

import torch
from checks.machine import HOST, Check, Failed, Skipped
from checks.steps import DTYPES, draw
from stepc.torch import Optimizer

CASE = "example.muon"
STEPS = 6


def made(library, place, **options):
    """Parameters on a device, the same on all, and their optimizer."""
    generator = torch.Generator().manual_seed(3)
    named = [(one.name, torch.nn.Parameter(draw(one.global_shape, DTYPES[one.dtype], generator).to(place.device)))
             for one in library.parameters]  # fmt: skip
    return named, Optimizer(named, library=library.path, batch=["experts.*"], **options)


def give_gradients(named, number):
    for index, (_, one) in enumerate(named):
        generator = torch.Generator().manual_seed(1000 * number + index)
        one.grad = draw(one.shape, one.dtype, generator, 0.1).to(one.device)


def step(named, optimizer, number):
    give_gradients(named, number)
    for group in optimizer.param_groups:
        group["lr"] = 1e-2 / number
    optimizer.step()


def tensors(named, optimizer):
    """All that training changes, on the host."""
    found = dict(named)
    for name, one in named:
        found |= {f"{name}:{key}": value for key, value in optimizer.state[one].items()}
    return {name: one.detach().cpu() for name, one in found.items()}


def expect_same(found, expected):
    differ = [name for name, one in expected.items() if not torch.equal(one, found[name])]
    if found.keys() != expected.keys() or differ:
        raise Failed(f"expected the bits of the CPU, found others in {differ[:3]} of {len(expected)} tensors")
    return len(expected)


def optimizer_steps(machine):
    on_host = made(machine.library(CASE, "cpu"), HOST)
    on_device = made(machine.library(CASE), machine.place)
    for number in range(1, STEPS + 1):
        step(*on_host, number)
        # A stream that is not the library's: gradients are made there, too.
        stream = machine.place.stream() if number % 3 == 2 else None
        machine.place.synchronize()
        with machine.place.on(stream):
            step(*on_device, number)
            found = tensors(*on_device)
        machine.place.synchronize()
        count = expect_same(found, tensors(*on_host))
    return f"{count} tensors have the CPU's bits after each of {STEPS} steps"


def checkpoints(machine):
    """What one saved the other goes on with."""
    for first, second in ((HOST, machine.place), (machine.place, HOST)):
        pair = [
            made(machine.library(CASE, "cpu" if place is HOST else "device"), place)
            for place in (first, second)
        ]
        if machine.dry:
            pair = [made(machine.library(CASE, kind), HOST) for kind in ("cpu", "device")]
        for number in (1, 2):
            step(*pair[0], number)
        saved = pair[0][1].state_dict()
        for (_, one), (_, other) in zip(pair[0][0], pair[1][0], strict=True):
            other.data.copy_(one.data)
        pair[1][1].load_state_dict(saved)
        for each in pair:
            step(*each, 3)
        machine.place.synchronize()
        count = expect_same(tensors(*pair[1]), tensors(*pair[0]))
    return f"{count} tensors go on with the same bits, both ways"


def workspace(machine):
    """The workspace is torch's memory."""
    if not machine.place.is_gpu:
        raise Skipped("no GPU")
    named, optimizer = made(machine.library(CASE), machine.place)
    step(named, optimizer, 1)
    torch.cuda.synchronize()
    least = optimizer.library.workspace_bytes
    with_it = torch.cuda.memory_allocated()
    optimizer._close()
    freed = with_it - torch.cuda.memory_allocated()
    if freed < least:
        raise Failed(f"expected {least} bytes of torch's memory to be given back, found {freed}")
    return f"{least} bytes out of torch's pool, given back"


def devices_apart(machine):
    if not machine.place.is_gpu:
        raise Skipped("no GPU")
    named, _ = made(machine.library(CASE), machine.place)
    named[1][1].data = named[1][1].data.cpu()
    try:
        Optimizer(named, library=machine.library(CASE).path, batch=["experts.*"]).prepare()
    except RuntimeError as error:
        if "expected a tensor on cuda:0" in str(error):
            return str(error)
        raise
    raise Failed("expected an error for parameters on two devices, found none")


def example(machine):
    try:
        import matplotlib  # noqa: F401
        import tqdm  # noqa: F401
    except ImportError as error:
        raise Skipped(f"the example needs it: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(machine.folder / "examples" / "train_gpt.py"), "--device", machine.place.device.type,
                   "--library", str(machine.path("trained.gpt")), "--ranks", "1", "--steps", "8", "--width", "48", "--layers", "2",
                   "--heads", "3", "--length", "32", "--out", folder]  # fmt: skip
        environment = os.environ | {"PYTHONPATH": str(machine.folder / "python")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    found = re.search(r"largest difference in 8 steps: (\S+)", done.stdout)
    if done.returncode or not found:
        raise Failed(f"exit {done.returncode}: {(done.stdout + done.stderr)[-400:]}")
    # Kernels of torch that add up in any order differ by 1e-6; a rule that is wrong by a percent by 1e-3.
    if not float(found[1]) < 1e-4:
        raise Failed(f"expected the loss of torch's step within 1e-4, found {found[1]}")
    return f"losses within {found[1]} of torch's in 8 steps"


def checks(machine):
    for name, function in (("steps", optimizer_steps), ("checkpoints", checkpoints), ("workspace", workspace),
                           ("devices", devices_apart), ("example", example)):  # fmt: skip
        yield Check(f"trainer.{name}", 60, lambda function=function: function(machine))
