"""Which elements of a tensor a rank holds, as the library tells them, as boxes of the whole tensor.

DTensor cannot describe ranges of a flat buffer, stripes, tensors that one rank owns, and states that stay
with blocks. Shards of these are plain tensors of torch. In checkpoints each is a :class:`Piece`, which knows
its place in the whole tensor, so that ``torch.distributed.checkpoint`` saves and loads it on any mesh.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor

from stepc._library import Instance
from stepc.torch.placements import BLOCKS, placement_text, split_placements
from stepc.torch.strided import is_ambiguous


class Box(NamedTuple):
    """A box of the whole tensor, and the start and strides of its elements in the memory of the shard."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int
    strides: tuple[int, ...]

    def within(self, whole: torch.Tensor) -> torch.Tensor:
        for dim, (offset, size) in enumerate(zip(self.offsets, self.sizes, strict=True)):
            whole = whole.narrow(dim, offset, size)
        return whole

    def of(self, held: torch.Tensor) -> torch.Tensor:
        """A view of the box's elements in ``held``, the contiguous memory of the shard."""
        return held.as_strided(self.sizes, self.strides, held.storage_offset() + self.start)


def boxes(runs: Sequence[tuple[int, int, int]], shape: Sequence[int]) -> list[Box]:
    """Turns runs ``(global, local, length)`` of a row-major tensor into boxes: few for regular shards."""
    if not runs:
        return []
    if not shape:
        return [Box((), (), runs[0][1], ())]
    # Columns: offset by dimension, size by dimension, start, stride by dimension.
    axes = len(shape)
    parts = _lines(np.asarray(runs, np.int64), shape)
    for dim in reversed(range(axes)):
        parts = _joined(parts, dim, axes)
    return [
        Box(tuple(row[:axes]), tuple(row[axes : 2 * axes]), row[2 * axes], tuple(row[2 * axes + 1 :]))
        for row in parts[np.lexsort(parts[:, :axes].T[::-1])].tolist()
    ]


