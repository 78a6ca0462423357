"""One library for two targets: instances of both live in one process, and give what each gives in a
library of its own.
"""

import re
import subprocess
import types

import pytest
import torch
from bound import PARAMETER, Bound, compiled, traced
from compiler import ROOT
from ranks import run_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import stepc
from stepc import _abi
from stepc._device import Device
from stepc._library import Instance, Library
from stepc.errors import DeviceError, StepcError
from stepc.torch import Optimizer, devices
from stub_driver import STUB, StubDriver
from test_cuda_library import TOOLS, create, planted_nothing

BOTH = ("--target", "cpu", "--target", "emulated:sm_80")
STEPS = 3


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("cpu"), "--target", "cpu")


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("emulated"), "--target", "emulated:sm_80")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("both"), *BOTH)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """The second target is one for GPUs, whose driver is the host."""
    if not STUB.is_dir():
        pytest.skip("build/lib/stub was not built")
    folder = tmp_path_factory.mktemp("stub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPC_STUB_DEVICE", "cuda")
        return compiled(folder, *BOTH, STEPC_RUNTIME_DIR=STUB)


def interleaved(pairs):
    """As `traced`, with a step of each in turn."""
    found = [[] for _ in pairs]
    for _ in range(STEPS):
        for bound, trace in zip(pairs, found, strict=True):
            trace += traced(bound, 1)
    return found


def test_a_target_is_chosen_by_its_kind(both, alone):
    assert both.targets == ("cpu", "emulated") and both.target == "cpu" and alone.targets == ("cpu",)
    second = Library(both.path, "emulated")
    assert (second.target, second.targets) == ("emulated", both.targets)
    assert second.plan_hash != both.plan_hash and second.chip.startswith("emulated:sm_80 on ")
    assert second.parameters == both.parameters and second.routes == both.routes
    assert Library(both.path, "cpu").plan_hash == both.plan_hash == alone.plan_hash
    with pytest.raises(
        StepcError,
        match=re.escape(f"'{both.path}': expected one of its targets (cpu, emulated), found 'cuda'"),
    ):
        Library(both.path, "cuda")
    assert both.for_device(_abi.DEVICE_CPU).plan_hash == both.plan_hash
    assert both.for_device(_abi.DEVICE_CUDA) is None
    # the first that was named, whatever it stood for
    assert (
        second.for_device(_abi.DEVICE_CPU).target == "cpu"
    )


def test_instances_of_both_give_equal_bits_at_once(both, alone, emulated):
    libraries = [both, Library(both.path, "emulated"), alone, emulated, both]
    found = interleaved([Bound(library) for library in libraries])
    assert found[0][0] != found[0][-1]
    for trace in found[1:]:
        assert trace == found[0]


def test_a_graph_is_of_the_target_that_has_them(both):
    assert traced(Bound(Library(both.path, "emulated"), graph=True), STEPS) == traced(Bound(both), STEPS)
    with pytest.raises(StepcError, match="device 'cpu'"):
        Bound(both, graph=True)


def test_its_size_is_less_than_that_of_two(both, alone, emulated):
    """What is the runtime's stands there once."""
    two, cpu, gpu = (len(open(library.path, "rb").read()) for library in (both, alone, emulated))
    assert max(cpu, gpu) < two < max(cpu, gpu) + min(cpu, gpu) / 2
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", both.path], capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[-1] for line in symbols.splitlines()] == ["muon_library", "stepc_library_table"]


def test_python_compiles_for_several(real, tmp_path):
    mesh = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    manifest = {"version": 1, "meshes": [mesh], "parameters": [{"name": "w", "shape": [24, 40], **PARAMETER}]}
    spec = "optimizer A(lr) { param = param - lr * grad }\nroute { A(lr = 0.1) for rest }\n"
    (tmp_path / "a.optim").write_text(spec)
    out = tmp_path / "out"
    made = stepc.compile(tmp_path / "a.optim", manifest, target=["cpu", "emulated", "interpret"], output=out)
    assert Library(made).targets == ("cpu", "emulated", "interpret")
    assert sorted(path.name for path in out.iterdir()) == [
        "a.emulated.json", "a.h", "a.interpret.json", "a.json", "liba.so"
    ]  # fmt: skip
    parameter = torch.nn.Parameter(torch.ones(24, 40))
    parameter.grad = torch.ones(24, 40)
    optimizer = Optimizer([("w", parameter)], spec, target=["emulated", "cpu"])
    optimizer.step()
    assert optimizer.library.targets == ("emulated", "cpu") and optimizer.library.target == "emulated"
    interpreted = Optimizer([("w", parameter)], spec, target="interpret")
    interpreted.step()
    assert interpreted.library.target == "interpret" and torch.allclose(parameter, torch.full((24, 40), 0.8))
    with pytest.raises(
        stepc.CompileError, match="--target: expected one target for cpu, found 'cpu' and 'cpu:x86-64'"
    ):
        stepc.compile(spec, manifest, target=["cpu", "cpu:x86-64"])


