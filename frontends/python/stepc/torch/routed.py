"""The parameter groups of an optimizer whose definition routes parameters by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from stepc.errors import CompilerNotFound, plural
from stepc.torch import groups as group_rules
from stepc.torch.group import BETAS, Group, has_pair
from stepc.torch.groups import ROUTE, Routing


class RoutedGroups(torch.optim.Optimizer):
    """A ``torch.optim.Optimizer`` of which every group belongs to one route.

    Args:
        params: ``model.named_parameters()``, or dicts with such pairs under ``"params"``.
        routes: options by rule or route, and hyperparameters for all routes that have them.
        model: hyperparameters of the definition's model.
    """

    def __init__(
        self, params: Any, routes: Mapping[str, Any], model: Any = None
    ) -> None:
        self._route_arguments, self._model_argument = routes, model
        #: The hyperparameters of the definition's model. Each step reads them.
        self.model: dict[str, Any] = {}
        # The options that the trainer gave with each parameter, for parameters that get their route later.
        self._given_options: dict[str, dict[str, Any]] = {}
        self.param_groups: list[dict[str, Any]] = []
        given, self._aliases = group_rules.normalize(params)
        self._route_again(given)
        made = [part for group in given
                for part in self._split(group)]  # fmt: skip
        # torch's constructor hands them to add_param_group() one by one.
        self._made = made
        super().__init__(made, {})
        self._made = []
        # Schedulers look here for what they may change (OneCycleLR for "momentum").
        for route in self._routing.routes.values():
            for name, value in route.defaults.items():
                self.defaults.setdefault(name, value)
            if has_pair(route.defaults):
                self.defaults.setdefault(BETAS, (route.defaults["beta1"], route.defaults["beta2"]))

    # Members of the subclass Optimizer that states, frozen parameters and checkpoints use.
    _binding: Any
    _capturable: bool = False
    _kept_states: dict[str, dict[str, Any]]
    _shown: dict[torch.Tensor, tuple[str, dict[str, Any]]]
    transport: Any

    def _show(self, name: str, tensor: torch.Tensor, states: dict[str, Any]) -> None:
        """Puts a parameter's states into ``optimizer.state``."""
        raise NotImplementedError

    def _hide(self, tensor: torch.Tensor) -> None:
        """Takes a parameter's states out of ``optimizer.state``."""
        raise NotImplementedError

    def _prepared(self) -> None:
        """Prepares if the groups' parameters are not the bound ones."""
        raise NotImplementedError

    def _never_stepped(self) -> bool:
        """Whether the optimizer has neither states nor memory for states."""
        raise NotImplementedError

    def _fail(self, error: BaseException, where: str = "step") -> None:
        """Tells the peers of an error on this rank."""
        raise NotImplementedError

    def _refuse_torn(self) -> None:
        """Raises PoisonedError after a failure, until the trainer calls recover()."""
        raise NotImplementedError

    def _route(self, named: Sequence[tuple[str, torch.Tensor]]) -> Routing:
        """The routes that the definition gives these parameters."""
        raise NotImplementedError

    def _route_again(self, given: Sequence[Mapping[str, Any]] = ()) -> None:
        """Routes the groups' parameters, and those of groups that are about to be made."""
        new = [pair for group in given for pair in group["params"]]
        self._take_routing(self._route(self._all_names(self._named() + new)))
        for group in given:
            options = {key: value for key, value in group.items() if key != "params"}
            self._given_options |= dict.fromkeys((name for name, _ in group["params"]), options)

    def _take_routing(self, routing: Routing) -> None:
        self._routing = routing
        found = group_rules.model_options(routing, self.model or self._model_argument)
        self.model.clear()  # a scheduler may have the dict
        self.model |= found
        arguments = self._route_arguments
        if routing.model is None and self._model_argument is not None:
            arguments = {**arguments, "model": self._model_argument}  # a route or hyperparameter of this name
        parameters = inspect.signature(type(self)).parameters.values()
        self._options = group_rules.route_options(
            routing, arguments, self._capturable,
            [one.name for one in parameters if one.kind is one.KEYWORD_ONLY],
        )  # fmt: skip

    @property
    def routes(self) -> dict[str, str]:
        """Every parameter's route, by canonical name."""
        return {name: group[ROUTE] for group in self.param_groups for name in self._names(group)}

    @staticmethod
    def _names(group: Mapping[str, Any]) -> list[str]:
        names = group.get("param_names", [])
        if len(names) != len(group["params"]):
            raise ValueError(
                f"a parameter group has {plural(len(group['params']), 'parameter')} and "
                f"{plural(len(names), 'name')}: "
                "replaced parameters keep their order, new ones go through add_param_group"
            )
        return names

    def _all_names(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
        """The tensors with their names, and again with each alias of a tied tensor."""
        return [(n, t) for name, t in named for n in (name, *self._aliases.get(name, ()))]

    def _named(self) -> list[tuple[str, torch.Tensor]]:
        return [pair for group in self.param_groups
                for pair in zip(self._names(group), group["params"], strict=True)]  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, in one group per route; the next step prepares again.

        No rank waits for another rank: each asks the compiler, or its library, itself.
        """
        if any(param_group is part for part in self._made):
            self._add_part(param_group)
            return
        given, aliases = group_rules.normalize(param_group)
        tensors = dict(given[0]["params"])
        others = [(other, tensors[name]) for name in aliases for other in aliases[name]]
        group_rules.expect_new([*tensors.items(), *others], self._all_names(self._named()))
        self._aliases |= aliases
        try:
            self._route_again(given)
        except CompilerNotFound as error:
            raise CompilerNotFound(
                "add_param_group asks the compiler on each rank, since no rank waits for another one "
                f"here: {error}\n"
                "hint: give the optimizer all parameters when it is made; frozen ones get their route when "
                "they are unfrozen"
            ) from error
        for part in self._split(given[0]):
            self._add_part(part)

    def _split(self, group: Mapping[str, Any]) -> list[Group]:
        """Splits a trainer's group into one group per route."""
        return group_rules.split(group, self._routing, self._options, self._capturable)

    def _add_part(self, part: dict[str, Any]) -> None:
        """Adds a group that split() made; torch would fill in other routes' defaults."""
        keep, self.defaults = self.defaults, {}
        try:
            super().add_param_group(part)
        finally:
            self.defaults = keep
