"""Who prepares with whom: pipeline stages, frozen ranks, chains of meshes; and errors of binding."""

import time

import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard

import stepc
from stepc.torch import Optimizer, export_manifest
from stepc.torch.meeting import Meeting

TIMEOUT = 8.0
SGD = """
optimizer Sgd(lr) {
  state m : f32
  m = 0.5 * m + grad
  param = param - lr * m
}
route { Sgd(lr = 0.1) for rest }
"""


def parameter(mesh, placements, shape=(8, 4)):
    p = nn.Parameter(distribute_tensor(torch.ones(shape), mesh, placements, src_data_rank=None))
    p.grad = torch.ones_like(p)
    return p


def make(named, **options):
    return Optimizer(named, "rule {}", **({"Plain": {"lr": 0.5}, "timeout": TIMEOUT} | options))


def attempt(function):
    start = time.monotonic()
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return None, "", time.monotonic() - start


def wait_for(key):
    dist.distributed_c10d._get_default_store().wait([key])


def tell(key):
    dist.distributed_c10d._get_default_store().set(key, "")


def _stages(rank):
    """The second stage begins when the first has stepped, exported and saved."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    named = [(f"stage{stage}.w", parameter(mesh["dp"], [Shard(0)]))]
    optimizer = make(named)
    if stage == 1:
        wait_for("done 0")
        wait_for("done 1")
    optimizer.step()
    manifest = export_manifest(named)
    optimizer.state_dict()
    tell(f"done {rank}")
    dist.barrier()
    return optimizer.library.world_ranks, [one["name"] for one in manifest["parameters"]]


def test_a_late_stage_holds_nobody(fake):
    first, second = ((0, 1), ["stage0.w"]), ((2, 3), ["stage1.w"])
    assert run_ranks(_stages, 4) == [first, first, second, second]


def _chain(rank):
    """Meshes 0-1, 1-2 and 2-3 make one world, though no rank knows more than two of them."""
    meshes = [DeviceMesh("cpu", torch.tensor([i, i + 1]), mesh_dim_names=("dp",)) for i in range(3)]
    named = [(f"w{i}", parameter(meshes[i], [Shard(0)])) for i in range(3) if rank in (i, i + 1)]
    optimizer = Optimizer(named, SGD, timeout=TIMEOUT)
    optimizer.step()
    return optimizer.library.world_ranks, sorted(one.name for one in optimizer.library.parameters)


def test_meshes_connect_transitively(real):
    assert run_ranks(_chain, 4) == [((0, 1, 2, 3), ["w0", "w1", "w2"])] * 4


def _missing_link(rank):
    """Rank 3 never comes: all that meshes connect with it say so, after one timeout."""
    meshes = [DeviceMesh("cpu", torch.tensor([i, i + 1]), mesh_dim_names=("dp",)) for i in range(3)]
    named = [(f"w{i}", parameter(meshes[i], [Shard(0)])) for i in range(3) if rank in (i, i + 1)]
    optimizer = make(named, timeout=2.0)
    result = attempt(optimizer.step) if rank != 3 else None
    dist.barrier()
    return result


def test_a_missing_rank_is_named_across_meshes(fake):
    for name, text, seconds in run_ranks(_missing_link, 4)[:3]:
        assert name == "StepcTimeout" and seconds < 8, (name, text)
        assert "expected all 4 ranks that share parameters within 2 s" in text
        assert "but rank 3 did not come" in text


def _frozen(rank):
    """One stage is frozen, and later another is too."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    model = nn.ModuleDict({"w": nn.Linear(4, 8, bias=False)})
    fully_shard(model["w"], mesh=mesh["dp"])
    # A parameter on all ranks connects the stages, frozen as it is.
    shared = parameter(DeviceMesh("cpu", torch.arange(4)), [Replicate()])
    shared.requires_grad_(False)
    weight = model["w"].weight
    weight.requires_grad_(stage == 0)
    optimizer = make([(f"stage{stage}.w", weight), ("shared", shared)])
    found = []
    for step in range(4):
        if step == 2:
            weight.requires_grad_(stage == 1)
        weight.grad = torch.ones_like(weight) if weight.requires_grad else None
        before = weight.to_local().detach().clone()
        optimizer.step()
        found.append(not torch.equal(before, weight.to_local()))
    assert len(optimizer.state_dict()["param_groups"]) > 0
    optimizer.load_state_dict(optimizer.state_dict())
    if stage == 0:
        error = attempt(lambda: optimizer.library)
        assert error[0] == "StepcError" and "all parameters of this rank are frozen" in error[1]
        assert optimizer.counters() == ({}, {})
    return found


