"""Contiguous copies that are stepped in the place of tensors whose axes are permuted in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from stepc.errors import GradientError, StepcError, warn_user


class Copied:
    """Collects the tensors that are copied in every step, and warns of them once."""

    def __init__(self, what: str, which: str, hint: str = "") -> None:
        self._what, self._which, self._hint = what, which, hint
        self._found: dict[str, str] = {}
        self._told = False

    def add(self, name: str, tensor: torch.Tensor) -> None:
        if not self._told:
            self._found[name] = f"strides {tensor.stride()} for the shape {list(tensor.shape)}"

    def warn(self) -> None:
        if self._told or not self._found:
            return
        self._told = True
        name, strides = next(iter(self._found.items()))
        warn_user(
            f"parameter '{name}': {self._which} has the {strides}; {self._what} that are not "
            f"contiguous, here {len(self._found)}, are copied in every step{self._hint}", UserWarning,
        )  # fmt: skip


class Staged(NamedTuple):
    """A parameter's shard, and the copy that the library steps."""

    name: str
    shard: torch.Tensor
    copy: torch.Tensor


def contiguous_like(where: str, shard: torch.Tensor) -> torch.Tensor:
    """New memory to step instead of a transposed or channels-last tensor. Raises StepcError for others."""
    # Sorted, the strides must be those of a contiguous tensor: then the axes are only permuted.
    expected = 1
    for stride, size in sorted(zip(shard.stride(), shard.shape, strict=True)):
        if size != 1:
            if stride != expected:
                raise StepcError(
                    f"{where}: expected a contiguous tensor, or one whose axes are permuted, found "
                    f"the strides {shard.stride()} for the shape {list(shard.shape)}; "
                    "p.data = p.data.contiguous() gives it memory of its own"
                )
            expected *= size
    return torch.empty(shard.shape, dtype=shard.dtype, device=shard.device)


def copy_back(staged: Iterable[Staged]) -> None:
    """Gives parameters the values that the library stepped."""
    for one in staged:
        one.shard.copy_(one.copy)


def copy_back_after(error: BaseException, staged: Sequence[Staged]) -> None:
    """Copies back in spite of an error, since states and step counts may have changed already.

    If copying fails, too, ``error.half_stepped`` names the parameters that were not copied back. If
    the library did not step, a copy still has its parameter's values.
    """
    if not staged:
        return
    known = list(getattr(error, "half_stepped", ()))
    # Set first, because a signal handler may raise from here on.
    error.half_stepped = known + [one.name for one in staged if one.name not in known]
    try:
        copy_back(staged)
    except BaseException:  # noqa: BLE001 - the first error is the one to raise
        return
    error.half_stepped = known


def refuse_copies(gradients: list[torch.Tensor]) -> None:
    """Refuses copies of gradients if a graph may read them again: the copies are gone by then."""
    if gradients:
        gradients.clear()
        raise GradientError(
            "capturable: expected gradients that can be read where they are, found copies of some, "
            "which are not contiguous, or placed otherwise than the library's"
        )
