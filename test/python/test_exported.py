"""What tensors hold is what the manifest says: pending sums, uneven shards, stripes, flat buffers."""

import contextlib

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from models import SGD
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard

import stepc
from stepc.torch import (
    Bucket, Optimizer, Placed, PlacementError, export_manifest, parameters_to_save, register_placement,
)  # fmt: skip
from stepc.torch.declarations import Declarations
from stepc.torch.entries import Entry, Mesh
from stepc.torch.uneven import as_it_lies


class Interleaved(_StridedShard):
    """As xtuner's: each of `split_factor` equal stripes of what is there is sharded by itself. No
    `_StridedShard` by meaning, whose pieces later axes have cut before."""


register_placement(Interleaved, lambda one: f"IS({one.dim}, {one.split_factor})")


def sharded(local, mesh, placements, shape):
    stride = (*[int(torch.Size(shape[i + 1 :]).numel()) for i in range(len(shape))],)
    return DTensor.from_local(
        local.contiguous(), mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride
    )


def expect(action, kind, *texts):
    with pytest.raises(kind) as failed:
        action()
    for text in texts:
        assert text in str(failed.value), str(failed.value)


ADDING = """
optimizer Plain(lr) {
  state m : f32
  m = m + grad
  param = param - lr * m
}
route { Plain(lr = 1) for rest }
"""


def _sums(rank):
    """Pending sums are the plan's: f32, in the order of the mesh, rounded once; and later what comes
    otherwise.
    """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    kinds = {"sum": [Partial(), Partial()], "avg": [Partial("avg"), Partial("avg")], "rows": [Partial(), Shard(0)]}
    each = {name: [torch.randn(6, 4, generator=torch.Generator().manual_seed(r)).bfloat16() for r in range(4)]
            for name in kinds}  # fmt: skip
    model = nn.ParameterDict()
    for name, kind in kinds.items():
        own = [Replicate(), Shard(0) if name == "rows" else Replicate()]
        zeros = torch.zeros(3 if name == "rows" else 6, 4, dtype=torch.bfloat16)
        model[name] = nn.Parameter(sharded(zeros, mesh, own, (6, 4)))
        part = each[name][rank].chunk(2)[rank % 2] if name == "rows" else each[name][rank]
        model[name].grad = sharded(part, mesh, kind, (6, 4))
    lists = {
        one["name"]: one["grad_placements"] for one in export_manifest(model.named_parameters())["parameters"]
    }
    assert lists == {"sum": ["P(sum)"] * 2, "avg": ["P(avg)"] * 2, "rows": ["P(sum)", "S(0)"]}
    optimizer = Optimizer(model.named_parameters(), ADDING, timeout=60.0)
    optimizer.step()
    for name in kinds:
        ranks = [r for r in range(4) if name != "rows" or r % 2 == rank % 2]
        total = each[name][ranks[0]].float()
        for r in ranks[1:]:
            total = total + each[name][r].float()
        total = (total / 4 if name == "avg" else total).bfloat16().float()
        total = total.chunk(2)[rank % 2] if name == "rows" else total
        assert torch.equal(optimizer.state[model[name]]["m"].to_local(), total), name
    # Gradients that are reduced from now on: another plan, and the states stay.
    before = {name: optimizer.state[p]["m"].to_local().clone() for name, p in model.items()}
    for p in model.values():
        p.grad = sharded(torch.ones(p.to_local().shape, dtype=torch.bfloat16), mesh, p.placements, (6, 4))
    optimizer.step()
    for name, p in model.items():
        assert torch.equal(optimizer.state[p]["m"].to_local(), before[name] + 1), name
    return True


def test_pending_sums_are_added_up_by_the_step(real):
    assert all(run_ranks(_sums, 4))


ROWS = {"first": (5, 1, 0, 2), "none": (0, 0, 8, 0), "as torch": (2, 2, 2, 2)}


