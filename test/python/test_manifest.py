"""Manifests of live models: placements, meshes, names, and how ranks' views are merged."""

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard

from stepc.errors import StepcError
from stepc.torch import Optimizer, Placed, PlacementError, export_manifest, register_placement
from stepc.torch.entries import Entry, Mesh, Root
from stepc.torch.manifest import build, world_manifest
from stepc.torch.names import canonical_name, matches
from stepc.torch.placements import placement_text, placements_like, split_placements


class Odd(Shard):
    """A class that is a Shard by inheritance and something else by meaning."""


def test_placements_are_matched_by_exact_type():
    assert placement_text(Replicate(), "x") == "R"
    assert placement_text(Shard(1), "x") == "S(1)"
    assert placement_text(_StridedShard(0, split_factor=2), "x") == "_S(0, 2)"
    with pytest.raises(PlacementError, match="'w': expected a replicated or sharded .*Partial"):
        placement_text(Partial(), "parameter 'w'")
    with pytest.raises(PlacementError, match="of class test_manifest.Odd"):
        placement_text(Odd(0), "parameter 'w'")
    register_placement(Odd, lambda placement: f"IS({placement.dim}, 2)")
    assert placement_text(Odd(0), "x") == "IS(0, 2)"
    register_placement(Odd, lambda placement: "stripes")
    with pytest.raises(PlacementError, match="'w': expected R, .*, found 'stripes' from the function of Odd"):
        placement_text(Odd(0), "parameter 'w'")
    with pytest.raises(TypeError, match="that has no meaning yet, found Partial"):
        register_placement(Partial, lambda placement: "R")
    # Of gradients sums are known.
    assert placement_text(Partial("avg"), "x", gradient=True) == "P(avg)"
    with pytest.raises(PlacementError, match=r"'w': expected Partial\(sum\) or .*, found Partial\(max\)"):
        placement_text(Partial("max"), "parameter 'w'", gradient=True)
    with pytest.raises(PlacementError, match=r"'w': expected R, S\(d\), .*, found 'P\(sum\)'"):
        placement_text("P(sum)", "parameter 'w'")


def test_placements_of_the_library_in_words_of_dtensor():
    texts = split_placements("[S(0), _S(1,4), flat(0, 3,8), P( sum ), R]")
    assert texts == ["S(0)", "_S(1, 4)", "flat(0, 3, 8)", "P(sum)", "R"]
    like = [("R", Replicate())] * 5
    assert placements_like(texts, like) is None  # no word for a range
    like[2] = "flat(0, 3, 8)", Shard(0)  # but a tensor that lies so has one
    found = [Shard(0), _StridedShard(1, split_factor=4), Shard(0), Partial("sum"), Replicate()]
    assert placements_like(texts, like) == found
    with pytest.raises(PlacementError, match="found 'Q'"):
        split_placements("[Q]")


def test_names():
    assert canonical_name("module._orig_mod.h.0._checkpoint_wrapped_module.w") == "h.0.w"
    assert canonical_name("h.module") == "h.module"
    assert matches("h.*.w", ["_orig_mod.h.0.w"]) and matches("*orig*", ["_orig_mod.w"])
    assert not matches("w", ["h.w"])


def test_plain_model_with_tied_and_frozen_parameters():
    model = nn.ModuleDict({"embed": nn.Embedding(8, 4), "head": nn.Linear(4, 8, bias=False),
                           "norm": nn.LayerNorm(4).bfloat16()})  # fmt: skip
    model["head"].weight = model["embed"].weight
    model["norm"].bias.requires_grad_(False)
    model.register_parameter("experts", nn.Parameter(torch.zeros(3, 4, 5)))
    manifest = export_manifest(model.named_parameters(remove_duplicate=False), batch=["experts"])
    assert manifest == {
        "version": 1,
        "meshes": [{"name": "world", "axes": [{"name": "world", "size": 1}], "ranks": [0]}],
        "parameters": [
            {"name": "experts", "shape": [3, 4, 5], "dtype": "f32", "grad_dtype": "f32",
             "mesh": "world", "placements": ["R"], "batch_axes": 1},
            {"name": "embed.weight", "aliases": ["head.weight"], "shape": [8, 4], "dtype": "f32",
             "grad_dtype": "f32", "mesh": "world", "placements": ["R"]},
            {"name": "norm.weight", "shape": [4], "dtype": "bf16", "grad_dtype": "bf16",
             "mesh": "world", "placements": ["R"]},
            {"name": "norm.bias", "shape": [4], "dtype": "bf16", "grad_dtype": "bf16",
             "mesh": "world", "placements": ["R"], "requires_grad": False},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (torch.zeros(2, device="meta"), ValueError, "'w': expected a tensor with memory"),
        (torch.zeros(2, dtype=torch.float64), TypeError, "'w': expected torch.float32"),
        (torch.zeros(0, 3), ValueError, "'w': expected elements"),
    ],
)
def test_bad_tensors_are_named(tensor, error, message):
    with pytest.raises(error, match=message):
        export_manifest([("w", nn.Parameter(tensor))])


