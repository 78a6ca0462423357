"""Writes manifests from live models.

Ranks may see different parts of a world: a slice of a device mesh has other ranks on every rank,
and a pipeline stage has other parameters. Ranks that meshes connect exchange what they see, and
every rank computes the manifest of its own world, the same on all of that world's ranks.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from stepc.errors import StepcError, warn_user
from stepc.torch.declarations import Blocks, Bucket, Declarations
from stepc.torch.describe import (
    by_tensor,
    connected,
    describe,
    describe_frozen,
    group_ranks,
    is_pretended,
    logical_shape,
    my_rank,
)
from stepc.torch.entries import Entry, Mesh
from stepc.torch.meeting import Meeting
from stepc.torch.merge import Merge
from stepc.torch.model_group import ModelGroup, expect_alike
from stepc.torch.planned import Layouts, Sizes, WholeTensors, all_views

VERSION = 1


def export_manifest(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    *,
    mesh: Sizes | None = None,
    batch: Sequence[str] | Mapping[str, int] = (),
    replicated: Sequence[str] = (),
    placements: Layouts | None = None,
    blocks: Mapping[str, Blocks] | None = None,
    buckets: Mapping[str, Bucket] | None = None,
    flatten: Sequence[str] | Mapping[str, int] = (),
    gradient: str = "grad",
    process_group: dist.ProcessGroup | None = None,
    model_group: dist.ProcessGroup | None = None,
    shared: Sequence[str] = (),
    timeout: float = 120.0,
) -> dict[str, Any]:
    """The manifest of a live model, as a dict that serializes to JSON.

    Parameters that need no gradient are listed as frozen, whole on every rank: only their names and
    shapes matter. A tensor under several names becomes one parameter with aliases. A collective
    call of the ranks that meshes connect with this one.

    One process writes the manifest of a job that does not run, of a model on the meta device: sharded over
    :func:`stepc.torch.planned_mesh`, or whole, with ``mesh``.

    Args:
        named_parameters: ``model.named_parameters()``; pass ``remove_duplicate=False`` to have
            the names of tied tensors.
        mesh: names and sizes of the mesh axes of a job that does not run, outermost first, as
            ``{"dp": 4}``; its ranks count up in row-major order. The tensors are whole, and will be sharded
            by FSDP2's rule: dimension 0 along the last axis, replicated along the others.
        batch: patterns of parameters whose leading axes count matrices (experts): all but the
            last two, or as many as a dict says. Here and below a pattern that matches no parameter
            of any rank gives a warning, if all ranks of the group meet in this call.
        replicated: patterns of plain tensors that every rank of the group holds whole. A rank that
            has such a tensor meets the whole group.
        placements: pattern to :class:`Placed`, for plain tensors that are shards, and for gradients
            and states that lie elsewhere than their parameters. With ``mesh`` it may give the placements
            themselves, one for each axis, and be a function of name and tensor that returns them, or
            None for FSDP2's rule.
        blocks: pattern to :class:`Blocks`, for fused weights.
        buckets: name to :class:`Bucket`, for parameters that are ``"flat"`` somewhere.
        flatten: patterns of parameters (convolutions) whose axes from the second on, or from the
            one that a dict says, are the columns of one matrix. Batch axes come before its rows; a
            dict for ``batch=`` says how many there are.
        gradient: the attribute of parameters that has their gradients.
        process_group: the ranks that call this; the default group without it.
        model_group: ranks that step together although no mesh connects them: all pipeline stages over
            which a definition's ``model`` block computes. All of them call this, and the manifest has the
            parameters of all.
        shared: patterns of parameters of which several stages have copies (tied embeddings).
        timeout: seconds after which a rank that did not call this is an error.
    """
    named, layout = list(named_parameters), None
    if mesh is not None:
        layout = WholeTensors(mesh, placements or {}, replicated)
        placements = layout.placed()
    declarations = Declarations.of(
        batch, replicated, placements, blocks, buckets, flatten, gradient, shared=shared
    )
    world = group_ranks(process_group)
    if layout is not None or is_pretended():
        if model_group is not None:
            raise ValueError(
                "model_group: expected ranks that run, because each pipeline stage has other parameters, "
                "found a job that is only planned"
            )
        return _planned_manifest(named, declarations, world, layout)
    mine, frozen, problem, unmatched = {}, [], None, declarations.unmatched(named)
    try:
        mine, frozen = describe(named, world, declarations), describe_frozen(named, declarations)
    except (TypeError, ValueError) as error:
        problem = error
    known, meets = connected(named, world, declarations), ModelGroup.of(model_group, process_group, shared)
    with Meeting(
        meets.process_group, "export_manifest()", timeout, ranks=known.ranks | set(meets.ranks),
        note=meets.noted(known.note),
    ) as meeting:  # fmt: skip
        if set(meeting.ranks) != set(group_ranks(meets.process_group)):
            unmatched = []  # ranks that do not meet may have parameters that the patterns match
        entries = [entry for entry, _ in mine.values()] + frozen
        return world_manifest(entries, meeting, problem, unmatched, meets.ranks)[0]


def _planned_manifest(
    named: Sequence[tuple[str, torch.Tensor]],
    declarations: Declarations,
    world: tuple[int, ...],
    layout: WholeTensors | None,
) -> dict[str, Any]:
    """The manifest of a job that does not run, from what one of its ranks would see."""
    unmatched = declarations.unmatched(named) + ([] if layout is None else layout.unmatched(named))
    for argument, pattern in unmatched:
        warn_user(f"{argument}= pattern {pattern!r} matches no parameter", UserWarning)
    mine = describe(named, world, declarations, layout)
    entries = [entry for entry, _ in mine.values()] + describe_frozen(named, declarations)
    ranks, rank = (world, my_rank()) if layout is None else (layout.mesh.ranks, 0)
    return build(all_views(entries, ranks), rank)[0]


def world_manifest(
    entries: Sequence[Entry],
    meeting: Meeting,
    problem: Exception | None = None,
    unmatched: Sequence[tuple[str, str]] = (),
    model_group: tuple[int, ...] = (),
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The manifest of this rank's world, and the world's global ranks. The ranks of a ``model_group`` are of
    one world.

    ``problem`` is what kept this rank from describing its parameters: every rank then raises, so
    that none waits for a rank that gave up. ``unmatched`` patterns (see `Declarations.unmatched`)
    are warned of if no rank's parameters match them: those of another pipeline stage may.
    """
    message = None if problem is None else f"{type(problem).__name__}: {problem}"
    data = pickle.dumps(list(entries))
    mine = hashlib.sha256(data).digest()
    trains = any(entry.requires_grad for entry in entries)
    told = meeting.gather((mine, len(data), message, list(unmatched), trains, model_group))
    gathered = dict(zip(meeting.ranks, told, strict=True))
    if problem is not None:
        raise problem
    for rank, (_, _, text, *_) in gathered.items():
        if text is not None:
            raise StepcError(f"rank {rank} could not export its manifest: {text}")
    groups = {rank: ranks for rank, (*_, ranks) in gathered.items()}
    expect_alike(groups, {rank: trained for rank, (*_, trained, _) in gathered.items()})
    if my_rank() == meeting.ranks[0]:  # once, not once per rank
        for argument, pattern in unmatched:
            if all((argument, pattern) in others for _, _, _, others, *_ in gathered.values()):
                warn_user(f"{argument}= pattern {pattern!r} matches no parameter", UserWarning)
    # Most ranks see the same. So every view travels once, and is read once.
    views = {mine: list(entries)}
    sources = {digest: (rank, size) for rank, (digest, size, *_) in reversed(gathered.items())}
    if len(sources) > 1:
        for digest, (rank, size) in sorted(sources.items(), key=lambda item: item[1]):
            received = meeting.broadcast(data if rank == my_rank() else None, size, rank)
            if digest != mine:
                views[digest] = pickle.loads(received)
    by_rank = {rank: views[digest] for rank, (digest, *_) in gathered.items()}
    return build(by_rank, my_rank(), set(groups.values()))


