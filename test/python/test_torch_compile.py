"""A training step inside torch.compile."""

import torch
from models import SPEC, bits, same
from torch import nn

from stepc.torch import Optimizer


def _compiled(spec, compiled):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = Optimizer(model.named_parameters(), spec, Plain={"lr": 0.5})
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def train_step(x, closure=None):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step(closure)
        optimizer.zero_grad()
        return loss

    function = torch.compile(train_step, backend="eager") if compiled else train_step
    losses = []
    for step in range(4):
        losses.append(function(torch.full((2, 4), 1.0 + step)).detach())
        scheduler.step()
    function(torch.ones(2, 4), lambda: None)
    return losses + bits(model), optimizer


def test_a_step_inside_torch_compile(fake):
    """A compiled training step breaks its graph around the library, and steps as an eager one."""
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    found, optimizer = _compiled(SPEC, True)
    expected, _ = _compiled(SPEC, False)
    assert same(found, expected)
    weight = optimizer.param_groups[0]["params"][0]
    assert optimizer.state[weight]["step"] == 5
    # The forward pass is a graph; the step is none, and torch knows it from its mark.
    assert counters["stats"]["unique_graphs"] >= 1
    breaks = [text for text in counters["graph_break"] if "`Optimizer._uncompiled_step`" in text]
    assert breaks, counters["graph_break"]
    assert not counters["frames"].get("recompile_limit", 0)
