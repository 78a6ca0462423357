"""Options of groups over the fake library: for all routes, of others, and from foreign state dicts."""

import copy

import pytest
import torch
from models import SPEC, Model, make, set_gradients
from torch import nn

import stepc
from stepc.torch import Optimizer


def rates(optimizer):
    return {name: group["lr"] for group in optimizer.param_groups for name in group["param_names"]}


def test_a_hyperparameter_for_all_routes(fake):
    model = Model()
    optimizer = Optimizer(model.named_parameters(), SPEC, lr=0.25)
    assert rates(optimizer) == {"w": 0.25, "v": 0.25, "b": 0.25, "s": 0.25}
    optimizer = Optimizer(model.named_parameters(), SPEC, lr=0.25, momentum=0.5, Plain={"lr": 2.0})
    assert rates(optimizer) == {"w": 0.25, "v": 0.25, "b": 2.0, "s": 2.0}
    assert [group.get("momentum") for group in optimizer.param_groups] == [0.5, None]
    # A group's own wins over both.
    groups = [{"params": [("w", model.w)], "lr": 3.0}, {"params": [("v", model.v), ("b", model.b)]}]
    assert rates(Optimizer(groups, SPEC, lr=torch.tensor(0.5))) == {"w": 3.0, "v": 0.5, "b": 0.5}
    set_gradients(model, 0)
    optimizer.step()


def test_a_parameter_is_in_one_group(fake):
    """As with torch's optimizers, whose error it is: options of one of the two groups would be lost."""
    model, twice = Model(), "some parameters appear in more than one parameter group: 'w'"
    named = list(model.named_parameters())
    for other, text in (("w", "$"), ("module.w", "$"), ("tied", ", in the second one as 'tied'$")):
        with pytest.raises(ValueError, match=twice + text):
            Optimizer([{"params": named, "lr": 0.1}, {"params": [(other, model.w)], "lr": 9.0}], SPEC)
        optimizer = make(model)
        with pytest.raises(ValueError, match=twice + text):
            optimizer.add_param_group({"params": [(other, model.w)], "lr": 9.0})
    # Within a group a tied tensor may have several names.
    model.tied = model.w
    optimizer = make(nn.ModuleDict({"a": model}), SPEC)
    tied = Optimizer(model.named_parameters(remove_duplicate=False), SPEC, lr=0.5)
    assert rates(tied) == {"w": 0.5, "v": 0.5, "b": 0.5, "s": 0.5}
    with pytest.raises(ValueError, match="more than one parameter group: 'a.w'"):
        optimizer.add_param_group({"params": [("other", nn.Parameter(torch.zeros(2, 2))), ("more", model.w)]})
    assert rates(optimizer) == {"a.w": 0.1, "a.v": 0.1, "a.b": 0.5, "a.s": 0.5}
    tied.param_groups[1]["params"][0] = model.w
    set_gradients(model, 0)
    with pytest.raises(ValueError, match="more than one parameter group: 'w', in the second one as 'b'"):
        tied.step()


def test_added_parameters_have_names_of_their_own(fake):
    model = Model()
    model.tied = model.w
    optimizer = Optimizer(model.named_parameters(remove_duplicate=False), SPEC, lr=0.5)
    for name in ("w", "module.w", "tied"):
        with pytest.raises(ValueError, match=r"expected a name that no parameter .* has, found that of a parameter of shape \[4, 3\]"):
            optimizer.add_param_group({"params": [(name, nn.Parameter(torch.zeros(3, 3)))]})
    optimizer.add_param_group({"params": [("other", nn.Parameter(torch.zeros(3, 3)))]})
    assert optimizer.routes["other"] == "Momentum"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 1.0}, "'rate' is no hyperparameter, rule or route of this definition: expected one "
                        "of lr, momentum with a number, or of Momentum, Plain with a dict"),
        ({"momentun": 0.5}, "\nhint: 'momentun' may stand for 'momentum'"),
        ({"Plane": 0.5}, "\nhint: 'Plane' may stand for 'Plain'"),
        ({"Plane": {"lr": 0.5}}, "'Plane' is no rule or route of this definition: expected Momentum, "
                                 "Plain\nhint: 'Plane' may stand for 'Plain'"),
        ({"learning_rate": 0.5}, "\nhint: 'learning_rate' may stand for 'lr'"),
        ({"taget": "cpu"}, "\nhint: 'taget' may stand for 'target'"),
        ({"Plain": {"learning_rate": 0.5}}, "\nhint: 'learning_rate' may stand for 'lr'"),
        ({"Plain": {"momentum": 0.5}}, "Plain=: 'momentum' is no hyperparameter of Plain: expected lr"),
    ],
)  # fmt: skip
def test_options_that_no_route_has_are_refused(fake, options, message):
    with pytest.raises(TypeError, match=message):
        make(Model(), **options)


