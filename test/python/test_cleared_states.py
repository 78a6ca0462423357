"""``optimizer.state`` that a trainer clears, replaces or fills: followed, or an error that names the entry."""

import copy
from collections import defaultdict

import pytest
import torch

from models import SPEC, Model, bits, make, same, set_gradients
from torch.distributed.checkpoint import state_dict as dcp
from stepc import StepcError
from stepc.torch import Optimizer


def step(model, optimizer, seed):
    set_gradients(model, seed)
    optimizer.step()


def stepped(count=3, spec=SPEC, dtype=torch.float32):
    """A model and its optimizer after some steps."""
    model = Model(dtype)
    optimizer = make(model, spec)
    for seed in range(count):
        step(model, optimizer, seed)
    return model, optimizer


def like(model, spec=SPEC):
    """A new optimizer for a model of the same values."""
    other = Model(model.w.dtype)
    other.load_state_dict(model.state_dict())
    return other, make(other, spec)


def replace_all(optimizer):
    optimizer.state = defaultdict(dict)


def clear_each(optimizer):
    for states in optimizer.state.values():
        states.clear()


def empty_each(optimizer):
    for p in list(optimizer.state):
        optimizer.state[p] = {}


def delete_each(optimizer):
    for p in list(optimizer.state):
        del optimizer.state[p]


def pop_each(optimizer):
    while list(optimizer.state):
        optimizer.state.popitem()


def write_zeros(optimizer):
    for p in list(optimizer.state):
        optimizer.state[p] = {key: torch.zeros_like(value) for key, value in optimizer.state[p].items()}


def assign_zeros(optimizer):
    optimizer.state = {p: {k: torch.zeros_like(v) for k, v in s.items()} for p, s in optimizer.state.items()}


RESETS = [lambda o: o.state.clear(), replace_all, clear_each, empty_each, delete_each, pop_each, write_zeros, assign_zeros]


@pytest.mark.parametrize("reset", RESETS, ids=lambda one: one.__name__)
def test_states_that_are_cleared_begin_anew(fake, way, reset):
    model, optimizer = stepped()
    other, fresh = like(model)
    reset(optimizer)
    for seed in (7, 8):
        step(model, optimizer, seed)
        step(other, fresh, seed)
        assert same(bits(model), bits(other))
    assert optimizer.state[model.w]["step"] == 2 and optimizer.state[model.b]["step"] == 2
    assert optimizer.state[model.w]["m"].data_ptr() != 0
    mine, theirs = optimizer.state_dict()["state"], fresh.state_dict()["state"]
    assert mine.keys() == theirs.keys() and all(mine[key].keys() == theirs[key].keys() for key in mine)


@pytest.mark.parametrize("reset", RESETS, ids=lambda one: one.__name__)
def test_a_checkpoint_of_cleared_states_has_all_of_them(fake, reset):
    model, optimizer = stepped()
    reset(optimizer)
    saved = optimizer.state_dict()["state"]
    assert sorted(saved) == [0, 1, 2, 3] and all(state["step"] == 0 for state in saved.values())
    assert saved[0].keys() == {"m", "step"} and not saved[0]["m"].any()
    _, other = like(model)
    other.load_state_dict(optimizer.state_dict())


def test_one_of_several_begins_anew(fake, way):
    model, optimizer = stepped()
    del optimizer.state[model.w]
    step(model, optimizer, 9)
    assert [optimizer.state[p]["step"].item() for p in (model.w, model.v, model.b)] == [1, 4, 4]


def test_masters_begin_anew_with_the_parameter(fake, way):
    model, optimizer = stepped(spec="rule {} master", dtype=torch.bfloat16)
    other, fresh = like(model, "rule {} master")
    optimizer.state.clear()
    step(model, optimizer, 7)
    step(other, fresh, 7)
    assert same(bits(model), bits(other))
    assert torch.equal(optimizer.state[model.w]["master"], fresh.state[other.w]["master"])


@pytest.mark.parametrize("whole", [True, False])
def test_states_that_were_taken_out_can_be_put_back(fake, way, whole):
    model, optimizer = stepped()
    other, twin = like(model)
    twin.load_state_dict(optimizer.state_dict())
    kept = optimizer.state if whole else {p: dict(states) for p, states in optimizer.state.items()}
    optimizer.state = defaultdict(dict)
    step(model, optimizer, 5)
    assert kept[model.w]["step"] == 3
    optimizer.state = kept
    model.load_state_dict(other.state_dict())
    step(model, optimizer, 6)
    step(other, twin, 6)
    assert same(bits(model), bits(other)) and optimizer.state[model.w]["step"] == 4


def test_states_written_before_the_first_step_are_taken(fake, way):
    first, optimizer = stepped()
    saved = copy.deepcopy(optimizer.state_dict()["state"])
    model = Model()
    model.load_state_dict(first.state_dict())
    other = make(model)
    for number, p in enumerate(p for group in other.param_groups for p in group["params"]):
        other.state[p].update(saved[number])
    found = other.state_dict()["state"]
    assert all(torch.equal(found[key]["step"], saved[key]["step"]) for key in saved)
    step(first, optimizer, 4)
    step(model, other, 4)
    assert same(bits(first), bits(model)) and other.state[model.w]["step"] == 4


