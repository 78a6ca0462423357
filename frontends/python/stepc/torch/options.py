"""Options of parameter groups: which keys a group may have, and putting saved ones back.

Checkpoints keep options by group, and groups differ between runs: a pipeline stage has only its
own parameters, and a trainer may split a route otherwise. So options are taken from and given to
parameters, by name.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stepc.errors import HyperparameterError, StepcError
from stepc.torch.group import BETAS, asks_for_nothing, has_pair, is_torchs_key, number, shown, why_refused

ROUTE = "route"
#: The key of a parameter's hyperparameters among its states while torch.distributed.checkpoint saves or
#: loads. torch itself keeps a group's options under one of its parameters alone. No state of a
#: definition can have this name.
OPTIONS = "@options"
#: The key of the model's count of steps, hyperparameters and states beside them.
MODEL = "@model"
#: What is among a parameter's states only while they are saved or loaded.
SHOWN_KEYS = frozenset({OPTIONS, MODEL})

#: In a distributed checkpoint, a group's value of a key that only other groups have.
_ABSENT = "@absent"

_OWN_KEYS = frozenset({"params", "param_names", "name", ROUTE})
# Keys that schedulers write ("initial_lr", "max_momentum"), and factors that a trainer multiplies in.
_SCHEDULER_PREFIXES = ("initial_", "base_", "max_", "min_", "swa_")
_FACTOR_SUFFIXES = ("_scale", "_mult", "_multiplier", "_factor")
# The key in state dicts of torch's Adam and AdamW that tells which of the two rules it is.
_TORCHS_RULE = "decoupled_weight_decay"
# Other common names of hyperparameters, which a comparison of spellings would not find.
_OTHER_NAMES = {
    "learning_rate": "lr", "wd": "weight_decay", "decay": "weight_decay", "epsilon": "eps",
    "mu": "momentum", "mom": "momentum",
}  # fmt: skip


@dataclass(frozen=True)
class RouteInfo:
    """A route, the rule that it applies, and the rule's hyperparameters with defaults."""

    name: str
    rule: str
    defaults: dict[str, float | None]
    #: Whether the rule is known to do the same to every element. A ready library does not tell: False.
    elementwise: bool = False


def is_other_key(key: str, value: Any, hyperparameters: Collection[str]) -> bool:
    """Whether a group's key is no hyperparameter, but one of a scheduler, a trainer or torch, to be kept.

    Hyperparameters are numbers, so texts are labels. A number must have a name that schedulers or
    trainers are known to use: another name may be a misspelt hyperparameter. Keys of torch's optimizers
    have to ask for nothing (:func:`expect_no_request`).
    """
    if key in hyperparameters:
        return False
    if is_torchs_key(key):
        return True
    if key in _OWN_KEYS or isinstance(value, str) or key.endswith(_FACTOR_SUFFIXES):
        return True
    for prefix in _SCHEDULER_PREFIXES:
        rest = key.removeprefix(prefix)
        if rest != key and (rest in ("lr", "momentum", "beta1") or rest in hyperparameters):
            return True
    return False


def expect_no_request(
    options: Mapping[str, Any], hyperparameters: Collection[str], capturable: bool, where: str
) -> None:
    """Refuses options that torch's optimizers follow and a definition does not, as ``maximize=True``."""
    for key, value in options.items():
        if is_torchs_key(key) and key not in hyperparameters and not asks_for_nothing(key, value, capturable):
            raise TypeError(f"{where}: {why_refused(key, value)}")


