"""The library of a world: compiled by one of its ranks, with the compiler's warnings told once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepc._compile import (
    Spec, compile_silently, definition_hash, option_arguments, store_received,
)  # fmt: skip
from stepc._library import Library
from stepc.errors import warn_user
from stepc.torch.meeting import Meeting, share_library


def build_library(
    spec: Spec,
    options: Mapping[str, Any],
    manifest: dict[str, Any],
    world: tuple[int, ...],
    meeting: Meeting,
    warned: set[str],
) -> Library | None:
    """Compiles, or takes what another rank of the world compiled; nothing in an empty world.

    The compiler's warnings are told except for those in ``warned``, and added to it.
    """
    told: list[str] = []

    def compile_now() -> Path:
        made = compile_silently(spec, manifest, option_arguments(**options))
        told.extend(made.warnings)
        return made.library

    if len(meeting.ranks) == 1:
        path = compile_now() if world else None
    else:
        data = share_library(
            world, lambda: compile_now().read_bytes(), meeting, definition_hash(spec, options)
        )
        path = store_received(data) if world else None
    for text in told:  # not where it compiled: in a thread, which the trainer's call did not start
        if text not in warned:
            warned.add(text)
            warn_user(text)
    return None if path is None else Library(path)
