"""Whether a ready library fits the model and the ranks that load it."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Any

from stepc._library import Library
from stepc.errors import PlanError
from stepc.torch.placements import split_placements

_SHOWN = 3


def unknown_parameter(name: str, path: str | None, compiled: Collection[str]) -> PlanError:
    """A parameter that the library at ``path`` does not have, and names that it has."""
    library = "the library" if path is None else f"library '{path}'"
    near = difflib.get_close_matches(name, compiled, n=_SHOWN)
    shown = ", ".join(f"'{one}'" for one in near or list(compiled)[:_SHOWN])
    return PlanError(
        f"parameter '{name}': {library} was not compiled for it\nhint: it was for "
        f"{len(compiled)} parameters, {'the closest' if near else 'first'} of them {shown}"
    )


def verify(library: Library, manifest: dict[str, Any], world: tuple[int, ...]) -> None:
    """Refuses a ready library that was compiled for other parameters or another mesh."""
    if library.world_ranks != world:
        raise PlanError(
            f"library '{library.path}': compiled for the ranks {list(library.world_ranks)}, this "
            f"world has {list(world)}"
        )
    compiled = {one.name: one for one in library.parameters}
    meshes = {mesh["name"]: mesh for mesh in manifest["meshes"]}
    found = {item["name"]: item for item in manifest["parameters"]
             if item.get("requires_grad", True)}  # fmt: skip
    for name in [*found, *compiled]:
        if name not in compiled:
            raise unknown_parameter(name, library.path, compiled)
        if name not in found:
            raise PlanError(f"parameter '{name}': library '{library.path}' has it, the model does not")
        one, item = compiled[name], found[name]
        planned, mesh = library.meshes[one.index], meshes[item["mesh"]]
        pairs = {
            "shape": (list(one.global_shape), item["shape"]),
            "dtype": (one.dtype, item["dtype"]),
            "gradient dtype": (one.gradient_dtype, item["grad_dtype"]),
            "placements": (
                split_placements(one.placements), item["placements"],
            ),
            "gradient placements": (
                split_placements(one.gradient_placements),
                item.get("grad_placements", item["placements"]),
            ),
            "state placements": (
                [split_placements(s.placements) for s in one.states if s.kind == "full"],
                [item.get("state_placements", item["placements"])
                 for s in one.states if s.kind == "full"],
            ),
            # Placements mean nothing without them. Names of axes are the trainer's own.
            "mesh sizes": (
                [size for _, size in planned.axes], [axis["size"] for axis in mesh["axes"]],
            ),
            "mesh ranks": (list(planned.ranks), mesh["ranks"]),
            "batch axes": (planned.batch_axes, item.get("batch_axes", 0)),
        }  # fmt: skip
        if not planned.flatten_specified:  # else the model has no say
            pairs["flattened axes"] = (planned.flatten, item.get("flatten", 0))
        if not (planned.blocks or {}).get("specified"):
            pairs["blocks"] = (planned.blocks, item.get("blocks"))
        for what, (expected, actual) in pairs.items():
            if expected != actual:
                raise PlanError(
                    f"parameter '{name}': library '{library.path}' expects {what} {expected}, the "
                    f"model has {actual}"
                )
