"""How ranks' views of their parameters become one parameter list of a world.

Ranks with equal views share one list of entries, and everything here goes over lists, not ranks: a
thousand ranks see a sharded model in one way, or in as many ways as tensor parallelism has ranks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from stepc.torch.entries import Entry, Mesh, Root
from stepc.torch.uneven import as_it_lies


# Fields of a parameter on which all ranks have to agree.
_AGREED = ("shape", "dtype", "grad_dtype", "placements", "grad_placements", "state_placements", "bucket",
           "batch_axes", "flatten", "blocks", "aliases", "shared")  # fmt: skip
_GRADIENT_HINT = (
    "\nhint: Placed(gradient=…) in placements= says where gradients lie, whether or not they are there"
)


def _lowest(sets: Iterable[Collection[int]]) -> dict[int, int]:
    """By rank, the lowest of the ranks that the sets connect with it."""
    found: dict[int, list[int]] = {}
    for one in sets:
        groups = {id(group): group for group in (found.setdefault(rank, [rank]) for rank in one)}
        largest = max(groups.values(), key=len, default=[])
        for group in groups.values():
            if group is not largest:
                largest += group
                found.update(dict.fromkeys(group, largest))
    lowest = {id(group): min(group) for group in found.values()}
    return {rank: lowest[id(group)] for rank, group in found.items()}


class Merge:
    """The world of ``rank``, and its parameters.

    Args:
        by_rank: what every rank sees; ranks that see the same should share the object.
        rank: whose world it is.
        together: sets of ranks of one world each, also if no mesh connects them: model groups. Ranks
            outside all meshes stay outside.
    """

    def __init__(
        self, by_rank: Mapping[int, Sequence[Entry]], rank: int, together: Iterable[Collection[int]] = ()
    ) -> None:
        self._meshes: dict[Mesh, Mesh] = {}
        self._roots: dict[Root | None, Root | None] = {}
        self._exporters: dict[tuple[int, ...], set[int]] = {}
        self._complete: set[tuple[int, tuple[int, ...]]] = set()
        self._lifted: dict[tuple[int, ...], tuple[Mesh, tuple[int, ...]]] = {}
        views: dict[int, tuple[list[int], list[Entry]]] = {}
        for one, entries in by_rank.items():
            if id(entries) not in views:
                views[id(entries)] = ([], self._with_one_mesh_each(entries))
            views[id(entries)][0].append(one)
        self._views = list(views.values())
        meshes = [mesh.ranks for mesh in self._meshes.values()]
        # By rank, the lowest rank that meshes connect with it: its pipeline stage.
        self._stage = _lowest(meshes)
        joined = [[one for one in ranks if one in self._stage] for ranks in together]
        lowest = _lowest([*meshes, *joined])
        #: The ranks that step together, increasing.
        self.world = sorted(one for one, first in lowest.items() if first == lowest.get(rank)) or [rank]

    def entries(self) -> list[Entry]:
        """The world's parameters, in the order in which its lowest rank has them."""
        inside = set(self.world)
        seen: dict[str, list[tuple[int, Entry]]] = {}
        own = [number for number, (ranks, _) in enumerate(self._views) if not inside.isdisjoint(ranks)]
        for number in sorted(own, key=lambda number: min(self._views[number][0])):
            for entry in self._views[number][1]:
                seen.setdefault(entry.name, []).append((number, entry))
        return [self._merge(name, found) for name, found in seen.items()]

    def _with_one_mesh_each(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries, with one object for all equal meshes or roots, so that identity can compare them."""
        known: dict[int, Any] = {}
        result = []
        for entry in entries:
            for one, table in ((entry.mesh, self._meshes), (entry.root, self._roots)):
                if id(one) not in known:
                    known[id(one)] = table.setdefault(one, one)
            mesh, root = known[id(entry.mesh)], known[id(entry.root)]
            if mesh is not entry.mesh or root is not entry.root:
                entry = dataclasses.replace(entry, mesh=mesh, root=root)
            result.append(entry)
        return result

    def _merge(self, name: str, views: list[tuple[int, Entry]]) -> Entry:
        """One parameter from every rank's view of it."""
        first = self._agreed(name, views)
        stages: dict[int, list[Entry]] = {}
        for _, entry in views:
            stages.setdefault(self._stage[entry.mesh.ranks[0]], []).append(entry)
        copies = []
        for entries in stages.values():
            own = dataclasses.replace(first, mesh=entries[0].mesh, root=entries[0].root)
            is_one = all(entry.mesh is own.mesh for entry in entries)
            copies.append(own if is_one else self._lift(name, [own, *entries[1:]]))
        lifted = copies[0] if len(copies) == 1 else self._shared(name, copies)
        numbers = tuple(number for number, _ in views)
        if (id(lifted.mesh), numbers) not in self._complete:
            exporters = self._exporters.get(numbers)
            if exporters is None:
                exporters = {rank for number in numbers for rank in self._views[number][0]}
                self._exporters[numbers] = exporters
            for rank in lifted.mesh.ranks:
                if rank not in exporters:
                    raise ValueError(
                        f"parameter '{name}': its mesh has rank {rank}, which did not export it\n"
                        "hint: every rank of the mesh must give the optimizer a parameter of that "
                        "name that needs a gradient; freeze it on all of them or on none"
                    )
            self._complete.add((id(lifted.mesh), numbers))
        told: dict[int, tuple[int, ...] | None] = {}
        if any(entry.local_shape is not None for _, entry in views):
            told = {rank: entry.local_shape for number, entry in views
                    for rank in self._views[number][0]}  # fmt: skip
        return as_it_lies(lifted, told)

    def _agreed(self, name: str, views: list[tuple[int, Entry]]) -> Entry:
        """The first view. Fields that it assumed, since it has no gradient, come from a view that has one.
        Raises ValueError if views disagree."""
        first, told = views[0][1], {}
        for what in _AGREED:
            seen = [view for view in views if what not in view[1].unseen] or views
            one, expected = seen[0][0], getattr(seen[0][1], what)
            for other, entry in seen[1:]:
                found = getattr(entry, what)
                if expected != found:
                    raise ValueError(
                        f"parameter '{name}': ranks disagree on its {what}: {expected} on rank "
                        f"{self._views[one][0][0]}, {found} on rank {self._views[other][0][0]}"
                        + (_GRADIENT_HINT if what == "grad_placements" else "")
                    )
            if expected != getattr(first, what):
                told[what] = expected
        return dataclasses.replace(first, **told) if told else first

    def _shared(self, name: str, copies: Sequence[Entry]) -> Entry:
        """One parameter of which pipeline stages have copies: it is replicated along a further axis."""
        first = copies[0]
        if not first.shared:
            raise ValueError(
                f"parameter '{name}': expected it in one pipeline stage of the model group, found it on the "
                "ranks " + " and ".join(str(list(one.mesh.ranks)) for one in copies)
                + f"\nhint: shared=['{name}'] says that they have copies of one parameter, which counts once"
            )
        sizes = [[size for _, size in one.mesh.axes] for one in copies]
        if any(one != sizes[0] for one in sizes):
            raise ValueError(
                f"parameter '{name}': expected meshes of equal sizes on the stages that share it, found "
                + " and ".join(f"{one} on the ranks {list(copy.mesh.ranks)}"
                               for one, copy in zip(sizes, copies, strict=True))  # fmt: skip
            )
        lists = [(one.placements, one.grad_placements, one.state_placements) for one in copies]
        for one, copy in zip(lists, copies, strict=True):
            if one != lists[0]:
                raise ValueError(
                    f"parameter '{name}': expected equal placements on the stages that share it, found "
                    f"{lists[0]} on the ranks {list(first.mesh.ranks)} and {one} on the ranks "
                    f"{list(copy.mesh.ranks)}"
                )
        names = {axis for axis, _ in first.mesh.axes}
        axis = "stages"
        while axis in names:
            axis += "."
        ranks = tuple(rank for one in copies for rank in one.mesh.ranks)
        mesh = Mesh(((axis, len(copies)), *first.mesh.axes), ranks)
        own, gradient, states = (one and ("R", *one) for one in lists[0])
        return dataclasses.replace(
            first, mesh=self._meshes.setdefault(mesh, mesh), root=None, placements=own,
            grad_placements=gradient, state_placements=states,
        )  # fmt: skip

    def _lift(self, name: str, views: Sequence[Entry]) -> Entry:
        """A parameter on parallel slices of one root mesh, as a parameter of a larger slice.

        FSDP over mesh["dp"] of a (dp, tp) mesh leaves a parameter that tensor parallelism does not
        touch on another slice for every tp index. In one world these are replicas of one parameter.
        """
        first = views[0]
        root = first.root
        if root is None or any(entry.root is not root for entry in views):
            meshes = {id(entry.mesh): entry.mesh for entry in views}
            raise ValueError(
                f"parameter '{name}' is on meshes that are not slices of one mesh: "
                + ", ".join(str(list(mesh.ranks)) for mesh in meshes.values())
            )
        key = (id(root), *dict.fromkeys(id(entry.mesh) for entry in views))
        if key not in self._lifted:
            meshes = {id(entry.mesh): entry.mesh for entry in views}
            self._lifted[key] = self._larger_slice(name, list(meshes.values()), first)
        mesh, axes = self._lifted[key]
        lists = {
            name: own and tuple(own[root.axes.index(axis)] if axis in root.axes else "R" for axis in axes)
            for name, own in (("placements", first.placements), ("grad_placements", first.grad_placements),
                              ("state_placements", first.state_placements))
        }
        return dataclasses.replace(first, mesh=mesh, root=None, **lists)

    def _larger_slice(
        self, name: str, meshes: Sequence[Mesh], entry: Entry
    ) -> tuple[Mesh, tuple[int, ...]]:
        root = entry.root
        ranks = {rank for mesh in meshes for rank in mesh.ranks}
        sizes = [size for _, size in root.mesh.axes]

        def coordinates(index: int) -> list[int]:
            result = []
            for size in reversed(sizes):
                result.append(index % size)
                index //= size
            return result[::-1]

        held = [(coordinates(i), rank) for i, rank in enumerate(root.mesh.ranks) if rank in ranks]
        values = [{place[axis] for place, _ in held} for axis in range(len(sizes))]
        axes = [a for a in range(len(sizes)) if len(values[a]) > 1 or a in root.axes]
        count = math.prod(len(values[axis]) for axis in axes)
        if count != len(held) or any(len(values[a]) not in (1, sizes[a]) for a in axes):
            raise ValueError(f"parameter '{name}': its meshes do not fill a slice of their root mesh")
        # `held` follows the root's row-major order, and so does any slice of it.
        mesh = Mesh(tuple(root.mesh.axes[a] for a in axes), tuple(rank for _, rank in held))
        return self._meshes.setdefault(mesh, mesh), tuple(axes)
