"""The transport of the library's own messages: the functions of its table, over :class:`Links`."""

from __future__ import annotations

import contextlib
import ctypes as c
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from stepc import _abi
from stepc._calls import cause
from stepc.errors import StepcError, StepcTimeout, TransportError
from stepc.torch.devices import with_stream
from stepc.torch.links import Exchange, Links, read, short, within

# How long `test` may wait for its event: without a pause the library's loop and the waiting
# thread would fight for the interpreter lock.
_TEST_SECONDS = 0.002
# How often a rank inside torch's collective looks whether a peer gave up.
_LOOK_SECONDS = 0.25


class TorchTransport(Links):
    """The transport table over gloo connections of the world's ranks.

    ``timeout`` is the library's own deadline in seconds: the library decides how long it waits.
    """

    def __init__(self, ranks: Sequence[int], timeout: float, nonce: str) -> None:
        super().__init__(ranks, timeout, nonce)
        self._handles: dict[int, tuple[Exchange, list[tuple[bool, int]]]] = {}
        self._communicators: dict[int, tuple[int, ...]] = {}
        self._next = 1  # the last number of a handle or communicator
        # The first exception inside a function of the table.
        self.raised: BaseException | None = None
        self._traffic = _abi.Traffic()
        self.table = _abi.Transport(
            version=_abi.TRANSPORT_VERSION,
            struct_size=c.sizeof(_abi.Transport),
            rank=self.rank,
            size=self.size,
            kinds=1 << _abi.SEND | 1 << _abi.RECEIVE | 1 << _abi.ALL_GATHER,
            start=_abi.StartFunction(self._start),
            test=_abi.TestFunction(self._test),
            abort=_abi.AbortFunction(self._abort),
            destroy=_abi.DestroyFunction(self._destroy),
            open_communicator=_abi.OpenFunction(self._open),
            close_communicator=_abi.CloseFunction(self._close),
            traffic=_abi.TrafficFunction(self._report),
        )

    # The functions of the table. An exception must not cross into the library: ctypes would
    # return a code that nobody has set. Signal handlers do not run here (see stepc/_calls.py).

    def _start(self, context: Any, group: Any, handle: Any, error: Any, size: int) -> int:
        del context
        try:
            if self.aborted is not None:
                raise StepcError(f"the transport was aborted: {self.aborted}")
            messages = [message for one in group[0] for message in self._messages(one)]
            handle[0] = self._number()
            exchange = self.run([self._begin(*message) for message in messages])
            self._handles[handle[0]] = exchange, [(sends, moved) for sends, _, _, moved, _ in messages]
            return _abi.OK
        except BaseException as problem:  # noqa: BLE001
            return self._kept(problem, error, size)

    def _messages(self, one: _abi.Operation) -> Iterator[tuple[bool, int, int, int, int]]:
        """Splits an operation into messages: for each whether it sends, its peer, memory, bytes and tag."""
        ranks = self._communicators[one.communicator] if one.communicator else range(self.size)
        if one.kind in (_abi.SEND, _abi.RECEIVE):
            sends = one.kind == _abi.SEND
            yield sends, ranks[one.peer], one.send if sends else one.receive, one.bytes, one.tag
            return
        if one.kind != _abi.ALL_GATHER:
            raise StepcError(f"expected sends, receives and all-gathers, found kind {one.kind}")
        for index, rank in enumerate(ranks):
            part = one.receive + index * one.bytes
            if rank != self.rank:
                yield True, rank, one.send, one.bytes, one.tag
                yield False, rank, part, one.bytes, one.tag
            elif part != one.send:
                c.memmove(part, one.send, one.bytes)

    def _begin(self, sends: bool, peer: int, memory: int, size: int, tag: int) -> tuple[str, Any]:
        view = torch.frombuffer((c.c_ubyte * size).from_address(memory), dtype=torch.uint8)
        work = (self.group.send if sends else self.group.recv)([view], peer, tag)
        return f"{'sending to' if sends else 'receiving from'} {self.name(peer)}", work

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _test(self, context: Any, handle: int, error: Any, size: int) -> int:
        del context
        try:
            exchange, messages = self._handles.get(handle, (None, []))
            if exchange is None:
                if self.aborted is not None:
                    raise StepcError(f"the transport was aborted: {self.aborted}")
                raise StepcError("an unknown handle, or one that is gone")
            if not exchange.done.wait(_TEST_SECONDS):
                _abi.write_text(error, size, exchange.waiting_for)
                return 0
            self._handles.pop(handle, None)
            exchange.thread.join()
            if exchange.error is None:
                self._count(messages)
                return 1
            _abi.write_text(error, size, self.reason_of_peers() or exchange.error)
            return -_abi.ERROR_TRANSPORT
        except BaseException as problem:  # noqa: BLE001
            return -self._kept(problem, error, size)

    def _count(self, messages: list[tuple[bool, int]]) -> None:
        """Counts finished messages: each has whether it was sent, and its bytes."""
        for sends, size in messages:
            if sends:
                self._traffic.messages_sent += 1
                self._traffic.bytes_sent += size
            else:
                self._traffic.messages_received += 1
                self._traffic.bytes_received += size

    def _report(self, context: Any, traffic: Any) -> None:
        del context
        traffic[0] = self._traffic

    def _kept(self, problem: BaseException, error: Any, size: int) -> int:
        """Keeps an exception for the library's caller to raise. Writes its text for the library, and returns
        the code."""
        if self.raised is None:
            self.raised = problem
        with contextlib.suppress(BaseException):  # no text is better than no code
            text = self.reason_of_peers() or f"{self.name(self.rank)}: {cause(problem)}"
            _abi.write_text(error, size, text)
        return _abi.ERROR_TRANSPORT

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

    def _open(
        self, context: Any, members: Any, count: int, communicator: Any, handle: Any, error: Any,
        size: int,
    ) -> int:  # fmt: skip
        del context
        try:
            ranks = tuple(members[index] for index in range(count))
            communicator[0], handle[0] = self._number(), None
            self._communicators[communicator[0]] = ranks
            return _abi.OK
        except BaseException as problem:  # noqa: BLE001
            return self._kept(problem, error, size)

    def _close(self, context: Any, communicator: int) -> None:
        del context
        self._communicators.pop(communicator, None)

    def abort(self, reason: str) -> None:
        super().abort(reason)
        self._handles.clear()

    # Messages by which ranks that stepped tell a rank that waits alone in `prepare`.

    def tell_failed(self, reason: str) -> None:
        """Tells ranks that wait for this one in ``prepare`` that it stepped, and failed."""
        within(lambda: self.store.set("failed", f"{self.name(self.rank)}\n{reason}"))

    def failed(self) -> tuple[str, str] | None:
        """A rank whose step failed, and the reason. None if no rank has told of a failure."""
        text = read(self.store, "failed")
        return None if text is None else tuple(text.split("\n", 2)[:2])


