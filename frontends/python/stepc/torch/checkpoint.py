"""``load_state_dict``: torch's would cast states to the parameter's dtype and replace them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from stepc.errors import StepcError
from stepc.torch.groups import ROUTE
from stepc.torch.names import canonical_name
from stepc.torch.states import STEP, check_source, copy_state, whole_step

if TYPE_CHECKING:
    from stepc.torch.optimizer import Optimizer


def _saved_groups(state_dict: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key in ("state", "param_groups"):
        if key not in state_dict:
            raise StepcError(f"expected a state dict with 'state' and 'param_groups', found no '{key}'")
    for number, group in enumerate(state_dict["param_groups"]):
        if "params" not in group:
            raise StepcError(
                f"the state dict's parameter group {number}: expected 'params', found none"
            )
        names, keys = group.get("param_names"), group["params"]
        if names is not None and all(isinstance(key, int) for key in keys) and len(names) != len(keys):
            raise StepcError(
                f"the state dict's parameter group {number}: expected a name for each of its "
                f"{len(keys)} parameters, found {len(names)} names"
            )
    return list(state_dict["param_groups"])


def _match(
    optimizer: Optimizer, saved: list[Mapping[str, Any]]
) -> tuple[dict[Any, tuple[str, Any]], list[Mapping[str, Any]]]:
    """Saved parameter ids to (name, tensor) of this optimizer, and its groups' saved ones.

    By name where a plain state dict has names, as groups may have been made in another order; by
    position otherwise, as torch does (distributed checkpoint has already ordered them).
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
    groups = []
    for own in optimizer.param_groups:
        names = optimizer._names(own)
        if not names:
            groups.append({})
            continue
        group = group_of[names[0]]
        found = {canonical_name(name) for name in group["param_names"]}
        if found != set(names):
            name = sorted(found ^ set(names))[0]
            raise _split_otherwise(name, names, found)
        groups.append(group)
    return {key: (name, mine[name]) for name, key in theirs.items()}, groups


def _split_otherwise(name: str, expected: Iterable[str], found: Iterable[str]) -> StepcError:
    where = f"the parameter group {sorted(found)}" if found else "no group's options"
    return StepcError(
        f"parameter '{name}': expected the parameter group {sorted(expected)} in the state dict, "
        f"found {where}: the options of groups that are split otherwise cannot be put back"
    )


def _match_positions(
    optimizer: Optimizer, saved: list[Mapping[str, Any]], mine: Mapping[str, Any]
) -> tuple[dict[Any, tuple[str, Any]], list[Mapping[str, Any]]]:
    expected = [len(group["params"]) for group in optimizer.param_groups]
    found = [len(group["params"]) for group in saved]
    if expected != found:
        raise ValueError(
            f"expected a state dict of parameter groups with {expected} parameters, found {found}"
        )
    for own, group in zip(optimizer.param_groups, saved, strict=True):
        # Distributed checkpoint gives a group the options of the last saved one that shares a
        # parameter with it, and of groups that share a saved one only the last gets any.
        names = group.get("param_names", () if set(group) == {"params"} else None)
        for name in optimizer._names(own) if names is not None else ():
            if name not in map(canonical_name, names):
                raise _split_otherwise(name, own["param_names"], names)
    keys = [key for group in saved for key in group["params"]]
    return dict(zip(keys, mine.items(), strict=True)), saved


def load_into(optimizer: Optimizer, state_dict: Mapping[str, Any]) -> None:
    """Copies a state dict into an optimizer that is prepared."""
    state_dict = dict(state_dict)
    for hook in optimizer._optimizer_load_state_dict_pre_hooks.values():
        result = hook(optimizer, state_dict)
        if result is not None:
            state_dict = result
    matched, groups = _match(optimizer, _saved_groups(state_dict))
    plan = []
    for key, (name, tensor) in matched.items():
        own = optimizer.state.get(tensor)
        if own is None:
            continue
        source = state_dict["state"].get(key)
        if source is None:
            raise StepcError(f"parameter '{name}': the state dict has no state for it")
        for state in own:
            if state not in source:
                raise StepcError(f"parameter '{name}': the state dict has no state '{state}'")
        for state in source:
            where = f"parameter '{name}': state '{state}'"
            if state not in own:
                raise StepcError(
                    f"parameter '{name}': the state dict has a state '{state}' that the definition "
                    f"has not: expected {', '.join(own)}"
                )
            if state == STEP:
                plan.append((where, own[state], whole_step(source[state], where)))
            else:
                check_source(own[state], source[state], where)
                plan.append((where, own[state], source[state]))
    for group, other in zip(optimizer.param_groups, groups, strict=True):
        if other.get(ROUTE, group[ROUTE]) != group[ROUTE]:
            raise StepcError(
                f"expected a parameter group of route {group[ROUTE]}, found one of {other[ROUTE]}"
            )
    # All of it fits: nothing is left half loaded.
    try:
        for where, target, source in plan:
            if isinstance(source, int):
                target.fill_(source)
            else:
                copy_state(target, source, where, optimizer.transport)
        for group, other in zip(optimizer.param_groups, groups, strict=True):
            for key, value in other.items():
                if key not in ("params", "param_names"):
                    group[key] = value.clone() if isinstance(value, torch.Tensor) else value
    except BaseException as error:
        optimizer._fail(error, "load_state_dict()")
        raise
    for hook in optimizer._optimizer_load_state_dict_post_hooks.values():
        hook(optimizer)
