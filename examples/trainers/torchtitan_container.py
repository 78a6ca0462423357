"""torchtitan: a container whose groups have the path of a definition as ``optimizer_name``."""

from dataclasses import dataclass
from functools import partial

from torchtitan.components import optimizer

import stepc.torch


class OptimizersContainer(optimizer.OptimizersContainer):
    @dataclass(kw_only=True, slots=True)
    class Config(optimizer.OptimizersContainer.Config):
        pass

    @staticmethod
    def _resolve_optimizer_factory(name):
        return partial(stepc.torch.Optimizer, spec=name)
