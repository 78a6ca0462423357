"""Optimizer states: allocated as the library declares them, placed like their parameters."""

from __future__ import annotations

import math
import sys
import types
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import Placement, Replicate, Shard, _StridedShard

from stepc._abi import PARAMETER
from stepc._described import Parameter, State
from stepc._library import Instance
from stepc.errors import PlanError, StepcError
from stepc.torch.describe import TORCH_DTYPES
from stepc.torch.group import shown
from stepc.torch.options import MODEL, OPTIONS, ROUTE, SHOWN_KEYS, pack, pack_model
from stepc.torch.pieces import Layout, Piece, placed
from stepc.torch.placements import BLOCKS, placements_like, same_placements, same_spec, split_placements
from stepc.torch.routed import RoutedGroups
from stepc.torch.slices import arrived, cut, moved_in
from stepc.torch.transport import Move, TorchTransport, redistribute

STEP = "step"


def _makes_states(caller: types.FrameType) -> bool:
    """Whether ``caller`` would step an optimizer only to make its states: torch's function, or torchtitan's
    copy of it."""
    return caller.f_code.co_name.removeprefix("_") == "init_optim_state"


class LazyStates(defaultdict):
    """``Optimizer.state``: empty until the first step, or until states are loaded, as torch's is.

    torch's distributed checkpoint asks whether there is state, and steps an optimizer that has none on
    zero gradients. That is a real step, which would count and may write. So this question, and no other,
    makes states, without a step. Distributed checkpoint then saves and loads the states of every
    parameter, but a group's options for one parameter only. So from its question to the end of saving or
    loading every parameter also has its options among its states, and the model's count of steps and
    hyperparameters, if the definition has a model block.
    """

    def __init__(self, owner: RoutedGroups, entries: Mapping[Any, Any] | None = None) -> None:
        super().__init__(dict, entries or {})
        self._owner = weakref.ref(owner)
        self.options_shown = False
        #: Whether entries were added, exchanged or removed since the optimizer last looked at all of them.
        self.changed = bool(entries)

    @staticmethod
    def of(owner: RoutedGroups, entries: Any) -> LazyStates:
        """Turns what a trainer assigns to ``optimizer.state`` into LazyStates."""
        if not isinstance(entries, Mapping):
            found = type(entries).__name__
            raise TypeError(f"optimizer.state: expected a dict of states by parameter, found {found}")
        own = isinstance(entries, LazyStates) and entries._owner() is owner
        states = entries if own else LazyStates(owner, entries)
        states.changed = True
        return states

    def show(self, entries: Mapping[Any, Any]) -> None:
        """Replaces all entries by these. This does not count as a change by the trainer."""
        self.clear()
        super().update(entries)
        self.changed = False

    def put(self, tensor: torch.Tensor, states: dict[str, Any] | None) -> None:
        """Sets a parameter's states, or removes them if ``states`` is None. This does not count as a change
        by the trainer."""
        if states is None:
            super().pop(tensor, None)
        else:
            super().__setitem__(tensor, states)

    def drop_empty(self) -> None:
        """Drops the empty entries that reading a defaultdict makes."""
        for key in [key for key, states in self.items() if not states]:
            super().pop(key)

    def _follow(method: str) -> Callable[..., Any]:  # noqa: N805 - makes methods
        def follow(self: LazyStates, *arguments: Any, **options: Any) -> Any:
            self.changed = True
            return getattr(defaultdict, method)(self, *arguments, **options)

        return follow

    __setitem__, __delitem__, __ior__ = _follow("__setitem__"), _follow("__delitem__"), _follow("__ior__")
    clear, pop, popitem = _follow("clear"), _follow("pop"), _follow("popitem")
    setdefault, update = _follow("setdefault"), _follow("update")
    del _follow

    def copy(self) -> defaultdict:
        """A plain defaultdict, as :mod:`pickle` makes, too."""
        return defaultdict(dict, self)

    __copy__ = copy

    def __bool__(self) -> bool:
        owner = self._owner()
        if owner is not None and owner.param_groups:
            made, makes = any(self.values()), _makes_states(sys._getframe(1))
            if makes and (not made or (self.changed and owner._binding is not None)):
                owner._prepared()
                made = True
            if made:
                self._show_options(owner)
        return len(self) > 0

    def _show_options(self, owner: RoutedGroups) -> None:
        model = None
        if owner._routing.model is not None:
            model = pack_model(owner._model_step(), owner._model_values())
        frozen = sum(bool(state) and not tensor.requires_grad for tensor, state in self.items())
        for group in owner.param_groups:
            if group[ROUTE] is not None:
                options = pack(owner._routing.routes[group[ROUTE]], group, frozen)
                for tensor in group["params"]:
                    if tensor in self:
                        self[tensor][OPTIONS] = options.clone()
                        if model is not None:
                            self[tensor][MODEL] = model.clone()
        self.options_shown = True

    def hide_options(self) -> None:
        """Removes the options that a distributed checkpoint's question put among the states."""
        if self.options_shown:
            self.options_shown = False
            for state in self.values():
                for key in SHOWN_KEYS:
                    state.pop(key, None)

    def __reduce__(self) -> Any:
        return (defaultdict, (dict,), None, None, iter(self.items()))


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard. ``to_local()`` would cost an autograd node, microseconds each."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def same_shard(
    one: tuple[int, ...], other: tuple[int, ...] | None, placements: str = ""
) -> bool:
    """Whether two local shapes may be those of one shard. Two empty shapes may, because torch gives an empty
    shard that is cut again other sizes. Of ranges and blocks the number of elements has to be equal."""
    if other is None or one == other:
        return one == other
    return (0 in one and 0 in other) or (is_list(placements) and math.prod(one) == math.prod(other))


