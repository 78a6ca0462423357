"""The optimizer on a GPU, as far as a machine without one can see it: torch.cuda and the library are stood in
for.

The stand-in's device is `cpu:0`, so that tensors have memory. test/gpu does the same with the real ones.
"""

import contextlib

import pytest
import torch
from ranks import run_ranks
from torch import nn

import stepc
from stepc._library import Instance
from stepc.torch import Optimizer, building, devices, export_manifest, failures, gpu_transport
from stepc.torch.transport import TorchTransport

GPU = torch.device("cpu", 0)


class Stream:
    """A stream that keeps what waits for what."""

    def __init__(self, name, log):
        self.name, self.log, self.cuda_stream = name, log, 0x1000 + len(name)

    def wait_stream(self, other):
        self.log.append((self.name, other.name))


@pytest.fixture
def cuda(monkeypatch):
    """torch.cuda on cpu:0; `current` may be changed."""

    class Cuda:
        log = []
        current = trainers = Stream("trainers", log)

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Cuda.current)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream("library's", Cuda.log))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(
        devices, "of_tensors", lambda named: devices.Gpu(GPU) if list(named) else devices.Host()
    )
    return Cuda


def model():
    torch.manual_seed(0)
    made = nn.Linear(3, 4)
    made(torch.randn(2, 3)).sum().backward()
    return made


def test_a_step_is_the_same_as_on_the_cpu(fake, cuda, way, monkeypatch):
    expected, found = model(), model()
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Host())
    on_host = Optimizer(expected.named_parameters(), "a rule {}", Plain={"lr": 0.5})
    on_host.step()
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Gpu(GPU))
    on_gpu = Optimizer(found.named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    for optimizer in (on_host, on_gpu):
        optimizer.step()
    on_gpu.step()
    on_host.step()
    on_gpu.step()
    for one, other in zip(expected.parameters(), found.parameters(), strict=True):
        assert torch.equal(one, other)
    assert on_gpu.state_dict()["state"][0]["step"] == 3
    # All of it on the stream that the library was given.
    assert cuda.log == []


def test_the_library_is_compiled_for_the_gpu_that_is_there(fake, cuda, monkeypatch):
    seen, compile_silently = [], building.compile_silently

    def compiled(spec, manifest, options):
        seen.append(options)
        return compile_silently(spec, manifest, options)

    monkeypatch.setattr(building, "compile_silently", compiled)
    Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}).prepare()
    Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}, target="cuda:sm_80").prepare()
    assert [[one for one in options if "target" in one] for options in seen] == [
        ["--target=cuda:sm_90a"],
        ["--target=cuda:sm_80"],
    ]
    for capability, chip in (((8, 0), "sm_80"), ((8, 9), "sm_89"), ((10, 0), "sm_100a"), ((12, 1), "sm_121a")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert devices.Gpu(GPU).target == f"cuda:{chip}"


def test_another_current_stream_waits_and_is_waited_for(fake, cuda):
    optimizer = Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    optimizer.step()
    cuda.current = Stream("other", cuda.log)
    optimizer.step()
    assert cuda.log == [("trainers", "other"), ("other", "trainers")]
    cuda.current = cuda.trainers
    optimizer.step()
    assert len(cuda.log) == 2


def test_the_workspace_comes_from_torch(fake, cuda, monkeypatch):
    given, allocate, release = [], devices.Pool.allocate, devices.Pool.release

    def allocated(pool, size, alignment):
        given.append(size)
        return allocate(pool, size, alignment)

    def released(pool, address):
        given.append("released")
        release(pool, address)

    monkeypatch.setattr(devices.Pool, "allocate", allocated)
    monkeypatch.setattr(devices.Pool, "release", released)
    optimizer = Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    optimizer.step()
    assert given == [4096]
    optimizer._close()
    assert given == [4096, "released"]

    def refuses(pool, size, alignment):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(devices.Pool, "allocate", refuses)
    with pytest.raises(stepc.StepcMemoryError, match="a workspace of 4096 bytes") as raised:
        optimizer.step()
    assert isinstance(raised.value.__cause__, torch.OutOfMemoryError)


def test_what_a_graph_may_capture_stands_on_the_gpu(fake, cuda, monkeypatch):
    called = []

    def noting(name, place):
        function = getattr(Instance, name)

        def noted(instance, *arguments):
            called.append((name, *arguments[place:]))
            return function(instance, *arguments)

        monkeypatch.setattr(Instance, name, noted)

    noting("bind_steps", 1)
    noting("bind_hyperparameters", 4)
    noting("refresh", 0)
    noting("enqueue", 0)
    expected, found = model(), model()
    numbers = Optimizer(expected.named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    rate = torch.tensor(0.5)
    tensors = Optimizer(found.named_parameters(), "a gpu rule {}", Plain={"lr": rate}, capturable=True)
    for lr in (0.5, 0.25, 0.125):
        rate.fill_(lr)
        for group in numbers.param_groups:
            group["lr"] = lr
        tensors.param_groups[0]["lr"] = lr if lr < 0.25 else rate
        for one, other in zip(expected.parameters(), found.parameters(), strict=True):
            other.grad.copy_(one.grad.mul_(0.5))
        numbers.step()
        tensors.step()
    for one, other in zip(expected.parameters(), found.parameters(), strict=True):
        assert torch.equal(one, other)
    assert [one for one in called if one[0].startswith("bind")] == [
        ("bind_steps", 0), ("bind_hyperparameters", 0), ("bind_steps", 1), ("bind_hyperparameters", 1),
    ]  # fmt: skip
    # Its stream is one that a graph can capture with the trainer's.
    assert cuda.log == 3 * [("library's", "trainers"), ("trainers", "library's")]
    # A graph that holds a step is told of what is bound now; no step is taken.
    before = [one.detach().clone() for one in found.parameters()]
    for one in found.parameters():
        one.grad = one.grad.clone()
    called.clear()
    tensors.refresh()
    assert called == [("refresh",)]
    assert all(torch.equal(one, other) for one, other in zip(before, found.parameters(), strict=True))
    assert tensors.state_dict()["state"][0]["step"] == 3


def refuses_to_close(instance):
    """As an instance does while a graph holds one of its steps."""
    raise stepc.GraphError("1 step of this instance stands in graphs of the trainer's")


def test_a_graph_that_holds_a_step_keeps_the_instance(fake, cuda, monkeypatch):
    optimizer = Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}, capturable=True)
    optimizer.step()
    close = Instance.close
    monkeypatch.setattr(Instance, "close", refuses_to_close)
    with pytest.raises(stepc.GraphError, match="stands in graphs"):
        optimizer.prepare()
    monkeypatch.setattr(Instance, "close", close)
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"] == 2


