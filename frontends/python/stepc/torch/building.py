"""The library of a world, compiled by one of its ranks with the compiler's warnings told once, and
this rank's instance of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stepc._cache import Cache
from stepc._compile import compile_silently, option_arguments
from stepc._inputs import Spec, definition_hash
from stepc._library import Instance, Library
from stepc.errors import CompileError, StepcError, warn_user
from stepc.torch.devices import Gpu, Host
from stepc.torch.gpu_transport import GpuTransport
from stepc.torch.meeting import Meeting, share_library
from stepc.torch.transport import TorchTransport


def compile_options(library: Any, **options: Any) -> dict[str, Any]:
    """An optimizer's compile options. Raises TypeError if some are given beside a ready library."""
    given = [f"{name}=" for name, value in options.items() if value or value == 0]
    if library is not None and given:
        raise TypeError(
            "expected no compile options beside library=, which was compiled already, found "
            f"{' and '.join(given)}"
        )
    # Iterables become tuples: options are read more than once, and a generator can be read only once.
    options = {
        name: tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        else value for name, value in options.items()
    }  # fmt: skip
    option_arguments(**options)  # refuses ill-formed options, before anything is routed
    return options


def build_library(
    spec: Spec,
    options: Mapping[str, Any],
    manifest: dict[str, Any],
    world: tuple[int, ...],
    meeting: Meeting,
    warned: set[str],
    before: str | None = None,
) -> Library | None:
    """Compiles the library, or takes the one that another rank of the world compiled. Returns None in an
    empty world. Owners stay as in the library ``before`` of the rank that compiles, if that costs little and
    the compiler can read it: it may be gone from the cache, or be linked with what only this process has.

    Gives the compiler's warnings that are not in ``warned``, and adds them to ``warned``.
    """
    told: list[str] = []

    def compile_now() -> Path:
        plain, made = option_arguments(**options), None
        if before is not None and not any(one.startswith("--keep-owners") for one in plain):
            with contextlib.suppress(CompileError):
                kept = option_arguments(**options, keep_owners=before)
                made = compile_silently(spec, manifest, kept)
        made = made or compile_silently(spec, manifest, plain)
        told.extend(made.warnings)
        return made.library

    if len(meeting.ranks) == 1:
        path = compile_now() if world else None
    else:
        made_of = definition_hash(spec, option_arguments(**options))
        data = share_library(world, lambda: compile_now().read_bytes(), meeting, made_of)
        path = Cache().store(data) if world else None
    for text in told:  # here, because compile_now() may run in a thread, without the trainer's frames
        if text not in warned:
            warned.add(text)
            warn_user(text)
    return None if path is None else Library(path)


def make_instance(
    library: Library, device: Host | Gpu, world: tuple[int, ...], meeting: Meeting, threads: int,
    timeout: float,
) -> Instance:  # fmt: skip
    """Connects the ranks of the world, if there are several, and opens the library."""
    transport = None
    if len(world) > 1:
        meet = world, timeout, f"{meeting.nonce}/{world[0]}"
        is_gpu = isinstance(device, Gpu)
        transport = GpuTransport(*meet, device.device.index) if is_gpu else TorchTransport(*meet)
    try:
        return Instance(
            library, transport, threads=threads, timeout=timeout, device=device.options()
        )
    except StepcError as error:
        if transport is not None:
            transport.abort(str(error))
            transport.close()
        raise