def is_list(placements: str) -> bool:
    """Whether a shard with these placements may be a list of elements, of one axis: ranges, or blocks."""
    return "flat" in placements or BLOCKS in placements


def spec_axes(tensor: torch.Tensor, mesh_axes: tuple[str, ...]) -> list[int]:
    """For each axis of the tensor's own mesh, its index in the manifest's mesh. The tensor's mesh may be a
    slice of the manifest's, with its axes in another order."""
    mesh = tensor.device_mesh
    names = mesh.mesh_dim_names or tuple(f"dim{axis}" for axis in range(mesh.ndim))
    return [mesh_axes.index(name) for name in names]


def _like_parameter(
    shard: torch.Tensor, state: State, info: Parameter, parameter: torch.Tensor,
    mesh_axes: tuple[str, ...], instance: Instance,
) -> torch.Tensor:  # fmt: skip
    """The state as a DTensor, if the parameter is one and DTensor has the state's placements; otherwise as a
    plain tensor. The shard is a :class:`Piece` if torch's distributed checkpoint would not know its place in
    the whole."""
    layout = layout_of(instance, info, info.states.index(state))
    if not isinstance(parameter, DTensor):
        return placed(shard, state.placements, layout)
    placements = placements_of(state.placements, info, parameter, mesh_axes)
    if placements is None:
        return placed(shard, state.placements, layout)
    # Strided where the parameter is: the manifest may express this by the order of axes (strided.py).
    placements = [
        _StridedShard(one.dim, split_factor=own.split_factor)
        if type(own) is _StridedShard and type(one) is Shard else one
        for one, own in zip(placements, parameter.placements, strict=True)
    ]  # fmt: skip
    # Not by from_local(), which would check or infer a shape that is known, and communicate.
    stride, size = [], 1
    for extent in reversed(state.global_shape):
        stride.insert(0, size)
        size *= extent
    meta = TensorMeta(torch.Size(state.global_shape), tuple(stride), shard.dtype)
    spec = DTensorSpec(parameter.device_mesh, tuple(placements), tensor_meta=meta)
    return placed(DTensor(shard, spec, requires_grad=False), state.placements, layout)


def placements_of(
    written: str, info: Parameter, parameter: DTensor, mesh_axes: tuple[str, ...]
) -> list[Placement] | None:
    """DTensor's placements, on the parameter's mesh, for the library's text of a state's or gradient's
    placements. None if DTensor does not have them."""
    axes = spec_axes(parameter, mesh_axes)
    own, texts = split_placements(info.placements), split_placements(written)
    return placements_like(
        [texts[axis] for axis in axes],
        [(own[axis], one) for axis, one in zip(axes, parameter.placements, strict=True)],
    )


