"""Asynchronous checkpoints save what states were when they were staged, wherever they lie: ranges, stripes,
rows of any number, what one rank owns, shards in plain tensors."""

import pytest
import torch
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Shard, _StridedShard

from stepc.torch import Optimizer, Placed, parameters_to_save, register_placement

ADDING = """
optimizer Plain(lr) {
  state m : f32
  m = m + grad
  param = param - lr * m
}
route { Plain(lr = 1) for rest }
"""


class Interleaved(_StridedShard):
    pass


register_placement(Interleaved, lambda one: f"IS({one.dim}, {one.split_factor})")
WHOLE = {"vector": (9,), "range": (4, 3), "first": (4, 3), "owned": (4, 3), "shard": (4, 3), "rows": (4, 3), "none": (4, 3),
         "stripes": (8, 3)}  # fmt: skip
PLAIN = {"vector": "flat(0, 5, 9)", "range": "flat(0, 1, 12)", "first": "flat(0, 0, 12)", "owned": "owned(1)", "shard": "S(0)"}
ROWS = {"rows": (3, 1), "none": (0, 4)}


def whole(name):
    return torch.arange(1.0, 1 + torch.Size(WHOLE[name]).numel()).view(WHOLE[name]) + 100 * list(WHOLE).index(
        name
    )


def held(name, rank):
    """The elements of a rank, by the definitions."""
    value = whole(name)
    if name in ROWS:
        return value.split(ROWS[name])[rank]
    if name == "stripes":
        return torch.cat([stripe.chunk(2)[rank] for stripe in value.chunk(2)])
    if name == "owned":
        return value if rank == 1 else value[:0]
    if name == "shard":
        return value.chunk(2)[rank]
    cuts = [int(n) for n in PLAIN[name][5:-1].split(",")]
    return value.view(-1)[cuts[rank] : cuts[rank + 1]]


def made(rank):
    """An optimizer whose states are `whole`, after one step."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    model, placed = {}, {}
    for name, shape in WHOLE.items():
        place = Interleaved(0, split_factor=2) if name == "stripes" else Shard(0)
        both = [torch.zeros_like(held(name, rank)), held(name, rank).clone()]
        if name in PLAIN:
            placed[name] = Placed(mesh, [PLAIN[name]], shape)
        else:
            both = [DTensor.from_local(one, mesh, [place], run_check=False, shape=torch.Size(shape), stride=(3, 1)) for one in both]
        model[name] = nn.Parameter(both[0])
        model[name].grad = both[1]
    optimizer = Optimizer(model.items(), ADDING, placements=placed, timeout=60.0)
    optimizer.step()
    return model, optimizer


def _saved(rank, folder):
    model, optimizer = made(rank)
    for number, more in enumerate(
        ({}, {"async_stager": DefaultStager(StagingOptions(False, True, False, False))})
    ):
        saved = {
            "m": {name: optimizer.state[p]["m"] for name, p in model.items()},
            "param": parameters_to_save(optimizer),
        }
        future = dcp.async_save(saved, checkpoint_id=f"{folder}/{number}", **more)
        # staged: what is written now is not saved
        for one in [
            *saved["m"].values(),
            *saved["param"].values(),
        ]:
            (one._local_tensor if isinstance(one, DTensor) else one).fill_(-1)
        future.result()
        found = {key: {name: torch.zeros(shape) for name, shape in WHOLE.items()} for key in saved}
        dcp.load(found, checkpoint_id=f"{folder}/{number}")
        for name in WHOLE:
            assert torch.equal(found["m"][name], whole(name)), name
            assert torch.equal(found["param"][name], -whole(name)), name
        # And back, into the memory that is bound.
        dcp.load(saved, checkpoint_id=f"{folder}/{number}")
        for name, p in model.items():
            m = optimizer.state[p]["m"]
            assert torch.equal(m._local_tensor if isinstance(m, DTensor) else m, held(name, rank)), name
    # torch's older stager, which a storage writer is, allocates by size(): no rank may save what that gives.
    writer = dcp.FileSystemWriter(f"{folder}/blocking")
    for name in ("vector", "range", "rows", "stripes"):
        with pytest.raises(
            ValueError, match=r"expected a tensor of the piece's shape \[.*pass async_stager=DefaultStager"
        ):
            writer.stage({"m": saved["m"][name]})
    assert not saved["m"]["first"].numel() or rank == 1
    # What one rank has as a whole is saved by that one.
    dcp.async_save({"owned": saved["m"]["owned"]}, storage_writer=writer).result()
    found = {"owned": torch.zeros(WHOLE["owned"])}
    dcp.load(found, checkpoint_id=f"{folder}/blocking")
    assert torch.equal(found["owned"], whole("owned"))
    return True


def test_asynchronous_checkpoints_have_what_was_staged(real, tmp_path):
    assert all(run_ranks(_saved, 2, str(tmp_path)))
