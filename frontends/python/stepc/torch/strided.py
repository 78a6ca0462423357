"""Strided shards: which elements FSDP2 over tensor parallelism holds, and how others read its placements.

FSDP2 cuts a tensor that tensor parallelism has cut before, and calls the result ``(_StridedShard, Shard)``.
``distribute_tensor`` and the compiler apply these placements from left to right. If sizes do not divide, the
two ways give a rank other elements. One shard does not show which way it was cut, but the sizes of all ranks'
shards do. The manifest describes FSDP2's shards as plain shards, on a mesh whose axes are in the order in
which they cut.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from stepc.torch.entries import Entry
from stepc.torch.placements import PlacementError

_Runs = list[tuple[int, int]]  # first and one past the last index
# For each mesh axis, outermost first, its size and split factor; for stripes their negative number instead.
_Cuts = tuple[tuple[int, int], ...]
_SHARD = re.compile(r"(_S|IS|S)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def _cutting(sizes: Sequence[int], texts: Sequence[str]) -> dict[int, tuple[list[int], _Cuts]]:
    """For each dimension the mesh axes that cut it, outermost first, and their cuts."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for axis, (size, text) in enumerate(zip(sizes, texts, strict=True)):
        match = _SHARD.fullmatch(text)
        if match:
            factor = int(match[3] or 1) * (-1 if match[1] == "IS" else 1)
            found.setdefault(int(match[2]), []).append((axis, size, factor))
    return {
        dim: ([axis for axis, _, _ in cuts], tuple((size, factor) for _, size, factor in cuts))
        for dim, cuts in sorted(found.items())
    }  # fmt: skip


def _strided(sizes: Sequence[int], texts: Sequence[str]) -> dict[int, tuple[list[int], _Cuts]]:
    """The cuts of the dimensions that have a strided cut and no stripes."""
    return {dim: found for dim, found in _cutting(sizes, texts).items()
            if any(factor > 1 for _, factor in found[1]) and not _has_stripes(found[1])}  # fmt: skip


def _has_stripes(cuts: _Cuts) -> bool:
    return any(factor < 0 for _, factor in cuts)


def is_ambiguous(shape: Sequence[int], sizes: Sequence[int], texts: Sequence[str]) -> bool:
    """Whether FSDP2 and DTensor give a rank other elements under these placements.

    Args:
        shape: the global shape.
        sizes: sizes of the mesh axes, one per placement.
        texts: placements as the manifest writes them.
    """
    return any(not _reads_alike(shape[dim], cuts) for dim, (_, cuts) in _strided(sizes, texts).items())


def resolve(entry: Entry, local_shapes: Mapping[int, Sequence[int]]) -> Entry | None:
    """Finds out by the sizes of all shards how a parameter of ambiguous placements was cut. Returns the
    parameter with placements that say so, or None if the sizes fit neither way of cutting.

    Args:
        entry: the parameter, on its whole mesh.
        local_shapes: by global rank.
    """
    sizes = [size for _, size in entry.mesh.axes]
    order, texts = list(range(len(sizes))), list(entry.placements)
    places = list(itertools.product(*(range(size) for size in sizes)))
    for dim, (axes, cuts) in _strided(sizes, entry.placements).items():
        if _reads_alike(entry.shape[dim], cuts):
            continue
        as_read = as_stored = True
        for place, rank in zip(places, entry.mesh.ranks, strict=True):
            local = local_shapes[rank]
            # A shard that is empty along another dimension has any size along this one.
            if 0 in (*local[:dim], *local[dim + 1 :]):
                continue
            where = tuple(place[axis] for axis in axes)
            as_read &= _length(_read(entry.shape[dim], cuts, where)) == local[dim]
            as_stored &= _length(_stored(entry.shape[dim], cuts, where)) == local[dim]
        if not as_read and not as_stored:
            return None
        if as_read and as_stored:
            if entry.elementwise and _sizes_agree(entry.shape[dim], cuts):
                continue  # whichever elements a rank holds, it holds as many
            raise PlacementError(_unsure(entry, dim, "both"))
        if as_stored:
            for position, cut in zip(axes, _cutting_order(cuts), strict=True):
                order[position], texts[position] = axes[cut], f"S({dim})"
    return _reordered(entry, order, texts)


def fits_neither(entry: Entry) -> str:
    """An error's text for a parameter for which `resolve` returned None."""
    sizes = [size for _, size in entry.mesh.axes]
    return _unsure(entry, next(iter(_strided(sizes, entry.placements))), "neither")


def _unsure(entry: Entry, dim: int, found: str) -> str:
    return (
        f"parameter '{entry.name}': expected shards of the sizes that FSDP2 or that DTensor "
        f"cuts by {list(entry.placements)}, found dimension {dim} of size {entry.shape[dim]} "
        f"in shards that fit {found} of them; make the size a multiple of the number of "
        "shards, or give fully_shard another dimension (shard_placement_fn)"
    )


