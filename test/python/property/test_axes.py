"""What ranks hold on meshes of up to five axes: what torch's own functions split, axis by axis, which needs
no processes; stripes, owners and ranges by their definitions. All ranks together hold the whole, each element
as often as there are replicas, and what is cut to shards and put together again is the same. STEPC_SEED
repeats a run."""

import ctypes
import itertools
import json
import math
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from compiler import STEPC, stepc
from random_layouts import Layout, Mesh, parse, random_placements
from stepc import Instance, Library, _abi
from stepc.torch.pieces import boxes
from torch.distributed.tensor.placement_types import Shard, _StridedShard
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
SIZES = ((8,), (2, 4), (2, 2, 2), (3, 1, 2), (2, 1, 2, 2), (1, 2, 3, 2), (2, 2, 2, 2, 2), (2, 1, 3, 2, 1))
WORLD, CASES, LEAST = 32, draws(400), 2
SPEC = "optimizer Sgd(lr) {\n  param = param - lr * grad\n}\nroute { Sgd(lr = 0.5) for rest }\n"


class Transport:
    def __init__(self, table):
        self.table = table


def split(held, placement, size, at):
    """The shard of one of `size` ranks; a range is cut in the end."""
    kind, numbers = parse(placement)
    if kind == "S":
        return Shard(numbers[0])._split_tensor(held, size, with_padding=False)[0][at]
    if kind == "_S":
        return _StridedShard(numbers[0], split_factor=numbers[1])._split_tensor(
            held, size, with_padding=False
        )[0][at]
    if kind == "IS":  # each stripe is cut as a shard is, and the pieces stand one after the other
        dim, stripes = numbers
        each = torch.tensor_split(held, stripes, dim)
        return torch.cat([split(one, f"S({dim})", size, at) for one in each], dim)
    if kind == "owned" and at != numbers[0]:
        return held.reshape(-1)[:0]
    return held


def expected(layout, coordinates):
    """The numbers of the elements on one rank, in their order."""
    held, cuts, index = torch.arange(math.prod(layout.shape)).reshape(layout.shape), None, 0
    for placement, size, at in zip(layout.placements, layout.mesh.sizes, coordinates, strict=True):
        kind, numbers = parse(placement)
        if kind == "flat":
            cuts, index = cuts or numbers, index * size + at
        elif held.dim() == len(layout.shape):  # else another rank owns it
            held = split(held, placement, size, at)
    held = held.reshape(-1)
    return held[cuts[index] : cuts[index + 1]] if cuts else held


def traits(layout):
    """What is special about it, to be counted."""
    cut, result = {}, {f"{len(layout.mesh.sizes)} axes"}
    for placement, size in zip(layout.placements, layout.mesh.sizes, strict=True):
        kind, numbers = parse(placement)
        result.add(kind)
        if kind in ("S", "_S", "IS") and size > 1:
            before = cut.setdefault(numbers[0], [])
            result |= {f"{kind} behind {other}" for other in before}
            before.append(kind)
            if kind == "_S" and layout.shape[numbers[0]] % (size * numbers[1]):
                result.add("uneven _S")
    return result


COUNTED = ("1 axes", "2 axes", "3 axes", "4 axes", "5 axes", "R", "S", "_S", "IS", "owned", "flat",
           "S behind S", "S behind _S", "IS behind S", "S behind IS", "IS behind IS", "uneven _S")  # fmt: skip


def drawn(source, mesh):
    """Stripes often come to be along with other axes of their dimension."""
    shape = tuple(source.choice([source.randint(1, 6), source.choice([8, 12, 16, 24]), source.randint(7, 25)])
                  for _ in range(source.randint(1, 3)))  # fmt: skip
    dims = [source.randrange(len(shape))] if source.random() < 0.5 else list(range(len(shape)))
    return Layout(mesh, shape, 0, random_placements(source, mesh, shape, dims))


def runs_of_all(library):
    """By rank and parameter, on ranks in this process."""
    tables = (_abi.Transport * WORLD)()
    for table in tables:
        table.struct_size = ctypes.sizeof(_abi.Transport)
    assert library.table.in_process_world(WORLD, tables) == _abi.OK

    def of(rank):
        instance = Instance(library, Transport(tables[rank]), threads=1, timeout=60.0)
        found = {p.name: instance.shard_runs(p.index) for p in instance.parameters}
        instance.close()
        return found

    with ThreadPoolExecutor(WORLD) as pool:
        return list(pool.map(of, range(WORLD)))


def test_shards_are_what_torch_splits(tmp_path, capsys):
    source = random.Random(SEED)
    every = list(range(WORLD))
    meshes = [Mesh(f"m{i}", sizes, source.sample(every, math.prod(sizes))) for i, sizes in enumerate(SIZES)]
    layouts = [drawn(source, meshes[i % len(meshes)]) for i in range(CASES)]
    parameters = [{"name": f"w{i}", "shape": list(one.shape), "dtype": "f32", "mesh": one.mesh.name, "placements": one.placements}
                  for i, one in enumerate(layouts)]  # fmt: skip
    (tmp_path / "sgd.optim").write_text(SPEC)
    (tmp_path / "m.json").write_text(
        json.dumps({"version": 1, "meshes": [m.json() for m in meshes], "parameters": parameters})
    )
    stepc("compile", tmp_path / "sgd.optim", "-m", tmp_path / "m.json", "-o", tmp_path / "out")
    found, counts = runs_of_all(Library(tmp_path / "out" / "libsgd.so")), Counter()
    for index, layout in enumerate(layouts):
        size, where = math.prod(layout.shape), f"STEPC_SEED={SEED}: {layout}"
        times, whole = np.zeros(size, int), torch.arange(float(size)).reshape(layout.shape)
        rebuilt = torch.full(layout.shape, -1.0)
        places = dict(zip(layout.mesh.ranks, itertools.product(*map(range, layout.mesh.sizes)), strict=True))
        for rank in every:
            runs = found[rank][f"w{index}"]
            numbers = np.concatenate(
                [np.arange(start, start + length) for start, _, length in runs] or [np.zeros(0, int)]
            )
            wanted = expected(layout, places[rank]).numpy() if rank in places else np.zeros(0, int)
            assert np.array_equal(numbers, wanted), f"{where}, rank {rank}"
            np.add.at(times, numbers, 1)
            shard = torch.full((len(numbers),), -1.0)
            for box in boxes(runs, layout.shape):
                box.of(shard).copy_(box.within(whole))
                box.within(rebuilt).copy_(box.of(shard))
        copies = math.prod(s for p, s in zip(layout.placements, layout.mesh.sizes, strict=True) if p == "R")
        assert (times == copies).all(), where
        assert torch.equal(rebuilt, whole), where
        counts.update(traits(layout))
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {CASES} layouts on {WORLD} ranks: {dict(counts)}")
    rare = {name: counts[name] for name in COUNTED if counts[name] < LEAST}
    assert not rare, f"STEPC_SEED={SEED}: expected each at least {LEAST} times, found {rare}"
