"""The binding of a rank whose parameters are all frozen, as those of a pipeline stage may be."""

from __future__ import annotations

from typing import Any


class Nothing:
    """An instance, and its library, without parameters: the rank plans with the others and steps
    nothing."""

    routes: tuple[Any, ...] = ()
    parameters: tuple[Any, ...] = ()
    model = None
    transport = None

    @property
    def library(self) -> Nothing:
        return self

    def _nothing(self, *arguments: Any) -> None:
        pass

    bind_steps = bind_gradients = bind_hyperparameters = step = abort = close = _nothing

    def is_own(self) -> bool:
        return True

    def counters(self) -> tuple[dict[str, int], dict[str, int]]:
        return {}, {}
