"""Planning's exchanges: the ranks of a process group come together before they compile and bind.

A collective of torch waits for a rank that does not come until the timeout of the trainer's process
group, and takes that group down. So ranks meet in the store, where each can leave again, and
exchange what they have to say over connections of their own.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from stepc._calls import cause
from stepc.errors import CompileError, StepcError, StepcTimeout, TransportError
from stepc.torch.describe import group_ranks
from stepc.torch.links import Links, default_store, read
from stepc.torch.transport import TorchTransport

_PAUSE = 0.005
# How long ranks that change alike may be apart before those in a step are told to stop.
_GRACE_SECONDS = 0.5


class Meeting:
    """The ranks of a process group, all in ``what`` at one time. Leaving it by an error tells the
    others, so that none waits for this rank.

    Args:
        process_group: who has to come; the default group without it.
        what: where they meet, for errors and so that different calls do not meet.
        timeout: seconds until a rank that does not come or answer is an error.
        why: what made this rank come.
        left: the transport of a bound instance. Peers that did not come may wait in its step for
            this rank: they are told why it does not step.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None,
        what: str,
        timeout: float,
        why: str = "",
        left: TorchTransport | None = None,
    ) -> None:
        self.ranks = group_ranks(process_group)
        self.what, self._why, self._left = what, why, left
        self.timeout = timeout
        self.nonce = ""
        self._links: Links | None = None
        # What a signal handler raised while this rank waited for the others.
        self._interrupted: BaseException | None = None
        if len(self.ranks) == 1:
            return
        try:
            self.nonce = self._meet()
            self._links = Links(self.ranks, timeout, self.nonce)
        except BaseException:
            self._dismiss()
            raise

    def __enter__(self) -> Meeting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._links is not None:
            if error is not None:
                self._links.abort(f"{self.what}: {cause(error)}")
            self._links.close()

    def gather(self, item: Any) -> list[Any]:
        """Every rank's object, in the order of the group's ranks."""
        if self._links is None:
            return [item]
        me = self._links.rank
        peers = [peer for peer in range(self._links.size) if peer != me]
        found = self._links.exchange(dict.fromkeys(peers, item), self.what)
        return [item if peer == me else found[peer] for peer in range(self._links.size)]

    def broadcast(self, data: bytes | None, size: int, source: int) -> bytes:
        """The bytes of the global rank ``source``."""
        tensor = torch.empty(size, dtype=torch.uint8)
        if data is not None:
            tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        self._links.broadcast(tensor, self.ranks.index(source), self.what)
        return tensor.numpy().tobytes()

    # --- coming together ---

    def _meet(self) -> str:
        """A word that is new, and the same on all ranks; an error when one does not come."""
        result: list[str | Exception] = []

        def run() -> None:
            try:
                result.append(self._wait())
            except Exception as error:  # noqa: BLE001 - raised below
                result.append(error)

        # In a thread: the rank that serves the store may have stopped, and then calls to it hang.
        thread = threading.Thread(target=run, name="stepc-meeting", daemon=True)
        try:
            thread.start()
            thread.join(self.timeout + 2.0)
        except BaseException as error:
            self._interrupted = error
            raise
        found = result[0] if result else StepcTimeout(
            f"{self.what}: the store of the process group did not answer within {self.timeout:g} s"
        )  # fmt: skip
        if isinstance(found, StepcError):
            raise found
        if isinstance(found, Exception):
            raise TransportError(f"{self.what}: the store of the process group failed: {found}")
        return found

    def _wait(self) -> str:
        """Every rank leaves a word; the lowest one that finds all of them answers each by name.

        A rank that gives up takes its word back, and comes with a new one next time, so that ranks
        which were apart once find together again.
        """
        where = hashlib.sha256(repr((self.what, self.ranks)).encode()).hexdigest()[:16]
        store = dist.PrefixStore(f"stepc/meet/{where}", default_store())
        mine, word = str(dist.get_rank()), uuid.uuid4().hex
        begin, told = time.monotonic(), self._left is None
        store.set(mine, word)
        try:
            while True:
                if mine == str(self.ranks[0]):
                    words = self._words(store)
                    if words is not None:
                        for rank, one in zip(self.ranks, words, strict=True):
                            store.compare_set(str(rank), one, "")
                            if one != word:
                                store.set(f"go/{one}", word)
                        return word
                answer = read(store, f"go/{word}")
                if answer is not None:
                    store.delete_key(f"go/{word}")
                    if answer.startswith("!"):
                        raise StepcTimeout(answer[1:])
                    return answer
                if self._interrupted is not None:
                    raise TransportError(f"{self.what}: {cause(self._interrupted)}")
                waited = time.monotonic() - begin
                if not told and waited > min(_GRACE_SECONDS, self.timeout / 4):
                    told = True
                    self._dismiss()
                failed = self._left.failed() if told and self._left is not None else None
                if failed is not None:
                    rank, reason = failed
                    raise TransportError(
                        f"{self.what}: expected every rank to prepare again, since {self._why} on "
                        f"rank {mine}, but {rank} stepped"
                        + ("" if self._why in reason else f", and failed: {reason}")
                    )
                if waited > self.timeout:
                    text = self._missing(store)
                    # The others, who would find this rank missing as well, give up with it.
                    for one in filter(None, (read(store, str(rank)) for rank in self.ranks)):
                        if one != word:
                            store.set(f"go/{one}", f"!{text}")
                    raise StepcTimeout(text)
                time.sleep(min(_PAUSE + waited / 100, 0.1))
        except BaseException:
            store.compare_set(mine, word, "")
            raise

    def _words(self, store: dist.Store) -> list[str] | None:
        words = []
        for rank in self.ranks:
            word = read(store, str(rank))
            if word is None:
                return None
            words.append(word)
        return words

    def _missing(self, store: dist.Store) -> str:
        missing = [rank for rank in self.ranks if read(store, str(rank)) is None]
        shown = ", ".join(str(rank) for rank in missing[:8]) + (", …" if len(missing) > 8 else "")
        return (
            f"{self.what}: expected all {len(self.ranks)} ranks of the process group within "
            f"{self.timeout:g} s"
            + (f", since {self._why} on rank {dist.get_rank()}" if self._why else "")
            + f", but rank{'s' * (len(missing) > 1)} {shown or 'none'} did not come; every rank of "
            "process_group= has to change its parameters alike"
        )

    def _dismiss(self) -> None:
        """Ends the step that peers may be in: this rank will not take part in it."""
        if self._left is not None:
            self._left.abort(f"it prepares again instead of stepping, since {self._why}")


