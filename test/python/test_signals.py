"""Signal handlers that raise while a step runs: the exception comes back, and every rank hears of it."""

import _thread
import itertools
import os
import random
import signal
import sys
import threading
import time
import traceback

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.placement_types import Shard

import stepc
from stepc import _calls
from stepc._calls import call_apart
from stepc.torch import Optimizer

pytestmark = pytest.mark.tier("land")

TIMEOUT = 60.0


# How often a signal may meet the few instructions of a step that leave the optimizer whole.
ATTEMPTS = 50


class Preempted(Exception):
    """What a trainer's handler of SIGUSR1 raises."""


def _preempt(number, frame):
    raise Preempted("the node goes away")


HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGUSR1: _preempt}


SGD = """
optimizer Sgd(lr) {
  state m : f32
  m = 0.5 * m + grad
  param = param - lr * orthogonalize(m)
}
route { Sgd(lr = 0.1) for rest }
"""


def _optimizer(spec="rule {}"):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    w = nn.Parameter(distribute_tensor(torch.ones(8, 3), mesh, [Shard(0)], src_data_rank=None))
    w.grad = torch.ones_like(w)
    optimizer = Optimizer([("w", w)], spec, timeout=TIMEOUT)
    optimizer.prepare()
    return optimizer


def _until_error(optimizer, pause):
    limit = time.monotonic() + TIMEOUT
    while time.monotonic() < limit:
        time.sleep(pause)
        optimizer.step()
    raise AssertionError(f"expected a step to fail within {TIMEOUT:g} s, found none that did")


class _Shot:
    """One signal that meets a step: it is sent again until its handler runs inside of one.

    Where it runs between two steps it returns, so that a busy machine, which is rarely found inside a
    step, takes longer and not forever.
    """

    def __init__(self, delay, kind):
        self._delay, self._kind, self._landed = delay, kind, False
        self._gone = threading.Lock()
        signal.signal(kind, self._handle)

    def _handle(self, number, frame):
        if self._landed or not _inside(frame, Optimizer.step.__code__):
            return
        self._landed = True
        HANDLERS[number](number, frame)

    def _send(self):
        limit = time.monotonic() + TIMEOUT
        while not self._landed and time.monotonic() < limit:
            time.sleep(self._delay)
            os.kill(os.getpid(), self._kind)
        self._gone.release()

    def start(self):
        self._gone.acquire()
        # Not by threading: the signal may come before Thread.start() has returned.
        _thread.start_new_thread(self._send, ())

    def wait(self):
        """Until no signal is on its way any more; those that come meanwhile are let pass."""
        assert self._gone.acquire(timeout=2 * TIMEOUT)


def _inside(frame, code):
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _step_into_shot(optimizer, pause, shot):
    """The error that ends the steps, as name, text and traceback."""
    try:
        if shot is not None:
            shot.start()
        _until_error(optimizer, pause)
    except (KeyboardInterrupt, Preempted, stepc.StepcError) as error:
        return type(error).__name__, str(error), "".join(traceback.format_exception(error))
    finally:
        if shot is not None:
            shot.wait()


def _is_poisoned(optimizer):
    try:
        optimizer.step()
    except stepc.PoisonedError:
        return True
    return False


def _trials(rank, seed, count, spec):
    """One signal at a random time in every trial, into rank 0; what each rank was told."""
    generator, lost, found = random.Random(seed), [], []
    sys.unraisablehook = lambda problem: lost.append(repr(problem.exc_value))
    for trial in range(count):
        # Rank 1 is late or not: the signal meets a rank that waits, or one that works.
        kind = generator.choice([signal.SIGINT, signal.SIGUSR1])
        pause, delay = generator.choice([0.0, 0.002, 0.02]), generator.uniform(0.0, 0.03)
        optimizer = _optimizer(spec)
        dist.barrier()
        start = time.monotonic()
        for _ in range(ATTEMPTS):
            shot = _Shot(delay, kind) if rank == 0 else None
            told = _step_into_shot(optimizer, 0.0 if rank == 0 else pause, shot)
            # A handler that runs before a step's first write, or after its last, leaves it whole.
            if _is_poisoned(optimizer):
                break
        else:
            raise AssertionError(
                f"trial {trial}: expected a poisoned optimizer, found none after {ATTEMPTS} signals"
            )
        found.append((trial, *told))
        assert time.monotonic() - start < TIMEOUT, trial
        dist.barrier()
    return found, lost


def test_signals_at_random_times(fake):
    _check_trials(24, "rule {}")


def test_signals_in_a_real_library(real):
    _check_trials(12, SGD)


def _check_trials(count, spec):
    (first, lost), (second, _) = run_ranks(_trials, 2, 7, count, spec)
    assert not lost, lost
    assert len(first) == len(second) == count
    kinds = set()
    for (trial, name, _, trace), (_, theirs, text, _) in zip(first, second, strict=True):
        assert name in ("KeyboardInterrupt", "Preempted"), (trial, trace)
        assert "optimizer.step()" in trace, trace
        kinds.add(name)
        assert theirs == "TransportError", (trial, text)
        cause = {"KeyboardInterrupt": "KeyboardInterrupt", "Preempted": "the node goes away"}[name]
        assert f"rank 0 gave up: {cause}" in text, (trial, text)
    assert len(kinds) == 2


def _leave(*arguments):
    raise SystemExit("enough")


