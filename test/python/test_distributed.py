"""The optimizer on several gloo ranks, over the fake library: sharding, errors, stopped ranks."""

import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks, run_ranks_until
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

import stepc
from stepc.torch import Optimizer, export_manifest

SPEC = "master {}"


class Net(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second = nn.Linear(6, 7), nn.Linear(7, 3, bias=False)
        self.to(dtype)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def set_gradients(model, seed):
    """The same global gradients whatever the placements."""
    for name, p in sorted(model.named_parameters()):
        torch.manual_seed(seed * 100 + len(name))
        full = torch.randn(p.shape).to(p.dtype)
        if isinstance(p, DTensor):
            full = distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)
        p.grad = full


def whole(model):
    return {name: p.full_tensor().detach() if isinstance(p, DTensor) else p.detach().clone()
            for name, p in model.named_parameters()}  # fmt: skip


def make(model, **options):
    options = {"Plain": {"lr": 0.5}, "timeout": 20.0} | options
    return Optimizer(model.named_parameters(), SPEC, **options)


def unsharded(dtype, steps):
    model = Net(dtype)
    optimizer = make(model)
    for step in range(steps):
        set_gradients(model, step)
        optimizer.step()
    return whole(model)


def _train(rank, size, folder, dtype):
    model = Net(dtype)
    optimizer = make(model, Momentum={"lr": 0.3})  # made first, as accelerate does
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b")) if size > 2 else None
    fully_shard(model, mesh=mesh)
    for group, names in ((g, g["param_names"]) for g in optimizer.param_groups):
        group["params"] = [model.get_parameter(name) for name in names]
        group["lr"] = 0.1 if group["route"] == "Momentum" else 0.5
    for step in range(3):
        set_gradients(model, step)
        optimizer.step()
    for parameter in model.parameters():
        for name, state in optimizer.state[parameter].items():
            if name != "step":
                assert isinstance(state, DTensor) and state.placements == parameter.placements
                assert state.dtype == torch.float32 and state.shape == parameter.shape
    optimizer.param_groups[0]["lr"] = 0.0625
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.save(saved, checkpoint_id=folder)
    for step in range(3, 5):
        set_gradients(model, step)
        optimizer.step()
    executed, planned = optimizer.counters()
    assert executed == planned and executed["messages_sent"] == size - 1
    return whole(model)


