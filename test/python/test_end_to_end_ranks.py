"""Optimizers compiled by the real compiler, on several ranks: layouts, checkpoints, a rank that stops."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from conftest import ROOT
from ranks import run_ranks, run_ranks_until
from sharded_net import BOTH, MUON, Net, assert_same, reference, set_gradients, shard_like, shards, spec
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Shard

import stepc
from stepc.torch import Optimizer


def _layouts(rank, dtype, master):
    """The same steps under FSDP2, HSDP and FSDP2 + TP: the bits of one rank."""
    alone = [dist.new_group([one]) for one in range(4)][rank]
    expected = reference(dtype, 3, master, process_group=alone)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for layout in ("fsdp", "hsdp", "tp"):
        model = Net(dtype)
        if layout == "tp":
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(model, mesh["tp"], plan)
        fully_shard(model, mesh={"fsdp": None, "hsdp": mesh, "tp": mesh["dp"]}[layout])
        optimizer = Optimizer(model.named_parameters(), spec(BOTH, master), timeout=60.0)
        for step in range(3):
            set_gradients(model, step)
            optimizer.step()
        if layout != "tp":
            assert_same(shards(model, optimizer), expected)
        else:
            # full_tensor() of strided shards is checked through local pieces instead.
            for name, p in model.named_parameters():
                whole = expected[name, "param"]
                assert torch.equal(p.to_local(), shard_like(whole, p).to_local()), name
        executed, planned = optimizer.counters()
        assert executed == planned
    return True


@pytest.mark.parametrize(("dtype", "master"), [(torch.float32, False), (torch.bfloat16, True)])
def test_layouts_give_the_bits_of_one_rank(real, dtype, master):
    assert all(run_ranks(_layouts, 4, dtype, master))


def _experts_and_stages(rank):
    """Experts on a mesh of their own beside dense weights; then two pipeline stages, each a world."""
    dense = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
    sparse = init_device_mesh("cpu", (2, 2), mesh_dim_names=("edp", "ep"))
    generator = torch.Generator().manual_seed(1)
    whole = {"up": torch.randn(6, 5, generator=generator),
             "experts": torch.randn(4, 6, 3, generator=generator)}  # fmt: skip

    def train(model, **options):
        optimizer = Optimizer(model.named_parameters(), spec(MUON) + "route { Muon(lr = 0.1) for matrix }",
                              batch=["experts*"], timeout=60.0, **options)  # fmt: skip
        for step in range(2):
            set_gradients(model, step)
            optimizer.step()
        return optimizer

    places = {"up": (dense, [Shard(0)]), "experts": (sparse, [Shard(1), Shard(0)])}
    model = nn.ParameterDict({
        name: nn.Parameter(distribute_tensor(value, *places[name], src_data_rank=None))
        for name, value in whole.items()
    })  # fmt: skip
    train(model)
    single = nn.ParameterDict({name: nn.Parameter(value.clone()) for name, value in whole.items()})
    groups = [dist.new_group([one]) for one in range(4)]
    train(single, process_group=groups[rank])
    for name, p in model.items():
        assert torch.equal(p.full_tensor(), single[name]), name
    # Stage 0 has "w" of one shape, stage 1 of another; worlds are {0, 1} and {2, 3}.
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    value = torch.randn((4, 3) if stage == 0 else (3, 7), generator=torch.Generator().manual_seed(2))
    model = nn.ParameterDict({"w": nn.Parameter(
        distribute_tensor(value, mesh["dp"], [Shard(0)], src_data_rank=None))})  # fmt: skip
    optimizer = train(model)
    single = nn.ParameterDict({"w": nn.Parameter(value.clone())})
    train(single, process_group=groups[rank])
    assert torch.equal(model["w"].full_tensor(), single["w"])
    return optimizer.library.world_ranks


def test_experts_and_pipeline_stages(real):
    assert run_ranks(_experts_and_stages, 4) == [(0, 1), (0, 1), (2, 3), (2, 3)]


def _save(rank, folder):
    model = fully_shard(Net(torch.bfloat16))
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, True), timeout=60.0)
    for step in range(10):
        set_gradients(model, step)
        optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.0125
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.save(saved, checkpoint_id=folder)
    for step in range(10, 14):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def _load(rank, folder):
    model = fully_shard(Net(torch.bfloat16))
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, True), timeout=60.0)
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.load(saved, checkpoint_id=folder)
    model.load_state_dict(saved["model"])
    set_optimizer_state_dict(model, optimizer, saved["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.0125
    for step in range(10, 14):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def test_checkpoints_move_between_world_sizes(real, tmp_path):
    straight = run_ranks(_save, 4, str(tmp_path / "c"))[0]
    for size in (2, 4):
        assert_same(run_ranks(_load, size, str(tmp_path / "c"))[0], straight)


def _stopped(rank):
    model = fully_shard(Net())
    optimizer = Optimizer(model.named_parameters(), spec(BOTH), timeout=4.0)
    set_gradients(model, 0)
    optimizer.step()
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        optimizer.step()
    except stepc.StepcError as error:
        return type(error).__name__, str(error), error.half_stepped, time.monotonic() - start
    return None


def test_a_stopped_rank_hangs_nobody(real):
    codes, results = run_ranks_until(_stopped, 4, (0, 2, 3), 90)
    assert codes == [0, 0, 0]
    assert any(result[0] == "StepcTimeout" and "rank 1" in result[1] for result in results)
    for name, text, half, seconds in results:
        assert name in ("StepcTimeout", "TransportError"), text
        assert half and seconds < 30


@pytest.mark.tier("all")
def test_the_example_loop_goes_on_from_its_checkpoints(real, tmp_path):
    """What docs/torch.md shows: seven steps at once, and in two runs, give the same losses."""

    def run(folder, steps):
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", ROOT / "examples" / "train_loop.py"]
        done = subprocess.run([sys.executable, *command, tmp_path / folder, str(steps)], capture_output=True, text=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=300, check=False)  # fmt: skip
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stdout + done.stderr
        return done.stdout.splitlines()

    whole, first, second = run("whole", 7), run("parts", 4), run("parts", 7)
    assert [line.split(":")[0] for line in whole] == [f"step {step}" for step in range(1, 8)]
    assert first == whole[:4] and second == whole[3:]  # the last checkpoint is the third step's
    assert float(whole[-1].split()[-1]) < float(whole[0].split()[-1])
