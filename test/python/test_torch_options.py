"""What torch's trainers and schedulers put into groups: ``betas``, keys that ask for nothing, texts."""

import copy
import math
import pickle

import pytest
import torch
from models import SPEC, Model, adamw, bits, make, same, set_gradients
from torch.distributed.checkpoint import state_dict as dcp
from torch.optim.lr_scheduler import CyclicLR, LambdaLR, OneCycleLR

import stepc
from stepc.torch import Optimizer
from stepc.torch.group import Group, with_pair

ADAMW = adamw(0.8, 0.9)
OTHERS = """
optimizer Momentum(lr, momentum = 0.75) {
  state m : f32
  m = momentum * m + grad
  param = param - lr * m
}
optimizer Plain(lr) { param = param - lr * grad }
"""
ALL = ADAMW + "route { AdamW(lr = 1e-3) for rest }"
MIXED = ADAMW + OTHERS + 'route {\n Plain(lr = 1e-3) for "s"\n Momentum(lr = 1e-3) for matrix\n AdamW(lr = 1e-3) for rest\n}'


def adamw(model, **options):
    return Optimizer(model.named_parameters(), ALL, **options)


def by_name(optimizer):
    return {name: group for group in optimizer.param_groups for name in group["param_names"]}


def train(model, optimizer, seeds, scheduler=None):
    for seed in seeds:
        set_gradients(model, seed)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def test_a_group_reads_and_writes_the_pair():
    group = Group({"lr": 1.0, "beta1": 0.8, "beta2": 0.9})
    assert group["betas"] == group.get("betas") == (0.8, 0.9) and "betas" in group
    assert dict(group) == {"lr": 1.0, "beta1": 0.8, "beta2": 0.9} and "betas" not in list(group)
    group["betas"] = [0.5, 0.75]
    assert (group["beta1"], group["beta2"]) == (0.5, 0.75)
    group["beta1"] = 0.25
    assert group["betas"] == (0.25, 0.75)
    group.update({"betas": (0.1, 0.2)}, lr=3.0)
    group |= {"betas": (*group["betas"][:1], 0.3)}
    assert dict(group) == {"lr": 3.0, "beta1": 0.1, "beta2": 0.3}
    assert group.setdefault("betas", (9, 9)) == (0.1, 0.3) and group.setdefault("name", "x") == "x"
    for wrong in ((0.5,), 0.5, "ab", (1, 2, 3), None):
        with pytest.raises(TypeError, match="expected two numbers for 'betas', found"):
            group["betas"] = wrong
    assert group["betas"] == (0.1, 0.3)
    # Without the two it is a key like any other; schedulers write what they read.
    one, none = Group({"momentum": 0.5}), Group({"lr": 1.0})
    for group in (one, none):
        assert "betas" not in group and group.get("betas", 7) == 7
        group["betas"] = (0.25, *group["betas"][1:])
    assert one == {"momentum": 0.25} and none == {"lr": 1.0, "betas": (0.25,)}
    with pytest.raises(KeyError, match="other"):
        one["other"]


def test_copies_of_a_group_have_the_pair():
    group = Group({"beta1": 0.5, "beta2": 0.25, "names": ["a"]})
    for copied in (copy.copy(group), group.copy(), copy.deepcopy(group), group | {}):
        assert type(copied) is Group and copied["betas"] == (0.5, 0.25) and dict(copied) == dict(group)
        copied["betas"] = (1, 2)
        assert copied["beta1"] == 1 and group["beta1"] == 0.5
    assert copy.copy(group)["names"] is group["names"] is not copy.deepcopy(group)["names"]
    # Pickles need no class to be read. They say it twice, which is taken where both agree.
    pickled = pickle.loads(pickle.dumps(group))
    assert type(pickled) is dict and pickled == {"betas": (0.5, 0.25), **group}
    assert with_pair(pickled, ("beta1", "beta2"), "here") == with_pair(copy.copy(group), ("beta1", "beta2"), "here") == dict(group)
    for other in ({"beta1": 0.75}, {"betas": (0.5, 0.5)}, {"betas": "ab"}):
        with pytest.raises(TypeError, match="here: expected "):
            with_pair(pickled | other, ("beta1", "beta2"), "here")


