"""States of other optimizers, so that a running job can move over without a checkpoint in between."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from stepc.errors import StepcError, plural
from stepc.torch.describe import my_rank
from stepc.torch.names import canonical_name
from stepc.torch.pieces import Piece
from stepc.torch.placements import BLOCKS, same_placements, split_placements
from stepc.torch.record import Record
from stepc.torch.routed import RoutedGroups
from stepc.torch.states import (
    STEP, check_source, check_tensor, copy_state, local, same_shard, whole_step,
)  # fmt: skip
from stepc.torch.transport import TorchTransport

_Found = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class FlatStates:
    """This rank's share of flat states, as Megatron's distributed optimizer keeps them.

    Args:
        bucket: the name of one of the optimizer's ``buckets``.
        tensors: by the other optimizer's name for a state, this rank's share of the whole bucket.
        step: the number of optimizer steps taken.
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
    names: Sequence[str] | Sequence[Sequence[str]] = (),
    step: int | None = None,
) -> None:
    """Takes over states of other optimizers, whose parameters are this one's.

    stepc does not know what the numbers mean: the definition has to average as the other optimizer did.
    bf16 and f16 are widened if the state is f32; nothing is rounded. A collective call of the ranks
    that step together: if one of them finds an error, all raise, and nothing was taken over.

    Args:
        optimizer: a :class:`stepc.torch.Optimizer`.
        sources: one or a list of: optimizers of torch; their state dicts, also with names for keys as
            ``get_optimizer_state_dict`` gives them; states by parameter's name; :class:`FlatStates`.
            Together they have every parameter of the routes in ``states`` once.
        states: by route or rule, for each state its name in the source, ``{"AdamW": {"m": "exp_avg",
            "v": "exp_avg_sq"}}``; None for a state that keeps its value.
        names: the names of parameters for state dicts without names, in the order of their groups; a list
            for each source if there are several of these.
        step: the steps taken, for sources that do not count them.
    """
    optimizer._refuse_torn()
    optimizer._prepared()
    plan: list[tuple[str, torch.Tensor, Any, str]] = []
    problem: Exception | None = None
    try:
        plan = _whole_plan(optimizer, sources, states, names, step)
    except Exception as error:  # noqa: BLE001 - raised once the others know
        problem = error
    try:
        others = _problems_of_others(optimizer.transport, problem)
    except BaseException as error:
        optimizer._fail(error, "import_states()")
        raise
    if problem is not None:
        raise problem
    if others:
        raise StepcError(others[0])
    try:
        optimizer._binding.settle()
        for where, target, value, written in plan:
            if isinstance(value, int):
                target.fill_(value)
            else:
                copy_state(target, value, where, optimizer.transport, written)
    except BaseException as error:
        optimizer._fail(error, "import_states()")
        raise
    optimizer._binding.expect_loaded()


def _problems_of_others(transport: TorchTransport | None, problem: Exception | None) -> list[str]:
    """The errors for which other ranks of the world cannot take over their states, as texts."""
    if transport is None:
        return []
    peers = [peer for peer in range(transport.size) if peer != transport.rank]
    mine = None if problem is None else f"{type(problem).__name__}: {problem}"
    told = transport.exchange(dict.fromkeys(peers, mine), "import_states()")
    return [f"{transport.name(peer)} could not import its states: {text}"
            for peer, text in sorted(told.items()) if text is not None]  # fmt: skip


def _whole_plan(
    optimizer: RoutedGroups, sources: Any, states: Mapping[str, Mapping[str, str | None]],
    names: Sequence[str] | Sequence[Sequence[str]], step: int | None,
) -> list[tuple[str, torch.Tensor, Any, str]]:  # fmt: skip
    """The copies to make. Each has the state's name in errors, the target, the source, and the target's
    placements in the library."""
    given = list(sources) if isinstance(sources, list | tuple) else [sources]
    each = [names] * len(given)
    if names and not isinstance(names[0], str):
        if len(names) != len(given):
            raise StepcError(f"names=: expected a list for each of {len(given)} sources, found {len(names)}")
        each = list(names)
    found: _Found = {}
    for source, own_names in zip(given, each, strict=True):
        for name, own in _by_name(optimizer, source, own_names):
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
    return plan


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
    given = [name for group in source["param_groups"] for name in group.get("param_names", ())]
    given = given or (keys if keys and all(isinstance(key, str) for key in keys) else names)
    if len(given) != len(keys):
        raise StepcError(
            f"expected names= of the state dict's {plural(len(keys), 'parameter')}, found "
            f"{plural(len(given), 'name')}"
        )
    pairs = zip(map(canonical_name, given), keys, strict=True)
    return [(name, dict(source["state"][key])) for name, key in pairs if key in source["state"]]