def _uneven(rank, folder):
    """DTensors of a flat buffer that was cut anywhere between rows: they say Shard(0)."""
    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
    alone = [dist.new_group([one]) for one in range(4)][rank]
    model, single = nn.ParameterDict(), nn.ParameterDict()
    for seed, (name, rows) in enumerate(ROWS.items()):
        whole = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed))
        model[name] = nn.Parameter(sharded(whole.split(rows)[rank].clone(), mesh, [Shard(0)], (8, 3)))
        single[name] = nn.Parameter(whole.clone())
    manifest = export_manifest(model.named_parameters())
    texts = {one["name"]: one["placements"] for one in manifest["parameters"]}
    assert texts == {"first": ["flat(0, 15, 18, 18, 24)"], "none": ["flat(0, 0, 0, 24, 24)"], "as torch": ["S(0)"]}
    spec = ADDING.replace("m = m + grad", "m = m + orthogonalize(grad)").replace("rest", "matrix")
    optimizer = Optimizer(model.named_parameters(), spec, timeout=60.0)
    other = Optimizer(single.named_parameters(), spec, process_group=alone)
    for step in range(2):
        for seed, (name, rows) in enumerate(ROWS.items()):
            whole = torch.randn(8, 3, generator=torch.Generator().manual_seed(10 + 3 * step + seed))
            model[name].grad = sharded(whole.split(rows)[rank], mesh, [Shard(0)], (8, 3))
            single[name].grad = whole
        optimizer.step()
        other.step()
    whole = other.state_dict()
    for name, rows in ROWS.items():
        state = optimizer.state[model[name]]["m"]
        assert state.placements == (Shard(0),) and state.to_local().shape == (rows[rank], 3)
        assert torch.equal(model[name].to_local(), single[name].split(rows)[rank]), name
        assert torch.equal(state.to_local(), other.state[single[name]]["m"].split(rows)[rank]), name
        state.to_local().zero_()
    optimizer.load_state_dict(whole)  # cut as the shards lie
    for name, rows in ROWS.items():
        assert torch.equal(
            optimizer.state[model[name]]["m"].to_local(), other.state[single[name]]["m"].split(rows)[rank]
        )
    # A checkpoint has them where they are.
    dcp.save({"param": parameters_to_save(optimizer), "m": {n: optimizer.state[p]["m"] for n, p in model.items()}},
             checkpoint_id=folder)  # fmt: skip
    plain = {"param": {n: torch.zeros(8, 3) for n in ROWS}, "m": {n: torch.zeros(8, 3) for n in ROWS}}
    dcp.load(plain, checkpoint_id=folder)
    for name in ROWS:
        assert torch.equal(plain["param"][name], single[name]), name
        assert torch.equal(plain["m"][name], other.state[single[name]]["m"]), name
    # What cannot be cut so is an error: a whole gradient, and a sum that torch would scatter otherwise.
    for wrong in (Replicate(), Partial()):
        model["first"].grad = sharded(torch.ones(8, 3), mesh, [wrong], (8, 3))
        optimizer = Optimizer([("first", model["first"])], ADDING, timeout=60.0)
        if isinstance(wrong, Partial):
            optimizer.step()  # seen before it compiles: the plan's
            continue
        expect(optimizer.step, stepc.GradientError, "'first': gradient: expected placements [Shard(dim=0)]", "Replicate()")
        dist.barrier()
    return True


def test_uneven_shards_are_ranges(real, tmp_path):
    assert all(run_ranks(_uneven, 4, str(tmp_path)))


DP_TP = Mesh((("dp", 2), ("tp", 2)), (0, 1, 2, 3))


def lies(placements, shape, shapes, mesh=DP_TP):
    entry = Entry("w", shape, "f32", "f32", mesh, placements)
    return as_it_lies(entry, dict(zip(mesh.ranks, shapes, strict=True)))


