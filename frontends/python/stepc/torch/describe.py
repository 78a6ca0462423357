"""What one rank knows about its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from stepc.torch.declarations import Declarations, Placed
from stepc.torch.entries import Entry, Mesh, Root
from stepc.torch.names import canonical_name, check_name, matches
from stepc.torch.placements import (
    PlacementError, dimension, is_partial_sum, placement_text, stands_apart,
)  # fmt: skip
from stepc.torch.strided import is_ambiguous, shape_at

DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
TORCH_DTYPES = {text: dtype for dtype, text in DTYPES.items()}


def group_ranks(process_group: dist.ProcessGroup | None) -> tuple[int, ...]:
    """Global ranks of the optimizer's process group; (0,) without torch.distributed."""
    if not (dist.is_available() and dist.is_initialized()):
        return (0,)
    return tuple(dist.get_process_group_ranks(process_group or dist.group.WORLD))


def my_rank() -> int:
    """This process's global rank; 0 without torch.distributed."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_pretended() -> bool:
    """Whether this process plays one rank of a world whose other ranks do not run: the process group
    is torch's fake one, which sends nothing."""
    return dist.is_available() and dist.is_initialized() and dist.get_backend() == "fake"


def mesh_of(mesh: DeviceMesh) -> tuple[Mesh, Root | None]:
    """A device mesh as data, with the root that it was sliced from."""

    def convert(one: DeviceMesh) -> Mesh:
        tensor = one.mesh
        names = one.mesh_dim_names or tuple(f"dim{i}" for i in range(tensor.dim()))
        for name in names:
            check_name(name, "mesh axis")
        axes = tuple(zip(names, tensor.shape, strict=True))
        return Mesh(axes, tuple(tensor.flatten().tolist()))

    converted = convert(mesh)
    root = mesh._get_root_mesh()
    if root is mesh or not mesh.mesh_dim_names or not root.mesh_dim_names:
        return converted, None
    # A flattened axis is none of the root's axes. A mesh with a flattened axis counts as having no root.
    if not all(name in root.mesh_dim_names for name in mesh.mesh_dim_names):
        return converted, None
    axes = tuple(root.mesh_dim_names.index(name) for name in mesh.mesh_dim_names)
    return converted, Root(convert(root), axes)


def dtype_text(dtype: torch.dtype, parameter: str, what: str = "") -> str:
    """``f32``, ``bf16`` or ``f16``."""
    text = DTYPES.get(dtype)
    if text is None:
        expected = ", ".join(str(known) for known in DTYPES)
        raise TypeError(f"parameter '{parameter}'{what}: expected {expected}, found {dtype}")
    return text


def grad_dtype(parameter: torch.Tensor, attribute: str) -> torch.dtype | None:
    """The dtype that this parameter's gradients have; None if it is unknown before there is a gradient."""
    declared = getattr(parameter, "grad_dtype", parameter.dtype)
    if declared is not None and attribute == "grad":
        return declared
    gradient = getattr(parameter, attribute, None)
    return None if gradient is None else gradient.dtype


class Layout(Protocol):
    """How whole tensors will be sharded over a mesh."""

    mesh: Mesh

    def texts(self, names: Sequence[str], tensor: torch.Tensor) -> tuple[str, ...]:
        """A parameter's placements as the manifest has them."""


_Converted = dict[int, tuple[Mesh, Root | None]]


def _locate(
    tensor: torch.Tensor, names: list[str], world: tuple[int, ...], declarations: Declarations,
    converted: _Converted,
) -> tuple[tuple[int, ...], Mesh, tuple[str, ...], Root | None]:  # fmt: skip
    """The global shape, the mesh, the placements as the manifest has them, and the mesh's root."""
    name = names[0]

    def known(mesh: DeviceMesh) -> tuple[Mesh, Root | None]:
        # Parameters share meshes, and a mesh may have thousands of ranks.
        if id(mesh) not in converted:
            converted[id(mesh)] = mesh_of(mesh)
        return converted[id(mesh)]

    placed = declarations.placed(names)
    if isinstance(tensor, DTensor):
        mesh, root = known(tensor.device_mesh)
        texts = tuple(placement_text(one, f"parameter '{name}'") for one in tensor.placements)
        _refuse_other_place(tensor, texts, placed, name)
        return tuple(tensor.shape), mesh, texts, root
    if placed is not None and placed.mesh is not None:
        mesh, root = known(placed.mesh)
        texts = placed.texts("placements", name, len(mesh.axes))
        if placed.shape is not None:
            return tuple(placed.shape), mesh, texts, root
        shape = list(tensor.shape)
        for (_, size), text in zip(mesh.axes, texts, strict=True):
            if text.startswith(("flat", "owned")):
                raise PlacementError(
                    f"parameter '{name}': expected its global shape beside the placement {text}, as in "
                    "Placed(mesh, placements, shape=…)"
                )
            if dimension(text) is not None:
                shape[dimension(text)] *= size
        return tuple(shape), mesh, texts, root
    if len(world) > 1 and not any(matches(pattern, names) for pattern in declarations.replicated):
        raise PlacementError(
            f"parameter '{name}': expected a DTensor in a world of {len(world)} ranks, found a "
            "plain tensor; if every rank holds it whole name it in replicated=, if it is a shard "
            "give placements="
        )
    whole = converted.setdefault(id(world), (Mesh((("world", len(world)),), world), None))[0]
    return tuple(tensor.shape), whole, ("R",), None


