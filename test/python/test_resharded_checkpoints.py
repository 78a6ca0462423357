"""Checkpoints move between meshes and placements of every kind, parameters and states, those per row and
column, masters and step counts too: random layouts on 8 ranks save, others on 4 load, and every element is
where it belongs. Matrices are single ones, stacked, divided and flattened. STEPC_SEED repeats a run."""

import math
import os
import random
import zlib
from collections import Counter

import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

from stepc.torch import Blocks, Optimizer, Placed, parameters_to_save

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
SPEC = """
optimizer Factored(lr) {
  master : f32
  state m : f32
  state r : f32[rows]
  state c : f32[cols]
  m = m + grad
  r = r + mean(grad, over = columns)
  c = c + mean(grad, over = rows)
  param = param - lr * m
}
route { Factored(lr = 0.1) for matrix }
"""
COUNT = 48
KINDS = ("R", "S", "_S", "IS", "flat", "owned")
MESHES = {8: ((8,), (2, 4), (2, 2, 2)), 4: ((4,), (2, 2), (2, 1, 2))}
MATRICES = ("single", "stacked", "divided", "flattened")  # in turn, every second of each in bf16
DECLARED = {"batch": {"stacked*": 1}, "blocks": {"divided*": Blocks([1, 3], repeat=2)}, "flatten": {"flattened*": 1}}


def shapes(seed):
    source, result = random.Random(f"{seed} shapes"), {}
    for number in range(COUNT):
        rows, cols, matrix = source.choice((6, 8, 12, 24, 13)), source.choice((4, 6, 12, 7)), MATRICES[number % 4]
        shape = {"single": (rows, cols), "stacked": (source.choice((3, 4, 8)), rows, cols),
                 "divided": (8, cols), "flattened": (rows, source.choice((2, 3)), cols)}[matrix]  # fmt: skip
        result[f"{matrix}{number}"] = shape
    return result


def dtype_of(name):
    return torch.bfloat16 if int("".join(filter(str.isdigit, name))) // 4 % 2 else torch.float32


def whole(name, key, shape):
    """The value of a parameter or state, wherever it is."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {key}".encode()))
    return torch.randint(1, 1000, shape, generator=generator) if key == "step" else torch.randn(shape, generator=generator)


def drawn(source, kind, shape, sizes):
    """(kind, texts): a random placement of this kind for parameter or states, with something else on other
    axes. Where a strided shard would not be even, another kind is made."""
    axis = source.randrange(len(sizes))
    texts, others = ["R"] * len(sizes), [other for other in range(len(sizes)) if other != axis]
    pairs = [(a, b) for b in range(len(sizes)) for a in range(b) if min(sizes[a], sizes[b]) > 1 and shape[0] % (sizes[a] * sizes[b]) == 0]
    if kind == "_S" and not pairs:
        kind = "owned"
    if others and source.random() < 0.5:
        texts[source.choice(others)] = "S(1)"
    if kind == "_S":
        first, second = source.choice(pairs)
        texts = ["R"] * len(sizes)
        texts[first], texts[second] = f"_S(0, {sizes[second]})", "S(0)"
    elif kind == "S":
        texts[axis] = "S(0)"
    elif kind == "IS":
        stripes = source.choice([n for n in (1, 2, 3, 4, 6) if shape[0] % n == 0])
        texts[axis] = f"IS(0, {stripes})"
    elif kind == "owned":
        texts[axis] = f"owned({source.randrange(sizes[axis])})"
    elif kind == "flat":
        cut = [-(-shape[1] // sizes[texts.index("S(1)")])] if "S(1)" in texts else [shape[1]]
        most = math.prod([shape[0], *cut, *shape[2:]])
        cuts = sorted([0, most, *(source.randint(0, most) for _ in range(sizes[axis] - 1))])
        texts[axis] = f"flat({', '.join(map(str, cuts))})"
    return kind, texts


def dtensor_words(texts):
    """DTensor's placements; None where it has none."""
    result = []
    for text in texts:
        numbers = [int(n) for n in text.partition("(")[2].rstrip(")").split(",") if n]
        if text == "R":
            result.append(Replicate())
        elif text.startswith("S("):
            result.append(Shard(*numbers))
        elif text.startswith("_S("):
            result.append(_StridedShard(numbers[0], split_factor=numbers[1]))
        else:
            return None
    return result


