"""What the library says that shards hold is what torch has put there, on hundreds of random cases of
torch's when landing, and on thousands in the widest tier; together they hold the whole, which is put together again from them.

DTensor's `distribute_tensor` and real `fully_shard`, alone, over tensor and expert parallelism, and with
replicas; stripes, ranges and owners, which DTensor cannot distribute, against an oracle written from their
definition. STEPC_SEED repeats a run."""

import copy
import itertools
import math
import os
import pickle
import random
from collections import Counter

import numpy as np
import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

from stepc.errors import StepcError
from stepc.torch import Optimizer, Placed
from stepc.torch.pieces import Box, Piece, boxes
from stepc.torch.states import check_source
from tiers import draws

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
SGD = """
optimizer Sgd(lr) {
  state m : f32
  m = m + grad
  param = param - lr * m
}
route { Sgd(lr = 0.1) for rest }
"""
SIZE = 6
MESHES = {"line": (6,), "wide": (2, 3), "tall": (3, 2), "cube": (1, 3, 2)}
# fully_shard along "dp", over another axis that has cut before, and with replicas.
FSDP = {"fsdp": ((6,), ("dp",)), "fsdp over tp": ((3, 2), ("dp", "tp")), "fsdp over ep": ((2, 3), ("dp", "ep")),
        "hsdp": ((2, 3), ("rep", "dp")), "hsdp over tp": ((1, 3, 2), ("rep", "dp", "tp"))}  # fmt: skip
COUNTS = {"distribute_tensor": draws(65), "fully_shard": draws(15), "defined": draws(23)}  # the second for each of FSDP


def counted(shape):
    return torch.arange(float(math.prod(shape))).reshape(shape)


def random_shape(source, axes=(1, 3)):
    return tuple(
        source.choice([source.randint(1, 5), source.randint(1, 20)]) for _ in range(source.randint(*axes))
    )


