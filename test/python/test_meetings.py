"""Who waits for whom where ranks name one another one-sidedly, and what they are told."""

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from test_worlds import SGD, TIMEOUT, attempt, make, parameter, tell, wait_for
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.placement_types import Replicate, Shard

from stepc.torch import Optimizer, export_manifest, groups
from stepc.torch.describe import Declarations, connected

pytestmark = pytest.mark.tier("land")


def plain():
    w = nn.Parameter(torch.ones(3, 2))
    w.grad = torch.ones(3, 2)
    return w


def _undeclared(rank):
    """The second stage has a plain tensor that nobody declared; the first may step before and after."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    named = [(f"s{stage}.w", plain() if stage else parameter(mesh["dp"], [Shard(0)]))]
    optimizer = make(named)
    # The first stage comes when the second is done: nobody may have waited for it.
    if stage == 0:
        wait_for("done 2")
        wait_for("done 3")
        return attempt(optimizer.step)[:2]
    found = attempt(optimizer.step)[:2], attempt(lambda: export_manifest(named))[:2]
    tell(f"done {rank}")
    return found


def test_a_plain_tensor_of_one_stage_waits_for_nobody(fake):
    *first, two, three = run_ranks(_undeclared, 4)
    assert first == [(None, "")] * 2
    for name, text in (*two, *three):
        assert name == "PlacementError"
        assert "parameter 's1.w': expected a DTensor in a world of 4 ranks, found a plain tensor" in text


def _broken(rank):
    """Groups with too few names, before anything is bound: the ranks of the tensors are told."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    optimizer = make([("w", parameter(mesh, [Shard(0)]))])
    if rank == 1:
        optimizer.param_groups[0]["param_names"] = []
    return attempt(optimizer.step)[:2]


def test_broken_groups_are_told_to_the_ranks_of_their_tensors(fake):
    zero, one = run_ranks(_broken, 2)
    text = "a parameter group has 1 parameter and 0 names"
    assert one[0] == "ValueError" and text in one[1]
    assert zero[0] == "StepcError" and f"rank 1 could not export its manifest: ValueError: {text}" in zero[1]


def _one_sided(rank, kind):
    """The second stage needs the first, which does not know it."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    weight = parameter(mesh["dp"], [Shard(0)])
    named = [(f"s{stage}.w", weight)]
    if kind == "replicated":
        if stage == 1:
            named.append(("s1.norm", plain()))
        optimizer = make(named, replicated=["s1.n*"], timeout=6.0)
    else:
        shared = parameter(DeviceMesh("cpu", torch.arange(4)), [Replicate()])
        shared.requires_grad_(False)
        optimizer = make([*named, ("shared", shared)], timeout=6.0)
        optimizer.step()
        dist.barrier()
        named[0][1].requires_grad_(stage == 0)
        weight.grad = weight.grad if stage == 0 else None
    found = attempt(optimizer.step)[:2]
    dist.barrier()
    if stage == 1 and kind == "frozen":
        optimizer.recover()
    if kind == "frozen":
        optimizer.prepare()  # what the text says that helps
        optimizer.step()
    return found


@pytest.mark.parametrize(("kind", "note"), [
    ("replicated", "parameter 's1.norm' is declared in replicated=, so that every rank of the group has "
                   "to have it"),
    ("frozen", "ranks that share the frozen parameter 'shared' prepare together: call prepare() on the "
               "others, too"),
])  # fmt: skip
def test_the_timeout_says_why_another_stage_was_needed(fake, kind, note):
    *first, two, three = run_ranks(_one_sided, 4, kind)
    assert first == [(None, "")] * 2
    for name, text in (two, three):
        assert name == "StepcTimeout" and "ranks 0, 1 did not come" in text and note in text, text


def test_any_name_of_a_tied_tensor_connects_and_counts(fake, monkeypatch):
    tied, declarations = plain(), Declarations(replicated=["b"])
    for named in ([("a", tied), ("b", tied)], [("module.b", tied), ("a", tied)]):
        assert connected(named, (0, 1, 2), declarations).ranks == {0, 1, 2}
    for requires_grad in (True, False):
        experts = nn.Parameter(torch.zeros(2, 3, 4), requires_grad=requires_grad)
        named = [("a", experts), ("b", experts), ("c", plain())]
        listed = export_manifest(named, batch=["b"])["parameters"]
        assert {one["name"]: one.get("batch_axes") for one in listed} == {"a": 1, "c": None}
    # Routing sees the same.
    seen = []
    experts.requires_grad_(True)
    original = groups.check_silently

    def check(spec, manifest, *rest):
        seen.append({one["name"]: one.get("batch_axes") for one in manifest["parameters"]})
        return original(spec, manifest, *rest)

    monkeypatch.setattr(groups, "check_silently", check)
    Optimizer(named, "rule {}", Plain={"lr": 1.0}, batch=["b"])
    assert seen == [{"a": 1, "c": None}]


def _tied(rank):
    """Beside a stage's own parameter, whose mesh names fewer ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    tied, own = plain(), parameter(mesh["dp"], [Shard(0)])
    named = [("a", tied), (f"s{mesh.get_local_rank('pp')}.w", own), ("b", tied)]
    optimizer = Optimizer(named, SGD, replicated=["b"], timeout=TIMEOUT)
    optimizer.step()
    return optimizer.library.world_ranks


def test_tied_tensors_are_replicated_by_any_name(real):
    assert run_ranks(_tied, 4) == [(0, 1, 2, 3)] * 4
