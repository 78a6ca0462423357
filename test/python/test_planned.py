"""Manifests of jobs that do not run, written in one process: the jobs themselves write the same."""

import os

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from sharded_net import BOTH, set_gradients, spec
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

import stepc
from stepc.torch import Blocks, Optimizer, Placed, PlacementError, export_manifest, planned_mesh


class Net(nn.Module):
    """With sizes that four ranks do not divide, a tied weight, experts, and a frozen parameter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight
        self.up, self.down = nn.Linear(6, 7, bias=False), nn.Linear(7, 6, bias=False)
        self.experts = nn.Parameter(torch.randn(3, 5, 4))
        self.norm = nn.LayerNorm(6).bfloat16()
        self.norm.bias.requires_grad_(False)


def fsdp(model, mesh):
    fully_shard(model.up, mesh=mesh)
    fully_shard(model, mesh=mesh)


def tensor_parallel(model, mesh):
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(model, mesh["tp"], plan)
    fully_shard(model, mesh=mesh["dp"])


def other_dimension(model, mesh):
    fully_shard(model, mesh=mesh, shard_placement_fn=lambda p: Shard(2) if p.dim() > 2 else None)


def expert_parallel(model, mesh):
    """Experts on their own axis, the rest over both; one parameter is replicated, and nothing FSDP's."""
    model.experts = nn.Parameter(DTensor.from_local(torch.empty_like(model.experts), mesh["ep"], [Shard(0)]))
    for module, name in ((model.up, "weight"), (model.down, "weight")):
        whole = getattr(module, name)
        setattr(module, name, nn.Parameter(distribute(whole, mesh, [Shard(1), Replicate()])))
    fully_shard(model.norm, mesh=mesh)
    weight = nn.Parameter(distribute(model.embed.weight, mesh, [Replicate(), Replicate()]))
    model.embed.weight = model.head.weight = weight


def distribute(whole, mesh, placements):
    return distribute_tensor(whole.detach(), mesh, placements, src_data_rank=None)


JOBS = {
    "fsdp": ({"dp": 4}, fsdp), "hsdp": ({"replicate": 2, "shard": 2}, fsdp),
    "tp": ({"dp": 2, "tp": 2}, tensor_parallel), "other": ({"dp": 4}, other_dimension),
    "ep": ({"dp": 2, "ep": 2}, expert_parallel),
}  # fmt: skip
# 7 rows over (3, 2): FSDP2 cuts between other rows than DTensor reads.
UNEVEN = {"uneven tp": ({"dp": 3, "tp": 2}, tensor_parallel)}


def export(model, **options):
    named = model.named_parameters(remove_duplicate=False)
    return export_manifest(named, batch=["experts"], blocks={"experts": Blocks([2, 3])}, **options)


def _job(rank, kinds):
    found = {}
    for kind in kinds:
        sizes, shard = (JOBS | UNEVEN)[kind]
        mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
        model = Net()
        shard(model, mesh)
        found[kind] = export(model)
    return found


def planned(kind, rank=0):
    sizes, shard = (JOBS | UNEVEN)[kind]
    with planned_mesh(sizes, rank) as mesh, torch.device("meta"):
        model = Net()
        shard(model, mesh)
        found = export(model)
    assert not dist.is_initialized()
    return found


@pytest.mark.parametrize(("kinds", "size"), [(JOBS, 4), (UNEVEN, 6)])
def test_one_process_writes_what_the_job_writes(kinds, size):
    results = run_ranks(_job, size, list(kinds))
    for kind in kinds:
        for rank in range(size):
            assert planned(kind, rank) == results[rank][kind] == results[0][kind], (kind, rank)
    for kind in {"fsdp", "hsdp"}.intersection(kinds):
        with torch.device("meta"):
            whole = Net()
        # By sizes alone, as FSDP2's rule says where shards lie.
        assert export(whole, mesh=JOBS[kind][0]) == results[0][kind]
    texts = {one["name"]: one["placements"] for one in results[0][next(reversed(kinds))]["parameters"]}
    if size == 6:
        assert texts["up.weight"] == ["S(0)", "S(0)"]  # on (tp, dp): as FSDP2 cuts


