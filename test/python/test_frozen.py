"""Frozen parameters over the fake library: their states survive saving, loading and unfreezing."""

import copy

import pytest
import torch
from models import Model, bits, make, same, set_gradients
from ranks import run_ranks
from torch.distributed.checkpoint import state_dict as dcp
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

import stepc
from stepc.torch import Optimizer, export_manifest


def train(model, optimizer, steps):
    for step in steps:
        set_gradients(model, step)
        model.w.requires_grad_(step not in (2, 3))
        if not model.w.requires_grad:
            model.w.grad = None
        optimizer.step()


def straight():
    model = Model()
    train(model, make(model), range(6))
    return bits(model)


@pytest.mark.parametrize("saved_at", [2, 3, 4])
def test_saving_loading_and_unfreezing_gives_the_same_bits(fake, saved_at):
    model, other = Model(), Model()
    optimizer = make(model)
    train(model, optimizer, range(saved_at))
    model.w.requires_grad_(saved_at not in (2, 3))  # frozen before it is saved
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    assert set(saved[1]["state"][0]) == {"m", "step"} and saved[1]["state"][0]["step"] == 2
    # Loaded by a run that has not frozen it yet, and by one that has.
    for frozen in (True, False):
        other = Model()
        other.w.requires_grad_(not frozen)
        again = make(other)
        other.load_state_dict(saved[0])
        again.load_state_dict(saved[1])
        assert again.state[other.w]["step"] == 2
        train(other, again, range(saved_at, 6))
        assert same(bits(other), straight())


def test_frozen_states_are_seen_and_saved_again(fake):
    model, other = Model(), Model()
    optimizer = make(model)
    train(model, optimizer, range(3))
    kept = optimizer.state[model.w]["m"]
    other.w.requires_grad_(False)
    again = make(other)
    again.load_state_dict(optimizer.state_dict())
    assert torch.equal(again.state[other.w]["m"], kept) and again.state[other.w]["m"] is not kept
    once_more = copy.deepcopy(again.state_dict())
    assert torch.equal(once_more["state"][0]["m"], kept)
    # A state dict without it: as if it had never been stepped.
    del once_more["state"][0]
    again.load_state_dict(once_more)
    assert other.w not in again.state
    with pytest.raises(stepc.StepcError, match="'w': the state dict has no state for it\nhint: .*frozen"):
        make(Model()).load_state_dict(once_more)
    # What is loaded while frozen has to fit when it is unfrozen, or against what was there.
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][0]["m"] = torch.zeros(5)
    with pytest.raises(stepc.StepcError, match=r"'w': state 'm': expected shape \[4, 3\], found \[5\]"):
        optimizer.load_state_dict(saved)
    again.load_state_dict(saved)
    other.w.requires_grad_(True)
    set_gradients(other, 0)
    with pytest.raises(stepc.StepcError, match=r"'w': state 'm': expected shape .*forget\('w'\)"):
        again.step()
    del saved["state"][0]["m"]
    other.w.requires_grad_(False)
    again.load_state_dict(saved)
    other.w.requires_grad_(True)
    with pytest.raises(stepc.StepcError, match="'w': expected the states m, step, found no 'm'"):
        again.step()
    again.forget("w")
    again.step()
    assert again.state[other.w]["step"] == 1


