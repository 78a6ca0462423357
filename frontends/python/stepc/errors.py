"""The errors of a compiled step: one class per status code of ``stepc.h``."""

from __future__ import annotations

import os
import sys
import warnings


def plural(count: int, what: str) -> str:
    """``1 rank``, ``2 ranks``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


class StepcError(RuntimeError):
    """A compiled library refused or failed. ``status`` is the code of ``stepc.h``."""

    status: int = -1

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        #: Names of parameters that, with their states, may be changed by half a step.
        self.half_stepped: list[str] = []


class ArgumentError(StepcError):
    """An ill-formed argument, or an index out of range."""

    status = 1


class AbiError(StepcError):
    """The library speaks another version of the interface."""

    status = 2


class ChipError(StepcError):
    """The CPU lacks instructions that the library was compiled for."""

    status = 3


class WorldError(StepcError):
    """Rank or size do not fit the library's world."""

    status = 4


class PlanError(StepcError):
    """Ranks hold different libraries, or the library was built for other parameters."""

    status = 5


class UnboundError(StepcError):
    """A pointer is missing although the local shard is not empty."""

    status = 6


class GradientError(StepcError):
    """A gradient is absent, or is not what the library was compiled for."""

    status = 7


class StepcTimeout(StepcError, TimeoutError):
    """A peer did not answer in time."""

    status = 8


class TransportError(StepcError):
    """The transport failed, or a peer gave up."""

    status = 9


class StepcMemoryError(StepcError, MemoryError):
    """The workspace could not be allocated."""

    status = 10


class CountsError(StepcError):
    """The messages or launches of a step differ from the planned ones."""

    status = 11


class PoisonedError(StepcError):
    """An earlier step failed half way, so that some parameters and states may have changed and others not."""

    status = 12


class HyperparameterError(StepcError):
    """A hyperparameter without default was never set."""

    status = 13


class DeviceError(StepcError):
    """The device is not there, not the one that the library is for, or failed."""

    status = 14


class GraphError(StepcError):
    """A graph of the device cannot hold something, or still holds what was to be destroyed."""

    status = 15


class AgreementError(StepcError):
    """Ranks step with other hyperparameters or step counts than this one."""

    status = 16


_BY_STATUS: dict[int, type[StepcError]] = {
    cls.status: cls
    for cls in (
        ArgumentError, AbiError, ChipError, WorldError, PlanError, UnboundError, GradientError,
        StepcTimeout, TransportError, StepcMemoryError, CountsError, PoisonedError,
        HyperparameterError, DeviceError, GraphError, AgreementError,
    )
}  # fmt: skip


def error_for(status: int, message: str) -> StepcError:
    """The exception for a status code; an unknown code stays a plain :class:`StepcError`."""
    return _BY_STATUS.get(status, StepcError)(message or f"stepc status {status}", status)


class CompileError(StepcError):
    """The compiler refused its input. The message is its diagnostics, verbatim."""

    def __init__(self, diagnostics: str, exit_code: int = 1) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics
        self.exit_code = exit_code


class CompilerNotFound(StepcError):
    """No ``stepc`` program: set STEPC, put it on PATH, or pass a ready library."""


class CacheError(StepcError):
    """The folder of compiled libraries cannot be used: STEPC_CACHE and STEPC_CACHE_LIMIT say where it is and
    how large it may become."""


class CompileWarning(UserWarning):
    """A warning of the compiler: its text, with source line and hint."""


def warn_user(text: str, category: type[Warning] = CompileWarning) -> None:
    """Gives a warning that points at the line which called stepc.

    Between that line and this one are functions of this package and, since an optimizer is one of
    torch's, wrappers of torch.
    """
    inside = [os.path.dirname(os.path.abspath(__file__))]
    if "torch" in sys.modules:
        inside.append(os.path.dirname(os.path.abspath(sys.modules["torch"].__file__)))
    prefixes = tuple(folder + os.sep for folder in inside)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(prefixes):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
