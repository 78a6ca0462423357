"""Planning's exchanges: ranks that share parameters come together before they compile and bind.

A collective of torch waits for a rank that does not come until the timeout of the trainer's process
group, and takes that group down. So ranks meet in the store, where each can leave again, and
exchange what they have to say over connections of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import torch
import torch.distributed as dist

from stepc._calls import cause
from stepc.errors import CompileError, StepcError, StepcTimeout, TransportError
from stepc.torch.describe import group_ranks, my_rank
from stepc.torch.failures import expect_own_group
from stepc.torch.links import Links, default_store, read
from stepc.torch.transport import TorchTransport

_PAUSE = 0.005
_SHOWN = 8
# How many seconds ranks that prepare again may come one after the other, before ranks in a step are stopped.
_GRACE_SECONDS = 0.5


class Meeting:
    """Ranks of a process group that are in the call ``what`` at one time. Leaving the meeting by an error
    tells the others, so that none waits for this rank.

    The ranks that meet are those that the ``ranks`` of all of them connect: if 0 names 1, and 1 names 0 and
    2, the three meet. So no rank waits for a rank with which it shares nothing.

    Args:
        process_group: the ranks that may come; the default group without it.
        what: the call in which ranks meet. Different calls do not meet. Errors name the call, and ranks
            that wait in another call.
        timeout: seconds until a rank that does not come or answer is an error.
        why: what made this rank come.
        left: the transport of a bound instance. Peers that did not come may wait in its step for
            this rank: they are told why it does not step. Its ranks are among those that meet.
        ranks: global ranks that this one has to meet; the whole group without it.
        note: a reason to come that the others may not know, for the error if they do not come.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None,
        what: str,
        timeout: float,
        why: str = "",
        left: TorchTransport | None = None,
        ranks: Collection[int] | None = None,
        note: str = "",
    ) -> None:
        self._group = group_ranks(process_group)
        # Texts for errors: which ranks have to come, and what they have to do.
        self._who, self._rule = "that share parameters", (
            "ranks that meshes connect have to change their parameters alike"
        )
        if ranks is None:
            self._who, self._rule = "of the process group", (
                "all of its ranks have to do so; pass process_group= where fewer ranks do"
            )
        known = set(self._group if ranks is None else ranks)
        known.add(my_rank())
        known.update(() if left is None else left.ranks)
        # The ranks that this rank knows. _meet() replaces them by all ranks that meet.
        self.ranks = tuple(sorted(known.intersection(self._group)))
        self.what, self._why, self._left, self._note = what, why, left, note
        self.timeout = timeout
        self.nonce = ""
        self._links: Links | None = None
        # What a signal handler raised while this rank waited for the others.
        self._interrupted: BaseException | None = None
        if len(self.ranks) == 1:
            return
        expect_own_group()
        try:
            self.nonce, self.ranks = self._meet()
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
        """Sends ``item`` to all ranks that meet. Returns every rank's object, in the order of ``ranks``."""
        if self._links is None:
            return [item]
        me = self._links.rank
        peers = [peer for peer in range(self._links.size) if peer != me]
        found = self._links.exchange(dict.fromkeys(peers, item), self.what)
        return [item if peer == me else found[peer] for peer in range(self._links.size)]

    @property
    def me(self) -> int:
        """This rank's global rank."""
        return my_rank()

    def give_up(self, reason: str) -> None:
        """Tells the others, which may wait for this rank, that it failed. The meeting is over then."""
        if self._links is not None:
            self._links.abort(f"{self.what}: {reason}")

    @property
    def is_over(self) -> bool:
        """Whether this rank gave up, or found that another one did."""
        return self._links is not None and self._links.aborted is not None

    def swap(self, sent: Mapping[int, torch.Tensor], found: Mapping[int, torch.Tensor]) -> None:
        """Sends tensors of bytes to other ranks that meet, and fills those of ``found`` with what they send.
        Both are by global rank, and each rank must expect what the other sends."""
        if self._links is not None and (sent or found):
            index = {rank: number for number, rank in enumerate(self.ranks)}
            self._links.swap(
                {index[rank]: data for rank, data in sent.items()},
                {index[rank]: data for rank, data in found.items()}, self.what,
            )  # fmt: skip

    def broadcast(self, data: bytes | None, size: int, source: int) -> bytes:
        """Sends ``data`` of the global rank ``source`` to all ranks that meet, and returns its bytes."""
        tensor = torch.empty(size, dtype=torch.uint8, device="cpu")
        if data is not None:
            tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        self._links.broadcast(tensor, self.ranks.index(source), self.what)
        return tensor.numpy().tobytes()

    # --- coming together ---

    def _meet(self) -> tuple[str, tuple[int, ...]]:
        """Returns a word that is new and the same on all ranks, and the ranks that meet. Raises an error if a
        rank does not come."""
        result: list[tuple[str, tuple[int, ...]] | Exception] = []

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

    def _wait(self) -> tuple[str, tuple[int, ...]]:
        """Meets the other ranks in the store. Every rank leaves a word there, and the ranks that it knows.
        The lowest of the ranks that are so connected waits until all have left a word, and answers each word.

        A rank that gives up takes its word back, and leaves a new word next time. So ranks that missed each
        other once can meet later.
        """
        where = hashlib.sha256(repr((self.what, self._group)).encode()).hexdigest()[:16]
        board = _Board(dist.PrefixStore(f"stepc/meet/{where}", default_store()))
        me, word = dist.get_rank(), uuid.uuid4().hex
        begin, told = time.monotonic(), self._left is None
        entry = board.leave(me, word, self.ranks)
        places = dist.PrefixStore("stepc/at", default_store())
        places.set(str(me), self.what)
        looked, seen = False, {}
        try:
            while True:
                # Only a rank that knows of no lower one can be the lowest.
                if me == self.ranks[0]:
                    entries, missing = board.closure(me, self.ranks)
                    if not missing and min(entries) == me:
                        ranks = board.put(entries)
                        for rank, one in entries.items():
                            board.take(rank, one)
                            if rank != me:
                                board.answer(one.split()[0], f"{word} {ranks}")
                        return word, tuple(sorted(entries))
                answer = board.answered(word)
                if answer is not None:
                    if answer.startswith("!"):
                        raise StepcTimeout(self._noted(answer[1:]))
                    nonce, ranks = answer.split()
                    return nonce, board.ranks(ranks)
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
                        f"rank {me}, but {rank} stepped"
                        + ("" if self._why in reason else f", and failed: {reason}")
                    )
                if waited > self.timeout / 2 and not looked:
                    # Looked up at half time: ranks that give up together with this one will be gone later.
                    looked, seen = True, self._elsewhere(board.closure(me, self.ranks)[1], places)
                if waited > self.timeout:
                    entries, missing = board.closure(me, self.ranks)
                    seen |= self._elsewhere(missing, places)
                    text = self._missing(sorted(missing), len(entries) + len(missing), seen)
                    text = self._noted(text)
                    # The others give up, too: otherwise they would find this rank missing.
                    for rank, one in entries.items():
                        if rank != me:
                            board.answer(one.split()[0], f"!{text}")
                    raise StepcTimeout(text)
                time.sleep(min(_PAUSE + waited / 100, 0.1))
        except BaseException:
            board.take(me, entry)
            raise
        finally:
            with contextlib.suppress(RuntimeError):  # the store is gone, which was reported above
                places.set(str(me), "")

    def _elsewhere(self, missing: Collection[int], places: dist.Store) -> dict[int, str]:
        """The calls in which some of the missing ranks wait to meet, by rank."""
        found = {rank: read(places, str(rank)) for rank in sorted(missing)[:_SHOWN]}
        return {rank: what for rank, what in found.items() if what is not None}

    def _missing(self, missing: Sequence[int], expected: int, elsewhere: Mapping[int, str]) -> str:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        waits = [f"rank {rank} waits in {what}" + (" with other ranks" if what == self.what else "")
                 for rank, what in elsewhere.items() if rank in missing]  # fmt: skip
        return (
            f"{self.what}: expected all {expected} ranks {self._who} within {self.timeout:g} s"
            + (f", since {self._why} on rank {dist.get_rank()}" if self._why else "")
            + f", but rank{'s' * (len(missing) > 1)} {shown or 'none'} did not come"
            + (f" ({', '.join(waits)})" if waits else "") + f"; {self._rule}"
        )

    def _noted(self, text: str) -> str:
        """The text with this rank's note: the rank that gave up first and wrote the text may not have it."""
        return text if self._note in text else f"{text}; {self._note}"

    def _dismiss(self) -> None:
        """Ends the step in which peers may wait, because this rank will not take part in that step."""
        if self._left is not None:
            self._left.abort(f"it prepares again instead of stepping, since {self._why}")