@torch.no_grad()
def allocate(
    info: Parameter, parameter: torch.Tensor, mesh_axes: tuple[str, ...], instance: Instance
) -> dict[str, torch.Tensor]:
    """Allocates the states of one parameter, except ``step``, which the caller adds."""
    result: dict[str, torch.Tensor] = {}
    shard = local(parameter)
    for number, state in enumerate(info.states):
        if state.local_shape is None:
            raise PlanError(f"parameter '{info.name}': this rank holds no state '{state.name}'")
        shape = state.local_shape
        if _lies_beside(state, info) and same_shard(tuple(shard.shape), shape, state.placements):
            shape = tuple(shard.shape)  # the parameter's, which may be empty, or a range of rows
        elif "flat" in state.placements or (
            BLOCKS in state.placements and tuple(shape) != tuple(state.global_shape)
        ):
            shape = (math.prod(shape),)
        data = torch.empty(shape, dtype=TORCH_DTYPES[state.dtype], device=shard.device)
        _fill(data, info, number, shard, instance)
        result[state.name] = _like_parameter(data, state, info, parameter, mesh_axes, instance)
    return result


@torch.no_grad()
def begin_anew(
    info: Parameter, parameter: torch.Tensor, states: Mapping[str, torch.Tensor], instance: Instance
) -> None:
    """Gives a parameter's states the values that they had when they were allocated."""
    states[STEP].zero_()
    for number, state in enumerate(info.states):
        _fill(local(states[state.name]), info, number, local(parameter), instance)


def _lies_beside(state: State, info: Parameter) -> bool:
    return state.global_shape == info.global_shape and state.placements == info.placements


def _fill(data: torch.Tensor, info: Parameter, number: int, shard: torch.Tensor, instance: Instance) -> None:
    """Writes the initial value of state ``number`` into this rank's shard of the state."""
    state = info.states[number]
    if not state.master:
        data.fill_(state.init)
        return
    source = shard if _lies_beside(state, info) else master_source(instance, info, number, shard)
    if source.numel() != data.numel():
        raise PlanError(
            f"parameter '{info.name}': expected state '{state.name}' of the local shape "
            f"{list(state.local_shape or ())}, found {list(source.shape)}"
        )
    data.copy_(source.detach().reshape(data.shape))


def layout_of(instance: Instance, info: Parameter, number: int) -> Layout:
    """The layout of state ``number`` on this rank."""
    return Layout(instance, info.index, number, info.states[number].global_shape)


def master_source(
    instance: Instance, info: Parameter, number: int, shard: torch.Tensor
) -> torch.Tensor:
    """The elements of a parameter's shard that this rank's shard of its master has, along one axis."""
    there = Layout(instance, info.index, PARAMETER, info.global_shape)
    found = layout_of(instance, info, number).among(there, shard.contiguous())
    if found is None:
        state = info.states[number]
        raise PlanError(
            f"parameter '{info.name}': expected a master where this rank has the parameter, found "
            f"'{state.name}' at {state.placements} of a parameter at {info.placements}"
        )
    return found


def check_state(
    tensor: Any, state: State, dtensor: bool, device: torch.device, name: str
) -> torch.Tensor:
    """The shard of a state that the trainer put in place of the bound one. Raises StepcError if it cannot be
    bound."""
    where = f"parameter '{name}': state '{state.name}'"
    if not isinstance(tensor, torch.Tensor):
        found = "none" if tensor is None else type(tensor).__name__
        raise StepcError(f"{where}: expected a tensor, found {found}")
    if isinstance(tensor, DTensor) != dtensor:
        kind = "a DTensor" if dtensor else "a plain tensor"
        raise StepcError(f"{where}: expected {kind} like its parameter")
    check_tensor(tensor, where)
    shard = local(tensor)
    expected = (TORCH_DTYPES[state.dtype], state.local_shape, device)
    found = (shard.dtype, tuple(shard.shape), shard.device)
    if expected[::2] != found[::2] or not same_shard(found[1], expected[1], state.placements):
        raise StepcError(f"{where}: expected dtype, local shape and device {expected}, found {found}")
    if not shard.is_contiguous():
        raise StepcError(f"{where}: expected a contiguous tensor, found strides {shard.stride()}")
    return shard


