"""States that stay with blocks, moved to the ranks that compute the blocks now.

When a plan changes (a layer is unfrozen, a parameter is added), blocks may get other owners. Then
``prepare`` moves the states, one after another: a rank sends what it has of a state and another
rank needs. So a rank needs memory for its states, old and new, and for the parts of one state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from stepc._calls import cause
from stepc._described import Parameter
from stepc._library import Instance
from stepc.errors import StepcError, TransportError
from stepc.torch.meeting import Meeting
from stepc.torch.pieces import Box, Piece
from stepc.torch.placements import BLOCKS
from stepc.torch.states import layout_of, local

#: A parameter's name, and the name of one of its states.
Key = tuple[str, str]
Offsets = tuple[tuple[int, ...], tuple[int, ...]]  # where a box begins, and its sizes
Held = tuple[torch.Tensor, list[Box]]  # what this rank has of a state


class _Part(NamedTuple):
    """A box that rank ``source`` has of an old state, and rank ``target`` needs for the new one."""

    source: int
    target: int
    box: Offsets


def block_states(infos: Sequence[Parameter]) -> set[Key]:
    """The states of these parameters that stay with blocks."""
    return {
        (info.name, state.name)
        for info in infos for state in info.states if BLOCKS in state.placements
    }  # fmt: skip


class Moves:
    """The states that move before new ones are used. Each rank that meets makes this object, and calls
    :meth:`agree` and then :meth:`run` once.

    Args:
        meeting: the ranks that prepare together.
        world: those of them that step together with this one, by one library.
    """

    def __init__(self, meeting: Meeting, world: Sequence[int]) -> None:
        self._meeting, self._world = meeting, tuple(world)
        self._targets: dict[Key, Held] = {}
        self._sources: dict[Key, Held] = {}
        self._found: dict[int, Mapping[Key, Any]] = {}

    def find(
        self,
        instance: Instance,
        new: Mapping[str, Mapping[str, torch.Tensor]],
        old: Mapping[str, Mapping[str, Any]],
        before: set[Key],
    ) -> None:
        """Finds what this rank has of the states that may move, and what it needs.

        Args:
            instance: the instance that binds the new states.
            new: by parameter and state, this rank's new tensors, of parameters that may have such states.
            old: the tensors of before. Parameters whose states begin anew are left out.
            before: the states that stayed with blocks before.

        Raises:
            StepcError: a state of before has another shape or dtype, or lies so that it cannot be moved.
        """
        keys = before | block_states(instance.parameters)
        for info in instance.parameters:
            for number, state in enumerate(info.states):
                key = (info.name, state.name)
                if key not in keys or info.name not in new:
                    continue
                tensor = new[info.name][state.name]
                self._targets[key] = tensor, layout_of(instance, info, number).boxes
                found = old.get(info.name, {}).get(state.name)
                if found is not None:
                    _expect_alike(found, tensor, key)
                    self._sources[key] = found, _boxes_of(found, key)

    def agree(self, problem: Exception | None) -> None:
        """Tells the ranks what this one has and needs. Raises an error on every rank if one has a problem."""
        mine = {key: (_places(self._sources[key][1]) if key in self._sources else None, _places(boxes))
                for key, (_, boxes) in self._targets.items()}  # fmt: skip
        text = None if problem is None else cause(problem)
        items = self._meeting.gather((text, self._world, mine))
        if problem is not None:
            raise problem
        for rank, (text, world, found) in zip(self._meeting.ranks, items, strict=True):
            if text is not None:
                raise StepcError(f"rank {rank} failed: {text}")
            if world == self._world:  # other worlds may have parameters of the same names
                self._found[rank] = found

    def run(self) -> dict[Key, torch.Tensor]:
        """Moves the states, one after another. Returns the new tensors that are filled. All other states are
        where they were, or begin anew.

        Raises:
            StepcError: ranks together do not have all elements of a state, or a rank failed. Then no rank
                goes on with the new plan, and each still has the states that it had.
        """
        filled: dict[Key, torch.Tensor] = {}
        goes = False  # whether any state moves; all ranks of the world find the same
        try:
            for key in sorted(set().union(*self._found.values())):
                held = {rank: items[key] for rank, items in self._found.items() if key in items}
                if all(have is None or have == need for have, need in held.values()):
                    continue  # nothing moved, or the state begins anew everywhere
                parts = _parts(held, key)
                if key in self._targets:
                    filled[key] = self._targets[key][0]
                _move(parts, self._sources.get(key), self._targets.get(key), self._meeting)
                goes = True
            if goes:
                self._wait_for_all()
        except Exception as error:
            self._meeting.give_up(cause(error))  # the others wait for what this rank sends
            if isinstance(error, TransportError):
                raise StepcError(f"states were not moved: {error}") from error
            raise
        return filled

    def _wait_for_all(self) -> None:
        """Waits until all ranks of the world have moved their states, so that all learn of a failure."""
        others = [rank for rank in self._world if rank != self._meeting.me]
        done = {rank: torch.zeros(1, dtype=torch.uint8, device="cpu") for rank in others}
        self._meeting.swap(done, {rank: torch.empty_like(one) for rank, one in done.items()})


def _expect_alike(old: Any, new: torch.Tensor, key: Key) -> None:
    where = f"parameter '{key[0]}': state '{key[1]}'"
    if not isinstance(old, torch.Tensor):
        raise StepcError(f"{where}: expected a tensor, found {type(old).__name__}")
    if tuple(old.size()) != tuple(new.size()):  # size() of a Piece or DTensor is the whole's
        raise StepcError(f"{where}: expected shape {list(new.size())}, found {list(old.size())}")
    if old.dtype != new.dtype:
        raise StepcError(f"{where}: expected {new.dtype}, found {old.dtype}; a cast would change the state")


def _places(boxes: Sequence[Box]) -> tuple[Offsets, ...]:
    return tuple((box.offsets, box.sizes) for box in boxes)


def _boxes_of(tensor: torch.Tensor, key: Key) -> list[Box]:
    """What this rank has of a state that it had before."""
    held = local(tensor)
    if isinstance(held, Piece):
        return held.boxes
    offsets: tuple[int, ...] = (0,) * tensor.dim()
    if isinstance(tensor, DTensor):
        if any(type(one) not in (Shard, Replicate) for one in tensor.placements):
            raise StepcError(
                f"parameter '{key[0]}': state '{key[1]}': expected shards of one range per axis, found "
                f"{list(tensor.placements)}; save a checkpoint before, and load it after the change"
            )
        _, offsets = compute_local_shape_and_global_offset(
            tensor.shape, tensor.device_mesh, tensor.placements
        )
    if not held.numel():
        return []
    return [Box(tuple(offsets), tuple(held.shape), 0, tuple(held.contiguous().stride()))]


def _parts(held: Mapping[int, tuple[Any, Any]], key: Key) -> list[_Part]:
    """What goes from which rank to which. A rank takes what it has itself. Ranks that have a box in common
    have equal boxes, so each box is taken from the first of them."""
    result, sources = [], [rank for rank in sorted(held) if held[rank][0]]
    for target, (_, needed) in sorted(held.items()):
        for box in needed:
            seen, count = set(), 0
            for source in sorted(sources, key=lambda rank: (rank != target, rank)):
                for other in held[source][0]:
                    common = _common(box, other)
                    if common is not None and common not in seen:
                        seen.add(common)
                        count += _volume(common)
                        result.append(_Part(source, target, common))
            if count != _volume(box):
                raise StepcError(
                    f"parameter '{key[0]}': state '{key[1]}': expected all of its elements on some rank, "
                    f"found {count} of {_volume(box)} of a block: optimizer.forget('{key[0]}') on every "
                    "rank drops its states"
                )
    return result


def _common(one: Offsets, other: Offsets) -> Offsets | None:
    begins = tuple(map(max, one[0], other[0]))
    ends = (min(a + n, b + m) for a, n, b, m in zip(*one, *other, strict=True))
    sizes = tuple(end - begin for begin, end in zip(begins, ends, strict=True))
    return (begins, sizes) if all(size > 0 for size in sizes) else None


def _volume(box: Offsets) -> int:
    count = 1
    for size in box[1]:
        count *= size
    return count


def _view(of: Held, box: Offsets) -> torch.Tensor:
    """The elements of a box in this rank's memory of a state."""
    tensor, boxes = of
    held = local(tensor)
    held = held.plain if isinstance(held, Piece) else held.contiguous()
    for one in boxes:
        if _common((one.offsets, one.sizes), box) == box:
            view = one.of(held)
            for dim, (begin, first, size) in enumerate(zip(box[0], one.offsets, box[1], strict=True)):
                view = view.narrow(dim, begin - first, size)
            return view
    raise StepcError(f"expected a box that this rank has, found {box}")


@torch.no_grad()
def _move(
    parts: Sequence[_Part],
    source: Held | None,
    target: Held | None,
    meeting: Meeting,
) -> None:
    me = meeting.me
    sent: dict[int, list[torch.Tensor]] = {}
    awaited: dict[int, list[torch.Tensor]] = {}
    for part in parts:
        if part.source == me and part.target == me:
            _view(target, part.box).copy_(_view(source, part.box))
        elif part.source == me:
            sent.setdefault(part.target, []).append(_view(source, part.box).reshape(-1))
        elif part.target == me:
            awaited.setdefault(part.source, []).append(_view(target, part.box))
    packed = {rank: torch.cat(tensors).cpu().view(torch.uint8) for rank, tensors in sent.items()}
    found = {
        rank: torch.empty(
            sum(view.numel() for view in views) * views[0].element_size(), dtype=torch.uint8, device="cpu"
        )
        for rank, views in awaited.items()
    }
    meeting.swap(packed, found)
    for rank, views in awaited.items():
        arrived = found[rank].view(views[0].dtype)
        for view, part in zip(views, arrived.split([view.numel() for view in views]), strict=True):
            view.copy_(part.view(view.shape))