def test_a_groups_route_is_a_claim_that_is_checked(fake):
    """`route` is a key that any group may have, in the constructor and later."""
    model = Model()
    wrong = {"params": [("b", model.b)], "route": "Momentum", "lr": 0.25, "momentum": 0.5}
    text = ("expected parameters of route 'Momentum' in a group that says so, found 'b' of route "
            "'Plain': the definition routes parameters, not the group")  # fmt: skip
    with pytest.raises(ValueError, match=text):
        Optimizer([{"params": [("w", model.w)]}, wrong], SPEC, lr=1.0)
    optimizer = Optimizer([{"params": [("w", model.w)]}], SPEC, lr=1.0)
    with pytest.raises(ValueError, match=text):
        optimizer.add_param_group(dict(wrong))
    with pytest.raises(TypeError, match="'momentum' is no hyperparameter of Plain"):
        optimizer.add_param_group(wrong | {"route": "Plain"})
    with pytest.raises(TypeError, match=r"expected \(name, tensor\) pairs"):
        optimizer.add_param_group({"params": [model.b], "route": "Plain"})
    assert optimizer.routes == {"w": "Momentum"}
    # The right one gets the route's defaults.
    optimizer.add_param_group({"params": [("v", model.v)], "route": "Momentum", "momentum": 0.5})
    assert optimizer.routes == {"w": "Momentum", "v": "Momentum"}
    assert rates(optimizer) == {"w": 1.0, "v": 1.0}
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.5]
    set_gradients(model, 0)
    optimizer.step()


def test_parameters_without_names_are_refused(fake):
    model = Model()
    for given in (model.parameters(), list(model.parameters()), [{"params": model.parameters()}],
                  [{"params": [model.w]}], model.w, model):  # fmt: skip
        with pytest.raises(TypeError, match=r"expected \(name, tensor\) pairs, .*\n"
                           r"hint: pass model.named_parameters\(\) instead of"):  # fmt: skip
            Optimizer(given, SPEC, lr=1.0)


def test_keys_of_others_are_kept(fake):
    model = Model()
    own = {"lr_scale": 0.5, "name": "decay", "param_group_name": "x", "initial_lr": 3.0, "swa_lr": 1.0}
    optimizer = Optimizer(
        [{"params": list(model.named_parameters()), "lr": 1.0, **own}], SPEC
    )
    for group in optimizer.param_groups:
        assert own.items() <= group.items()
    optimizer.param_groups[0]["anything"] = [1, 2]
    set_gradients(model, 0)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    again = make(Model())
    with pytest.raises(stepc.StepcError, match="found 'anything', which the route has not"):
        again.load_state_dict(saved)
    again.param_groups[0]["anything"] = None
    again.load_state_dict(saved)
    assert own.items() <= again.param_groups[0].items()
    assert again.param_groups[0]["anything"] == [1, 2]
    with pytest.raises(TypeError, match="'lr_sclae' is no hyperparameter of Momentum"):
        Optimizer([{"params": [("w", model.w)], "lr_sclae": 0.5}], SPEC)


def _without_state(optimizer, **options):
    """A state dict in which one group has other options."""
    saved = copy.deepcopy(optimizer.state_dict())
    group = saved["param_groups"][0]
    for key, value in options.items():
        if value is None:
            del group[key]
        else:
            group[key] = value
    return saved


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": None}, r"parameter group 0 \(route Momentum\): expected the hyperparameters lr, "
                             "momentum in the state dict, found no 'momentum'"),
        ({"betas": (0.9, 0.99)}, "expected the hyperparameters lr, momentum in the state dict, found "
                                 "'betas', which the route has not"),
        ({"mometum": 0.5, "momentum": None},
         "found 'mometum', which the route has not and found no 'momentum'\n"
         "hint: 'mometum' may stand for 'momentum'"),
        ({"lr": "fast"}, "expected a number for 'lr' in the state dict, found 'fast'"),
    ],
)  # fmt: skip
def test_other_hyperparameters_in_a_state_dict_are_refused(fake, options, message):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    bad = _without_state(optimizer, **options)
    bad["state"][0]["m"] += 1
    bad["param_groups"][1]["lr"] = 9.0
    before = optimizer.state[model.w]["m"].clone()
    with pytest.raises(stepc.StepcError, match=message):
        optimizer.load_state_dict(bad)
    assert torch.equal(optimizer.state[model.w]["m"], before)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]


