"""Checkpoints that move between numbers of pipeline stages, over the fake library."""

import pytest
import torch
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict,
)  # fmt: skip
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

import stepc
from stepc.torch import Optimizer

SHAPES = {"layers.0.w": (4, 3), "layers.0.b": (4,), "layers.1.w": (3, 5), "layers.1.b": (2,),
          "head.w": (6, 2)}  # fmt: skip
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)
FORMS = {"plain": StateDictOptions(), "flat": FLAT}


def stage_of(name):
    return 0 if name.startswith("layers.0") else 1


class Stages(nn.Module):
    """The parameters of the given stages, sharded over a mesh if there is one."""

    def __init__(self, stages=(0, 1), mesh=None):
        super().__init__()
        for seed, (name, shape) in enumerate(SHAPES.items()):
            if stage_of(name) not in stages:
                continue
            value = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
            if mesh is not None:
                value = distribute_tensor(value, mesh, [Shard(0)], src_data_rank=None)
            *path, last = name.split(".")
            module = self
            for part in path:
                if not hasattr(module, part):
                    module.add_module(part, nn.Module())
                module = getattr(module, part)
            module.register_parameter(last, nn.Parameter(value))


def set_gradients(model, step):
    for name, p in model.named_parameters():
        generator = torch.Generator().manual_seed(100 * step + list(SHAPES).index(name))
        full = torch.randn(p.shape, generator=generator)
        p.grad = full
        if isinstance(p, DTensor):
            p.grad = distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)


def make(model, rates=(0.1, 0.5), **options):
    """A rate for each route; a number for every route by default."""
    options = {"Momentum": {"lr": rates[0]}, "Plain": {"lr": rates[1]}, "timeout": 20.0} | options
    return Optimizer(model.named_parameters(), "head {}", if_present=["head*"], **options)


def train(model, optimizer, steps):
    for step in steps:
        set_gradients(model, step)
        optimizer.step()


def whole(model):
    return {name: (p.full_tensor() if isinstance(p, DTensor) else p).detach().clone()
            for name, p in model.named_parameters()}  # fmt: skip


RATES = (0.25, 0.75)


def straight():
    model = Stages()
    train(model, make(model, RATES), range(4))
    return whole(model)


def build(rank, size, rates=(0.1, 0.5)):
    """Two stages of size/2 ranks each; or one stage of one rank."""
    if size == 1:
        model = Stages()
    else:
        mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("pp", "dp"))
        model = Stages([mesh.get_local_rank("pp")], mesh["dp"])
    return model, make(model, rates)


def _save(rank, size, folder, form):
    model, optimizer = build(rank, size, RATES)
    train(model, optimizer, range(2))
    saved = {"model": model.state_dict(),
             "optimizer": get_optimizer_state_dict(model, optimizer, options=FORMS[form])}  # fmt: skip
    dcp.save(saved, checkpoint_id=folder)
    train(model, optimizer, range(2, 4))
    return whole(model)


def _load(rank, size, folder, form):
    model, optimizer = build(rank, size)
    saved = {"model": model.state_dict(),
             "optimizer": get_optimizer_state_dict(model, optimizer, options=FORMS[form])}  # fmt: skip
    dcp.load(saved, checkpoint_id=folder)
    model.load_state_dict(saved["model"])
    set_optimizer_state_dict(model, optimizer, saved["optimizer"], options=FORMS[form])
    assert [group["lr"] for group in optimizer.param_groups] == [
        RATES[group["route"] == "Plain"] for group in optimizer.param_groups
    ]
    train(model, optimizer, range(2, 4))
    return whole(model)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("first", "then"), [(2, 1), (4, 1), (1, 2), (4, 2)])
def test_distributed_checkpoints_move_between_stages(fake, tmp_path, first, then, form):
    expected = straight()
    for function, size in ((_save, first), (_load, then)):
        found = {}
        for one in run_ranks(function, size, size, str(tmp_path / "c"), form):
            found |= one
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def of_stages(rates):
    """What two stages without data parallelism save, by stage."""
    made = [Stages([stage]) for stage in (0, 1)]
    optimizers = [make(model, one) for model, one in zip(made, rates, strict=True)]
    for model, optimizer in zip(made, optimizers, strict=True):
        train(model, optimizer, range(2))
    return made, optimizers