def share_library(
    world: tuple[int, ...], compile_library: Callable[[], bytes], meeting: Meeting, made_of: str
) -> bytes:
    """Compiles on the lowest rank of every world, and hands the bytes to that world's ranks.

    ``made_of`` tells one definition from another: where a rank of the world has another one than
    the rank that compiles, all of the world's ranks raise.

    A failure is raised on every rank of the group. While a rank compiles it says so, since a long
    compilation is no silence.
    """
    mine: list[tuple[str, Any]] = []

    def run() -> None:
        try:
            mine.append(("done", compile_library()))
        except Exception as error:  # noqa: BLE001 - it travels to the other ranks
            mine.append(("failed", error))

    compiles = dist.get_rank() == world[0]
    thread = threading.Thread(target=run, name="stepc-compile", daemon=True)
    if compiles:
        thread.start()
    pause = 0.02
    while True:
        state: tuple[str, Any] = ("waits", None)
        if compiles:
            thread.join(pause)
            pause = min(2 * pause, 1.0, meeting.timeout / 4)
            state = mine[0] if mine else ("compiles", None)
        sent = (state[0], len(state[1]) if state[0] == "done" else str(state[1]))
        found = dict(zip(meeting.ranks, meeting.gather((world, *sent, made_of)), strict=True))
        other = [rank for rank in world if found[rank][3] != found[world[0]][3]]
        if other:
            raise StepcError(
                f"expected the definition and options of rank {world[0]} on all ranks that share "
                f"parameters, found others on rank{'s' * (len(other) > 1)} "
                f"{', '.join(map(str, other[:8]))}"
            )
        if state[0] == "failed":
            raise state[1]
        for rank, (_, what, text, _) in found.items():
            if what == "failed":
                raise CompileError(f"{text}\n(compiled on rank {rank})")
        if not any(what == "compiles" for _, what, *_ in found.values()):
            break
    result = b""
    for rank, (one, what, size, _) in found.items():
        if what == "done":
            data = meeting.broadcast(mine[0][1] if rank == dist.get_rank() else None, size, rank)
            if one == world:
                result = data
    return result


def agree(problem: Exception | None, meeting: Meeting) -> None:
    """Raises on every rank of the group when one has a problem."""
    items = meeting.gather(None if problem is None else str(problem))
    if problem is not None:
        raise problem
    for rank, text in zip(meeting.ranks, items, strict=True):
        if text is not None:
            raise StepcError(f"rank {rank} failed: {text}")
