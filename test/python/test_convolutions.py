"""Convolutions that a definition, or the trainer, takes for matrices."""

import re

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

import stepc
from stepc.torch import Optimizer, export_manifest

SPEC = """
optimizer Muon(lr) {
  state m : f32
  state r : f32[rows]
  state c : f32[cols]
  m = 0.95 * m + grad
  r = lerp(r, mean(grad * grad, over = columns), 0.1)
  c = lerp(c, mean(grad * grad, over = rows), 0.1)
  let o = orthogonalize(m, steps = 3, precision = bf16)
  param = param - lr * sqrt(max(rows, cols)) * o / (1 + sqrt(r * c))
}
optimizer Sgd(lr) { param = param - lr * grad }
route {
  Muon(lr = 0.02) for matrix
  Sgd(lr = 0.1) for rest
}
"""
FLATTENED = SPEC + 'blocks "conv?.weight" flatten 1\n'


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv1 = nn.Conv2d(3, 7, 3)
        self.conv2 = nn.Conv1d(7, 5, 2)
        self.head = nn.Linear(5, 4)


def gradient(name, shape, step):
    return torch.randn(shape, generator=torch.Generator().manual_seed(31 * step + len(name)))


def _train(named, spec=FLATTENED, **options):
    named = list(named)
    optimizer = Optimizer(named, spec, timeout=60.0, **options)
    for step in range(2):
        for name, p in named:
            p.grad = gradient(name, p.shape, step)
            if hasattr(p, "placements"):
                p.grad = distribute_tensor(p.grad, p.device_mesh, p.placements, src_data_rank=None)
        optimizer.step()
    return optimizer


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "placements") else tensor


def _values(named, optimizer):
    result = {}
    for name, p in named:
        result[name] = whole(p.detach())
        result |= {(name, key): whole(state) for key, state in optimizer.state[p].items()}
    return result


def equal(found, expected):
    return found.keys() == expected.keys() and all(
        torch.equal(found[key], one) for key, one in expected.items()
    )


def test_a_convolution_steps_as_its_matrix(real):
    model = Convolutions()
    found = _values(model.named_parameters(), _train(model.named_parameters()))
    matrices, gradients = {}, {}
    for name, p in Convolutions().named_parameters():
        shape = (p.shape[0], -1) if p.dim() > 2 else p.shape
        matrices[name] = nn.Parameter(p.detach().reshape(shape).clone())
        gradients[name] = [gradient(name, p.shape, step).reshape(shape) for step in range(2)]
    optimizer = Optimizer(list(matrices.items()), SPEC)
    for step in range(2):
        for name, p in matrices.items():
            p.grad = gradients[name][step]
        optimizer.step()
    assert found["conv1.weight", "r"].shape == (7,) and found["conv1.weight", "c"].shape == (3, 3, 3)
    for key, value in _values(matrices.items(), optimizer).items():
        assert torch.equal(found[key].reshape(value.shape), value), key


@pytest.mark.parametrize("flatten", [["conv?.weight"], {"conv1.weight": 1, "conv2.*ight": 1}])
def test_the_trainer_says_the_same(real, flatten):
    models = [Convolutions() for _ in range(2)]
    found = [_values(models[0].named_parameters(), _train(models[0].named_parameters())),
             _values(models[1].named_parameters(), _train(models[1].named_parameters(), SPEC, flatten=flatten))]  # fmt: skip
    assert equal(*found)
    manifest = export_manifest(models[1].named_parameters(), flatten=flatten)
    assert [one.get("flatten") for one in manifest["parameters"]] == [1, None, 1, None, None, None]


def _sharded(rank):
    alone = [dist.new_group([one]) for one in range(3)][rank]
    model = Convolutions()
    expected = _values(model.named_parameters(), _train(model.named_parameters(), process_group=alone))
    mesh = init_device_mesh("cpu", (3,))
    model = Convolutions()
    fully_shard(model, mesh=mesh)
    optimizer = _train(model.named_parameters())
    assert equal(_values(model.named_parameters(), optimizer), expected)
    again = _train(model.named_parameters())
    again.load_state_dict(optimizer.state_dict())
    for axis in (1, 2):  # inputs, and the kernel's first axis
        named = [(name, nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(min(axis, p.dim() - 1))], src_data_rank=None)))
                 for name, p in Convolutions().named_parameters()]  # fmt: skip
        assert equal(_values(named, _train(named)), expected), axis


def test_sharded_convolutions_have_the_bits_of_one_rank(real):
    run_ranks(_sharded, 3)


def test_a_library_that_flattens_otherwise_is_refused(real, tmp_path):
    named = list(Convolutions().named_parameters())
    flattened = export_manifest(named, flatten=["conv?.weight"])
    library = str(stepc.compile(SPEC, flattened, output=tmp_path / "manifest").library)
    Optimizer(named, library=library, flatten=["conv?.weight"]).prepare()
    with pytest.raises(stepc.PlanError, match="'conv1.weight': .* expects flattened axes 1, the model has 0"):
        Optimizer(named, library=library).prepare()
    # Of what the definition says the model has no say.
    library = str(stepc.compile(FLATTENED, export_manifest(named), output=tmp_path / "spec").library)
    Optimizer(named, library=library).prepare()
    Optimizer(named, library=library, flatten={"conv1.weight": 2}).prepare()


def test_what_cannot_be_flattened(real):
    named = list(Convolutions().named_parameters())
    with pytest.raises(
        ValueError, match="'head.weight': flatten= matches it with columns from axis 1 on, but it has 2 axes"
    ):
        Optimizer(named, SPEC, flatten=["*.weight"]).prepare()
    with pytest.raises(
        ValueError, match="'conv1.weight': flatten= matches it with columns from axis 4 on, but it has 4 axes"
    ):
        Optimizer(named, SPEC, flatten={"conv1.weight": 4}).prepare()
    with pytest.raises(ValueError, match="'conv1.weight': batch= and flatten= match it"):
        Optimizer(named, SPEC, flatten=["conv?.weight"], batch=["conv1.weight"]).prepare()
    with pytest.raises(stepc.CompileError, match="expected two axes, or declared batch axes, for parameter 'conv1.weight'") as raised:
        Optimizer(named, SPEC).prepare()
    found = re.findall(r"for parameter '([^']*)'", str(raised.value))
    assert str(raised.value).splitlines()[-1] == (
        f"hint: the manifest is written from the model: for convolutions pass flatten={found!r}, for stacks of matrices pass "
        f"batch={found!r}"
    )
    with pytest.raises(stepc.CompileError, match="expected three axes or more to flatten, found 1 for parameter 'conv1.bias'"):
        Optimizer(named, SPEC + 'blocks "conv*" flatten 1\n').prepare()