@pytest.mark.parametrize("form", FORMS)
def test_saved_stages_are_put_together(fake, tmp_path, form):
    """torch.save of every stage, put together by the trainer; and one file for all stages."""
    made, optimizers = of_stages([RATES, RATES])
    saved = {"state": {}, "param_groups": []} if form == "plain" else {}
    for model, optimizer in zip(made, optimizers, strict=True):
        part = get_optimizer_state_dict(model, optimizer, options=FORMS[form])
        torch.save(part, tmp_path / "part.pt")
        part = torch.load(tmp_path / "part.pt")
        if form == "plain":
            saved["state"] |= part["state"]
            saved["param_groups"] += part["param_groups"]
        else:
            saved |= part
    model = Stages()
    optimizer = make(model)
    model.load_state_dict(made[0].state_dict() | made[1].state_dict())
    set_optimizer_state_dict(model, optimizer, saved, options=FORMS[form])
    assert [group["lr"] for group in optimizer.param_groups] == list(RATES)
    saved = get_optimizer_state_dict(model, optimizer, options=FORMS[form])
    again = Stages([1])
    stage = make(again)
    again.load_state_dict(made[1].state_dict())
    set_optimizer_state_dict(again, stage, saved, options=FORMS[form])
    assert [group["lr"] for group in stage.param_groups] == list(RATES)
    train(model, optimizer, range(2, 4))
    train(again, stage, range(2, 4))
    expected = straight()
    for one in (whole(model), whole(again)):
        assert all(torch.equal(one[name], expected[name]) for name in one)


@pytest.mark.parametrize("form", FORMS)
def test_stages_with_other_options_conflict(fake, form):
    made, optimizers = of_stages([(0.25, 0.5), (0.125, 0.5)])
    parts = [get_optimizer_state_dict(*pair, options=FORMS[form])
             for pair in zip(made, optimizers, strict=True)]  # fmt: skip
    saved = parts[0] | parts[1]
    if form == "plain":
        saved = {"state": parts[0]["state"] | parts[1]["state"],
                 "param_groups": parts[0]["param_groups"] + parts[1]["param_groups"]}  # fmt: skip
    model = Stages()
    optimizer = make(model)
    optimizer.prepare()
    before = optimizer.state[model.head.w]
    with pytest.raises(
        stepc.StepcError,
        match=r"parameter group 0 \(route Momentum\): parameters 'layers.0.w' and '(layers.1|head).w' are in "
        r"one group, and had different options in the state dict: lr = 0.25 and 0.125\nhint: ",
    ):
        set_optimizer_state_dict(model, optimizer, saved, options=FORMS[form])
    assert before["step"] == 0 and not before["m"].any()
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    # With a group of its own each keeps its options.
    pairs = dict(model.named_parameters())
    first = [(name, p) for name, p in pairs.items() if stage_of(name) == 0]
    rest = [(name, p) for name, p in pairs.items() if stage_of(name) == 1]
    split = Optimizer([{"params": first}, {"params": rest}], "head {}", lr=1.0)
    set_optimizer_state_dict(model, split, saved, options=FORMS[form])
    assert [group["lr"] for group in split.param_groups] == [0.25, 0.5, 0.125, 0.5]


def _whole(rank):
    """The whole state dict on one rank, and from there to all of them."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    model, other = Stages(mesh=mesh), Stages(mesh=mesh)
    optimizer, again = make(model, RATES), make(other)
    train(model, optimizer, range(2))
    form = StateDictOptions(full_state_dict=True, cpu_offload=True)
    saved = get_optimizer_state_dict(model, optimizer, options=form)
    form = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_optimizer_state_dict(other, again, saved if rank == 0 else {}, options=form)
    same = [torch.equal(again.state[q]["m"].to_local(), optimizer.state[p]["m"].to_local())
            for p, q in zip(model.parameters(), other.parameters(), strict=True)
            if "m" in optimizer.state[p]]  # fmt: skip
    return all(same), [group["lr"] for group in again.param_groups]


def test_whole_state_dicts_travel_from_one_rank(fake):
    assert run_ranks(_whole, 2) == [(True, list(RATES))] * 2
