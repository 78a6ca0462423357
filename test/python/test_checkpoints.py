"""States of the optimizer in one process, over the fake library: saving, loading, masters."""

import copy
import pickle

import pytest
import torch
from models import SGD, SPEC, Model, bits, make, same, set_gradients
from torch.distributed import checkpoint
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


def saved_by(optimizer):
    return copy.deepcopy(optimizer.state_dict())


def split(model, order, rates=(0.25, 0.5)):
    """A group of its own for every matrix, with a rate of its own."""
    rates = dict(zip("wv", rates, strict=True))
    groups = [{"params": [(name, getattr(model, name))], "lr": rates[name]} for name in order]
    return Optimizer([*groups, {"params": [("b", model.b), ("s", model.s)], "lr": 1.0}], SPEC)


def test_groups_are_matched_by_their_parameters(fake):
    model, other = Model(), Model()
    optimizer, turned = split(model, "wv"), split(other, "vw", (9.0, 9.0))
    set_gradients(model, 0)
    optimizer.step()
    turned.load_state_dict(saved_by(optimizer))
    rates = {name: group["lr"] for group in turned.param_groups for name in group["param_names"]}
    assert rates == {"w": 0.25, "v": 0.5, "b": 1.0, "s": 1.0}
    assert [group["param_names"] for group in turned.param_groups] == [["v"], ["w"], ["b", "s"]]
    # Groups that are one now: only where their options agree.
    merged = make(Model())
    merged.prepare()
    before = saved_by(merged)
    with pytest.raises(
        stepc.StepcError,
        match=r"parameters 'w' and 'v' are in one group, and had different options .*: lr = 0.25 and 0.5",
    ):
        merged.load_state_dict(saved_by(optimizer))
    assert torch.equal(merged.state_dict()["state"][0]["m"], before["state"][0]["m"])
    merged.load_state_dict(saved_by(split(Model(), "wv", (0.25, 0.25))))
    assert [group["lr"] for group in merged.param_groups] == [0.25, 1.0]
    # A group that is several now.
    turned.load_state_dict(saved_by(make(Model())))
    assert [group["lr"] for group in turned.param_groups] == [0.1, 0.1, 0.5]


def test_distributed_checkpoint_mixes_no_groups(fake):
    model, other = Model(), Model()
    optimizer = split(model, "wv")
    turned = split(other, "vw", (9.0, 9.0))
    dcp.set_optimizer_state_dict(other, turned, dcp.get_optimizer_state_dict(model, optimizer))
    rates = {name: group["lr"] for group in turned.param_groups for name in group["param_names"]}
    assert rates == {"w": 0.25, "v": 0.5, "b": 1.0, "s": 1.0}
    # In either form torch passes a group the options of one saved group alone.
    for form in (dcp.StateDictOptions(), dcp.StateDictOptions(flatten_optimizer_state_dict=True)):
        other = Model()
        saved = dcp.get_optimizer_state_dict(model, optimizer, options=form)
        with pytest.raises(stepc.StepcError, match="'w' and 'v' are in one group, .*lr = 0.25 and 0.5"):
            dcp.set_optimizer_state_dict(other, make(other), saved, options=form)
        again = Model()
        merged, whole = make(other, lr=3.0), make(again, lr=0.125)
        saved = dcp.get_optimizer_state_dict(again, whole, options=form)
        dcp.set_optimizer_state_dict(other, merged, saved, options=form)
        assert [group["lr"] for group in merged.param_groups] == [0.125, 0.5]
        turned = split(again, "vw", (9.0, 9.0))
        saved = dcp.get_optimizer_state_dict(other, merged, options=form)
        dcp.set_optimizer_state_dict(again, turned, saved, options=form)
        assert [group["lr"] for group in turned.param_groups] == [0.125, 0.125, 0.5]
        assert all("@options" not in state for state in turned.state.values())
    other = Model()
    # Flat ones have every parameter's options.
    flat = dcp.StateDictOptions(flatten_optimizer_state_dict=True)
    merged = dcp.get_optimizer_state_dict(other, make(other), options=flat)
    dcp.set_optimizer_state_dict(model, optimizer, merged, options=flat)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.1, 0.5]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (torch.tensor(2.5), "expected a whole number of steps from 0 on, found 2.5"),
        (torch.tensor(-4), "expected a whole number of steps from 0 on, found -4"),
        (torch.tensor([1, 2]), r"expected a number in a 0-d tensor, found the shape \[2\]"),
        (torch.tensor(float("nan")), "expected a whole number of steps from 0 on, found nan"),
        (float("inf"), "expected a whole number of steps from 0 on, found inf"),
        ("3", "expected a number of steps, found str"),
        (torch.tensor(0, device="meta"), "expected a number in a 0-d tensor, found a meta tensor"),
    ],
)
def test_a_bad_step_leaves_nothing_half_loaded(fake, step, message):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    before, bad = saved_by(optimizer), saved_by(optimizer)
    bad["state"][0]["m"] += 100
    bad["state"][1]["step"] = step
    bad["param_groups"][0]["lr"] = 7.0
    with pytest.raises(stepc.StepcError, match=f"parameter 'v': state 'step': {message}"):
        optimizer.load_state_dict(bad)
    assert torch.equal(optimizer.state[model.w]["m"], before["state"][0]["m"])
    assert optimizer.param_groups[0]["lr"] == 0.1
    optimizer.state[model.v]["step"] = step
    with pytest.raises(stepc.StepcError, match=f"parameter 'v': state 'step': {message}"):
        optimizer.step()
    optimizer.state[model.v]["step"] = torch.tensor(1)
    bad["state"][1]["step"] = torch.tensor(3.0)
    optimizer.load_state_dict(bad)
    assert optimizer.state[model.v]["step"] == 3
    assert torch.equal(optimizer.state[model.w]["m"], before["state"][0]["m"] + 100)


