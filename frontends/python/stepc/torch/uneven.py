"""Shards that are not what their placements say: found by the shapes of all ranks, written as ranges.

A sharded buffer that is cut without regard to tensors leaves a rank any number of a tensor's rows, and
its DTensors say ``Shard(0)`` all the same (Megatron-FSDP). The manifest describes these shards as ranges
of the shard that the other axes leave. Shards that are no such ranges are an error.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from stepc.torch.entries import Entry
from stepc.torch.placements import PlacementError, is_pending
from stepc.torch.strided import (
    fits_neither, in_cutting_order, is_ambiguous, last_axis, resolve, shape_at,
)  # fmt: skip

_Shapes = dict[int, tuple[int, ...]]


def as_it_lies(entry: Entry, told: Mapping[int, Sequence[int] | None]) -> Entry:
    """The parameter with placements that fit the shapes of its shards. Raises PlacementError if none do.

    Args:
        entry: the parameter, on its whole mesh.
        told: by global rank the shape of its shard; None if the placements give this shape.
    """
    ordered = in_cutting_order(entry)
    if ordered.mesh == entry.mesh and all(shape is None for shape in told.values()):
        return ordered
    sizes = [size for _, size in entry.mesh.axes]
    places = list(itertools.product(*(range(size) for size in sizes)))
    expected = _shapes(ordered)
    found = {rank: tuple(told.get(rank) or shape) for rank, shape in _shapes(entry).items()}
    if is_ambiguous(entry.shape, sizes, entry.placements):
        known = resolve(entry, found)
        if known is not None and not _differing(_shapes(known), found):
            return known
        problem = fits_neither(entry)
    else:
        if not _differing(expected, found):
            return ordered
        rank = _differing(expected, found)[0]
        problem = (
            f"parameter '{entry.name}': expected a shard of the shape {list(expected[rank])} by "
            f"{list(entry.placements)}, found {list(found[rank])} on rank {rank}"
        )
    return _ranges(entry, sizes, dict(zip(entry.mesh.ranks, places, strict=True)), found, problem)


def _shapes(entry: Entry) -> _Shapes:
    sizes = [size for _, size in entry.mesh.axes]
    places = itertools.product(*(range(size) for size in sizes))
    return {rank: shape_at(entry.shape, sizes, entry.placements, place)
            for place, rank in zip(places, entry.mesh.ranks, strict=True)}  # fmt: skip


def _same(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes may be one shard's. An empty shard has any size along its other dimensions."""
    return tuple(one) == tuple(other) or (0 in one and 0 in other)


def _differing(expected: _Shapes, found: _Shapes) -> list[int]:
    return [rank for rank, shape in expected.items() if not _same(shape, found[rank])]


def _ranges(
    entry: Entry, sizes: Sequence[int], places: Mapping[int, Sequence[int]], found: _Shapes,
    problem: str,
) -> Entry:  # fmt: skip
    """Describes shards as ranges. Along the mesh axis that cuts dimension 0 last, ranks must hold rows one
    after the other, each rank any number. Raises PlacementError with ``problem`` if they do not."""
    axis = last_axis(sizes, entry.placements, 0) if entry.shape else None
    if axis is None:
        raise PlacementError(f"{problem}; only shards along dimension 0 may be of any size")
    # The shapes that the other axes leave, and how many rows of them each rank along this axis has.
    others = ["R" if one == axis else text for one, text in enumerate(entry.placements)]
    rows: dict[tuple[int, ...], list[int]] = {}
    for rank, place in places.items():  # row-major, so in the order of the axis
        shape = found[rank]
        key = tuple(index for one, index in enumerate(place) if one != axis)
        rows.setdefault(key, []).append(0 if 0 in shape else shape[0])
    left = {rank: shape_at(entry.shape, sizes, others, place) for rank, place in places.items()}
    most = max(left.values(), key=math.prod)
    longest = max(rows.values(), key=sum)
    cuts = [row * math.prod(most[1:]) for row in itertools.accumulate(longest, initial=0)]
    if sum(longest) != most[0]:
        raise PlacementError(f"{problem}; along '{entry.mesh.axes[axis][0]}' shards have "
                             f"{' + '.join(map(str, longest))} of {most[0]} rows")  # fmt: skip
    for rank, place in places.items():
        count, each = math.prod(left[rank]), math.prod(left[rank][1:])
        begin, end = (min(count, cut) for cut in cuts[place[axis] : place[axis] + 2])
        rest = (end - begin) // each if each else 0
        if begin % max(each, 1) or not _same(found[rank], (rest, *left[rank][1:])):
            raise PlacementError(
                f"{problem}; as ranges of elements {cuts} along '{entry.mesh.axes[axis][0]}' it would be "
                f"{[rest, *left[rank][1:]]} on rank {rank}, found {list(found[rank])}"
            )
    text = f"flat({', '.join(map(str, cuts))})"
    lists = {role: own and _with_range(entry, role, own, axis, text)
             for role, own in (("placements", entry.placements), ("grad_placements", entry.grad_placements),
                               ("state_placements", entry.state_placements))}  # fmt: skip
    return dataclasses.replace(entry, local_shape=None, **lists)


def _with_range(entry: Entry, role: str, own: Sequence[str], axis: int, text: str) -> tuple[str, ...]:
    """Placements of a parameter, its gradient or states. If they equal the parameter's along ``axis``, they
    get the ranges ``text`` there."""
    if own[axis] != entry.placements[axis]:
        return tuple(own)
    for one, (mine, its) in enumerate(zip(own, entry.placements, strict=True)):
        # Ranges count elements of the shard that the other axes leave.
        if mine != its and not (its == "R" and is_pending(mine)):
            raise PlacementError(
                f"parameter '{entry.name}': {role}: expected '{its}' along '{entry.mesh.axes[one][0]}', as "
                f"its shards along '{entry.mesh.axes[axis][0]}' are the parameter's, of any number of rows, "
                f"found '{mine}'"
            )
    return (*own[:axis], text, *own[axis + 1 :])
