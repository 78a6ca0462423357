"""Parameters whose axes are permuted in memory step as contiguous ones do."""

import pytest
import torch
from models import same
from torch import nn

from stepc.torch import Optimizer


def _strided(value):
    """The same values in other orders of memory."""
    kinds = {"contiguous": value.contiguous()}
    kinds["transposed"] = value.transpose(0, 1).contiguous().transpose(0, 1)
    if value.dim() == 4:
        kinds["channels last"] = value.to(memory_format=torch.channels_last)
    return kinds


@pytest.mark.filterwarnings("ignore:.*strides")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_order_changes_no_bit(real, dtype):
    spec = """
    optimizer Muon(lr) {
      master : f32
      state m : f32
      state r : f32[rows]
      m = 0.5 * m + grad
      r = r + mean(m * m, over = columns)
      param = param - lr * orthogonalize(m) / (1 + r)
    }
    optimizer Sgd(lr) {
      state m : f32
      m = 0.5 * m + grad
      param = param - lr * m
    }
    route { Muon(lr = 0.1) for ROUTE
            Sgd(lr = 0.1) for rest }
    """
    for shape, sgd in (((6, 4), False), ((6, 4), True), ((3, 2, 4, 5), True)):
        text = spec.replace("ROUTE", 'matrix except "w"' if sgd else "matrix")
        torch.manual_seed(0)
        values = [torch.randn(shape).to(dtype) for _ in range(4)]
        results = {}
        for kind, value in _strided(values[0]).items():
            w = nn.Parameter(value.clone(memory_format=torch.preserve_format))
            # One that the matrix route always has, and what the other may get.
            v = nn.Parameter(torch.ones(2, 3, dtype=dtype))
            stride = w.stride()
            optimizer = Optimizer([("w", w), ("v", v), ("b", nn.Parameter(torch.ones(2)))], text)
            for gradient in values[1:]:
                w.grad, v.grad = gradient.clone(), torch.ones_like(v)
                optimizer.param_groups[-1]["params"][-1].grad = torch.ones(2)
                optimizer.step()
            assert w.stride() == stride and (kind == "contiguous") == w.is_contiguous()
            states = [optimizer.state[w][name] for name in optimizer.state[w]]
            results[kind] = [w.detach(), *states]
        for kind, found in results.items():
            assert same(found, results["contiguous"]), (shape, kind)
