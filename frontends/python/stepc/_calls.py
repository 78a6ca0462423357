"""Calls into a library that calls back into Python.

Python runs signal handlers between any two instructions of the main thread. One that raises inside
a callback (Ctrl-C) cannot be caught there for sure: before the callback's first instruction, or
after its last, ctypes prints the exception and returns whatever is in memory. So a library that
calls back runs in a thread of its own, where no handler runs, while the caller's thread waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

# A wakeup may be lost to a signal handler; then this is how late the caller is.
_LOOK_SECONDS = 0.05


def cause(error: BaseException) -> str:
    """An error as a reason for others: errors of this package speak for themselves."""
    text = str(error)
    if isinstance(error, Exception) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Job:
    """A function that runs once, in a thread. ``start`` may be interrupted and called again."""

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._function, self._name = function, name
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self.result: list[tuple[Any, BaseException | None]] = []

    def _run(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self.result.append((self._function(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self.result.append((None, error))
        self._ended.release()

    def start(self) -> None:
        if not self._begun.locked():
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def cancel(self) -> bool:
        """Whether it had not begun; then it never will."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> None:
        self._ended.acquire(timeout=_LOOK_SECONDS)


def call_apart(function: Callable[[], Any], give_up: Callable[[BaseException], None]) -> Any:
    """The result of ``function``, which runs in another thread to its end, whatever happens here.

    An exception that a signal handler raises meanwhile is raised again once ``function`` has
    returned; ``give_up`` is told of it, and sees to it that this is soon.
    """
    job = _Job(function, "stepc-call")
    end: _Job | None = None
    first: BaseException | None = None
    while not job.result:
        try:
            job.start()
            if end is not None:
                end.start()
            job.wait()
        except BaseException as error:  # noqa: BLE001 - raised below
            if first is None:
                first = error
                if job.cancel():
                    break
                end = _Job(lambda: give_up(first), "stepc-give-up")
    if first is not None:
        raise first
    value, problem = job.result[0]
    if problem is not None:
        raise problem
    return value