class _Board:
    """The part of the store in which ranks leave words and answers for one another."""

    def __init__(self, store: dist.Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, ...]] = {}

    def put(self, ranks: Collection[int]) -> str:
        """Stores a set of ranks and returns a short name. Sets may be long, and many ranks have the same."""
        text = ",".join(map(str, sorted(ranks)))
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        if name not in self._known:
            self._known[name] = tuple(sorted(ranks))
            self._store.set(f"ranks/{name}", text)
        return name

    def ranks(self, name: str) -> tuple[int, ...]:
        if name not in self._known:
            self._known[name] = tuple(map(int, self._store.get(f"ranks/{name}").decode().split(",")))
        return self._known[name]

    def leave(self, rank: int, word: str, ranks: Collection[int]) -> str:
        entry = f"{word} {self.put(ranks)}"
        self._store.set(str(rank), entry)
        return entry

    def take(self, rank: int, entry: str) -> None:
        self._store.compare_set(str(rank), entry, "")

    def closure(self, rank: int, ranks: Collection[int]) -> tuple[dict[int, str], set[int]]:
        """The entries of all ranks that ``ranks`` and, in turn, these entries name. Also returns the ranks
        among them that have no entry."""
        entries: dict[int, str] = {}
        missing: set[int] = set()
        found, waiting, named = {rank, *ranks}, [rank, *ranks], set()
        while waiting:
            one = waiting.pop()
            if one in entries or one in missing:
                continue
            entry = read(self._store, str(one))
            if entry is None:
                missing.add(one)
                continue
            entries[one] = entry
            name = entry.split()[1]
            if name not in named:
                named.add(name)
                more = [other for other in self.ranks(name) if other not in found]
                found.update(more)
                waiting += more
        return entries, missing

    def answer(self, word: str, text: str) -> None:
        self._store.set(f"go/{word}", text)

    def answered(self, word: str) -> str | None:
        answer = read(self._store, f"go/{word}")
        if answer is not None:
            self._store.delete_key(f"go/{word}")
        return answer