def test_what_a_capture_cannot_hold_is_refused(fake, cuda, monkeypatch):
    capturing = False
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    mine = model()
    plain = Optimizer(mine.named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    optimizer = Optimizer(mine.named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}, capturable=True)
    capturing = True
    with pytest.raises(
        stepc.GraphError,
        match="a graph captures the current stream: expected an optimizer with capturable=True",
    ):
        plain.step()
    with pytest.raises(
        stepc.GraphError, match="expected an optimizer that is prepared, found that nothing is bound yet"
    ):
        optimizer.step()
    capturing = False
    optimizer.step()
    capturing = True
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = 0.25
    with pytest.raises(
        stepc.GraphError,
        match=r"or that a step or refresh\(\) brought there before, found another number, 0.25",
    ):
        optimizer.step()
    capturing = False
    optimizer.refresh()
    capturing = True
    optimizer.step()
    capturing = False
    optimizer.param_groups[0]["lr"] = float("nan")
    with pytest.raises(stepc.HyperparameterError, match="expected a number for 'lr', found nan"):
        optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.25
    mine.weight.grad = torch.randn(3, 4).t()
    for then in (optimizer.refresh, optimizer.step):
        with pytest.raises(
            stepc.GradientError,
            match="capturable: expected gradients that can be read where they are, found copies",
        ):
            then()
    mine.weight.grad = mine.weight.grad.contiguous()
    optimizer.step()


def test_a_failed_instance_stays_for_the_graphs_that_hold_its_steps(fake, cuda, monkeypatch):
    optimizer = Optimizer(
        model().named_parameters(), "a gpu rule that fails {}", Plain={"lr": 0.5}, capturable=True
    )
    optimizer.step()
    binding = optimizer._binding
    monkeypatch.setattr(Instance, "close", refuses_to_close)
    with pytest.raises(stepc.DeviceError, match="carrying out a step failed: no reason"):
        optimizer.step()
    assert any(binding in kept for kept in failures._KEPT)


def test_parameters_on_the_cpu_are_captured_by_no_graph(fake):
    optimizer = Optimizer(model().named_parameters(), "a rule {}", Plain={"lr": 0.5}, capturable=True)
    with pytest.raises(
        stepc.StepcError, match="capturable: expected parameters on a GPU, found parameters on the CPU"
    ):
        optimizer.step()


@pytest.mark.parametrize("then", ["step", "state_dict"])
def test_a_step_that_failed_on_the_gpu_is_found_out_later(fake, cuda, then):
    optimizer = Optimizer(model().named_parameters(), "a gpu rule that fails {}", Plain={"lr": 0.5})
    optimizer.step()
    with pytest.raises(stepc.DeviceError, match="carrying out a step failed: no reason") as raised:
        getattr(optimizer, then)()
    assert raised.value.half_stepped == ["bias", "weight"] or raised.value.half_stepped == ["weight", "bias"]
    with pytest.raises(stepc.PoisonedError, match="an earlier step failed"):
        optimizer.step()


def test_a_library_for_another_device_is_refused(fake, cuda):
    optimizer = Optimizer(model().named_parameters(), "a rule {}", Plain={"lr": 0.5})
    wanted = "expected a library for NVIDIA's GPUs, as the parameters are on cpu:0, found one for cpu"
    with pytest.raises(stepc.DeviceError, match=wanted):
        optimizer.step()