def test_a_gpus_step_beside_a_cpus(stub, alone):
    gpu = stub.for_device(_abi.DEVICE_CUDA)
    assert (
        gpu.target == "emulated" and stub.target == "cpu" and stub.for_device(_abi.DEVICE_CPU).target == "cpu"
    )
    place = Device(_abi.DEVICE_CUDA, stream=StubDriver().library.stepc_stub_stream())
    found = interleaved([Bound(stub), Bound(gpu, device=place), Bound(alone)])
    assert found[0] == found[1] == found[2]


class Stream:
    """A stream of the stand-in for the driver, as torch's."""

    def __init__(self):
        self.cuda_stream = StubDriver().library.stepc_stub_stream()


def model():
    generator = torch.Generator().manual_seed(1)
    return {
        name: torch.nn.Parameter(torch.randn(*shape, generator=generator))
        for name, shape in (("w", (24, 40)), ("b", (40,)))
    }


def stepped(library):
    parameters = model()
    optimizer = Optimizer(parameters.items(), library=library, threads=1)
    for step in range(STEPS):
        for number, parameter in enumerate(parameters.values()):
            generator = torch.Generator().manual_seed(10 * step + number)
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return optimizer.library.target, [parameter.detach().clone() for parameter in parameters.values()]


def test_the_optimizer_takes_the_target_of_where_its_parameters_are(tmp_path, monkeypatch):
    """Parameters on the CPU, and then on a GPU, which is the host: torch.cuda is stood in for."""
    shapes = {"w": [24, 40], "b": [40]}
    monkeypatch.setenv("STEPC_STUB_DEVICE", "cuda")
    path = compiled(tmp_path / "both", *BOTH, shapes=shapes, STEPC_RUNTIME_DIR=STUB).path
    only = compiled(tmp_path / "only", "--target", "cpu", shapes=shapes).path
    kind, expected = stepped(path)
    assert kind == "cpu"
    stream = Stream()
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    # Without torch's allocator: the driver knows its own memory.
    monkeypatch.setattr(devices.Gpu, "options", lambda gpu: Device(gpu.kind, 0, stream.cuda_stream))
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Gpu(torch.device("cpu", 0)))
    kind, found = stepped(path)
    assert kind == "emulated"
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    with pytest.raises(
        DeviceError,
        match="expected a library for NVIDIA's GPUs, as the parameters are on cpu:0, found one for cpu",
    ):
        stepped(only)


def _on_two_kinds_of_device(rank):
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    parameter = torch.nn.Parameter(distribute_tensor(torch.ones(24, 40), mesh, [Shard(0)]))
    parameter.grad = torch.zeros_like(parameter)
    if rank == 1:  # as of a GPU's tensors, where torch has been made for them
        torch.version.cuda = "13.0"
        torch.cuda.current_stream = lambda device: types.SimpleNamespace(cuda_stream=0)
        devices.of_tensors = lambda named: devices.Gpu(torch.device("cpu", 0))
    optimizer = Optimizer([("w", parameter)], ROOT / "examples" / "muon.optim", target=["cpu", "cuda:sm_80"],
                          if_present=["*embed*", "lm_head*"], timeout=60.0)  # fmt: skip
    try:
        optimizer.step()
    except StepcError as error:
        return str(error)
    return "stepped"


@pytest.mark.skipif(not (TOOLS / "ptxas").is_file(), reason="no ptxas was installed")
def test_ranks_on_different_kinds_of_device_are_told_at_once(real):
    for text in run_ranks(_on_two_kinds_of_device, 2):
        assert ("expected the parameters of all ranks that step together on one kind of device, found those of rank 0 where target "
                "cpu steps, and those of rank 1 where cuda does") in text  # fmt: skip


@pytest.mark.skipif(not (TOOLS / "ptxas").is_file(), reason="no ptxas was installed")
@pytest.mark.parametrize("order", [("cpu", "cuda:sm_80"), ("cuda:sm_80", "cpu")])
def test_a_library_for_gpus_and_cpus_steps_without_a_gpu(tmp_path, alone, order):
    planted_nothing()
    library = compiled(tmp_path, *(word for target in order for word in ("--target", target)))
    assert library.targets == tuple(target.split(":")[0] for target in order)
    cpu, gpu = library.for_device(_abi.DEVICE_CPU), library.for_device(_abi.DEVICE_CUDA)
    assert (cpu.device, gpu.device) == (0, 1)
    assert traced(Bound(cpu), STEPS) == traced(Bound(alone), STEPS)
    with pytest.raises(DeviceError, match="rank 0: expected NVIDIA's driver, found no libcuda.so.1"):
        Instance(gpu, device=Device(_abi.DEVICE_CUDA))
    said = "library 'muon' is for GPUs: expected device 1, found device 0"
    assert (said in create(library.path, device=0)) == (order[0] != "cpu")
    needed = subprocess.run(
        ["readelf", "-d", library.path], capture_output=True, text=True, check=True
    ).stdout
    assert "cuda" not in needed
