"""Random meshes, shapes and placements, and what is special about them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

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

    @property
    def kinds(self):
        return {"_S" if p.startswith("_S") else p[0] for p in self.placements}

    def traits(self):
        """The classes that the property test counts."""
        counts = local_counts(self)
        result = {f"mesh rank {len(self.mesh.sizes)}", *(f"placement {kind}" for kind in self.kinds)}
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
        return result


def parse(placement):
    """(dimension, split factor) of a sharding, None of R."""
    if placement == "R":
        return None
    parts = placement[placement.index("(") + 1 : -1].split(",")
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else 1


def cut_order(layout, dim):
    """The mesh axes that cut a dimension, first to last (docs/manifest.md): an axis cuts after those
    later axes whose sizes multiply to its split factor, and before the other later ones."""
    order = []
    for axis in reversed(range(len(layout.mesh.sizes))):
        sharding = parse(layout.placements[axis])
        if not sharding or sharding[0] != dim:
            continue
        at, product = 0, 1
        while product < sharding[1]:
            product *= layout.mesh.sizes[order[at]]
            at += 1
        order.insert(at, axis)
    return order


def local_counts(layout):
    """Elements that each rank of the mesh holds; pieces as torch.chunk cuts them."""
    orders = [cut_order(layout, dim) for dim in range(len(layout.shape))]
    counts = []
    for at in itertools.product(*map(range, layout.mesh.sizes)):
        count = 1
        for size, order in zip(layout.shape, orders, strict=True):
            for axis in order:
                piece = -(-size // layout.mesh.sizes[axis])
                size = max(0, min(piece, size - at[axis] * piece))
            count *= size
        counts.append(count)
    return counts


def random_sizes(random, total, rank):
    """Axis sizes of a mesh of that many axes; ones are axes too."""
    choices = [s for s in itertools.product(range(1, total + 1), repeat=rank) if math.prod(s) == total]
    best = [s for s in choices if 1 not in s]
    return random.choice(best if best and random.random() < 0.8 else choices)


def random_meshes(random, total):
    """Meshes of one, two and three axes on ranks of one world, not all on all of it."""
    meshes = []
    for rank in (1, 2, 3):
        size = total if rank == 1 or random.random() < 0.7 else random.choice([t for t in TOTALS if t <= total])
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


def random_placements(random, mesh, dims):
    """One placement per axis; `dims` are those that may be cut. Several axes may cut one of them, in
    any order."""
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
    """At least two parts, consecutive, interleaved, or of any runs at all; an axis has two rows or columns."""
    axis = random.choice([name for name, size in zip(("rows", "columns"), shape[-2:], strict=True) if size > 1])
    size = shape[-2 if axis == "rows" else -1]
    repeat = random.choice([n for n in range(1, size) if size % n == 0])
    if random.random() < 0.5 or size < 4:
        each = size // repeat
        cuts = sorted(random.sample(range(1, each), min(each - 1, random.randint(1, 2))))
        sizes = [b - a for a, b in zip([0, *cuts], [*cuts, each], strict=True)]
        return {"axis": axis, "sizes": sizes} | ({"repeat": repeat} if repeat > 1 else {})
    part = [0, 1, *(random.choice([0, 1, 1, 2]) for _ in range(size - 2))]
    runs = [[[i, i + 1] for i in range(size) if part[i] == p] for p in sorted(set(part))]
    return {"axis": axis, "runs": runs}


def random_layout(random, mesh, rule, batched, whole):
    """`whole`: matrices are not cut, as strategy local needs."""
    shape, batch = random_shape(random, rule.matrix, batched, rule.elementwise)
    dims = list(range(batch if whole else len(shape)))
    layout = Layout(mesh, shape, batch, random_placements(random, mesh, dims))
    if not whole and random.random() < 0.3:
        layout.gradient, layout.state = (random_placements(random, mesh, dims) for _ in range(2))
    return layout
