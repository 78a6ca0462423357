"""Connections of the library's own between some ranks, on which every wait ends.

They are a gloo process group, point to point, so that neither tags nor failures touch the
trainer's groups. gloo completes a receive only inside ``wait``, and a wait that times out breaks the
whole group. So every exchange has a waiting thread, and ``abort`` is a wait that times out on purpose.
Then pending waits on this rank return, and peers see their connection closed. The reason travels through
the store, if the store answers.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from stepc.errors import StepcTimeout, TransportError

# Tags that the library's messages do not use: these count from zero.
_BREAK_TAG, _SIZE_TAG, _DATA_TAG = 2**31 - 1, 2**31 - 2, 2**31 - 3
_STORE_SECONDS = 1.0
# How long abort() waits for the threads whose waits it broke. They are daemon threads.
_JOIN_SECONDS = 5.0

_open: weakref.WeakSet[Links] = weakref.WeakSet()


class Exchange:
    """Messages in flight, and the thread that waits for them in order.

    The caller decides how long to wait for the thread. gloo's own limit is later, since gloo's error
    would give no reason.
    """

    def __init__(self, works: list[tuple[str, dist.Work]], seconds: float) -> None:
        self.works = works
        self.limit = timedelta(seconds=2 * seconds + 60)
        self.done = threading.Event()
        self.error: str | None = None
        self.waiting_for = works[0][0] if works else "nothing"
        self.thread = threading.Thread(target=self._wait, name="stepc-exchange", daemon=True)
        self.thread.start()

    def _wait(self) -> None:
        for what, work in self.works:
            self.waiting_for = what
            try:
                work.wait(self.limit)
            except BaseException as error:  # noqa: BLE001 - it must reach the library as text
                self.error = f"{what} failed: {short(error)}"
                break
        self.works = []
        self.done.set()


class Links:
    """Point-to-point connections of ``ranks``, global ranks in an order that all of them use.

    Creating them is collective over ``ranks``. ``nonce`` must be the same on all of them and new every
    time. Otherwise gloo would find the addresses of an earlier group in the store, and connect to those.
    """

    def __init__(self, ranks: Sequence[int], timeout: float, nonce: str) -> None:
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(dist.get_rank())
        self.size = len(self.ranks)
        self.timeout = timeout
        self.aborted: str | None = None
        # The reason of the rank that gave up first, if another rank gave up before this one.
        self.first_cause: str | None = None
        self._process = os.getpid()
        # Not new_group(), which is collective over the whole job, or names groups by their ranks.
        self.store = dist.PrefixStore(f"stepc/{nonce}", default_store())
        self._lock = threading.Lock()
        self._running: weakref.WeakSet[Exchange] = weakref.WeakSet()
        try:
            self.group: dist.ProcessGroupGloo | None = dist.ProcessGroupGloo(
                self.store, self.rank, self.size, timedelta(seconds=timeout)
            )
            self._await_all()
        except RuntimeError as error:
            raise TransportError(
                f"expected to connect the ranks {list(self.ranks)} within {timeout:g} s, but "
                f"{short(error)}"
            ) from error
        _open.add(self)

    def _await_all(self) -> None:
        """Returns once all ranks are connected. gloo returns on each rank as soon as that rank is. If that
        rank then found an error of its own and closed its connections, gloo would fail on slower ranks,
        which would report a lost connection."""
        if self.store.add("connected", 1) == self.size:
            self.store.set("all connected", "1")
        self.store.wait(["all connected"], timedelta(seconds=self.timeout))

    def name(self, index: int) -> str:
        """``rank 1``, with the global rank if that is another. The library names ranks so, too."""
        rank = self.ranks[index]
        return f"rank {index}" if rank == index else f"rank {index} (global rank {rank})"

    def run(self, works: list[tuple[str, dist.Work]]) -> Exchange:
        """Starts a thread that waits for ``works``, which are under way."""
        exchange = Exchange(works, self.timeout)
        self._running.add(exchange)
        return exchange

    def finish(self, exchange: Exchange, what: str, seconds: float) -> None:
        """Waits for an exchange. If it fails, tells the peers and raises an error."""
        late = not exchange.done.wait(seconds)
        if not late and exchange.error is None:
            return
        if late:
            text = f"{what}: {exchange.waiting_for}: no answer within {seconds:g} s"
        else:
            text = f"{what}: {self.reason_of_peers() or exchange.error}"
        self.abort(text)
        raise (StepcTimeout if late else TransportError)(self.with_first_cause(text))

    def exchange(
        self, items: Mapping[int, Any], what: str, seconds: float | None = None
    ) -> dict[int, Any]:
        """Sends each peer of ``items``, by its index, an object, and returns what the peers sent.

        A peer that sends nothing within ``seconds`` is an error that names it and ``what``.
        """
        limit = self.timeout if seconds is None else seconds
        sent = {peer: torch.frombuffer(bytearray(pickle.dumps(item)), dtype=torch.uint8)
                for peer, item in items.items()}  # fmt: skip
        sizes = {peer: torch.zeros(1, dtype=torch.int64, device="cpu") for peer in sent}
        own = {peer: torch.tensor([data.numel()], device="cpu") for peer, data in sent.items()}
        self._swap(own, sizes, _SIZE_TAG, what, limit)
        found = {peer: torch.empty(int(size), dtype=torch.uint8, device="cpu")
                 for peer, size in sizes.items()}  # fmt: skip
        self._swap(sent, found, _DATA_TAG, what, limit)
        return {peer: pickle.loads(data.numpy().tobytes()) for peer, data in found.items()}

    def swap(
        self, sent: Mapping[int, torch.Tensor], found: Mapping[int, torch.Tensor], what: str
    ) -> None:
        """Sends each peer of ``sent``, by its index, a tensor, and receives those of ``found``."""
        self._swap(sent, found, _DATA_TAG, what, self.timeout)

    def _swap(
        self, sent: Mapping[int, torch.Tensor], found: Mapping[int, torch.Tensor], tag: int,
        what: str, seconds: float,
    ) -> None:  # fmt: skip
        if self.aborted is not None:
            raise TransportError(f"{what}: {self.aborted}")
        try:
            works = [(f"receiving from {self.name(peer)}", self.group.recv([data], peer, tag))
                     for peer, data in found.items()]  # fmt: skip
            works += [(f"sending to {self.name(peer)}", self.group.send([data], peer, tag))
                      for peer, data in sent.items()]  # fmt: skip
        except RuntimeError as error:
            text = f"{what}: {self.reason_of_peers() or short(error)}"
            self.abort(text)
            raise TransportError(text) from error
        self.finish(self.run(works), what, seconds)

    def broadcast(self, data: torch.Tensor, source: int, what: str) -> None:
        """Copies ``data`` of the rank with index ``source`` into the ``data`` of all other ranks."""
        options = dist.BroadcastOptions()
        options.rootRank = source
        work = self.group.broadcast([data], options)
        exchange = self.run([(f"receiving from {self.name(source)}", work)])
        self.finish(exchange, what, self.timeout)

    def abort(self, reason: str) -> None:
        """Gives up everything in flight, on this rank and on the peers that wait for it. Does nothing in a
        child that was forked, because the connections are its parent's."""
        with self._lock:
            if self.aborted is not None or os.getpid() != self._process:
                return
            self.aborted = reason or "no reason given"
        # The first reason in the store stays, because later failures follow from it.
        text = f"{self.name(self.rank)} gave up: {reason}"
        first = within(lambda: self.store.compare_set("abort", "", text).decode())
        self.first_cause = first if first and first != text else None
        # From every peer, because a receive from a peer that has given up fails at once and breaks nothing.
        group = self.group
        for peer in range(self.size if group is not None else 0):
            if peer == self.rank:
                continue
            try:
                work = group.recv([torch.empty(1, dtype=torch.uint8, device="cpu")], peer, _BREAK_TAG)
                work.wait(timedelta(milliseconds=1))
            except RuntimeError:
                pass
        limit = time.monotonic() + min(_JOIN_SECONDS, self.timeout)
        for exchange in list(self._running):
            exchange.thread.join(max(limit - time.monotonic(), 0.0))

    def with_first_cause(self, text: str) -> str:
        """An error's text, with the first cause if another rank gave up before this one."""
        first = self.first_cause
        return text if first is None or first in text else f"{text}\nbefore that, {first}"

    def reason_of_peers(self) -> str | None:
        """The reason that the rank which gave up first left in the store. None if there is none."""
        return within(lambda: read(self.store, "abort"))

    def busy(self) -> bool:
        """Whether a thread still waits for a peer."""
        return any(not exchange.done.is_set() for exchange in list(self._running))

    def close(self) -> None:
        """Ends the connections. Anything still in flight is given up."""
        if os.getpid() != self._process:
            return
        _open.discard(self)
        if self.busy():
            self.abort("its connections were closed")
        self.group = None