def expect_number(value: Any, name: str, where: str) -> None:
    """Refuses a value that is no number. A tensor on a GPU passes, as reading it would wait for the GPU."""
    try:
        if not hasattr(value, "is_cuda") or not value.is_cuda:
            number(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise HyperparameterError(f"{where}: expected a number for '{name}', found {shown(value)}") from error


def unknown_hint(unknown: Iterable[str], known: Collection[str]) -> str:
    """What a key may have meant, as the end of an error's text."""
    for key in unknown:
        if key == _TORCHS_RULE:
            return "\nhint: stepc.torch.import_states takes over the states of torch's optimizers"
        if _OTHER_NAMES.get(key) in known:
            return f"\nhint: '{key}' may stand for '{_OTHER_NAMES[key]}'"
        near = difflib.get_close_matches(key, known, n=1)
        if near:
            return f"\nhint: '{key}' may stand for '{near[0]}'"
    return ""


def _checksum(name: str, hyperparameters: Iterable[str]) -> float:
    return float(zlib.crc32("\n".join([name, *hyperparameters]).encode()))


def pack(route: RouteInfo, group: Mapping[str, Any], frozen: int) -> torch.Tensor:
    """A group's hyperparameters as one tensor of float64. They come after a checksum of the route's names and
    the number of frozen parameters that have states."""
    values = [number(group[name]) for name in route.defaults]
    return torch.tensor([_checksum(route.name, route.defaults), frozen, *values], dtype=torch.float64)


def pack_model(steps: int, values: Mapping[str, Any]) -> torch.Tensor:
    """The model's count of steps and the values of its hyperparameters and states as one tensor of float64.
    They come after a checksum of the names."""
    checksum = _checksum("model", values)
    return torch.tensor([checksum, steps, *map(number, values.values())], dtype=torch.float64)


def unpack_model(states: Iterable[Mapping[str, Any] | None], names: Collection[str]) -> list[float] | None:
    """What :func:`pack_model` stored; None if no parameter's states have it. Raises StepcError for that of
    another model."""
    saved = next((state[MODEL] for state in states if state and MODEL in state), None)
    if saved is None:
        return None
    if (
        not isinstance(saved, torch.Tensor) or saved.is_meta or tuple(saved.shape) != (len(names) + 2,)
        or float(saved[0]) != _checksum("model", names)
    ):  # fmt: skip
        raise StepcError(
            f"expected the model's count of steps and {', '.join(names) or 'no hyperparameter'} in the state "
            "dict, found those of another model"
        )
    return saved[1:].tolist()


def fill_absent(groups: Sequence[dict[str, Any]]) -> None:
    """Gives all saved groups the same keys. Nested distributed checkpoints find an option by its group's
    number and its key, and groups may be in another order where the checkpoint is loaded."""
    keys = dict.fromkeys(key for group in groups for key in group)
    for group in groups:
        for key in keys:
            group.setdefault(key, _ABSENT)


def without_absent(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """A saved group without the keys that :func:`fill_absent` gave it."""
    if not any(isinstance(value, str) and value == _ABSENT for value in group.values()):
        return group
    return {key: value for key, value in group.items() if not (isinstance(value, str) and value == _ABSENT)}


def frozen_states(saved: Iterable[Mapping[str, Any] | None]) -> int:
    """How many frozen parameters had states when these were saved; 0 if the saved states do not tell."""
    packed = [state.get(OPTIONS) for state in saved if state]
    return int(max((float(one[1]) for one in packed if isinstance(one, torch.Tensor)), default=0.0))


def unpack(saved: Any, route: RouteInfo, name: str) -> dict[str, float] | None:
    """The hyperparameters that :func:`pack` stored; None if a checkpoint has none. Raises StepcError for
    those of another route."""
    if saved is None or (isinstance(saved, Mapping) and not saved):
        return None
    if (
        not isinstance(saved, torch.Tensor) or saved.is_meta or saved.layout is not torch.strided
        or tuple(saved.shape) != (len(route.defaults) + 2,)
        or float(saved[0]) != _checksum(route.name, route.defaults)
    ):  # fmt: skip
        raise StepcError(
            f"parameter '{name}': expected the options of route {route.name} "
            f"({', '.join(route.defaults)}) in the state dict, found those of another route"
        )
    return dict(zip(route.defaults, saved[2:].tolist(), strict=True))


def _same(one: Any, other: Any) -> bool:
    try:
        return number(one) == number(other)
    except (TypeError, ValueError, RuntimeError):
        return type(one) is type(other) and one == other


def merge(
    names: Sequence[str], options: Sequence[Mapping[str, Any] | None], where: str
) -> dict[str, Any]:
    """The options of saved parameters that are one group now. Raises StepcError if they do not agree.

    Labels that differ say nothing about the group and are left out.
    """
    found: dict[str, tuple[str, Any]] = {}
    labels: set[str] = set()
    last: Any = None
    for name, own in zip(names, options, strict=True):
        if own is None or own is last:  # most parameters come from one saved group
            continue
        last = own
        for key, value in own.items():
            if key in ("params", "param_names"):
                continue
            other, kept = found.setdefault(key, (name, value))
            if kept is value or _same(kept, value):
                continue
            if key != ROUTE and isinstance(value, str):
                labels.add(key)
                continue
            raise StepcError(
                f"{where}: parameters '{other}' and '{name}' are in one group, and had different "
                f"options in the state dict: {key} = {_shown(kept)} and {_shown(value)}\nhint: give "
                "one of them a group of its own, or make the saved values equal"
            )
    return {key: value for key, (_, value) in found.items() if key not in labels}


def _shown(value: Any) -> str:
    return str(value.item()) if isinstance(value, torch.Tensor) and value.numel() == 1 else repr(value)


def check_saved(
    saved: Mapping[str, Any],
    group: Mapping[str, Any],
    route: RouteInfo,
    others: Collection[str],
    where: str,
) -> None:
    """Refuses saved options that are not the route's: unknown ones would be lost, missing ones keep defaults.

    ``others`` are hyperparameters of other routes: schedulers write one into every group.
    """
    if saved.get(ROUTE, route.name) not in (route.name, None):
        raise StepcError(
            f"{where}: expected a parameter group of route {route.name}, found one of {saved[ROUTE]}"
        )
    known = list(route.defaults)
    missing = [name for name in known if name not in saved]
    unknown = sorted(
        key for key, value in saved.items()
        if key not in others and key not in group and not is_other_key(key, value, known)
        and not (key == BETAS and has_pair(others))
    )  # fmt: skip
    if missing or unknown:
        parts = []
        if unknown:
            parts.append(f"found {_quoted(unknown)}, which the route has not")
        if missing:
            parts.append(f"found no {_quoted(missing)}")
        raise StepcError(
            f"{where}: expected the hyperparameters {', '.join(known)} in the state dict, "
            + " and ".join(parts) + unknown_hint(unknown, known)
        )
    for name in known:
        try:
            number(saved[name])
        except (TypeError, ValueError, RuntimeError):
            raise StepcError(
                f"{where}: expected a number for '{name}' in the state dict, found {shown(saved[name])}"
            ) from None
    try:  # capturable passes: this optimizer, not the saved one, decides how a step is carried out
        expect_no_request(saved, known, True, f"{where}: the state dict")
    except TypeError as error:
        raise StepcError(str(error)) from None


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