def test_ill_formed_state_dicts_are_named(fake):
    optimizer = make(Model())
    bad = saved_by(optimizer)
    bad["param_groups"][1]["param_names"].pop()
    with pytest.raises(
        stepc.StepcError, match="group 1: expected a name for each of its 2 parameters, found 1"
    ):
        optimizer.load_state_dict(bad)
    bad = saved_by(optimizer)
    bad["param_groups"][0]["param_names"] = ["w", "w"]
    with pytest.raises(stepc.StepcError, match="'w': expected it in the state dict once"):
        optimizer.load_state_dict(bad)
    with pytest.raises(stepc.StepcError, match="found no 'param_groups'"):
        optimizer.load_state_dict({"state": {}})


ILL_FORMED = [
    (lambda saved: None, r"load_state_dict\(\): expected a state dict, found None"),
    (lambda saved: saved | {"state": []}, "the state dict's 'state': expected a dict, found list"),
    (lambda saved: saved | {"state": None}, "the state dict's 'state': expected a dict, found None"),
    (lambda saved: saved | {"state": {0: [1]}}, "the state dict's state of 0: expected a dict, found list"),
    (lambda saved: saved | {"param_groups": None}, "the state dict's 'param_groups': expected a list, found None"),
    (lambda saved: saved | {"param_groups": {}}, "the state dict's 'param_groups': expected a list, found dict"),
    (lambda saved: saved | {"param_groups": [None]}, "parameter group 0: expected a dict, found None"),
    *((lambda saved, key=key, value=value: saved | {"param_groups": [saved["param_groups"][0] | {key: value}]}, f"group 0: {text}")
      for key, value, text in (
          ("params", None, "'params': expected a list, found None"),
          ("params", [[1]], "'params': expected numbers or names, found list"),
          ("param_names", 3, "'param_names': expected a list, found int"),
          ("param_names", [3, 4], "'param_names': expected texts, found int"))),
]  # fmt: skip


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize(("change", "message"), ILL_FORMED)
def test_state_dicts_of_other_types_are_named(fake, steps, change, message):
    model = Model()
    optimizer = make(model)
    for seed in range(steps):
        set_gradients(model, seed)
        optimizer.step()
    with pytest.raises(stepc.StepcError, match=message):
        optimizer.load_state_dict(change(saved_by(optimizer)))
    set_gradients(model, 1)
    optimizer.step()


def test_a_load_that_fails_half_way_is_remembered(fake, monkeypatch):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    saved = saved_by(optimizer)

    def fail(target, source, where, *rest):
        raise MemoryError(where)

    with monkeypatch.context() as patch:
        patch.setattr("stepc.torch.checkpoint.copy_state", fail)
        with pytest.raises(MemoryError):
            optimizer.load_state_dict(saved)
    with pytest.raises(stepc.PoisonedError, match=r"an earlier load_state_dict\(\) failed: .*'w'"):
        optimizer.step()
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert optimizer.state[model.w]["step"] == 2


