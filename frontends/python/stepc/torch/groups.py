"""Routes, parameter groups and hyperparameters.

This module relates torch's parameter groups to the library's routes. Every group belongs to one route. A
caller's group is split if its parameters take several routes. A group's options are its route's
hyperparameters under their own names, so that schedulers and logging work unchanged.
"""

from __future__ import annotations

import ctypes as c
import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stepc._compile import check_silently
from stepc._inputs import Definition, Spec, read_spec
from stepc._library import Library
from stepc.errors import CompileError, GraphError, HyperparameterError
from stepc.torch.declarations import Declarations
from stepc.torch.devices import refuse_capture
from stepc.torch.group import BETAS, Group, has_pair, is_torchs_key, number, shown, with_pair
from stepc.torch.manifest import routing_manifest
from stepc.torch.names import canonical_name, check_name
from stepc.torch.options import (
    ROUTE, RouteInfo, expect_no_request, expect_number, is_other_key, unknown_hint,
)  # fmt: skip
from stepc.torch.verify import unknown_parameter


@dataclass(frozen=True)
class Question:
    """A question to the compiler: which route each parameter takes. Another rank may ask it for this one.

    The answer is about the first of the ``manifests`` that the definition accepts.
    """

    definition: Definition
    manifests: list[dict[str, Any]]
    if_present: tuple[str, ...]

    @staticmethod
    def of(
        spec: Spec,
        named: Sequence[tuple[str, torch.Tensor]],
        declarations: Declarations,
        if_present: Sequence[str] = (),
    ) -> Question:
        """Frozen parameters are routed too if the definition allows it, so that unfreezing one
        finds its group."""
        frozen = {name for name, tensor in named if not tensor.requires_grad}
        # Selectors of matrices may refuse frozen tensors of three or more axes. Then these stay unrouted.
        stacks = {name for name, tensor in named if name in frozen and tensor.dim() > 2}
        unrouted: list[set[str]] = []
        for one in (set(), stacks, frozen):
            if len(one) < len(named) and one not in unrouted:
                unrouted.append(one)
        manifests = [routing_manifest(named, declarations, one) for one in unrouted]
        return Question(read_spec(spec), manifests, tuple(if_present))

    def digest(self) -> str:
        """A hash that is equal for questions with equal answers. The definition's path is no part of it."""
        asked = self.definition.name, self.definition.texts, self.manifests, self.if_present
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    def answer(self) -> dict[str, Any]:
        """Asks ``stepc check --json`` on this rank. Raises CompileError."""
        for manifest in self.manifests:
            try:
                return check_silently(self.definition, manifest, self.if_present)[0]
            except CompileError as error:
                failed = error
        raise CompileError(_with_arguments(str(failed)), failed.exit_code) from None


@dataclass(frozen=True)
class Routing:
    """Which route every parameter takes, by canonical name."""

    routes: dict[str, RouteInfo]
    parameters: dict[str, str]
    #: The path of the ready library that gave the routing; None if the compiler gave it.
    library: str | None = None
    #: Parameters whose matrices are divided into blocks, by the trainer or by the definition.
    divided: frozenset[str] = frozenset()
    #: The model's hyperparameters with their defaults; None if the definition has no model.
    model: dict[str, float | None] | None = None
    #: The model's states with their initial values.
    model_states: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for route in self.routes.values():
            for name in ("params", "param_names"):
                if name in route.defaults:
                    raise HyperparameterError(
                        f"route {route.name}: expected another name for the hyperparameter "
                        f"'{name}': parameter groups keep something else under that key"
                    )

    @property
    def hyperparameters(self) -> set[str]:
        """The names of all routes' hyperparameters."""
        return {name for route in self.routes.values() for name in route.defaults}

    @staticmethod
    def of_answer(found: Mapping[str, Any]) -> Routing:
        """Reads what the compiler answered to a :class:`Question`."""
        routes = {
            item["name"]: RouteInfo(item["name"], item["rule"], dict(item["defaults"]),
                                    item.get("elementwise", False))  # fmt: skip
            for item in found["routes"]
        }
        taken = {item["name"]: item["route"] for item in found["parameters"] if item.get("route")}
        divided = frozenset(item["name"] for item in found["parameters"] if item.get("divided"))
        return Routing(routes, taken, divided=divided, model=found.get("model"),
                       model_states=found.get("model_states", {}))  # fmt: skip

    @staticmethod
    def of_library(library: Library) -> Routing:
        """Reads the routing that a library was compiled with."""
        routes = {
            route.name: RouteInfo(route.name, route.rule, route.defaults)
            for route in library.routes
        }
        model = library.model
        of_model = None if model is None else dict(routes.pop(model.route).defaults)
        taken = {one.name: one.route for one in library.parameters if not one.is_model}
        states = {} if model is None else {state.name: state.init for state in model.states}
        return Routing(routes, taken, library.path, model=of_model, model_states=states)


