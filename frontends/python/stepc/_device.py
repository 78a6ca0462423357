"""Where an instance steps: the CPU, or a GPU, one of its streams and an allocator for the workspace."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import Protocol

from stepc import _abi


class Allocator(Protocol):
    """Memory of the device for the workspace, for example from the trainer's pool."""

    def allocate(self, size: int, alignment: int) -> int:
        """Allocates ``size`` bytes and returns the address; 0 if no memory is left."""

    def release(self, address: int) -> None: ...


@dataclass(frozen=True)
class Device:
    """A kind of device, its number, the stream on which steps are enqueued, and an allocator.

    ``kind`` is what a library says of itself (:attr:`stepc.Library.device`), and ``ordinal`` the
    GPU's number among those that the process sees. ``stream`` is the address of the trainer's
    stream (a ``CUstream``); 0 is the default stream. Without an allocator the driver allocates the
    workspace.
    """

    kind: int = _abi.DEVICE_CPU
    ordinal: int = 0
    stream: int = 0
    allocator: Allocator | None = None


CPU = Device()


def default_device(kind: int, transport: object | None) -> Device:
    """The device of an instance for which none is given: the CPU, the transport's GPU, or the first GPU."""
    return CPU if kind == CPU.kind else Device(kind, getattr(transport, "ordinal", 0))


class AllocatorCalls:
    """An allocator as C functions that a library calls. Its exceptions are kept in ``raised``."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self.raised: BaseException | None = None
        # The instance holds the addresses of these functions until it is destroyed.
        self._functions = (
            _abi.AllocateFunction(self._allocate), _abi.DeallocateFunction(self._release),
        )  # fmt: skip
        self.allocate, self.deallocate = (
            c.cast(function, c.c_void_p) for function in self._functions
        )

    def _allocate(self, context: int | None, size: int, alignment: int) -> int:
        del context
        try:
            return self._allocator.allocate(size, alignment)
        except BaseException as error:  # noqa: BLE001 - nothing may be raised into the library
            self.raised = error
            return 0

    def _release(self, context: int | None, address: int, size: int) -> None:
        del context, size
        try:
            self._allocator.release(address)
        except BaseException as error:  # noqa: BLE001
            self.raised = error