def test_betas_stand_for_beta1_and_beta2_in_arguments_and_groups(real):
    model = Model()
    for options in ({"betas": (0.5, 0.75)}, {"AdamW": {"betas": [0.5, 0.75]}}, {"beta1": 0.5, "beta2": 0.75},
                    {"betas": (0.1, 0.2), "AdamW": {"beta1": 0.5, "beta2": 0.75}}):  # fmt: skip
        (group,) = adamw(model, **options).param_groups
        assert (group["beta1"], group["beta2"]) == group["betas"] == (0.5, 0.75), options
    groups = [{"params": [("w", model.w), ("b", model.b)], "betas": (0.5, 0.75), "lr": 1.0},
              {"params": [("v", model.v), ("s", model.s)]}]  # fmt: skip
    optimizer = Optimizer(groups, MIXED, betas=(0.25, 0.5))
    found = by_name(optimizer)
    assert found["b"]["betas"] == (0.5, 0.75) and found["b"]["lr"] == 1.0
    assert "betas" not in found["w"] and "beta1" not in found["w"]
    optimizer = Optimizer([{"params": [("w", model.w)]}], ALL)
    optimizer.add_param_group({"params": [("b", model.b)], "betas": (0.5, 0.75)})
    assert [group["betas"] for group in optimizer.param_groups] == [(0.8, 0.9), (0.5, 0.75)]
    # What the step takes is what either says.
    first, second = Model(), Model()
    one, other = adamw(first, betas=(0.5, 0.75)), adamw(second)
    other.param_groups[0]["betas"] = (0.5, 0.75)
    train(first, one, range(2))
    train(second, other, range(2))
    one.param_groups[0]["beta1"] = 0.125
    other.param_groups[0]["betas"] = (0.125, *other.param_groups[0]["betas"][1:])
    train(first, one, range(2, 4))
    train(second, other, range(2, 4))
    assert same(bits(first), bits(second))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betas": 0.5}, r"Optimizer\(\): expected two numbers for 'betas', found 0.5"),
        ({"betas": (0.5, 0.6, 0.7)}, r"expected two numbers for 'betas', found \(0.5, 0.6, 0.7\)"),
        ({"AdamW": {"betas": (0.5, 0.6), "beta2": 0.5}}, "AdamW=: expected 'betas' or 'beta2', found both"),
        ({"betas": ("0.5", 0.6)}, "route AdamW: expected a number for 'beta1', found '0.5'"),
        ({"Momentum": {"betas": (0.5, 0.6)}}, "Momentum=: 'betas' is no hyperparameter of Momentum"),
        ({"maximize": True}, r"Optimizer\(\): expected maximize=False, found maximize=True\nhint: .*negate grad"),
        ({"differentiable": True}, "expected differentiable=False, found differentiable=True"),
        ({"AdamW": {"maximize": True}}, "AdamW=: expected maximize=False"),
        ({"fused": "yes"}, "expected True, False or None, found fused='yes'"),
        ({"maximize": 1}, "expected maximize=False, found maximize=1"),
    ],
)  # fmt: skip
def test_options_that_ask_for_something_else_are_refused(real, options, message):
    with pytest.raises((TypeError, stepc.HyperparameterError), match=message):
        Optimizer(Model().named_parameters(), MIXED, **options)


HARMLESS = {"foreach": None, "fused": True, "capturable": False, "differentiable": False, "maximize": False}


def test_keys_of_torchs_optimizers_are_accepted_where_they_ask_for_nothing(fake):
    model = Model()
    rest = {key: value for key, value in HARMLESS.items() if key != "capturable"}
    optimizer = make(model, **rest)
    assert not HARMLESS.keys() & optimizer.param_groups[0].keys()
    group = {"params": list(model.named_parameters()), "lr": 0.5, **HARMLESS}
    optimizer = Optimizer([group], SPEC)
    assert all(HARMLESS.items() <= one.items() for one in optimizer.param_groups)
    set_gradients(model, 0)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    # How a step is carried out is not loaded; it loads where there are no such keys, and the other way round.
    plain = make(Model())
    saved["param_groups"][0]["capturable"] = True
    plain.load_state_dict(saved)
    assert not HARMLESS.keys() & plain.param_groups[0].keys()
    optimizer.load_state_dict(plain.state_dict())
    assert all(HARMLESS.items() <= one.items() for one in optimizer.param_groups)
    for key in ("maximize", "differentiable", "amsgrad"):
        bad = copy.deepcopy(saved)
        bad["param_groups"][1][key] = True
        bad["param_groups"][0]["lr"] = 9.0
        with pytest.raises(stepc.StepcError, match=f"the state dict: expected {key}=False, found {key}=True"):
            plain.load_state_dict(bad)
        with pytest.raises(TypeError, match=f"a parameter group: expected {key}=False"):
            Optimizer([{"params": [("w", model.w)], "lr": 1.0, key: True}], SPEC)
        with pytest.raises(TypeError, match=f"a parameter group: expected {key}=False"):
            plain.add_param_group({"params": [("x", torch.nn.Parameter(torch.zeros(2, 2)))], key: True})
        with pytest.raises(TypeError, match=f"a parameter group: expected {key}=False"):
            plain.param_groups[0][key] = True
    assert plain.param_groups[0]["lr"] == 0.5


