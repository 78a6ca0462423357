"""``load_state_dict`` of the optimizer. torch's own would cast states to the parameter's dtype and replace
the tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from stepc._abi import PARAMETER
from stepc.errors import StepcError, plural, warn_user
from stepc.torch.frozen import loaded_state, show_states
from stepc.torch.group import BETAS, is_torchs_key, with_pair
from stepc.torch.names import canonical_name
from stepc.torch.options import (
    OPTIONS, ROUTE, SHOWN_KEYS, RouteInfo, check_saved, expect_number, frozen_states, merge, unpack,
    unpack_model, without_absent,
)  # fmt: skip
from stepc.torch.pieces import Layout, placed
from stepc.torch.routed import RoutedGroups
from stepc.torch.states import (
    STEP, begin_anew, check_source, copy_state, whole_step, written_placements,
)  # fmt: skip


@torch.no_grad()
def parameters_to_save(optimizer: RoutedGroups) -> dict[str, torch.Tensor]:
    """The parameters of this rank by name, for torch.distributed.checkpoint to save, and to load in place.

    Tensors are the parameters' own memory. Some tensors DTensor cannot describe: ranges of flat buffers,
    stripes, shards in plain tensors. These tell the checkpoint their place in the whole, as their states do.
    """
    optimizer._prepared()
    binding, result = optimizer._binding, {}
    for record in binding.records:
        tensor = record.tensor.detach()
        layout = Layout(binding.instance, record.index, PARAMETER, record.info.global_shape)
        result[record.name] = placed(tensor, record.info.placements, layout)
    return result


def _saved_groups(state_dict: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key, kind, what in (("state", Mapping, "a dict"), ("param_groups", list | tuple, "a list")):
        if key not in state_dict:
            raise StepcError(f"expected a state dict with 'state' and 'param_groups', found no '{key}'")
        _expect_kind(state_dict[key], kind, f"the state dict's '{key}'", what)
    for key, state in state_dict["state"].items():
        _expect_kind(state, Mapping | None, f"the state dict's state of {key!r}", "a dict")
    for number, group in enumerate(state_dict["param_groups"]):
        where = f"the state dict's parameter group {number}"
        _expect_kind(group, Mapping, where, "a dict")
        if "params" not in group:
            raise StepcError(f"{where}: expected 'params', found none")
        _expect_kind(group["params"], list | tuple, f"{where}: 'params'", "a list")
        for one in group["params"]:
            _expect_kind(one, int | str, f"{where}: 'params'", "numbers or names")
        if "param_names" in group:
            _expect_kind(group["param_names"], list | tuple, f"{where}: 'param_names'", "a list")
            for one in group["param_names"]:
                _expect_kind(one, str, f"{where}: 'param_names'", "texts")
        names, keys = group.get("param_names"), group["params"]
        if names is not None and all(isinstance(key, int) for key in keys) and len(names) != len(keys):
            raise StepcError(
                f"the state dict's parameter group {number}: expected a name for each of its "
                f"{plural(len(keys), 'parameter')}, found {plural(len(names), 'name')}"
            )
    return [without_absent(group) for group in state_dict["param_groups"]]


def _expect_kind(value: Any, kind: Any, where: str, what: str) -> None:
    if not isinstance(value, kind):
        found = "None" if value is None else type(value).__name__
        raise StepcError(f"{where}: expected {what}, found {found}")


def _match(
    optimizer: RoutedGroups, saved: list[Mapping[str, Any]]
) -> tuple[dict[Any, tuple[str, Any]], dict[str, Mapping[str, Any] | None]]:
    """Maps saved parameter ids to (name, tensor) of this optimizer, and names to their saved groups.

    Matches by name if a plain state dict has names, as groups may have been made in another order. Otherwise
    matches by position, as torch does (distributed checkpoint has already ordered them).
    """
    named = all("param_names" in group and all(isinstance(i, int) for i in group["params"])
                for group in saved)  # fmt: skip
    mine = dict(optimizer._named())
    if not named:
        return _match_positions(optimizer, saved, mine)
    pairs = [(canonical_name(name), key) for group in saved
             for name, key in zip(group["param_names"], group["params"], strict=True)]  # fmt: skip
    theirs = dict(pairs)
    if len(theirs) != len(pairs):
        twice = next(name for name in theirs if [one for one, _ in pairs].count(name) > 1)
        raise StepcError(f"parameter '{twice}': expected it in the state dict once, found it twice")
    if set(theirs) != set(mine):
        missing = sorted(set(mine) - set(theirs)) or sorted(set(theirs) - set(mine))
        raise StepcError(
            f"the state dict has other parameters: '{missing[0]}' is only in "
            f"{'the optimizer' if set(mine) - set(theirs) else 'the state dict'}"
        )
    group_of = {canonical_name(name): group for group in saved for name in group["param_names"]}
    return {key: (name, mine[name]) for name, key in theirs.items()}, group_of


def _match_positions(
    optimizer: RoutedGroups, saved: list[Mapping[str, Any]], mine: Mapping[str, Any]
) -> tuple[dict[Any, tuple[str, Any]], dict[str, Mapping[str, Any] | None]]:
    expected = [len(group["params"]) for group in optimizer.param_groups]
    found = [len(group["params"]) for group in saved]
    if expected != found:
        raise ValueError(
            f"expected a state dict of parameter groups with {expected} parameters, found {found}"
        )
    group_of: dict[str, Mapping[str, Any] | None] = {}
    for own, group in zip(optimizer.param_groups, saved, strict=True):
        # Distributed checkpoint gives a group the options of one saved group that shares a parameter with it.
        # It gives none if another group also shares the saved one.
        names = optimizer._names(own)
        covered = set(map(canonical_name, group.get("param_names", names)))
        none = set(group) == {"params"}
        for name in names:
            group_of[name] = group if name in covered and not none else None
    keys = [key for group in saved for key in group["params"]]
    return dict(zip(keys, mine.items(), strict=True)), group_of


def _options(
    optimizer: RoutedGroups,
    matched: Mapping[Any, tuple[str, Any]],
    group_of: Mapping[str, Mapping[str, Any] | None],
    states: Mapping[Any, Any],
) -> list[dict[str, Any]]:
    """The options that the saved state gives every group of this optimizer."""
    key_of = {name: key for key, (name, _) in matched.items()}
    paired: dict[tuple[int, str], dict[str, Any]] = {}  # computed once per saved group and route
    result = []
    for number, own in enumerate(optimizer.param_groups):
        names = optimizer._names(own)
        if own[ROUTE] is None:  # frozen: nothing reads its options
            result.append({})
            continue
        route = optimizer._routing.routes[own[ROUTE]]
        where = f"parameter group {number} (route {route.name})"
        options: list[Mapping[str, Any] | None] = []
        for name in names:
            group = group_of[name]
            if group is not None and group.get(ROUTE, own[ROUTE]) is None:
                group = None  # frozen when it was saved
            packed = (states.get(key_of[name]) or {}).get(OPTIONS)
            if group is not None and BETAS in group:
                key = id(group), route.name
                group = paired[key] = paired.get(key) or _with_pair(group, route, where)
            if group is None:
                group = unpack(packed, route, name)
            elif packed is not None and not route.defaults.keys() <= group.keys():
                # A nested checkpoint gave this group the options of another route's group at its position.
                group = (unpack(packed, route, name) or {}) | group
            options.append(group)
        if names and all(one is None for one in options):
            if all(group_of[name] is not None for name in names):
                result.append({})
                continue
            raise StepcError(
                f"parameter '{names[0]}': the state dict has no options for its group: expected "
                f"{', '.join(route.defaults)}"
            )
        merged = merge(names, options, where)
        check_saved(merged, own, route, optimizer._routing.hyperparameters, where)
        result.append(merged)
    return result


def _with_pair(group: Mapping[str, Any], route: RouteInfo, where: str) -> dict[str, Any]:
    try:
        return with_pair(group, route.defaults, f"{where}: the state dict")
    except TypeError as error:
        raise StepcError(str(error)) from None


def _model_state(optimizer: RoutedGroups, state_dict: Mapping[str, Any]) -> dict[str, Any] | None:
    """The model's count of steps, hyperparameters and states in a state dict, under ``"model"`` or, in a
    distributed checkpoint, among the parameters' states. None if it has none: the model keeps its own."""
    known, saved = optimizer._routing.model, state_dict.get("model")
    if known is not None:
        known = [*known, *optimizer._routing.model_states]
    if saved is None and known is not None:
        values = unpack_model(state_dict["state"].values(), known)
        saved = None if values is None else dict(zip([STEP, *known], values, strict=True))
    if saved is None:
        return None
    if known is None:
        raise StepcError(
            "the state dict has a model's hyperparameters and step count: expected a definition with a model "
            "block, found one without"
        )
    _expect_kind(saved, Mapping, "'model' in the state dict", "a dict")
    if set(saved) != {STEP, *known}:
        raise StepcError(
            f"'model' in the state dict: expected {', '.join([STEP, *known])}, found "
            f"{', '.join(map(str, saved))}"
        )
    result = dict(saved)
    result[STEP] = whole_step(saved[STEP], f"'model' in the state dict: '{STEP}'")
    for name in known:
        expect_number(result[name], name, "'model' in the state dict")
    return result


