"""Where libraries step: a GPU, or in a dry run this CPU in its place, with libraries of `emulated`."""

import contextlib
import json
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from stepc import _abi
from stepc._device import CPU, Device
from stepc._library import Library


class Failed(Exception):
    """What a check expected is not so."""


class Skipped(Exception):
    """Why a check cannot be made here."""


@dataclass(frozen=True)
class Check:
    name: str
    seconds: float  # after which it is ended
    function: Callable[[], str]  # says in a line what was found


@dataclass(frozen=True)
class Place:
    """A device of torch, and of an instance."""

    device: torch.device

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    def options(self, allocator=None) -> Device:
        if not self.is_gpu:
            return CPU if allocator is None else Device(allocator=allocator)
        stream = torch.cuda.current_stream(self.device).cuda_stream
        return Device(_abi.DEVICE_CUDA, self.device.index, stream, allocator)

    def stream(self) -> "torch.cuda.Stream | None":
        """A stream of its own; none of a CPU."""
        return torch.cuda.Stream(self.device) if self.is_gpu else None

    def on(self, stream: "torch.cuda.Stream | None") -> contextlib.AbstractContextManager:
        """Makes a stream torch's current one."""
        return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)

    def synchronize(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize(self.device)


HOST = Place(torch.device("cpu"))


class Machine:
    def __init__(self, folder: Path, dry: bool) -> None:
        self.folder, self.dry = folder, dry
        self.about = json.loads((folder / "cases.json").read_text())
        self.cases = self.about["cases"]
        self.place = HOST if dry else Place(torch.device("cuda", 0))

    def path(self, case: str, kind: str = "device") -> Path:
        found = self.cases.get(case, {}).get(kind)
        if found is None:
            raise Skipped(f"{case} was not built")
        packed = self.folder / found
        path = packed.with_suffix("")
        if not path.exists():
            own = path.with_suffix(f".{os.getpid()}")
            own.write_bytes(lzma.decompress(packed.read_bytes()))
            own.rename(path)
        return path

    def library(self, case: str, kind: str = "device") -> Library:
        return Library(self.path(case, kind))

    def fastest(self, case: str) -> Library:
        """With products on tensor cores, where they were built."""
        return self.library(case, "cores" if "cores" in self.cases.get(case, {}) else "device")

    def named(self, prefix: str) -> list[str]:
        """Cases whose names begin so, in the order in which they were built."""
        return [name for name in self.cases if name.split(".")[0] == prefix]
