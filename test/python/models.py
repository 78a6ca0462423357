"""A small model of one process, and an optimizer for it over the fake library."""

import torch
from torch import nn

from stepc.torch import Optimizer

SPEC = "rule {}"
# A definition for the compiler itself.
SGD = """
optimizer Sgd(lr) {
  state m : f32
  m = 0.5 * m + grad
  param = param - lr * m
}
route { Sgd(lr = 0.5) for rest }
"""


def adamw(beta1: float = 0.9, beta2: float = 0.95) -> str:
    """The rule AdamW of the examples, without routes, with these defaults."""
    return f"""
optimizer AdamW(lr, beta1 = {beta1}, beta2 = {beta2}, eps = 1e-8, weight_decay = 0.1) {{
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}}
"""


class Model(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        for name, shape in {"w": (4, 3), "v": (2, 5), "b": (4,), "s": ()}.items():
            value = torch.randn(shape, generator=generator).to(dtype)
            setattr(self, name, nn.Parameter(value))


def set_gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)


def make(model, spec=SPEC, **options):
    return Optimizer(model.named_parameters(), spec, **({"Plain": {"lr": 0.5}} | options))


def bits(model):
    return [p.detach().clone() for p in model.parameters()]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
