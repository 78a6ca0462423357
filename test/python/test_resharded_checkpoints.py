"""Checkpoints move between meshes and placements of every kind, parameters and states, those per row and column too: random
layouts on 6 ranks save, others on 4 load, and every element is where it belongs. STEPC_SEED repeats a run."""

import math
import os
import random
from collections import Counter

import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

from stepc.torch import Optimizer, Placed, parameters_to_save

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
SPEC = """
optimizer Factored(lr) {
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
COUNT = 40
KINDS = ("R", "S", "_S", "IS", "flat", "owned")
MESHES = {6: ((6,), (2, 3), (3, 2)), 4: ((4,), (2, 2))}


def shapes(seed):
    source = random.Random(f"{seed} shapes")
    return {f"w{i}": (source.choice((6, 8, 12, 24, 13)), source.choice((4, 6, 12, 7))) for i in range(COUNT)}


def whole(name, key, shape):
    """The value of a parameter or state, wherever it is."""
    generator = torch.Generator().manual_seed(sum(map(ord, name + key)) * 1009 + len(shape))
    return torch.randn(shape, generator=generator)


def drawn(source, shape, sizes):
    """(kind, texts): a random placement of parameter and states of this kind, with something else on other axes."""
    kind, axis = source.choice(KINDS), source.randrange(len(sizes))
    texts = ["R"] * len(sizes)
    if len(sizes) > 1 and source.random() < 0.5:
        texts[1 - axis] = "S(1)"
    if kind == "S":
        texts[axis] = "S(0)"
    elif kind == "_S" and len(sizes) > 1 and shape[0] % math.prod(sizes) == 0:
        texts = [f"_S(0, {sizes[1]})", "S(0)"]
    elif kind == "IS":
        stripes = source.choice([n for n in (1, 2, 3, 4, 6) if shape[0] % n == 0])
        texts[axis] = f"IS(0, {stripes})"
    elif kind == "owned":
        texts[axis] = f"owned({source.randrange(sizes[axis])})"
    elif kind == "flat":
        most = shape[0] * (shape[1] if "S(1)" not in texts else -(-shape[1] // sizes[1 - axis]))
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
    """An optimizer of random layouts. States of some parameters lie elsewhere than these, which are whole then."""
    source, model, placed = random.Random(f"{seed} {size}"), {}, {}
    meshes = [init_device_mesh("cpu", sizes, mesh_dim_names=[f"x{i}" for i in range(len(sizes))]) for sizes in MESHES[size]]
    for name, shape in shapes(seed).items():
        mesh = source.choice(meshes)
        kind, texts = drawn(source, shape, tuple(mesh.shape))
        counts[kind] += 1
        words = dtensor_words(texts)
        if words is not None and source.random() < 0.7:
            model[name] = nn.Parameter(distribute_tensor(torch.zeros(shape), mesh, words, src_data_rank=None))
        elif source.random() < 0.5:
            model[name] = nn.Parameter(torch.zeros(shape))
            placed[name] = Placed(mesh, ["R"] * mesh.ndim, shape, states=texts)
            counts["states apart"] += 1
        else:
            model[name] = nn.Parameter(torch.zeros(0))  # as long as the library says
            placed[name] = Placed(mesh, texts, shape)
    return model, placed


def prepared(size, seed, counts):
    model, placed = made(size, seed, counts)
    # Plain shards have the shape that a first library tells.
    for name, p in model.items():
        if not p.numel() and not isinstance(p, DTensor):
            model[name] = nn.Parameter(torch.zeros(local_shape(placed[name], shapes(seed)[name])))
    optimizer = Optimizer(model.items(), SPEC, placements=placed, timeout=120.0)
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
    return {name: {"param": p, **{k: v for k, v in optimizer.state[model[name]].items() if k != "step"}}
            for name, p in parameters_to_save(optimizer).items()}  # fmt: skip


def each_held(model, optimizer):
    """(name, key, this rank's elements, the numbers that they have in the whole, its shape)."""
    instance = optimizer._binding.instance
    for parameter in instance.parameters:
        name, p = parameter.name, model[parameter.name]
        for key, tensor, of in [("param", p, -1)] + [(one.name, optimizer.state[p][one.name], number)
                                                      for number, one in enumerate(parameter.states)]:  # fmt: skip
            held = (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()
            runs = instance.shard_runs(parameter.index, of)
            numbers = np.concatenate([np.arange(start, start + length) for start, _, length in runs] or [np.zeros(0, int)])
            yield name, key, held, numbers, parameter.global_shape if of < 0 else parameter.states[of].global_shape


def _save(rank, size, folder, seed):
    counts = Counter()
    model, optimizer = prepared(size, seed, counts)
    with torch.no_grad():
        for name, key, held, numbers, shape in each_held(model, optimizer):
            value = whole(name, key, shape).reshape(-1)[torch.from_numpy(numbers)]
            held.copy_(value.reshape(held.shape))
    dcp.save(tensors_of(model, optimizer), checkpoint_id=folder)
    return counts


def _load(rank, size, folder, seed):
    counts = Counter()
    model, optimizer = prepared(size, seed, counts)
    tensors = tensors_of(model, optimizer)
    dcp.load(tensors, checkpoint_id=folder)
    for name, key, held, numbers, shape in each_held(model, optimizer):
        value = whole(name, key, shape).reshape(-1)[torch.from_numpy(numbers)]
        assert torch.equal(held.reshape(-1), value), (name, key)
        counts["tensors"] += 1
    return counts


def test_checkpoints_move_between_placements_of_every_kind(real, tmp_path, capsys):
    folder = str(tmp_path / "saved")
    saved = run_ranks(_save, 6, 6, folder, SEED)[0]
    loaded = run_ranks(_load, 4, 4, folder, SEED)[0]
    # And into one process.
    plain = {name: {"param": torch.zeros(shape), "m": torch.zeros(shape), "r": torch.zeros(shape[0]), "c": torch.zeros(shape[1])}
             for name, shape in shapes(SEED).items()}  # fmt: skip
    dcp.load(plain, checkpoint_id=folder)
    for name, own in plain.items():
        for key, value in own.items():
            assert torch.equal(value, whole(name, key, tuple(value.shape))), (name, key)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: saved {dict(saved)}, loaded {dict(loaded)}")
    assert loaded["tensors"] == 4 * COUNT
    assert all(saved[kind] and loaded[kind] for kind in KINDS) and saved["states apart"] and loaded["states apart"]