def past_its_size(shape, sizes, dims):
    """Whether two axes find fewer indices than they have ranks, which the manifest refuses."""
    for dim in set(dims) - {None}:
        left, few = shape[dim], 0
        for size, one in zip(sizes, dims, strict=True):
            if one == dim:
                few += left < size
                left = -(-left // size)
        if few > 1:
            return True
    return False


def distributed(source, meshes):
    """Random R and S, and _S over one later axis, as distribute_tensor puts them."""
    for number in range(COUNTS["distribute_tensor"]):
        name = source.choice(list(MESHES))
        mesh, sizes = meshes[name], MESHES[name]
        while True:
            shape = random_shape(source)
            dims = [source.choice([None, *range(len(shape))]) for _ in sizes]
            if not past_its_size(shape, sizes, dims):
                break
        places = [Replicate() if dim is None else Shard(dim) for dim in dims]
        strided = len(sizes) > 1 and dims[-1] is not None and dims[-1] == dims[-2] and source.random() < 0.5
        if strided and shape[dims[-1]] % (sizes[-1] * sizes[-2]) == 0:  # others: what FSDP2 has, below
            places[-2] = _StridedShard(dims[-1], split_factor=sizes[-1])
        yield f"d{number}", shape, distribute_tensor(counted(shape), mesh, places, src_data_rank=None)


class Weights(nn.Module):
    def __init__(self, weights):
        super().__init__()
        for name, value in weights.items():
            self.register_parameter(name, nn.Parameter(value))


def by_fsdp(source, kind, mesh):
    """Random parameters of one module, some cut by the inner axis, sharded by fully_shard."""
    sizes, names = FSDP[kind]
    inner = names[-1] if names[-1] != "dp" else None
    weights = {}
    for number in range(COUNTS["fully_shard"]):
        shape = random_shape(source)
        value = counted(shape)
        if inner and source.random() < 0.8:
            dim = source.choice([0, 0, *range(len(shape))])
            if dim == 0 and shape[0] < math.prod(sizes):
                shape = (shape[0] + math.prod(sizes), *shape[1:])  # both axes find enough
                value = counted(shape)
            value = distribute_tensor(value, mesh[inner], [Shard(dim)], src_data_rank=None)
        elif inner:
            value = distribute_tensor(value, mesh[inner], [Replicate()], src_data_rank=None)
        weights[f"{kind.replace(' ', '_')}{number}"] = value
    model = Weights(weights)
    fully_shard(model, mesh=mesh["rep", "dp"] if "rep" in names else mesh["dp"])
    return [(name, tuple(p.shape), p) for name, p in model.named_parameters()]


def oracle(shape, sizes, texts, place):
    """Global numbers of the elements that a rank holds, from the definitions alone: stripes are cut one by
    one and put together, an owner has all, a range is one of what the other axes leave."""
    held, flat, elsewhere = np.arange(math.prod(shape)).reshape(shape), None, False
    for size, text, at in zip(sizes, texts, place, strict=True):
        kind, _, inside = text.partition("(")
        numbers = [int(n) for n in inside[:-1].split(",")] if inside else []

        def piece(values, dim, pieces, index):
            length = -(-values.shape[dim] // pieces)
            return np.take(values, range(min(index * length, values.shape[dim]),
                                         min((index + 1) * length, values.shape[dim])), axis=dim)  # fmt: skip

        if kind == "S":
            held = piece(held, numbers[0], size, at)
        elif kind == "IS":
            dim, stripes = numbers
            held = np.concatenate(
                [piece(one, dim, size, at) for one in np.split(held, stripes, axis=dim)], axis=dim
            )
        elif kind == "owned":
            elsewhere |= at != numbers[0]
        elif kind == "flat":
            flat = numbers[at : at + 2]
    if elsewhere or flat:  # in one axis
        held = held.reshape(-1)[: 0 if elsewhere else None]
    return held[flat[0] : flat[1]] if flat else held


def defined(source, meshes, rank):
    """Plain tensors with placements that DTensor has no words for: (name, shape, tensor, where it is)."""
    for number in range(COUNTS["defined"]):
        name = source.choice(["line", "wide", "tall"])
        mesh, sizes = meshes[name], MESHES[name]
        texts = ["R"] * len(sizes)
        axis, kind = source.randrange(len(sizes)), source.choice(["IS", "flat", "owned"])
        shape = random_shape(source)
        dim, stripes = source.randrange(len(shape)), source.randint(1, 4)
        other = 1 - axis
        if len(sizes) > 1 and source.random() < 0.6:
            texts[other] = f"S({source.choice([d for d in range(len(shape)) if d != dim] or [0])})"
        if kind == "IS":
            if len(sizes) > 1 and texts[other] == f"S({dim})":
                texts[other] = "R"
            shape = (*shape[:dim], shape[dim] * stripes, *shape[dim + 1 :])
            texts[axis] = f"IS({dim}, {stripes})"
        elif kind == "owned":
            texts[axis] = f"owned({source.randrange(sizes[axis])})"
        else:
            most = oracle(shape, sizes, texts, [0] * len(sizes)).size
            cuts = sorted([0, most, *(source.randint(0, most) for _ in range(sizes[axis] - 1))])
            texts[axis] = f"flat({', '.join(map(str, cuts))})"
        held = oracle(shape, sizes, texts, mesh.get_coordinate())
        yield f"x{number}", shape, nn.Parameter(torch.from_numpy(held.astype(np.float32))), Placed(mesh, texts, shape)


def expect_elements(instance, index, shape, local, name):
    """Runs, and boxes of them, are the elements that are there: the boxes, and what they hold."""
    runs = instance.shard_runs(index)
    found = np.full(local.size, -1.0)
    for start, at, length in runs:
        found[at : at + length] = np.arange(start, start + length)
    assert np.array_equal(found, local), name
    rebuilt, flat = torch.full((local.size,), -1.0), counted(shape)
    for box in boxes(runs, shape):
        box.of(rebuilt).copy_(box.within(flat))
    assert np.array_equal(rebuilt.numpy(), local), name
    return [tuple(box) for box in boxes(runs, shape)], rebuilt


def expect_whole(name, shape, shards):
    """Of (boxes, elements) of each rank: every element is there as often as any other, and where it
    belongs.
    """
    times, rebuilt = torch.zeros(shape), torch.full(shape, -1.0)
    for parts, held in shards:
        for box in itertools.starmap(Box, parts):
            box.within(times).add_(1)
            box.within(rebuilt).copy_(box.of(held))
    assert times.min() == times.max() >= 1 and torch.equal(rebuilt, counted(shape)), (name, shape)


def _geometry(rank, seed):
    source = random.Random(seed)  # the same on all ranks
    meshes = {name: init_device_mesh("cpu", sizes, mesh_dim_names=[f"x{i}" for i in range(len(sizes))])
              for name, sizes in MESHES.items()}  # fmt: skip
    cases, counts, placed = [], Counter(), {}
    for name, shape, tensor in distributed(source, meshes):
        cases.append((name, shape, nn.Parameter(tensor)))
        counts["distribute_tensor"] += 1
    for kind, (sizes, names) in FSDP.items():
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        own = by_fsdp(source, kind, mesh)
        cases += own
        counts[kind] += len(own)
    for name, shape, tensor, place in defined(source, meshes, rank):
        cases.append((name, shape, tensor))
        placed[name] = place
        counts["defined"] += 1
    optimizer = Optimizer([(name, p) for name, _, p in cases], SGD, placements=placed, timeout=120.0)
    optimizer.prepare()
    instance, tensors = optimizer._binding.instance, {name: (shape, p) for name, shape, p in cases}
    empty, uneven, shards = 0, 0, {}
    for index, parameter in enumerate(instance.parameters):
        shape, p = tensors[parameter.name]
        local = (p.to_local() if isinstance(p, DTensor) else p).detach().numpy().reshape(-1)
        name = parameter.name
        shards[name] = (
            shape,
            expect_elements(instance, index, shape, local, (name, shape, parameter.placements)),
        )
        empty += not local.size
        uneven += "flat" in parameter.placements or local.size * SIZE % math.prod(shape) != 0
        # A whole state, cut to where it is, is what the parameter has.
        state = optimizer.state[p]["m"]
        held = state.to_local() if isinstance(state, DTensor) else state
        if hasattr(held, "cut"):
            assert np.array_equal(held.cut(counted(shape)).reshape(-1).numpy(), local), parameter.name
    counts |= Counter(empty=empty, uneven=uneven)
    assert len(instance.parameters) == len(cases)
    return counts, shards


def test_geometry_is_torchs(real, capsys):
    results = run_ranks(_geometry, SIZE, SEED)
    counts, cases = results[0][0], len(results[0][1])
    for name, (shape, _) in results[0][1].items():
        expect_whole(name, shape, [shards[name][1] for _, shards in results])
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {cases} cases of geometry on {SIZE} ranks: {dict(counts)}")
    assert cases - counts["defined"] >= draws(125)
    assert all(counts[kind] >= draws(11) for kind in [*FSDP, "distribute_tensor", "defined"])
    assert counts["uneven"] >= draws(12) and sum(one["empty"] for one, _ in results) >= draws(2)


def test_boxes_of_any_runs():
    """Random subsets of small tensors, in any order of rows and columns: what is cut by boxes is what
    runs say.
    """
    source = random.Random(SEED)
    for _ in range(300):
        shape = tuple(source.randint(1, 6) for _ in range(source.randint(0, 4)))
        whole = np.arange(math.prod(shape)).reshape(shape)
        picked = [sorted(source.sample(range(n), source.randint(1, n))) for n in shape]
        held = whole[np.ix_(*picked)].reshape(-1) if shape else whole.reshape(-1)
        if source.random() < 0.4:
            begin = source.randint(0, held.size)
            held = held[begin : source.randint(begin, held.size)]
        runs, at = [], 0
        for _, group in itertools.groupby(enumerate(held.tolist()), lambda pair: pair[1] - pair[0]):
            values = [value for _, value in group]
            runs.append((values[0], at, len(values)))
            at += len(values)
        found = torch.full((held.size,), -1.0)
        total = 0
        for box in boxes(runs, shape):
            box.of(found).copy_(box.within(counted(shape)))
            total += math.prod(box.sizes)
        assert np.array_equal(found.numpy(), held) and total == held.size, (shape, runs)


def test_regular_shards_are_few_boxes():
    columns = [(row * 100 + 20, row * 10, 10) for row in range(5000)]
    assert [box[:2] for box in boxes(columns, (5000, 100))] == [((0, 20), (5000, 10))]
    striped = [(row * 12 + 6 * stripe, (row * 2 + stripe) * 3, 3) for row in range(50) for stripe in range(2)]
    assert [box[:2] for box in boxes(striped, (50, 12))] == [((0, 0), (50, 3)), ((0, 6), (50, 3))]
    assert len(boxes([(7, 0, 95)], (10, 10, 2))) <= 5


def test_pieces_survive_copies_and_files(tmp_path):
    """With their place, so that they fit where a rank has the same boxes; what operations make of them is
    a plain tensor.
    """
    piece = Piece.of(torch.arange(5.0), (4, 3), boxes([(4, 0, 5)], (4, 3)))
    torch.save({"m": piece}, tmp_path / "saved.pt")
    loaded = torch.load(tmp_path / "saved.pt", weights_only=True)["m"]
    for other in (loaded, copy.deepcopy(piece), pickle.loads(pickle.dumps(piece))):
        assert type(other) is Piece and other.boxes == piece.boxes and other.size() == (4, 3) and other.shape == (5,)
        assert torch.equal(other.plain, piece.plain) and other.data_ptr() != piece.data_ptr()
    assert torch.equal(loaded.cut(counted((4, 3))), torch.arange(4.0, 9.0))
    assert type(piece + 1) is torch.Tensor and type(piece.clone()) is torch.Tensor
    check_source(piece, loaded, "state 'm'")
    check_source(piece, torch.zeros(4, 3), "state 'm'")
    shifted = Piece.of(torch.arange(5.0), (4, 3), boxes([(5, 0, 5)], (4, 3)))
    with pytest.raises(
        StepcError,
        match="state 'm': expected a whole tensor, or the piece that this rank has, found the piece at",
    ):
        check_source(piece, shifted, "state 'm'")
    with pytest.raises(StepcError, match=r"state 'm': expected shape \[4, 3\], found \[5\]; torch.s full_state_dict .* copy"):
        check_source(piece, piece.clone(), "state 'm'")