def test_capturable_is_the_optimizers(fake):
    model = Model()
    group = {"params": [("w", model.w)], "lr": 1.0, "capturable": True}
    with pytest.raises(
        TypeError, match="expected capturable=False, found capturable=True\nhint: pass capturable"
    ):
        Optimizer([group], SPEC)
    assert Optimizer([group], SPEC, capturable=True).param_groups[0]["capturable"] is True
    optimizer = make(model)
    optimizer.param_groups[1]["capturable"] = True
    set_gradients(model, 0)
    with pytest.raises(TypeError, match="parameter group 1: expected capturable=False"):
        optimizer.step()


def schedulers(optimizer, kind):
    if kind is OneCycleLR:
        return OneCycleLR(optimizer, max_lr=0.25, total_steps=20)
    return CyclicLR(optimizer, base_lr=0.01, max_lr=0.25, step_size_up=7, mode="exp_range", gamma=0.9)


@pytest.mark.parametrize("kind", [OneCycleLR, CyclicLR])
def test_schedulers_cycle_as_with_torchs_adamw(real, kind):
    model, theirs = Model(), Model()
    optimizer = adamw(model)
    other = torch.optim.AdamW(theirs.named_parameters(), betas=(0.8, 0.9), weight_decay=0.1)
    mine, torchs = schedulers(optimizer, kind), schedulers(other, kind)
    seen = set()
    for step in range(20):
        (group,), (their,) = optimizer.param_groups, other.param_groups
        for one, two in ((group["lr"], their["lr"]), (group["beta1"], their["betas"][0]), (group["beta2"], their["betas"][1])):
            assert math.isclose(one, two, rel_tol=0, abs_tol=1e-12), step
        assert group["betas"] == (group["beta1"], group["beta2"])
        seen.add(group["beta1"])
        for one in (model, theirs):
            set_gradients(one, step)
        optimizer.step()
        other.step()
        if step < 19:
            mine.step()
            torchs.step()
    assert len(seen) > 10
    for a, b in zip(model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [OneCycleLR, CyclicLR])
def test_schedulers_cycle_momentum_of_every_rule(real, kind):
    model, theirs = Model(), Model()
    optimizer = Optimizer(model.named_parameters(), MIXED)
    others = {
        "w": torch.optim.SGD([theirs.w], lr=1e-3, momentum=0.75),
        "b": torch.optim.AdamW([theirs.b], lr=1e-3),
    }
    steps = [schedulers(optimizer, kind)] + [schedulers(one, kind) for one in others.values()]
    for step in range(19):
        set_gradients(model, step)
        optimizer.step()
        found = by_name(optimizer)
        assert found["w"]["momentum"] == others["w"].param_groups[0]["momentum"]
        assert found["b"]["beta1"] == others["b"].param_groups[0]["betas"][0]
        assert found["s"].keys() >= {"lr", "max_lr" if kind is OneCycleLR else "max_momentum"}
        for one in others.values():
            one.step()
        for one in steps:
            one.step()
    # What schedulers wrote is saved and loaded.
    again = Optimizer(Model().named_parameters(), MIXED)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for name, group in by_name(again).items():
        for key in ("lr", "momentum", "beta1", "beta2", "max_momentum"):
            assert group.get(key) == by_name(optimizer)[name].get(key), (name, key)


def test_cycles_go_on_from_a_checkpoint(real):
    """Plain state dicts and both forms of distributed ones."""

    def begin():
        model = Model()
        optimizer = adamw(model)
        return model, optimizer, schedulers(optimizer, OneCycleLR)

    straight, optimizer, scheduler = begin()
    train(straight, optimizer, range(12), scheduler)
    for form in (None, dcp.StateDictOptions(), dcp.StateDictOptions(flatten_optimizer_state_dict=True)):
        model, optimizer, scheduler = begin()
        train(model, optimizer, range(6), scheduler)
        other, again, next_one = begin()
        other.load_state_dict(model.state_dict())
        next_one.load_state_dict(scheduler.state_dict())
        if form is None:
            again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        else:
            saved = dcp.get_optimizer_state_dict(model, optimizer, options=form)
            dcp.set_optimizer_state_dict(other, again, copy.deepcopy(saved), options=form)
        assert again.param_groups[0]["betas"] == optimizer.param_groups[0]["betas"] != (0.8, 0.9)
        train(other, again, range(6, 12), next_one)
        assert same(bits(other), bits(straight))


