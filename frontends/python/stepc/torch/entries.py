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
    #: The shape of this rank's shard, if it is not what the placements say. Also set if the placements are
    #: ambiguous, and only the shapes of all ranks' shards show what they mean.
    local_shape: tuple[int, ...] | None = None
    requires_grad: bool = True
    #: Whether its rule does the same to every element, so that it does not matter which ones a rank holds.
    elementwise: bool = False
    #: The gradient's placements, if they are not the parameter's.
    grad_placements: tuple[str, ...] | None = None
    #: Fields that this rank assumed, since it has no gradient. Ranks that have a gradient give their values.
    unseen: tuple[str, ...] = ()
    #: The states' placements, if they are not the parameter's.
    state_placements: tuple[str, ...] | None = None
    #: The flat bucket that holds the parameter: its name, size and alignment, and the parameter's offset.
    bucket: tuple[str, int, int, int] | None = None
    #: How its matrices are divided, as the manifest says it.
    blocks: dict[str, Any] | None = None
    #: The first of the axes that form the columns of its matrices; 0 if nothing is flattened.
    flatten: int = 0
    #: Whether several pipeline stages of a model group may have it, as copies of one parameter.
    shared: bool = False

    @property
    def names(self) -> list[str]:
        return [self.name, *self.aliases]
