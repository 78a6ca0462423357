"""The transport between GPUs, over NCCL (``stepc/nccl.h``), and how its ranks find each other."""

from __future__ import annotations

import contextlib
import ctypes as c
import os
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from stepc import _abi
from stepc._compile import find_compiler
from stepc.errors import CompilerNotFound, StepcError, StepcTimeout, TransportError, error_for

_ID_BYTES = 128
_KEY = "nccl_id"
_PAUSE = 0.01


class Store(Protocol):
    """The methods that are used of a store of ``torch.distributed``. The store must belong to one world
    alone: see ``PrefixStore``."""

    def set(self, key: str, value: bytes) -> None: ...
    def wait(self, keys: Sequence[str], timeout: timedelta) -> None: ...
    def get(self, key: str) -> bytes: ...


class NcclTransport:
    """One rank's transport: what :class:`stepc.Instance` takes."""

    def __init__(self, library: c.CDLL, table: _abi.Transport, ordinal: int) -> None:
        self._library = library  # keeps the functions loaded
        # A copy, since table.destroy refers to the field in the table, which gets another function below.
        address = c.cast(table.destroy, c.c_void_p).value
        self._end: _abi.DestroyFunction | None = _abi.DestroyFunction(address)
        self.rank, self.size, self.ordinal = table.rank, table.size, ordinal
        # An instance destroys its transport. If no instance was made, close() does.
        table.destroy = _abi.DestroyFunction(self._destroy)
        self.table = table

    def _destroy(self, context: int | None) -> None:
        end, self._end = self._end, None
        if end is not None:
            end(context)

    def abort(self, reason: str) -> None:
        """Stops exchanges that are under way. Peers notice by their deadlines, or when NCCL reports it."""
        if self._end is not None:
            self.table.abort(self.table.context, reason.encode("utf-8", "replace"))

    def close(self) -> None:
        self._destroy(self.table.context)


def find_library(named: str | os.PathLike[str] | None = None) -> Path:
    """``libstepc_nccl.so``: as named, $STEPC_NCCL, beside the compiler (``../lib``), or in this package."""
    given = named or os.environ.get("STEPC_NCCL")
    if not given:
        folders = [Path(__file__).resolve().parent / "lib"]
        with contextlib.suppress(CompilerNotFound):
            folders.insert(0, find_compiler().parent.parent / "lib")
        places = [folder / "libstepc_nccl.so" for folder in folders]
        given = next((place for place in places if place.is_file()), places[0])
    if not Path(given).is_file():
        raise StepcError(
            f"expected libstepc_nccl.so, found none at {given}: set STEPC_NCCL to its path"
        )
    return Path(given)


def nccl_transport(
    rank: int,
    size: int,
    ordinal: int,
    *,
    store: Store | None = None,
    file: str | os.PathLike[str] | None = None,
    timeout: float = 120.0,
    library: str | os.PathLike[str] | None = None,
) -> NcclTransport:
    """The transport of ``rank`` of ``size``, on the GPU with number ``ordinal``. All ranks must call this
    function. It returns when all have called it, or raises. It waits up to ``timeout`` seconds for the id,
    and again for the peers. Later NCCL may take ``timeout`` seconds to begin an exchange.

    Rank 0 makes an id. The other ranks get it by ``store``, or by ``file``, a path on a file system that all
    ranks see. No file may exist at that path. The file is removed when all ranks have met.
    """
    if (store is None) == (file is None):
        raise StepcError("nccl_transport: expected either store or file")
    functions = _open(find_library(library))
    identifier, problem = b"", None
    if rank == 0:
        try:
            identifier = _make_id(functions)
        except StepcError as error:  # is sent to the others, who would wait for the id
            problem = error
        text = identifier or str(problem).encode("utf-8", "replace")
        store.set(_KEY, text) if store is not None else _write(Path(file), text)
        if problem is not None:
            raise problem
    else:
        text = _wait_for(store, timeout) if store is not None else _read(Path(file), timeout)
        if len(text) != _ID_BYTES:
            raise TransportError(f"rank 0 has no NCCL: {text.decode('utf-8', 'replace')}")
        identifier = text
    table = _abi.Transport(struct_size=c.sizeof(_abi.Transport))
    error = c.create_string_buffer(4096)
    status = functions.stepc_nccl_transport(
        identifier, rank, size, ordinal, timeout, c.byref(table), error, len(error)
    )
    if rank == 0 and file is not None:
        Path(file).unlink(missing_ok=True)
    if status != _abi.OK:
        raise error_for(status, f"rank {rank}: {error.value.decode('utf-8', 'replace')}")
    return NcclTransport(functions, table, ordinal)


def _open(path: Path) -> c.CDLL:
    functions = c.CDLL(os.fspath(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    functions.stepc_nccl_unique_id.argtypes = [c.c_char_p, c.c_char_p, c.c_int64]
    functions.stepc_nccl_transport.argtypes = [
        c.c_char_p, c.c_int32, c.c_int32, c.c_int32, c.c_double, c.POINTER(_abi.Transport),
        c.c_char_p, c.c_int64,
    ]  # fmt: skip
    return functions


def _make_id(functions: c.CDLL) -> bytes:
    identifier = c.create_string_buffer(_ID_BYTES)
    error = c.create_string_buffer(4096)
    status = functions.stepc_nccl_unique_id(identifier, error, len(error))
    if status != _abi.OK:
        raise error_for(status, error.value.decode("utf-8", "replace"))
    return identifier.raw


def _wait_for(store: Store, timeout: float) -> bytes:
    try:
        store.wait([_KEY], timedelta(seconds=timeout))
        return bytes(store.get(_KEY))
    except Exception as error:
        raise StepcTimeout(
            f"expected NCCL's id from rank 0 within {timeout:g} s, found none: {error}"
        ) from error


def _write(path: Path, text: bytes) -> None:
    """Writes a file in one step, and never over a file that another world has left there."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(text)
        os.link(temporary, path)
    except FileExistsError:
        raise StepcError(f"expected nothing at {path}, found a file: another world's id?") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _read(path: Path, timeout: float) -> bytes:
    begin = time.monotonic()
    while not path.is_file():
        if time.monotonic() - begin > timeout:
            raise StepcTimeout(
                f"expected NCCL's id from rank 0 at {path} within {timeout:g} s, found no file"
            )
        time.sleep(_PAUSE)
    return path.read_bytes()