def _lines(runs: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Cuts runs into boxes of one row each, since a run may end in a later row than it begins in."""
    width, axes = shape[-1], len(shape)
    begin, length = runs[:, 0], runs[:, 2]
    count = (begin + length - 1) // width - begin // width + 1  # rows that each run touches
    which = np.repeat(np.arange(len(runs)), count)
    row = begin[which] // width + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    first = np.maximum(begin[which], row * width)
    last = np.minimum(begin[which] + length[which], (row + 1) * width)
    parts = np.zeros((len(which), 3 * axes + 1), np.int64)
    parts[:, :axes] = np.stack(np.unravel_index(first, shape), axis=1)
    parts[:, axes : 2 * axes] = 1
    parts[:, 2 * axes - 1] = last - first
    parts[:, 2 * axes] = runs[which, 1] + first - begin[which]
    parts[:, 2 * axes + 1 :] = 1
    return parts


def _joined(parts: np.ndarray, dim: int, axes: int) -> np.ndarray:
    """Joins boxes that follow one another along a dimension, at equal distances in memory."""
    start, stride = 2 * axes, 2 * axes + 1 + dim
    others = [c for c in range(parts.shape[1]) if c not in (dim, axes + dim, start, stride)]
    parts = parts[np.lexsort((parts[:, dim], *parts[:, others].T))]
    if len(parts) == 1:
        return parts
    same = (parts[1:, others] == parts[:-1, others]).all(axis=1)
    follows = same & (parts[1:, dim] == parts[:-1, dim] + parts[:-1, axes + dim])
    # Boxes with one index each along the dimension may have any distance, if it stays the same. A box with
    # more indices must be continued by the next box.
    if not follows.any():
        return parts
    single = parts[:, axes + dim] == 1
    step = np.diff(parts[:, start])
    result, begin = [], 0
    ends = [*np.flatnonzero(~follows).tolist(), len(parts) - 1]
    for end in ends:
        at = begin
        while at <= end:
            stop, row = at, parts[at].copy()
            if single[at : end + 1].all() and end > at:
                equal = step[at:end] == step[at]
                stop = at + (int(np.argmin(equal)) if not equal.all() else end - at)
                row[stride], row[axes + dim] = step[at], stop - at + 1
            else:
                while stop < end and step[stop] == parts[stop, axes + dim] * row[stride]:
                    stop += 1
                row[axes + dim] = parts[at : stop + 1, axes + dim].sum()
            result.append(row)
            at = stop + 1
        begin = end + 1
    return np.stack(result)


class Layout:
    """Where one tensor of a parameter lies on this rank.

    Args:
        instance: this rank's instance of the library.
        index, of: as :meth:`stepc.Instance.shard_runs` takes them.
        shape: the global shape.
    """

    def __init__(self, instance: Instance, index: int, of: int, shape: Sequence[int]) -> None:
        self._instance, self._index, self._of = instance, index, of
        self.shape = tuple(shape)

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        return self._instance.shard_runs(self._index, self._of)

    @cached_property
    def boxes(self) -> list[Box]:
        return boxes(self.runs, self.shape)

    def among(self, other: Layout, held: torch.Tensor) -> torch.Tensor | None:
        """This layout's elements, taken out of ``held``, this rank's shard of the same tensor in another
        layout, along one axis. None if ``held`` lacks some of them. A view if they are contiguous there."""
        there = sorted(other.runs)
        begins, parts = [run[0] for run in there], []
        for first, _, length in self.runs:
            while length:
                at = bisect.bisect_right(begins, first) - 1
                start, local, size = there[at] if at >= 0 else (0, 0, 0)
                taken = min(length, start + size - first)
                if taken <= 0:
                    return None
                parts.append((local + first - start, taken))
                first, length = first + taken, length - taken
        flat = held.reshape(-1)
        if all(a + n == b for (a, n), (b, _) in itertools.pairwise(parts)):
            return flat.narrow(0, parts[0][0] if parts else 0, sum(size for _, size in parts))
        return torch.cat([flat.narrow(0, *part) for part in parts])


class Piece(torch.Tensor):
    """A rank's shard of a tensor in a state dict: the bound memory itself, with its place in the whole.

    ``size()`` is the whole tensor's, because distributed checkpoints compare it; ``shape`` is the piece's.
    """

    # Results of operations are plain tensors, so that no checkpoint takes them for the whole tensor.
    __torch_function__ = torch._C._disabled_torch_function_impl
    whole: torch.Size
    boxes: list[Box]

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if operation is torch.ops.aten.copy_.default and not isinstance(args[0], Piece):
            # BlockingAsyncStager allocates by `size()`: the copy would be spread over the whole, or fail.
            into, piece = args[:2]
            if into.shape != piece.shape:
                raise ValueError(
                    f"expected a tensor of the piece's shape {list(piece.shape)} for a copy of it, found "
                    f"{list(into.shape)}; where a storage_writer= stages for async_save, pass async_stager="
                    "DefaultStager(StagingOptions(False, False, False, False)), too"
                )
        with torch._C._DisableTorchDispatch():
            result = operation(*args, **(kwargs or {}))
        if operation is torch.ops.aten.zeros_like.default and not args[0].numel():
            return Piece.of(result, args[0].whole, args[0].boxes)  # the stager copies empty tensors so
        return result

    @staticmethod
    def of(held: torch.Tensor, whole: Sequence[int], parts: Sequence[Sequence[Any]]) -> Piece:
        piece = held.detach().as_subclass(Piece)
        piece.whole, piece.boxes = torch.Size(whole), [Box(*part) for part in parts]
        return piece

    @property
    def plain(self) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)

    def cut(self, whole: torch.Tensor) -> torch.Tensor:
        """The elements of a whole tensor that this piece has."""
        held = torch.empty(self.shape, dtype=whole.dtype, device=self.device)
        for box in self.boxes:
            box.of(held).copy_(box.within(whole))
        return held

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        return self.whole if dim is None else self.whole[dim]

    # torch's stager of asynchronous checkpoints copies a tensor by these two, and gives them `size()`.

    def new_empty(self, *size: Any, **options: Any) -> Piece:  # type: ignore[override]
        """A tensor with this piece's shape and place, without values."""
        del size
        options = {"dtype": self.dtype, "device": self.device} | options
        return Piece.of(torch.empty(self.shape, **options), self.whole, self.boxes)

    def set_(  # type: ignore[override]
        self, storage: Any, offset: int = 0, size: Any = (), stride: Any = ()
    ) -> Piece:
        """Gives the piece other memory. The piece keeps its shape."""
        del size
        return super().set_(storage, offset, self.shape, stride)

    def __deepcopy__(self, memo: Any) -> Piece:
        return Piece.of(self.plain.clone(), self.whole, self.boxes)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self.plain, tuple(self.whole), [tuple(box) for box in self.boxes])

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [ChunkStorageMetadata(torch.Size(box.offsets), torch.Size(box.sizes)) for box in self.boxes]

    def __create_write_items__(self, fqn: str, value: Any) -> list[WriteItem]:
        del value
        properties = TensorProperties.create_from_tensor(self.plain)
        return [
            WriteItem(
                MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD,
                tensor_data=TensorWriteData(chunk, properties, self.whole),
            )
            for chunk in self.__create_chunk_list__()
        ]  # fmt: skip

    def __get_tensor_shard__(self, index: MetadataIndex) -> torch.Tensor:
        for box in self.boxes:
            if torch.Size(box.offsets) == index.offset:
                return box.of(self.plain)
        raise ValueError(f"'{index.fqn}': expected the offset of a box that is held, found {index.offset}")


def placed(tensor: torch.Tensor, written: str, layout: Layout) -> torch.Tensor:
    """The tensor as a :class:`Piece`, if torch's distributed checkpoint would not know its place in the
    whole; otherwise the tensor itself. ``written`` are the library's placements."""
    words, dtensor = split_placements(written), isinstance(tensor, DTensor)
    if not any(one.startswith(("flat", "owned", "IS", BLOCKS)) for one in words) and (
        not _is_misread(tensor) if dtensor else all(one == "R" for one in words)
    ):
        return tensor
    shard = tensor._local_tensor if dtensor else tensor
    piece = Piece.of(shard, layout.shape, layout.boxes)
    return DTensor(piece, tensor._spec, requires_grad=False) if dtensor else piece


def _is_misread(tensor: DTensor) -> bool:
    """Whether torch may take FSDP2's shards over tensor parallelism for other elements."""
    texts = [placement_text(one, "a shard") for one in tensor.placements]
    return is_ambiguous(tensor.shape, tuple(tensor.device_mesh.shape), texts)


def _restored(held: torch.Tensor, whole: tuple[int, ...], parts: list[Any]) -> Piece:
    return Piece.of(held, whole, parts)


torch.serialization.add_safe_globals([_restored])
