"""The manifest of a job, written in one process where the job does not run.

A trainer's own code shards a model on the meta device over :func:`planned_mesh`: torch's fake process group
stands for the other ranks. Or a model of whole tensors is laid out on a mesh that is given by sizes.
Every rank runs the same code, so that the view of one tells the views of all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement, Shard

from stepc.errors import StepcError
from stepc.torch.declarations import Placed
from stepc.torch.describe import my_rank
from stepc.torch.entries import Entry, Mesh
from stepc.torch.names import matches, parse_pattern
from stepc.torch.placements import PlacementError, placement_text
from stepc.torch.strided import is_ambiguous, shape_at, stored_shape_at

#: Names and sizes of mesh axes, outermost first: ``{"dp": 4, "tp": 2}`` or ``[("dp", 4), ("tp", 2)]``.
Sizes = Mapping[str, int] | Sequence[tuple[str, int]]
_Placements = Sequence[Placement | str]
#: Placements of whole tensors by pattern, or by a function of name and tensor; None is FSDP's rule.
Layouts = Mapping[str, Placed | _Placements] | Callable[[str, torch.Tensor], _Placements | None]


def _axes(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    axes = list(sizes.items()) if isinstance(sizes, Mapping) else sizes
    if isinstance(axes, Sequence) and axes and all(map(_is_axis, axes)):
        if len({name for name, _ in axes}) == len(axes):
            return tuple((name, size) for name, size in axes)
    raise ValueError(
        "mesh: expected names and sizes of its axes, as in {'dp': 4, 'tp': 2}, each name once, found "
        f"{sizes!r}"
    )


def _is_axis(axis: Any) -> bool:
    if not isinstance(axis, Sequence) or len(axis) != 2:
        return False
    name, size = axis
    return isinstance(name, str) and name != "" and isinstance(size, int) and size > 0


@contextlib.contextmanager
def planned_mesh(sizes: Sizes, rank: int = 0) -> Iterator[DeviceMesh]:
    """A device mesh of a job that does not run, for the time of a ``with`` block.

    Within the block torch.distributed is initialized with torch's fake process group, which sends nothing.
    Shard a model on the meta device as the job does, and call :func:`stepc.torch.export_manifest` there.

    Args:
        sizes: names and sizes of the mesh axes, outermost first. Ranks count up in row-major order.
        rank: the rank that this process plays. With pipeline stages, a rank of the stage.
    """
    axes = _axes(sizes)
    if dist.is_initialized():
        raise StepcError(
            "planned_mesh: expected a process without torch.distributed, found a process group: in a job "
            "that runs, call export_manifest() on its ranks"
        )
    world = math.prod(size for _, size in axes)
    if not 0 <= rank < world:
        raise ValueError(f"planned_mesh: expected a rank below {world}, found {rank}")
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        names = tuple(name for name, _ in axes)
        yield init_device_mesh("cpu", tuple(size for _, size in axes), mesh_dim_names=names)
    finally:
        dist.destroy_process_group()


class WholeTensors:
    """How whole tensors will be sharded over a mesh that is given by sizes.

    FSDP2's rule holds for what ``placements`` leaves out: dimension 0 is sharded along the last mesh axis,
    and all is replicated along the others. Scalars are replicated.
    """

    def __init__(self, sizes: Sizes, placements: Layouts, replicated: Sequence[str]) -> None:
        axes = _axes(sizes)
        self.mesh = Mesh(axes, tuple(range(math.prod(size for _, size in axes))))
        self._replicated, self._placements = replicated, placements
        for pattern in () if callable(placements) else placements:
            parse_pattern(pattern)

    def placed(self) -> dict[str, Placed]:
        """The given placements of gradients and states."""
        given = {} if callable(self._placements) else self._placements
        result = {pattern: one for pattern, one in given.items() if isinstance(one, Placed)}
        for pattern, one in result.items():
            if one.mesh is not None:
                raise PlacementError(
                    f"placements={{{pattern!r}: …}}: expected placements on the mesh of mesh=, found a "
                    "Placed with a mesh of its own"
                )
        return result

    def unmatched(self, named: Sequence[tuple[str, torch.Tensor]]) -> list[tuple[str, str]]:
        """The patterns for lists of placements that match no parameter, as pairs of argument and pattern."""
        given = {} if callable(self._placements) else self._placements
        lists = [pattern for pattern, one in given.items() if not isinstance(one, Placed)]
        return [("placements", pattern) for pattern in lists
                if not any(matches(pattern, [name]) for name, _ in named)]  # fmt: skip

    def texts(self, names: Sequence[str], tensor: torch.Tensor) -> tuple[str, ...]:
        what = f"parameter '{names[0]}'"
        if isinstance(tensor, DTensor):
            raise PlacementError(
                f"{what}: expected a whole tensor for mesh=, found a DTensor, which has a mesh: shard the "
                "model over planned_mesh(…), and leave mesh= out"
            )
        given: _Placements | None = None
        if callable(self._placements):
            given = self._placements(names[0], tensor)
        else:
            for pattern, one in self._placements.items():
                if matches(pattern, names) and not isinstance(one, Placed):
                    given = one
        if given is None:
            last = "S(0)"
            if tensor.dim() == 0 or any(matches(pattern, names) for pattern in self._replicated):
                last = "R"
            return ("R",) * (len(self.mesh.axes) - 1) + (last,)
        if isinstance(given, str) or len(given) != len(self.mesh.axes):
            raise PlacementError(
                f"{what}: expected a placement for each of the {len(self.mesh.axes)} axes of the mesh, found "
                f"{given!r}"
            )
        return tuple(placement_text(_from_the_front(one, tensor), what) for one in given)


def _from_the_front(placement: Placement | str, tensor: torch.Tensor) -> Placement | str:
    """The placement with its dimension counted from the first one, as DTensors have it."""
    if type(placement) is Shard and placement.dim < 0:
        return Shard(placement.dim + tensor.dim())
    return placement


def all_views(entries: Sequence[Entry], world: Sequence[int]) -> dict[int, list[Entry]]:
    """The views of all ranks, from the view of one: each rank has its own slice of each mesh.

    Ranks with equal views share one list.
    """
    stepped = [entry for entry in entries if entry.requires_grad]
    frozen = [entry for entry in entries if not entry.requires_grad]
    slices = {(id(entry.mesh), id(entry.root)): _slices(entry) for entry in stepped}
    shapes = [_told_shapes(entry) for entry in stepped]
    known: dict[Any, list[Entry]] = {}
    result = {}
    for rank in world:
        meshes = {key: of_rank.get(rank) for key, of_rank in slices.items()}
        view = []
        for entry, told in zip(stepped, shapes, strict=True):
            mesh = meshes[id(entry.mesh), id(entry.root)]
            if mesh is not None:
                view.append((entry, mesh, told and told[mesh.ranks.index(rank)]))
        key = tuple((id(mesh), shape) for _, mesh, shape in view)
        if key not in known:
            known[key] = [dataclasses.replace(entry, mesh=mesh, local_shape=shape)
                          for entry, mesh, shape in view] + frozen  # fmt: skip
        result[rank] = known[key]
    return result


def _slices(entry: Entry) -> dict[int, Mesh]:
    """By rank the slice of the parameter's root mesh that holds the rank."""
    root = entry.root
    if root is None:
        return dict.fromkeys(entry.mesh.ranks, entry.mesh)
    members: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for place, rank in zip(_places(root.mesh), root.mesh.ranks, strict=True):
        outside = tuple(index for axis, index in enumerate(place) if axis not in root.axes)
        members.setdefault(outside, []).append((tuple(place[axis] for axis in root.axes), rank))
    result = {}
    for found in members.values():
        ranks = tuple(rank for _, rank in sorted(found))
        result |= dict.fromkeys(ranks, Mesh(entry.mesh.axes, ranks))
    return result


def _told_shapes(entry: Entry) -> list[tuple[int, ...]] | None:
    """The shapes of all ranks' shards, in the order of the mesh, if FSDP2 and DTensor cut differently;
    otherwise None."""
    sizes = [size for _, size in entry.mesh.axes]
    if entry.local_shape is None and not is_ambiguous(entry.shape, sizes, entry.placements):
        return None
    for cut in (stored_shape_at, shape_at):
        found = [cut(entry.shape, sizes, entry.placements, place) for place in _places(entry.mesh)]
        if entry.local_shape is None or entry.local_shape == found[entry.mesh.ranks.index(my_rank())]:
            return found
    raise PlacementError(
        f"parameter '{entry.name}': expected a shard of the size that FSDP2 or DTensor cuts by "
        f"{list(entry.placements)}, found {list(entry.local_shape)} of {list(entry.shape)}: only "
        "the job that runs knows the others' shards"
    )


def _places(mesh: Mesh) -> Iterator[tuple[int, ...]]:
    """The coordinates of a mesh's ranks, in their order."""
    return itertools.product(*(range(size) for _, size in mesh.axes))
