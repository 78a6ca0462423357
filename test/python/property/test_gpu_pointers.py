"""Whose memory it is that a trainer lends a GPU, and on which stream: asked of the driver when it is bound,
refused where it is wrong.

On the driver that is the host (test/devices/StubDriver.cpp), in this process: a test says of memory that it
is a GPU's or the host's; all other memory is managed, which is both.
"""

import ctypes as c
import shutil
from itertools import product

import numpy as np
import pytest
from bound import DEVICE, HOST, Bound, compiled
from stepc import _abi
from stepc._device import Device
from stepc._library import Instance, Library
from stepc.errors import ArgumentError, DeviceError, StepcMemoryError
from stepc.nccl import nccl_transport
from stub_driver import GPUS, HOSTS, STUB, UNKNOWN, StubDriver

pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")


class Driver(StubDriver):
    def asked(self):
        return self.library.stepc_stub_calls(b"cuPointerGetAttributes")


@pytest.fixture
def driver():
    one = Driver()
    yield one
    one.library.stepc_stub_disown()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("stub"), "--target", "emulated", STEPC_RUNTIME_DIR=STUB)


def like(array):
    """Other memory with the same values, aligned as the tests need it."""
    return array.copy()


def bind(bound, what, name, array):
    p = bound.instance.parameters[bound.names.index(name)]
    if what == "parameter":
        bound.instance.bind_parameter(p.index, array.ctypes.data, array.nbytes)
    elif what == "state":
        bound.instance.bind_state(p.index, 0, array.ctypes.data, array.nbytes)
    elif what == "gradient":
        bound.instance.bind_gradient(p.index, array.ctypes.data, array.nbytes)
    else:
        pointers = [bound.gradients[each].ctypes.data for each in bound.names]
        pointers[p.index] = array.ctypes.data
        bound.instance.bind_gradients((c.c_uint64 * len(pointers))(*pointers), len(pointers))


WRONG = {
    (UNKNOWN, 0): "expected memory of GPU 0, found memory of the host",
    (HOSTS, 0): "expected memory of GPU 0, found memory of the host",
    (GPUS, 1): "expected memory of GPU 0, found memory of GPU 1",
}
NAMES = {"parameter": "parameter 'v': ", "state": "state 'm' of parameter 'v': ", "gradient": "gradient of parameter 'v': "}


@pytest.mark.parametrize(
    ("what", "wrong"), list(product(("parameter", "state", "gradient", "gradients"), WRONG))
)
def test_shards_elsewhere_are_refused(library, driver, what, wrong):
    bound, other = Bound(library, seed=1), Bound(library, seed=1)
    for one in (bound, other):
        one.new_gradients()
    elsewhere = driver.own(like(bound.parameters["v"]), *wrong)
    with pytest.raises(ArgumentError, match=NAMES[what.removesuffix("s")] + WRONG[wrong]):
        bind(bound, what, "v", elsewhere)
    # What was bound before still is, and nothing was written.
    before = elsewhere.tobytes()
    for one in (bound, other):
        one.instance.step()
    assert bound.everything() == other.everything() and elsewhere.tobytes() == before


@pytest.mark.parametrize("what", ["parameter", "state", "gradient", "gradients"])
def test_memory_of_the_gpu_is_taken(library, driver, what):
    bound = Bound(library, seed=1)
    bound.new_gradients()
    array = driver.own(like(bound.parameters["v"]), GPUS, 0)
    bind(bound, what, "v", array)
    bound.instance.step()


def test_a_gradient_is_asked_about_when_it_is_another(library, driver):
    bound = Bound(library)
    bound.new_gradients()
    before = driver.asked()
    pointers = [bound.gradients[name].ctypes.data for name in bound.names]
    for _ in range(3):
        bound.instance.bind_gradients((c.c_uint64 * len(pointers))(*pointers), len(pointers))
        bound.instance.bind_gradient(0, pointers[0], bound.gradients[bound.names[0]].nbytes)
    assert driver.asked() == before
    pointers[1] = like(bound.gradients[bound.names[1]]).ctypes.data
    bound.instance.bind_gradients((c.c_uint64 * len(pointers))(*pointers), len(pointers))
    assert driver.asked() == before + 1
    # An absent one is nobody's.
    pointers[1] = 0
    bound.instance.bind_gradients((c.c_uint64 * len(pointers))(*pointers), len(pointers))
    assert driver.asked() == before + 1


@pytest.mark.parametrize(
    ("memory", "kind", "wrong"),
    [
        (HOST, GPUS, "expected memory of the host, found memory of GPU 0"),
        (DEVICE, HOSTS, "expected memory of GPU 0, found memory of the host"),
        (HOST, HOSTS, None),
        (HOST, UNKNOWN, None),
        (DEVICE, GPUS, None),
    ],
)
def test_numbers_stand_where_the_trainer_says(library, driver, memory, kind, wrong):
    bound = Bound(library, memory)
    steps, values = driver.own(like(bound.steps), kind), driver.own(like(bound.values), kind)
    groups = (c.c_int32 * len(bound.names))(*range(len(bound.names)))

    def bind_steps():
        bound.instance._call("bind_steps", steps.ctypes.data, memory)

    def bind_hyperparameters():
        bound.instance._call(
            "bind_hyperparameters", values.ctypes.data, *values.shape, c.addressof(groups), memory
        )

    for what, call in {"step counts": bind_steps, "hyperparameters": bind_hyperparameters}.items():
        if wrong is None:
            call()
        else:
            with pytest.raises(ArgumentError, match=f"{what}: {wrong}"):
                call()
    bound.new_gradients()
    bound.instance.step()
    assert steps.tolist() == [0 if wrong else 1] * 4