def in_cutting_order(entry: Entry) -> Entry:
    """Gives a parameter that FSDP2 cut after stripes a mesh with its axes in the order in which they cut: no
    strided placement describes such shards. Other parameters keep their mesh."""
    sizes = [size for _, size in entry.mesh.axes]
    order, texts = list(range(len(sizes))), list(entry.placements)
    for dim, (axes, cuts) in _cutting(sizes, entry.placements).items():
        if not _has_stripes(cuts) or all(factor <= 1 for _, factor in cuts):
            continue
        if not _is_complete(cuts):
            raise PlacementError(
                f"parameter '{entry.name}': expected strided placements whose factors are those of "
                f"axes that cut before, found {list(entry.placements)} on axes of the sizes {sizes}"
            )
        for position, cut in zip(axes, _cutting_order(cuts), strict=True):
            striped = cuts[cut][1] < 0
            order[position] = axes[cut]
            texts[position] = entry.placements[axes[cut]] if striped else f"S({dim})"
    return _reordered(entry, order, texts)


def _reordered(entry: Entry, order: Sequence[int], texts: Sequence[str]) -> Entry:
    """The entry on a mesh with its axes in another order; the texts are in that order."""
    sizes = [size for _, size in entry.mesh.axes]
    if list(order) == list(range(len(sizes))):
        return dataclasses.replace(entry, local_shape=None)
    # Placements of other dimensions stay where they are, so only axes of one dimension change places.
    places = itertools.product(*(range(size) for size in sizes))
    ranks = dict(zip(places, entry.mesh.ranks, strict=True))
    moved = []
    for place in itertools.product(*(range(sizes[axis]) for axis in order)):
        back = [0] * len(order)
        for axis, index in zip(order, place, strict=True):
            back[axis] = index
        moved.append(ranks[tuple(back)])
    mesh = type(entry.mesh)(tuple(entry.mesh.axes[axis] for axis in order), tuple(moved))
    lists = {role: own and _in_order(entry, role, own, order)
             for role, own in (("grad_placements", entry.grad_placements),
                               ("state_placements", entry.state_placements))}  # fmt: skip
    return dataclasses.replace(
        entry, mesh=mesh, placements=tuple(texts), root=None, local_shape=None, **lists
    )


def _in_order(entry: Entry, role: str, own: Sequence[str], order: Sequence[int]) -> tuple[str, ...]:
    """A gradient's or states' placements on the mesh with its axes in another order."""
    for dim, (axes, _) in _cutting([size for _, size in entry.mesh.axes], own).items():
        if [axis for axis in order if axis in axes] != axes:  # they would cut between other elements
            names = [entry.mesh.axes[axis][0] for axis in order]
            raise PlacementError(
                f"parameter '{entry.name}': {role}: expected one axis at most that cuts dimension {dim}, as "
                f"the parameter was cut along the axes in the order {names}, found {list(own)}"
            )
    return tuple(own[axis] for axis in order)


def shape_at(
    shape: Sequence[int], sizes: Sequence[int], texts: Sequence[str], place: Sequence[int]
) -> tuple[int, ...]:
    """The shape of the shard at a mesh's coordinates, as DTensor reads placements."""
    result = list(shape)
    for dim, (axes, cuts) in _cutting(sizes, texts).items():
        result[dim] = _length(_read(shape[dim], cuts, [place[axis] for axis in axes]))
    return tuple(result)


def stored_shape_at(
    shape: Sequence[int], sizes: Sequence[int], texts: Sequence[str], place: Sequence[int]
) -> tuple[int, ...]:
    """The shape of the shard at a mesh's coordinates, as FSDP2 cuts over tensor parallelism."""
    result = list(shape)
    for dim, (axes, cuts) in _cutting(sizes, texts).items():
        result[dim] = _length(_stored(shape[dim], cuts, [place[axis] for axis in axes]))
    return tuple(result)


def last_axis(sizes: Sequence[int], texts: Sequence[str], dim: int) -> int | None:
    """The mesh axis that cuts a dimension last. None if no axis cuts the dimension, or if one cuts it in
    stripes."""
    axes, cuts = _cutting(sizes, texts).get(dim, ([], ()))
    if not axes or _has_stripes(cuts):
        return None
    return axes[_cutting_order(cuts)[-1]]