def test_uneven_shards_beside_tensor_parallelism():
    """Of (8, 6): tensor parallelism cuts columns, or rows first; FSDP leaves 5 rows and 3, or 3 and 1."""
    assert lies(("S(0)", "S(1)"), (8, 6), [(5, 3), (5, 3), (3, 3), (3, 3)]).placements == (
        "flat(0, 15, 24)",
        "S(1)",
    )
    assert lies(("_S(0, 2)", "S(0)"), (8, 6), [(3, 6), (3, 6), (1, 6), (1, 6)]).placements == (
        "flat(0, 18, 24)",
        "S(0)",
    )
    assert lies(("R", "S(0)"), (8, 6), [(5, 6), (3, 6), (5, 6), (3, 6)]).placements == (
        "R",
        "flat(0, 30, 48)",
    )
    # The last shard of tensor parallelism is shorter, and its ranges end early.
    found = lies(("_S(0, 2)", "S(0)"), (7, 6), [(3, 6), (3, 6), (1, 6), (0, 6)])
    assert found.placements == ("flat(0, 18, 24)", "S(0)")
    # Only some ranks need say so: the others have what the placements say.
    assert lies(("R", "S(0)"), (8, 6), [None] * 4).placements == ("R", "S(0)")


@pytest.mark.parametrize(("placements", "shape", "shapes", "expected"), [
    # Replicas disagree.
    (("R", "S(0)"), (8, 6), [(5, 6), (3, 6), (4, 6), (4, 6)], "would be [5, 6] on rank 2, found [4, 6]"),
    # Rows are missing.
    (("R", "S(0)"), (8, 6), [(5, 6), (2, 6), (5, 6), (2, 6)], "along 'tp' shards have 5 + 2 of 8 rows"),
    # Columns are of any number.
    (("R", "S(1)"), (8, 6), [(8, 4), (8, 2), (8, 4), (8, 2)], "only shards along dimension 0"),
    # Columns of tensor parallelism are uneven, so that rows are ranges of two kinds.
    (("S(0)", "S(1)"), (8, 5), [(5, 3), (5, 2), (3, 3), (3, 2)], "would be [7, 2] on rank 1, found [5, 2]"),
])  # fmt: skip
def test_what_is_no_range_is_refused(placements, shape, shapes, expected):
    expect(lambda: lies(placements, shape, shapes), PlacementError,
           "parameter 'w': expected a shard of the shape", f"by {list(placements)}", expected)  # fmt: skip


@pytest.mark.parametrize(("placements", "shapes", "given", "expected"), [
    # Rows of any number along tp, of which each replica has a contribution; and states that lie as the
    # parameter.
    (("R", "S(0)"), [(5, 6), (3, 6)] * 2, ("P(sum)", "S(0)"), ("P(sum)", "flat(0, 30, 48)")),
    (("R", "S(0)"), [(5, 6), (3, 6)] * 2, ("R", "R"), ("R", "R")),
    (("_S(0, 2)", "S(0)"), [(3, 6), (3, 6), (1, 6), (1, 6)], ("P(avg)", "S(0)"), ("P(avg)", "S(0)")),
    (("R", "S(0)"), [(5, 6), (3, 6)] * 2, ("S(1)", "S(0)"),
     "grad_placements: expected 'R' along 'dp', as its shards along 'tp' are the parameter's, of any number of rows, found 'S(1)'"),
    # FSDP2 over tensor parallelism, 7 rows on (3, 2): the manifest has the mesh (tp, dp).
    (("_S(0, 2)", "S(0)"), None, ("P(sum)", "P(sum)"), ("P(sum)", "P(sum)")),
    (("_S(0, 2)", "S(0)"), None, ("P(sum)", "S(0)"), ("S(0)", "P(sum)")),
    (("_S(0, 2)", "S(0)"), None, ("S(1)", "S(0)"), ("S(0)", "S(1)")),
    (("_S(0, 2)", "S(0)"), None, ("S(1)", "S(1)"), "grad_placements: expected one axis at most that cuts dimension 1, as the "
     "parameter was cut along the axes in the order ['tp', 'dp'], found ['S(1)', 'S(1)']"),
])  # fmt: skip
def test_gradients_of_shards_that_are_not_what_they_say(placements, shapes, given, expected):
    shape, mesh = (8, 6), DP_TP
    if shapes is None:
        shape, mesh = (7, 6), Mesh((("dp", 3), ("tp", 2)), tuple(range(6)))
        shapes = [(2, 6), (1, 6), (2, 6), (1, 6), (0, 6), (1, 6)]
    entry = Entry("w", shape, "f32", "f32", mesh, placements, grad_placements=given, state_placements=given)
    told = dict(zip(mesh.ranks, shapes, strict=True))
    if isinstance(expected, str):
        expect(lambda: as_it_lies(entry, told), PlacementError, f"parameter 'w': {expected}")
        return
    found = as_it_lies(entry, told)
    assert found.grad_placements == found.state_placements == expected