class Lending:
    """An allocator of the trainer's, with memory that is not the GPU's."""

    def __init__(self, driver, kind, gpu):
        self.driver, self.kind, self.gpu, self.given = driver, kind, gpu, {}

    def allocate(self, size, alignment):
        array = np.empty(size + alignment, np.uint8)
        address = -(-array.ctypes.data // alignment) * alignment
        self.driver.own(array, self.kind, self.gpu)
        self.given[address] = array
        return address

    def release(self, address):
        del self.given[address]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_workspace_elsewhere_is_refused(library, driver, wrong):
    allocator = Lending(driver, *wrong)
    text = f"a workspace of [0-9]+ bytes, aligned to 64, could not be allocated by the options' allocator: {WRONG[wrong]}"
    with pytest.raises(StepcMemoryError, match=text):
        Instance(library, device=Device(allocator=allocator))
    assert not allocator.given


class Spent(Lending):
    def allocate(self, size, alignment):
        return 0


class Crooked(Lending):
    def allocate(self, size, alignment):
        return super().allocate(size + alignment, alignment) + 8

    def release(self, address):
        super().release(address - 8)


@pytest.mark.parametrize("kind", [Spent, Crooked])
def test_a_workspace_that_is_none_is_refused(library, driver, kind):
    allocator = kind(driver, GPUS, 0)
    with pytest.raises(
        StepcMemoryError,
        match="a workspace of [0-9]+ bytes, aligned to 64, could not be allocated by the options'",
    ):
        Instance(library, device=Device(allocator=allocator))
    assert not allocator.given


def test_a_workspace_of_the_gpu_is_taken(library, driver):
    allocator = Lending(driver, GPUS, 0)
    bound = Bound(library, device=Device(allocator=allocator))
    bound.new_gradients()
    bound.instance.step()
    bound.instance.close()
    assert not allocator.given


def test_a_failing_driver_is_an_error(library, driver):
    bound = Bound(library)
    driver.library.stepc_stub_fail(f"cuPointerGetAttributes:{driver.asked()}".encode())
    with pytest.raises(
        ArgumentError,
        match="step counts: asking whose a pointer is failed: CUDA_ERROR_OUT_OF_MEMORY, said the stub",
    ):
        bound.instance.bind_steps(bound.steps.ctypes.data)


@pytest.fixture
def cuda(library, tmp_path, monkeypatch):
    """The same library, as one for GPUs."""
    monkeypatch.setenv("STEPC_STUB_DEVICE", "cuda")
    return Library(shutil.copy(library.path, tmp_path))


def test_a_stream_of_another_context_is_refused(cuda, driver, monkeypatch):
    stream = driver.library.stepc_stub_stream()
    place = Device(_abi.DEVICE_CUDA, stream=stream)
    bound = Bound(cuda, device=place)
    bound.new_gradients()
    bound.instance.step()
    monkeypatch.setenv("STEPC_STUB_FOREIGN", "1")
    with pytest.raises(
        DeviceError, match="expected a stream of the GPU's primary context, found one of another context"
    ):
        Instance(cuda, device=place)


def test_a_library_for_gpus_asks_for_one(cuda):
    with pytest.raises(ArgumentError, match="library 'muon' is for GPUs: expected device 1, found device 0"):
        Instance(cuda, device=Device())
    bound = Bound(cuda)  # without a word it takes the first
    bound.new_gradients()
    bound.instance.step()
    assert bound.steps.tolist() == [1] * 4
    for ordinal in (-1, 1):
        with pytest.raises(DeviceError, match=f"expected the number of a GPU below 1, found {ordinal}"):
            Instance(cuda, device=Device(_abi.DEVICE_CUDA, ordinal))


def test_a_kernel_of_too_many_arguments_is_refused_before_the_first_step(tmp_path):
    states = [f"s{i}" for i in range(62)]
    lines = [
        *(f"state {s} : f32" for s in states),
        *(f"{s} = {s} + grad" for s in states),
        "param = param - lr * (" + " + ".join(states) + ")",
    ]
    (tmp_path / "r.optim").write_text(
        "optimizer R(lr) {\n" + "\n".join(lines) + "\n}\nroute { R(lr = 0.1) for rest }\n"
    )
    many = compiled(
        tmp_path, "--target", "emulated", spec=tmp_path / "r.optim", shapes={"w": [8]}, STEPC_RUNTIME_DIR=STUB
    )
    with pytest.raises(DeviceError, match="rank 0: expected a kernel of at most 63 arguments, found 67"):
        Instance(many)


def test_a_step_on_a_gpu_is_enqueued_by_the_callers_thread(cuda, tmp_path, monkeypatch):
    c.CDLL(str(STUB / "libnccl.so.2"))
    transport = nccl_transport(0, 1, 0, file=tmp_path / "id", library=STUB / "libstepc_nccl.so")
    transport.ordinal = 1  # the one that an instance takes where it is told none
    with pytest.raises(DeviceError, match="expected the number of a GPU below 1, found 1"):
        Instance(cuda, transport)
    transport.ordinal = 0
    bound = Bound(cuda, transport=transport)
    bound.new_gradients()
    calls = []
    monkeypatch.setattr(
        "stepc._library.call_apart", lambda function, give_up: (calls.append(1), function())[1]
    )
    bound.instance.enqueue()
    while not bound.instance.poll():
        pass
    assert not calls and bound.steps.tolist() == [1] * 4
    # What waits is in a thread of its own.
    bound.instance.step()
    assert calls