def test_whole_tensors_with_placements_of_their_own():
    """Placements of tensor parallelism, by patterns and by a function."""
    rows, columns = [_StridedShard(0, split_factor=2), Shard(0)], [Shard(0), "S(1)"]
    patterns = {"*": ["S(0)", "R"], "up.*": rows, "down.*": columns}
    found = planned("tp")
    with torch.device("meta"):
        model = Net()
    assert export(model, mesh={"dp": 2, "tp": 2}, placements=patterns) == found

    def place(name, tensor):
        assert tensor is dict(model.named_parameters())[name]
        return {"up.weight": rows, "down.weight": columns}.get(name, [Shard(0), Replicate()])

    assert export(model, mesh=[("dp", 2), ("tp", 2)], placements=place) == found
    patterns["up.*"] = ["_S(0, 2)", "S(0)"]
    sizes, _ = UNEVEN["uneven tp"]
    assert export(model, mesh=sizes, placements=patterns) == planned("uneven tp")
    # The rule for what a function leaves out, scalars, and what is replicated.
    shapes = {"w": (4, 2), "v": 3, "s": ()}
    named = [(name, nn.Parameter(torch.zeros(shape))) for name, shape in shapes.items()]
    sizes = {"r": 2, "s": 2}
    manifest = export_manifest(named, mesh=sizes, placements=lambda name, tensor: None, replicated=["v"])
    assert [one["placements"] for one in manifest["parameters"]] == [["R", "S(0)"], ["R", "R"], ["R", "R"]]
    axes = [{"name": "r", "size": 2}, {"name": "s", "size": 2}]
    assert manifest["meshes"] == [{"name": "r_s", "axes": axes, "ranks": [0, 1, 2, 3]}]
    manifest = export_manifest(named[:1], mesh=sizes, placements={"w": [Replicate(), Shard(-1)]})
    assert manifest["parameters"][0]["placements"] == ["R", "S(1)"]
    # Gradients and states.
    manifest = export_manifest(named, mesh={"dp": 4}, replicated=["*"],
                               placements={"w": Placed(gradient=["P(avg)"], states=["S(0)"])})  # fmt: skip
    assert manifest["parameters"][0]["placements"] == ["R"]
    assert manifest["parameters"][0]["grad_placements"] == ["P(avg)"]
    assert manifest["parameters"][0]["state_placements"] == ["S(0)"]


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"mesh": {}}, ValueError, r"mesh: expected names and sizes of its axes, as in \{'dp': 4, 'tp': 2\}"),
    ({"mesh": {"dp": 0}}, ValueError, "found {'dp': 0}"),
    ({"mesh": 4}, ValueError, "found 4"), ({"mesh": {"dp": 2.0}}, ValueError, "found"),
    ({"mesh": ["dp"]}, ValueError, "found"),
    ({"mesh": [("dp", 2), ("dp", 2)]}, ValueError, "each name once"),
    ({"mesh": {"dp": 2}, "placements": {"w": ["R", "R"]}}, PlacementError,
     "'w': expected a placement for each of the 1 axes"),
    ({"mesh": {"dp": 2}, "placements": {"w": "R"}}, PlacementError, "'w': expected a placement for each"),
    ({"mesh": {"dp": 2}, "placements": {"w": ["Q"]}}, PlacementError, "'w': expected R, "),
    ({"placements": {"w": ["R"]}}, TypeError, "expected a stepc.torch.Placed"),
])  # fmt: skip
def test_what_is_no_layout_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        export_manifest([("w", nn.Parameter(torch.zeros(2, 3, device="meta")))], **options)