def _of_bucket(optimizer: RoutedGroups, source: FlatStates) -> Iterable[tuple[str, dict[str, Any]]]:
    """For each parameter, its elements in this rank's share of a bucket."""
    bucket = optimizer._declarations.buckets.get(source.bucket)
    if bucket is None:
        raise StepcError(f"FlatStates: expected one of the optimizer's buckets, found '{source.bucket}'")
    offsets = {canonical_name(name): offset for name, offset in bucket.offsets.items()}
    for record in optimizer._binding.records:
        known = [record.name, *map(canonical_name, optimizer._aliases.get(record.name, ()))]
        offset = next((offsets[name] for name in known if name in offsets), None)
        if offset is None:
            continue
        states = [one for one in record.info.states if "flat" in one.placements]
        where = f"bucket '{source.bucket}': parameter '{record.name}'"
        if not states:
            raise StepcError(f"{where}: expected states that are flat, found none")
        place, ranks = _flat_place(optimizer, record, states[0].placements)
        part, held = bucket.size // ranks, math.prod(states[0].local_shape)
        begin = max(offset - place * part, 0)
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
    """The number of this rank's share of the parameter's bucket, and how many shares there are."""
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
    """The copies into one parameter's states, as in :func:`_whole_plan`."""
    name, result = record.name, []
    expected = {info.name for info in record.info.states}
    # A mapping may name a master that an f32 parameter does not have, so that one mapping serves all dtypes.
    if expected - mapping.keys() or mapping.keys() - expected - {"master"}:
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
        beside = (info.placements, info.global_shape) == (record.info.placements, record.info.global_shape)
        alone = BLOCKS not in info.placements  # which blocks a rank has, no source knows
        result.append((where, target, _fitting(own[key], target, where, beside, alone), info.placements))
    taken = own.get(STEP, step)
    if taken is None:
        raise StepcError(f"parameter '{name}': expected 'step' in the source, or step=, found neither")
    result.append(
        (f"parameter '{name}': step", record.step_view, whole_step(taken, f"parameter '{name}'"), "")
    )
    return result


def _fitting(
    value: Any, target: torch.Tensor, where: str, beside: bool, may_be_alone: bool
) -> torch.Tensor:
    """A source's tensor in the dtype of the state. It becomes a Piece if it holds this rank's elements alone,
    where it may. Then it is a plain tensor, or a DTensor with the parameter's placements. The latter counts
    only if the state has these placements, too (``beside``)."""
    check_tensor(value, where)
    mine = local(target)
    exact = value.dtype == target.dtype or (
        target.dtype == torch.float32 and value.dtype in (torch.bfloat16, torch.float16)
    )
    if not exact:
        raise StepcError(f"{where}: expected {target.dtype}, found {value.dtype}; a cast would round it")
    value = value.detach().to(target.dtype)
    if may_be_alone and isinstance(mine, Piece) and not isinstance(local(value), Piece):
        held = local(value)
        if isinstance(value, DTensor):
            alone = beside and isinstance(target, DTensor) and value.device_mesh == target.device_mesh
            alone = alone and same_placements(value.placements, target.placements)
            alone = alone and same_shard(tuple(held.shape), tuple(mine.shape))
        else:
            alone = tuple(held.shape) != tuple(mine.whole) and held.numel() == mine.numel()
        if alone:
            piece = Piece.of(held.contiguous(), mine.whole, mine.boxes)
            value = DTensor(piece, target._spec, requires_grad=False) if isinstance(value, DTensor) else piece
    check_source(target, value, where)
    return value
