"""Strategies that are asked for, on ranks of gloo: the bits of one process, whatever computes where."""

import torch
import torch.distributed as dist
from ranks import run_ranks
from sharded_net import MUON, spec
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard

from stepc.torch import Optimizer

SPEC = spec(MUON) + "route { Muon(lr = 0.1) for matrix }"
R, S0, S1 = Replicate(), Shard(0), Shard(1)
# Shape, mesh, placements, strategy; of the last one each rank has a contribution to the gradient.
EACH = {
    "local": ((4, 6, 5), "line", [S0], "local"),
    "owner": ((7, 6), "line", [S0], "owner"),
    "gather": ((7, 5), "grid", [S1, S0], "gather"),
    "subgroup": ((4, 6, 3), "grid", [S0, S1], "subgroup-gather"),
    "agrs": ((8, 5), "line", [S0], "agrs"),
    "levels": ((9, 5), "grid", [S0, S1], "hierarchical"),
    "summed": ((5, 9), "grid", [R, S0], "hierarchical"),
}
LEVELS = [
    {"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 2},
    {"name": "network", "gb_per_s": 10, "latency_us": 10},
]
OPTIONS = {"batch": ["local", "subgroup"], "timeout": 60.0}


def drawn(seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, (shape, *_) in EACH.items()}


def gradient(name, whole, mesh, places):
    if name != "summed":
        return distribute_tensor(whole, mesh, places, src_data_rank=None)
    part = whole.chunk(2)[mesh.get_local_rank(1)].clone()
    part[:, mesh.get_local_rank(0) :: 2] = 0  # the columns of the other rank, so that the sum is exact
    return DTensor.from_local(
        part, mesh, [Partial(), S0], run_check=False, shape=whole.shape, stride=whole.stride()
    )


def _strategies(rank):
    alone = [dist.new_group([one]) for one in range(4)][rank]
    meshes = {"line": init_device_mesh("cpu", (4,), mesh_dim_names=("dp",)),
              "grid": init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))}  # fmt: skip
    single = {name: nn.Parameter(value) for name, value in drawn(0).items()}
    model = {name: nn.Parameter(distribute_tensor(value.detach(), meshes[EACH[name][1]], EACH[name][2], src_data_rank=None))
             for name, value in single.items()}  # fmt: skip
    other = Optimizer(single.items(), SPEC, process_group=alone, **OPTIONS)
    optimizer = Optimizer(model.items(), SPEC, strategy={name: one[3] for name, one in EACH.items()},
                          cluster={"profile": "cpu", "levels": LEVELS}, **OPTIONS)  # fmt: skip
    for step in range(2):
        for name, whole in drawn(1 + step).items():
            single[name].grad = whole
            model[name].grad = gradient(name, whole, meshes[EACH[name][1]], EACH[name][2])
        optimizer.step()
        other.step()
        executed, planned = optimizer.counters()
        assert executed == planned
    for name, p in single.items():
        found = model[name].full_tensor()
        assert torch.equal(found, p), name
    # Fast numerics: row slabs whose Gram matrices are added up.
    w = nn.Parameter(distribute_tensor(drawn(0)["levels"], meshes["line"], [S0], src_data_rank=None))
    v = nn.Parameter(drawn(0)["levels"])
    fast = Optimizer([("w", w)], SPEC, strategy="*=slabs", numerics="fast", timeout=60.0)
    exact = Optimizer([("w", v)], SPEC, process_group=alone, timeout=60.0)
    for step in range(2):
        v.grad = drawn(5 + step)["levels"]
        w.grad = distribute_tensor(v.grad, meshes["line"], [S0], src_data_rank=None)
        fast.step()
        exact.step()
    found = w.full_tensor()
    torch.testing.assert_close(found, v.detach(), rtol=0, atol=2e-3)
    executed, planned = fast.counters()
    assert executed == planned and executed["exchanges"]
    return True


def test_each_strategy_has_the_bits_of_one_process(real):
    assert all(run_ranks(_strategies, 4))
