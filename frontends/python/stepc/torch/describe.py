"""What one rank knows about its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement, Replicate

from stepc.torch.entries import Entry, Mesh, Root
from stepc.torch.names import canonical_name, matches, parse_pattern
from stepc.torch.placements import PlacementError, placement_text, stands_apart
from stepc.torch.strided import is_ambiguous

DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
TORCH_DTYPES = {text: dtype for dtype, text in DTYPES.items()}


@dataclass(frozen=True)
class Placed:
    """Where a plain tensor lives, for tensors that do not say so themselves.

    Args:
        mesh: the device mesh.
        placements: one per mesh axis; the tensor is this rank's shard.
        shape: the global shape. Without it, shards are taken to be of one size.
    """

    mesh: DeviceMesh
    placements: Sequence[Placement]
    shape: Sequence[int] | None = None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _are_integers(values: Any) -> bool:
    return _is_list(values) and all(isinstance(value, int) for value in values)


@dataclass(frozen=True)
class Blocks:
    """The matrices in a fused weight: rules see each of them as a matrix of its own.

    Args:
        sizes: rows (columns) of each, one after the other.
        repeat: how often they follow each other; each matrix has its part of every time.
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
        """As runs, however it was written."""
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
    """What a trainer says about its tensors beside the tensors themselves."""

    batch: Sequence[str] | Mapping[str, int] = ()
    replicated: Sequence[str] = ()
    placements: Mapping[str, Placed] = field(default_factory=dict)
    blocks: Mapping[str, Blocks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A bad pattern is an error where it is written, not where a parameter is first compared.
        for patterns in (self.batch, self.replicated, self.placements, self.blocks):
            for pattern in patterns:
                parse_pattern(pattern)
        for argument, declared, kind, example in (
            ("placements", self.placements, Placed, "Placed(mesh, [Shard(0)])"),
            ("blocks", self.blocks, Blocks, "Blocks([512, 128, 128])"),
        ):
            for pattern, value in declared.items():
                if not isinstance(value, kind):
                    raise TypeError(
                        f"{argument}={{{pattern!r}: …}}: expected a stepc.torch.{kind.__name__}, as in "
                        f"{example}, found {value!r}"
                    )

    def batch_axes(self, names: Sequence[str], axes: int) -> int:
        """Leading axes that count matrices; the last pattern that matches holds."""
        result = 0
        for pattern in self.batch:
            if matches(pattern, names):
                given = self.batch[pattern] if isinstance(self.batch, Mapping) else axes - 2
                if not 0 <= given <= max(axes - 2, 0) or axes < 3:
                    raise ValueError(
                        f"parameter '{names[0]}': batch= matches it with {given} batch axes, but "
                        f"it has {axes} axes: expected at least two besides them"
                    )
                result = given
        return result

    def placed(self, names: Sequence[str]) -> Placed | None:
        """The last pattern of ``placements=`` that matches."""
        return self._last(self.placements, names)

    def divided(self, names: Sequence[str]) -> dict[str, Any] | None:
        """The blocks of the last pattern of ``blocks=`` that matches, as the manifest says them."""
        found = self._last(self.blocks, names)
        return found.manifest() if found else None

    @staticmethod
    def _last(declared: Mapping[str, Any], names: Sequence[str]) -> Any:
        found = [value for pattern, value in declared.items() if matches(pattern, names)]
        return found[-1] if found else None

    def unmatched(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, str]]:
        """The patterns, each behind its argument's name, that match no parameter, frozen or not."""
        names = [name for name, _ in named]
        declared = (("batch", self.batch), ("replicated", self.replicated),
                    ("placements", self.placements), ("blocks", self.blocks))  # fmt: skip
        return [(argument, pattern) for argument, patterns in declared for pattern in patterns
                if not any(matches(pattern, [name]) for name in names)]  # fmt: skip


def group_ranks(process_group: dist.ProcessGroup | None) -> tuple[int, ...]:
    """Global ranks of the optimizer's process group; (0,) without torch.distributed."""
    if not (dist.is_available() and dist.is_initialized()):
        return (0,)
    return tuple(dist.get_process_group_ranks(process_group or dist.group.WORLD))


def my_rank() -> int:
    """This process's global rank; 0 without torch.distributed."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def mesh_of(mesh: DeviceMesh) -> tuple[Mesh, Root | None]:
    """A device mesh as data, with the root that it was sliced from."""

    def convert(one: DeviceMesh) -> Mesh:
        tensor = one.mesh
        names = one.mesh_dim_names or tuple(f"dim{i}" for i in range(tensor.dim()))
        axes = tuple(zip(names, tensor.shape, strict=True))
        return Mesh(axes, tuple(tensor.flatten().tolist()))

    converted = convert(mesh)
    root = mesh._get_root_mesh()
    if root is mesh or not mesh.mesh_dim_names or not root.mesh_dim_names:
        return converted, None
    # A flattened axis is not one of its root's; such a mesh stands for itself.
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


def grad_dtype(parameter: torch.Tensor) -> torch.dtype:
    """The dtype that this parameter's gradients have, whether or not one is there now."""
    declared = getattr(parameter, "grad_dtype", parameter.dtype)
    if declared is not None:
        return declared
    return parameter.dtype if parameter.grad is None else parameter.grad.dtype


_Converted = dict[int, tuple[Mesh, Root | None]]


