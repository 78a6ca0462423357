"""A compiled library in this process, and one rank's instance of it."""

from __future__ import annotations

import atexit
import contextlib
import copy
import ctypes as c
import json
import math
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from stepc import _abi
from stepc._abi import LibraryTable
from stepc._calls import call_apart, cause
from stepc._described import Mesh, Metric, Parameter, Route, State
from stepc._device import AllocatorCalls, Device, default_device
from stepc._tables import local_shape, open_tables, shape, text as _text
from stepc.errors import PlanError, PoisonedError, StepcError, error_for, plural


class Library:
    """A compiled library, opened with local symbols so that many can live in one process.

    The object stands for one of the library's targets: the first, or the first of the kind ``target``
    (``cpu``, ``cuda``, ``emulated`` or ``interpret``). An instance of a library for several GPUs takes the
    step that was compiled for its GPU, and its ``library`` stands for that GPU's target.
    """

    def __init__(self, path: str | os.PathLike[str], target: str | None = None) -> None:
        self.path = os.fspath(path)
        self._dll, self._tables = open_tables(self.path)
        self.table = self._tables[0] if target is None else self._table_for(target)

    def _table_for(self, target: str) -> LibraryTable:
        for table in self._tables:
            if _text(table.target) == target:
                return table
        raise StepcError(
            f"'{self.path}': expected one of its targets ({', '.join(self.targets)}), found {target!r}"
        )

    def for_device(self, device: int) -> Library | None:
        """This library for the first of its targets whose parameters are on a device of this kind.

        Returns None if there is none. The targets ``cpu``, ``emulated`` and ``interpret`` are for a CPU; the
        one that was named first when the library was compiled is taken.
        """
        for table in self._tables:
            if table.device == device:
                found = copy.copy(self)
                found.table = table
                return found
        return None

    def _of(self, instance: c.c_void_p) -> Library:
        """This library for the target whose step an instance takes, if it has targets for several GPUs."""
        if sum(table.target == self.table.target for table in self._tables) == 1:
            return self
        found = copy.copy(self)
        found.table = c.cast(self.table.table_of(instance), c.POINTER(LibraryTable)).contents
        return found

    def __repr__(self) -> str:
        chip = self.chip.partition(";")[0]  # without the features of a CPU, some sixty
        return f"Library({self.path!r}, chip={chip!r}, ranks={self.world_ranks})"

    @property
    def targets(self) -> tuple[str, ...]:
        """The kinds of targets of the library, in the order of compilation; all GPUs are of one kind."""
        return tuple(dict.fromkeys(_text(table.target) for table in self._tables))

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips of the library, in the order of compilation. Each has a step of its own."""
        return tuple(_text(table.chip) for table in self._tables)

    @property
    def target(self) -> str:
        """The kind of the target that this object stands for."""
        return _text(self.table.target)

    @property
    def name(self) -> str:
        return _text(self.table.name)

    @property
    def chip(self) -> str:
        return _text(self.table.chip)

    @property
    def device(self) -> int:
        """The kind of device of the target: ``_abi.DEVICE_CPU`` or ``_abi.DEVICE_CUDA``."""
        return int(self.table.device)

    @property
    def plan_hash(self) -> int:
        return int(self.table.plan_hash)

    @property
    def workspace_bytes(self) -> int:
        return int(self.table.workspace_bytes())

    @cached_property
    def world_ranks(self) -> tuple[int, ...]:
        """The job's global ranks that take part, increasing."""
        pointer = self.table.world_ranks()
        return tuple(pointer[i] for i in range(self.table.world_size()))

    @cached_property
    def meshes(self) -> tuple[Mesh, ...]:
        """For each parameter, where the library expects it to lie."""
        result = []
        for index in range(self.table.parameter_count()):
            info = _abi.MeshInfo()
            status = self.table.mesh_info(index, c.byref(info))
            if status != _abi.OK:
                raise error_for(status, f"no mesh of parameter {index} in '{self.path}'")
            axes = tuple((_text(info.axis_names[i]), info.axis_sizes[i]) for i in range(info.axes))
            ranks = tuple(info.ranks[i] for i in range(info.rank_count))
            try:
                blocks = json.loads(_text(info.blocks) or "null")
            except (ValueError, RecursionError) as error:
                raise PlanError(
                    f"'{self.path}': expected blocks of parameter {index} as JSON: {error}; "
                    "the library is damaged"
                ) from error
            flatten = info.flatten, bool(info.flatten_specified)
            result.append(Mesh(_text(info.name), axes, ranks, info.batch_axes, blocks, *flatten))
        return tuple(result)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        table = self.table
        routes = []
        for route in range(table.route_count()):
            defaults: dict[str, float | None] = {}
            for index in range(table.hyperparameter_count(route)):
                value = table.hyperparameter_default(route, index)
                name = _text(table.hyperparameter_name(route, index))
                defaults[name] = None if math.isnan(value) else value
            names = _text(table.route_name(route)), _text(table.route_rule(route))
            routes.append(Route(*names, defaults))
        return tuple(routes)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters as every rank sees them, without local shapes, which an instance has."""
        return self._parameters(None)

    @property
    def model(self) -> Parameter | None:
        """The parameter that stands for the definition's model, if it has one."""
        return next((one for one in self.parameters if one.is_model), None)

    def _parameters(self, instance: c.c_void_p | None) -> tuple[Parameter, ...]:
        found = []
        for index in range(self.table.parameter_count()):
            info = _abi.ParameterInfo()
            self._check(self.table.parameter_info(instance, index, c.byref(info)), instance)
            states, inputs = [], []
            for listed, read, count in [
                (states, self.table.state_info, info.states),
                (inputs, self.table.input_info, self.table.input_count(index)),
            ]:
                for number in range(count):
                    state = _abi.StateInfo()
                    self._check(read(instance, index, number, c.byref(state)), instance)
                    listed.append(
                        State(
                            _text(state.name), _text(state.dtype), _text(state.kind),
                            bool(state.master), state.init,
                            shape(state.global_shape, state.axes) or (),
                            local_shape(state.local_shape, state.axes, _text(state.placements)),
                            _text(state.placements),
                        )
                    )  # fmt: skip
            metrics = []
            for number in range(self.table.metric_count(index)):
                metric = _abi.MetricInfo()
                status = self.table.metric_info(instance, index, number, c.byref(metric))
                self._check(status, instance)
                metrics.append(
                    Metric(
                        _text(metric.name), shape(metric.global_shape, metric.axes) or (), metric.count
                    )
                )
            found.append(
                Parameter(
                    index, _text(info.name), _text(info.route), _text(info.dtype),
                    _text(info.gradient_dtype), _text(info.placements),
                    _text(info.gradient_placements), _text(info.mesh),
                    shape(info.global_shape, info.axes) or (),
                    *((local_shape(info.local_shape, info.axes, _text(info.placements)),
                       local_shape(info.gradient_local_shape, info.axes,
                                   _text(info.gradient_placements)))
                      if info.member else (None, None)),
                    bool(info.member), tuple(states), bool(info.is_model),
                    bool(info.steps_on_device), tuple(metrics), tuple(inputs),
                )
            )  # fmt: skip
        return tuple(found)

    def _check(self, status: int, instance: c.c_void_p | None = None) -> None:
        if status != _abi.OK:
            message = _text(self.table.last_error(instance)) if instance else ""
            raise error_for(status, message)


