"""Whether a ready library fits the model and the ranks that load it."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Collection, Mapping
from typing import Any

from stepc._described import State
from stepc._library import Library
from stepc.errors import PlanError, plural
from stepc.torch.placements import BLOCKS, split_placements
from stepc.torch.strided import shape_at

_SHOWN = 3


def unknown_parameter(name: str, path: str | None, compiled: Collection[str]) -> PlanError:
    """The error for a parameter that the library at ``path`` does not have. It names similar ones."""
    library = "the library" if path is None else f"library '{path}'"
    near = difflib.get_close_matches(name, compiled, n=_SHOWN)
    shown = ", ".join(f"'{one}'" for one in near or list(compiled)[:_SHOWN])
    return PlanError(
        f"parameter '{name}': {library} was not compiled for it\nhint: it was for "
        f"{plural(len(compiled), 'parameter')}, {'the closest' if near else 'first'} of them {shown}"
    )


def _placements(
    item: Mapping[str, Any], mesh: Mapping[str, Any], member: tuple[Mapping[str, Any], int] | None, role: str
) -> list[str]:
    """A parameter's, its gradient's or its states' placements as a library has them. If a bucket gives the
    ranges, they are at the first axis that is ``flat``. Empty if the manifest has no list of this role."""
    texts = item.get(role)
    result = list(texts or ())
    if member is None or "flat" not in result:
        return result
    bucket, offset = member
    sizes = [axis["size"] for axis in mesh["axes"]]
    ranks = math.prod(size for text, size in zip(texts, sizes, strict=True) if text == "flat")
    others = ["R" if text == "flat" else text for text in texts]
    # the first shard is the largest
    elements = math.prod(
        shape_at(item["shape"], sizes, others, [0] * len(sizes))
    )
    cuts = [min(max(bucket["size"] // ranks * rank - offset, 0), elements) for rank in range(ranks + 1)]
    result[result.index("flat")] = f"flat({', '.join(map(str, cuts))})"
    return result


def _lies_by_placements(state: State) -> bool:
    """Whether a state is shaped like its parameter, and does not stay with blocks."""
    return state.kind == "full" and BLOCKS not in state.placements


def verify(library: Library, manifest: dict[str, Any], world: tuple[int, ...]) -> None:
    """Refuses a ready library that was compiled for other parameters or another mesh."""
    if library.world_ranks != world:
        raise PlanError(
            f"library '{library.path}': compiled for the ranks {list(library.world_ranks)}, this "
            f"world has {list(world)}"
        )
    compiled = {one.name: one for one in library.parameters if not one.is_model}
    meshes = {mesh["name"]: mesh for mesh in manifest["meshes"]}
    found = {item["name"]: item for item in manifest["parameters"]
             if item.get("requires_grad", True)}  # fmt: skip
    members = {one["name"]: (bucket, one["offset"]) for bucket in manifest.get("buckets", ())
               for one in bucket["parameters"]}  # fmt: skip
    for name in [*found, *compiled]:
        if name not in compiled:
            raise unknown_parameter(name, library.path, compiled)
        if name not in found:
            raise PlanError(f"parameter '{name}': library '{library.path}' has it, the model does not")
        one, item = compiled[name], found[name]
        planned, mesh = library.meshes[one.index], meshes[item["mesh"]]
        cut = functools.partial(_placements, item, mesh, members.get(name))
        placements = cut("placements")
        pairs = {
            "shape": (list(one.global_shape), item["shape"]),
            "dtype": (one.dtype, item["dtype"]),
            "gradient dtype": (one.gradient_dtype, item["grad_dtype"]),
            "placements": (split_placements(one.placements), placements),
            "gradient placements": (
                split_placements(one.gradient_placements),
                cut("grad_placements") or placements,
            ),
            "state placements": (
                [split_placements(s.placements) for s in one.states if _lies_by_placements(s)],
                [cut("state_placements") or placements for s in one.states if _lies_by_placements(s)],
            ),
            # Placements mean nothing without sizes and ranks. The names of axes may differ.
            "mesh sizes": (
                [size for _, size in planned.axes], [axis["size"] for axis in mesh["axes"]],
            ),
            "mesh ranks": (list(planned.ranks), mesh["ranks"]),
            "batch axes": (planned.batch_axes, item.get("batch_axes", 0)),
        }  # fmt: skip
        if not planned.flatten_specified:  # otherwise the definition decides
            pairs["flattened axes"] = (planned.flatten, item.get("flatten", 0))
        if not (planned.blocks or {}).get("specified"):
            pairs["blocks"] = (planned.blocks, item.get("blocks"))
        for what, (expected, actual) in pairs.items():
            if expected != actual:
                raise PlanError(
                    f"parameter '{name}': library '{library.path}' expects {what} {expected}, the "
                    f"model has {actual}"
                )
