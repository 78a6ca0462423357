"""Where FSDP2 over tensor parallelism holds other elements than its placements say.

FSDP2 cuts what tensor parallelism has cut before, and calls it ``(_StridedShard, Shard)``.
``distribute_tensor``, and the compiler with it, applies that from left to right; where the pieces of
one rank are too unequal, the later ``Shard`` cuts between others. Such a tensor does not tell which
of the two it holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from torch.distributed.tensor.placement_types import Placement, Shard, _StridedShard

from stepc.torch.placements import PlacementError

_Runs = list[tuple[int, int]]  # first and one past the last index


def refuse_ambiguous(
    shape: Sequence[int], sizes: Sequence[int], placements: Sequence[Placement], where: str
) -> None:
    """Refuses a strided shard of which FSDP2 and DTensor hold other elements.

    Args:
        shape: the global shape.
        sizes: sizes of the mesh axes, one per placement.
        placements: as the tensor has them.
        where: names the tensor in the error.
    """
    for dim in sorted({one.dim for one in placements if type(one) is _StridedShard}):
        cuts = tuple(
            (size, one.split_factor if type(one) is _StridedShard else 1)
            for size, one in zip(sizes, placements, strict=True)
            if type(one) in (Shard, _StridedShard) and one.dim == dim
        )
        if not _reads_alike(shape[dim], cuts):
            total = math.prod(size for size, _ in cuts)
            raise PlacementError(
                f"{where}: expected a size that {list(placements)} cuts in one way only, found "
                f"dimension {dim} of size {shape[dim]} over {total} shards, where FSDP2 stores other "
                f"elements than DTensor reads; make the size a multiple of {total}, or give "
                "fully_shard another dimension (shard_placement_fn)"
            )


@lru_cache(maxsize=4096)
def _reads_alike(size: int, cuts: tuple[tuple[int, int], ...]) -> bool:
    """``cuts``: the axes that shard one dimension, outermost first, and their split factors."""
    if size % math.prod(axis for axis, _ in cuts) == 0:
        return True
    # The order in which FSDP2 and tensor parallelism cut: a plain shard before all later axes, a
    # strided one after as many of them as multiply to its split factor.
    order: list[int] = []
    for index in reversed(range(len(cuts))):
        before, place = 1, 0
        while before < cuts[index][1] and place < len(order):
            before *= cuts[order[place]][0]
            place += 1
        order.insert(place, index)
    for coordinates in itertools.product(*(range(axis) for axis, _ in cuts)):
        read: _Runs = [(0, size)]
        for (axis, factor), where in zip(cuts, coordinates, strict=True):
            parts = [_chunk(_chunk(read, factor, part), axis, where) for part in range(factor)]
            read = [run for part in parts for run in part]
        stored: _Runs = [(0, size)]
        for index in order:
            stored = _chunk(stored, cuts[index][0], coordinates[index])
        if _joined(read) != _joined(stored):
            return False
    return True


def _chunk(runs: _Runs, pieces: int, index: int) -> _Runs:
    """One piece as torch.chunk cuts, the last ones short or empty."""
    length = -(-sum(last - first for first, last in runs) // pieces)
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
    """The same indices with adjacent runs as one."""
    result: _Runs = []
    for first, last in runs:
        if result and result[-1][1] == first:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result
