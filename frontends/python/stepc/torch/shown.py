"""``optimizer.state`` as the trainer left it: entries that were cleared, replaced, or written early."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from stepc.errors import StepcError
from stepc.torch.options import SHOWN_KEYS
from stepc.torch.routed import RoutedGroups

_HINT = "\nhint: states that are cleared or deleted begin anew: zeros, step 0"


def is_empty(entry: Any) -> bool:
    """Whether a parameter has no states: no entry, or one without states."""
    return all(key in SHOWN_KEYS for key in entry or ())


def expect_names(found: Iterable[str], expected: Iterable[str], name: str, others: bool = True) -> None:
    """Refuses an entry that lacks a state or, with ``others``, has one that the definition does not have."""
    found, expected = [one for one in found if one not in SHOWN_KEYS], list(expected)
    if not set(expected) <= set(found) or (others and set(found) != set(expected)):
        raise StepcError(
            f"parameter '{name}': optimizer.state: expected the states {', '.join(expected)}, found "
            f"{', '.join(map(str, found)) or 'none'}{_HINT}"
        )


def states_left(optimizer: RoutedGroups) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """States by parameter's name, and the names of those that the trainer wrote.

    States of an absent name begin anew. An entry that nobody changed is the same object as before.
    """
    states, left, given = optimizer.state, dict(optimizer._kept_states), set()
    taken: set[int] = set()

    def take(name: str, entry: Any) -> None:
        if not isinstance(entry, Mapping):
            raise StepcError(
                f"parameter '{name}': optimizer.state: expected a dict of states, "
                f"found {type(entry).__name__}"
            )
        # Each parameter has a dict of its own: the step writes its count there.
        left[name] = entry if isinstance(entry, dict) and id(entry) not in taken else dict(entry)
        taken.add(id(entry))

    for tensor, (name, shown) in optimizer._shown.items():
        entry = states.get(tensor)
        if is_empty(entry):
            left.pop(name, None)
            continue
        take(name, entry)
        if entry is not shown:
            given.add(name)
    known = set(optimizer._shown)
    for name, tensor in optimizer._named():
        entry = None if tensor in known else states.get(tensor)
        known.add(tensor)
        if not is_empty(entry):
            take(name, entry)
            given.add(name)
    for key, entry in states.items():
        if key not in known and not is_empty(entry):
            found = f"a tensor of shape {list(key.shape)}" if isinstance(key, torch.Tensor) else repr(key)
            raise StepcError(
                f"optimizer.state: expected entries of parameters in param_groups, found one of {found}"
            )
    return left, given