EXPERTS, STRIPES, OUT, IN = 2, 4, 6, 3  # fused gate and up of two local experts: four stripes


def striped(whole, ep, tp, sizes):
    """One expert-parallel part, and of each of its stripes the tensor-parallel part: by the definition."""
    part = whole.chunk(sizes[0])[ep]
    return torch.cat([stripe.chunk(sizes[1])[tp] for stripe in part.chunk(STRIPES)])


def _stripes(rank, fsdp):
    """xtuner's fused experts on (ep, tp), and FSDP2 over them."""
    sizes = (2, 2, 2) if fsdp else (2, 2)
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("fsdp", "ep", "tp")[-len(sizes) :])
    inner = mesh["ep", "tp"] if fsdp else mesh
    ep, tp = inner.get_coordinate()
    rows = 2 * EXPERTS * 2 * OUT
    whole = torch.randn(rows, IN, generator=torch.Generator().manual_seed(1))
    model = nn.Module()
    places = [Shard(0), Interleaved(0, split_factor=STRIPES)]
    model.w = nn.Parameter(sharded(striped(whole, ep, tp, (2, 2)), inner, places, (rows, IN)))
    if fsdp:
        fully_shard(model, mesh=mesh["fsdp"])

    def piece(value):
        part = striped(value, ep, tp, (2, 2))
        return part.chunk(2)[mesh.get_coordinate()[0]] if fsdp else part

    assert torch.equal(model.w.to_local(), piece(whole))
    (found,) = export_manifest(model.named_parameters())["parameters"]
    assert found["placements"] == ["S(0)", f"IS(0, {STRIPES})", "S(0)"][: len(sizes)]
    spec = ADDING.replace("m = m + grad", "m = m + orthogonalize(grad)").replace("rest", "matrix")
    optimizer = Optimizer(model.named_parameters(), spec, timeout=60.0)
    single = nn.ParameterDict({"w": nn.Parameter(whole.clone())})
    groups = [dist.new_group([one]) for one in range(2 ** len(sizes))]
    other = Optimizer(single.named_parameters(), spec, process_group=groups[rank])
    for step in range(2):
        gradient = torch.randn(rows, IN, generator=torch.Generator().manual_seed(2 + step))
        single["w"].grad = gradient
        model.w.grad = sharded(piece(gradient), model.w.device_mesh, model.w.placements, (rows, IN))
        optimizer.step()
        other.step()
    assert torch.equal(model.w.to_local(), piece(single["w"]))
    state = optimizer.state[model.w]["m"]
    assert state.placements == model.w.placements and torch.equal(
        state.to_local(), piece(other.state[single["w"]]["m"])
    )
    state.to_local().zero_()
    optimizer.load_state_dict(other.state_dict())
    assert torch.equal(state.to_local(), piece(other.state[single["w"]]["m"]))
    return True


@pytest.mark.parametrize("fsdp", [False, True])
def test_stripes_by_class(real, fsdp):
    assert all(run_ranks(_stripes, 8 if fsdp else 4, fsdp))


