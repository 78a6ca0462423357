"""ctypes mirrors of ``stepc.h`` and ``transport.h``.

This module checks the sizes of structs, and opening a library checks the version. So a header that
changes causes an error at load time, and never a wrong read.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

ABI_VERSION = 3
TRANSPORT_VERSION = 2

OK = 0
ERROR_ARGUMENT = 1
ERROR_TRANSPORT = 9

# Kinds of devices.
DEVICE_CPU, DEVICE_CUDA = 0, 1
# Where bound memory lies. Then the parameter and its gradient, in calls that otherwise take a state's number.
MEMORY_HOST, MEMORY_DEVICE = 0, 1
PARAMETER, GRADIENT, METRIC, INPUT = -1, -2, -3, 1 << 20
# Kinds of operations of a transport.
SEND, RECEIVE, ALL_GATHER = range(3)

_error_text = (c.POINTER(c.c_char), c.c_int64)


class Operation(c.Structure):
    """``stepc_operation``: what a transport does between the ranks of a communicator."""

    _fields_ = [
        ("kind", c.c_int32),
        ("peer", c.c_int32),
        ("communicator", c.c_void_p),
        ("send", c.c_void_p),
        ("receive", c.c_void_p),
        ("bytes", c.c_int64),
        ("tag", c.c_int64),
        ("element", c.c_int32),
        ("reserved", c.c_int32),
    ]


class Operations(c.Structure):
    """``stepc_operations``: operations that begin together."""

    _fields_ = [
        ("struct_size", c.c_int32),
        ("operation_size", c.c_int32),
        ("operations", c.c_void_p),
        ("count", c.c_int64),
        ("stream", c.c_void_p),
    ]

    def __iter__(self) -> Iterator[Operation]:
        for index in range(self.count):
            yield Operation.from_address(self.operations + index * self.operation_size)


StartFunction = c.CFUNCTYPE(
    c.c_int32, c.c_void_p, c.POINTER(Operations), c.POINTER(c.c_void_p), *_error_text
)
TestFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, *_error_text)
AbortFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
DestroyFunction = c.CFUNCTYPE(None, c.c_void_p)
OpenFunction = c.CFUNCTYPE(
    c.c_int32, c.c_void_p, c.POINTER(c.c_int32), c.c_int32, c.POINTER(c.c_void_p),
    c.POINTER(c.c_void_p), *_error_text,
)  # fmt: skip
CloseFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


class Traffic(c.Structure):
    """``stepc_traffic``: messages that a transport carried out, and their bytes."""

    _fields_ = [
        ("messages_sent", c.c_int64),
        ("messages_received", c.c_int64),
        ("bytes_sent", c.c_int64),
        ("bytes_received", c.c_int64),
    ]


TrafficFunction = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Traffic))


class Transport(c.Structure):
    """``stepc_transport``: how bytes travel between ranks."""

    _fields_ = [
        ("version", c.c_int32),
        ("struct_size", c.c_int32),
        ("rank", c.c_int32),
        ("size", c.c_int32),
        ("kinds", c.c_int64),
        ("traits", c.c_int64),
        ("context", c.c_void_p),
        ("start", StartFunction),
        ("test", TestFunction),
        ("abort", AbortFunction),
        ("destroy", DestroyFunction),
        ("open_communicator", OpenFunction),
        ("close_communicator", CloseFunction),
        ("traffic", TrafficFunction),
    ]


AllocateFunction = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_int64, c.c_int64)
DeallocateFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64)


class Options(c.Structure):
    """``stepc_options``: what an instance is created with."""

    _fields_ = [
        ("abi_version", c.c_int32),
        ("struct_size", c.c_int32),
        ("transport", c.POINTER(Transport)),
        ("device", c.c_int32),
        ("device_ordinal", c.c_int32),
        ("stream", c.c_void_p),
        ("threads", c.c_int32),
        ("graph", c.c_int32),
        ("parallel_for", c.c_void_p),
        ("parallel_context", c.c_void_p),
        ("allocate", c.c_void_p),
        ("deallocate", c.c_void_p),
        ("allocator_context", c.c_void_p),
        ("timeout_seconds", c.c_double),
    ]


class Sized(c.Structure):
    """A struct that a library fills in; it begins with its own size."""

    def __init__(self) -> None:
        super().__init__(struct_size=c.sizeof(self))


class ParameterInfo(Sized):
    """``stepc_parameter_info``: one parameter as this rank sees it."""

    _fields_ = [
        ("struct_size", c.c_int32),
        ("axes", c.c_int32),
        ("name", c.c_char_p),
        ("route", c.c_char_p),
        ("dtype", c.c_char_p),
        ("gradient_dtype", c.c_char_p),
        ("placements", c.c_char_p),
        ("gradient_placements", c.c_char_p),
        ("mesh", c.c_char_p),
        ("global_shape", c.POINTER(c.c_int64)),
        ("local_shape", c.POINTER(c.c_int64)),
        ("gradient_local_shape", c.POINTER(c.c_int64)),
        ("states", c.c_int32),
        ("member", c.c_int32),
        ("is_model", c.c_int32),
        ("steps_on_device", c.c_int32),
    ]


class StateInfo(Sized):
    """``stepc_state_info``: one state of a parameter."""

    _fields_ = [
        ("struct_size", c.c_int32),
        ("axes", c.c_int32),
        ("name", c.c_char_p),
        ("dtype", c.c_char_p),
        ("kind", c.c_char_p),
        ("placements", c.c_char_p),
        ("global_shape", c.POINTER(c.c_int64)),
        ("local_shape", c.POINTER(c.c_int64)),
        ("init", c.c_double),
        ("master", c.c_int32),
        ("reserved", c.c_int32),
    ]


class MetricInfo(Sized):
    """``stepc_metric_info``: one metric of a parameter, or of the model."""

    _fields_ = [
        ("struct_size", c.c_int32),
        ("axes", c.c_int32),
        ("name", c.c_char_p),
        ("global_shape", c.POINTER(c.c_int64)),
        ("local_shape", c.POINTER(c.c_int64)),
        ("count", c.c_int64),
    ]


COUNTERS = (
    "launches", "chunks", "exchanges", "messages_sent", "messages_received", "bytes_sent",
    "bytes_received",
)  # fmt: skip


class Counters(Sized):
    """``stepc_counters``: what a step did, or what the plan says that it does."""

    _fields_ = [("struct_size", c.c_int32), ("reserved", c.c_int32)] + [
        (name, c.c_int64) for name in COUNTERS
    ]


class Run(c.Structure):
    """``stepc_run``: ``length`` neighbouring elements, and the first one's index in the whole tensor and in a
    shard."""

    _fields_ = [("global", c.c_int64), ("local", c.c_int64), ("length", c.c_int64)]


class MeshInfo(Sized):
    """``stepc_mesh_info``: where a parameter lies, and what its matrices are."""

    _fields_ = [
        ("struct_size", c.c_int32),
        ("axes", c.c_int32),
        ("name", c.c_char_p),
        ("axis_names", c.POINTER(c.c_char_p)),
        ("axis_sizes", c.POINTER(c.c_int64)),
        ("ranks", c.POINTER(c.c_int64)),
        ("rank_count", c.c_int64),
        ("batch_axes", c.c_int32),
        ("flatten", c.c_int32),
        ("blocks", c.c_char_p),
        ("flatten_specified", c.c_int32),
        ("reserved", c.c_int32),
    ]


def _function(result: object, *arguments: object) -> type:
    return c.CFUNCTYPE(result, *arguments)


_i32, _i64, _f64, _str, _ptr = c.c_int32, c.c_int64, c.c_double, c.c_char_p, c.c_void_p


class LibraryTable(c.Structure):
    """``stepc_library``: the table that a compiled library exports."""

    _fields_ = [
        ("abi_version", _i32),
        ("struct_size", _i32),
        ("name", _str),
        ("chip", _str),
        ("plan_hash", c.c_uint64),
        ("plan", _ptr),
        ("plan_bytes", _i64),
        ("device", _i32),
        ("status", _i32),
        ("world_size", _function(_i32)),
        ("world_ranks", _function(c.POINTER(_i64))),
        ("create", _function(_i32, c.POINTER(Options), c.POINTER(_ptr), _str, _i64)),
        ("destroy", _function(_i32, _ptr)),
        ("last_error", _function(_str, _ptr)),
        ("workspace_bytes", _function(_i64)),
        ("parameter_count", _function(_i64)),
        ("parameter_info", _function(_i32, _ptr, _i64, c.POINTER(ParameterInfo))),
        ("state_info", _function(_i32, _ptr, _i64, _i32, c.POINTER(StateInfo))),
        ("mesh_info", _function(_i32, _i64, c.POINTER(MeshInfo))),
        ("shard_runs", _function(_i32, _ptr, _i64, _i32, c.POINTER(Run), _i64, c.POINTER(_i64))),
        ("route_count", _function(_i64)),
        ("route_name", _function(_str, _i64)),
        ("route_rule", _function(_str, _i64)),
        ("hyperparameter_count", _function(_i32, _i64)),
        ("hyperparameter_name", _function(_str, _i64, _i32)),
        ("hyperparameter_default", _function(_f64, _i64, _i32)),
        ("bind_parameter", _function(_i32, _ptr, _i64, _ptr, _i64)),
        ("bind_state", _function(_i32, _ptr, _i64, _i32, _ptr, _i64)),
        ("bind_gradient", _function(_i32, _ptr, _i64, _ptr, _i64)),
        ("bind_gradients", _function(_i32, _ptr, _ptr, _i64)),
        ("bind_steps", _function(_i32, _ptr, _ptr, _i32)),
        ("bind_hyperparameters", _function(_i32, _ptr, _ptr, _i64, _i64, _ptr, _i32)),
        ("set_hyperparameter", _function(_i32, _ptr, _i64, _str, _f64)),
        ("step", _function(_i32, _ptr)),
        ("enqueue", _function(_i32, _ptr)),
        ("poll", _function(_i32, _ptr, c.POINTER(_i32))),
        ("half_stepped", _function(_i32, _ptr, _ptr, _i64)),
        ("recover", _function(_i32, _ptr)),
        ("abort", _function(_i32, _ptr, _str)),
        ("counters", _function(_i32, _ptr, c.POINTER(Counters), c.POINTER(Counters))),
        ("in_process_world", _function(_i32, _i32, c.POINTER(Transport))),
        ("refresh", _function(_i32, _ptr)),
        ("target", _str),
        ("next", _ptr),  # the address of another LibraryTable
        ("problem", _str),
        ("table_of", _function(_ptr, _ptr)),  # returns the address of a LibraryTable
        ("metric_count", _function(_i64, _i64)),
        ("metric_info", _function(_i32, _ptr, _i64, _i32, c.POINTER(MetricInfo))),
        ("metrics", _function(_i32, _ptr, _i64, _i32, c.POINTER(c.c_float), _i64)),
        ("bound_state", _function(_i32, _ptr, _i64, _i32, c.POINTER(_ptr), c.POINTER(_i64))),
        ("move_states", _function(_i32, _ptr, _ptr, _ptr)),  # the address of a LibraryTable in between
        ("input_count", _function(_i64, _i64)),
        ("input_info", _function(_i32, _ptr, _i64, _i32, c.POINTER(StateInfo))),
        ("bind_input", _function(_i32, _ptr, _i64, _i32, _ptr, _i64)),
    ]


# Sizes under the System V ABI of 64-bit Linux; test/python/test_abi.py compares them with the
# compiler's own sizeof.
SIZES = {
    "stepc_operation": (Operation, 56),
    "stepc_operations": (Operations, 32),
    "stepc_transport": (Transport, 96),
    "stepc_traffic": (Traffic, 32),
    "stepc_options": (Options, 88),
    "stepc_parameter_info": (ParameterInfo, 104),
    "stepc_state_info": (StateInfo, 72),
    "stepc_metric_info": (MetricInfo, 40),
    "stepc_counters": (Counters, 64),
    "stepc_run": (Run, 24),
    "stepc_mesh_info": (MeshInfo, 72),
    "stepc_library": (LibraryTable, 416),
}
for _name, (_type, _size) in SIZES.items():
    if c.sizeof(_type) != _size:
        raise ImportError(f"{_name}: expected {_size} bytes, found {c.sizeof(_type)}")


def write_text(destination: object, size: int, text: str) -> None:
    """Writes ``text`` as a C string into a callback's ``error`` buffer, cut to fit."""
    if not destination or size <= 0:
        return
    data = text.encode("utf-8", "replace")[: size - 1] + b"\0"
    c.memmove(destination, data, len(data))