def whole_step(source: Any, where: str) -> int:
    """The number of steps that a state dict or a trainer gives: a whole number, plain or in a 0-d tensor."""
    value = source
    if isinstance(source, torch.Tensor):
        if source.is_nested:
            check_tensor(source, where)
        if source.dim() or source.is_meta:
            found = "a meta tensor" if source.is_meta else f"the shape {list(source.shape)}"
            raise StepcError(f"{where}: expected a number in a 0-d tensor, found {found}")
        check_tensor(source, where)
        value = local(source).item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StepcError(f"{where}: expected a number of steps, found {type(value).__name__}")
    if not 0 <= value < 2**63 or value != int(value):
        raise StepcError(f"{where}: expected a whole number of steps from 0 on, found {shown(value)}")
    return int(value)


def check_tensor(source: Any, where: str) -> None:
    """Refuses values that are no tensors, and tensors that have no memory or are not dense."""
    if not isinstance(source, torch.Tensor):
        raise StepcError(f"{where}: expected a tensor, found {type(source).__name__}")
    if source.is_nested:  # first, since nested tensors support few queries
        raise StepcError(f"{where}: expected a dense tensor, found a nested one")
    if source.is_meta:
        raise StepcError(f"{where}: expected a tensor with memory, found a meta tensor")
    shard = local(source)
    if shard.layout is not torch.strided or shard.is_quantized:
        found = "a quantized one" if shard.is_quantized else f"the layout {shard.layout}"
        raise StepcError(f"{where}: expected a dense tensor, found {found}")


def check_source(target: torch.Tensor, source: Any, where: str) -> None:
    """Refuses a source that :func:`copy_state` cannot copy, before anything is copied."""
    check_tensor(source, where)
    if tuple(source.size()) != tuple(target.size()):  # size() of a Piece or DTensor is the whole's
        hint = ""
        if isinstance(local(target), Piece):
            hint = (
                "; torch's full_state_dict and cpu_offload copy what one rank has: save with "
                "torch.distributed.checkpoint, without them"
            )
        raise StepcError(
            f"{where}: expected shape {list(target.size())}, found {list(source.size())}{hint}"
        )
    if source.dtype != target.dtype:
        raise StepcError(
            f"{where}: expected {target.dtype}, found {source.dtype}; a cast would change the state"
        )
    mine, theirs = local(target), local(source)
    if isinstance(theirs, Piece):
        if not isinstance(mine, Piece) or mine.boxes != theirs.boxes:
            raise StepcError(
                f"{where}: expected a whole tensor, or the piece that this rank has, found the piece at "
                f"{[box.offsets for box in theirs.boxes]}; load through torch.distributed.checkpoint, "
                "which reshards"
            )
        return
    check_mesh(target, source, where)
    if not isinstance(source, DTensor):
        return
    if same_placements(source.placements, target.placements):
        # Equal placements of unequal pieces mean other elements (see strided.py).
        expected, found = tuple(mine.shape), tuple(theirs.shape)
        unsaid = isinstance(mine, Piece) and not any(type(one) is _StridedShard for one in target.placements)
        if unsaid or not same_shard(expected, found):
            says, none = (" that says which elements it has", " that does not") if unsaid else ("", "")
            raise StepcError(
                f"{where}: expected a shard of shape {list(expected)}{says}, found {list(found)}{none}"
            )
    elif isinstance(mine, Piece) and any(type(one) is not Replicate for one in source.placements):
        raise StepcError(
            f"{where}: expected a whole tensor, or the piece that this rank has, found a DTensor with the "
            f"placements {list(source.placements)}; load through torch.distributed.checkpoint, which reshards"
        )


def check_mesh(target: torch.Tensor, source: torch.Tensor, where: str) -> None:
    """Refuses a DTensor that is not on the mesh of the tensor that it is for."""
    if isinstance(source, DTensor):
        if not isinstance(target, DTensor):
            raise StepcError(f"{where}: expected a plain tensor, found a DTensor")
        if source.device_mesh != target.device_mesh:
            raise StepcError(
                f"{where}: expected a state on {target.device_mesh}, found {source.device_mesh}; "
                "load through torch.distributed.checkpoint, which reshards"
            )