# Functions of the table that use the transport, as create and destroy do.
_CALLS_BACK = frozenset({"step", "enqueue", "poll", "abort", "move_states"})
# On a GPU these functions never wait, so they are called without a thread, which would take longer.
_ONLY_ENQUEUE = frozenset({"enqueue", "poll"})


# Instances that are closed when the process ends: later, callbacks find an interpreter that is half gone.
_live: weakref.WeakSet[Instance] = weakref.WeakSet()

# Objects of instances that nobody can destroy any more, because graphs hold their steps.
_NEVER_DESTROYED: list[tuple[object, ...]] = []


class Instance:
    """One rank's optimizer: binds memory and steps. Used by one thread at a time.

    ``transport`` is an object with a ``table`` (see :class:`stepc._abi.Transport`) that stays
    alive as long as the instance; None makes a world of one rank. ``device`` must be of the library's
    kind. Without it a library for GPUs takes the transport's GPU, or the first, and its default stream.
    The caller must keep the bound memory alive, on a GPU until the enqueued steps are done.
    With ``graph`` the constructor records a step as a graph of the device, and each step replays it.

    A child that was forked has neither the threads nor the connections of the process that made the
    instance. In the child, steps raise at once, and closing does nothing.

    A signal handler that raises while the library runs (Ctrl-C) ends the exchange under way: the
    transport's ``abort(reason)`` is called. The exception is raised when the library has returned.
    In :meth:`enqueue` and :meth:`poll` on a GPU, Python itself raises it when they have returned.
    """

    def __init__(
        self,
        library: Library,
        transport: object | None = None,
        *,
        threads: int = 0,
        timeout: float = 0.0,
        device: Device | None = None,
        graph: bool = False,
    ) -> None:
        self.library = library
        self.transport = transport
        self._process = os.getpid()
        self._allocator: AllocatorCalls | None = None
        self._handle: c.c_void_p | None = None
        options = _abi.Options(
            abi_version=_abi.ABI_VERSION, struct_size=c.sizeof(_abi.Options), threads=threads,
            graph=graph,
        )  # fmt: skip
        options.timeout_seconds = timeout
        device = device or default_device(library.device, transport)
        options.device, options.device_ordinal = device.kind, device.ordinal
        options.stream = device.stream or None
        if device.allocator is not None:
            self._allocator = AllocatorCalls(device.allocator)
            options.allocate = self._allocator.allocate
            options.deallocate = self._allocator.deallocate
        if transport is not None:
            options.transport = c.pointer(transport.table)  # type: ignore[attr-defined]
        handle = c.c_void_p()
        error = c.create_string_buffer(4096)
        try:
            status = self._apart(
                lambda: library.table.create(c.byref(options), c.byref(handle), error, len(error)),
                allocates=True,
            )
            if status != _abi.OK:
                self._raise(error_for(status, _text(error.value)))
            self.parameters = library._parameters(handle)
            self.library = library._of(handle)
            self._handle = handle
            _live.add(self)
        except BaseException:
            if handle and self._handle is None:
                self._apart(lambda: library.table.destroy(handle), allocates=True)
            raise

    def close(self) -> None:
        """Destroys the instance; the library then no longer touches bound memory.

        Raises :class:`GraphError`, and destroys nothing, while a graph that was captured holds a step.
        """
        handle, self._handle = self._handle, None
        if handle is None or not self.is_own():
            return
        status = self._apart(lambda: self.library.table.destroy(handle), allocates=True)
        if status != _abi.OK:
            self._handle = handle
            raise error_for(status, _text(self.library.table.last_error(handle)))

    def is_own(self) -> bool:
        """Whether this is the process that made the instance, and not a child that was forked from it."""
        return os.getpid() == self._process

    def expect_own(self) -> None:
        """Raises in a child that was forked, before anything waits for threads that are not there."""
        if not self.is_own():
            made = "the optimizer" if self.transport is None else "the process group and the optimizer"
            raise StepcError(
                f"expected a call in process {self._process}, which opened the library, found one in "
                f"{os.getpid()}, which was forked from it\nhint: make {made} in the child, or start the "
                "child by 'spawn' or 'forkserver'"
            )

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is None or not self.is_own():
            return
        # Called without a thread, because no thread can start while the interpreter ends.
        if self.library.table.destroy(handle) != _abi.OK:
            _NEVER_DESTROYED.append((self.library, self.transport, self._allocator))
            if sys.is_finalizing():
                return  # it goes with the process
            message = _text(self.library.table.last_error(handle))
            warnings.warn(f"an instance is never destroyed: {message}", ResourceWarning, stacklevel=2)

    def _apart(self, function: Callable[[], Any], allocates: bool = False) -> Any:
        """Calls a function that may call back into the transport or, if it ``allocates``, the allocator."""
        if self.transport is None and not (allocates and self._allocator):
            return function()
        return call_apart(function, self._give_up)

    def _give_up(self, error: BaseException) -> None:
        abort = getattr(self.transport, "abort", None)
        if abort is not None:
            abort(cause(error))

    def _call(self, name: str, *arguments: object) -> None:
        if self._handle is None:
            raise StepcError("this instance was closed")
        function = getattr(self.library.table, name)
        if name in _CALLS_BACK:
            self.expect_own()
        if name in _CALLS_BACK and not (
            name in _ONLY_ENQUEUE and self.library.device != _abi.DEVICE_CPU
        ):
            status = self._apart(lambda: function(self._handle, *arguments))
        else:
            status = function(self._handle, *arguments)
        if status != _abi.OK:
            self._raise(error_for(status, _text(self.library.table.last_error(self._handle))))

    def _raise(self, error: StepcError) -> None:
        """Raises the library's error, with the exception of a callback that led to it as its cause. If that
        exception is an interrupt (no ``Exception``), raises it instead."""
        raised = getattr(self.transport, "raised", None)
        if raised is None and self._allocator is not None:
            raised = self._allocator.raised
        if raised is not None and not isinstance(raised, Exception):
            raise raised
        raise error from (None if isinstance(raised, StepcError) else raised)

    def shard_runs(self, index: int, of: int = _abi.PARAMETER) -> list[tuple[int, int, int]]:
        """Which elements this rank's shard holds: ``(global, local, length)`` each, in the shard's order.

        ``global`` numbers the elements of the whole tensor, ``local`` those of the shard, both
        row-major. ``of`` is the number of a state, ``_abi.METRIC`` minus that of a metric,
        ``_abi.PARAMETER`` or ``_abi.GRADIENT``.
        """
        count = c.c_int64()
        self._call("shard_runs", index, of, None, 0, c.byref(count))
        runs = (_abi.Run * max(count.value, 1))()
        self._call("shard_runs", index, of, runs, count.value, c.byref(count))
        return [(getattr(run, "global"), run.local, run.length) for run in runs[: count.value]]

    def bind_parameter(self, index: int, pointer: int, size: int) -> None:
        self._call("bind_parameter", index, pointer or None, size)

    def bind_state(self, index: int, state: int, pointer: int, size: int) -> None:
        self._call("bind_state", index, state, pointer or None, size)

    def bind_input(self, index: int, number: int, pointer: int, size: int) -> None:
        self._call("bind_input", index, number, pointer or None, size)

    def move_states(self, before: Instance | None) -> None:
        """Copies the states of another library's instance to the memory that is bound as states here. All
        ranks of this instance's world call it; a rank that had no instance before passes None."""
        if before is None:
            self._call("move_states", None, None)
        else:
            self._call("move_states", c.addressof(before.library.table), before._handle)

    def bind_gradient(self, index: int, pointer: int, size: int) -> None:
        self._call("bind_gradient", index, pointer or None, size)

    def bind_gradients(self, pointers: c.Array, count: int) -> None:
        """``pointers`` is an array of 64-bit addresses in the plan's order; 0 if absent or empty."""
        self._call("bind_gradients", c.addressof(pointers), count)

    def bind_steps(self, pointer: int, memory: int = _abi.MEMORY_HOST) -> None:
        self._call("bind_steps", pointer, memory)

    def bind_hyperparameters(
        self, values: int, group_count: int, stride: int, groups: Sequence[int],
        memory: int = _abi.MEMORY_HOST,
    ) -> None:  # fmt: skip
        array = (c.c_int32 * max(len(groups), 1))(*groups)
        self._call(
            "bind_hyperparameters", values, group_count, stride, c.addressof(array), memory
        )

    def set_hyperparameter(self, route: int, name: str, value: float) -> None:
        self._call("set_hyperparameter", route, name.encode("utf-8", "replace"), value)

    def step(self) -> None:
        """One optimizer step, done when this returns. The interpreter lock is released while it runs."""
        self._step("step")

    def enqueue(self) -> None:
        """Enqueues a step on the device's stream, and does not wait for it."""
        self._step("enqueue")

    def refresh(self) -> None:
        """Checks what is bound, and copies it to the device, where later replays of graphs read it."""
        self._call("refresh")

    def poll(self) -> bool:
        """Whether the step that was enqueued last is done. Never waits. Raises the error of a failed step."""
        done = c.c_int32()
        self._step("poll", c.byref(done))
        return bool(done.value)

    def _step(self, name: str, *arguments: object) -> None:
        try:
            self._call(name, *arguments)
        except BaseException as error:
            error.half_stepped = self.half_stepped()
            if not isinstance(error, StepcError):
                raise
            if error.half_stepped and "half stepped" not in str(error):
                shown = ", ".join(f"'{name}'" for name in error.half_stepped[:4])
                more = len(error.half_stepped) - 4
                error.args = (
                    f"{error}\n{plural(len(error.half_stepped), 'parameter')} or "
                    f"{'its' if len(error.half_stepped) == 1 else 'their'} states may be half "
                    f"stepped: {shown}{f' and {more} more' if more > 0 else ''}; restore them from "
                    "a checkpoint before going on",
                )
            raise

    def half_stepped(self) -> list[str]:
        """The names of parameters that, with their states, a failed step may have changed."""
        count = len(self.parameters)
        flags = (c.c_uint8 * max(count, 1))()
        try:
            self._call("half_stepped", c.addressof(flags), count)
        except StepcError:
            return [p.name for p in self.parameters if not p.is_model]
        return [p.name for p in self.parameters if flags[p.index]]

    def recover(self) -> None:
        """Allows steps again. The trainer must have restored what :meth:`half_stepped` names."""
        self._call("recover")

    def abort(self, reason: str) -> None:
        """Tells the peers to give up, and poisons the instance."""
        try:
            self._call("abort", reason.encode("utf-8", "replace"))
        except PoisonedError:
            pass

    def metrics(self, index: int, number: int) -> list[float]:
        """The numbers of a parameter's metric that this rank has, in the order of :meth:`shard_runs`, as the
        last step that computed them has written them. NaN before the first step. Never waits."""
        count = self.parameters[index].metrics[number].count
        values = (c.c_float * max(count, 1))()
        self._call("metrics", index, number, values, count)
        return list(values[:count])

    def counters(self) -> tuple[dict[str, int], dict[str, int]]:
        """What this rank did in the last step, and what the plan says it does in every step."""
        executed, planned = _abi.Counters(), _abi.Counters()
        self._call("counters", c.byref(executed), c.byref(planned))
        return tuple(
            {name: getattr(item, name) for name in _abi.COUNTERS} for item in (executed, planned)
        )  # type: ignore[return-value]


@atexit.register
def _close_all() -> None:
    for instance in list(_live):
        with contextlib.suppress(Exception):  # a graph that still holds a step: it goes with the process
            instance.close()
