"""stepc: compiled optimizer steps.

:func:`compile` turns an optimizer definition and a manifest into a library, :class:`Library` and
:class:`Instance` load and run one, and :mod:`stepc.torch` does all of it for a PyTorch trainer.
"""

from stepc._cache import cache_directory
from stepc._compile import Compiled, check, compile, explain, find_compiler
from stepc._device import Device
from stepc._library import Instance, Library
from stepc.errors import (
    AbiError, AgreementError, ArgumentError, CacheError, ChipError, CompileError, CompileWarning,
    CompilerNotFound, CountsError, DeviceError, GradientError, GraphError, HyperparameterError, PlanError,
    PoisonedError, StepcError, StepcMemoryError, StepcTimeout, TransportError, UnboundError, WorldError,
)  # fmt: skip

__version__ = "0.2.0"

__all__ = [
    "AbiError", "AgreementError", "ArgumentError", "CacheError", "ChipError", "CompileError",
    "CompileWarning", "Compiled", "CompilerNotFound", "CountsError", "Device", "DeviceError", "GradientError",
    "GraphError", "HyperparameterError", "Instance", "Library", "PlanError", "PoisonedError", "StepcError",
    "StepcMemoryError", "StepcTimeout", "TransportError", "UnboundError", "WorldError",
    "cache_directory", "check", "compile", "explain", "find_compiler",
]  # fmt: skip