def made(size, seed, counts):
    """An optimizer of random layouts. States of some parameters lie elsewhere than these, which are whole
    then.
    """
    source, model, placed = random.Random(f"{seed} {size}"), {}, {}
    meshes = [
        init_device_mesh("cpu", sizes, mesh_dim_names=[f"x{i}" for i in range(len(sizes))])
        for sizes in MESHES[size]
    ]
    shift = source.randrange(len(KINDS))
    for number, (name, shape) in enumerate(shapes(seed).items()):
        # Each kind comes with each sort of matrices.
        kind = KINDS[(number // len(MATRICES) + shift) % len(KINDS)]
        mesh = source.choice(meshes[1:] if kind == "_S" else meshes)
        kind, texts = drawn(source, kind, shape, tuple(mesh.shape))
        counts[kind] += 1
        counts.update({f"{len(mesh.shape)} axes", name.rstrip("0123456789"), str(dtype_of(name))})
        words, like = dtensor_words(texts), torch.zeros(shape, dtype=dtype_of(name))
        if words is not None and source.random() < 0.7:
            model[name] = nn.Parameter(distribute_tensor(like, mesh, words, src_data_rank=None))
        elif source.random() < 0.5:
            model[name] = nn.Parameter(like)
            placed[name] = Placed(mesh, ["R"] * mesh.ndim, shape, states=texts)
            counts["states apart"] += 1
        else:
            model[name] = nn.Parameter(like.reshape(-1)[:0])  # as long as the library says
            placed[name] = Placed(mesh, texts, shape)
    return model, placed


def prepared(size, seed, counts):
    model, placed = made(size, seed, counts)
    # Plain shards have the shape that a first library tells.
    for name, p in model.items():
        if not p.numel() and not isinstance(p, DTensor):
            model[name] = nn.Parameter(p.new_zeros(local_shape(placed[name], shapes(seed)[name])))
    optimizer = Optimizer(model.items(), SPEC, placements=placed, timeout=120.0, **DECLARED)
    optimizer.prepare()
    return model, optimizer


def local_shape(placed, shape):
    """Of a plain shard, from the definitions."""
    place, count, local = placed.mesh.get_coordinate(), None, list(shape)
    for text, at, size in zip(placed.placements, place, placed.mesh.shape, strict=True):
        numbers = [int(n) for n in text.partition("(")[2].rstrip(")").split(",") if n]
        if text.startswith(("S(", "IS(", "_S(")):
            # Strided ones divide evenly here.
            stripes = numbers[1] if text.startswith("IS") else 1
            each = local[numbers[0]] // stripes
            local[numbers[0]] = stripes * max(0, min(-(-each // size), each - at * -(-each // size)))
        elif text.startswith("owned") and at != numbers[0]:
            return (0,)
        elif text.startswith("flat"):
            count = numbers[at : at + 2]
    if count is None:
        return tuple(local)
    return (min(count[1], math.prod(local)) - min(count[0], math.prod(local)),)


def tensors_of(model, optimizer):
    return {
        name: {"param": p, **optimizer.state[model[name]]}
        for name, p in parameters_to_save(optimizer).items()
    }


def each_held(model, optimizer):
    """(name, key, this rank's elements, the numbers that they have in the whole, its shape)."""
    instance = optimizer._binding.instance
    for parameter in instance.parameters:
        name, p = parameter.name, model[parameter.name]
        for key, tensor, of in [("param", p, -1)] + [(one.name, optimizer.state[p][one.name], number)
                                                      for number, one in enumerate(parameter.states)]:  # fmt: skip
            held = (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()
            runs = instance.shard_runs(parameter.index, of)
            numbers = np.concatenate(
                [np.arange(start, start + length) for start, _, length in runs] or [np.zeros(0, int)]
            )
            yield name, key, held, numbers, parameter.global_shape if of < 0 else parameter.states[of].global_shape
        yield name, "step", optimizer.state[p]["step"], np.zeros(1, int), ()


def _save(rank, size, folder, seed):
    counts, like = Counter(), {}
    model, optimizer = prepared(size, seed, counts)
    with torch.no_grad():
        for name, key, held, numbers, shape in each_held(model, optimizer):
            value = whole(name, key, shape).reshape(-1)[torch.from_numpy(numbers)]
            held.copy_(value.reshape(held.shape))
            like[name, key] = torch.zeros(shape, dtype=held.dtype)
    dcp.save(tensors_of(model, optimizer), checkpoint_id=folder)
    return counts, like


def _load(rank, size, folder, seed):
    counts = Counter()
    model, optimizer = prepared(size, seed, counts)
    tensors = tensors_of(model, optimizer)
    dcp.load(tensors, checkpoint_id=folder)
    for name, key, held, numbers, shape in each_held(model, optimizer):
        value = whole(name, key, shape).reshape(-1)[torch.from_numpy(numbers)]
        assert torch.equal(held.reshape(-1), value.to(held.dtype)), (name, key)
        counts[key] += 1
    return counts


def test_checkpoints_move_between_placements_of_every_kind(real, tmp_path, capsys):
    folder = str(tmp_path / "saved")
    saved, like = run_ranks(_save, 8, 8, folder, SEED)[0]
    loaded = run_ranks(_load, 4, 4, folder, SEED)[0]
    # And into one process.
    plain = {}
    for (name, key), tensor in like.items():
        plain.setdefault(name, {})[key] = tensor
    dcp.load(plain, checkpoint_id=folder)
    for (name, key), value in like.items():
        assert torch.equal(value, whole(name, key, value.shape).to(value.dtype)), (name, key)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: saved {dict(saved)}, loaded {dict(loaded)}")
    assert (
        all(loaded[key] == COUNT for key in ("param", "m", "r", "c", "step"))
        and loaded["master"] == COUNT // 2
    )
    for kind in (*KINDS, *MATRICES, "states apart", "1 axes", "2 axes", "3 axes", "torch.float32", "torch.bfloat16"):
        assert saved[kind] and loaded[kind], (SEED, kind)