def _locate(
    tensor: torch.Tensor, names: list[str], world: tuple[int, ...], declarations: Declarations,
    converted: _Converted,
) -> tuple[tuple[int, ...], Mesh, tuple[Placement, ...], Root | None]:  # fmt: skip
    name = names[0]

    def known(mesh: DeviceMesh) -> tuple[Mesh, Root | None]:
        # Parameters share meshes, and a mesh may have thousands of ranks.
        if id(mesh) not in converted:
            converted[id(mesh)] = mesh_of(mesh)
        return converted[id(mesh)]

    if isinstance(tensor, DTensor):
        mesh, root = known(tensor.device_mesh)
        return tuple(tensor.shape), mesh, tuple(tensor.placements), root
    placed = declarations.placed(names)
    if placed is not None:
        mesh, root = known(placed.mesh)
        if len(placed.placements) != len(mesh.axes):
            raise PlacementError(
                f"parameter '{name}': placements= gives {len(placed.placements)} placements for a "
                f"mesh of {len(mesh.axes)} axes"
            )
        shape = list(tensor.shape)
        for (_, size), placement in zip(mesh.axes, placed.placements, strict=True):
            if placed.shape is None and hasattr(placement, "dim"):
                shape[placement.dim] *= size
        return tuple(placed.shape or shape), mesh, tuple(placed.placements), root
    if len(world) > 1 and not any(matches(pattern, names) for pattern in declarations.replicated):
        raise PlacementError(
            f"parameter '{name}': expected a DTensor in a world of {len(world)} ranks, found a "
            "plain tensor; if every rank holds it whole name it in replicated=, if it is a shard "
            "give placements="
        )
    whole = converted.setdefault(id(world), (Mesh((("world", len(world)),), world), None))[0]
    return tuple(tensor.shape), whole, (Replicate(),), None


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
    """The ranks that one rank has to plan with, and what others may not know about why."""

    ranks: frozenset[int]
    note: str = ""


def connected(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    world: tuple[int, ...],
    declarations: Declarations,
) -> Connected:
    """The ranks that this rank has to plan with: those of its parameters' meshes, frozen ones too.

    Nothing is refused here, so that a rank whose parameters will be still tells those that its
    meshes name. A plain tensor that nobody declared names no rank: the others would not know that
    this one waits for them.
    """
    stepped, still = {my_rank()}, {my_rank()}
    declared = ""
    meshes: dict[tuple[int, bool], tuple[DeviceMesh, str]] = {}
    for names, tensor in by_tensor(named_parameters):
        found = stepped if tensor.requires_grad else still
        placed = declarations.placed(names)
        if isinstance(tensor, DTensor) or placed is not None:
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


def _own_gradient_placements(tensor: torch.Tensor, sizes: Sequence[int]) -> tuple[str, ...] | None:
    """Those of a gradient that lies in shards of its own (ZeRO-2, say), as it is there now."""
    gradient = tensor.grad
    if not (isinstance(tensor, DTensor) and isinstance(gradient, DTensor)):
        return None
    if gradient.device_mesh != tensor.device_mesh or not stands_apart(gradient.placements, tensor.placements):
        return None
    texts = tuple(placement_text(one, "a gradient") for one in gradient.placements)
    return None if is_ambiguous(tuple(tensor.shape), sizes, texts) else texts


def describe(
    named_parameters: Iterable[tuple[str, torch.Tensor]],
    world: tuple[int, ...],
    declarations: Declarations,
) -> dict[str, tuple[Entry, torch.Tensor]]:
    """This rank's trainable parameters by canonical name, in the model's order."""
    result: dict[str, tuple[Entry, torch.Tensor]] = {}
    converted: _Converted = {}
    for names, tensor in by_tensor(named_parameters):
        if not tensor.requires_grad:
            continue
        name = names[0]
        if tensor.is_meta:
            raise ValueError(
                f"parameter '{name}': expected a tensor with memory, found a meta tensor; "
                "materialize the model before the first step"
            )
        if name in result:
            raise ValueError(f"two parameters have the name '{name}'")
        shape, mesh, placements, root = _locate(tensor, names, world, declarations, converted)
        texts = tuple(placement_text(one, f"parameter '{name}'") for one in placements)
        sizes = [size for _, size in mesh.axes]
        apart = _own_gradient_placements(tensor, sizes)
        local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
        local_shape = tuple(local.shape) if is_ambiguous(shape, sizes, texts) else None
        entry = Entry(
            name, shape, dtype_text(tensor.dtype, name),
            dtype_text(grad_dtype(tensor), name, "'s gradient"), mesh,
            texts, root, declarations.batch_axes(names, len(shape)), names[1:], local_shape,
            grad_placements=None if is_ambiguous(shape, sizes, texts) else apart,
            blocks=declarations.divided(names),
        )  # fmt: skip
        if math.prod(shape) == 0:
            raise ValueError(f"parameter '{name}': expected elements, found the shape {shape}")
        result[name] = (entry, tensor)
    return result


def describe_frozen(
    named_parameters: Iterable[tuple[str, torch.Tensor]], declarations: Declarations
) -> list[Entry]:
    """This rank's frozen parameters: what patterns and selectors of a definition look at.

    Nothing steps them, so they may have any dtype and lie anywhere, and say nothing about worlds.
    """
    result: list[Entry] = []
    for names, tensor in by_tensor(named_parameters):
        if tensor.requires_grad:
            continue
        dtype = DTYPES.get(tensor.dtype, "f32")
        result.append(Entry(
            names[0], tuple(max(size, 1) for size in tensor.shape), dtype, dtype, Mesh((), ()), (),
            batch_axes=declarations.batch_axes(names, tensor.dim()), aliases=names[1:],
            requires_grad=False,
        ))  # fmt: skip
    return result
