"""``Optimizer.give``: inputs of rules, on one rank and of sharded parameters."""

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

from stepc.errors import StepcError
from stepc.torch import Optimizer

SPEC = """
optimizer Clipped(lr, tau = 2) {
  input most : f32[]
  input more : bf16 = 0.5
  let gamma = min(1, tau / most)
  param = sqrt(gamma) * (param - lr * more * grad)
}
blocks "weight" rows each 2
route { Clipped(lr = 0.25) for rest }
"""


def expected(param, grad, most, more):
    factor = torch.minimum(torch.ones(1), 2 / most).sqrt().repeat_interleave(2)[:, None]
    return factor * (param - 0.25 * more.float() * grad)


def test_inputs_are_read_by_steps(real, way):
    torch.manual_seed(1)
    weight = nn.Parameter(torch.randn(6, 4))
    optimizer = Optimizer([("weight", weight)], SPEC)
    most, more = torch.tensor([1.0, 3.0, 8.0]), torch.randn(6, 4).bfloat16()
    weight.grad = torch.randn(6, 4)
    with pytest.raises(StepcError, match="rank 0: input 'most' of parameter 'weight' was never bound, and it has no default"):
        optimizer.step()
    optimizer.give("weight", most=most)
    wanted = expected(weight.detach().clone(), weight.grad, most, torch.full((6, 4), 0.5).bfloat16())
    optimizer.step()
    assert torch.equal(weight, wanted)
    # Another tensor, and other numbers in the same memory.
    optimizer.give(weight, more=more)
    most.mul_(2)
    wanted = expected(weight.detach().clone(), weight.grad, most, more)
    optimizer.step()
    assert torch.equal(weight, wanted)
    optimizer.give(weight, more=None)
    wanted = expected(weight.detach().clone(), weight.grad, most, torch.full((6, 4), 0.5).bfloat16())
    optimizer.step()
    assert torch.equal(weight, wanted)
    # No checkpoint has inputs.
    assert set(optimizer.state_dict()["state"][0]) <= {"step"}


def test_wrong_inputs_are_refused(real):
    weight = nn.Parameter(torch.ones(6, 4))
    optimizer = Optimizer([("weight", weight)], SPEC)
    weight.grad = torch.ones(6, 4)
    with pytest.raises(StepcError, match="give: expected a parameter of this optimizer, found 'w'"):
        optimizer.give("w", most=torch.ones(3))
    with pytest.raises(TypeError, match="input 'most' of parameter 'weight': expected a tensor or None, found 3"):
        optimizer.give("weight", most=3)
    for wrong, found in [
        (torch.ones(4), r"found one of float32 and shape \[4\] on cpu"), (torch.ones(3, device="meta"), "on meta"), (torch.ones(3).double(), "found one of float64"),
        (torch.ones(6)[::2], "that is not contiguous"),
    ]:  # fmt: skip
        optimizer.give("weight", most=wrong)
        with pytest.raises(StepcError, match=rf"input 'most' of parameter 'weight': expected a contiguous f32 tensor of shape \[3\] on cpu .*{found}"):
            optimizer.step()
    optimizer.give("weight", most=torch.ones(3), least=torch.ones(3))
    with pytest.raises(StepcError, match=r"parameter 'weight': expected one of its inputs \(most, more\), found 'least'"):
        optimizer.step()
    optimizer.give("weight", least=None, most=weight.detach().view(-1)[:3])
    with pytest.raises(StepcError, match="expected memory of its own .* input 'most' of parameter 'weight'"):
        optimizer.step()


def _sharded(rank):
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(1)
    whole, grad, most = torch.randn(6, 4), torch.randn(6, 4), torch.tensor([1.0, 3.0, 8.0])
    weight = nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)]))
    weight.grad = distribute_tensor(grad, mesh, [Shard(0)])
    optimizer = Optimizer([("weight", weight)], SPEC)
    # A number per block is on both ranks, and `more` has rows 0 to 2 on the first.
    more = torch.randn(6, 4).bfloat16()
    optimizer.give(weight, most=most, more=more[3 * rank : 3 * rank + 3])
    optimizer.step()
    wanted = expected(whole, grad, most, more)
    assert torch.equal(weight.full_tensor(), wanted)
    # A DTensor is given by its local part.
    optimizer.give(weight, more=distribute_tensor(more.clone(), mesh, [Shard(0)]))
    optimizer.step()
    assert torch.equal(weight.full_tensor(), expected(wanted, grad, most, more))
    # A whole one is cut, and pending ones are added or compared.
    wanted = expected(wanted, grad, most, more)
    for contributions, placement, total in [
        ([more, more], Replicate(), more),
        ([more, 1 - more], Partial("max"), torch.maximum(more, 1 - more)),
        ([more, 1 - more], Partial("sum"), (more.float() + (1 - more).float()).bfloat16()),
    ]:
        given = DTensor.from_local(contributions[rank], mesh, [placement], run_check=False)
        optimizer.give(weight, more=given, most=DTensor.from_local(most / (3 - rank), mesh, [Partial("max")], run_check=False))
        optimizer.step()
        wanted = expected(wanted, grad, most / 2, total)
        assert torch.equal(weight.full_tensor(), wanted)
    for wrong, message in [
        (distribute_tensor(more.clone(), mesh, [Shard(1)]), r"expected a DTensor with placements \[S\(0\)\], or R, .* found \[S\(1\)\]"),
        (DTensor.from_local(more, mesh, [Partial("avg")], run_check=False), r"or R, P\(sum\) or P\(max\) in the place of some, found \[P\(avg\)\]"),
        (distribute_tensor(torch.ones(6).bfloat16(), mesh, [Replicate()]), r"expected a DTensor of shape \[6, 4\], found \[6\]"),
    ]:  # fmt: skip
        optimizer.give(weight, more=wrong)
        with pytest.raises(StepcError, match=message):
            optimizer.step()
        optimizer.recover()


def _on_two_axes(rank):
    """Rows of heads over tensor parallelism, then over data parallelism, whose ranks have tokens of their own."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    spec = """
optimizer Clipped(lr) {
  input most : f32[rows] = 1
  param = param - lr * most * grad
}
route { Clipped(lr = 0.25) for rest }
"""
    torch.manual_seed(2)
    ways = [[Shard(0), Shard(0)], [Replicate(), Shard(0)], [Shard(1), Shard(0)]]
    for rows in (8, 7, 2):  # of 2, some ranks have no rows
        whole, grad, most = torch.randn(rows, 4), torch.randn(rows, 4), torch.randn(2, rows)
        for placements in ways + [[_StridedShard(0, split_factor=2), Shard(0)]] * (rows == 8):
            weight = nn.Parameter(distribute_tensor(whole, mesh, placements))
            weight.grad = distribute_tensor(grad, mesh, placements)
            optimizer = Optimizer([("weight", weight)], spec)
            for given, total in [
                (DTensor.from_local(most[rank // 2].clone(), mesh, [Partial("max"), Replicate()], run_check=False), most.amax(0)),
                (DTensor.from_local(most[rank // 2].clone(), mesh, [Partial("sum"), Replicate()], run_check=False), most.sum(0)),
            ]:
                optimizer.give(weight, most=given)
                before = weight.full_tensor().clone()
                optimizer.step()
                assert torch.equal(weight.full_tensor(), before - 0.25 * total[:, None] * grad)


def test_inputs_of_two_axes_come_home():
    run_ranks(_on_two_axes, 4)


def test_inputs_of_sharded_parameters_lie_as_states_do():
    run_ranks(_sharded, 2)
