"""Jobs with ``model_group=``: stages that are sharded in several ways, their checkpoints, and a library that is ready."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from test_model_group import SPEC, STAGES, TIMEOUT, Part, gradients, one_rank, stepped, whole
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import stepc
from stepc.torch import Optimizer, export_manifest

STEPS, MORE = range(2), range(2, 5)


def placed(names, mesh, placements):
    """The parameters of some names, placed alike."""
    model = Part(names)
    for name, p in list(model.named_parameters()):
        *path, last = name.split(".")
        value = distribute_tensor(p.detach(), mesh, placements[: p.ndim] + [Replicate()] * (mesh.ndim - p.ndim), src_data_rank=None)
        model.get_submodule(".".join(path)).register_parameter(last, nn.Parameter(value))
    return model


def over_stages(model, **options):
    return Optimizer(model.named_parameters(), SPEC, model_group=dist.group.WORLD, timeout=TIMEOUT, **options)


def _two_axes(rank):
    """Stages of four ranks: replicas of shards, and shards of both axes."""
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
    stage = mesh.get_local_rank("pp")
    replicas = fully_shard(Part(STAGES[stage]), mesh=mesh["dp", "tp"])
    both = placed(STAGES[stage], mesh["dp", "tp"], [Shard(0), Shard(1)])
    return [stepped(model, over_stages(model)) for model in (replicas, both)]


def test_stages_are_sharded_over_two_axes(real):
    expected, norms, _ = one_rank()
    for rank, results in enumerate(run_ranks(_two_axes, 8)):
        for found, their_norms in results:
            assert set(found) == set(STAGES[rank // 4]) and their_norms == norms
            assert all(torch.equal(value, expected[name]) for name, value in found.items()), rank


def train(model, optimizer, steps):
    for step in steps:
        gradients(model, step)
        optimizer.step()


def staged(rank, size):
    """The model and optimizer of a rank, of which the first half is the first stage; one rank has all."""
    if size == 1:
        model = Part(STAGES[0] + STAGES[1])
        return model, Optimizer(model.named_parameters(), SPEC, timeout=TIMEOUT)
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("pp", "dp"))
    model = fully_shard(Part(STAGES[mesh.get_local_rank("pp")]), mesh=mesh["dp"])
    return model, over_stages(model)


def _save(rank, size, folder):
    model, optimizer = staged(rank, size)
    train(model, optimizer, STEPS)
    weights, states = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": states}, checkpoint_id=folder)


def _load(rank, size, folder):
    model, optimizer = staged(rank, size)
    weights, states = get_state_dict(model, optimizer)
    found = {"model": weights, "optimizer": states}
    dcp.load(found, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    train(model, optimizer, MORE)
    return whole(model), optimizer.state_dict()["model"]


@pytest.mark.parametrize(("before", "after"), [(4, 1), (1, 4), (4, 6)])
def test_checkpoints_of_stages_go_on_with_the_same_bits(real, tmp_path, before, after):
    run_ranks(_save, before, before, tmp_path)
    model, optimizer = staged(0, 1)
    train(model, optimizer, [*STEPS, *MORE])
    expected, count = whole(model), optimizer.state_dict()["model"]
    names = set()
    for rank, (found, its_count) in enumerate(run_ranks(_load, after, after, tmp_path)):
        assert its_count == count, rank
        assert all(torch.equal(value, expected[name]) for name, value in found.items()), rank
        names |= set(found)
    assert names == set(expected)


def _ready(rank, folder):
    """A library that rank 0 compiles from the manifest of all stages, and that all open."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    model = fully_shard(Part(STAGES[mesh.get_local_rank("pp")]), mesh=mesh["dp"])
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    manifest = export_manifest(model.named_parameters(), model_group=dist.group.WORLD, timeout=TIMEOUT)
    if rank == 0:
        stepc.compile(SPEC, manifest, output=folder)
    dist.barrier()
    path = next(folder.glob("*.so"))
    optimizer = Optimizer(model.named_parameters(), library=path, model_group=dist.group.WORLD, timeout=TIMEOUT)
    return stepped(model, optimizer)


def test_a_ready_library_steps_all_stages(real, tmp_path):
    expected, norms, _ = one_rank()
    for rank, (found, their_norms) in enumerate(run_ranks(_ready, 4, tmp_path)):
        assert their_norms == norms, rank
        assert all(torch.equal(value, expected[name]) for name, value in found.items()), rank