@dataclass(frozen=True)
class Move:
    """A DTensor, such as a resharded state, and the placements that it shall get."""

    what: str
    tensor: DTensor
    placements: Sequence[Any]

    def text(self) -> str:
        return f"{self.what} from {list(self.tensor.placements)} to {list(self.placements)}"


def redistribute(moves: Sequence[Move], transport: TorchTransport | None) -> list[DTensor]:
    """Moves DTensors to other placements, on all ranks of their meshes or on none.

    torch's collectives would wait for a rank that does not take part until the timeout of the
    trainer's process group, and break that group. So ranks first tell one another what they move.
    """
    if transport is not None:
        _agree(moves, transport)
    results: list[DTensor] = []
    problems: list[Exception] = []

    def move() -> None:
        try:
            with torch.no_grad():
                for one in moves:
                    results.append(one.tensor.redistribute(placements=list(one.placements)))
        except Exception as error:  # noqa: BLE001 - raised below
            problems.append(error)

    if transport is None:
        move()
    else:
        # In a thread, so that this rank's wait ends even if a peer stops or fails inside torch's collective.
        move = with_stream(moves[0].tensor.device, move)
        thread = threading.Thread(target=move, name="stepc-redistribute", daemon=True)
        thread.start()
        limit = time.monotonic() + transport.timeout
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if not thread.is_alive():
                break
            reason = transport.reason_of_peers()
            if reason is not None:
                raise TransportError(f"{moves[0].text()}: {reason}")
            if time.monotonic() > limit:
                raise StepcTimeout(
                    f"{moves[0].text()}: torch's redistribution did not end within "
                    f"{transport.timeout:g} s on {transport.name(transport.rank)}"
                )
    if problems:
        reason = None if transport is None else transport.reason_of_peers()
        text = f"{moves[len(results)].text()}: {reason or short(problems[0])}"
        raise TransportError(text) from problems[0]
    return results


def _agree(moves: Sequence[Move], transport: TorchTransport) -> None:
    """Raises StepcError unless all ranks of the moved tensors' meshes make the same moves in one order."""
    mine: dict[int, list[str]] = {}
    for move in moves:
        for rank in move.tensor.device_mesh.mesh.flatten().tolist():
            index = transport.ranks.index(rank)
            if index != transport.rank:
                mine.setdefault(index, []).append(move.text())
    # Less than the peers' own deadline, so that the rank that knows the cause reports it first.
    theirs = transport.exchange(
        mine, f"{moves[0].text()}: expected every rank of its mesh to do the same",
        0.9 * transport.timeout,
    )  # fmt: skip
    for peer, own in mine.items():
        if theirs[peer] != own:
            only = [text for text in own if text not in theirs[peer]]
            others = [text for text in theirs[peer] if text not in own]
            raise StepcError(
                f"{(only or others or own)[0]}: expected every rank of its mesh to do the same, in "
                f"one order, but {transport.name(transport.rank if only else peer)} does so and "
                f"{transport.name(peer if only else transport.rank)} "
                + ("does not" if only or others else "in another order")
            )
