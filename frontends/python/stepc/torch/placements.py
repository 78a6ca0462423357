"""The text forms of DTensor placements, matched by exact type.

A subclass may mean something else than its base (``_StridedShard`` is the classic, and other
projects subclass it in turn), so a class that is not in the table is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

_forms: dict[type, Callable[[Placement], str]] = {
    Replicate: lambda placement: "R",
    Shard: lambda placement: f"S({placement.dim})",
    _StridedShard: lambda placement: f"_S({placement.dim}, {placement.split_factor})",
}


class PlacementError(ValueError):
    """A placement that is not understood, or not legal where it stands."""


def register_placement(cls: type, function: Callable[[Placement], str]) -> None:
    """Teaches the exporter a placement class.

    Args:
        cls: the class, matched exactly (its subclasses are not).
        function: gives the manifest's text for a placement: ``R``, ``S(d)``, ``_S(d, sf)``.
    """
    if not isinstance(cls, type):
        raise TypeError(f"expected a placement class, found {cls!r}")
    _forms[cls] = function


def placement_text(placement: Placement, tensor: str) -> str:
    """The manifest's text of one placement; ``tensor`` names it in errors."""
    function = _forms.get(type(placement))
    if function is not None:
        return function(placement)
    if type(placement) is Partial:
        raise PlacementError(
            f"{tensor}: expected a replicated or sharded placement, found "
            f"Partial({placement.reduce_op}); reduce it first"
        )
    known = ", ".join(sorted(cls.__name__ for cls in _forms))
    raise PlacementError(
        f"{tensor}: expected one of the placements {known}, found {placement!r} of class "
        f"{type(placement).__module__}.{type(placement).__qualname__}; "
        "stepc.torch.register_placement adds classes"
    )


def same_placements(one: Sequence[Placement], other: Sequence[Placement]) -> bool:
    """Whether placements are equal, and of the same classes: a subclass of ``Shard`` equals it."""
    if one is other:
        return True
    if len(one) != len(other):
        return False
    # A loop: this is asked for every gradient in every step.
    for a, b in zip(one, other, strict=True):
        if a is not b and (type(a) is not type(b) or a != b):
            return False
    return True


def same_spec(one: DTensorSpec, other: DTensorSpec) -> bool:
    """Whether DTensors lie alike: mesh, placements by exact class, global shape and dtype."""
    return one is other or (one == other and same_placements(one.placements, other.placements))


def is_whole_where_cut(found: Sequence[Placement], wanted: Sequence[Placement]) -> bool:
    """Whether placements differ only in that a tensor is replicated where it should be sharded."""
    return len(found) == len(wanted) and all(
        type(one) is Replicate or (type(one) is type(other) and one == other)
        for one, other in zip(found, wanted, strict=True)
    )


def stands_apart(gradient: Sequence[Placement], own: Sequence[Placement]) -> bool:
    """Whether a gradient lies elsewhere than its parameter, in shards that are its own: nothing is
    pending, and no rank could cut its part out of what it has."""
    return all(type(one) in _forms for one in gradient) and not is_whole_where_cut(gradient, own)


def is_partial_sum(placements: Sequence[Placement]) -> bool:
    """Whether some placements are pending sums or means and the others are known, by exact class."""
    pending = [one for one in placements if type(one) is Partial]
    return (
        bool(pending)
        and all(one.reduce_op in ("sum", "avg") for one in pending)
        and all(type(one) is Partial or type(one) in _forms for one in placements)
    )


_NUMBER = r"\s*(-?\d+)\s*"
_PATTERNS = (
    (re.compile(r"R"), lambda m: Replicate()),
    (re.compile(rf"S\({_NUMBER}\)"), lambda m: Shard(int(m[1]))),
    (
        re.compile(rf"_S\({_NUMBER},{_NUMBER}\)"),
        lambda m: _StridedShard(int(m[1]), split_factor=int(m[2])),
    ),
)


def parse_placements(text: str) -> list[Placement]:
    """DTensor placements from the library's text, ``"[S(0), _S(1, 2), R]"``."""
    body = text.strip().removeprefix("[").removesuffix("]")
    result: list[Placement] = []
    for part in re.findall(r"[^,()]+(?:\([^)]*\))?", body):
        item = part.strip()
        if not item:
            continue
        for pattern, make in _PATTERNS:
            match = pattern.fullmatch(item)
            if match:
                result.append(make(match))
                break
        else:
            raise PlacementError(f"expected R, S(d) or _S(d, sf), found '{item}' in '{text}'")
    return result