def test_stripes_that_strides_do_not_fit_are_refused():
    mesh = Mesh((("fsdp", 2), ("ep", 2), ("tp", 2)), tuple(range(8)))
    entry = Entry("w", (48, 3), "f32", "f32", mesh, ("_S(0, 3)", "S(0)", "IS(0, 4)"))
    expect(lambda: as_it_lies(entry, {}), PlacementError, "parameter 'w': expected strided placements whose factors",
           "['_S(0, 3)', 'S(0)', 'IS(0, 4)'] on axes of the sizes [2, 2, 2]")  # fmt: skip


def test_declarations_that_say_too_little_or_too_much():
    expect(lambda: Placed(None, [Shard(0)]), ValueError, "Placed: expected a mesh and placements, or neither")
    expect(lambda: Declarations(buckets={"all": 3}), TypeError, "buckets={'all': …}: expected a stepc.torch.Bucket", "found 3")
    two = Declarations(buckets={"a": Bucket(8, {"w": 0}), "b": Bucket(8, {"module.w": 4})})
    expect(lambda: two.bucket(["w"]), ValueError, "parameter 'w': expected it in one bucket once, found it in 'a' at 0 and 'b' at 4")
    expect(lambda: Placed(gradient=["P(max)"]).texts("gradient", "w", 1), PlacementError,
           "parameter 'w': gradient: expected R, S(d)", "P(sum) or P(avg), found 'P(max)'")  # fmt: skip
    expect(lambda: Placed(states=["flat"]).texts("states", "w", 2), PlacementError,
           "parameter 'w': states: placements= gives 1 placements for a mesh of 2 axes")  # fmt: skip


def _undeclared(rank):
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    w = nn.Parameter(torch.zeros(4))
    placed = {"w": Placed(mesh, ["flat"])}
    expect(lambda: export_manifest([("w", w)], placements=placed), PlacementError,
           "parameter 'w': expected its global shape beside the placement flat")  # fmt: skip
    dist.barrier()
    # A bucket that the parameters do not fill as it says, and one that nobody has.
    placed = {"w": Placed(mesh, ["flat"], (2, 4))}
    optimizer = Optimizer(
        [("w", w)], SGD, placements=placed, buckets={"all": Bucket(6, {"w": 0})}, timeout=60.0
    )
    expect(optimizer.prepare, stepc.StepcError, "/buckets/0/parameters/0/offset: expected 'w' inside of bucket 'all' of 6 elements, "
           "found elements 0 to 8 (parameter 'w')")  # fmt: skip
    with pytest.warns(UserWarning, match="buckets= pattern 'v' matches no parameter") if rank == 0 else contextlib.nullcontext():
        export_manifest([("w", w)], placements=placed, buckets={"all": Bucket(8, {"w": 0, "v": 4})})
    return True


def _declared_otherwise(rank):
    """A DTensor says where it lies: a declaration of another mesh, placement or shape is not passed over."""
    mesh, other = (init_device_mesh("cpu", (2,), mesh_dim_names=(name,)) for name in ("dp", "tp"))
    w = nn.Parameter(sharded(torch.zeros(2, 3), mesh, [Shard(0)], (4, 3)))
    for placed, text in ((Placed(other, [Shard(0)]), "expected the mesh of placements=, DeviceMesh((tp=2)"),
                         (Placed(mesh, ["flat"], (4, 3)), "expected the placements of placements=, ['flat'], found a DTensor's, ['S(0)']"),
                         (Placed(mesh, ["S(0)"], (4, 4)), "expected the shape of placements=, (4, 4), found a DTensor's, (4, 3)")):  # fmt: skip
        expect(lambda: export_manifest([("w", w)], placements={"*": placed}), PlacementError, f"parameter 'w': {text}")  # noqa: B023
        dist.barrier()
    same = export_manifest(
        [("w", w)], placements={"*": Placed(mesh, [Shard(0)], (4, 3), gradient=["P(sum)"])}
    )
    assert same["parameters"][0]["grad_placements"] == ["P(sum)"]
    return True


def test_dtensors_that_are_declared_otherwise():
    assert all(run_ranks(_declared_otherwise, 2))


def test_flat_buffers_that_are_declared_badly(real):
    assert all(run_ranks(_undeclared, 2))