def test_batch_needs_matrices():
    with pytest.raises(ValueError, match="'w': batch= matches it with 0 batch axes"):
        export_manifest([("w", nn.Parameter(torch.zeros(2, 3)))], batch=["*"])


def test_patterns_that_match_nothing_are_warned_of():
    named = [("w", nn.Parameter(torch.zeros(2, 3, 4))), ("v", nn.Parameter(torch.zeros(2)))]
    named[1][1].requires_grad_(False)
    nowhere = Placed(None, [])  # what it says is not looked at
    with pytest.warns(UserWarning) as caught:
        export_manifest(named, batch=["w", "exprets.*"], replicated=["v", "norm*"],
                        placements={"x": nowhere})  # fmt: skip
    assert [str(one.message) for one in caught] == [
        "batch= pattern 'exprets.*' matches no parameter",
        "replicated= pattern 'norm*' matches no parameter",
        "placements= pattern 'x' matches no parameter",
    ]
    assert {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize("first", [True, False])
def test_a_pattern_of_another_stage_is_not_warned_of(first, recwarn):
    """One rank of the group warns, and only of what no rank has."""
    class Both:
        ranks = (0, 1) if first else (1, 0)

        def gather(self, item):
            other = (*item[:2], None, [("batch", "neither.*")], *item[4:])
            return [item, other] if first else [other, item]

    mesh = Mesh((("world", 1),), (0,))
    entry = Entry("w", (4,), "f32", "f32", mesh, ("R",))
    world_manifest([entry], Both(), None, [("batch", "stage1.*"), ("batch", "neither.*")])
    expected = ["batch= pattern 'neither.*' matches no parameter"] if first else []
    assert [str(one.message) for one in recwarn] == expected


def _root():
    return Mesh((("dp", 2), ("tp", 2)), (0, 1, 2, 3))


def _slice(rank, axis):
    ranks = ((rank % 2, rank % 2 + 2), (rank // 2 * 2, rank // 2 * 2 + 1))[axis]
    return Mesh((_root().axes[axis],), ranks), Root(_root(), (axis,))


def _views(both):
    """What ranks of FSDP + TP see: the norm is on another slice of the mesh on every tp rank."""
    result = {}
    for rank in range(4):
        mesh, root = _slice(rank, 0)
        result[rank] = [Entry("norm", (4,), "f32", "f32", mesh, ("S(0)",), root)]
        if both:
            result[rank].append(Entry("w", (8, 4), "f32", "f32", _root(), ("_S(0, 2)", "S(0)")))
    return result


def test_slices_of_one_mesh_become_replicas_in_one_world():
    for rank in range(4):
        manifest, world = build(_views(True), rank)
        assert world == (0, 1, 2, 3)
        norm = manifest["parameters"][0]
        assert norm["placements"] == ["S(0)", "R"] and norm["mesh"] == "dp_tp"
        assert len(manifest["meshes"]) == 1


def test_slices_that_nothing_connects_are_worlds_of_their_own():
    for rank in range(4):
        manifest, world = build(_views(False), rank)
        assert world == (rank % 2, rank % 2 + 2)
        assert manifest["parameters"][0]["placements"] == ["S(0)"]


def test_ranks_that_disagree_are_refused():
    views = _views(True)
    views[3][1].shape = (8, 5)
    with pytest.raises(ValueError, match=r"'w': ranks disagree on its shape: \(8, 4\) on rank 0"):
        build(views, 0)
    views = _views(True)
    del views[2][1]
    with pytest.raises(ValueError, match="'w': its mesh has rank 2, which did not export it"):
        build(views, 0)


def test_slices_that_are_only_some_of_their_mesh():
    """Two of four slices of a root mesh, in one world through another parameter."""
    root = Mesh((("dp", 2), ("tp", 4)), tuple(range(8)))
    both = Mesh((("x", 2),), (0, 1))
    views = {}
    for rank in (0, 1, 4, 5):
        mesh = Mesh((("dp", 2),), (rank % 4, rank % 4 + 4))
        views[rank] = [Entry("norm", (4,), "f32", "f32", mesh, ("S(0)",), Root(root, (0,)))]
        if rank in both.ranks:
            views[rank].append(Entry("w", (8, 4), "f32", "f32", both, ("S(0)",)))
    with pytest.raises(ValueError, match="'norm': its meshes do not fill a slice of their root mesh"):
        build(views, 0)


def test_a_name_belongs_to_one_parameter():
    named = [("w", nn.Parameter(torch.zeros(2))), ("module.w", nn.Parameter(torch.zeros(3)))]
    with pytest.raises(ValueError, match="two parameters have the name 'w'"):
        export_manifest(named)
    with pytest.raises(ValueError, match="two parameters have the name 'w'"):
        Optimizer(named, "rule {}")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 8, bias=False), nn.Linear(8, 6, bias=False)
        self.norm = nn.LayerNorm(6)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


def _export_kinds(rank):
    found = {}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = fully_shard(Block(), mesh=mesh)
    found["hsdp"] = export_manifest(model.named_parameters())
    model = Block()
    parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    found["tp"] = export_manifest(model.named_parameters())
    plain = nn.Parameter(torch.zeros(4, 4))
    try:
        export_manifest([("w", plain)])
    except PlacementError as error:
        found["error"] = str(error)
    found["declared"] = export_manifest(
        [("w", plain), ("expert", plain.detach().clone().requires_grad_())],
        replicated=["w"], placements={"exp*": Placed(mesh["tp"], [Shard(0)])},
    )  # fmt: skip
    if rank == 2:
        plain = nn.Parameter(torch.zeros(2, device="meta"))
    try:
        export_manifest([("w", plain)], replicated=["*"])
    except (ValueError, RuntimeError) as error:
        found["one fails"] = str(error)
        assert isinstance(error, StepcError) == (rank != 2)
    odd = distribute_tensor(torch.zeros(5, 3), init_device_mesh("cpu", (4,)), [Shard(0)])
    odd = DTensor.from_local(odd.to_local(), odd.device_mesh, [Shard(0)], shape=(5, 3), stride=(3, 1))
    found["uneven"] = export_manifest([("w", nn.Parameter(odd))])
    dist.barrier()
    return found


def test_live_models_on_four_ranks():
    results = run_ranks(_export_kinds, 4)
    for rank, found in enumerate(results):
        if rank != 2:
            assert "rank 2 could not export its manifest: ValueError" in found["one fails"]
        for key in ("hsdp", "tp", "uneven", "declared"):
            assert found[key] == results[0][key], (rank, key)
        hsdp = {item["name"]: item["placements"] for item in found["hsdp"]["parameters"]}
        assert hsdp["up.weight"] == ["R", "S(0)"]
        tp = {item["name"]: item for item in found["tp"]["parameters"]}
        assert tp["up.weight"]["placements"] == ["_S(0, 2)", "S(0)"]
        assert tp["down.weight"]["placements"] == ["S(0)", "S(1)"]
        assert tp["up.weight"]["shape"] == [8, 6]
        assert tp["norm.weight"]["placements"] == ["S(0)", "R"]
        assert "'w': expected a DTensor in a world of 4 ranks, found a plain tensor" in found["error"]
        declared = {item["name"]: item for item in found["declared"]["parameters"]}
        assert declared["expert"]["shape"] == [8, 4]
        assert declared["expert"]["placements"] == ["R", "S(0)"]
        assert found["uneven"]["parameters"][0]["shape"] == [5, 3]


class Rank(int):
    """A rank that counts how often it is looked at."""

    looks = 0

    def __hash__(self):
        Rank.looks += 1
        return int.__hash__(self)

    def __eq__(self, other):
        Rank.looks += 1
        return int.__eq__(self, other)


def _looks(ranks, parameters, ways):
    """The work of merging FSDP over a slice of a (dp, tp) mesh, seen in ``ways`` ways."""
    numbers = [Rank(rank) for rank in range(ranks)]
    root = Mesh((("dp", ranks // ways), ("tp", ways)), tuple(numbers))
    by_way = []
    for way in range(ways):
        mesh = Mesh((("dp", ranks // ways),), tuple(numbers[way::ways]))
        slice_of = Root(root, (0,))
        entries = [Entry(f"norm.{i}", (64,), "f32", "f32", mesh, ("S(0)",), slice_of)
                   for i in range(parameters)]  # fmt: skip
        entries.append(Entry("w", (64, 64), "f32", "f32", root, ("_S(0, 2)", "S(0)")))
        by_way.append(entries)
    Rank.looks = 0
    manifest, world = build({rank: by_way[rank % ways] for rank in numbers}, numbers[0])
    assert len(manifest["parameters"]) == parameters + 1 and len(world) == ranks
    assert manifest["parameters"][0]["placements"] == ["S(0)", "R"][: 1 + (ways > 1)]
    return Rank.looks


@pytest.mark.parametrize("ways", [1, 2, 8])
def test_the_work_of_merging_is_linear_in_ranks(ways):
    small, large = _looks(128, 24, ways), _looks(512, 24, ways)
    assert large < 4.2 * small, (small, large)
    # Ranks are looked at for each mesh, not for each parameter.
    assert _looks(128, 96, ways) < 1.5 * small