def build(
    by_rank: Mapping[int, Sequence[Entry]], rank: int, together: Iterable[Collection[int]] = ()
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Merges what ranks see into the manifest of the world that ``rank`` belongs to. ``together`` as in
    :class:`Merge`.

    Ranks that see the same may share one list. The world of a rank without entries, outside the
    meshes of all others, is empty.
    """
    merge = Merge(_stepped(by_rank), rank, together)
    entries = merge.entries()
    shared = {entry.name for entry in entries if entry.shared}
    for one in merge.world:
        for entry in by_rank.get(one, ()):
            if entry.name in shared and not entry.requires_grad:
                raise ValueError(
                    f"parameter '{entry.name}' is shared: expected it to be trained on all stages or on "
                    f"none, found it frozen on rank {one}"
                )
    meshes: dict[Mesh, str] = {}
    names: dict[int, str] = {}  # by identity, because hashing a mesh reads every rank
    for entry in entries:
        if id(entry.mesh) in names:
            continue
        if entry.mesh not in meshes:
            name = "_".join(axis for axis, _ in entry.mesh.axes)
            taken = set(meshes.values())
            if name in taken:
                name = next(f"{name}.{i}" for i in range(1, len(taken) + 2)
                            if f"{name}.{i}" not in taken)  # fmt: skip
            meshes[entry.mesh] = name
        names[id(entry.mesh)] = meshes[entry.mesh]
    buckets = _buckets(entries)
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
        **({"buckets": buckets} if buckets else {}),
        "parameters": [_parameter(entry, names[id(entry.mesh)])
                       for entry in entries + _frozen(by_rank, merge.world, entries)],
    }
    return manifest, tuple(sorted({one for mesh in meshes for one in mesh.ranks}))


def _buckets(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The flat buckets that hold the parameters, with their members."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.bucket is None:
            continue
        name, size, alignment, offset = entry.bucket
        bucket = found.setdefault(
            name, {"name": name, "size": size, "alignment": alignment, "parameters": []}
        )
        if (bucket["size"], bucket["alignment"]) != (size, alignment):
            raise ValueError(
                f"bucket '{name}': ranks disagree on its size and alignment: {bucket['size']} and "
                f"{bucket['alignment']} by '{bucket['parameters'][0]['name']}', {size} and {alignment} "
                f"by '{entry.name}'\nhint: buckets of different pipeline stages have different names"
            )
        bucket["parameters"].append({"name": entry.name, "offset": offset})
    return list(found.values())


def _parameter(entry: Entry, mesh: str) -> dict[str, Any]:
    result: dict[str, Any] = {"name": entry.name}
    if entry.aliases:
        result["aliases"] = list(entry.aliases)
    result |= {"shape": list(entry.shape), "dtype": entry.dtype, "grad_dtype": entry.grad_dtype,
               "mesh": mesh, "placements": list(entry.placements)}  # fmt: skip
    if entry.grad_placements:
        result["grad_placements"] = list(entry.grad_placements)
    if entry.state_placements:
        result["state_placements"] = list(entry.state_placements)
    if entry.batch_axes:
        result["batch_axes"] = entry.batch_axes
    if entry.flatten:
        result["flatten"] = entry.flatten
    if entry.blocks:
        result["blocks"] = entry.blocks
    if not entry.requires_grad:
        result["requires_grad"] = False
    return result


def _stepped(by_rank: Mapping[int, Sequence[Entry]]) -> dict[int, Sequence[Entry]]:
    """Each rank's entries without frozen parameters. Ranks that share a list still do."""
    known: dict[int, list[Entry]] = {}
    for entries in by_rank.values():
        if id(entries) not in known:
            known[id(entries)] = [entry for entry in entries if entry.requires_grad]
    return {rank: known[id(entries)] for rank, entries in by_rank.items()}


def _frozen(
    by_rank: Mapping[int, Sequence[Entry]], world: Iterable[int], stepped: Sequence[Entry]
) -> list[Entry]:
    """A world's frozen parameters, each once, on a mesh that the world has anyhow.

    If ranks disagree on whether a parameter is frozen, it is not: some rank steps it.
    """
    views = {id(entries): entries for entries in (by_rank.get(one, ()) for one in world)}
    names = {name for entry in stepped for name in entry.names}
    result = []
    for entry in [one for entries in views.values() for one in entries] if stepped else ():
        if not entry.requires_grad and names.isdisjoint(entry.names):
            names.update(entry.names)
            mesh = stepped[0].mesh
            result.append(dataclasses.replace(entry, mesh=mesh, placements=("R",) * len(mesh.axes)))
    return result


def routing_manifest(
    named: Iterable[tuple[str, torch.Tensor]],
    declarations: Declarations,
    frozen: Collection[str] = (),
) -> dict[str, Any]:
    """A manifest of one rank with whole tensors, from which routing can be read.

    ``frozen`` are the parameters that take no route. Routing looks at names, shapes and axes,
    so it does not change when a model is sharded after its optimizer was made, nor with tensors
    that are still on the meta device.
    """
    mesh = Mesh((("world", 1),), (0,))
    entries = [
        Entry(
            names[0], logical_shape(names, tensor, declarations), "f32", "f32", mesh, ("R",),
            batch_axes=declarations.batch_axes(names, len(logical_shape(names, tensor, declarations))),
            aliases=names[1:],
            flatten=declarations.columns_from(names, len(logical_shape(names, tensor, declarations))),
            requires_grad=names[0] not in frozen,
        )
        for names, tensor in by_tensor(named)
    ]  # fmt: skip
    return build({0: entries}, 0)[0]
