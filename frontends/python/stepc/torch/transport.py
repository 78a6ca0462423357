"""Everything that talks to other ranks: the library's transport, and planning's few exchanges.

No other module of this package calls a collective. A step's bytes travel over a process group of
the library's own (gloo, point to point), so that neither tags nor failures touch the trainer's.

gloo completes a receive only inside ``wait``, and a wait that times out breaks the whole group.
So every exchange has a waiting thread, ``test`` looks at its event, and ``abort`` is a wait that
times out on purpose: pending waits here then return, and peers see their connection closed.
"""

from __future__ import annotations

import atexit
import ctypes as c
import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from stepc import _abi
from stepc.errors import CompileError, StepcError

# How long `test` may wait for its event: without a pause the library's loop and the waiting
# thread would fight for the interpreter lock.
_TEST_SECONDS = 0.002
_BREAK_TAG = 2**31 - 1
_STORE_SECONDS = 1.0

_open: weakref.WeakSet[TorchTransport] = weakref.WeakSet()


class _Exchange:
    """Messages in flight, and the thread that waits for them in order."""

    def __init__(self, works: list[tuple[int, bool, dist.Work]], timeout: timedelta) -> None:
        self.works = works
        self.timeout = timeout
        self.done = threading.Event()
        self.error: str | None = None
        self.waiting_for = works[0][0] if works else -1
        self.thread = threading.Thread(target=self._wait, name="stepc-exchange", daemon=True)
        self.thread.start()

    def _wait(self) -> None:
        for peer, is_send, work in self.works:
            self.waiting_for = peer
            try:
                work.wait(self.timeout)
            except BaseException as error:  # noqa: BLE001 - it must reach the library as text
                what = "sending to" if is_send else "receiving from"
                self.error = f"{what} rank {peer} failed: {str(error).splitlines()[0]}"
                break
        self.works = []
        self.done.set()


class TorchTransport:
    """The transport table over a gloo process group of the world's ranks.

    Creating one is collective over ``ranks``; ``nonce`` is the same on all of them and new every
    time (a group that meets the addresses of an earlier one in the store would call the dead).
    ``timeout`` is the library's own deadline; waits of the process group last longer, so that the
    library is the one that decides.
    """

    def __init__(self, ranks: Sequence[int], timeout: float, nonce: str) -> None:
        self.rank = list(ranks).index(dist.get_rank())
        self.size = len(ranks)
        self._timeout = timedelta(seconds=2 * timeout + 60)
        # Not new_group: that one is collective over the whole job, or names groups by their ranks.
        default_store = dist.distributed_c10d._get_default_store()
        self._store = dist.PrefixStore(f"stepc/{nonce}", default_store)
        self._group = dist.ProcessGroupGloo(self._store, self.rank, self.size, self._timeout)
        self._handles: dict[int, _Exchange] = {}
        self._next = 1
        self._aborted: str | None = None
        self._lock = threading.Lock()
        self.table = _abi.Transport(
            version=_abi.TRANSPORT_VERSION,
            rank=self.rank,
            size=self.size,
            start=_abi.StartFunction(self._start),
            test=_abi.TestFunction(self._test),
            abort=_abi.AbortFunction(self._abort),
            destroy=_abi.DestroyFunction(self._destroy),
        )
        _open.add(self)

    # The four functions of the table. An exception must not cross into the library.

    def _start(
        self, context: Any, messages: Any, count: int, handle: Any, error: Any, size: int
    ) -> int:
        del context
        try:
            if self._aborted is not None:
                raise StepcError(f"the transport was aborted: {self._aborted}")
            works = []
            for index in range(count):
                message = messages[index]
                memory = (c.c_ubyte * message.bytes).from_address(message.buffer)
                view = torch.frombuffer(memory, dtype=torch.uint8)
                function = self._group.send if message.is_send else self._group.recv
                work = function([view], message.peer, message.tag)
                works.append((message.peer, bool(message.is_send), work))
            number = self._next
            self._next += 1
            self._handles[number] = _Exchange(works, self._timeout)
            handle[0] = number
            return _abi.OK
        except BaseException as problem:  # noqa: BLE001
            _abi.write_text(error, size, f"rank {self.rank}: {problem}")
            return _abi.ERROR_TRANSPORT

    def _test(self, context: Any, handle: int, error: Any, size: int) -> int:
        del context
        try:
            exchange = self._handles.get(handle)
            if exchange is None:
                raise StepcError("an unknown handle, or one that is gone")
            if not exchange.done.wait(_TEST_SECONDS):
                _abi.write_text(error, size, f"rank {exchange.waiting_for}")
                return 0
            del self._handles[handle]
            exchange.thread.join()
            if exchange.error is None:
                return 1
            _abi.write_text(error, size, self._reason_of_peers() or exchange.error)
        except BaseException as problem:  # noqa: BLE001
            _abi.write_text(error, size, f"rank {self.rank}: {problem}")
        return -_abi.ERROR_TRANSPORT

    def _abort(self, context: Any, reason: bytes | None) -> None:
        del context
        try:
            self.abort((reason or b"").decode("utf-8", "replace"))
        except BaseException:  # noqa: BLE001, S110 - nobody is left to tell
            pass

    def _destroy(self, context: Any) -> None:
        del context
        try:
            self.close()
        except BaseException:  # noqa: BLE001, S110
            pass

    def abort(self, reason: str) -> None:
        """Gives up everything in flight, here and on the peers that wait for this rank."""
        with self._lock:
            if self._aborted is not None:
                return
            self._aborted = reason or "no reason given"
        _within(lambda: self._store.set("abort", f"rank {self.rank} gave up: {reason}"))
        if self.size > 1:
            work = self._group.recv([torch.empty(1, dtype=torch.uint8)],
                                    (self.rank + 1) % self.size, _BREAK_TAG)  # fmt: skip
            try:
                work.wait(timedelta(milliseconds=1))
            except RuntimeError:
                pass
        for exchange in list(self._handles.values()):
            exchange.thread.join(5.0)
        self._handles.clear()

    def close(self) -> None:
        """Ends the process group. Anything still in flight is given up."""
        _open.discard(self)
        if self._handles:
            self.abort("the library instance was destroyed")
        self._group = None

    def _reason_of_peers(self) -> str | None:
        """What the rank that gave up first left in the group's store."""

        def read() -> str | None:
            store = self._store
            return store.get("abort").decode() if store.check(["abort"]) else None

        return _within(read)


