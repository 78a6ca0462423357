"""Writes manifests from live models.

Ranks may see different parts of a world: a slice of a device mesh has other ranks on every rank,
and a pipeline stage has other parameters. The ranks of a process group exchange what they see,
and every rank computes the manifest of its own world, the same on all of that world's ranks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from stepc.errors import StepcError
from stepc.torch.describe import (
    Declarations, Entry, Mesh, Placed, describe, describe_frozen, group_ranks, my_rank,
)  # fmt: skip
from stepc.torch.meeting import Meeting

VERSION = 1


def export_manifest(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    *,
    batch: Sequence[str] | Mapping[str, int] = (),
    replicated: Sequence[str] = (),
    placements: Mapping[str, Placed] | None = None,
    process_group: dist.ProcessGroup | None = None,
    timeout: float = 600.0,
) -> dict[str, Any]:
    """The manifest of a live model, as a dict that serializes to JSON.

    Parameters that need no gradient are listed as frozen, whole on every rank: only their names and
    shapes matter. A tensor under several names becomes one parameter with aliases. In a group of more than one rank this is a collective call.

    Args:
        named_parameters: ``model.named_parameters()``; pass ``remove_duplicate=False`` to have
            the names of tied tensors.
        batch: patterns of parameters whose leading axes count matrices (experts): all but the
            last two, or as many as a dict says.
        replicated: patterns of plain tensors that every rank of the group holds whole.
        placements: pattern to :class:`Placed`, for plain tensors that are shards.
        process_group: the ranks that call this; the default group without it.
        timeout: seconds after which a rank that did not call this is an error.
    """
    declarations = Declarations(batch, replicated, placements or {})
    world = group_ranks(process_group)
    mine, frozen, problem = {}, [], None
    try:
        named = list(named_parameters)
        mine, frozen = describe(named, world, declarations), describe_frozen(named, declarations)
    except (TypeError, ValueError) as error:
        problem = error
    with Meeting(process_group, "export_manifest()", timeout) as meeting:
        entries = [entry for entry, _ in mine.values()]
        return world_manifest(entries + frozen, meeting, problem)[0]


def world_manifest(
    entries: Sequence[Entry],
    meeting: Meeting,
    problem: Exception | None = None,
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The manifest of this rank's world, and the world's global ranks.

    ``problem`` is what kept this rank from describing its parameters: every rank then raises, so
    that none waits for a rank that gave up.
    """
    message = None if problem is None else f"{type(problem).__name__}: {problem}"
    gathered = dict(zip(meeting.ranks, meeting.gather((list(entries), message)), strict=True))
    if problem is not None:
        raise problem
    for rank, (_, text) in gathered.items():
        if text is not None:
            raise StepcError(f"rank {rank} could not export its manifest: {text}")
    return build({rank: entries for rank, (entries, _) in gathered.items()}, my_rank())