def test_states_follow_a_parameter_that_the_trainer_exchanges(fake, way):
    model, optimizer = stepped()
    group, old = optimizer.param_groups[0], model.w
    states = optimizer.state[old]
    states["m"] = states["m"] + 1
    del optimizer.state[old]
    new = torch.nn.Parameter(old.detach().clone())
    model.w = group["params"][0] = new
    optimizer.state[new] = states
    expected = 0.9 * states["m"].clone()
    set_gradients(model, 3)
    optimizer.step()
    torch.testing.assert_close(optimizer.state[new]["m"], expected + new.grad)
    assert optimizer.state[new]["step"] == 4 and old not in optimizer.state


def test_an_exchanged_parameter_whose_states_were_deleted_begins_anew(fake):
    model, optimizer = stepped()
    del optimizer.state[model.w]
    model.w = optimizer.param_groups[0]["params"][0] = torch.nn.Parameter(model.w.detach().clone())
    step(model, optimizer, 3)
    assert optimizer.state[model.w]["step"] == 1 and optimizer.state[model.v]["step"] == 4


def test_states_of_frozen_parameters_can_be_cleared(fake, way):
    model, optimizer = stepped()
    model.w.requires_grad_(False)
    step(model, optimizer, 3)
    assert optimizer.state[model.w]["step"] == 3
    del optimizer.state[model.w]
    step(model, optimizer, 4)
    assert model.w not in optimizer.state
    model.w.requires_grad_(True)
    step(model, optimizer, 5)
    assert optimizer.state[model.w]["step"] == 1 and optimizer.state[model.v]["step"] == 6


WRONG = {
    "of another rule": (lambda s: {"exp_avg": s["m"], "step": s["step"]}, "expected the states m, step, found exp_avg, step"),
    "a state too many": (lambda s: s | {"v": s["m"]}, "expected the states m, step, found m, step, v"),
    "of another shape": (lambda s: s | {"m": torch.zeros(2)}, r"state 'm': expected .*\(4, 3\).*found .*\(2,\)"),
    "a list": (lambda s: [s["m"]], "expected a dict of states, found list"),
    "a broken count": (lambda s: s | {"step": 1.5}, "state 'step': expected a whole number of steps from 0 on, found 1.5"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_entries_that_do_not_fit_are_errors(fake, way, kind):
    wrong, message = WRONG[kind]
    model, optimizer = stepped()
    before, kept = bits(model), optimizer.state[model.w]
    optimizer.state[model.w] = wrong(dict(kept))
    set_gradients(model, 3)
    for call in (optimizer.step, optimizer.step, optimizer.state_dict):
        with pytest.raises(StepcError, match=f"parameter 'w': (optimizer.state: )?{message}"):
            call()
    assert same(before, bits(model)) and optimizer.state[model.v]["step"] == 3
    optimizer.state[model.w] = kept
    optimizer.step()
    assert optimizer.state[model.w]["step"] == 4
    fresh = make(Model())
    fresh.state[fresh.param_groups[0]["params"][0]] = wrong(dict(kept))
    with pytest.raises(StepcError, match="parameter 'w': "):
        fresh.state_dict()


def test_a_state_that_is_missing_is_not_saved_without_a_word(fake):
    model, optimizer = stepped()
    del optimizer.state[model.w]["m"]
    with pytest.raises(StepcError, match="parameter 'w': optimizer.state: expected the states m, step, found step"):
        optimizer.state_dict()


def test_entries_of_no_parameter_are_errors(fake):
    model, optimizer = stepped()
    assert optimizer.state[torch.zeros(2)] == {}  # asking is harmless
    step(model, optimizer, 3)
    optimizer.state_dict()
    for key, found in ((torch.zeros(2), r"a tensor of shape \[2\]"), ("ema", "'ema'")):
        optimizer.state[key] = {"m": torch.zeros(2)}
        with pytest.raises(StepcError, match=f"entries of parameters in param_groups, found one of {found}"):
            optimizer.state_dict()
        del optimizer.state[key]
    with pytest.raises(TypeError, match="expected a dict of states by parameter, found list"):
        optimizer.state = []


@pytest.mark.parametrize("some", [True, False])
def test_distributed_checkpoints_have_states_that_were_cleared(fake, some):
    model, optimizer = stepped()
    if some:
        del optimizer.state[model.w]
    else:
        optimizer.state.clear()
    found = dcp.get_optimizer_state_dict(model, optimizer)["state"]
    assert found.keys() == {"w", "v", "b", "s"} and all("@options" in states for states in found.values())
    assert [found[name]["step"].item() for name in ("w", "v")] == ([0, 3] if some else [0, 0])


def test_graphs_go_on_with_the_tensors_that_they_captured(fake, way):
    """With capturable=True states begin anew where they are."""
    model, optimizer = stepped()
    optimizer._binding._in_place = True
    m, counts = optimizer.state[model.w]["m"], optimizer._binding.steps
    optimizer.state.clear()
    optimizer.state_dict()
    assert optimizer.state[model.w]["m"] is m and not m.any()
    assert optimizer._binding.steps is counts and not counts.any()
    step(model, optimizer, 3)
    assert optimizer.state[model.w]["step"] == 1 and optimizer.state[model.w]["m"] is m


def test_copies_of_the_states_are_plain(fake):
    model, optimizer = stepped()
    for one in (copy.copy(optimizer.state), optimizer.state.copy(), copy.deepcopy(optimizer.state)):
        assert type(one) is defaultdict and len(one) == 4
    assert isinstance(optimizer, Optimizer) and model.w in optimizer.state


def test_forgotten_states_begin_anew(fake):
    model, optimizer = stepped()
    optimizer.forget("w")
    step(model, optimizer, 3)
    assert optimizer.state[model.w]["step"] == 1 and optimizer.state[model.v]["step"] == 4
