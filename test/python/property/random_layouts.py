"""Random meshes, shapes and placements, and what is special about them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

PARTIAL = ("P(sum)", "P(avg)")
TOTALS = (1, 2, 3, 4, 5, 8)


@dataclass
class Mesh:
    name: str
    sizes: tuple
    ranks: list

    def json(self):
        axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(self.sizes)]
        return {"name": self.name, "axes": axes, "ranks": self.ranks}


@dataclass
class Layout:
    """Where one parameter lives."""

    mesh: Mesh
    shape: tuple
    batch: int
    placements: list
    gradient: list = None  # of its own, or the parameter's
    state: list = None
    blocks: dict = None  # of the manifest: how its matrices are divided
    flatten: int = 0  # the axis from which on all are columns

    def contributions(self):
        """(how many ranks contribute to the gradient, by what their sum is divided)."""
        axes = list(zip(self.gradient or self.placements, self.mesh.sizes, strict=True))
        return (math.prod(size for placement, size in axes if placement in PARTIAL),
                math.prod(size for placement, size in axes if placement == "P(avg)"))  # fmt: skip

    @property
    def matrix(self):
        """The shape with one axis of rows and one of columns."""
        return matrix_shape(self.shape, self.batch, self.flatten)

    @property
    def kinds(self):
        return {parse(p)[0] for p in self.placements}

    def traits(self):
        """The classes that the property test counts."""
        counts = local_counts(self.shape, self.mesh, self.placements)
        rank = len(self.mesh.sizes)
        result = {
            f"mesh rank {rank}" if rank < 4 else "mesh rank 4 or 5",
            *(f"placement {kind}" for kind in self.kinds),
        }
        for role, own in (("gradient", self.gradient), ("state", self.state)):
            result |= {f"{role} {parse(p)[0]}" for p in own or []}
        if self.contributions()[0] > 1:
            result.add("partial gradient")
        if len(set(counts)) > 1:
            result.add("uneven")
        if 0 in counts:
            result.add("empty")
        if self.batch:
            result.add("batched")
        if self.gradient or self.state:
            result.add("lists apart")
        if self.blocks:
            result.add("divided")
            sizes = [len(part) for part in parts_of(self.blocks)]
            result |= {"equal blocks"} if len(set(sizes)) < len(sizes) else set()
        if self.flatten:
            result.add("flattened")
        return result


def matrix_shape(shape, batch, flatten):
    if not flatten:
        return tuple(shape)
    return (*shape[:batch], math.prod(shape[batch:flatten]), math.prod(shape[flatten:]))


def parse(placement):
    """(kind, numbers) of a placement."""
    kind, _, inside = placement.partition("(")
    if placement in PARTIAL:
        return kind, []
    return kind, [int(number) for number in inside[:-1].split(",")] if inside else []


def chunk(size, count, index):
    """How many of `size` torch.chunk gives to one of `count`."""
    piece = -(-size // count)
    return max(0, min(piece, size - index * piece))


def local_length(size, dim, mesh, placements, at):
    """Indices of a dimension that the rank at these coordinates holds."""
    for axis, placement in enumerate(placements):
        kind, numbers = parse(placement)
        if kind in ("S", "_S", "IS") and numbers[0] == dim:
            stripes = numbers[1] if len(numbers) > 1 else 1
            each = [chunk(size, stripes, stripe) for stripe in range(stripes)]
            size = sum(chunk(one, mesh.sizes[axis], at[axis]) for one in each)
    return size


def local_counts(shape, mesh, placements):
    """Elements that each rank of the mesh holds."""
    counts = []
    for at in itertools.product(*map(range, mesh.sizes)):
        count = math.prod(local_length(size, dim, mesh, placements, at) for dim, size in enumerate(shape))
        cuts, index, ranks = None, 0, 1
        for axis, placement in enumerate(placements):
            kind, numbers = parse(placement)
            if kind == "owned" and numbers[0] != at[axis]:
                count = 0
            if kind == "flat":
                cuts = numbers if cuts is None else cuts
                index, ranks = index * mesh.sizes[axis] + at[axis], ranks * mesh.sizes[axis]
        if cuts is not None:
            count = min(count, cuts[index + 1]) - min(count, cuts[index])
        counts.append(count)
    return counts


def random_sizes(random, total, rank):
    """Axis sizes of a mesh of that many axes; ones are axes too."""
    choices = [s for s in itertools.product(range(1, total + 1), repeat=rank) if math.prod(s) == total]
    best = [s for s in choices if 1 not in s]
    return random.choice(best if best and random.random() < 0.8 else choices)


def random_meshes(random, total):
    """Meshes of one to five axes on ranks of one world, not all on all of it."""
    meshes = []
    for rank in (1, 2, random.choice((3, 3, 4, 5))):
        size = (
            total if rank == 1 or random.random() < 0.7 else random.choice([t for t in TOTALS if t <= total])
        )
        ranks = list(range(total))
        if random.random() < 0.4:
            random.shuffle(ranks)
        meshes.append(Mesh(f"mesh{rank}", random_sizes(random, size, rank), ranks[:size]))
    return meshes


def random_shape(random, matrix, batched, elementwise):
    """(shape, batch axes). Only elementwise rules may have three axes of which none is declared."""

    def size(most=40):
        return random.choice([random.randint(1, 7), random.randint(1, most)])

    if batched:
        lead = [random.randint(1, 6) for _ in range(random.choice([1, 1, 2]))]
        return (*lead, size(20), size(20)), len(lead)
    if matrix:
        return (size(), size()), 0
    axes = random.choice([0, 1, 1, 2, 3] if elementwise else [0, 1, 1, 2])
    return tuple(size(12 if axes > 2 else 40) for _ in range(axes)), 0


def random_flattened(random, batched):
    """(shape, batch axes, axis of the first columns): convolutions, and matrices whose rows or columns
    are several axes.
    """
    lead = [random.randint(1, 3)] if batched else []
    more = random.choice([1, 2, 2, 3])
    matrix = [random.randint(1, 9), random.randint(1, 7), *(random.randint(1, 3) for _ in range(more))]
    if random.random() < 0.3:
        random.shuffle(matrix)
    first = 1 if random.random() < 0.6 else random.randint(1, len(matrix) - 1)
    return (*lead, *matrix), len(lead), len(lead) + first


def random_shards(random, mesh, dims):
    """R, S and _S, one per axis; `dims` are those that may be cut. Several axes may cut one of them, in
    any order.
    """
    chosen = [random.choice(dims) if dims and random.random() < 0.75 else None for _ in mesh.sizes]
    strided = dims and random.random() < 0.5  # all on one dimension, later axes first
    if strided:
        chosen = [random.choice(dims)] * len(mesh.sizes)
    placements = ["R"] * len(mesh.sizes)
    for dim in set(chosen) - {None}:
        axes = [axis for axis, one in enumerate(chosen) if one == dim]
        order = axes[::-1] if strided else random.sample(axes, len(axes))
        for axis in axes:
            before = [a for a in order[: order.index(axis)] if a > axis]
            factor = math.prod(mesh.sizes[a] for a in before)
            placements[axis] = f"_S({dim}, {factor})" if factor > 1 else f"S({dim})"
    return placements


def can_be(shape, mesh, placements):
    """Whether stripes divide what earlier axes leave, none of these is strided, and no dimension is sharded
    past its size twice over."""
    past, striped = [0] * len(shape), set()
    for axis in reversed(range(len(placements))):
        kind, numbers = parse(placements[axis])
        if kind == "IS":
            striped.add(numbers[0])
        elif kind == "_S" and numbers[0] in striped:
            return False
    for axis, placement in enumerate(placements):
        kind, numbers = parse(placement)
        if kind not in ("S", "_S", "IS"):
            continue
        before = placements[:axis] + ["R"] * (len(placements) - axis)
        lengths = {local_length(shape[numbers[0]], numbers[0], mesh, before, at)
                   for at in itertools.product(*map(range, mesh.sizes))}  # fmt: skip
        past[numbers[0]] += max(lengths) < mesh.sizes[axis]
        if kind == "IS" and any(length % numbers[1] for length in lengths):
            return False
    return max(past, default=0) < 2


def random_placements(random, mesh, shape, dims, may_be_flat=True):
    """Any that can be: stripes, owners and flat ranges beside shards."""
    while True:
        placements = random_shards(random, mesh, dims)
        for axis, size in enumerate(mesh.sizes):
            if dims and random.random() < 0.2:
                placements[axis] = f"IS({random.choice(dims)}, {random.randint(1, 4)})"
            elif random.random() < 0.08:
                placements[axis] = f"owned({random.randrange(size)})"
        flat = [axis for axis in range(len(mesh.sizes)) if random.random() < 0.6]
        if not (may_be_flat and random.random() < 0.35):
            flat = []
        if any(parse(p)[0] == "_S" for p in placements) and len({*placements}) > 1:
            placements = strides_that_exist(mesh, placements, flat)
        for axis in flat:
            placements[axis] = "R"
        if not can_be(shape, mesh, placements):
            continue
        if flat:
            most = max(local_counts(shape, mesh, placements))
            ranks = math.prod(mesh.sizes[axis] for axis in flat)
            cuts = sorted([0, most, *(random.randint(0, most) for _ in range(ranks - 1))])
            for axis in flat:
                placements[axis] = "flat"
            placements[flat[0]] = f"flat({', '.join(map(str, cuts))})"
        return placements


def random_partial(random, mesh, shape, dims, layout):
    """Placements of a gradient to which ranks contribute along some axes."""
    while True:
        base = layout.placements if random.random() < 0.5 else random_placements(random, mesh, shape, dims, False)
        placements = [random.choice(PARTIAL) if random.random() < 0.6 else p for p in base]
        if any(parse(p)[0] in ("_S", "flat") for p in placements):
            placements = [random.choice(PARTIAL) if parse(p)[0] in ("_S", "flat") else p for p in placements]
        if can_be(shape, mesh, placements) and any(p in PARTIAL for p in placements):
            return placements


def strides_that_exist(mesh, placements, gone):
    """A strided placement whose later axes no longer cut as it says is a plain one."""
    result, cuts = list(placements), {}
    for axis in reversed(range(len(placements))):
        kind, numbers = parse(placements[axis])
        if axis in gone or kind not in ("S", "_S"):
            continue
        order, factor = cuts.setdefault(numbers[0], []), numbers[1] if kind == "_S" else 1
        at = next((i for i in range(len(order) + 1) if math.prod(order[:i]) == factor), None)
        if at is None:
            at, result[axis] = 0, f"S({numbers[0]})"
        order.insert(at, mesh.sizes[axis])
    return result


def parts_of(blocks):
    """Per part the indices of its rows or columns."""
    runs = blocks.get("runs")
    if runs is None:
        sizes, repeat = blocks["sizes"], blocks.get("repeat", 1)
        edges = np.cumsum([0, *sizes])
        runs = [[[k * edges[-1] + edges[i], k * edges[-1] + edges[i + 1]] for k in range(repeat)]
                for i in range(len(sizes))]  # fmt: skip
    return [np.concatenate([np.arange(*run) for run in part]) for part in runs]


def random_blocks(random, shape):
    """At least two parts, consecutive, interleaved, equal, or of any runs at all; an axis has two rows or
    columns.
    """
    axis = random.choice(
        [name for name, size in zip(("rows", "columns"), shape[-2:], strict=True) if size > 1]
    )
    size = shape[-2 if axis == "rows" else -1]
    repeat = random.choice([n for n in range(1, size) if size % n == 0])
    if random.random() < 0.35:  # experts and their projections
        count = random.choice([n for n in range(2, size + 1) if size % n == 0])
        between = random.choice([n for n in range(1, size + 1) if size // count % n == 0])
        each = size // count // between
        return {"axis": axis, "sizes": [each] * count} | ({"repeat": between} if between > 1 else {})
    if random.random() < 0.5 or size < 4:
        each = size // repeat
        cuts = sorted(random.sample(range(1, each), min(each - 1, random.randint(1, 2))))
        sizes = [b - a for a, b in zip([0, *cuts], [*cuts, each], strict=True)]
        return {"axis": axis, "sizes": sizes} | ({"repeat": repeat} if repeat > 1 else {})
    part = [0, 1, *(random.choice([0, 1, 1, 2]) for _ in range(size - 2))]
    runs = [[[i, i + 1] for i in range(size) if part[i] == p] for p in sorted(set(part))]
    return {"axis": axis, "runs": runs}


def random_layout(random, mesh, rule, batched, whole, may_be_partial=False):
    """`whole`: matrices are not cut, as strategy local needs."""
    flatten = 0
    if rule.matrix and random.random() < 0.2:
        shape, batch, flatten = random_flattened(random, batched)
    else:
        shape, batch = random_shape(random, rule.matrix, batched, rule.elementwise)
    dims = list(range(batch if whole else len(shape)))
    layout = Layout(
        mesh, shape, batch, random_placements(random, mesh, shape, dims, not whole), flatten=flatten
    )
    if not whole and random.random() < 0.3:
        layout.gradient, layout.state = (random_placements(random, mesh, shape, dims) for _ in range(2))
    if may_be_partial and random.random() < 0.25:
        layout.gradient = random_partial(random, mesh, shape, dims, layout)
    return layout
