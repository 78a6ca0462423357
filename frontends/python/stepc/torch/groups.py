"""Routes, parameter groups and hyperparameters.

torch's parameter groups and the library's routes meet here: every group belongs to one route, a
caller's group is split where its parameters take several, and a group's options are its route's
hyperparameters under their own names, so that schedulers and logging work unchanged.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stepc._compile import Spec, check
from stepc._library import Library
from stepc.errors import CompileError, HyperparameterError, PlanError
from stepc.torch.describe import Declarations
from stepc.torch.manifest import routing_manifest
from stepc.torch.names import canonical_name

ROUTE = "route"
#: Keys of a group that are no hyperparameters; the last ones are written by torch's schedulers.
_OTHER_KEYS = frozenset(
    {"params", "param_names", "name", ROUTE, "initial_lr", "max_lr", "min_lr", "max_momentum",
     "base_momentum"}
)  # fmt: skip


@dataclass(frozen=True)
class RouteInfo:
    """A route, the rule that it applies, and the rule's hyperparameters with defaults."""

    name: str
    rule: str
    defaults: dict[str, float | None]


@dataclass(frozen=True)
class Routing:
    """Which route every parameter takes, by canonical name."""

    routes: dict[str, RouteInfo]
    parameters: dict[str, str]

    def __post_init__(self) -> None:
        for route in self.routes.values():
            for name in ("params", "param_names"):
                if name in route.defaults:
                    raise HyperparameterError(
                        f"route {route.name}: expected another name for the hyperparameter "
                        f"'{name}': parameter groups keep something else under that key"
                    )

    @staticmethod
    def of_spec(
        spec: Spec, named: Sequence[tuple[str, torch.Tensor]], declarations: Declarations
    ) -> Routing:
        """Asks the compiler. Frozen parameters are routed too where the definition allows it, so
        that unfreezing one finds its group."""
        trainable = [(name, tensor) for name, tensor in named if tensor.requires_grad]
        try:
            found = check(spec, routing_manifest(named, declarations))
        except CompileError:
            if len(trainable) == len(named) or not trainable:
                raise
            found = check(spec, routing_manifest(trainable, declarations))
        routes = {
            item["name"]: RouteInfo(item["name"], item["rule"], dict(item["defaults"]))
            for item in found["routes"]
        }
        return Routing(routes, {item["name"]: item["route"] for item in found["parameters"]})

    @staticmethod
    def of_library(library: Library) -> Routing:
        """Reads the routing that a library was compiled with."""
        routes = {
            route.name: RouteInfo(route.name, _rule(route.name), route.defaults)
            for route in library.routes
        }
        return Routing(routes, {one.name: one.route for one in library.parameters})


def _rule(route: str) -> str:
    # The second route of a rule is called "Muon.1".
    head, _, number = route.rpartition(".")
    return head if head and number.isdigit() else route


def normalize(params: Any) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """A trainer's ``params`` as groups of (name, tensor) pairs, and the aliases of tied tensors.

    Takes ``named_parameters()``, or dicts with such pairs (or ``param_names``) under "params".
    """
    if isinstance(params, torch.Tensor):
        raise TypeError("expected named parameters, found one tensor: pass (name, tensor) pairs")
    if isinstance(params, Mapping):
        params = [params]
    items = list(params)
    if not items:
        raise ValueError("expected at least one parameter, found an empty list")
    groups = [dict(item) for item in items] if isinstance(items[0], Mapping) else [{"params": items}]
    seen: dict[int, str] = {}
    aliases: dict[str, list[str]] = {}
    for group in groups:
        members = group["params"]
        members = [members] if isinstance(members, torch.Tensor) else list(members)
        names = group.pop("param_names", None)
        if names is not None and members and not isinstance(members[0], tuple):
            members = list(zip(names, members, strict=True))
        pairs = []
        for member in members:
            if not (isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str)):
                raise TypeError(
                    "expected (name, tensor) pairs, since definitions route parameters by name: "
                    f"pass model.named_parameters(), found {type(member).__name__}"
                )
            name, tensor = canonical_name(member[0]), member[1]
            if id(tensor) in seen:
                if name != seen[id(tensor)]:
                    aliases.setdefault(seen[id(tensor)], []).append(name)
                continue
            if name in seen.values():
                raise ValueError(f"two parameters have the name '{name}'")
            seen[id(tensor)] = name
            pairs.append((name, tensor))
        group["params"] = pairs
    return groups, aliases


