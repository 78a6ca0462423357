"""A trainer with flat buffers moves to stepc: ZeRO-0 to 3 and hybrid sharding on gloo ranks, reduced and
gathered by the trainer or by the step, have the bits of one process."""

import copy

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from flat_buffers import FlatBuffer
from ranks import run_ranks
from sharded_net import ADAMW
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from stepc.torch import Optimizer, Placed, parameters_to_save
from stepc.torch.pieces import Piece

SPEC = ADAMW.replace("MASTER", "master : f32") + """
optimizer Muon(lr) {
  state m : f32
  state r : f32[rows]
  master : f32
  m = 0.95 * m + grad
  r = lerp(r, mean(m * m, over = columns), 0.1)
  let o = orthogonalize(grad + 0.95 * m, steps = 2, precision = bf16)
  param = (1 - lr * 0.1) * param - lr * o / (sqrt(r) + 1)
}
route {
  Muon(lr = 0.02) for "*matrix*"
  AdamW(lr = 3e-3) for rest
}
"""
SHAPES = {"embed": (9, 4), "matrix.a": (16, 12), "bias": (8,), "expert.matrix": (6, 10), "scalar": ()}
# Mesh; who reduces gradients (nobody: the step), and what the optimizer is told; whether the trainer keeps
# only ranges.
WAYS = {
    "ZeRO-0": ((4,), "", ["R"], ["P(avg)"], ["R"]),
    "ZeRO-1": ((4,), "", ["R"], ["P(avg)"], ["flat"]),
    "ZeRO-1, all-reduced by the trainer": ((4,), "all_reduce", ["R"], ["R"], ["flat"]),
    "ZeRO-2": ((4,), "reduce_scatter", ["R"], ["flat"], ["flat"]),
    "ZeRO-1, all by the trainer": ((4,), "reduce_scatter", ["flat"], ["flat"], ["flat"]),
    "ZeRO-3": ((4,), "", ["flat"], ["P(avg)"], ["flat"]),
    "hybrid": ((2, 2), "", ["R", "flat"], ["P(avg)", "P(avg)"], ["R", "flat"]),
    "hybrid, parameters whole": ((2, 2), "", ["R", "R"], ["P(avg)", "P(avg)"], ["R", "flat"]),
    "layer-wise": ((4,), "", ["R"], ["P(avg)"], ["owned(2)"]),
}


def values():
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(shape, generator=generator).bfloat16() for name, shape in SHAPES.items()}


def contributions(step, ranks):
    """Small multiples of 1/8, so that sums are exact in any order, gloo's too."""
    generator = torch.Generator().manual_seed(100 + step)
    return [{name: torch.randint(-20, 20, shape, generator=generator) / 8 for name, shape in SHAPES.items()}
            for _ in range(ranks)]  # fmt: skip


def expected(count):
    """Parameters and states of one process after each step."""
    model = {name: nn.Parameter(value) for name, value in values().items()}
    optimizer = Optimizer(model.items(), SPEC, gradient="main_grad")
    trace = []
    for step in range(count):
        each = contributions(step, 4)
        for name, p in model.items():
            p.main_grad = sum(one[name] for one in each) / 4
        optimizer.step()
        trace.append({name: {"param": p.detach(), **optimizer.state[p]} for name, p in model.items()})
        trace[-1] = copy.deepcopy(trace[-1])
    return trace


def made(way, **options):
    """(the buffer, the optimizer, the trainer's reduction or none)."""
    sizes, reduction, parameter, gradient, state = WAYS[way]
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("replicate", "shard")[-len(sizes) :])
    whole = values()
    buffer = FlatBuffer(whole, mesh.get_group(len(sizes) - 1), sharded="flat" in parameter)
    placed = {name: Placed(mesh, parameter, SHAPES[name], gradient, state) for name in whole}
    flat = "flat" in (*parameter, *gradient, *state)
    optimizer = Optimizer(buffer.parameters.items(), SPEC, placements=placed, gradient="main_grad",
                          buckets={"all": buffer.bucket()} if flat else None, timeout=60.0, **options)  # fmt: skip
    return buffer, optimizer, reduction


def train(buffer, optimizer, reduction, step, rank):
    buffer.accumulate(contributions(step, 4)[rank])
    if reduction:
        getattr(buffer, reduction)()
    else:
        buffer.leave_gradients()
    optimizer.step()
    if buffer.sharded:
        buffer.gather()


def whole_of(tensor):
    """A tensor from all ranks' pieces."""
    if not isinstance(tensor, Piece):
        return tensor
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(
        parts, [(tuple(box.offsets), box.of(tensor.plain).clone()) for box in tensor.boxes]
    )
    found = torch.full(tuple(tensor.whole), float("nan"), dtype=tensor.dtype)
    for offsets, part in (one for of_rank in parts for one in of_rank):
        index = tuple(slice(a, a + n) for a, n in zip(offsets, part.shape, strict=True))
        found[index] = part
    return found


def tensors_of(optimizer, parameters):
    """All that a checkpoint has."""
    saved = parameters_to_save(optimizer)
    return {name: {"param": saved[name], **optimizer.state[p]} for name, p in parameters.items()}


def _ways(rank, ways, folder):
    result = []
    for step, way in enumerate(ways):
        buffer, optimizer, reduction = made(way)
        tensors = tensors_of(optimizer, buffer.parameters)
        if step:
            # What the way before has left, on whatever ranks: loaded into the memory that is bound.
            for name in tensors:
                for value in tensors[name].values():
                    value.fill_(77)
            dcp.load(tensors, checkpoint_id=f"{folder}/{step - 1}")
        train(buffer, optimizer, reduction, step, rank)
        executed, planned = optimizer.counters()
        assert executed == planned
        whole = {
            name: {key: whole_of(value).clone() for key, value in own.items()}
            for name, own in tensors.items()
        }
        for name, value in buffer.values().items():
            assert torch.equal(value, whole[name]["param"]), (way, name)
        held = sum(own["master"].numel() for own in tensors.values())
        result.append((way, whole, held))
        dcp.save(tensors, checkpoint_id=f"{folder}/{step}")
    return result


def test_a_run_goes_on_in_each_way_with_the_bits_of_one_process(real, tmp_path):
    """A step in each way, from the checkpoint of the one before."""
    trace = expected(len(WAYS))
    elements = sum(one["param"].numel() for one in trace[0].values())
    for of_rank in run_ranks(_ways, 4, list(WAYS), str(tmp_path)):
        for (way, found, held), wanted in zip(of_rank, trace, strict=True):
            for name, own in wanted.items():
                for key, one in own.items():
                    assert torch.equal(found[name][key], one), (way, name, key)
            ranks = {"ZeRO-0": 1}.get(way, 2 if "hybrid" in way else 4)
            assert held <= elements and (way == "layer-wise" or held < elements / ranks + 40), (way, held)