def build(by_rank: Mapping[int, Sequence[Entry]], rank: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Merges what ranks see into the manifest of the world that ``rank`` belongs to."""
    seen_by, by_rank = by_rank, {
        one: [entry for entry in entries if entry.requires_grad] for one, entries in by_rank.items()
    }  # fmt: skip
    world = _component(by_rank, rank)
    seen: dict[str, list[tuple[int, Entry]]] = {}
    for one in world:
        for entry in by_rank.get(one, ()):
            seen.setdefault(entry.name, []).append((one, entry))
    entries = [_merge(name, views) for name, views in seen.items()]
    meshes: dict[Mesh, str] = {}
    for entry in entries:
        if entry.mesh not in meshes:
            name = "_".join(axis for axis, _ in entry.mesh.axes)
            taken = set(meshes.values())
            if name in taken:
                name = next(f"{name}.{i}" for i in range(1, len(taken) + 2)
                            if f"{name}.{i}" not in taken)  # fmt: skip
            meshes[entry.mesh] = name
    frozen = _frozen([entry for one in world for entry in seen_by.get(one, ())], entries)
    manifest = {
        "version": VERSION,
        "meshes": [
            {
                "name": name,
                "axes": [{"name": axis, "size": size} for axis, size in mesh.axes],
                "ranks": list(mesh.ranks),
            }
            for mesh, name in meshes.items()
        ],
        "parameters": [_parameter(entry, meshes[entry.mesh]) for entry in entries + frozen],
    }
    return manifest, tuple(sorted({one for mesh in meshes for one in mesh.ranks}))


def _parameter(entry: Entry, mesh: str) -> dict[str, Any]:
    result: dict[str, Any] = {"name": entry.name}
    if entry.aliases:
        result["aliases"] = list(entry.aliases)
    result |= {"shape": list(entry.shape), "dtype": entry.dtype, "grad_dtype": entry.grad_dtype,
               "mesh": mesh, "placements": list(entry.placements)}  # fmt: skip
    if entry.batch_axes:
        result["batch_axes"] = entry.batch_axes
    if not entry.requires_grad:
        result["requires_grad"] = False
    return result


def _frozen(seen: Iterable[Entry], stepped: Sequence[Entry]) -> list[Entry]:
    """A world's frozen parameters, each once, on a mesh that the world has anyhow.

    Where ranks disagree on whether a parameter is frozen, the ranks that step it say so.
    """
    names = {name for entry in stepped for name in entry.names}
    result = []
    for entry in seen if stepped else ():
        if not entry.requires_grad and names.isdisjoint(entry.names):
            names.update(entry.names)
            mesh = stepped[0].mesh
            result.append(dataclasses.replace(entry, mesh=mesh, placements=("R",) * len(mesh.axes)))
    return result


def _component(by_rank: Mapping[int, Sequence[Entry]], rank: int) -> list[int]:
    """The ranks that meshes connect with ``rank``, increasing."""
    meshes = {entry.mesh.ranks for entries in by_rank.values() for entry in entries}
    found, waiting = {rank}, [rank]
    while waiting:
        one = waiting.pop()
        for ranks in [ranks for ranks in meshes if one in ranks]:
            meshes.discard(ranks)
            waiting += [other for other in ranks if other not in found]
            found.update(ranks)
    return sorted(found)


def _merge(name: str, views: list[tuple[int, Entry]]) -> Entry:
    """One parameter from every rank's view of it."""
    first_rank, first = views[0]
    lifted = _lift(name, views) if len({entry.mesh for _, entry in views}) > 1 else first
    for rank, entry in views[1:]:
        for what in ("shape", "dtype", "grad_dtype", "placements", "batch_axes", "aliases"):
            expected, found = getattr(first, what), getattr(entry, what)
            if expected != found:
                raise ValueError(
                    f"parameter '{name}': ranks disagree on its {what}: {expected} on rank "
                    f"{first_rank}, {found} on rank {rank}"
                )
    for rank in lifted.mesh.ranks:
        if rank not in {one for one, _ in views}:
            raise ValueError(
                f"parameter '{name}': its mesh has rank {rank}, which did not export it"
            )
    return lifted


def _lift(name: str, views: list[tuple[int, Entry]]) -> Entry:
    """A parameter on parallel slices of one root mesh, as a parameter of a larger slice.

    FSDP over mesh["dp"] of a (dp, tp) mesh leaves a parameter that tensor parallelism does not
    touch on another slice for every tp index. In one world these are replicas of one parameter.
    """
    first = views[0][1]
    meshes = {entry.mesh for _, entry in views}
    roots = {entry.root for _, entry in views}
    if len(roots) != 1 or first.root is None:
        raise ValueError(
            f"parameter '{name}' is on meshes that are not slices of one mesh: "
            + ", ".join(str(list(mesh.ranks)) for mesh in meshes)
        )
    root = first.root
    ranks = {rank for mesh in meshes for rank in mesh.ranks}
    sizes = [size for _, size in root.mesh.axes]

    def coordinates(index: int) -> list[int]:
        result = []
        for size in reversed(sizes):
            result.append(index % size)
            index //= size
        return result[::-1]

    held = [(coordinates(i), rank) for i, rank in enumerate(root.mesh.ranks) if rank in ranks]
    values = [sorted({place[axis] for place, _ in held}) for axis in range(len(sizes))]
    axes = [a for a in range(len(sizes)) if len(values[a]) > 1 or a in root.axes]
    count = 1
    for axis in axes:
        count *= len(values[axis])
    if count != len(held) or any(len(values[a]) not in (1, sizes[a]) for a in axes):
        raise ValueError(f"parameter '{name}': its meshes do not fill a slice of their root mesh")
    # `held` follows the root's row-major order, and so does any slice of it.
    mesh = Mesh(tuple(root.mesh.axes[a] for a in axes), tuple(rank for _, rank in held))
    placements = tuple(
        first.placements[root.axes.index(a)] if a in root.axes else "R" for a in axes
    )
    return dataclasses.replace(first, mesh=mesh, placements=placements, root=None)


def routing_manifest(
    named: Iterable[tuple[str, torch.Tensor]],
    declarations: Declarations,
    frozen: Collection[str] = (),
) -> dict[str, Any]:
    """A manifest of one rank with whole tensors, from which routing can be read.

    ``frozen`` are the parameters that take no route. Routing looks at names, shapes and batch axes,
    so it does not change when a model is sharded after its optimizer was made, nor with tensors
    that are still on the meta device.
    """
    mesh = Mesh((("world", 1),), (0,))
    names: dict[int, Entry] = {}
    for name, tensor in named:
        if id(tensor) in names:
            names[id(tensor)].aliases.append(name)
            continue
        names[id(tensor)] = Entry(
            name, tuple(max(size, 1) for size in tensor.shape), "f32", "f32", mesh, ("R",),
            batch_axes=declarations.batch_axes([name], tensor.dim()),
            requires_grad=name not in frozen,
        )  # fmt: skip
    return build({0: list(names.values())}, 0)[0]
