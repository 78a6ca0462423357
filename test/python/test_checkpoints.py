"""States of the optimizer in one process, over the fake library: saving, loading, masters."""

import copy
import pickle

import pytest
import torch
from models import SPEC, Model, bits, make, same, set_gradients
from torch.distributed.checkpoint import state_dict as dcp

import stepc
from stepc.torch import Optimizer


def test_resume_is_bit_for_bit(fake):
    straight = Model(torch.bfloat16)
    optimizer = make(straight, "master {}")
    for step in range(20):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        set_gradients(straight, step)
        optimizer.step()
    first, second = Model(torch.bfloat16), Model(torch.bfloat16)
    optimizer = make(first, "master {}")
    for step in range(10):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        set_gradients(first, step)
        optimizer.step()
    saved = pickle.loads(pickle.dumps((first.state_dict(), optimizer.state_dict())))
    assert saved[1]["state"][0]["m"].dtype == torch.float32
    for order in ((0, 1), (1, 0)):
        again = make(second, "master {}")
        for item in order:
            (second, again)[item].load_state_dict(copy.deepcopy(saved[item]))
        assert again.param_groups[0]["lr"] == 0.1 / 10
        for step in range(10, 20):
            again.param_groups[0]["lr"] = 0.1 / (1 + step)
            set_gradients(second, step)
            again.step()
        assert same(bits(straight), bits(second))
        assert again.state[second.w]["step"].item() == 20


def test_loading_matches_names_and_refuses_other_states(fake):
    model, other = Model(), Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    saved = optimizer.state_dict()
    turned = Optimizer(reversed(list(other.named_parameters())), SPEC, Plain={"lr": 1})
    turned.load_state_dict(saved)
    assert torch.equal(turned.state[other.w]["m"], optimizer.state[model.w]["m"])
    assert turned.param_groups[1]["lr"] == 0.5
    bad = copy.deepcopy(saved)
    del bad["state"][0]["m"]
    with pytest.raises(stepc.StepcError, match="'w': the state dict has no state 'm'"):
        turned.load_state_dict(bad)
    bad = copy.deepcopy(saved)
    bad["state"][0]["v"] = torch.zeros(3)
    with pytest.raises(stepc.StepcError, match="has a state 'v' that the definition has not"):
        turned.load_state_dict(bad)
    bad = copy.deepcopy(saved)
    bad["state"][0]["m"] = bad["state"][0]["m"].bfloat16()
    with pytest.raises(stepc.StepcError, match="expected torch.float32, found torch.bfloat16"):
        turned.load_state_dict(bad)
    # The last state is wrong: the first ones stay as they were.
    bad = copy.deepcopy(saved)
    bad["state"][0]["m"] += 1
    bad["state"][1]["m"] = torch.zeros(3)
    with pytest.raises(stepc.StepcError, match="'v': state 'm': expected shape"):
        turned.load_state_dict(bad)
    assert torch.equal(turned.state[other.w]["m"], optimizer.state[model.w]["m"])
    bad = copy.deepcopy(saved)
    bad["param_groups"][0]["param_names"][0] = "x"
    with pytest.raises(stepc.StepcError, match="'w' is only in the optimizer"):
        turned.load_state_dict(bad)


def test_masters_follow_weights_that_were_written(fake):
    model = Model(torch.bfloat16)
    optimizer = make(model, "master {}")
    set_gradients(model, 0)
    optimizer.step()
    kept = optimizer.state[model.w]["master"].clone()
    assert torch.equal(kept.bfloat16(), model.w)
    assert not torch.equal(kept, kept.bfloat16().float())
    with torch.no_grad():
        model.w[0, 0] = 3.0
        for parameter in model.parameters():
            parameter.grad.zero_()
    optimizer.param_groups[0]["momentum"] = 0.0
    optimizer.step()
    master = optimizer.state[model.w]["master"]
    assert model.w[0, 0] == 3.0 and master[0, 0] == 3.0
    # What was not written keeps the bits below the parameter's precision.
    assert torch.equal(master.view(-1)[1:], kept.view(-1)[1:])


def test_asking_for_state_prepares_instead_of_stepping(fake):
    model = Model()
    before = bits(model)
    optimizer = make(model)
    saved = dcp.get_optimizer_state_dict(model, optimizer)
    assert same(before, bits(model)) and saved["state"]["w"]["step"] == 0
    set_gradients(model, 0)
    optimizer.step()
    other = Model()
    again = make(other)
    dcp.set_optimizer_state_dict(other, again, dcp.get_optimizer_state_dict(model, optimizer))
    assert torch.equal(again.state[other.w]["m"], optimizer.state[model.w]["m"])
    assert again.state[other.w]["step"] == 1
    flat = dcp.StateDictOptions(flatten_optimizer_state_dict=True)
    saved = dcp.get_optimizer_state_dict(model, optimizer, options=flat)
    assert saved["param_groups.b.lr"] == 0.5
    saved["param_groups.b.lr"] = 0.125
    dcp.set_optimizer_state_dict(other, again, saved, options=flat)
    assert again.param_groups[1]["lr"] == 0.125
