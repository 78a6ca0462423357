"""``model_group=``: a model block that computes over pipeline stages, which no mesh connects."""

import copy

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from sharded_net import set_gradients
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import stepc
from stepc.torch import Optimizer, export_manifest

TIMEOUT = 20.0
SPEC = """
model(max_norm = 1) {
  state average : f32 = 1
  let total = norm(grad)
  skip when total > 100 * average
  average = 0.5 * average + 0.5 * total
  metric grad_norm = total
  grad = min(1, max_norm / (total + 1e-6)) * grad
}
optimizer Muon(lr) {
  state m : f32
  m = 0.9 * m + grad
  param = param - lr * orthogonalize(m)
}
optimizer Adam(lr) {
  state v : f32
  v = lerp(v, grad ^ 2, 0.1)
  param = param - lr * grad / (sqrt(v) + 1e-6)
}
route {
  Muon(lr = 0.1) for matrix except "embed*"
  Adam(lr = 0.01) for rest
}
"""
SHAPES = {"stage0.w": (4, 4), "stage1.w": (4, 4), "embed": (12, 6), "first.w": (8, 6), "first.b": (8,), "second.w": (6, 8), "second.b": (6,)}
STAGES = [["embed", "first.w", "first.b"], ["second.w", "second.b"]]


class Part(nn.Module):
    """Some of the model's parameters. Names with dots are of submodules."""

    def __init__(self, names):
        super().__init__()
        for name in names:
            generator = torch.Generator().manual_seed(list(SHAPES).index(name))
            *path, last = name.split(".")
            module = self
            for one in path:
                if not hasattr(module, one):
                    module.add_module(one, nn.Module())
                module = getattr(module, one)
            module.register_parameter(last, nn.Parameter(torch.randn(SHAPES[name], generator=generator)))


def gradients(model, step):
    """Those of the whole model, whatever part of it this is."""
    whole = Part(SHAPES)
    set_gradients(whole, step)
    factor = 1e6 if step == 2 else 1  # skipped
    given = {name: factor * p.grad for name, p in whole.named_parameters()}
    for name, p in model.named_parameters():
        grad = given[name]
        if isinstance(p, torch.distributed.tensor.DTensor):
            grad = distribute_tensor(grad, p.device_mesh, p.placements, src_data_rank=None)
        p.grad = grad


def whole(model):
    return {
        name: p.full_tensor().detach() if isinstance(p, torch.distributed.tensor.DTensor) else p.detach().clone()
        for name, p in model.named_parameters()
    }


def stepped(model, optimizer, steps=4):
    norms = []
    for step in range(steps):
        gradients(model, step)
        optimizer.step()
        norms.append(optimizer.metrics()["grad_norm"])
    return whole(model), norms


def one_rank(names=tuple(STAGES[0] + STAGES[1])):
    model = Part(names)
    optimizer = Optimizer(model.named_parameters(), SPEC)
    found, norms = stepped(model, optimizer)
    assert optimizer.state_dict()["model"]["step"] == 3
    return found, norms, optimizer.state_dict()["model"]


