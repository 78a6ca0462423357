"""What a trainer declares about its tensors, in addition to the tensors themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.placement_types import Placement

from stepc.torch.names import canonical_name, matches, parse_pattern
from stepc.torch.placements import PlacementError, placement_text


@dataclass(frozen=True)
class Placed:
    """Where a parameter, its gradients and its states live, as far as tensors do not say so themselves.

    A placement is DTensor's or a text of the manifest: ``"flat"``, ``"owned(2)"``, ``"IS(0, 4)"``.

    Args:
        mesh: the device mesh of a plain tensor. Without it ``replicated=`` must name the tensor. A DTensor
            has its own mesh.
        placements: one per mesh axis; a plain tensor is this rank's shard.
        shape: the global shape. Without it, all shards are assumed to have one size.
        gradient: placements of gradients, if they are not the parameter's; ``"P(sum)"`` and
            ``"P(avg)"`` if each rank has a contribution, which the step adds up.
        states: placements of the states, if they are not the parameter's.
    """

    mesh: DeviceMesh | None = None
    placements: Sequence[Placement | str] | None = None
    shape: Sequence[int] | None = None
    gradient: Sequence[Placement | str] | None = None
    states: Sequence[Placement | str] | None = None

    def __post_init__(self) -> None:
        if bool(self.placements) if self.mesh is None else self.placements is None:
            raise ValueError(f"Placed: expected a mesh and placements, or neither, found {self}")

    def texts(self, role: str, name: str, axes: int) -> tuple[str, ...] | None:
        """One of the lists (``placements``, ``gradient``, ``states``) as texts of the manifest. None if it
        was not given."""
        given = getattr(self, role)
        if given is None:
            return None
        what = f"parameter '{name}'" + ("" if role == "placements" else f": {role}")
        if len(given) != axes:
            raise PlacementError(
                f"{what}: placements= gives {len(given)} placements for a mesh of {axes} axes"
            )
        return tuple(placement_text(one, what, role == "gradient") for one in given)


@dataclass(frozen=True)
class Bucket:
    """A flat buffer with parameters one after the other, of which every rank has an equal share.

    The ranks are those along the mesh axes on which the buffer's parameters are ``"flat"``.

    Args:
        size: elements, with padding: a multiple of ranks times alignment.
        offsets: by name the element at which each parameter begins. If other axes shard the parameter, its
            shard begins there.
        alignment: each rank's share is a multiple of so many elements.
    """

    size: int
    offsets: Mapping[str, int]
    alignment: int = 1


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _are_integers(values: Any) -> bool:
    return _is_list(values) and all(isinstance(value, int) for value in values)


@dataclass(frozen=True)
class Blocks:
    """The matrices in a fused weight: rules see each of them as a matrix of its own.

    Args:
        sizes: rows (columns) of each, one after the other.
        repeat: how often the list of sizes recurs along the axis; a matrix has its rows (columns) of each.
        axis: ``"rows"``, the second last axis, or ``"columns"``, the last.
        runs: instead of sizes, for each matrix the runs ``(begin, end)`` that it consists of.
    """

    sizes: Sequence[int] = ()
    repeat: int = 1
    axis: str = "rows"
    runs: Sequence[Sequence[tuple[int, int]]] = ()

    def __post_init__(self) -> None:
        if not _are_integers(self.sizes):
            raise TypeError(f"Blocks: expected a list of whole numbers for sizes, found {self.sizes!r}")
        if not _is_list(self.runs) or not all(
            _is_list(part) and all(_are_integers(run) and len(run) == 2 for run in part)
            for part in self.runs
        ):
            raise TypeError(
                "Blocks: expected a list of runs (begin, end) for each matrix, found "
                f"runs = {self.runs!r}"
            )

    def manifest(self) -> dict[str, Any]:
        """The blocks as the manifest has them: as runs, even if sizes were given."""
        runs, total = self.runs, sum(self.sizes)
        if bool(runs) == bool(self.sizes):
            raise ValueError(f"expected sizes or runs, found {self}")
        if runs and self.repeat != 1:
            raise ValueError(f"expected runs that say every matrix whole, found repeat = {self.repeat}")
        if not runs:
            edges = list(accumulate(self.sizes, initial=0))
            runs = [[(begin + i * total, end + i * total) for i in range(self.repeat)]
                    for begin, end in pairwise(edges)]  # fmt: skip
        return {"axis": self.axis, "runs": [[list(run) for run in part] for part in runs]}


@dataclass(frozen=True)
class Declarations:
    """What a trainer declares about its tensors, in addition to the tensors themselves."""

    batch: Sequence[str] | Mapping[str, int] = ()
    replicated: Sequence[str] = ()
    placements: Mapping[str, Placed] = field(default_factory=dict)
    blocks: Mapping[str, Blocks] = field(default_factory=dict)
    buckets: Mapping[str, Bucket] = field(default_factory=dict)
    flatten: Sequence[str] | Mapping[str, int] = ()
    #: The attribute of parameters that has their gradients.
    gradient: str = "grad"
    #: Whether the step adds up gradients that are pending sums.
    sums: bool = True
    #: Patterns of parameters of which several pipeline stages have copies.
    shared: Sequence[str] = ()

    @classmethod
    def of(cls, batch: Any, replicated: Any, *given: Any, shared: Any = ()) -> Declarations:
        """Declarations from arguments; an argument that was left out is None."""
        placements, blocks, buckets, *rest = given
        return cls(batch, replicated, placements or {}, blocks or {}, buckets or {}, *rest, shared=shared)

    def __post_init__(self) -> None:
        # A bad pattern is an error at once, not when a parameter is first compared.
        for patterns in (
            self.batch, self.replicated, self.placements, self.blocks, self.flatten, self.shared,
        ):  # fmt: skip
            for pattern in patterns:
                parse_pattern(pattern)
        for argument, declared, kind, example in (
            ("placements", self.placements, Placed, "Placed(mesh, [Shard(0)])"),
            ("blocks", self.blocks, Blocks, "Blocks([512, 128, 128])"),
            ("buckets", self.buckets, Bucket, 'Bucket(64, {"w": 0, "b": 48})'),
        ):
            for pattern, value in declared.items():
                if not isinstance(value, kind):
                    raise TypeError(
                        f"{argument}={{{pattern!r}: …}}: expected a stepc.torch.{kind.__name__}, as in "
                        f"{example}, found {value!r}"
                    )

    def batch_axes(self, names: Sequence[str], axes: int) -> int:
        """The number of leading axes that count matrices, by the last pattern that matches."""
        result = 0
        flattens = self._last(dict.fromkeys(self.flatten, True), names)
        for pattern in self.batch:
            if matches(pattern, names):
                if flattens and not isinstance(self.batch, Mapping):
                    raise ValueError(
                        f"parameter '{names[0]}': batch= and flatten= match it: expected a dict for "
                        "batch= that says how many axes count matrices"
                    )
                given = self.batch[pattern] if isinstance(self.batch, Mapping) else axes - 2
                if not 0 <= given <= max(axes - 2, 0) or axes < 3:
                    raise ValueError(
                        f"parameter '{names[0]}': batch= matches it with {given} batch axes, but "
                        f"it has {axes} axes: expected at least two besides them"
                    )
                result = given
        return result

    def columns_from(self, names: Sequence[str], axes: int) -> int:
        """The first of the axes that form the columns; 0 if nothing is flattened."""
        result, batch = 0, self.batch_axes(names, axes)
        for pattern in self.flatten:
            if matches(pattern, names):
                given = self.flatten[pattern] if isinstance(self.flatten, Mapping) else batch + 1
                if axes - batch < 3 or not batch < given < axes:
                    raise ValueError(
                        f"parameter '{names[0]}': flatten= matches it with columns from axis {given} "
                        f"on, but it has {axes} axes, {batch} of them batch axes: expected three "
                        "axes or more besides them, some of them rows and some columns"
                    )
                result = given
        return result

    def placed(self, names: Sequence[str]) -> Placed | None:
        """The value of the last pattern of ``placements=`` that matches; None if none does."""
        return self._last(self.placements, names)

    def bucket(self, names: Sequence[str]) -> tuple[str, int, int, int] | None:
        """The bucket of a parameter: its name, size and alignment, and the parameter's offset. None if no
        bucket has it."""
        found = [
            (bucket, one.size, one.alignment, offset)
            for bucket, one in self.buckets.items()
            for name, offset in one.offsets.items() if canonical_name(name) in names
        ]  # fmt: skip
        if len(found) > 1:
            raise ValueError(
                f"parameter '{names[0]}': expected it in one bucket once, found it in "
                + " and ".join(f"'{one[0]}' at {one[3]}" for one in found)
            )
        return found[0] if found else None

    def is_shared(self, names: Sequence[str]) -> bool:
        return any(matches(pattern, names) for pattern in self.shared)

    def divided(self, names: Sequence[str]) -> dict[str, Any] | None:
        """The blocks of the last pattern of ``blocks=`` that matches, as the manifest says them."""
        found = self._last(self.blocks, names)
        return found.manifest() if found else None

    @staticmethod
    def _last(declared: Mapping[str, Any], names: Sequence[str]) -> Any:
        found = [value for pattern, value in declared.items() if matches(pattern, names)]
        return found[-1] if found else None

    def unmatched(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, str]]:
        """The patterns that match no parameter, frozen or not, as pairs of argument and pattern."""
        names = [name for name, _ in named]
        declared = (("batch", self.batch), ("replicated", self.replicated),
                    ("placements", self.placements), ("blocks", self.blocks),
                    ("flatten", self.flatten), ("shared", self.shared))  # fmt: skip
        found = [(argument, pattern) for argument, patterns in declared for pattern in patterns
                 if not any(matches(pattern, [name]) for name in names)]  # fmt: skip
        known = set(map(canonical_name, names))
        return found + [("buckets", name) for one in self.buckets.values() for name in one.offsets
                        if canonical_name(name) not in known]  # fmt: skip
