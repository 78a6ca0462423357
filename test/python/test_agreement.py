"""Ranks that step with other hyperparameters or step counts: an error on all of them that names rank and
value.
"""

import re

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard

import stepc
from stepc.torch import Optimizer

SPEC = """
optimizer Muon(lr, momentum = 0.95) {
  state m : f32
  m = momentum * m + grad
  param = param - lr * orthogonalize(m, steps = 2)
}
optimizer AdamW(lr, beta1 = 0.9) {
  state m : f32
  m = lerp(m, grad, 1 - beta1)
  param = param - lr * m / (1 - beta1 ^ step)
}
route {
  Muon(lr = 0.02) for matrix
  AdamW(lr = 0.001) for rest
}
"""


def parameter(mesh, placements, shape, skip=False):
    p = nn.Parameter(distribute_tensor(torch.ones(shape), mesh, placements, src_data_rank=None))
    p.grad = None if skip else torch.ones_like(p)
    return p


def model(rank, size, groups=None):
    """Two matrices, sharded, and two vectors, one of them replicated; in groups of each rank's own."""
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))
    named = {
        "first": parameter(mesh, [Shard(0)], (8, 4)),
        "second": parameter(mesh, [Shard(0)], (8, 4)),
        "bias": parameter(mesh, [Replicate()], (8,)),
        "scale": parameter(mesh, [Shard(0)], (8,)),
        "tiny": parameter(mesh, [Shard(0)], (size - 1,)),  # none on the last rank
    }
    return named, mesh


def attempt(function):
    try:
        function()
    except stepc.StepcError as error:
        return type(error).__name__, str(error)
    return None, ""


def _parts(rank, size, before, change):
    named, _ = model(rank, size)
    optimizer = Optimizer(list(named.items()), SPEC, timeout=30.0)
    for _ in range(before):
        optimizer.step()
    optimizer._prepared()
    if rank == size - 1:
        change(optimizer, named)
    return attempt(optimizer.step)


def set_lr(optimizer, named):
    optimizer.param_groups[0]["lr"] = 0.03


def set_beta(optimizer, named):
    optimizer.param_groups[1]["beta1"] = 0.8


def set_step(optimizer, named):
    optimizer.state[named["bias"]]["step"].fill_(41)


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize(
    "change, texts",
    [
        (set_lr, ["lr = ", "0.03", "'first' and 1 more", "0.02"]),
        (set_beta, ["beta1 = ", "0.8", "'bias' and ", "0.9"]),
        (set_step, ["41", "steps taken of 'bias'"]),
    ],
)
def test_ranks_part(before, change, texts):
    for name, text in run_ranks(_parts, 2, 2, before, change):
        assert name in ("AgreementError", "TransportError"), text
        for part in ["expected equal hyperparameters and step counts", "rank 1", *texts]:
            assert part in text


def clear_states(optimizer, named):
    optimizer.state.clear()


def test_one_rank_that_clears_its_states():
    for name, text in run_ranks(_parts, 2, 2, 2, clear_states):
        assert name in ("AgreementError", "TransportError") and "steps taken of" in text, text


def _together(rank, size):
    """Groups that ranks split in their own ways, a schedule, a gradient that comes and goes."""
    named, _ = model(rank, size)
    spec = SPEC.replace("AdamW(lr = 0.001)", "AdamW(lr = 0.001, missing_grad = skip)")
    if rank % 2:
        groups = [{"params": [item], "lr": 0.1} for item in named.items()]
    else:
        groups = [{"params": list(named.items())[::-1], "lr": 0.1}]
    optimizer = Optimizer(groups, spec, timeout=30.0)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    kept = named["bias"].grad
    for step in range(4):
        # One rank alone has none: all skip it.
        named["bias"].grad = None if step == 1 and rank == 0 else kept
        optimizer.step()
        schedule.step()
    return [int(optimizer.state[p]["step"]) for p in named.values()]


def test_no_false_alarm():
    for counts in run_ranks(_together, 3, 3):
        assert counts == [4, 4, 3, 4, 4]


def _stages(rank):
    """Two pipeline stages of two ranks, each with a rate of its own."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))["dp"]
    stage = rank // 2
    named = {
        f"stage{stage}.weight": parameter(mesh, [Shard(0)], (8, 4)),
        f"stage{stage}.bias": parameter(mesh, [Replicate()], (8,)),
    }
    optimizer = Optimizer(list(named.items()), SPEC, lr=0.01 * (1 + stage), timeout=30.0)
    for _ in range(2):
        optimizer.step()
    dist.barrier()
    # Now those of one stage part: the other goes on.
    if rank == 3:
        optimizer.param_groups[0]["lr"] = 0.5
    return attempt(optimizer.step)


def test_stages_have_rates_of_their_own():
    results = run_ranks(_stages, 4)
    assert [name for name, _ in results[:2]] == [None, None], results
    for name, text in results[2:]:
        assert name in ("AgreementError", "TransportError"), text
        assert "lr = " in text and "0.5" in text and "0.02" in text


def _beside(rank):
    """A matrix on each row of a mesh, whose messages carry what differs: the rate of a vector on the whole mesh."""
    whole = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    named = {
        f"w{rank // 2}": parameter(whole["b"], [Shard(0)], (8, 4)),
        "bias": parameter(whole, [Replicate(), Replicate()], (8,)),
    }
    optimizer = Optimizer(list(named.items()), SPEC, timeout=30.0)
    for _ in range(2):
        optimizer.step()
    dist.barrier()
    if rank == 3:
        next(group for group in optimizer.param_groups if group["route"] == "AdamW")["lr"] = 0.5
    return attempt(optimizer.step)


def test_messages_speak_of_all_meshes_that_both_ends_are_on():
    results = run_ranks(_beside, 4)
    # Ranks 0 and 1 exchange nothing with the other two.
    assert [name for name, _ in results[:2]] == [None, None], results
    for name, text in results[2:]:
        assert name in ("AgreementError", "TransportError"), text
        assert "lr = " in text and "'bias'" in text and "0.5" in text and "0.001" in text


def _resumed(rank, size):
    """A checkpoint whose step count one rank did not load."""
    named, _ = model(rank, size)
    optimizer = Optimizer(list(named.items()), SPEC, timeout=30.0)
    for _ in range(3):
        optimizer.step()
    state = optimizer.state_dict()
    again = Optimizer(list(named.items()), SPEC, timeout=30.0)
    if rank == 0:
        again._prepared()
    else:
        again.load_state_dict(state)
    return attempt(again.step)


def test_a_rank_that_did_not_resume_is_named():
    for name, text in run_ranks(_resumed, 3, 3):
        assert name == "AgreementError", text
        others = "0 steps taken of 'first' and 3 more on rank 0, and 3 on rank [12]|3 steps taken of 'first' and 3 more on rank [12], and 0 on rank 0"
        assert re.search(others, text), text