def _refuse_other_place(
    tensor: DTensor, texts: tuple[str, ...], placed: Placed | None, name: str
) -> None:
    """Raises PlacementError if a declaration contradicts a DTensor's own mesh, placements or shape."""
    if placed is None or placed.mesh is None:
        return
    own = (tensor.device_mesh, list(texts), tuple(tensor.shape))
    declared = (
        placed.mesh, list(placed.texts("placements", name, len(texts))),
        tuple(tensor.shape if placed.shape is None else placed.shape),
    )  # fmt: skip
    for what, expected, found in zip(("mesh", "placements", "shape"), declared, own, strict=True):
        if expected != found:
            raise PlacementError(
                f"parameter '{name}': expected the {what} of placements=, {expected}, found a DTensor's, "
                f"{found}"
            )


def logical_shape(
    names: Sequence[str], tensor: torch.Tensor, declarations: Declarations
) -> tuple[int, ...]:
    """The global shape, or a shape with as many axes, which is enough for routing."""
    placed = declarations.placed(names)
    if isinstance(tensor, DTensor) or placed is None or placed.shape is None:
        return tuple(max(size, 1) for size in tensor.shape)
    return tuple(placed.shape)


def by_tensor(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
) -> list[tuple[list[str], torch.Tensor]]:
    """Every tensor once, with all of its canonical names: a pattern may match any of them."""
    found: dict[int, tuple[list[str], torch.Tensor]] = {}
    for name, tensor in named_parameters:
        names, _ = found.setdefault(id(tensor), ([], tensor))
        if canonical_name(name) not in names:
            names.append(canonical_name(name))
    return list(found.values())


@dataclass(frozen=True)
class Connected:
    """The ranks that one rank has to plan with, and a note of reasons that the others may not know."""

    ranks: frozenset[int]
    note: str = ""


def connected(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    world: tuple[int, ...],
    declarations: Declarations,
) -> Connected:
    """The ranks that this rank has to plan with: those of its parameters' meshes, frozen ones too.

    Nothing is refused here. So a rank whose parameters will be refused later still meets the ranks
    of its meshes, and can tell them. A plain tensor that nobody declared names no rank: the others
    would not know that this rank waits for them.
    """
    stepped, still = {my_rank()}, {my_rank()}
    declared = ""
    meshes: dict[tuple[int, bool], tuple[DeviceMesh, str]] = {}
    for names, tensor in by_tensor(named_parameters):
        found = stepped if tensor.requires_grad else still
        placed = declarations.placed(names)
        if isinstance(tensor, DTensor) or (placed is not None and placed.mesh is not None):
            mesh = tensor.device_mesh if isinstance(tensor, DTensor) else placed.mesh
            meshes.setdefault((id(mesh), tensor.requires_grad), (mesh, names[0]))
        elif any(matches(pattern, names) for pattern in declarations.replicated):
            declared = declared or names[0]
            found.update(world)
    frozen: list[tuple[str, list[int]]] = []
    for (_, requires_grad), (mesh, name) in meshes.items():
        ranks = mesh.mesh.flatten().tolist()
        (stepped if requires_grad else still).update(ranks)
        if not requires_grad:
            frozen.append((name, ranks))
    notes = []
    if declared:
        notes.append(f"parameter '{declared}' is declared in replicated=, so that every rank of the "
                     "group has to have it")  # fmt: skip
    name, ranks = max(frozen, key=lambda one: len(one[1]), default=("", ()))
    if not stepped.issuperset(ranks):
        notes.append(f"ranks that share the frozen parameter '{name}' prepare together: call "
                     "prepare() on the others, too")  # fmt: skip
    return Connected(frozenset((stepped | still).intersection(world)), "; ".join(notes))


def _gradient_placements(
    tensor: torch.Tensor, names: Sequence[str], own: Sequence[str], shape: Sequence[int],
    sizes: Sequence[int], declarations: Declarations,
) -> tuple[str, ...] | None:  # fmt: skip
    """The placements of a gradient if they differ from its parameter's; otherwise None. They are declared, or
    taken from the current gradient: other shards (for example ZeRO-2), or contributions to a sum."""
    placed = declarations.placed(names)
    gradient = getattr(tensor, declarations.gradient, None)
    what = f"parameter '{names[0]}': gradient"
    if placed is not None and placed.gradient is not None:
        texts = placed.texts("gradient", names[0], len(sizes))
    elif isinstance(tensor, DTensor) and isinstance(gradient, DTensor):
        pending = declarations.sums and is_partial_sum(gradient.placements)
        if gradient.device_mesh != tensor.device_mesh or not (
            pending or stands_apart(gradient.placements, tensor.placements)
        ):
            return None
        texts = tuple(placement_text(one, what, gradient=True) for one in gradient.placements)
    else:
        return None
    if texts == tuple(own):
        return None
    if is_ambiguous(shape, sizes, texts):
        # For parameters the shapes of all ranks' shards resolve this. For gradients nothing does.
        raise PlacementError(
            f"{what}: expected placements that FSDP2 and DTensor read alike, or its parameter's, "
            f"{list(own)}, found {list(texts)} of the shape {list(shape)}"
        )
    return texts