def _sharded(rank, shared):
    """Two stages of two ranks, each sharded over its own mesh."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    names = STAGES[stage] + (["embed"] if shared and stage else [])
    model = fully_shard(Part(names), mesh=mesh["dp"])
    options = {"shared": ["embed"]} if shared else {}
    optimizer = Optimizer(
        model.named_parameters(), SPEC, model_group=dist.group.WORLD, timeout=TIMEOUT, **options
    )
    found, norms = stepped(model, optimizer)
    executed, planned = optimizer.counters()
    assert executed == planned and optimizer.library.world_ranks == (0, 1, 2, 3)
    states = {record.name for record in optimizer._binding.records}
    assert states == set(names)  # this stage's alone
    return found, norms, optimizer.state_dict()["model"]


@pytest.mark.parametrize("shared", [False, True])
def test_stages_have_the_bits_of_one_rank(real, shared):
    expected, norms, model = one_rank()
    for rank, (found, their_norms, their_model) in enumerate(run_ranks(_sharded, 4, shared)):
        assert set(found) == set(STAGES[rank // 2] + (["embed"] if shared else []))
        for name, value in found.items():
            assert torch.equal(value, expected[name]), (rank, name)
        assert their_norms == norms and their_model == model


def _plain(rank):
    """Each rank is a stage with plain tensors and a process group of its own."""
    alone = [dist.new_group([one]) for one in range(2)][rank]
    model = Part(STAGES[rank])
    optimizer = Optimizer(
        model.named_parameters(), SPEC, process_group=alone, model_group=dist.group.WORLD, timeout=TIMEOUT
    )
    found, norms = stepped(model, optimizer)
    saved = copy.deepcopy(optimizer.state_dict())
    # Both prepare again, since one of them got another parameter. The states stay.
    if rank:
        extra = nn.Parameter(torch.ones(3))
        extra.grad = torch.ones(3)
        optimizer.add_param_group({"params": [("extra", extra)]})
    optimizer.prepare()
    assert optimizer.state_dict()["model"] == saved["model"]
    gradients(model, 5)
    optimizer.step()
    return found, norms, optimizer.metrics()["grad_norm"]


def test_stages_of_one_rank_each(real):
    expected, norms, _ = one_rank()
    (first, first_norms, one), (second, second_norms, other) = run_ranks(_plain, 2)
    assert first_norms == second_norms == norms and one == other
    for name, value in (first | second).items():
        assert torch.equal(value, expected[name]), name


def _refused(rank):
    """Errors are raised on all ranks, and none waits."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    world, own = dist.group.WORLD, mesh["dp"].get_group()
    halves = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
    across = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])][rank % 2]
    texts = {}

    def attempt(case, spec=SPEC, names=None, mesh=mesh["dp"], frozen=(), **options):
        model = Part(names or STAGES[stage])
        for name, p in list(model.named_parameters()):
            module = model.get_submodule(name.rpartition(".")[0])
            value = distribute_tensor(p.detach(), mesh, [Shard(0)] * mesh.ndim, src_data_rank=None)
            module.register_parameter(name.rpartition(".")[2], nn.Parameter(value, requires_grad=name not in frozen))
        try:
            optimizer = Optimizer(model.named_parameters(), spec, timeout=TIMEOUT, **options)
            gradients(model, 0)
            optimizer.step()
            texts[case] = ""
        except (ValueError, stepc.StepcError) as error:
            texts[case] = str(error)

    attempt("none")
    attempt("two names", names=["second.w", "embed"], model_group=world)
    attempt("shared alone", shared=["embed"])
    attempt("frozen stage", frozen=STAGES[1], model_group=world)
    attempt("frozen copy", names=["embed", f"stage{stage}.w"], frozen=["embed"] if stage else [], model_group=world,
            shared=["embed"])  # fmt: skip
    attempt("no model", spec=SPEC[SPEC.index("optimizer Muon"):], model_group=world)
    attempt("outside", model_group=halves[1 - stage])
    attempt("across", process_group=own, model_group=across)
    attempt("own stage", model_group=own)
    attempt("too small", mesh=mesh, names=["embed"], model_group=own)
    attempt("one alone", model_group=world if rank else None)
    attempt("other model", spec=SPEC.replace("0.5 *", "0.25 *") if stage else SPEC, model_group=world)
    attempt("other options", model_group=world, strategy={"*": "owner"} if stage else None)
    return texts


