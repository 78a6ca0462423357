"""``load_state_dict``: torch's would cast states to the parameter's dtype and replace them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from stepc.errors import StepcError
from stepc.torch.groups import ROUTE
from stepc.torch.names import canonical_name
from stepc.torch.states import STEP, check_source, copy_state

if TYPE_CHECKING:
    from stepc.torch.optimizer import Optimizer


def _match(optimizer: Optimizer, saved: list[Mapping[str, Any]]) -> dict[Any, tuple[str, Any]]:
    """Saved parameter ids to (name, tensor) of this optimizer.

    By name where a plain state dict has names, as groups may have been made in another order; by
    position otherwise, as torch does (distributed checkpoint has already ordered them).
    """
    named = all("param_names" in group and all(isinstance(i, int) for i in group["params"])
                for group in saved)  # fmt: skip
    mine = {name: tensor for group in optimizer.param_groups
            for name, tensor in zip(group["param_names"], group["params"], strict=True)}  # fmt: skip
    if named:
        theirs = {canonical_name(name): key for group in saved
                  for name, key in zip(group["param_names"], group["params"], strict=True)}  # fmt: skip
        if set(theirs) == set(mine):
            return {key: (name, mine[name]) for name, key in theirs.items()}
        missing = sorted(set(mine) - set(theirs)) or sorted(set(theirs) - set(mine))
        raise StepcError(
            f"the state dict has other parameters: '{missing[0]}' is only in "
            f"{'the optimizer' if set(mine) - set(theirs) else 'the state dict'}"
        )
    if [len(group["params"]) for group in saved] != [
        len(group["params"]) for group in optimizer.param_groups
    ]:
        raise ValueError("loaded state dict has other numbers of parameters in its groups")
    keys = [key for group in saved for key in group["params"]]
    return dict(zip(keys, mine.items(), strict=True))


def load_into(optimizer: Optimizer, state_dict: Mapping[str, Any]) -> None:
    """Copies a state dict into an optimizer that is prepared."""
    state_dict = dict(state_dict)
    for hook in optimizer._optimizer_load_state_dict_pre_hooks.values():
        result = hook(optimizer, state_dict)
        if result is not None:
            state_dict = result
    saved = state_dict["param_groups"]
    if len(saved) != len(optimizer.param_groups):
        raise ValueError(
            f"expected a state dict of {len(optimizer.param_groups)} parameter groups, found {len(saved)}"
        )
    matched = _match(optimizer, saved)
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
            if state not in own:
                raise StepcError(
                    f"parameter '{name}': the state dict has a state '{state}' that the definition "
                    f"has not: expected {', '.join(own)}"
                )
            if state != STEP:
                check_source(own[state], source[state], f"parameter '{name}': state '{state}'")
        plan.append((name, own, source))
    for group, other in zip(optimizer.param_groups, saved, strict=True):
        if other.get(ROUTE, group[ROUTE]) != group[ROUTE]:
            raise StepcError(
                f"expected a parameter group of route {group[ROUTE]}, found one of {other[ROUTE]}"
            )
    # All of it fits: nothing is left half loaded.
    for name, own, source in plan:
        for state, target in own.items():
            if state == STEP:
                target.fill_(int(source[state]))
            else:
                where = f"parameter '{name}': state '{state}'"
                copy_state(target, source[state], where, optimizer.transport)
    for group, other in zip(optimizer.param_groups, saved, strict=True):
        for key, value in other.items():
            if key not in ("params", "param_names"):
                group[key] = value.clone() if isinstance(value, torch.Tensor) else value
    for hook in optimizer._optimizer_load_state_dict_post_hooks.values():
        hook(optimizer)