ADAMW = """
optimizer AdamW(lr, beta1 = 0.8, beta2 = 0.9, eps = 1e-8, weight_decay = 0.1) {
  state exp_avg : f32
  state exp_avg_sq : f32
  exp_avg = lerp(exp_avg, grad, 1 - beta1)
  exp_avg_sq = lerp(exp_avg_sq, grad * grad, 1 - beta2)
  let update = (exp_avg / (1 - beta1 ^ step)) / (sqrt(exp_avg_sq / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
route { AdamW(lr = 1e-3) for rest }
"""


def test_torchs_adamw_is_refused_with_a_hint(real):
    """Its states have the same names, but what they mean is the definition's affair."""
    model = Model()
    optimizer = Optimizer(model.named_parameters(), ADAMW)
    for named in (True, False):
        parameters = model.named_parameters() if named else model.parameters()
        other = torch.optim.AdamW(parameters, lr=0.5, betas=(0.5, 0.75))
        set_gradients(model, 0)
        other.step()
        saved = other.state_dict()
        with pytest.raises(
            stepc.StepcError,
            match=r"found 'decoupled_weight_decay', which the route has not\n"
                  r"hint: stepc.torch.import_states takes over the states of torch's optimizers",
        ):
            optimizer.load_state_dict(saved)
        assert optimizer.param_groups[0]["lr"] == 1e-3
        assert optimizer.state[model.w]["step"] == 0
    group = saved["param_groups"][0]
    kept = {key: group[key] for key in ("params", "lr", "eps", "weight_decay")}
    saved["param_groups"][0] = kept | {"beta1": 0.5, "beta2": 0.75}
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["beta1"] == 0.5 and optimizer.state[model.w]["step"] == 1


class Convolution(Model):
    """With frozen tensors of four axes, which no route takes."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 3, 3).requires_grad_(False)


def test_frozen_tensors_without_route_have_options(fake):
    """Schedulers read and write every group's options."""
    model = Convolution()
    optimizer = make(model, "matrix {}", Momentum={"lr": 4.0})
    # Others that are frozen keep their routes.
    assert optimizer.routes["first.weight"] is None and optimizer.routes["first.bias"] == "Plain"
    assert all({"lr", "momentum"} <= group.keys() for group in optimizer.param_groups
               if group["route"] != "Plain")  # fmt: skip
    schedulers = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch),
                  torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)]  # fmt: skip
    set_gradients(model, 0)
    optimizer.step()
    for scheduler in schedulers:
        scheduler.step()
    again = make(Convolution(), "matrix {}")
    again.load_state_dict(optimizer.state_dict())
    model.first.weight.requires_grad_(True)
    with pytest.raises(stepc.CompileError, match="expected a matrix, found 'first.weight' of 4 axes"):
        optimizer.step()
    model.first.weight.requires_grad_(False)
    optimizer.step()


def test_unfrozen_tensors_get_their_routes_options_in_place(fake, monkeypatch):
    """A group without route becomes one of the route's, where it is: schedulers count groups."""
    model = Convolution()
    optimizer = make(model, "matrix {}", Momentum={"momentum": 0.25})
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    before = [group["param_names"] for group in optimizer.param_groups]
    with torch.no_grad():
        model.first.weight = nn.Parameter(model.first.weight.flatten(1))
    for group in optimizer.param_groups:
        if group["route"] is None:
            group["params"] = [model.first.weight]
    set_gradients(model, 0)
    optimizer.step()
    scheduler.step()
    assert [group["param_names"] for group in optimizer.param_groups] == before
    assert optimizer.routes["first.weight"] == "Momentum"
    group = next(g for g in optimizer.param_groups if g["param_names"] == ["first.weight"])
    assert group["momentum"] == 0.25 and group["initial_lr"] == 0.1


def test_patterns_that_may_match_nothing(fake):
    model = Model()
    with pytest.raises(stepc.CompileError, match='pattern "head\\*" matches no parameter'):
        make(model, "head {}")
    with pytest.raises(TypeError, match="if_present: expected a list of patterns, found the text 'head"):
        make(model, "head {}", if_present="head*")
    set_gradients(model, 0)
    make(model, "head {}", if_present=["head*"]).step()
    # A frozen parameter is a match, when it routes and when it compiles.
    model.head = nn.Parameter(torch.zeros(2, 3, 4), requires_grad=False)
    optimizer = make(model, "head matrix {}")
    optimizer.step()
    assert optimizer.routes["head"] is None and model.head not in optimizer.state