class Question(Protocol):
    """A question to the compiler. Any rank can ask it for another rank."""

    def digest(self) -> str:
        """A hash that is equal for questions with equal answers."""

    def answer(self) -> Any:
        """Asks the compiler on this rank."""


def ask_first(question: Question | None, meeting: Meeting) -> Any:
    """The answer to this rank's question, by the compiler of the lowest rank that meets.

    All ranks that meet call this. A rank without a question gets None. Each question travels once, however
    many ranks have it: the others send its digest. An error is raised on every rank.
    """
    if len(meeting.ranks) == 1:
        return None if question is None else question.answer()
    me, first = my_rank(), meeting.ranks[0]
    data = b"" if question is None else pickle.dumps(question)
    mine = None if question is None else question.digest()
    told = dict(zip(meeting.ranks, meeting.gather((mine, len(data))), strict=True))
    sources = {digest: (rank, size) for rank, (digest, size) in reversed(told.items()) if digest}
    if not sources:
        return None
    questions: dict[str, tuple[int, Question]] = {}
    for digest, (rank, size) in sorted(sources.items(), key=lambda item: item[1]):
        if rank == first:
            asked: Question | None = question
        else:
            received = meeting.broadcast(data if rank == me else None, size, rank)
            asked = pickle.loads(received) if me == first else None
        if me == first:
            questions[digest] = rank, asked

    def answer() -> bytes:
        answers = {}
        for digest, (rank, asked) in questions.items():
            try:
                answers[digest] = asked.answer()
            except CompileError as error:
                whose = "" if rank == first else f"\n(asked for the parameters of rank {rank})"
                raise CompileError(f"{error}{whose}", error.exit_code) from error
        return pickle.dumps(answers)

    return pickle.loads(share_library(meeting.ranks, answer, meeting, "")).get(mine)


def share_library(
    world: tuple[int, ...], compile_library: Callable[[], bytes], meeting: Meeting, made_of: str
) -> bytes:
    """Compiles on the lowest rank of every world, and hands the bytes to that world's ranks.

    A rank of an empty world has nothing to compile, and takes part.

    ``made_of`` is a hash of definition and options. If a rank of the world has another hash than the rank
    that compiles, all ranks of the world raise an error.

    A failure is raised on every rank that meets. While a rank compiles, it keeps telling the others so, and
    their timeouts begin anew.
    """
    mine: list[tuple[str, Any]] = []

    def run() -> None:
        try:
            mine.append(("done", compile_library()))
        except Exception as error:  # noqa: BLE001 - it travels to the other ranks
            mine.append(("failed", error))

    compiles = dist.get_rank() in world[:1]
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
                f"expected the definition and options of rank {world[0]} on all ranks that step "
                f"together, found others on rank{'s' * (len(other) > 1)} "
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


def agree(
    problem: BaseException | None, meeting: Meeting, world: tuple[int, ...] = (), target: str = ""
) -> None:
    """Raises an error on every rank that meets if one has a problem, or if ranks of one ``world`` would take
    steps for different targets. Steps for different targets have no messages in common."""
    if problem is not None and meeting.is_over:
        raise problem
    items = meeting.gather((None if problem is None else cause(problem), target))
    if problem is not None:
        raise problem
    found = dict(zip(meeting.ranks, items, strict=True))
    for rank, (text, _) in found.items():
        if text is not None:
            raise StepcError(f"rank {rank} failed: {text}")
    for rank in world:
        if found[rank][1] != found[world[0]][1]:
            raise StepcError(
                "expected the parameters of all ranks that step together on one kind of device, found "
                f"those of rank {world[0]} where target {found[world[0]][1]} steps, and those of "
                f"rank {rank} where {found[rank][1]} does"
            )