def test_what_cannot_be_one_model_is_refused_on_all_ranks(real):
    for rank, first in enumerate(run_ranks(_refused, 4)):
        assert "expected them all to step together, found 2 of them" in first["none"], first["none"]
        assert "hint: model_group= names the ranks whose parameters are one model" in first["none"]
        assert "expected it in one pipeline stage of the model group, found it on the ranks [0, 1] and [2, 3]" in first["two names"]
        assert "hint: shared=['second.w']" in first["two names"] or "hint: shared=['embed']" in first["two names"]
        assert first["shared alone"] == "shared: expected model_group= beside it, found none"
        assert "model_group: expected a trained parameter on each of its ranks, found none on rank 2" in first["frozen stage"]
        assert "'embed' is shared: expected it to be trained on all stages or on none, found it frozen on rank 2" in first["frozen copy"]
        assert first["no model"] == "model_group: expected a definition with a model block, found none"
        assert first["outside"] == f"model_group: expected a group with this rank, {rank}, found one without it"
        assert "model_group: expected all of its ranks in process_group= or the other way round" in first["across"]
        assert first["own stage"] == ""  # another model, such as a critic, may be on the other ranks
        assert "model_group: expected all ranks that share parameters" in first["too small"], first["too small"]
        assert "model_group: expected the same ranks on all of its ranks" in first["one alone"], first["one alone"]
        for case in ("other model", "other options"):
            assert "expected the definition and options of rank 0 on all ranks that step together" in first[case], first[case]


def _uneven(rank, placement):
    """A stage of two ranks and one of one rank share a parameter."""
    mesh, alone = DeviceMesh("cpu", [0, 1]), [dist.new_group([one]) for one in range(3)]
    value = torch.ones(4, 6)
    w = nn.Parameter(value if rank == 2 else distribute_tensor(value, mesh, [placement], src_data_rank=None))
    own = alone[2] if rank == 2 else mesh.get_group()
    optimizer = Optimizer(
        [("embed", w)], SPEC, process_group=own, model_group=dist.group.WORLD, shared=["embed"], timeout=TIMEOUT
    )
    with pytest.raises((ValueError, stepc.StepcError)) as refused:
        optimizer.prepare()
    return str(refused.value)


def test_stages_that_share_a_parameter_are_of_one_size(real):
    for text in run_ranks(_uneven, 3, Shard(0)):
        assert "parameter 'embed': ranks disagree on its placements: ('S(0)',) on rank 0, ('R',) on rank 2" in text
    for text in run_ranks(_uneven, 3, Replicate()):
        assert text == (
            "parameter 'embed': expected meshes of equal sizes on the stages that share it, found [2] on the ranks "
            "[0, 1] and [1] on the ranks [2]"
        )


def _exported(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    named = [(f"stage{stage}.w", torch.ones(4, 3)), ("embed", torch.ones(6, 2))]
    named = [(name, nn.Parameter(distribute_tensor(value, mesh["dp"], [Shard(0)]))) for name, value in named]
    for _, p in named:
        p.grad = torch.zeros_like(p)
    return export_manifest(named, model_group=dist.group.WORLD, shared=["emb*"], timeout=TIMEOUT)


def test_a_manifest_has_all_stages(real):
    found = run_ranks(_exported, 4)
    assert all(one == found[0] for one in found)
    meshes = {mesh["name"]: (tuple(axis["size"] for axis in mesh["axes"]), mesh["ranks"]) for mesh in found[0]["meshes"]}
    assert meshes == {"dp": ((2,), [0, 1]), "dp.1": ((2,), [2, 3]), "stages_dp": ((2, 2), [0, 1, 2, 3])}
    placed = {one["name"]: (one["mesh"], one["placements"]) for one in found[0]["parameters"]}
    assert placed == {"stage0.w": ("dp", ["S(0)"]), "stage1.w": ("dp.1", ["S(0)"]), "embed": ("stages_dp", ["R", "S(0)"])}


def test_a_planned_job_is_refused():
    with pytest.raises(ValueError, match="model_group: expected ranks that run"):
        export_manifest([("w", torch.ones(2, 2, device="meta"))], mesh={"dp": 2}, model_group=object())
