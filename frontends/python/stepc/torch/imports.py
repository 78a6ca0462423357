"""States of other optimizers, so that a running job can move over without a checkpoint in between."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from stepc.errors import StepcError
from stepc.torch.describe import my_rank
from stepc.torch.names import canonical_name
from stepc.torch.pieces import Piece
from stepc.torch.placements import split_placements
from stepc.torch.record import Record
from stepc.torch.routed import RoutedGroups
from stepc.torch.states import STEP, check_source, check_tensor, copy_state, local, whole_step

_Found = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class FlatStates:
    """This rank's part of flat states, as Megatron's distributed optimizer keeps them.

    Args:
        bucket: the name of one of the optimizer's ``buckets``.
        tensors: by the other optimizer's name for a state this rank's part of the whole bucket.
        step: the number of steps taken.
    """

    bucket: str
    tensors: Mapping[str, torch.Tensor]
    step: int | None = None


@torch.no_grad()
def import_states(
    optimizer: RoutedGroups,
    sources: Any,
    states: Mapping[str, Mapping[str, str | None]],
    *,
    names: Sequence[str] = (),
    step: int | None = None,
) -> None:
    """Takes over states of other optimizers, whose parameters are this one's.

    What the numbers mean is the definition's affair: it has to average as the other optimizer did.
    bf16 and f16 are widened where the state is f32; nothing is rounded. On an error nothing was
    taken over.

    Args:
        optimizer: a :class:`stepc.torch.Optimizer`.
        sources: one or a list of: optimizers of torch; their state dicts; states by parameter's name;
            :class:`FlatStates`. Together they have every parameter of the routes in ``states`` once.
        states: by route or rule, for each state its name in the source, ``{"AdamW": {"m": "exp_avg",
            "v": "exp_avg_sq"}}``; None for one that keeps the value that it has.
        names: the parameters of state dicts without names, in the order of their groups.
        step: the steps taken, for sources that do not count them.
    """
    optimizer._prepared()
    found: _Found = {}
    for source in sources if isinstance(sources, list | tuple) else [sources]:
        for name, own in _by_name(optimizer, source, names):
            if name in found:
                raise StepcError(f"parameter '{name}': expected its states once, found them in two sources")
            found[name] = own
    routes = optimizer._routing.routes
    known = {name for route in routes.values() for name in (route.name, route.rule)}
    for name in states:
        if name not in known:
            raise StepcError(f"states=: expected a route or rule, {', '.join(sorted(known))}, found '{name}'")
    plan: list[tuple[str, torch.Tensor, Any, str]] = []
    for record in optimizer._binding.records:
        route = routes[record.info.route]
        mapping = states.get(route.name, states.get(route.rule))
        own = found.pop(record.name, None)
        if mapping is None and own is None:
            continue
        if mapping is None or own is None:
            what = "a mapping of route " + route.name if mapping is None else "states of it"
            raise StepcError(f"parameter '{record.name}': expected {what}, found none")
        plan += _plan(record, own, mapping, step)
    if found:
        raise StepcError(
            f"parameter '{next(iter(found))}': expected one that this optimizer steps, found states of it"
        )
    for where, target, value, written in plan:
        if isinstance(value, int):
            target.fill_(value)
        else:
            copy_state(target, value, where, optimizer.transport, written)
    optimizer._binding.expect_loaded()


def _by_name(
    optimizer: RoutedGroups, source: Any, names: Sequence[str]
) -> Iterable[tuple[str, dict[str, Any]]]:
    if isinstance(source, FlatStates):
        return _of_bucket(optimizer, source)
    if isinstance(source, torch.optim.Optimizer):
        own = {id(tensor): name for name, tensor in optimizer._named()}
        for tensor in source.state:
            if id(tensor) not in own:
                raise StepcError(
                    "expected an optimizer of the same parameters, found a state of another tensor of "
                    f"the shape {list(tensor.shape)}"
                )
        return [(own[id(tensor)], dict(state)) for tensor, state in source.state.items()]
    if not isinstance(source, Mapping):
        raise StepcError(f"expected an optimizer, a state dict or FlatStates, found {type(source).__name__}")
    if source.keys() != {"state", "param_groups"}:
        return [(canonical_name(name), dict(state)) for name, state in source.items()]
    keys = [key for group in source["param_groups"] for key in group["params"]]
    given = [name for group in source["param_groups"] for name in group.get("param_names", ())] or names
    if len(given) != len(keys):
        raise StepcError(
            f"expected names= of the state dict's {len(keys)} parameters, found {len(given)} names"
        )
    pairs = zip(map(canonical_name, given), keys, strict=True)
    return [(name, dict(source["state"][key])) for name, key in pairs if key in source["state"]]


def _of_bucket(optimizer: RoutedGroups, source: FlatStates) -> Iterable[tuple[str, dict[str, Any]]]:
    """Each parameter's elements of a rank's part of a bucket."""
    bucket = optimizer._declarations.buckets.get(source.bucket)
    if bucket is None:
        raise StepcError(f"FlatStates: expected one of the optimizer's buckets, found '{source.bucket}'")
    offsets = {canonical_name(name): offset for name, offset in bucket.offsets.items()}
    for record in optimizer._binding.records:
        if record.name not in offsets:
            continue
        states = [one for one in record.info.states if "flat" in one.placements]
        where = f"bucket '{source.bucket}': parameter '{record.name}'"
        if not states:
            raise StepcError(f"{where}: expected states that are flat, found none")
        place, ranks = _flat_place(optimizer, record, states[0].placements)
        part, held = bucket.size // ranks, math.prod(states[0].local_shape)
        begin = max(offsets[record.name] - place * part, 0)
        own: dict[str, Any] = {} if source.step is None else {STEP: source.step}
        for key, tensor in source.tensors.items():
            check_tensor(tensor, f"bucket '{source.bucket}': '{key}'")
            if tensor.numel() != part:
                raise StepcError(
                    f"bucket '{source.bucket}': '{key}': expected this rank's {part} elements of "
                    f"{bucket.size}, found {tensor.numel()}"
                )
            own[key] = tensor.reshape(-1)[begin : begin + held] if held else tensor.reshape(-1)[:0]
        yield record.name, own


def _flat_place(optimizer: RoutedGroups, record: Record, written: str) -> tuple[int, int]:
    """Which part of its bucket this rank has, and of how many."""
    mesh = optimizer._binding.instance.library.meshes[record.index]
    position, coordinates = mesh.ranks.index(my_rank()), []
    for _, size in reversed(mesh.axes):
        coordinates.insert(0, position % size)
        position //= size
    place, ranks = 0, 1
    for text, (_, size), at in zip(split_placements(written), mesh.axes, coordinates, strict=True):
        if text.startswith("flat"):
            place, ranks = place * size + at, ranks * size
    return place, ranks


def _plan(
    record: Record, own: dict[str, Any], mapping: Mapping[str, str | None], step: int | None
) -> list[tuple[str, torch.Tensor, Any, str]]:
    """What to copy into one parameter's states."""
    name, result = record.name, []
    expected = {info.name for info in record.info.states}
    # No master of an f32 parameter exists, so that one mapping serves all dtypes.
    if expected - mapping.keys() or any(
        state not in expected and not state.startswith("master") for state in mapping
    ):
        raise StepcError(
            f"parameter '{name}': expected a name for each of the states {', '.join(sorted(expected))}, "
            f"found {dict(mapping)}; None keeps the value that a state has"
        )
    unused = own.keys() - set(mapping.values()) - {STEP}
    if unused:
        raise StepcError(
            f"parameter '{name}': expected the states {', '.join(filter(None, mapping.values()))}, found "
            f"'{sorted(unused)[0]}', too, which no state takes"
        )
    for info in record.info.states:
        key = mapping[info.name]
        if key is None:
            continue
        where, target = f"parameter '{name}': state '{info.name}'", record.state[info.name]
        if key not in own:
            raise StepcError(f"{where}: expected '{key}' in the source, found {', '.join(own)}")
        result.append((where, target, _fitting(own[key], target, where), info.placements))
    taken = own.get(STEP, step)
    if taken is None:
        raise StepcError(f"parameter '{name}': expected 'step' in the source, or step=, found neither")
    result.append((f"parameter '{name}': step", record.step_view, whole_step(taken, f"parameter '{name}'"), ""))
    return result


def _fitting(value: Any, target: torch.Tensor, where: str) -> torch.Tensor:
    """A source's tensor in the dtype of the state, as a piece where it is this rank's alone."""
    check_tensor(value, where)
    mine = local(target)
    exact = value.dtype == target.dtype or (
        target.dtype == torch.float32 and value.dtype in (torch.bfloat16, torch.float16)
    )
    if not exact:
        raise StepcError(f"{where}: expected {target.dtype}, found {value.dtype}; a cast would round it")
    value = value.detach().to(target.dtype)
    alone = not isinstance(value, DTensor) and isinstance(mine, Piece)
    if alone and tuple(value.shape) != tuple(mine.whole) and value.numel() == mine.numel():
        value = Piece.of(value.contiguous(), mine.whole, mine.boxes)
    check_source(target, value, where)
    return value