def test_distributed_checkpoint_has_frozen_states(fake):
    """torch loads no state of what is frozen then, so it is loaded first and frozen afterwards."""
    model, other = Model(), Model()
    optimizer = make(model)
    train(model, optimizer, range(3))
    saved = copy.deepcopy(dcp.get_optimizer_state_dict(model, optimizer))
    assert saved["state"]["w"]["step"] == 2
    again = make(other)
    dcp.set_optimizer_state_dict(other, again, saved)
    other.load_state_dict(model.state_dict())
    other.w.requires_grad_(False)
    train(other, again, range(3, 6))
    assert same(bits(other), straight())
    # The other way round is told, where there was anything to load.
    for form in (dcp.StateDictOptions(), dcp.StateDictOptions(flatten_optimizer_state_dict=True)):
        late = Model()
        late.w.requires_grad_(False)
        saved = dcp.get_optimizer_state_dict(model, optimizer, options=form)
        with pytest.warns(UserWarning, match="of 1 frozen parameters; .* here w\nhint: fr") as told:
            dcp.set_optimizer_state_dict(late, make(late), saved, options=form)
        assert told[0].filename == __file__
    # What this optimizer knows of a frozen parameter is not lost by it.
    saved = copy.deepcopy(dcp.get_optimizer_state_dict(model, optimizer))
    other.w.requires_grad_(False)
    again.prepare()
    kept = again.state[other.w]["m"].clone()
    dcp.set_optimizer_state_dict(other, again, saved)
    assert torch.equal(again.state[other.w]["m"], kept)


def _sharded(rank):
    """The same under FSDP2, from states that are DTensors and from whole ones."""
    found = []
    for whole in (False, True):
        model, other = Model(), Model()
        for one in (model, other):
            one.s = torch.nn.Parameter(torch.zeros(2))
            fully_shard(one)
        optimizer = Optimizer(model.named_parameters(), "rule {}", lr=0.5, timeout=20.0)

        def advance(model, optimizer, steps):
            for step in steps:
                model.w.requires_grad_(step not in (2, 3))
                for index, p in enumerate(model.parameters()):
                    generator = torch.Generator().manual_seed(10 * step + index)
                    full = torch.randn(p.shape, generator=generator)
                    p.grad = distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)
                if not model.w.requires_grad:
                    model.w.grad = None
                optimizer.step()

        advance(model, optimizer, range(3))
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        if whole:
            for state in saved[1]["state"].values():
                for key, value in state.items():
                    state[key] = value.full_tensor() if isinstance(value, DTensor) else value
        other.load_state_dict(saved[0])
        other.w.requires_grad_(False)
        again = Optimizer(other.named_parameters(), "rule {}", lr=0.5, timeout=20.0)
        again.load_state_dict(saved[1])
        assert isinstance(again.state[other.w]["m"], DTensor)
        advance(model, optimizer, range(3, 6))
        advance(other, again, range(3, 6))
        found.append(all(torch.equal(a.to_local(), b.to_local())
                         for a, b in zip(model.parameters(), other.parameters(), strict=True)))  # fmt: skip
    return found


def test_sharded_frozen_states(fake):
    assert run_ranks(_sharded, 2) == [[True, True]] * 2


class Quantized(Model):
    """With frozen tensors that stepc could neither step nor place."""

    def __init__(self):
        super().__init__()
        del self.s  # FSDP2 takes no scalars
        self.base = torch.nn.Parameter(torch.zeros(6, 2, dtype=torch.int8), requires_grad=False)
        self.tied = self.base
        self.none = torch.nn.Parameter(torch.zeros(0, 3), requires_grad=False)


def _anything(rank):
    model = Quantized()
    fully_shard(model, ignored_params={model.base, model.none})
    manifest = export_manifest(model.named_parameters(remove_duplicate=False))
    optimizer = make(model, timeout=20.0)
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.requires_grad else None
    optimizer.step()
    return manifest


def test_whatever_is_frozen_is_in_the_manifest(fake):
    """For patterns to match; it says nothing about worlds or types."""
    one, other = run_ranks(_anything, 2)
    assert one == other and [mesh["ranks"] for mesh in one["meshes"]] == [[0, 1]]
    mesh = one["meshes"][0]["name"]
    frozen = [item for item in one["parameters"] if not item.get("requires_grad", True)]
    assert frozen == [
        {"name": "base", "aliases": ["tied"], "shape": [6, 2], "dtype": "f32", "grad_dtype": "f32",
         "mesh": mesh, "placements": ["R"], "requires_grad": False},
        {"name": "none", "shape": [1, 3], "dtype": "f32", "grad_dtype": "f32", "mesh": mesh,
         "placements": ["R"], "requires_grad": False},
    ]  # fmt: skip