def _resume(rank, size, folder, dtype):
    model = Net(dtype)
    fully_shard(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    optimizer = make(model)
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.load(saved, checkpoint_id=folder)
    model.load_state_dict(saved["model"])
    set_optimizer_state_dict(model, optimizer, saved["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.0625
    for step in range(3, 5):
        set_gradients(model, step)
        optimizer.step()
    return whole(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fsdp2_and_distributed_checkpoint_across_world_sizes(fake, tmp_path, dtype):
    trained = run_ranks(_train, 4, 4, str(tmp_path / "c"), dtype)
    assert all(torch.equal(trained[0][k], one[k]) for one in trained for k in one)
    model = Net(dtype)
    optimizer = make(model)
    for step in range(5):
        optimizer.param_groups[0]["lr"] = 0.1 if step < 3 else 0.0625
        set_gradients(model, step)
        optimizer.step()
    expected = whole(model)
    assert all(torch.equal(trained[0][name], expected[name]) for name in expected)
    # Another number of ranks and other placements, resumed from the same checkpoint.
    for size in (2,) if dtype == torch.float32 else (4,):
        resumed = run_ranks(_resume, size, size, str(tmp_path / "c"), dtype)
        assert all(torch.equal(resumed[0][name], expected[name]) for name in expected)


def _resharded(rank):
    model = Net()
    optimizer = make(model, replicated=["*"])
    for step in range(4):
        if step == 2:
            fully_shard(model)
            for group in optimizer.param_groups:
                group["params"] = [model.get_parameter(name) for name in group["param_names"]]
        set_gradients(model, step)
        optimizer.step()
    assert isinstance(optimizer.state[model.first.weight]["m"], DTensor)
    return whole(model)


def test_resharding_keeps_states(fake):
    expected = unsharded(torch.float32, 4)
    for found in run_ranks(_resharded, 2):
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def _errors(rank, library):
    """Errors of one rank reach the other, and name what is wrong."""
    found = {}
    model = fully_shard(Net())
    try:
        # Only the lowest rank compiles; the construction's check passes on both.
        os.environ["STEPC_FAKE_FAIL"] = "1"
        set_gradients(model, 0)
        Optimizer(model.named_parameters(), "fails {}", Plain={"lr": 1.0}).step()
    except stepc.CompileError as error:
        found["compile"] = str(error)
    del os.environ["STEPC_FAKE_FAIL"]
    try:
        Optimizer(model.named_parameters(), library=library, Plain={"lr": 1.0}).step()
    except stepc.PlanError as error:
        found["world"] = str(error)
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    if rank == 1:
        model.first.weight.grad = None
    start = time.monotonic()
    try:
        optimizer.step()
    except stepc.StepcError as error:
        found["gradient"] = (type(error).__name__, str(error), error.half_stepped)
    found["seconds"] = time.monotonic() - start
    try:
        optimizer.step()
    except stepc.PoisonedError as error:
        found["poisoned"] = str(error)
    saved = optimizer.half_stepped()
    optimizer.recover()
    set_gradients(model, 0)
    optimizer.step()
    return found | {"half": saved, "steps": optimizer.state[model.first.weight]["step"].item()}


def test_errors_reach_all_ranks(fake, tmp_path):
    library = stepc.compile(SPEC, export_manifest(Net().named_parameters()), output=tmp_path)
    zero, one = run_ranks(_errors, 2, os.fspath(library))
    for found in (zero, one):
        assert "the fake was told to fail" in found["compile"]
        assert "compiled for the ranks [0], this world has [0, 1]" in found["world"]
        assert found["seconds"] < 10 and "an earlier step failed" in found["poisoned"]
        assert found["steps"] == 2
    assert one["gradient"][:2] == ("GradientError",
                                   "rank 1: parameter 'first.weight': its gradient is absent")
    assert zero["gradient"][0] == "TransportError"
    assert "rank 1 gave up: rank 1: parameter 'first.weight'" in zero["gradient"][1]
    assert sorted(zero["half"]) == ["first.bias", "first.weight", "second.weight"]
    assert "3 parameters or their states may be half stepped" in zero["gradient"][1]


def _stopped(rank):
    model = fully_shard(Net())
    optimizer = make(model, timeout=3.0)
    set_gradients(model, 0)
    optimizer.step()
    dist.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        optimizer.step()
    except stepc.StepcError as error:
        return (type(error).__name__, str(error), time.monotonic() - start, error.half_stepped)
    return None


def test_a_stopped_rank_hangs_nobody(fake):
    codes, results = run_ranks_until(_stopped, 4, (0, 1, 3), 60)
    assert codes == [0, 0, 0], codes
    assert any(result[0] == "StepcTimeout" and "rank 2" in result[1] for result in results)
    for name, text, seconds, half in results:
        assert name in ("StepcTimeout", "TransportError"), text
        assert seconds < 20 and len(half) == 3


def _lost(rank):
    model = fully_shard(Net())
    optimizer = make(model, timeout=30.0)
    set_gradients(model, 0)
    optimizer.step()
    dist.barrier()
    if rank == 1:
        os._exit(0)
    start = time.monotonic()
    try:
        optimizer.step()
    except stepc.TransportError as error:
        return str(error), time.monotonic() - start
    return None


def test_a_lost_rank_is_noticed_at_once(fake):
    codes, results = run_ranks_until(_lost, 2, (0,), 40)
    assert codes == [0]
    assert "rank 1 failed" in results[0][0] and results[0][1] < 10
