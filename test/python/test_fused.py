"""Fused weights: the matrices in them step as matrices of their own, wherever shards end."""

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from sharded_net import shard_like
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

import stepc
from stepc.torch import Blocks, Optimizer, export_manifest

SPEC = """
optimizer Muon(lr) {
  state m : f32
  state scale : f32[]
  m = 0.95 * m + grad
  scale = 0.9 * scale + norm(grad)
  let o = orthogonalize(m, steps = 3, precision = bf16)
  param = param - lr * sqrt(max(rows, cols)) * o / (1 + scale)
}
optimizer Sgd(lr) { param = param - lr * grad }
route {
  Muon(lr = 0.02) for "*.weight"
  Sgd(lr = 0.1) for rest
}
"""
# Two groups of heads, each with four rows of queries, two of keys and two of values.
QKV = {"*qkv*": Blocks([4, 2, 2], repeat=2), "*gate_up.weight": Blocks([5, 6])}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(6, 16, bias=False)
        self.gate_up = nn.Linear(6, 11)


def gradient(name, shape, step):
    generator = torch.Generator().manual_seed(31 * step + len(name))
    return torch.randn(shape, generator=generator)


# The same, said by the definition.
DIVIDED = SPEC + """
blocks "*qkv.weight" repeat 2 rows 4, 2, 2
blocks "*gate_up.weight" rows 5, 6
"""


def _train(model, steps=3, spec=SPEC, blocks=QKV, **options):
    optimizer = Optimizer(model.named_parameters(), spec, blocks=blocks, timeout=60.0, **options)
    for step in range(steps):
        for name, p in model.named_parameters():
            whole = gradient(name, p.shape, step)
            if hasattr(p, "placements"):
                whole = dist.tensor.distribute_tensor(
                    whole, p.device_mesh, p.placements, src_data_rank=None
                )
            p.grad = whole
        optimizer.step()
    return optimizer


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "placements") else tensor


def _values(model, optimizer):
    result = {}
    for name, p in model.named_parameters():
        result[name] = whole(p.detach())
        for key, state in optimizer.state[p].items():
            result[name, key] = whole(state)
    return result


def _sharded(rank):
    alone = [dist.new_group([one]) for one in range(4)][rank]
    model = Attention()
    expected = _values(model, _train(model, process_group=alone))
    for shape, plan in (((4,), {}), ((2, 2), {"qkv": ColwiseParallel()})):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp")[: len(shape)])
        model = Attention()
        if plan:
            parallelize_module(model, mesh["tp"], plan)
        fully_shard(model, mesh=mesh["dp"])
        optimizer = _train(model)
        found = _values(model, optimizer)
        if not plan:
            for key, value in expected.items():
                assert torch.equal(value, found[key]), key
        else:  # full_tensor() of strided shards is checked through local pieces instead
            for name, p in model.named_parameters():
                assert torch.equal(p.to_local(), shard_like(expected[name], p).to_local()), name
            assert torch.equal(expected["qkv.weight", "scale"], found["qkv.weight", "scale"])
        # A checkpoint of a fused weight is whole tensors, too.
        again = _train(model, 0)
        again.load_state_dict(optimizer.state_dict())
        for p in model.parameters():
            for key, state in optimizer.state[p].items():
                assert torch.equal(whole(state), whole(again.state[p][key])), key
    return expected


def test_parts_of_sharded_weights_step_by_themselves(real):
    results = run_ranks(_sharded, 4)
    # What each matrix does as a parameter of its own.
    fused = Attention()
    index = torch.arange(16).view(2, 8)
    rows = {
        "qkv": [index[:, :4], index[:, 4:6], index[:, 6:]],
        "gate_up": [torch.arange(5), torch.arange(5, 11)],
    }
    apart = nn.ParameterDict()
    gradients = {}
    for name, parts in rows.items():
        weight = getattr(fused, name).weight
        for i, part in enumerate(parts):
            key = f"{name}{i}"
            apart[key] = nn.Parameter(weight.detach()[part.flatten()].clone())
            gradients[key] = [
                gradient(f"{name}.weight", weight.shape, step)[part.flatten()] for step in range(3)
            ]
    optimizer = Optimizer([(f"{key}.weight", p) for key, p in apart.items()], SPEC)
    for step in range(3):
        for key, p in apart.items():
            p.grad = gradients[key][step]
        optimizer.step()
    for name, parts in rows.items():
        found = results[0]
        assert found[f"{name}.weight", "scale"].shape == (len(parts),)
        for i, part in enumerate(parts):
            p = apart[f"{name}{i}"]
            assert torch.equal(found[f"{name}.weight"][part.flatten()], p.detach())
            assert torch.equal(found[f"{name}.weight", "m"][part.flatten()], optimizer.state[p]["m"])
            assert torch.equal(found[f"{name}.weight", "scale"][i], optimizer.state[p]["scale"])
            assert found[f"{name}.weight", "step"] == optimizer.state[p]["step"] == 3


