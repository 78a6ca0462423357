"""The tables of functions that a library exports: one for each of its targets."""

from __future__ import annotations

import ctypes as c
import os

from stepc import _abi
from stepc._abi import LibraryTable
from stepc._file import problem_of_file
from stepc._inputs import shown_path
from stepc.errors import AbiError, PlanError, StepcError, error_for


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    """The text of the loader's error, which may quote bytes of a damaged library."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "backslashreplace")
    if isinstance(error, UnicodeEncodeError):
        return "expected a path in UTF-8"
    return str(error)


def open_tables(path: str) -> tuple[c.CDLL, list[LibraryTable]]:
    """Opens the library at ``path``. Its tables are in the order in which its targets were named."""
    shown = shown_path(path)
    try:
        if problem := problem_of_file(os.path.abspath(path)):
            raise PlanError(f"cannot open the library '{shown}': {problem}")
        # An absolute path, because the loader searches its own folders for a name without a folder.
        dll = c.CDLL(os.path.abspath(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except (OSError, ValueError) as error:
        raise StepcError(f"cannot open the library '{shown}': {_reason(error)}") from error
    try:
        entry = dll.stepc_library_table
    except (AttributeError, ValueError):
        raise AbiError(
            f"'{shown}' is not a stepc library: expected the symbol stepc_library_table, found none"
        ) from None
    entry.restype = c.POINTER(LibraryTable)
    table = entry()
    if not table:
        raise AbiError(f"'{shown}' returned no table")
    found = table.contents.abi_version
    if found != _abi.ABI_VERSION:
        raise AbiError(
            f"'{shown}': expected ABI version {_abi.ABI_VERSION}, found {found}; "
            "compile it again with this stepc"
        )
    if table.contents.struct_size < c.sizeof(LibraryTable):
        raise AbiError(
            f"'{shown}': expected a table of {c.sizeof(LibraryTable)} bytes, "
            f"found {table.contents.struct_size}"
        )
    tables = []
    while table:
        if table.contents.status != _abi.OK:
            raise error_for(table.contents.status, f"'{shown}': {text(table.contents.problem)}")
        tables.append(table.contents)
        table = c.cast(table.contents.next, c.POINTER(LibraryTable))
    return dll, tables


def local_shape(pointer: object, axes: int, placements: str) -> tuple[int, ...] | None:
    """The shape of a shard; None if it has none. In a flat or owned placement, and if a state stays with
    blocks, a scalar's shard has one axis, the number of its elements."""
    if pointer and any(word in placements for word in ("flat", "owned", "blocks")):
        return tuple(pointer[i] for i in range(max(axes, 1)))
    return shape(pointer, axes)


def shape(pointer: object, axes: int) -> tuple[int, ...] | None:
    # A shape without axes may be a null pointer too.
    if not pointer:
        return () if axes == 0 else None
    return tuple(pointer[i] for i in range(axes))