def test_a_frozen_stage_takes_part(fake):
    first, second = [True, True, False, False], [False, False, True, True]
    assert run_ranks(_frozen, 4) == [first, first, second, second]


def _disagree(rank):
    """A parameter that is frozen on one rank of its mesh alone: an error at once, on all."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    w = parameter(mesh, [Shard(0)])
    if rank == 1:
        w.requires_grad_(False)
    return attempt(make([("w", w)]).step)


def test_a_parameter_frozen_on_one_rank_alone(fake):
    results = run_ranks(_disagree, 2)
    assert results[0][0] == "ValueError" and "its mesh has rank 1, which did not" in results[0][1]
    assert results[1][0] is not None
    assert all(seconds < TIMEOUT for *_, seconds in results)


def _declared(rank):
    """Plain tensors that are declared replicated are on every rank of the group."""
    w = nn.Parameter(torch.ones(3, 2))
    w.grad = torch.ones(3, 2)
    optimizer = make([("w", w)], replicated=["*"])
    optimizer.step()
    with Meeting(None, "a test", TIMEOUT, ranks=[0, 2] if rank != 1 else [1]) as meeting:
        ranks = meeting.ranks
        assert meeting.gather(rank) == list(ranks)
    return optimizer.library.world_ranks, ranks


def test_replicated_tensors_and_parts_of_a_group(fake):
    assert run_ranks(_declared, 3) == [((0, 1, 2), (0, 2)), ((0, 1, 2), (1,)), ((0, 1, 2), (0, 2))]


def _binding_fails(rank):
    """One rank's parameter shares its memory with another. No rank has to wait for it in a step, so
    that only an agreement keeps the others from writing."""
    mesh = init_device_mesh("cpu", (3,), mesh_dim_names=("dp",))
    named = [(name, parameter(mesh, [Shard(0)], (6, 4))) for name in ("v", "w")]
    own = named[1][1]._local_tensor
    if rank == 1:
        named[1][1]._local_tensor = named[0][1]._local_tensor.view(-1).view(2, 4)
    optimizer = Optimizer(named, SGD, timeout=TIMEOUT)
    result = attempt(optimizer.step)
    untouched = [bool((p.to_local() == 1).all()) for _, p in named]
    dist.barrier()
    named[1][1]._local_tensor = own
    # Nothing was written, so nothing has to be recovered.
    optimizer.step()
    return result, untouched, [p.to_local().mean().item() for _, p in named]


def test_errors_of_binding_are_agreed_on(real):
    results = run_ranks(_binding_fails, 3)
    for rank, ((name, text, seconds), untouched, after) in enumerate(results):
        assert name == "StepcError" and seconds < TIMEOUT, (rank, name, text)
        assert "parameter 'v' and parameter 'w' share their memory" in text, text
        assert ("rank 1 failed: " in text) == (rank != 1), text
        assert untouched == [True, True] and all(abs(x - 0.9) < 1e-6 for x in after), (rank, after)


EXPERTS = """
optimizer Muon(lr) {
  master : f32
  state m : f32
  state r : f32[rows]
  m = 0.5 * m + grad
  r = r + mean(m * m, over = columns)
  param = param - lr * orthogonalize(m) / (1 + r)
}
route { Muon(lr = 0.1) for matrix }
"""


class Experts(nn.Module):
    def __init__(self, mesh, dtype):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        value = torch.randn(4, 12, 16, generator=generator).to(dtype)
        if mesh is not None:
            value = distribute_tensor(value, mesh, [Shard(0)], src_data_rank=None)
        self.w = nn.Parameter(value)

    def forward(self, x):
        return x


def _experts(rank, dtype):
    """Four experts on three ranks, with FSDP along the second dimension: two ranks hold nothing."""
    mesh = init_device_mesh("cpu", (2, 3), mesh_dim_names=("fsdp", "ep"))
    model, single = Experts(mesh["ep"], dtype), Experts(None, dtype)
    fully_shard(model, mesh=mesh["fsdp"], shard_placement_fn=lambda p: Shard(1))
    alone = [dist.new_group([one]) for one in range(6)][rank]
    options = {"batch": ["w"], "timeout": 60.0}
    optimizer = Optimizer(model.named_parameters(), EXPERTS, **options)
    other = Optimizer(single.named_parameters(), EXPERTS, process_group=alone, **options)
    shape = tuple(model.w.to_local().shape)
    for step in range(2):
        value = torch.randn(4, 12, 16, generator=torch.Generator().manual_seed(step)).to(dtype)
        single.w.grad = value
        ep, fsdp = rank % 3, rank // 3
        piece = value[2 * ep : 2 * ep + 2].chunk(2, 1)[fsdp].contiguous().view(shape)
        model.w.grad = torch.empty_like(model.w)
        model.w.grad._local_tensor.copy_(piece)
        optimizer.step()
        other.step()
        # Empty gradients may have yet other sizes.
        if not piece.numel():
            model.w.grad._local_tensor = torch.zeros(0, 3, 5, dtype=dtype)
            assert model.w.grad.to_local().shape == (0, 3, 5)
    ep, fsdp = rank % 3, rank // 3
    expected = single.w[2 * ep : 2 * ep + 2].chunk(2, 1)[fsdp].reshape(shape)
    assert torch.equal(model.w.to_local(), expected)
    optimizer.load_state_dict(other.state_dict())
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    m = optimizer.state[model.w]["m"].to_local()
    whole = other.state[single.w]["m"]
    assert torch.equal(m, whole[2 * ep : 2 * ep + 2].chunk(2, 1)[fsdp].reshape(m.shape))
    return shape


def test_empty_shards_of_uneven_experts(real):
    for dtype in (torch.float32, torch.bfloat16):
        shapes = run_ranks(_experts, 6, dtype)
        assert [shape[0] for shape in shapes] == [2, 2, 0] * 2, shapes


def _empty_elsewhere(rank):
    """The same through a gradient that has other sizes than its empty parameter."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    w = parameter(mesh, [Shard(0)], (1, 4))
    if rank == 1:
        assert not w.to_local().numel()
        w.grad._local_tensor = torch.zeros(0, 9)
    optimizer = make([("w", w)])
    optimizer.step()
    try:
        w.grad._local_tensor = torch.zeros(2, 4)
        optimizer.step()
    except stepc.StepcError as error:
        return str(error)
    return None


def test_empty_gradients_of_other_sizes(fake):
    zero, one = run_ranks(_empty_elsewhere, 2)
    assert "expected [1, 4], found [2, 4]" in zero
    assert "expected [0, 4], found [2, 4]" in one or "rank 0 gave up" in one


def _alone_and_frozen(rank):
    """Stages of one rank each, the first of them frozen; and torch's own way to save it."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("pp", "dp"))
    fully_shard(model, mesh=mesh["dp"])
    model.requires_grad_(rank == 1)
    optimizer = make(model.named_parameters())
    if rank == 1:
        wait_for("first is done")
    for p in model.parameters():
        p.grad = torch.ones_like(p) if p.requires_grad else None
    before = model.weight.to_local().detach().clone()
    optimizer.step()
    if rank == 0:
        tell("first is done")
    saved = get_optimizer_state_dict(model, optimizer)
    set_optimizer_state_dict(model, optimizer, saved)
    return torch.equal(before, model.weight.to_local()), sorted(saved["state"])


def test_a_frozen_stage_of_one_rank(fake):
    frozen, trained = run_ranks(_alone_and_frozen, 2)
    assert frozen == (True, []) and trained == (False, ["bias", "weight"])
