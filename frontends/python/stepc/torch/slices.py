"""Shards cut out of what a rank already holds, without asking other ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement

from stepc.torch.placements import placement_text
from stepc.torch.strided import held, moved_dimensions

_Runs = list[tuple[int, int]]


def arrived(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor. If a collective of torch may still be writing it, waits for the collective first."""
    return tensor.wait() if type(tensor) is AsyncCollectiveTensor else tensor


def moved_in(tensor: torch.Tensor, written: str) -> frozenset[int]:
    """The dimensions of a tensor that FSDP2 cut otherwise than DTensor reads its placements. They follow
    from the placements that the library has instead, ``written``."""
    if not isinstance(tensor, DTensor):
        return frozenset()
    return moved_dimensions(_texts(tensor.placements), written)


def cut(
    whole: torch.Tensor, like: DTensor, moved: Collection[int] | None = None
) -> torch.Tensor:
    """The part of ``whole`` that this rank's shard of ``like`` holds.

    ``whole`` is a plain tensor that every rank has, or a DTensor whose placements
    ``is_whole_where_cut``. The result is a view if possible. ``moved`` is the result of `moved_in` for
    ``like``. Without it this rank's size has to determine which elements it holds, or a ValueError is raised.
    """
    mesh, shape, local = like.device_mesh, tuple(like.shape), like._local_tensor
    if tuple(whole.shape) != shape:
        raise ValueError(f"expected the shape {list(shape)}, found {list(whole.shape)}")
    place = mesh.get_coordinate()
    if place is None or not local.numel():
        return local.new_empty(local.shape, dtype=whole.dtype)
    sizes = list(mesh.shape)
    wanted = held(shape, sizes, _texts(like.placements), place, local.shape, moved)
    if isinstance(whole, DTensor):
        piece = arrived(whole._local_tensor)
        present = held(shape, sizes, _texts(whole.placements), place, piece.shape, moved)
    else:
        piece, present = whole, [[(0, size)] for size in shape]
    piece = taken(piece, present, wanted)
    if piece.shape != local.shape:
        raise ValueError(f"expected a shard of {list(local.shape)}, found {list(piece.shape)}")
    return piece


def taken(piece: torch.Tensor, present: Sequence[_Runs], wanted: Sequence[_Runs]) -> torch.Tensor:
    """The indices ``wanted`` of a piece that holds the indices ``present``, by dimension (`held`)."""
    for dim, (runs, own) in enumerate(zip(wanted, present, strict=True)):
        if runs == own:
            continue
        parts = [piece.narrow(dim, *place) for place in _positions(runs, own)]
        piece = parts[0] if len(parts) == 1 else torch.cat(parts or [piece.narrow(dim, 0, 0)], dim)
    return piece


def _texts(placements: Sequence[Placement]) -> list[str]:
    return [placement_text(one, "a shard") for one in placements]


def _positions(wanted: _Runs, present: _Runs) -> list[tuple[int, int]]:
    """The positions (start, length) of the wanted indices among the present ones, in the wanted order."""
    result: list[tuple[int, int]] = []
    for first, last in wanted:
        while first < last:
            before = 0
            for begin, end in present:
                if begin <= first < end:
                    length = min(end, last) - first
                    result.append((before + first - begin, length))
                    first += length
                    break
                before += end - begin
            else:
                raise ValueError(f"expected index {first}, which this rank does not hold")
    return result