def short(error: BaseException) -> str:
    """An error's first sentence, without the place in gloo's source."""
    lines = str(error).splitlines() or [type(error).__name__]
    return re.sub(r"^\[[^]]*\] ", "", lines[0]).split(". ")[0]


def default_store() -> dist.Store:
    """The store of the job, in which every key of this package begins with ``stepc/``."""
    return dist.distributed_c10d._get_default_store()


def read(store: dist.Store, key: str) -> str | None:
    """A key's text. None if the key is absent or its text is empty."""
    return (store.get(key).decode() or None) if store.check([key]) else None


def within(function: Callable[[], Any], seconds: float = _STORE_SECONDS) -> Any:
    """The result of a call to the store. None if the call fails or takes longer than ``seconds``: it hangs
    if the rank that serves the store has stopped."""
    result: list[Any] = [None]

    def run() -> None:
        try:
            result[0] = function()
        except BaseException:  # noqa: BLE001, S110 - a reason is a courtesy
            pass

    thread = threading.Thread(target=run, name="stepc-store", daemon=True)
    thread.start()
    thread.join(seconds)
    return result[0]


@atexit.register
def _close_all() -> None:
    # A thread that waits inside gloo while the interpreter ends would end the process by abort().
    for links in list(_open):
        if links.busy():
            links.abort("the process ended")