def test_masters_follow_weights_that_were_written(fake, way):
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


UNREADABLE = {
    "sparse": lambda: torch.eye(4, 3).to_sparse(),
    "sparse_csr": lambda: torch.eye(4, 3).to_sparse_csr(),
    "mkldnn": lambda: torch.eye(4, 3).to_mkldnn(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "quantized": lambda: torch.quantize_per_tensor(torch.eye(4, 3), 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_states_of_other_layouts_are_refused_before_anything_is_written(fake, kind):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    before, bad = saved_by(optimizer), optimizer.state_dict()
    bad = {
        "param_groups": copy.deepcopy(bad["param_groups"]),
        "state": {key: dict(one) for key, one in bad["state"].items()},
    }
    bad["state"][1]["m"] = bad["state"][1]["m"] + 1
    bad["state"][0]["m"] = UNREADABLE[kind]()
    bad["param_groups"][0]["lr"] = 7.0
    bad["state"] = dict(reversed(bad["state"].items()))  # the one that fits comes first
    text = r"parameter 'w': state 'm': expected (a dense tensor, found (the layout torch\.|a (quantized|nested) one)|torch.float32)"
    with pytest.raises(stepc.StepcError, match=text):
        optimizer.load_state_dict(bad)
    assert (
        torch.equal(optimizer.state[model.v]["m"], before["state"][1]["m"])
        and optimizer.param_groups[0]["lr"] == 0.1
    )
    # In the place of the bound one, and of a frozen parameter.
    kept, optimizer.state[model.w]["m"] = optimizer.state[model.w]["m"], UNREADABLE[kind]()
    with pytest.raises(stepc.StepcError, match="parameter 'w': state 'm': expected"):
        optimizer.step()
    optimizer.state[model.w]["m"] = kept
    frozen = Model()
    frozen.w.requires_grad_(False)
    with pytest.raises(stepc.StepcError, match="parameter 'w': state 'm': expected a dense tensor"):
        make(frozen).load_state_dict(bad | {"param_groups": before["param_groups"]})
    optimizer.step()


@pytest.mark.parametrize("kind", ["sparse", "mkldnn", "nested"])
def test_step_counts_of_other_layouts_are_refused(fake, kind):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    bad = saved_by(optimizer)
    bad["state"][0]["step"] = torch.tensor(3.0).to_sparse() if kind == "sparse" else UNREADABLE[kind]()
    with pytest.raises(stepc.StepcError, match="parameter 'w': state 'step': expected a (dense tensor|number in a 0-d)"):
        optimizer.load_state_dict(bad)
    assert optimizer.state[model.w]["step"] == 1


def test_errors_after_recover_ask_whether_parameters_were_replaced(real):
    model, other = Model(), Model()
    optimizer = Optimizer(model.named_parameters(), SGD)
    set_gradients(model, 0)
    optimizer.step()
    saved = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer._failure = stepc.TransportError("planted")
    with pytest.raises(
        stepc.PoisonedError,
        match=r"(?s)planted\ncall recover\(\) .*\nhint: load the model in place, .*assign=True",
    ):
        optimizer.step()
    optimizer.recover()
    optimizer.load_state_dict(saved_by(optimizer))
    model.load_state_dict(saved, assign=True)
    set_gradients(model, 1)
    optimizer.zero_grad()  # of the old ones
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
    with pytest.raises(
        stepc.GradientError,
        match=r"(?s)hint: were parameters replaced, by load_state_dict\(…, assign=True\)\?",
    ):
        optimizer.step()
    model.load_state_dict(other.state_dict())
    optimizer.param_groups[0]["params"] = list(model.parameters())
    set_gradients(model, 1)
    optimizer.step()
    # Where every gradient is missing it is asked without a failure before; else the error is about one
    # parameter.
    fresh = Optimizer(Model().named_parameters(), SGD)
    with pytest.raises(stepc.GradientError, match="were parameters replaced"):
        fresh.step()
    set_gradients(other, 0)
    fresh = Optimizer(other.named_parameters(), SGD)
    other.v.grad = None
    with pytest.raises(stepc.GradientError, match="'v'") as caught:
        fresh.step()
    assert "assign" not in str(caught.value)


TWO_RULES = """
optimizer Momentum(lr, momentum = 0.75) {
  state m : f32
  m = momentum * m + grad
  param = param - lr * m
}
optimizer Two(lr, beta1 = 0.8, beta2 = 0.9) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  param = param - lr * m / (sqrt(v) + 1e-8)
}
route {
  Momentum(lr = 1) for matrix
  Two(lr = 1) for rest
}
"""
GROUPS = {"wv": {"lr": 0.125, "momentum": 0.5}, "b": {"lr": 0.25, "betas": (0.5, 0.625), "name": "b"}, "s": {"lr": 0.5, "beta2": 0.75}}


def ordered(model, order, tensors, options):
    """The groups in an order; with the options of GROUPS, or with others."""
    groups = []
    for names in order:
        own = {
            key: torch.tensor(value) if tensors and key == "lr" else value
            for key, value in GROUPS[names].items()
        }
        own = own if options else {key: own[key] * 3 for key in ("lr",)} | {key: "" for key in own if key == "name"}
        groups.append({"params": [(name, getattr(model, name)) for name in names], **own})
    return Optimizer(groups, TWO_RULES)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("tensors", [False, True])
def test_groups_of_distributed_checkpoints_may_stand_in_another_order(real, tmp_path, flat, tensors):
    form = dcp.StateDictOptions(flatten_optimizer_state_dict=flat)
    model = Model()
    optimizer = ordered(model, ("wv", "b", "s"), tensors, True)
    for step in range(2):
        set_gradients(model, step)
        optimizer.step()
    keys = [set(group) for group in optimizer.param_groups]
    checkpoint.save(
        {"optimizer": dcp.get_optimizer_state_dict(model, optimizer, options=form)}, checkpoint_id=tmp_path
    )
    assert keys == [set(group) for group in optimizer.param_groups]
    set_gradients(model, 2)
    begun = bits(model)
    optimizer.step()
    for order in (("s", "wv", "b"), ("b", "s", "wv"), ("wv", "b", "s")):
        other = Model()
        other.load_state_dict(dict(zip(("w", "v", "b", "s"), begun, strict=True)))
        again = ordered(other, order, tensors, False)
        saved = {"optimizer": dcp.get_optimizer_state_dict(other, again, options=form)}
        checkpoint.load(saved, checkpoint_id=tmp_path)
        dcp.set_optimizer_state_dict(other, again, saved["optimizer"], options=form)
        for names, group in zip(order, again.param_groups, strict=True):
            assert {key: float(group[key]) for key in ("lr", "momentum", "beta1", "beta2") if key in group} == {
                "lr": GROUPS[names]["lr"], **({"momentum": 0.5} if names == "wv" else
                {"beta1": 0.5, "beta2": 0.625} if names == "b" else {"beta1": 0.8, "beta2": 0.75})
            }, (order, names)  # fmt: skip
            # A label comes where the group at that place had one, as with torch's optimizers.
            assert "@absent" not in list(group.values()) and ("name" in group) == (names == "b")
        set_gradients(other, 2)
        again.step()
        assert same(bits(other), bits(model)), order
        # Loaded again into one that has stepped.
        saved = {"optimizer": dcp.get_optimizer_state_dict(other, again, options=form)}
        checkpoint.load(saved, checkpoint_id=tmp_path)
        dcp.set_optimizer_state_dict(other, again, saved["optimizer"], options=form)
        assert again.state[other.w]["step"] == 2


def test_distributed_checkpoints_without_filled_groups_load(real, tmp_path, monkeypatch):
    """As older ones are: each group with its own keys."""
    model, other = Model(), Model()
    optimizer = ordered(model, ("wv", "b", "s"), False, True)
    set_gradients(model, 0)
    optimizer.step()
    with monkeypatch.context() as patch:
        patch.setattr("stepc.torch.optimizer.fill_absent", lambda groups: None)
        checkpoint.save({"optimizer": dcp.get_optimizer_state_dict(model, optimizer)}, checkpoint_id=tmp_path)
    again = ordered(other, ("wv", "b", "s"), False, False)
    saved = {"optimizer": dcp.get_optimizer_state_dict(other, again)}
    checkpoint.load(saved, checkpoint_id=tmp_path)
    dcp.set_optimizer_state_dict(other, again, saved["optimizer"])
    assert [group["lr"] for group in again.param_groups] == [0.125, 0.25, 0.5]