@torch.no_grad()
def copy_state(
    target: torch.Tensor, source: Any, where: str, transport: TorchTransport | None, written: str
) -> None:
    """Copies a loaded state's values into bound storage; ``written`` is the library's placements.

    A whole tensor is cut into shards without communication. A DTensor with other placements on
    the same mesh is redistributed; across meshes torch.distributed.checkpoint is the tool.
    """
    check_source(target, source, where)
    piece, dtensor = local(target), isinstance(source, DTensor)
    if isinstance(local(source), Piece) or (
        dtensor and same_placements(source.placements, target.placements)
    ):
        pass
    elif isinstance(piece, Piece):
        source = piece.cut(arrived(local(source)).to(target.device))
    elif dtensor:
        (source,) = redistribute([Move(where, source, target.placements)], transport)
    elif isinstance(target, DTensor):
        try:
            source = cut(source.to(target.device), target, moved_in(target, written))
        except ValueError as error:
            raise StepcError(f"{where}: {error}") from error
    mine, theirs = local(target), local(source)
    if not same_shard(tuple(mine.shape), tuple(theirs.shape)):  # after torch's redistribution
        raise StepcError(
            f"{where}: expected a shard of shape {list(mine.shape)}, found {list(theirs.shape)}"
        )
    if mine.numel() and mine.data_ptr() != theirs.data_ptr():
        mine.copy_(theirs)


def written_placements(info: Parameter | None) -> dict[str, str]:
    """The library's placements of a parameter's states."""
    return {} if info is None else {state.name: state.placements for state in info.states}


def carry_over(
    state: dict[str, Any], old: Mapping[str, Any], info: Parameter, transport: TorchTransport | None
) -> None:
    """Takes over an earlier binding's states, or the trainer's: the tensors if they still fit, otherwise
    their values."""
    name, written = info.name, written_placements(info)
    missing = [key for key in state if key not in old] if old else []
    if missing:
        raise StepcError(
            f"parameter '{name}': expected the states {', '.join(state)}, found no '{missing[0]}' among "
            f"those of before: optimizer.forget('{name}') on every rank drops them"
        )
    for key, value in old.items():
        if key not in state:
            continue
        new, where = state[key], f"parameter '{name}': state '{key}'"
        if key == STEP:
            new.fill_(whole_step(value, where))
        elif (
            type(value) is type(new) and value.dtype == new.dtype
            and local(value).shape == local(new).shape and local(value).device == local(new).device
            and (not isinstance(new, DTensor) or same_spec(value._spec, new._spec))
            and type(local(value)) is type(local(new))
            and (not isinstance(local(new), Piece) or local(new).boxes == local(value).boxes)
        ):  # fmt: skip
            state[key] = value
        else:
            try:
                check_source(new, value, where)
            except StepcError as error:
                raise StepcError(
                    f"{error}; the states of before are kept: optimizer.forget('{name}') on every "
                    "rank drops them"
                ) from None
            copy_state(new, value, where, transport, written[key])


def refresh_masters(
    instance: Instance, info: Parameter, states: dict[str, Any], shard: torch.Tensor
) -> None:
    """Compares a parameter's masters with its shard, see :func:`refresh_master`."""
    for number, state in enumerate(info.states):
        if state.master:
            beside = state.placements == info.placements
            low = shard if beside else master_source(instance, info, number, shard)
            refresh_master(states[state.name], low)


@torch.no_grad()
def refresh_master(master: torch.Tensor, low: torch.Tensor) -> bool:
    """Takes the parameter's value wherever the master no longer rounds to it.

    Decided element by element, so that the result does not depend on how tensors are sharded.
    Returns whether anything changed. ``low`` are the parameter's elements that the master has.
    """
    full = local(master)
    low = low.reshape(full.shape)
    if not low.numel():
        return False
    stale = full.to(low.dtype) != low
    if not bool(stale.any()):
        return False
    full.copy_(torch.where(stale, low.to(full.dtype), full))
    return True
