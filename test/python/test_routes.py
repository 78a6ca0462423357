"""Names of routes and patterns that may match nothing, with the real compiler."""

import copy

import pytest
import torch
from torch import nn

import stepc
from stepc.torch import Optimizer, export_manifest

SGD = """
optimizer Sgd(lr, momentum = 0.5) {
  state m : f32
  m = momentum * m + grad
  param = param - lr * m
}
"""
ROUTES = """
route {
  Sgd(lr = 0.1) as head for "lm_head*" if present
  Sgd(lr = 0.2) as body for matrix except "lm_head*"
  Sgd(lr = 0.3) for rest
}
"""
# Of a definition that was not written for pipeline stages.
PLAIN = """
route {
  Sgd(lr = 0.1) for "lm_head*"
  Sgd(lr = 0.2) for rest
}
"""


class Net(nn.Module):
    def __init__(self, head=True):
        super().__init__()
        torch.manual_seed(1)
        self.up = nn.Linear(3, 4)
        if head:
            self.lm_head = nn.Linear(4, 2, bias=False)
        for p in self.parameters():
            p.grad = torch.ones_like(p)


def rates(optimizer):
    return {group["route"]: group["lr"] for group in optimizer.param_groups}


def test_routes_keep_their_names_in_groups_and_checkpoints(real):
    model = Net()
    optimizer = Optimizer(model.named_parameters(), SGD + ROUTES, Sgd={"momentum": 0.25}, head={"lr": 0.5})
    assert rates(optimizer) == {"head": 0.5, "body": 0.2, "Sgd": 0.3}
    assert {group["momentum"] for group in optimizer.param_groups} == {0.25}
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    assert [group["route"] for group in saved["param_groups"]] == ["head", "body", "Sgd"]
    # The order of claims may change, and a claim come between.
    lines = ROUTES.strip().splitlines()
    turned = "\n".join([lines[0], lines[3], lines[2], lines[1], lines[4]])
    again = Optimizer(model.named_parameters(), SGD + turned)
    again.load_state_dict(saved)
    assert rates(again) == {"Sgd": 0.3, "body": 0.2, "head": 0.5}
    assert again.state[model.lm_head.weight]["step"] == 1
    # Without the head its route has no group, and may still be given options.
    other = Net(head=False)
    stage = Optimizer(other.named_parameters(), SGD + ROUTES, lr=0.75, head={"lr": 0.5})
    assert rates(stage) == {"body": 0.75, "Sgd": 0.75}
    stage.step()


def test_a_ready_library_keeps_names_of_routes(real, tmp_path, monkeypatch):
    model = Net()
    made = stepc.compile(SGD + ROUTES, export_manifest(model.named_parameters()), output=tmp_path)
    monkeypatch.setenv("STEPC", "/nowhere/stepc")
    optimizer = Optimizer(model.named_parameters(), library=made.library, head={"lr": 0.5})
    assert rates(optimizer) == {"head": 0.5, "body": 0.2, "Sgd": 0.3}


def test_a_pattern_may_match_nothing_where_the_trainer_says_so(real):
    model = Net(head=False)
    with pytest.raises(stepc.CompileError, match='"lm_head\\*"'):
        Optimizer(model.named_parameters(), SGD + PLAIN)
    optimizer = Optimizer(model.named_parameters(), SGD + PLAIN, if_present=["lm_head*"])
    optimizer.step()
    manifest = export_manifest(model.named_parameters())
    assert stepc.check(SGD + PLAIN, manifest, if_present=["lm_head*"])["parameters"]
    assert "group" in stepc.explain(SGD + PLAIN, manifest, if_present=["lm_head*"])
    with pytest.raises(stepc.CompileError, match="expected a pattern of the specification .*'head'"):
        Optimizer(model.named_parameters(), SGD + PLAIN, if_present=["head"])


def test_a_frozen_parameter_is_a_match(real):
    """When it routes and, not being stepped, when it compiles."""
    model = Net()
    model.lm_head.weight.requires_grad_(False)
    optimizer = Optimizer(model.named_parameters(), SGD + PLAIN)
    optimizer.step()
    assert optimizer.routes["lm_head.weight"] == "Sgd.1"
    assert model.lm_head.weight not in optimizer.state
    model.lm_head.weight.requires_grad_(True)
    optimizer.step()
    assert optimizer.state[model.lm_head.weight]["step"] == 1


def test_an_optimizer_says_how_batch_axes_are_declared(real):
    """It writes the manifest itself, so that nobody can write them there."""
    model = nn.ModuleDict({"up": nn.Linear(3, 4), "cut": nn.Conv2d(3, 4, 3)})
    spec = SGD + "route { Sgd(lr = 0.1) for matrix\n Sgd(lr = 0.1) for rest }"
    with pytest.raises(
        stepc.CompileError, match="or declared batch axes, for parameter 'cut.weight'"
    ) as raised:
        Optimizer(model.named_parameters(), spec)
    hint = (
        "hint: the manifest is written from the model: for convolutions pass flatten=['cut.weight'], for stacks of matrices pass "
        "batch=['cut.weight']"
    )
    assert str(raised.value).splitlines()[-1] == hint
    routes = Optimizer(model.named_parameters(), spec, batch=["cut.weight"]).routes
    assert routes["cut.weight"] == routes["up.weight"] != routes["up.bias"]