def _with_arguments(diagnostics: str) -> str:
    """Adds a hint to diagnostics that ask for batch axes or ``flatten`` in the manifest: a trainer writes no
    manifest, and passes arguments instead."""
    names = re.findall(r"or declared batch axes, for parameter '([^']*)'", diagnostics)
    if not names:
        return diagnostics
    hint = (
        f"the manifest is written from the model: for convolutions pass flatten={names!r}, for stacks of "
        f"matrices pass batch={names!r}"
    )
    return f"{diagnostics}\nhint: {hint}"


def normalize(params: Any) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """A trainer's ``params`` as groups of (name, tensor) pairs, and the aliases of tied tensors.

    Takes ``named_parameters()``, or dicts with such pairs (or ``param_names``) under "params".
    """
    if isinstance(params, torch.Tensor | torch.nn.Module):
        raise _unnamed(params)
    if isinstance(params, Mapping):
        params = [params]
    items = list(params)
    if not items:
        raise ValueError("expected at least one parameter, found an empty list")
    groups = [dict(item) for item in items] if isinstance(items[0], Mapping) else [{"params": items}]
    seen: dict[int, str] = {}
    where: dict[int, int] = {}
    written: dict[str, str] = {}
    aliases: dict[str, list[str]] = {}
    for place, group in enumerate(groups):
        if "params" not in group:
            raise _not_a_group(group)
        members = group["params"]
        members = [members] if isinstance(members, torch.Tensor) else list(members)
        names = group.pop("param_names", None)
        if names is not None and members and not isinstance(members[0], tuple):
            members = list(zip(names, members, strict=True))
        pairs = []
        for member in members:
            if not (isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str)):
                raise _unnamed(member)
            check_name(member[0], "parameter")
            if isinstance(member[1], list | tuple):
                raise _unnamed(member[1], f" beside the name '{member[0]}'")
            if not isinstance(member[1], torch.Tensor):
                found = "None" if member[1] is None else type(member[1]).__name__
                raise TypeError(f"parameter '{member[0]}': expected a tensor beside its name, found {found}")
            name, tensor = canonical_name(member[0]), member[1]
            if id(tensor) in seen:
                if where[id(tensor)] != place:
                    raise in_two_groups(seen[id(tensor)], name)
                if name != seen[id(tensor)]:
                    aliases.setdefault(seen[id(tensor)], []).append(name)
                continue
            if name in written:
                one, other = written[name], member[0]
                without = f", '{one}' and '{other}' without the components that wrappers add"
                why = "" if one == other else without
                raise ValueError(f"two parameters have the name '{name}'{why}")
            seen[id(tensor)], where[id(tensor)], written[name] = name, place, member[0]
            pairs.append((name, tensor))
        group["params"] = pairs
    return groups, aliases


def in_two_groups(name: str, other: str) -> ValueError:
    """torch's error for a tensor of two groups, with the names that it has there."""
    also = "" if name == other else f", in the second one as '{other}'"
    return ValueError(f"some parameters appear in more than one parameter group: '{name}'{also}")


def expect_one_group(groups: Iterable[Mapping[str, Any]]) -> None:
    """Refuses tensors that were put into two groups."""
    seen: dict[int, tuple[int, str]] = {}
    for place, group in enumerate(groups):
        for name, tensor in zip(group["param_names"], group["params"], strict=True):
            first, other = seen.setdefault(id(tensor), (place, name))
            if first != place:
                raise in_two_groups(other, name)