def test_a_library_for_other_blocks_is_refused(real, tmp_path):
    def export(**options):
        return export_manifest(Attention().named_parameters(), **options)

    manifest = export(blocks=QKV)
    by_name = {one["name"]: one for one in manifest["parameters"]}
    runs = [[[0, 4], [8, 12]], [[4, 6], [12, 14]], [[6, 8], [14, 16]]]
    assert by_name["qkv.weight"]["blocks"] == {"axis": "rows", "runs": runs}
    assert "blocks" not in by_name["gate_up.bias"]
    library = str(stepc.compile(SPEC, manifest, output=tmp_path / "divided").library)
    model = Attention()
    _train(model, 1)
    Optimizer(model.named_parameters(), library=library, blocks=QKV).prepare()
    with pytest.raises(stepc.PlanError, match="expects blocks .*, the model has None"):
        Optimizer(model.named_parameters(), library=library).prepare()
    other = {**QKV, "*qkv*": Blocks(runs=[[(0, 8)], [(8, 16)]])}
    with pytest.raises(stepc.PlanError, match="expects blocks"):
        Optimizer(model.named_parameters(), library=library, blocks=other).prepare()


def test_wrong_blocks_are_errors(real):
    model = Attention()

    def prepare(**blocks):
        Optimizer(model.named_parameters(), SPEC, blocks=blocks).prepare()

    with pytest.raises(ValueError, match="expected sizes or runs, found Blocks"):
        prepare(**{"*qkv*": Blocks()})
    with pytest.raises(ValueError, match="expected runs that say every matrix whole, found repeat = 2"):
        prepare(**{"*qkv*": Blocks(runs=[[(0, 8)], [(8, 16)]], repeat=2)})
    with pytest.raises(stepc.CompileError, match="expected each row in one part, found row 15 in none"):
        prepare(**{"*qkv*": Blocks([8, 7])})
    with pytest.raises(stepc.CompileError, match="expected blocks of matrices, found 1 dimension"):
        prepare(**{"*bias": Blocks([11])})
    with pytest.warns(UserWarning, match="nothing"):
        prepare(**{"nothing*": Blocks([16])})


def test_the_definition_says_blocks(real):
    """What it says is what blocks= says, and holds instead where both do."""
    models = [Attention() for _ in range(3)]
    others = {"*qkv*": Blocks([8, 8]), "*gate_up.weight": Blocks([1, 10])}
    optimizers = [_train(models[0]), _train(models[1], spec=DIVIDED, blocks={}),
                  _train(models[2], spec=DIVIDED, blocks=others)]  # fmt: skip
    assert optimizers[1]._routing.divided == {"qkv.weight", "gate_up.weight"}
    expected = _values(models[0], optimizers[0])
    for model, optimizer in zip(models[1:], optimizers[1:], strict=True):
        found = _values(model, optimizer)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert torch.equal(value, found[key]), key
    # Without blocks the same weights step otherwise.
    plain = Attention()
    assert not torch.equal(_values(plain, _train(plain, blocks={}))["qkv.weight"], expected["qkv.weight"])


def test_a_library_with_blocks_of_the_definition_has_no_others(real, tmp_path):
    model = Attention()
    manifest = export_manifest(model.named_parameters())
    library = str(stepc.compile(DIVIDED, manifest, output=tmp_path / "divided").library)
    for blocks in ({}, QKV, {"*qkv*": Blocks([8, 8])}):
        optimizer = Optimizer(model.named_parameters(), library=library, blocks=blocks)
        optimizer.prepare()
        assert optimizer.state[model.qkv.weight]["scale"].shape == (3,)


def test_wrong_blocks_of_the_definition_are_errors(real):
    def prepare(statement):
        Optimizer(Attention().named_parameters(), f"{SPEC}\n{statement}\n").prepare()

    with pytest.raises(
        stepc.CompileError, match=r'expected pattern "\*.q" of blocks to match a parameter, found none'
    ):
        prepare('blocks "*.q" rows split 2')
    with pytest.raises(stepc.CompileError, match="expected a matrix.* for parameter 'gate_up.bias'"):
        prepare('blocks "gate_up*" rows split 11')
    with pytest.raises(stepc.CompileError, match="expected blocks of 16 rows with 5 each, found a rest of 1"):
        prepare('blocks "qkv.weight" rows each 5')
    with pytest.raises(
        stepc.CompileError, match="expected blocks from one statement for parameter 'qkv.weight'"
    ):
        prepare('blocks "qkv.weight" rows split 2\nblocks "*.weight" except "gate*" rows each 8')
