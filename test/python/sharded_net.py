"""A small model in one process or sharded over several, real optimizers for it, and the bits of both."""

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

from stepc.torch import Optimizer

ADAMW = """
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1) {
  MASTER
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
"""
MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  MASTER
  state m : f32
  m     = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
"""
BOTH = MUON + ADAMW + """
route {
  Muon(lr = 0.02)   for matrix except "*embed*"
  AdamW(lr = 3e-4)  for rest
}
"""


def spec(text, master=False):
    return text.replace("MASTER", "master : f32" if master else "")


class Net(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(11, 6)
        self.up, self.down = nn.Linear(6, 10, bias=False), nn.Linear(10, 6, bias=False)
        self.tall, self.norm = nn.Linear(5, 13), nn.LayerNorm(6)
        self.to(dtype)


def set_gradients(model, seed):
    """The same global gradients whatever the placements."""
    for index, (_, p) in enumerate(sorted(model.named_parameters())):
        generator = torch.Generator().manual_seed(1000 * seed + index)
        full = torch.randn(p.shape, generator=generator).to(p.dtype)
        p.grad = shard_like(full, p) if isinstance(p, DTensor) else full


def shard_like(full, p):
    """This rank's piece, without asking other ranks; strided shards by cutting step by step."""
    if not any(isinstance(one, _StridedShard) for one in p.placements):
        return distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)
    # (_S(d, n), S(d)): the inner axis of n ranks has cut d first.
    (outer, inner), mesh = p.placements, p.device_mesh
    piece = full.chunk(mesh.size(1), inner.dim)[mesh.get_local_rank(1)]
    piece = piece.chunk(mesh.size(0), outer.dim)[mesh.get_local_rank(0)].contiguous()
    return DTensor.from_local(piece, mesh, p.placements, run_check=False,
                              shape=full.shape, stride=full.stride())  # fmt: skip


def shards(model, optimizer):
    """Local bytes of parameters and states, and where they sit in the whole."""
    result = {}
    for name, p in model.named_parameters():
        tensors = {"param": p} | optimizer.state[p]
        for key, tensor in tensors.items():
            result[name, key] = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()
            result[name, key] = result[name, key].detach()
    return result


def reference(dtype, steps, master, **options):
    model = Net(dtype)
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, master), **options)
    for step in range(steps):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key].dtype == value.dtype and torch.equal(found[key], value), key
