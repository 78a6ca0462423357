"""Frozen parameters: their states are kept, and a parameter that is unfrozen gets its route.

A frozen parameter is not bound. The states that it had are kept by name and shown in
``optimizer.state``, so that a checkpoint has them, and the step after unfreezing goes on with them.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

from stepc.errors import StepcError
from stepc.torch.groups import Routing
from stepc.torch.options import ROUTE, SHOWN_KEYS
from stepc.torch.pieces import Piece
from stepc.torch.routed import RoutedGroups
from stepc.torch.slices import cut
from stepc.torch.states import STEP, check_mesh, check_source, check_tensor, local, whole_step


#: A parameter that was trained: the tensor, which the optimizer need not keep alive, and its shape.
Trained = tuple["weakref.ref[torch.Tensor]", torch.Size]


def trained(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, Trained]:
    """The parameters that need a gradient, by name."""
    return {name: (weakref.ref(tensor), tensor.shape) for name, tensor in named if tensor.requires_grad}


def expect_trained(named: Sequence[tuple[str, torch.Tensor]], before: Mapping[str, Trained]) -> None:
    """Refuses groups in which a placeholder was left in the place of a parameter that was trained.

    A parameter that was frozen since passes: it is the same tensor, or another parameter of its shape.
    """
    hint = "\nhint: once the model is sharded, put its parameters into param_groups"
    if before and not named:
        raise ValueError(
            f"expected parameters in param_groups, as '{next(iter(before))}', which was trained before, "
            f"found none{hint}"
        )
    for name, tensor in named:
        if name not in before or tensor.requires_grad or tensor is before[name][0]():
            continue
        shape = before[name][1]
        if not isinstance(tensor, torch.nn.Parameter) or tensor.shape != shape:
            raise ValueError(
                f"parameter '{name}': expected a parameter of shape {list(shape)} in param_groups, since one "
                f"was trained before, found a tensor of shape {list(tensor.shape)} that needs no "
                f"gradient{hint}"
            )


def waits_for_route(optimizer: RoutedGroups) -> bool:
    """Whether parameters were unfrozen in a group that has no route."""
    return any(tensor.requires_grad for group in optimizer.param_groups if group[ROUTE] is None
               for tensor in group["params"])  # fmt: skip


def adopt_unfrozen(optimizer: RoutedGroups, routing: Routing | None) -> None:
    """Gives a route to unfrozen parameters of a group that had none while they were frozen.

    ``routing`` is the routing of the parameters as they are now; None if no parameter waits for a route.
    """
    if routing is not None:
        optimizer._take_routing(routing)
    for group in [one for one in optimizer.param_groups if one[ROUTE] is None]:
        pairs = list(zip(optimizer._names(group), group["params"], strict=True))
        ready = [(name, tensor) for name, tensor in pairs if tensor.requires_grad]
        if not ready:
            continue
        given = {"params": ready, **optimizer._given_options.get(ready[0][0], {})}
        parts = optimizer._split(given)
        if len(parts) == 1 and len(ready) == len(pairs):
            _give_route(group, parts[0], optimizer)  # in its place, as schedulers count groups
            continue
        rest = [(name, tensor) for name, tensor in pairs if not tensor.requires_grad]
        group["params"], group["param_names"] = [t for _, t in rest], [n for n, _ in rest]
        for part in parts:
            optimizer._add_part(part)
    optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]


def _give_route(group: dict[str, Any], made: Mapping[str, Any], optimizer: RoutedGroups) -> None:
    # Without a route the group had the hyperparameters of all routes.
    for name in optimizer._routing.hyperparameters - made.keys():
        group.pop(name, None)
    group.update({key: made[key] for key in made if key not in ("params", "param_names")})


def show_states(optimizer: RoutedGroups) -> None:
    """Puts the kept states of frozen parameters into ``optimizer.state``."""
    for name, tensor in optimizer._named():
        kept = optimizer._kept_states.get(name)
        if kept and not tensor.requires_grad:
            optimizer._show(name, tensor, kept)


class Unchecked(dict):
    """States that a frozen parameter has from a state dict alone. The library does not describe states of
    frozen parameters, so these are checked when the parameter is unfrozen."""


@torch.no_grad()
def loaded_state(
    name: str, tensor: torch.Tensor, own: Mapping[str, Any] | None, source: Mapping[str, Any]
) -> dict[str, Any]:
    """A frozen parameter's states from a state dict; ``own`` are the states that it has before."""
    found = {state: value for state, value in source.items() if state not in SHOWN_KEYS}
    own = None if isinstance(own, Unchecked) else own
    if own is not None and own.keys() != found.keys():
        raise StepcError(
            f"parameter '{name}': expected the states {', '.join(own)} in the state dict, found "
            f"{', '.join(found)}"
        )
    result: dict[str, Any] = Unchecked() if own is None else {}
    for state, value in found.items():
        where = f"parameter '{name}': state '{state}'"
        if state == STEP:
            result[state] = torch.tensor(whole_step(value, where), dtype=torch.int64)
            continue
        if own is not None:
            check_source(own[state], value, where)
        check_tensor(value, where)
        check_mesh(tensor, value, where)
        value = value.detach()
        if isinstance(tensor, DTensor) and not isinstance(value, DTensor) and value.shape == tensor.shape:
            value = _cut(value.to(tensor.device), tensor, where)
        result[state] = copy.deepcopy(value) if isinstance(local(value), Piece) else value.clone()
    return result


def _cut(whole: torch.Tensor, parameter: DTensor, where: str) -> DTensor:
    """Cuts a whole state as its parameter is cut: FSDP2 may cut otherwise than distribute_tensor."""
    whole = whole.contiguous()
    try:
        shard = cut(whole, parameter)
    except ValueError as error:
        raise StepcError(
            f"{where}: {error}\nhint: load it while the parameter is trained, and freeze it then"
        ) from error
    meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
    spec = DTensorSpec(parameter.device_mesh, parameter.placements, tensor_meta=meta)
    return DTensor(shard, spec, requires_grad=False)
