"""What one rank knows about its parameters, as plain data that travels between ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mesh:
    """Axes (name, size), outermost first, and global ranks, row-major."""

    axes: tuple[tuple[str, int], ...]
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Root:
    """The mesh that a mesh is a slice of, and which of its axes the slice has."""

    mesh: Mesh
    axes: tuple[int, ...]


@dataclass
class Entry:
    """One parameter as one rank sees it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    grad_dtype: str
    mesh: Mesh
    placements: tuple[str, ...]
    root: Root | None = None
    batch_axes: int = 0
    aliases: list[str] = field(default_factory=list)
    #: This rank's shard, where only all shards together tell what the placements mean, or where it is
    #: not what they say.
    local_shape: tuple[int, ...] | None = None
    requires_grad: bool = True
    #: Its rule does the same to every element, so that it need not be known which a rank holds.
    elementwise: bool = False
    #: Those of its gradient, where they are not the parameter's.
    grad_placements: tuple[str, ...] | None = None
    #: What is said of a gradient that is not there: where others have one, theirs holds.
    unseen: tuple[str, ...] = ()
    #: Those of its states, where they are not the parameter's.
    state_placements: tuple[str, ...] | None = None
    #: The flat bucket that it lies in: name, size and alignment, and its offset there.
    bucket: tuple[str, int, int, int] | None = None
    #: How its matrices are divided, as the manifest says it.
    blocks: dict[str, Any] | None = None
    #: The axis from which on all are columns of its matrices; 0: nothing is flattened.
    flatten: int = 0

    @property
    def names(self) -> list[str]:
        return [self.name, *self.aliases]