def route_options(
    routing: Routing, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Options by route from keyword arguments that name a rule or a route."""
    result: dict[str, dict[str, Any]] = {name: {} for name in routing.routes}
    for exact in (False, True):  # a route's own name wins over its rule's
        for key, options in given.items():
            chosen = [r for r in routing.routes.values()
                      if (r.name == key if exact else r.rule == key)]  # fmt: skip
            if not exact and not chosen and key not in routing.routes:
                known = ", ".join(sorted({r.rule for r in routing.routes.values()}))
                raise TypeError(f"'{key}' is no rule or route of this definition: expected {known}")
            if not isinstance(options, Mapping):
                raise TypeError(f"{key}: expected a dict of options, found {options!r}")
            for route in chosen:
                for name in options:
                    _expect(name, [route], f"{key}=")
                result[route.name].update(options)
    return result


def _expect(name: str, routes: Sequence[RouteInfo], where: str) -> None:
    if name in _OTHER_KEYS or any(name in route.defaults for route in routes):
        return
    known = sorted({one for route in routes for one in route.defaults})
    raise TypeError(
        f"{where}: '{name}' is no hyperparameter of {', '.join(r.name for r in routes)}: expected "
        f"{', '.join(known)}"
    )


def split(
    group: Mapping[str, Any], routing: Routing, options: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One group per route of a caller's group, options filled in.

    A frozen parameter that no route takes goes into a group without route until it is unfrozen.
    """
    by_route: dict[str | None, list[tuple[str, torch.Tensor]]] = {}
    for name, tensor in group["params"]:
        route = routing.parameters.get(name)
        if route is None and tensor.requires_grad:
            raise PlanError(f"parameter '{name}': the library was not compiled for it")
        if group.get(ROUTE) not in (None, route):
            raise ValueError(
                f"expected parameters of route {group[ROUTE]!r} in a group that says so, found "
                f"'{name}' of route {route!r}: the definition routes parameters, not the group"
            )
        by_route.setdefault(route, []).append((name, tensor))
    own = {key: value for key, value in group.items() if key != "params"}
    present = [routing.routes[route] for route in by_route if route is not None]
    for key in own:
        if present:
            _expect(key, present, "a parameter group")
    result = []
    order: list[str | None] = [*routing.routes, None]
    for route in sorted(by_route, key=order.index):
        info = routing.routes.get(route) if route is not None else None
        made: dict[str, Any] = {"params": by_route[route], ROUTE: route}
        if info is None:
            made |= own
        else:
            made |= info.defaults | dict(options.get(info.name, {}))
            made |= {k: v for k, v in own.items() if k in info.defaults or k in _OTHER_KEYS}
            made[ROUTE] = route
            missing = [name for name in info.defaults if made[name] is None]
            if missing:
                raise HyperparameterError(
                    f"route {info.name}: {', '.join(missing)} has no default: pass "
                    f"{info.rule}={{'{missing[0]}': …}}"
                )
        result.append(made)
    return result


class Hyperparameters:
    """The groups' options in the array of float64 that the library reads in every step."""

    def __init__(self, library: Library, groups: Sequence[Mapping[str, Any]]) -> None:
        defaults = {route.name: route.defaults for route in library.routes}
        self._names = [tuple(defaults.get(group[ROUTE], ())) for group in groups]
        # Behind the groups, a row per route for parameters that this rank does not hold.
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

    @property
    def pointer(self) -> int:
        return c.addressof(self._values)

    def write(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """Copies what schedulers and trainers left in the groups."""
        values, stride = self._values, self.stride
        for row, (group, names) in enumerate(zip(groups, self._names, strict=True)):
            base = row * stride
            for column, name in enumerate(names):
                try:
                    values[base + column] = float(group[name])
                except (KeyError, TypeError, ValueError, RuntimeError) as error:
                    raise HyperparameterError(
                        f"parameter group {row} (route {group[ROUTE]}): expected a number for "
                        f"'{name}', found {group.get(name, 'nothing')!r}"
                    ) from error