def test_a_library_for_gpus_is_refused_on_the_cpu(fake):
    optimizer = Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5})
    wanted = "expected a library for the CPU, as the parameters are on cpu, found one for cuda"
    with pytest.raises(stepc.DeviceError, match=wanted):
        optimizer.step()


BOTH = r'\nhint: compile for both, with target=\["cpu", "cuda:{}"\], or move the model to {}$'


def test_a_library_for_another_device_says_what_to_do(fake, cuda, monkeypatch, tmp_path):
    made = stepc.compile("a rule {}", export_manifest(model().named_parameters()), output=tmp_path)
    with pytest.raises(stepc.DeviceError, match="found one for cpu" + BOTH.format("sm_90a", "the CPU")):
        Optimizer(model().named_parameters(), library=made.library, Plain={"lr": 0.5}).step()
    made = stepc.compile(
        "a gpu rule {}", export_manifest(model().named_parameters()), output=tmp_path / "gpu"
    )
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Host())
    with pytest.raises(stepc.DeviceError, match="found one for cuda" + BOTH.format("…", "a GPU")):
        Optimizer(model().named_parameters(), library=made.library, Plain={"lr": 0.5}).step()


def test_targets_of_another_device_are_refused_before_they_are_compiled_for(fake, cuda, monkeypatch):
    def target(*names):
        Optimizer(model().named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}, target=names).prepare()

    compile_silently = building.compile_silently
    monkeypatch.setattr(building, "compile_silently", lambda *given: pytest.fail("it compiled"))
    said = "target: expected one for NVIDIA's GPUs, as the parameters are on cpu:0, found one for cpu and emulated"
    with pytest.raises(stepc.DeviceError, match=said + BOTH.format("sm_90a", "the CPU")):
        target("cpu:znver3", "emulated")
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Host())
    said = "target: expected one for the CPU, as the parameters are on cpu, found one for cuda"
    with pytest.raises(stepc.DeviceError, match=said + BOTH.format("…", "a GPU")):
        target("cuda:sm_90a")
    # One of them is, and what the compiler alone could know is left to it.
    monkeypatch.setattr(devices, "of_tensors", lambda named: devices.Gpu(GPU))
    monkeypatch.setattr(building, "compile_silently", compile_silently)
    target("cuda:sm_90a", "cpu")
    target("banana")


def test_parameters_on_several_devices_are_refused():
    named = [("a", torch.empty(2)), ("b", torch.empty(2, device="meta"))]
    with pytest.raises(
        stepc.StepcError, match="'b': expected a tensor on the CPU or on a GPU of NVIDIA's, found one on meta"
    ):
        devices.of_tensors(named)

    class Elsewhere:
        device = torch.device("cuda", 1)

    with pytest.raises(
        stepc.StepcError, match="'b': expected a tensor on cpu, where 'a' is, found one on cuda:1"
    ):
        devices.of_tensors([named[0], ("b", Elsewhere())])


def test_another_torch_is_refused(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(stepc.DeviceError, match="cuda:0: expected a torch for CUDA, found"):
        devices.Gpu(torch.device("cuda", 0))


@contextlib.contextmanager
def stood_in():
    """As the fixture, in a rank's own process. NCCL is gloo by another connection, whose table has other
    functions.
    """
    log = []
    stream = Stream("trainers", log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.version, "cuda", "13.0")
        patch.setattr(torch.cuda, "current_stream", lambda device: stream)
        patch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
        patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
        patch.setattr(devices, "of_tensors", lambda named: devices.Gpu(GPU))
        patch.setattr(gpu_transport, "nccl_transport", lambda rank, size, ordinal, store, timeout: made.append(
            TorchTransport(range(size), timeout, "other")) or made[-1])  # fmt: skip
        made = []
        yield made


def step_on_gpus(rank, way):
    """Two steps; the second fails on rank 1 alone, where that is the way."""
    with stood_in() as made:
        mine = model()
        optimizer = Optimizer(
            mine.named_parameters(), "a gpu rule {}", Plain={"lr": 0.5}, replicated=["*"], timeout=20, process_group=None
        )
        optimizer.step()
        if way == "fails":
            if rank == 1:
                mine.bias.grad = None
            with pytest.raises(stepc.StepcError) as raised:
                optimizer.step()
            return f"{type(raised.value).__name__}: {raised.value}", made[0].aborted
        optimizer.step()
        traffic = made[0]._traffic.messages_sent
        optimizer._close()
        return [one.detach() for one in mine.parameters()], traffic, made[0].group is None


def test_several_ranks_step_by_nccl(fake):
    results = run_ranks(step_on_gpus, 2, "steps")
    for parameters, traffic, closed in results:
        assert all(torch.equal(one, other) for one, other in zip(parameters, results[0][0], strict=True))
        assert traffic == 2 and closed  # the library's messages went this way, and it ended the transport


def test_a_rank_that_fails_ends_the_others_steps(fake):
    (text, aborted), (own, _) = run_ranks(step_on_gpus, 2, "fails")
    assert "gradient is absent" in own
    assert aborted is not None and "bias" in text, text
