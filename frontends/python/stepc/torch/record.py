"""A parameter of the plan that this rank holds, and its bound tensors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from stepc._described import Parameter
from stepc.errors import StepcError
from stepc.torch.describe import TORCH_DTYPES
from stepc.torch.slices import moved_in
from stepc.torch.states import local, placements_of


class Resharded(Exception):
    """A parameter is no longer what the library was compiled for: prepare again."""

    def __init__(
        self, name: str, what: str = "has not the placement, shape, dtype or device that was bound"
    ) -> None:
        super().__init__(f"parameter '{name}' {what}")


class Record:
    """One parameter of the plan that this rank holds, and its bound tensors."""

    __slots__ = (
        "apart", "device", "dtype", "grad_dtensor", "grad_dtype", "grad_placements", "grad_shape", "index",
        "info", "is_dtensor", "masters", "mesh_axes", "moved", "name", "pending", "pointer", "ranges",
        "shape", "spec", "staged", "state", "state_dtensor", "state_tensors", "step_pointer",
        "step_view", "stride", "tensor", "versions",
    )  # fmt: skip

    def __init__(
        self, info: Parameter, tensor: torch.Tensor, state: dict[str, Any], step: torch.Tensor,
        mesh_axes: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.info, self.tensor, self.state, self.step_view = info, tensor, state, step
        self.mesh_axes = mesh_axes
        self.name, self.index = info.name, info.index
        self.is_dtensor = isinstance(tensor, DTensor)
        # Dimensions that FSDP2 cut as DTensor would not (see strided.py). The library has other placements.
        self.ranges = "flat" in info.placements
        self.moved = frozenset() if self.ranges else moved_in(tensor, info.placements)
        self.spec = tensor._spec if self.is_dtensor else None
        self.dtype, self.grad_dtype = tensor.dtype, TORCH_DTYPES[info.gradient_dtype]
        shard = local(tensor)
        self.device, self.shape = shard.device, shard.shape
        # The shape and placements of its gradients: the parameter's, or others.
        self.grad_shape, self.grad_placements = self.shape, self.spec and self.spec.placements
        self.grad_dtensor = self.is_dtensor
        self.apart = info.gradient_placements != info.placements
        # Whether the step adds contributions up.
        self.pending = "P(" in info.gradient_placements
        if self.apart:
            self.grad_shape = torch.Size(info.gradient_local_shape)
            if self.is_dtensor:
                found = placements_of(info.gradient_placements, info, tensor, mesh_axes)
                self.grad_placements, self.grad_dtensor = found and tuple(found), found is not None
        self.pointer: int | None = None
        # A contiguous copy that is bound instead of the shard, and the strides of the shard.
        self.staged: torch.Tensor | None = None
        self.stride: tuple[int, ...] | None = None
        self.step_pointer = step.data_ptr()
        # The tensor, its address, dtype and local shape and, of a DTensor, its spec.
        self.state_tensors: list[tuple[Any, ...] | None] = [None] * len(info.states)
        self.state_dtensor = [isinstance(state[one.name], DTensor) for one in info.states]
        self.masters = [state.name for state in info.states if state.master]
        # None: the masters have not been compared with the parameter yet.
        self.versions: tuple[int, int] | None = None

    def description(self) -> tuple[Any, ...] | None:
        """The bound tensors, as `describe` in native/record.h reads them. None for a class of tensors that
        has a `grad` of its own, and for gradients whose placements DTensor does not have."""
        if type(self.tensor).grad is not torch.Tensor.grad or self.grad_dtensor != self.is_dtensor:
            return None
        states = tuple(
            (info.name, bound[0], bound[4])
            for info, bound in zip(self.info.states, self.state_tensors, strict=True)
        )
        return (
            self.index, self.tensor, self.spec, self.state, states, self.step_view,
            self.grad_dtype, self.device, tuple(self.grad_shape),
            self.grad_placements and tuple(self.grad_placements), self.apart,
            None if self.staged is None else self.stride,
            self.versions if self.masters else None,
        )  # fmt: skip


def refuse_shared_memory(records: Iterable[Record]) -> None:
    """Refuses parameters and states of which two share memory, because a step writes both."""
    spans: list[tuple[int, int, str]] = []
    for record in records:
        tensors = [("", local(record.tensor))]
        tensors += [(f"state '{info.name}' of ", local(record.state[info.name]))
                    for info in record.info.states]  # fmt: skip
        spans += [
            (shard.data_ptr(), shard.numel() * shard.element_size(),
             f"{what}parameter '{record.name}'")
            for what, shard in tensors if shard.numel()
        ]  # fmt: skip
    spans.sort(key=lambda span: span[0])
    for (first, size, one), (second, _, other) in itertools.pairwise(spans):
        if first + size > second:
            raise StepcError(
                f"{one} and {other} share their memory: expected storage of their own; tie "
                "parameters as one tensor"
            )
