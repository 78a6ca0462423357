"""What a library says of its parameters, states, meshes and routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class State:
    """One state of a parameter. ``local_shape`` is None if a library describes it without an instance, and
    on ranks outside the parameter's mesh."""

    name: str
    dtype: str
    kind: str
    master: bool
    init: float
    global_shape: tuple[int, ...]
    local_shape: tuple[int, ...] | None
    placements: str


@dataclass(frozen=True)
class Metric:
    """One metric of a parameter: an f32 for each of its matrices. ``count`` says how many of them this rank
    has; 0 if a library describes it without an instance."""

    name: str
    global_shape: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Parameter:
    """One parameter of the plan, as the library describes it."""

    index: int
    name: str
    route: str
    dtype: str
    gradient_dtype: str
    placements: str
    gradient_placements: str
    mesh: str
    global_shape: tuple[int, ...]
    local_shape: tuple[int, ...] | None
    gradient_local_shape: tuple[int, ...] | None
    member: bool
    states: tuple[State, ...]
    is_model: bool = False
    """Whether it stands for the definition's model: a step count and hyperparameters, and no tensor."""
    steps_on_device: bool = False
    """Whether it stands for a model that may skip steps, and a GPU decides that: it has the step counts."""
    metrics: tuple[Metric, ...] = ()
    inputs: tuple[State, ...] = ()
    """What the trainer gives for each step. ``init`` is the default, NaN if it has none."""


@dataclass(frozen=True)
class Mesh:
    """Where a parameter lies: axes (name, size), outermost first, and global ranks, row-major."""

    name: str
    axes: tuple[tuple[str, int], ...]
    ranks: tuple[int, ...]
    batch_axes: int
    """The parameter's leading axes that count matrices."""
    blocks: dict[str, Any] | None
    """How its matrices are divided, as a manifest says it."""
    flatten: int
    """The axis from which on all are columns of its matrices; 0: nothing is flattened."""
    flatten_specified: bool
    """Whether the definition says so, whatever a manifest says."""


@dataclass(frozen=True)
class Route:
    """A route's name, the rule that it applies and its hyperparameters. If a default is None, the trainer
    must set the hyperparameter."""

    name: str
    rule: str
    defaults: dict[str, float | None]