def held(
    shape: Sequence[int], sizes: Sequence[int], texts: Sequence[str], place: Sequence[int],
    local: Sequence[int], moved: Collection[int] | None = None,
) -> list[_Runs]:  # fmt: skip
    """Which indices of every dimension one rank's shard holds, in its order.

    Args:
        shape: the global shape.
        sizes: sizes of the mesh axes, one per placement.
        texts: placements as the manifest writes them.
        place: the rank's coordinates.
        local: the shape of its shard, which chooses between FSDP2's cuts and DTensor's.
        moved: the dimensions that FSDP2 cut, as the sizes of all ranks' shards show (see
            moved_dimensions); one rank's size may fit both ways. None if they are not known.
    """
    result: list[_Runs] = []
    for dim, size in enumerate(shape):
        axes, cuts = _cutting(sizes, texts).get(dim, ([], ()))
        where = [place[axis] for axis in axes]
        runs = _joined(_read(size, cuts, where))
        if _has_stripes(cuts) and _is_complete(cuts):
            runs = _joined(_stored(size, cuts, where))  # the only way to read them (in_cutting_order)
        elif _is_complete(cuts):
            stored = _joined(_stored(size, cuts, where))
            if _length(runs) != local[dim]:
                runs = stored
            elif _length(stored) == local[dim] and stored != runs:
                if moved is not None and not _sizes_agree(size, cuts):
                    result.append(stored if dim in moved else runs)
                    continue
                raise ValueError(
                    f"expected a shard whose size tells which elements of dimension {dim} it holds, "
                    f"found {local[dim]} of {size} under {list(texts)}"
                )
        result.append(runs)
    return result


def moved_dimensions(own: Sequence[str], written: str) -> frozenset[int]:
    """The dimensions that `resolve` has found to be cut as FSDP2 cuts.

    Args:
        own: the placements of a tensor.
        written: the placements that the manifest and the library have instead, as one text.
    """
    found = [match for match in map(_SHARD.fullmatch, own) if match]
    strided = {int(match[2]) for match in found if match[1] == "_S" and int(match[3]) > 1}
    return frozenset(strided.difference(map(int, re.findall(r"_S\(\s*(\d+)", written))))


def _is_complete(cuts: _Cuts) -> bool:
    """Whether some cut is strided, and each split factor is the product of the axes that cut before."""
    order = _cutting_order(cuts)
    before = [math.prod(cuts[axis][0] for axis in order[: order.index(index)])
              for index in range(len(cuts))]  # fmt: skip
    strided = [index for index, (_, factor) in enumerate(cuts) if factor > 1]
    return bool(strided) and all(before[index] == cuts[index][1] for index in strided)


def _cutting_order(cuts: _Cuts) -> list[int]:
    """The order in which FSDP2 and tensor parallelism cut, as indices of ``cuts``. A plain shard cuts before
    all later axes. A strided shard cuts after as many later axes as multiply to its split factor."""
    order: list[int] = []
    for index in reversed(range(len(cuts))):
        before, place = 1, 0
        while before < cuts[index][1] and place < len(order):
            before *= cuts[order[place]][0]
            place += 1
        order.insert(place, index)
    return order


def _read(size: int, cuts: _Cuts, coordinates: Sequence[int]) -> _Runs:
    """The indices that a rank holds if placements are applied from left to right, as DTensor does."""
    runs: _Runs = [(0, size)]
    for (axis, factor), where in zip(cuts, coordinates, strict=True):
        runs = _striped(runs, abs(factor), axis, where)
    return runs


def _striped(runs: _Runs, stripes: int, pieces: int, index: int) -> _Runs:
    """Cuts ``runs`` into stripes and each stripe into pieces. Returns piece ``index`` of every stripe."""
    parts = [_chunk(_chunk(runs, stripes, stripe), pieces, index) for stripe in range(stripes)]
    return [run for part in parts for run in part]


def _stored(size: int, cuts: _Cuts, coordinates: Sequence[int]) -> _Runs:
    """The indices that a rank holds if FSDP2 cut, in the order of `_cutting_order`."""
    runs: _Runs = [(0, size)]
    for index in _cutting_order(cuts):
        pieces, factor = cuts[index]
        runs = _striped(runs, max(-factor, 1), pieces, coordinates[index])
    return runs


@lru_cache(maxsize=4096)
def _reads_alike(size: int, cuts: _Cuts) -> bool:
    if size % math.prod(axis for axis, _ in cuts) == 0:
        return True
    return all(
        _joined(_read(size, cuts, place)) == _joined(_stored(size, cuts, place))
        for place in itertools.product(*(range(axis) for axis, _ in cuts))
    )


@lru_cache(maxsize=4096)
def _sizes_agree(size: int, cuts: _Cuts) -> bool:
    """Whether all ranks' shards have the same sizes either way, so that sizes do not show which way it is."""
    return all(
        _length(_read(size, cuts, place)) == _length(_stored(size, cuts, place))
        for place in itertools.product(*(range(axis) for axis, _ in cuts))
    )


def _length(runs: _Runs) -> int:
    return sum(last - first for first, last in runs)


def _chunk(runs: _Runs, pieces: int, index: int) -> _Runs:
    """One piece as torch.chunk cuts, the last ones short or empty."""
    length = -(-_length(runs) // pieces)
    skip, left, result = index * length, length, []
    for first, last in runs:
        begin = min(first + skip, last)
        skip -= begin - first
        end = min(begin + left, last)
        left -= end - begin
        if begin < end:
            result.append((begin, end))
    return result


def _joined(runs: _Runs) -> _Runs:
    """Joins adjacent runs of indices."""
    result: _Runs = []
    for first, last in runs:
        if result and result[-1][1] == first:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result