def test_states_of_torchs_adamw_bring_its_betas(real):
    """A saved pair is read; what torch's optimizer asks for beside hyperparameters has to be nothing."""
    model, theirs = Model(), Model()
    optimizer = adamw(model)
    saved = copy.deepcopy(adamw(Model()).state_dict())
    group = saved["param_groups"][0]
    torchs = torch.optim.AdamW(theirs.named_parameters(), betas=(0.5, 0.75)).state_dict()["param_groups"][0]
    keys = ("betas", "amsgrad", "foreach", "maximize", "capturable", "differentiable", "fused")
    for key in ("beta1", "beta2"):
        del group[key]
    group |= {key: torchs[key] for key in keys}
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.75) and optimizer.param_groups[0]["beta1"] == 0.5
    group["beta1"] = 0.5
    with pytest.raises(stepc.StepcError, match="the state dict: expected 'betas' or 'beta1', found both"):
        optimizer.load_state_dict(saved)
    del group["beta1"]
    for wrong, text in (
        (0.5, "expected two numbers for 'betas', found 0.5"),
        (("0.5", 1), "expected a number for 'beta1'"),
    ):
        group["betas"] = wrong
        with pytest.raises(stepc.StepcError, match=text):
            optimizer.load_state_dict(saved)
    # A pair for a route that has no such hyperparameters.
    saved = copy.deepcopy(make_momentum(Model()).state_dict())
    saved["param_groups"][0]["betas"] = (0.5, 0.75)
    with pytest.raises(stepc.StepcError, match="found 'betas', which the route has not"):
        make_momentum(Model()).load_state_dict(saved)


def make_momentum(model):
    rule = OTHERS[: OTHERS.index("optimizer Plain")]
    return Optimizer(model.named_parameters(), rule + "route { Momentum(lr = 1) for rest }")


TEXTS = ["0.02", "1e-3", b"0.5", bytearray(b"1"), "fast", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_no_numbers(fake, text):
    found = "found .*" if isinstance(text, str) else "found b|found bytearray"
    for options in ({"lr": text}, {"Momentum": {"momentum": text}}):
        with pytest.raises(
            (stepc.HyperparameterError, TypeError), match=f"expected a number for '(lr|momentum)', {found}"
        ):
            make(Model(), **options)
    model = Model()
    with pytest.raises(stepc.HyperparameterError, match="expected a number for 'lr'"):
        Optimizer([{"params": list(model.named_parameters()), "lr": text}], SPEC)
    optimizer = make(model)
    with pytest.raises(stepc.HyperparameterError, match="expected a number for 'lr'"):
        optimizer.add_param_group({"params": [("x", torch.nn.Parameter(torch.zeros(2, 2)))], "lr": text})
    set_gradients(model, 0)
    before = bits(model)
    optimizer.param_groups[0]["momentum"] = text
    with pytest.raises(
        stepc.HyperparameterError, match="parameter group 0 .*: expected a number for 'momentum'"
    ):
        optimizer.step()
    assert same(bits(model), before)
    optimizer.param_groups[0]["momentum"] = 0.5
    LambdaLR(optimizer, lambda epoch: 1.0)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["lr"] = text
    for one in (optimizer, make(Model())):
        with pytest.raises(stepc.StepcError, match="expected a number for 'lr' in the state dict"):
            one.load_state_dict(saved)


def test_texts_of_numpy_are_no_numbers(fake):
    numpy = pytest.importorskip("numpy")
    for text in (numpy.str_("0.5"), numpy.array("0.5"), numpy.array(b"0.5")):
        with pytest.raises(stepc.HyperparameterError, match="expected a number for 'lr'"):
            make(Model(), lr=text)
    model = Model()
    optimizer = make(model, lr=numpy.float64(0.5), Momentum={"momentum": numpy.array(0.25)})
    set_gradients(model, 0)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = numpy.array("0.5")
    with pytest.raises(stepc.HyperparameterError, match="expected a number for 'lr'"):
        optimizer.step()
