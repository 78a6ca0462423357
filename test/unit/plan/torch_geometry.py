#!/usr/bin/env python3
"""Writes torch_geometry_cases.txt: what torch puts on each rank, element by element.

Run it with a Python that has torch 2.13; the file is committed, so that the C++ test needs no
torch. A case is

    case <mesh sizes> | <shape> | <placements>
    <local shape> : <runs of global flat indices in local order, as start+length>

with one line per rank, row-major over the mesh.
"""

import itertools
import pathlib
import random

import torch
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard


def placement_text(placement):
    if isinstance(placement, _StridedShard):
        return f"_S({placement.dim},{placement.split_factor})"
    return f"S({placement.dim})" if isinstance(placement, Shard) else "R"


def local_tensor(shape, sizes, placements, coordinate):
    """The local shard, by the functions with which distribute_tensor splits."""
    numel = 1
    for size in shape:
        numel *= size
    tensor = torch.arange(numel).reshape(shape)
    for placement, size, index in zip(placements, sizes, coordinate, strict=True):
        if not isinstance(placement, Replicate):
            shards, _ = placement._split_tensor(tensor, size, with_padding=False)
            tensor = shards[index]
    expected, _ = _compute_local_shape_and_global_offset(shape, sizes, coordinate, placements)
    assert tuple(tensor.shape) == tuple(expected), (shape, sizes, placements, coordinate)
    return tensor


def runs(values):
    result = []
    for value in values:
        if result and sum(result[-1]) == value:
            result[-1][1] += 1
        else:
            result.append([value, 1])
    return " ".join(f"{start}+{length}" for start, length in result)


def write_case(out, sizes, shape, placements):
    words = [" ".join(map(str, sizes)), " ".join(map(str, shape)),
             " ".join(map(placement_text, placements))]
    out.write("case " + " | ".join(words) + "\n")
    for coordinate in itertools.product(*(range(size) for size in sizes)):
        tensor = local_tensor(shape, sizes, placements, coordinate)
        local = " ".join(map(str, tensor.shape))
        out.write(f"{local} : {runs(tensor.flatten().tolist())}\n")


def choices(dims, factors):
    result = [Replicate()] + [Shard(dim) for dim in range(dims)]
    return result + [_StridedShard(dim, split_factor=sf) for dim in range(dims) for sf in factors]


def cases():
    # Every pair of placements on an uneven matrix, then what frameworks make.
    for pair in itertools.product(choices(2, (2, 3)), repeat=2):
        yield (2, 3), (7, 5), pair
    for size in range(14):
        yield (4,), (size,), (Shard(0),)
        yield (3,), (size,), (_StridedShard(0, split_factor=2),)
        yield (2, 2), (size, 2), (_StridedShard(0, split_factor=2), Shard(0))
        yield (2, 2), (size, 2), (Shard(0), Shard(0))
    for size in (4, 8, 9, 13, 3):
        yield (2, 2, 2), (size, 3), (Replicate(), _StridedShard(0, split_factor=2), Shard(0))
        yield (2, 2, 2), (size, 3, 5), (_StridedShard(0, split_factor=2), Shard(0), Shard(2))
        yield (2, 2, 2), (size, 3), (
            _StridedShard(0, split_factor=4), _StridedShard(0, split_factor=2), Shard(0))
    yield (2,), (), (Replicate(),)
    generator = random.Random(20250)
    for _ in range(170):
        axes = generator.randint(1, 3)
        dims = generator.randint(1, 4)
        sizes = tuple(generator.randint(1, (5, 4, 3)[axes - 1]) for _ in range(axes))
        shape = tuple(generator.randint(0 if generator.random() < 0.05 else 1, (29, 11, 6, 4)[dims - 1])
                      for _ in range(dims))
        yield sizes, shape, tuple(generator.choice(choices(dims, (2, 3, 4, 7)))
                                  for _ in range(axes))


def main():
    path = pathlib.Path(__file__).with_name("torch_geometry_cases.txt")
    with path.open("w") as out:
        out.write(f"# torch {torch.__version__}; written by torch_geometry.py\n")
        for case in cases():
            write_case(out, *case)


if __name__ == "__main__":
    main()
