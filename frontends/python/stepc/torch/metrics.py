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
            name, of = metric.name, found
            if not info.is_model:
                name, of = info.name, found.setdefault(metric.name, {})
            if metric.count:
                of[name] = _value(instance, info, number, metric)
    return found


def _value(instance: Instance, info: Parameter, number: int, metric: Metric) -> Any:
    """The numbers of a parameter's metric, of which this rank knows some."""
    values = instance.metrics(info.index, number)
    if not metric.global_shape:
        return values[0]
    # Named, because a trainer may have set another dtype or device for new tensors.
    known = torch.tensor(values, dtype=torch.float32, device="cpu")
    if metric.count == math.prod(metric.global_shape):
        return known.view(metric.global_shape)
    whole = torch.full((math.prod(metric.global_shape),), math.nan, dtype=torch.float32, device="cpu")
    for start, local, length in instance.shard_runs(info.index, _abi.METRIC - number):
        whole[start : start + length] = known[local : local + length]
    return whole.view(metric.global_shape)