def _raise_memory():
    raise MemoryError


def _in_callback(rank):
    """A function of the transport raises what no error code can say, while the peers step on."""
    optimizer = _optimizer()
    dist.barrier()
    if rank == 0:
        optimizer.transport.run = _leave
    try:
        _until_error(optimizer, 0.0)
    except BaseException as error:
        return type(error).__name__, str(error), traceback.format_exc()


def test_exceptions_of_callbacks_are_raised_again(fake):
    one, other = run_ranks(_in_callback, 2)
    assert one[:2] == ("SystemExit", "enough") and "in _leave" in one[2], one
    assert other[0] == "TransportError" and "rank 0 gave up: SystemExit: enough" in other[1], other


def _without_memory(rank):
    """A callback that fails again where it describes its failure."""
    optimizer = _optimizer()
    dist.barrier()
    if rank == 1:
        optimizer.transport.abort("it left")
        return "TransportError"
    optimizer.transport.reason_of_peers = _raise_memory
    try:
        _until_error(optimizer, 0.0)
    except stepc.StepcError as error:
        return type(error).__name__


def test_a_callback_that_cannot_describe_its_failure(fake):
    assert run_ranks(_without_memory, 2) == ["TransportError"] * 2


def _in_prepare(rank):
    """Ctrl-C while the others are late: the word that this rank left is taken back."""
    # A shell starts what runs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    optimizer = _optimizer()
    found = None
    dist.barrier()
    if rank == 0:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            optimizer.prepare()
        except KeyboardInterrupt:
            found = "interrupted"
        time.sleep(0.3)
    dist.barrier()
    optimizer.recover()
    optimizer.prepare()
    optimizer.step()
    return found, optimizer.state[optimizer.param_groups[0]["params"][0]]["step"].item()


def test_an_interrupted_meeting_is_left(fake):
    assert run_ranks(_in_prepare, 2) == [("interrupted", 1), (None, 1)]


def test_a_call_runs_once_and_to_its_end():
    """A handler that raises again and again neither loses the call nor its first exception."""
    calls, told = [], []
    stop = threading.Event()

    def strike():
        while not stop.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=strike)

    def function():
        calls.append("begun")
        thread.start()
        until = time.monotonic() + TIMEOUT
        while not told and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.2)
        # No signal is on its way any more when the call ends.
        stop.set()
        thread.join()
        calls.append("ended")

    before = signal.signal(signal.SIGUSR1, _preempt)
    try:
        with pytest.raises(Preempted):
            call_apart(function, told.append)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        stop.set()
        if thread.ident is not None:
            thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert calls == ["begun", "ended"]
    assert len(told) == 1 and isinstance(told[0], Preempted)


class _Strikes:
    """Raises in the calling thread as handlers would, at the given instructions of Python code.

    A trace function that raises is no longer called; a profile function puts it back.
    """

    def __init__(self, *numbers):
        self.numbers, self.count, self.struck = set(numbers), 0, 0

    def _trace(self, frame, event, argument):
        if frame.f_code.co_filename not in (_calls.__file__, threading.__file__):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.count += 1
            if self.count in self.numbers:
                self.struck += 1
                raise Preempted(f"strike {self.struck}")
        return self._trace

    def _profile(self, frame, event, argument):
        if sys.gettrace() is None and self.struck < len(self.numbers):
            sys.settrace(self._trace)

    def during(self, function):
        sys.setprofile(self._profile)
        sys.settrace(self._trace)
        try:
            return function()
        finally:
            sys.setprofile(None)
            sys.settrace(None)


def _check_strikes(strikes):
    """One call that is struck: it ends before its caller goes on, and the first strike is raised."""
    calls, told = [], []

    def function():
        calls.append("begun")
        time.sleep(0.002)
        calls.append("ended")
        return "value"

    try:
        found = strikes.during(lambda: call_apart(function, told.append))
    except Preempted as error:
        found, text = None, str(error)
        # A later strike is raised where the call is over, or did not begin.
        assert text == "strike 1" or len(strikes.numbers) > 1, strikes.numbers
    assert strikes.struck or found == "value"
    assert calls in ([], ["begun", "ended"]), strikes.numbers
    assert calls or found is None, strikes.numbers


@pytest.fixture
def lost(monkeypatch):
    """Exceptions that nothing raises any more."""
    found = []
    # The caller looks several times whether the call is over.
    monkeypatch.setattr(_calls, "_LOOK_SECONDS", 0.0005)
    monkeypatch.setattr(sys, "unraisablehook", lambda one: found.append(repr(one.exc_value)))
    monkeypatch.setattr(threading, "excepthook", lambda one: found.append(repr(one.exc_value)))
    trace, profile = sys.gettrace(), sys.getprofile()
    yield found
    sys.settrace(trace)
    sys.setprofile(profile)


def test_a_call_interrupted_anywhere_ends_first(lost):
    """At every instruction between the call and its return, of this package and of Python."""
    for number in itertools.count(1):
        strikes = _Strikes(number)
        _check_strikes(strikes)
        if not strikes.struck:
            break
    assert number > 50 and not lost


def test_a_call_interrupted_again_ends_first(lost):
    """Where one exception is being handled and the next comes."""
    generator = random.Random(3)
    for _ in range(200):
        first = generator.randrange(50, 600)
        _check_strikes(_Strikes(first, *(first + generator.randrange(1, 15) for _ in range(3))))
    assert not lost
