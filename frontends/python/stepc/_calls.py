"""Calls into a library that calls back into Python.

Python runs signal handlers between any two instructions of the main thread. If a handler raises
inside a callback (Ctrl-C), the callback cannot reliably catch the exception. Before the callback's first
instruction, or after its last, ctypes prints the exception and returns whatever is in memory. So a
library that calls back runs in a thread of its own, where no handler runs, while the caller's thread waits.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

# A wakeup may be lost to a signal handler. Then the caller is late by up to this many seconds.
_LOOK_SECONDS = 0.05
# How many loops surround the loop that waits. Each catches an exception that a handler raises where the loop
# inside cannot: between the end of that loop's `except` and its next `try`.
_NESTED = 8


def cause(error: BaseException) -> str:
    """An error's text as a reason for other ranks. The class name is added if there is no text, and for
    exceptions such as KeyboardInterrupt."""
    text = str(error)
    if isinstance(error, Exception) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Job:
    """A function that runs once, in a thread. A signal may interrupt any method, which may then be called
    again."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        # Who came first and decides whether the function runs: a thread that runs it, or cancel().
        self._owner: dict[str, Any] = {}
        self._ended = threading.Lock()
        self._ended.acquire()
        self.result: list[tuple[Any, BaseException | None]] = []

    def _run(self) -> None:
        if not self._take(object()):
            return
        try:
            self.result.append((self._function(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self.result.append((None, error))
        self._ended.release()

    def _take(self, who: object) -> bool:
        # One call, which no handler can interrupt. It returns the same if it is repeated.
        return self._owner.setdefault("who", who) is who

    def start(self) -> None:
        # threading.Thread starts in several steps, and a handler that raises between two of them
        # leaves a thread that prints a KeyError.
        if not self._owner:
            _thread.start_new_thread(self._run, ())

    def cancel(self) -> bool:
        """True if the function had not begun. It never runs then."""
        return self._take(self)

    def over(self) -> bool:
        """Whether the function ended, or was cancelled."""
        return bool(self.result) or self._owner.get("who") is self

    def wait(self) -> None:
        self._ended.acquire(timeout=_LOOK_SECONDS)


class _Call:
    """A job, and a second job that makes the first end early once the caller's thread was interrupted."""

    def __init__(
        self, function: Callable[[], Any], give_up: Callable[[BaseException], None]
    ) -> None:
        self.job, self._give_up = _Job(function), give_up
        self._end: _Job | None = None
        self.first: BaseException | None = None

    def settle(self, nested: int = _NESTED) -> None:
        """Waits until the job is over, whatever is raised meanwhile. Keeps the first exception."""
        while not self.job.over():
            try:
                if nested:
                    self.settle(nested - 1)
                else:
                    self._look()
            except BaseException as error:  # noqa: BLE001 - raised by call_apart
                if self.first is None:
                    self.first = error

    def _look(self) -> None:
        first = self.first
        try:
            if first is None:
                self.job.start()
            elif not self.job.cancel():
                if self._end is None:
                    self._end = _Job(lambda: self._give_up(first))
                self._end.start()
        finally:
            if not self.job.over():
                self.job.wait()


def call_apart(function: Callable[[], Any], give_up: Callable[[BaseException], None]) -> Any:
    """Runs ``function`` in another thread, waits for its end whatever happens here, and returns its result.

    An exception that a signal handler raises meanwhile is raised again once ``function`` has
    returned. ``give_up`` is called with that exception, and must make ``function`` return soon.
    """
    call = _Call(function, give_up)
    call.settle()
    if call.first is not None:
        raise call.first
    value, problem = call.job.result[0]
    if problem is not None:
        raise problem
    return value
