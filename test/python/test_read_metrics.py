"""``Optimizer.metrics``: numbers of the last step, by metric and parameter."""

import math

import torch
from ranks import run_ranks
from sharded_net import set_gradients
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

from stepc.torch import Optimizer

SPEC = """
model(max_norm = 1) {
  let total = norm(grad)
  let overflows = not finite(total)
  skip when overflows
  metric grad_norm = total
  metric skipped = select(overflows, 1, 0)
  grad = min(1, max_norm / (total + 1e-6)) * grad
}
optimizer Sgd(lr) {
  metric update = norm(lr * grad)
  metric lr = lr
  param = param - lr * grad
}
optimizer Plain(lr) {
  metric update = norm(lr * grad)
  param = param - lr * grad
}
route {
  Sgd(lr = 0.1) for matrix
  Plain(lr = 0.2) for rest
}
"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.up = nn.Linear(6, 8)
        self.experts = nn.Parameter(torch.randn(4, 3, 5))


def test_numbers_have_the_names_of_metrics_and_parameters(real, way):
    model = Net()
    optimizer = Optimizer(model.named_parameters(), SPEC, batch=["experts"], model={"max_norm": 1000})
    assert optimizer.metrics() == {}
    optimizer.prepare()
    found = optimizer.metrics()
    assert math.isnan(found["grad_norm"]) and math.isnan(found["lr"]["up.weight"])
    set_gradients(model, 1)
    optimizer.step()
    found = optimizer.metrics()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    assert found.keys() == {"grad_norm", "skipped", "update", "lr"}
    assert found["grad_norm"] == torch.linalg.vector_norm(torch.cat([g.flatten() for g in gradients.values()]).double()).float()
    assert found["skipped"] == 0.0
    assert found["update"].keys() == gradients.keys() and found["lr"].keys() == {"up.weight", "experts"}
    assert math.isclose(found["update"]["up.bias"], 0.2 * gradients["up.bias"].norm(), rel_tol=1e-5)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("meta"):
            stack = optimizer.metrics()["update"]["experts"]
    finally:
        torch.set_default_dtype(torch.float32)
    assert stack.shape == (4,) and stack.dtype == torch.float32
    torch.testing.assert_close(stack, 0.1 * gradients["experts"].flatten(1).norm(dim=1), rtol=1e-5, atol=0)
    # A skipped step says so, and the numbers of parameters stay.
    model.up.weight.grad[2, 3] = math.inf
    optimizer.step()
    again = optimizer.metrics()
    assert again["skipped"] == 1.0 and again["grad_norm"] == math.inf
    assert again["update"]["up.weight"] == found["update"]["up.weight"]
    # They are no states.
    saved = optimizer.state_dict()
    assert saved["model"] == {"step": 1, "max_norm": 1000}
    assert all(state.keys() == {"step"} for state in saved["state"].values())
    other = Optimizer(Net().named_parameters(), SPEC, batch=["experts"])
    other.load_state_dict(saved)
    assert math.isnan(other.metrics()["grad_norm"])


def _sharded(rank):
    model = Net()
    whole = model.experts.detach()
    mesh = init_device_mesh("cpu", (4,))
    del model.experts
    fully_shard(model.up, mesh=mesh)
    model.experts = nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None))
    # The last two ranks have no element of this matrix, but know what is sent to all shards.
    model.small = nn.Parameter(distribute_tensor(torch.ones(2, 3), mesh, [Shard(0)], src_data_rank=None))
    optimizer = Optimizer(model.named_parameters(), SPEC, batch=["experts"], timeout=60.0)
    set_gradients(model, 1)
    optimizer.step()
    return optimizer.metrics()


def test_ranks_know_the_numbers_of_their_shards(real):
    found = run_ranks(_sharded, 4)
    for rank, each in enumerate(found):
        assert each["grad_norm"] == found[0]["grad_norm"] > 0
        assert each["update"]["up.weight"] == found[0]["update"]["up.weight"] > 0
        stack = each["update"]["experts"]
        assert stack.shape == (4,) and torch.isfinite(stack).tolist() == [one == rank for one in range(4)]
    model = Net()
    model.small = nn.Parameter(torch.ones(2, 3))
    optimizer = Optimizer(model.named_parameters(), SPEC, batch=["experts"])
    set_gradients(model, 1)
    optimizer.step()
    alone = optimizer.metrics()
    assert found[0]["grad_norm"] == alone["grad_norm"]
    assert found[0]["update"]["up.weight"] == alone["update"]["up.weight"]
    assert all(each["update"]["small"] == alone["update"]["small"] for each in found)
    for rank, each in enumerate(found):
        assert each["update"]["experts"][rank] == alone["update"]["experts"][rank]
