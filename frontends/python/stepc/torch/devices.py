"""The device of the parameters, the CPU or one GPU, and what a step needs of it.

The optimizer's modules call torch.cuda here alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

from stepc import _abi
from stepc._compile import target_names
from stepc._device import CPU, Device
from stepc._library import Library
from stepc.errors import DeviceError, GraphError, StepcError

_NAMES = {_abi.DEVICE_CPU: "the CPU", _abi.DEVICE_CUDA: "NVIDIA's GPUs"}
_KINDS = {
    "cpu": _abi.DEVICE_CPU, "emulated": _abi.DEVICE_CPU, "interpret": _abi.DEVICE_CPU,
    "cuda": _abi.DEVICE_CUDA,
}  # fmt: skip


class Host:
    """The CPU: a step is done when the library returns."""

    kind = _abi.DEVICE_CPU
    # Where step counts and hyperparameters lie: the library's constant, and torch's device (None: the CPU).
    memory, numbers = _abi.MEMORY_HOST, None
    device = torch.device("cpu")
    target: str | None = None

    def options(self) -> Device:
        return CPU

    def keep_numbers(self) -> None:
        """The host's memory is also that of the device."""
        self.memory = _abi.MEMORY_DEVICE

    def expect_captures(self) -> None:
        raise StepcError("capturable: expected parameters on a GPU, found parameters on the CPU")

    def ordered(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class Gpu:
    """One GPU, and the stream of the library: torch's current stream at the time when this object is made."""

    kind = _abi.DEVICE_CUDA
    memory: int = _abi.MEMORY_HOST
    numbers: torch.device | None = None

    def __init__(self, device: torch.device) -> None:
        if torch.version.cuda is None:
            raise DeviceError(f"{device}: expected a torch for CUDA, found {torch.__version__}")
        self.device = device
        self._stream = torch.cuda.current_stream(device)

    @property
    def target(self) -> str:
        """The target of a library for this GPU's chip alone."""
        major, minor = torch.cuda.get_device_capability(self.device)
        # From Hopper on, an 'a' asks for code that runs on exactly this chip.
        return f"cuda:sm_{major}{minor}{'a' if major >= 9 else ''}"

    def options(self) -> Device:
        stream = self._stream.cuda_stream
        return Device(self.kind, self.device.index, stream, Pool(self.device, self._stream))

    def keep_numbers(self) -> None:
        """From now on step counts and hyperparameters lie on the GPU."""
        self.memory, self.numbers = _abi.MEMORY_DEVICE, self.device

    def expect_captures(self) -> None:
        """Prepares for graphs that capture steps. Step counts and hyperparameters lie on the GPU then. The
        stream is a new one, because no graph can capture the default stream, for which other streams wait."""
        self.keep_numbers()
        self._stream = torch.cuda.Stream(self.device)

    @contextlib.contextmanager
    def ordered(self) -> Iterator[None]:
        """Work that is enqueued within runs after the work on torch's current stream, and before later work
        there. The current stream may be another than the library's."""
        current = torch.cuda.current_stream(self.device)
        if current == self._stream:
            yield
            return
        self._stream.wait_stream(current)
        try:
            yield
        finally:
            current.wait_stream(self._stream)


class Pool:
    """Allocates the workspace from torch's caching allocator, so that torch counts it as its memory."""

    def __init__(self, device: torch.device, stream: torch.cuda.Stream) -> None:
        self._device, self._stream = device, stream
        self._given: dict[int, torch.Tensor] = {}

    def allocate(self, size: int, alignment: int) -> int:
        # Called in a thread of its own (stepc/_calls.py), which has other current streams. torch aligns
        # to 512 bytes. The library refuses memory that is aligned to less than it needs.
        with torch.cuda.stream(self._stream):
            memory = torch.empty(size, dtype=torch.uint8, device=self._device)
        self._given[memory.data_ptr()] = memory
        return memory.data_ptr()

    def release(self, address: int) -> None:
        del self._given[address]


def of_tensors(named: Iterable[tuple[str, torch.Tensor]]) -> Host | Gpu:
    """The device that all these tensors share. Raises StepcError if there are several."""
    first: tuple[str, torch.device] | None = None
    for name, tensor in named:
        device = tensor.device
        if device.type not in ("cpu", "cuda"):
            raise StepcError(
                f"parameter '{name}': expected a tensor on the CPU or on a GPU of NVIDIA's, found one "
                f"on {device}"
            )
        if first is None:
            first = name, device
        elif device != first[1]:
            raise StepcError(
                f"parameter '{name}': expected a tensor on {first[1]}, where '{first[0]}' is, found "
                f"one on {device}"
            )
    return Host() if first is None or first[1].type == "cpu" else Gpu(first[1])


def choose_target(library: Library, device: Host | Gpu) -> Library:
    """The library for the first of its targets whose parameters are on this kind of device."""
    found = library.for_device(device.kind)
    if found is None:
        raise _for_another(f"'{library.path}': expected a library", library.targets, device)
    return found


def expect_target(target: str | Sequence[str] | None, device: Host | Gpu) -> None:
    """Refuses targets if none of them is for the parameters' device, before anything is compiled.

    Kinds that are unknown here are left to the compiler.
    """
    kinds = [name.split(":")[0] for name in target_names(target)]
    if kinds and all(_KINDS.get(kind, device.kind) != device.kind for kind in kinds):
        raise _for_another("target: expected one", kinds, device)


def _for_another(expected: str, kinds: Sequence[str], device: Host | Gpu) -> DeviceError:
    other = "the CPU" if isinstance(device, Gpu) else "a GPU"
    return DeviceError(
        f"{expected} for {_NAMES[device.kind]}, as the parameters are on {device.device}, found "
        f"one for {' and '.join(kinds)}\nhint: compile for both, with "
        f'target=["cpu", "{device.target or "cuda:…"}"], or move the model to {other}'
    )


def with_stream(device: torch.device, function: Callable[[], None]) -> Callable[[], None]:
    """Wraps a function for another thread, so that it runs on the stream that is current here."""
    if device.type != "cuda":
        return function
    stream = torch.cuda.current_stream(device)

    def run() -> None:
        with torch.cuda.stream(stream):
            function()

    return run


def refuse_capture(why: str) -> None:
    """Raises if a graph captures torch's current stream."""
    # Without a CUDA context there is no capture, and the question would make a context.
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        raise GraphError(f"a graph captures the current stream: {why}")