def test_patterns_that_match_nothing_are_told():
    with pytest.warns(UserWarning) as told:
        export_manifest([("w", nn.Parameter(torch.zeros(2)))], mesh={"dp": 2}, batch=["x"],
                        placements={"y": ["R"], "z": Placed(states=["R"])})  # fmt: skip
    assert [str(one.message) for one in told] == [
        f"{argument}= pattern '{pattern}' matches no parameter"
        for argument, pattern in (("batch", "x"), ("placements", "z"), ("placements", "y"))
    ]


def test_planned_meshes_stand_alone():
    with pytest.raises(ValueError, match="expected a rank below 4, found 4"), planned_mesh({"dp": 4}, 4):
        pass
    with planned_mesh({"dp": 4}) as mesh:
        with pytest.raises(stepc.StepcError, match="found a process group"), planned_mesh({"dp": 4}):
            pass
        one = nn.Parameter(distribute(torch.zeros(4, 2), mesh, [Shard(0)]))
        with pytest.raises(PlacementError, match=r"'w': expected a whole tensor for mesh=, found a DTensor"):
            export_manifest([("w", one)], mesh={"dp": 4})
    assert not dist.is_initialized()
    with pytest.raises(KeyError), planned_mesh({"dp": 4}):
        raise KeyError
    assert not dist.is_initialized()
    # A job may come afterwards.
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
        one = nn.Parameter(distribute(torch.zeros(4, 2), mesh, [Shard(0)]))
        assert export_manifest([("w", one)])["meshes"][0]["ranks"] == [0]
    finally:
        dist.destroy_process_group()


def _real_stage(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    model = nn.Linear(4, 6)
    fully_shard(model, mesh=mesh["dp"])
    return export_manifest([(f"stage{rank // 2}.{name}", p) for name, p in model.named_parameters()])


def test_a_pipeline_stage_is_planned_from_one_of_its_ranks():
    for rank, expected in enumerate(run_ranks(_real_stage, 4)):
        with planned_mesh({"pp": 2, "dp": 2}, rank) as mesh, torch.device("meta"):
            model = nn.Linear(4, 6)
            fully_shard(model, mesh=mesh["dp"])
            found = export_manifest([(f"stage{rank // 2}.{name}", p) for name, p in model.named_parameters()])
        assert found == expected and found["meshes"][0]["ranks"] == [rank // 2 * 2, rank // 2 * 2 + 1]


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed, self.up = nn.Embedding(12, 6), nn.Linear(6, 8, bias=False)
        self.down, self.norm = nn.Linear(8, 6, bias=False), nn.LayerNorm(6)


def _step(rank, libraries):
    """Training nodes have no compiler: they load what was compiled elsewhere."""
    os.environ["STEPC"], os.environ["PATH"] = "/nonexistent", ""
    found = {}
    for kind, path in libraries.items():
        sizes, shard = JOBS[kind]
        model = Trained()
        shard(model, init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes)))
        optimizer = Optimizer(model.named_parameters(), library=path, timeout=60.0)
        for step in range(2):
            set_gradients(model, step)
            optimizer.step()
        found[kind] = [p.full_tensor().detach() for p in model.parameters()]
    return found


def test_a_library_of_a_planned_manifest_steps_the_job(real, tmp_path):
    libraries = {}
    for kind in ("fsdp", "hsdp", "tp"):
        sizes, shard = JOBS[kind]
        with planned_mesh(sizes) as mesh, torch.device("meta"):
            model = Trained()
            shard(model, mesh)
            manifest = export_manifest(model.named_parameters())
        made = stepc.compile(spec(BOTH), manifest, target="cpu:x86-64-v2", output=tmp_path / kind)
        libraries[kind] = str(made.library)
    model = Trained()
    optimizer = Optimizer(model.named_parameters(), spec(BOTH), target="cpu:x86-64-v2")
    for step in range(2):
        set_gradients(model, step)
        optimizer.step()
    expected = [p.detach() for p in model.parameters()]
    for found in run_ranks(_step, 4, libraries):
        for kind, weights in found.items():
            assert all(map(torch.equal, weights, expected)), kind
