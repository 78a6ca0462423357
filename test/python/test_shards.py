"""What the library says that a shard holds is what torch has put there."""

import torch
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

from stepc.torch import Optimizer

SGD = """
optimizer Sgd(lr) {
  state r : f32[rows]
  r = r + mean(grad, over = columns)
  param = param - lr * grad
}
route { Sgd(lr = 0.1) for matrix }
"""
PLACES = {
    "rows": [Shard(0), Replicate()],
    "columns": [Replicate(), Shard(1)],
    "both": [Shard(0), Shard(1)],
    "twice": [Shard(0), Shard(0)],
    "strided": [_StridedShard(0, split_factor=2), Shard(0)],
    "whole": [Replicate(), Replicate()],
}


def _runs(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.ParameterDict()
    for name, places in PLACES.items():
        for shape in ((8, 4), (7, 5), (1, 3), (5, 9)):
            if name == "strided" and shape != (8, 4):
                continue  # FSDP2's uneven ones are torch's affair, see docs/torch.md
            if name == "twice" and shape[0] == 1:
                continue  # one row has no place on four ranks
            count = torch.arange(float(shape[0] * shape[1])).reshape(shape)
            whole = distribute_tensor(count, mesh, places, src_data_rank=None)
            model[f"{name} {shape}"] = nn.Parameter(whole)
    optimizer = Optimizer(model.named_parameters(), SGD, timeout=60.0)
    optimizer.prepare()
    instance = optimizer._binding.instance
    for index, parameter in enumerate(instance.parameters):
        local = model[parameter.name].to_local().detach().flatten()
        rebuilt = torch.full_like(local, -1)
        for start, at, length in instance.shard_runs(index):
            rebuilt[at : at + length] = torch.arange(float(start), float(start + length))
        assert torch.equal(rebuilt, local), parameter.name
        # A state per row holds the rows of the shard.
        rows = sorted({int(x) // model[parameter.name].shape[1] for x in local})
        held = [start + i for start, _, length in instance.shard_runs(index, 0) for i in range(length)]
        if rows:
            assert sorted(held) == rows, parameter.name
    return len(instance.parameters)


def test_runs_are_what_torch_has_put_there(real):
    assert run_ranks(_runs, 4) == [20] * 4