def expect_new(given: Iterable[tuple[str, torch.Tensor]], known: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Refuses new parameters whose tensors or names the optimizer has already; ``known`` also has aliases."""
    known = list(known)
    names, tensors = dict(known), {id(tensor): name for name, tensor in reversed(known)}
    for name, tensor in given:
        if id(tensor) in tensors:
            raise in_two_groups(tensors[id(tensor)], name)
        if name in names:
            raise ValueError(
                f"parameter '{name}': expected a name that no parameter of the optimizer has, found that of "
                f"a parameter of shape {list(names[name].shape)}"
            )


def _not_a_group(group: dict[Any, Any]) -> TypeError:
    keys = ", ".join(f"'{key}'" for key in list(group)[:4]) + (", …" if len(group) > 4 else "")
    hint = ""
    if group and all(isinstance(value, torch.Tensor) for value in group.values()):
        hint = "\nhint: pass its items(), which are (name, tensor) pairs"
    return TypeError(
        f"expected groups with their parameters under 'params', found a dict of {keys or 'nothing'}{hint}"
    )


def _unnamed(found: Any, where: str = "") -> TypeError:
    return TypeError(
        "expected (name, tensor) pairs, since definitions route parameters by name, found "
        f"{type(found).__name__}{where}\nhint: pass model.named_parameters() instead of model.parameters(), "
        'and in a group {"params": [(name, p) for name, p in model.named_parameters() if …]}'
    )


def route_options(
    routing: Routing, given: Mapping[str, Any], capturable: bool = False, keywords: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Options by route from keyword arguments. An argument is a hyperparameter's value for every route that
    has it, or a dict of options for a rule or a route, which has precedence. `keywords` are the names that
    the caller takes itself, for hints."""
    routes = routing.routes.values()
    named = {name for route in routes for name in (route.rule, route.name)}
    result: dict[str, dict[str, Any]] = {route.name: {} for route in routes}
    known = sorted(routing.hyperparameters)
    expect_no_request(given, {*known, *named}, capturable, "Optimizer()")
    for name, value in given.items():
        if name in named or isinstance(value, Mapping) or (is_torchs_key(name) and name not in known):
            continue
        if name == BETAS and any(has_pair(route.defaults) for route in routes):
            for route in routes:
                if has_pair(route.defaults):
                    result[route.name] |= with_pair({name: value}, route.defaults, "Optimizer()")
            continue
        if name not in known:
            if name in (routing.model or ()):
                raise TypeError(f"'{name}' is a hyperparameter of the model: pass model={{'{name}': …}}")
            raise TypeError(
                f"'{name}' is no hyperparameter, rule or route of this definition: expected one of "
                f"{', '.join(known)} with a number, or of {', '.join(sorted(named))} with a dict"
                + unknown_hint([name], [*known, *sorted(named), *keywords])
            )
        for route in routes:
            if name in route.defaults:
                result[route.name][name] = value
    given = {key: value for key, value in given.items()
             if key in named or isinstance(value, Mapping)}  # fmt: skip
    for exact in (False, True):  # a route's own name wins over its rule's
        for key, options in given.items():
            chosen = [r for r in routing.routes.values()
                      if (r.name == key if exact else r.rule == key)]  # fmt: skip
            if not exact and not chosen and key not in routing.routes:
                raise TypeError(
                    f"'{key}' is no rule or route of this definition: expected "
                    f"{', '.join(sorted(named))}" + unknown_hint([key], sorted(named))
                )
            if not isinstance(options, Mapping):
                raise TypeError(f"{key}: expected a dict of options, found {options!r}")
            for route in chosen:
                for name, value in options.items():
                    _expect(name, value, [route], f"{key}=")
                expect_no_request(options, route.defaults, capturable, f"{key}=")
                result[route.name].update(with_pair(options, route.defaults, f"{key}="))
    return result


def model_options(routing: Routing, given: Any) -> dict[str, Any]:
    """The model's hyperparameters: what the trainer gives, and defaults. Empty if there is no model: then
    ``model=`` may be for a route or hyperparameter of this name."""
    known = routing.model
    if known is None:
        routes = routing.routes.values()
        if given is not None and not any("model" in (one.name, one.rule, *one.defaults) for one in routes):
            raise TypeError("model=: expected a definition with a model block, found one without")
        return {}
    if not isinstance(given, Mapping | None):
        raise TypeError(f"model=: expected a dict of hyperparameters, found {shown(given)}")
    if unknown := _unknown_of_model(given or (), known):
        raise TypeError(f"model=: {unknown}")
    result: dict[str, Any] = known | dict(given or {})
    for name, value in result.items():
        if value is None:
            raise HyperparameterError(f"model: {name} has no default: pass model={{'{name}': …}}")
        expect_number(value, name, "model=")
    return result


def _unknown_of_model(given: Iterable[str], known: Collection[str]) -> str | None:
    """What is wrong with names that are given to the model; None if it has all of them."""
    for name in given:
        if name not in known:
            return (
                f"'{name}' is no hyperparameter of the model: expected {', '.join(known) or 'none'}"
                + unknown_hint([name], known)
            )
    return None


def _expect(name: str, value: Any, routes: Sequence[RouteInfo], where: str) -> None:
    known = sorted({one for route in routes for one in route.defaults})
    if name in known or is_other_key(name, value, known):
        return
    if name == BETAS and any(has_pair(route.defaults) for route in routes):
        return
    raise TypeError(
        f"{where}: '{name}' is no hyperparameter of {', '.join(r.name for r in routes)}: expected "
        f"{', '.join(known)}"
        + (unknown_hint([name], known) or "\nhint: a key that is for others can be written into "
           "optimizer.param_groups afterwards")
    )  # fmt: skip


def split(
    group: Mapping[str, Any], routing: Routing, options: Mapping[str, Mapping[str, Any]],
    capturable: bool = False,
) -> list[Group]:  # fmt: skip
    """Splits a caller's group into one group per route, with options filled in.

    A frozen parameter that no route takes goes into a group without route until it is unfrozen.
    """
    by_route: dict[str | None, list[tuple[str, torch.Tensor]]] = {}
    for name, tensor in group["params"]:
        route = routing.parameters.get(name)
        if route is None and tensor.requires_grad:
            raise unknown_parameter(name, routing.library, routing.parameters)
        if group.get(ROUTE) not in (None, route):
            raise ValueError(
                f"expected parameters of route {group[ROUTE]!r} in a group that says so, found "
                f"'{name}' of route {route!r}: the definition routes parameters, not the group"
            )
        by_route.setdefault(route, []).append((name, tensor))
    given = {key: value for key, value in group.items() if key != "params"}
    present = [routing.routes[route] for route in by_route if route is not None]
    for key, value in given.items():
        if present:
            _expect(key, value, present, "a parameter group")
    expect_no_request(given, routing.hyperparameters, capturable, "a parameter group")
    result = []
    order: list[str | None] = [*routing.routes, None]
    for route in sorted(by_route, key=order.index):
        info = routing.routes.get(route) if route is not None else None
        made: dict[str, Any] = {"params": by_route[route], ROUTE: route}
        own = with_pair(
            given, routing.hyperparameters if info is None else info.defaults, "a parameter group"
        )
        if info is None:
            made |= _any_options(routing, options) | own
        else:
            made |= info.defaults | dict(options.get(info.name, {}))
            made |= {k: v for k, v in own.items()
                     if k in info.defaults or is_other_key(k, v, info.defaults)}  # fmt: skip
            made[ROUTE] = route
            missing = [name for name in info.defaults if made[name] is None]
            if missing:
                raise HyperparameterError(
                    f"route {info.name}: {', '.join(missing)} has no default: pass "
                    f"{info.rule}={{'{missing[0]}': …}}"
                )
        for name in routing.hyperparameters & made.keys():
            expect_number(made[name], name, "a parameter group" if info is None else f"route {info.name}")
        result.append(Group(made))
    return result


def _any_options(
    routing: Routing, options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Values for a group without route. Schedulers expect every group to have the same keys."""
    result: dict[str, Any] = {}
    for route in routing.routes.values():
        for name, value in (route.defaults | dict(options.get(route.name, {}))).items():
            if result.get(name) is None:
                result[name] = value
    return {name: 0.0 if value is None else value for name, value in result.items()}


def signature(groups: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Which parameters the groups have, of which route, and which of them are frozen."""
    return tuple(
        (group[ROUTE], tuple(id(p) if p.requires_grad else -id(p) for p in group["params"]))
        for group in groups
    )


class _NoNumber(Exception):
    """An option that is no number, without the words that say whose."""


def _no_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("not a number")
    return value


class Hyperparameters:
    """The groups' options in the array of float64 that the library reads in every step.

    With a ``device`` the array lies there. Numbers are copied there when they change. Tensors of one value
    are copied in each step, and a graph that captures the step repeats the copy.
    """

    def __init__(
        self, library: Library, groups: Sequence[Mapping[str, Any]],
        device: torch.device | None = None,
    ) -> None:  # fmt: skip
        defaults = {route.name: route.defaults for route in library.routes}
        model = library.model
        self._of_model = None if model is None else model.route
        self._model_names = () if model is None else tuple(defaults[model.route])
        self._names = [tuple(defaults.get(group[ROUTE], ())) for group in groups]
        # After the groups' rows comes a row per route, for parameters that this rank does not hold.
        self._routes = list(defaults)
        self.count = len(groups) + len(self._routes)
        self.stride = max((len(names) for names in defaults.values()), default=0) or 1
        self._values = (c.c_double * (self.count * self.stride))()
        for row, route in enumerate(self._routes, start=len(groups)):
            for column, value in enumerate(defaults[route].values()):
                self._values[row * self.stride + column] = 0.0 if value is None else value
        row_of = {name: row for row, group in enumerate(groups) for name in group["param_names"]}
        self.groups = [
            row_of.get(one.name, len(groups) + self._routes.index(one.route))
            for one in library.parameters
        ]
        self._on_device: torch.Tensor | None = None
        if device is not None:
            self._on_device = torch.tensor(list(self._values), dtype=torch.float64).to(device)

    @property
    def pointer(self) -> int:
        return c.addressof(self._values) if self._on_device is None else self._on_device.data_ptr()

    def write(self, groups: Iterable[Mapping[str, Any]], model: Mapping[str, Any]) -> None:
        """Copies hyperparameters of the groups and of the model to the array. Schedulers and trainers may
        have changed them."""
        for row, (group, names) in enumerate(zip(groups, self._names, strict=True)):
            try:
                self._write(row, group, names)
            except _NoNumber as error:
                where = f"parameter group {row} (route {group[ROUTE]})"
                raise HyperparameterError(f"{where}: {error}") from error.__cause__
        if self._of_model is not None:
            if len(model) > len(self._model_names):
                raise HyperparameterError(f"model: {_unknown_of_model(model, self._model_names)}")
            try:
                self._write(len(self._names) + self._routes.index(self._of_model), model, self._model_names)
            except _NoNumber as error:
                raise HyperparameterError(f"model: {error}") from error.__cause__

    def _write(self, row: int, options: Mapping[str, Any], names: Sequence[str]) -> None:
        values, on_device, base = self._values, self._on_device, row * self.stride
        for column, name in enumerate(names):
            try:
                value = options[name]
                if on_device is not None:
                    self._bring(base + column, value, on_device)
                    continue
                values[base + column] = _no_nan(value if type(value) is float else number(value))
            except GraphError:
                raise
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                found = shown(options[name]) if name in options else "none"
                raise _NoNumber(f"expected a number for '{name}', found {found}") from error

    def _bring(self, place: int, value: Any, on_device: torch.Tensor) -> None:
        if isinstance(value, torch.Tensor) and value.device == on_device.device and value.numel() == 1:
            on_device[place].copy_(value.reshape(()))
            self._values[place] = math.nan  # so that a later number counts as changed
            return
        found = _no_nan(number(value))
        if self._values[place] != found:
            refuse_capture(
                "expected hyperparameters that are tensors on the GPU, or that a step or refresh() "
                f"brought there before, found another number, {found:g}"
            )
            self._values[place] = found
            on_device[place].fill_(found)
