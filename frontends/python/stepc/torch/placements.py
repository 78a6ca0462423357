"""The text forms of placements: DTensor's, matched by exact type, and those that DTensor does not have.

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
_NUMBER = r"\s*(-?\d+)\s*"
# The texts of placements. Only gradients may have a text of _PENDING.
_TEXTS = (
    re.compile("R"),
    re.compile(rf"S\({_NUMBER}\)"),
    re.compile(rf"(?:_S|IS)\({_NUMBER},{_NUMBER}\)"),
    re.compile(rf"owned\({_NUMBER}\)"),
    re.compile(rf"flat(?:\({_NUMBER}(?:,{_NUMBER})*\))?"),
)
_PENDING = re.compile(r"P\(\s*(sum|avg)\s*\)")
#: What a library writes for each axis of the mesh in the place of a placement, if a state stays with blocks.
BLOCKS = "blocks"
_KNOWN = "R, S(d), _S(d, sf), IS(d, m), owned(r), flat or flat(cuts)"


class PlacementError(ValueError):
    """A placement that is not understood, or not legal where it stands."""


def register_placement(cls: type, function: Callable[[Placement], str]) -> None:
    """Teaches the exporter a placement class.

    Args:
        cls: the class, matched exactly (its subclasses are not).
        function: gives the manifest's text for a placement: ``R``, ``S(d)``, ``_S(d, sf)``,
            ``IS(d, m)`` for *m* stripes, ``owned(r)``.
    """
    if not isinstance(cls, type):
        raise TypeError(f"expected a placement class, found {cls!r}")
    if cls is Partial:
        raise TypeError("expected a placement class that has no meaning yet, found Partial")
    _forms[cls] = function


def placement_text(placement: Placement | str, tensor: str, gradient: bool = False) -> str:
    """The manifest's text of one placement; ``tensor`` names it in errors.

    Args:
        placement: DTensor's, or the manifest's text.
        gradient: whether it is a gradient's, which may be a pending sum.
    """
    text, source = placement, ""
    if not isinstance(placement, str):
        function = _forms.get(type(placement))
        if function is not None:
            text, source = function(placement), f" from the function of {type(placement).__qualname__}"
        elif gradient and type(placement) is Partial and placement.reduce_op in ("sum", "avg"):
            return f"P({placement.reduce_op})"
        elif type(placement) is Partial:
            expected = "Partial(sum) or Partial(avg)" if gradient else "a replicated or sharded placement"
            raise PlacementError(
                f"{tensor}: expected {expected}, found Partial({placement.reduce_op}); reduce it first"
            )
        else:
            known = ", ".join(sorted(cls.__name__ for cls in _forms))
            raise PlacementError(
                f"{tensor}: expected one of the placements {known}, found {placement!r} of class "
                f"{type(placement).__module__}.{type(placement).__qualname__}; "
                "stepc.torch.register_placement adds classes"
            )
    if isinstance(text, str):
        plain = text.strip()
        if any(one.fullmatch(plain) for one in _TEXTS) or (gradient and _PENDING.fullmatch(plain)):
            return re.sub(r"\s*,\s*", ", ", re.sub(r"\(\s+|\s+\)", lambda m: m[0].strip(), plain))
    expected = _KNOWN + (", P(sum) or P(avg)" if gradient else "")
    raise PlacementError(f"{tensor}: expected {expected}, found {text!r}{source}")


def dimension(text: str) -> int | None:
    """The dimension that a placement cuts; None if it cuts none, or all (flat)."""
    found = re.fullmatch(rf"(?:_S|IS|S)\({_NUMBER}(?:,{_NUMBER})?\)", text)
    return None if found is None else int(found[1])


def is_pending(text: str) -> bool:
    """Whether ranks hold contributions to a sum or an average."""
    return _PENDING.fullmatch(text) is not None


def same_placements(one: Sequence[Placement], other: Sequence[Placement]) -> bool:
    """Whether placements are equal, and of the same classes: a subclass of ``Shard`` equals it."""
    if one is other:
        return True
    if len(one) != len(other):
        return False
    # A plain loop, because this runs for every gradient in every step.
    for a, b in zip(one, other, strict=True):
        if a is not b and (type(a) is not type(b) or a != b):
            return False
    return True


def same_spec(one: DTensorSpec, other: DTensorSpec) -> bool:
    """Whether the specs of DTensors are equal: mesh, placements by exact class, global shape and dtype."""
    return one is other or (one == other and same_placements(one.placements, other.placements))


def is_whole_where_cut(found: Sequence[Placement], wanted: Sequence[Placement]) -> bool:
    """Whether placements differ only in that a tensor is replicated where it should be sharded."""
    return len(found) == len(wanted) and all(
        type(one) is Replicate or (type(one) is type(other) and one == other)
        for one, other in zip(found, wanted, strict=True)
    )


def stands_apart(gradient: Sequence[Placement], own: Sequence[Placement]) -> bool:
    """Whether a gradient has other shards than its parameter. Nothing is pending, and no rank could cut its
    shard out of the part of the gradient that it has."""
    return all(type(one) in _forms for one in gradient) and not is_whole_where_cut(gradient, own)


def is_partial_sum(placements: Sequence[Placement]) -> bool:
    """Whether some placements are pending sums or means and the others are known, by exact class."""
    pending = [one for one in placements if type(one) is Partial]
    return (
        bool(pending)
        and all(one.reduce_op in ("sum", "avg") for one in pending)
        and all(type(one) is Partial or type(one) in _forms for one in placements)
    )


def split_placements(text: str) -> list[str]:
    """The placements in the library's text, ``"[S(0), flat(0, 4, 8), R]"``."""
    body = text.strip().removeprefix("[").removesuffix("]")
    parts = (part.strip() for part in re.findall(r"[^,()]+(?:\([^)]*\))?", body))
    return [
        part if part == BLOCKS else placement_text(part, f"'{text}'", gradient=True)
        for part in parts if part
    ]  # fmt: skip


def placements_like(
    texts: Sequence[str], like: Sequence[tuple[str, Placement]]
) -> list[Placement] | None:
    """DTensor placements of a tensor; None if DTensor has no placement for one of the texts.

    Args:
        texts: the tensor's placements as texts, by mesh axis.
        like: by axis the text and the placement of another tensor. If the texts are equal, that placement
            is taken, since a text alone does not tell the class of a placement.
    """
    result: list[Placement] = []
    for text, (known, placement) in zip(texts, like, strict=True):
        if text == known:
            result.append(placement)
        elif text == "R":
            result.append(Replicate())
        elif is_pending(text):
            result.append(Partial(_PENDING.fullmatch(text)[1]))
        elif text.startswith("S("):
            result.append(Shard(dimension(text)))
        elif text.startswith("_S("):
            dim, factor = re.findall(r"-?\d+", text)
            result.append(_StridedShard(int(dim), split_factor=int(factor)))
        else:
            return None
    return result