def _odd_shape(
    tensor: torch.Tensor, shape: Sequence[int], mesh: Mesh, texts: Sequence[str]
) -> tuple[int, ...] | None:
    """The shape of this rank's shard if the placements alone do not determine it; otherwise None."""
    if any(text.startswith(("flat", "owned")) for text in texts):
        return None  # the library knows how long a range is
    local = tuple((tensor._local_tensor if isinstance(tensor, DTensor) else tensor).shape)
    sizes = [size for _, size in mesh.axes]
    if is_ambiguous(shape, sizes, texts):
        return local
    if my_rank() not in mesh.ranks:
        return None
    index, place = mesh.ranks.index(my_rank()), []
    for size in reversed(sizes):
        place.insert(0, index % size)
        index //= size
    expected = shape_at(shape, sizes, texts, place)
    return None if local == expected or (0 in local and 0 in expected) else local


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        check_name(name, "parameter")


def describe(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    world: tuple[int, ...],
    declarations: Declarations,
    layout: Layout | None = None,
) -> dict[str, tuple[Entry, torch.Tensor]]:
    """This rank's trainable parameters by canonical name, in the model's order.

    With a ``layout``, or with torch's fake process group, tensors need no memory.
    """
    needs_memory = layout is None and not is_pretended()
    result: dict[str, tuple[Entry, torch.Tensor]] = {}
    converted: _Converted = {}
    for names, tensor in by_tensor(named_parameters):
        if not tensor.requires_grad:
            continue
        _check_names(names)
        name = names[0]
        if tensor.is_meta and needs_memory:
            raise ValueError(
                f"parameter '{name}': expected a tensor with memory, found a meta tensor; "
                "materialize the model before the first step"
            )
        if name in result:
            raise ValueError(f"two parameters have the name '{name}'")
        if layout is not None:
            shape, mesh, texts, root = tuple(tensor.shape), layout.mesh, layout.texts(names, tensor), None
        else:
            shape, mesh, texts, root = _locate(tensor, names, world, declarations, converted)
        sizes = [size for _, size in mesh.axes]
        apart = _gradient_placements(tensor, names, texts, shape, sizes, declarations)
        placed = declarations.placed(names)
        told, unseen = grad_dtype(tensor, declarations.gradient), []
        if told is None:
            unseen.append("grad_dtype")
        if getattr(tensor, declarations.gradient, None) is None and (
            placed is None or placed.gradient is None
        ):
            unseen.append("grad_placements")
        states = placed and placed.texts("states", name, len(sizes))
        entry = Entry(
            name, shape, dtype_text(tensor.dtype, name),
            dtype_text(told or tensor.dtype, name, "'s gradient"), mesh,
            texts, root, declarations.batch_axes(names, len(shape)), names[1:],
            None if layout is not None else _odd_shape(tensor, shape, mesh, texts),
            grad_placements=apart, unseen=tuple(unseen),
            state_placements=None if states == texts else states,
            bucket=declarations.bucket(names), blocks=declarations.divided(names),
            flatten=declarations.columns_from(names, len(shape)), shared=declarations.is_shared(names),
        )  # fmt: skip
        if math.prod(shape) == 0:
            raise ValueError(f"parameter '{name}': expected elements, found the shape {shape}")
        result[name] = (entry, tensor)
    return result


def describe_frozen(
    named_parameters: Iterable[tuple[str, torch.Tensor]], declarations: Declarations
) -> list[Entry]:
    """This rank's frozen parameters: what patterns and selectors of a definition look at.

    Nothing steps them, so they may have any dtype and placement, and their meshes connect no ranks.
    """
    result: list[Entry] = []
    for names, tensor in by_tensor(named_parameters):
        if tensor.requires_grad:
            continue
        _check_names(names)
        dtype = DTYPES.get(tensor.dtype, "f32")
        result.append(Entry(
            names[0], logical_shape(names, tensor, declarations), dtype, dtype, Mesh((), ()), (),
            batch_axes=declarations.batch_axes(names, len(logical_shape(names, tensor, declarations))),
            aliases=names[1:],
            flatten=declarations.columns_from(names, len(logical_shape(names, tensor, declarations))),
            requires_grad=False,
        ))  # fmt: skip
    return result