def load_into(optimizer: RoutedGroups, state_dict: Mapping[str, Any]) -> None:
    """Loads a state dict into an optimizer. If either of them has states, the optimizer is prepared first."""
    _expect_kind(state_dict, Mapping, "load_state_dict()", "a state dict")
    state_dict = dict(state_dict)
    for hook in optimizer._optimizer_load_state_dict_pre_hooks.values():
        result = hook(optimizer, state_dict)
        if result is not None:
            state_dict = result
    saved, model = _saved_groups(state_dict), _model_state(optimizer, state_dict)
    if optimizer._never_stepped() and not any(state_dict["state"].values()):
        matched, group_of = _match(optimizer, saved)
        _put_options(optimizer, _options(optimizer, matched, group_of, state_dict["state"]))
    else:
        optimizer._prepared()
        optimizer.state.hide_options()
        _load_states(optimizer, state_dict, saved)
        optimizer._binding.expect_loaded()
    if model is not None:
        optimizer._load_model(model)
    for hook in optimizer._optimizer_load_state_dict_post_hooks.values():
        hook(optimizer)


def _put_options(optimizer: RoutedGroups, groups: Sequence[Mapping[str, Any]]) -> None:
    """Gives groups their saved options, except ``betas`` and torch's keys about how a step is carried out."""
    for group, other in zip(optimizer.param_groups, groups, strict=True):
        for key, value in other.items():
            if key not in ("params", "param_names", ROUTE, BETAS) and not is_torchs_key(key):
                group[key] = value.clone() if isinstance(value, torch.Tensor) else value


