"""Reads the metrics of a bound step."""

from __future__ import annotations

import math
from typing import Any

import torch

from stepc import _abi
from stepc._described import Metric, Parameter
from stepc._library import Instance
from stepc.torch.nothing import Nothing


def read_metrics(instance: Instance | Nothing) -> dict[str, Any]:
    """By name: a float of a metric of the model, or a dict by parameter (see ``Optimizer.metrics``)."""
    found: dict[str, Any] = {}
    for info in instance.parameters:
        for number, metric in enumerate(info.metrics):
            of = found if info.is_model else found.setdefault(metric.name, {})
            value = _value(instance, info, number, metric)
            if value is not None:
                of[metric.name if info.is_model else info.name] = value
    return found


def _value(instance: Instance, info: Parameter, number: int, metric: Metric) -> Any:
    """The numbers of a parameter's metric; None if this rank knows none of them."""
    values = instance.metrics(info.index, number)
    if not values:
        return None
    if not metric.global_shape:
        return values[0]
    whole = torch.full((math.prod(metric.global_shape),), math.nan)
    for start, local, length in instance.shard_runs(info.index, _abi.METRIC - number):
        whole[start : start + length] = torch.tensor(values[local : local + length])
    return whole.view(metric.global_shape)