def _within(function: Callable[[], Any]) -> Any:
    """Runs a call to the store, which may hang when the rank that serves it is the stopped one."""
    result: list[Any] = [None]

    def run() -> None:
        try:
            result[0] = function()
        except BaseException:  # noqa: BLE001, S110 - a reason is a courtesy
            pass

    thread = threading.Thread(target=run, name="stepc-store", daemon=True)
    thread.start()
    thread.join(_STORE_SECONDS)
    return result[0]


@atexit.register
def _close_all() -> None:
    # A thread that waits inside gloo while the interpreter ends would end the process by abort().
    for transport in list(_open):
        if transport._handles:
            transport.abort("the process ended")


# --- planning, once per prepare() ---


def gather_objects(item: Any, process_group: dist.ProcessGroup | None) -> list[Any]:
    """Every rank's object, in the order of the group's ranks."""
    group = process_group or dist.group.WORLD
    result: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(result, item, group=group)
    return result


def share_library(
    world: tuple[int, ...],
    compile_library: Callable[[], bytes],
    process_group: dist.ProcessGroup | None,
) -> bytes:
    """Compiles on the lowest rank of every world, and hands the bytes to that world's ranks.

    A failure is raised on every rank of the group: a rank that went on alone would wait for the
    others until its timeout.
    """
    group = process_group or dist.group.WORLD
    me = dist.get_rank()
    worlds = sorted(set(gather_objects(world, group)))
    mine: tuple[bytes | None, str | None] = (None, None)
    failure: Exception | None = None
    if me == world[0]:
        try:
            mine = (compile_library(), None)
        except Exception as error:  # noqa: BLE001 - it travels to the other ranks
            failure, mine = error, (None, str(error))
    result, problem = b"", None
    for one in worlds:
        box = [mine if me == one[0] else None]
        dist.broadcast_object_list(box, src=one[0], group=group)
        data, text = box[0]
        if text is not None and problem is None:
            problem = (one[0], text)
        if one == world and data is not None:
            result = data
    if failure is not None:
        raise failure
    if problem is not None:
        raise CompileError(f"{problem[1]}\n(compiled on rank {problem[0]})")
    return result


def agree(
    problem: Exception | None, process_group: dist.ProcessGroup | None, world: tuple[int, ...]
) -> str:
    """Raises on every rank of the group when one has a problem; otherwise a word that is new, and
    the same on all ranks of a world."""
    nonce = uuid.uuid4().hex
    group = process_group or dist.group.WORLD
    items = gather_objects((nonce, None if problem is None else str(problem)), group)
    if problem is not None:
        raise problem
    ranks = dist.get_process_group_ranks(group)
    for rank, (_, text) in zip(ranks, items, strict=True):
        if text is not None:
            raise StepcError(f"rank {rank} failed: {text}")
    return items[ranks.index(world[0])][0]


def redistribute(tensor: DTensor, placements: Sequence[Any]) -> DTensor:
    """Moves a DTensor to other placements: pending gradient sums, states that were resharded."""
    return tensor.redistribute(placements=list(placements))