def _load_states(
    optimizer: RoutedGroups, state_dict: Mapping[str, Any], saved: list[Mapping[str, Any]]
) -> None:
    """Copies states and puts groups' options back: all of it, or nothing if something does not fit.

    States begin anew if the state dict has none.
    """
    matched, group_of = _match(optimizer, saved)
    groups = _options(optimizer, matched, group_of, state_dict["state"])
    plan: list[tuple[str, torch.Tensor, Any, str]] = []
    bound = {record.name: record for record in optimizer._binding.records}
    begin = not any(state_dict["state"].values())
    frozen: dict[str, tuple[torch.Tensor, dict[str, Any]]] = {}
    lost: list[str] = []
    for key, (name, tensor) in matched.items():
        own, source = optimizer.state.get(tensor), state_dict["state"].get(key)
        if not tensor.requires_grad:
            # Distributed checkpoint leaves frozen parameters out. It loads their states in place if it can.
            if source is not None or isinstance(key, int):
                frozen[name] = tensor, loaded_state(name, tensor, own, source) if source else {}
            elif own is None:
                lost.append(name)
            continue
        if own is None or (begin and name in bound):
            continue
        if source is None:
            raise StepcError(
                f"parameter '{name}': the state dict has no state for it\nhint: a parameter that "
                "had never been stepped when this was saved, as it was frozen, has to be frozen "
                "while it is loaded"
            )
        plan += _plan(name, own, source, written_placements(bound[name].info if name in bound else None))
    count = frozen_states(state_dict["state"].values()) if lost else 0
    if count:
        warn_user(
            f"the state dict was saved with states of {count} frozen parameters; torch leaves out those "
            f"of parameters that are frozen when it loads, here {', '.join(lost[:4])}"
            f"{', …' if len(lost) > 4 else ''}\nhint: freeze parameters after loading", UserWarning,
        )  # fmt: skip
    # All of it was checked above, so that nothing is left half loaded.
    try:
        for where, target, source, written in plan:
            if isinstance(source, int):
                target.fill_(source)
            else:
                copy_state(target, source, where, optimizer.transport, written)
        for record in bound.values() if begin else ():
            begin_anew(record.info, record.tensor, record.state, optimizer._binding.instance)
        for name, (tensor, state) in frozen.items():
            optimizer._kept_states[name] = state
            optimizer._hide(tensor)
        show_states(optimizer)
        _put_options(optimizer, groups)
    except BaseException as error:
        optimizer._fail(error, "load_state_dict()")
        raise


def _plan(
    name: str, own: Mapping[str, torch.Tensor], source: Mapping[str, Any], written: Mapping[str, str]
) -> list[tuple[str, torch.Tensor, Any, str]]:
    """The copies into one parameter's states. Each has the state's name in errors, the target, the source,
    and the target's placements in the library."""
    result = []
    for state in own:
        if state not in source:
            raise StepcError(f"parameter '{name}': the state dict has no state '{state}'")
    for state, value in source.items():
        where = f"parameter '{name}': state '{state}'"
        if state in SHOWN_KEYS:
            continue
        if state not in own:
            raise StepcError(
                f"parameter '{name}': the state dict has a state '{state}' that the definition "
                f"has not: expected {', '.join(own)}"
            )
        if state == STEP:
            value = whole_step(value, where)
        else:
            check_source(own[state], value, where)
        result.append((where, own[state], value, written.get(state, "")))
    return result
