"""One parameter group, and what torch's trainers and schedulers expect to find in it."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

#: torch's name for the hyperparameters ``beta1`` and ``beta2`` as a pair.
BETAS = "betas"
_PAIR = ("beta1", "beta2")
_MOMENTUM = "momentum"
# The most characters of a value in an error's text.
_SHOWN = 200

# Keys that torch's optimizers take beside hyperparameters. stepc itself decides how a step is carried out, so
# any value of these is accepted and ignored:
_CARRIED_OUT = frozenset({"foreach", "fused"})
# A true value of these asks for another step. The texts say what to do instead.
_ASKS = {
    "maximize": "the definition says what a step does: negate grad there",
    "amsgrad": "the definition says what a step does: write the rule there",
    "differentiable": "autograd does not see what a compiled step does",
    "capturable": "pass capturable=True to the optimizer, for all of its groups",
}


def is_torchs_key(key: str) -> bool:
    """Whether torch's optimizers take a key beside hyperparameters, whatever its value."""
    return key in _CARRIED_OUT or key in _ASKS


def asks_for_nothing(key: str, value: Any, capturable: bool = False) -> bool:
    """Whether a key of torch's has a value that asks for nothing that stepc lacks. ``capturable=True`` is
    accepted if the optimizer is ``capturable``."""
    if key in _CARRIED_OUT or (key == "capturable" and capturable):
        return value is None or isinstance(value, bool)
    return key in _ASKS and (value is None or value is False)


def why_refused(key: str, value: Any) -> str:
    """The end of an error's text, for a value that :func:`asks_for_nothing` does not accept."""
    expected = "True, False or None" if key in _CARRIED_OUT else f"{key}=False"
    hint = "" if value is not True else f"\nhint: {_ASKS[key]}"
    return f"expected {expected}, found {key}={value!r}{hint}"


def has_pair(names: Collection[str]) -> bool:
    """Whether ``betas`` stands for two of the hyperparameters ``names``."""
    return BETAS not in names and all(one in names for one in _PAIR)


def pair(value: Any, where: str) -> tuple[Any, Any]:
    """The two numbers of ``betas``. Raises TypeError for a value that is no pair."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{where}: expected two numbers for '{BETAS}', found {value!r}")
    return tuple(value)


def with_pair(options: Mapping[str, Any], names: Collection[str], where: str) -> dict[str, Any]:
    """Options with ``beta1`` and ``beta2`` instead of ``betas``, where these are among the hyperparameters.

    Raises a TypeError for what is no pair, and for options with both that do not agree.
    """
    if BETAS not in options or not has_pair(names):
        return dict(options)
    given, rest = pair(options[BETAS], where), {key: value for key, value in options.items() if key != BETAS}
    said = [one for one in _PAIR if one in rest]
    if len(said) == 2 and all(_agree(rest[one], value) for one, value in zip(_PAIR, given, strict=True)):
        return rest  # a copy of a group has both
    if said:
        raise TypeError(f"{where}: expected '{BETAS}' or '{said[0]}', found both")
    return rest | dict(zip(_PAIR, given, strict=True))


def number(value: Any) -> float:
    """A hyperparameter's value. Raises a TypeError for a text, whatever it spells: float() would read it."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")  # NumPy's
    if isinstance(value, str | bytes | bytearray) or kind in ("S", "U"):
        raise TypeError("expected a number, found a text")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("expected a number that a float can hold") from error


def shown(value: Any) -> str:
    """A value in an error's text: Python prints no whole numbers of thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of too many digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _agree(one: Any, other: Any) -> bool:
    try:
        return one is other or number(one) == number(other)
    except (TypeError, ValueError, RuntimeError):
        return False


class Group(dict):
    """A parameter group in which ``betas`` reads and writes ``beta1`` and ``beta2``.

    Only hyperparameters are entries, and ``betas`` is none: entries are saved, and reading a hyperparameter
    takes as long as from a dict. torch's schedulers that cycle momentum write ``group["betas"] = (new,
    *group["betas"][1:])`` into every group of an optimizer whose defaults have ``betas``. So
    ``group["betas"]`` is ``(momentum,)`` in a group with ``momentum`` alone, and an empty tuple in a group
    with neither.
    """

    def __missing__(self, key: Any) -> Any:
        if key != BETAS:
            raise KeyError(key)
        if has_pair(self.keys()):
            return tuple(self[one] for one in _PAIR)
        return (self[_MOMENTUM],) if _MOMENTUM in self else ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if key == BETAS and has_pair(self.keys()):
            super().update(zip(_PAIR, pair(value, "a parameter group"), strict=True))
        elif key == BETAS and _MOMENTUM in self and isinstance(value, tuple) and len(value) == 1:
            super().__setitem__(_MOMENTUM, value[0])
        elif value is True and key in _ASKS and key != "capturable":  # is checked when memory is bound
            raise TypeError(f"a parameter group: {why_refused(key, value)}")
        else:
            super().__setitem__(key, value)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(key) or (key == BETAS and has_pair(self.keys()))

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def update(self, *others: Any, **options: Any) -> None:
        for key, value in dict(*others, **options).items():
            self[key] = value

    def __ior__(self, other: Any) -> Group:
        self.update(other)
        return self

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __or__(self, other: Any) -> Group:
        return self.copy().__ior__(other)

    def copy(self) -> Group:
        return type(self)(dict(self))

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Group:
        return type(self)(copy.deepcopy(dict(self), memo))

    def __reduce__(self) -> Any:
        # Pickles are plain dicts, which need no class to be read. They have the pair as an entry.
        return dict, (dict(self) | ({BETAS: self[BETAS]} if has_pair(self.keys()) else {}),)
