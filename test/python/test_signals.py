"""Signal handlers that raise while a step runs: the exception comes back, and every rank hears of it."""

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
from stepc._calls import call_apart
from stepc.torch import Optimizer

TIMEOUT = 10.0


class Preempted(Exception):
    """What a trainer's handler of SIGUSR1 raises."""


def _preempt(number, frame):
    raise Preempted("the node goes away")


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
    while True:
        time.sleep(pause)
        optimizer.step()


def _trials(rank, seed, count, spec):
    """One signal at a random time in every trial, into rank 0; what each rank was told."""
    generator, lost, found = random.Random(seed), [], []
    sys.unraisablehook = lambda problem: lost.append(repr(problem.exc_value))
    signal.signal(signal.SIGUSR1, _preempt)
    for trial in range(count):
        # Rank 1 is late or not: the signal meets a rank that waits, or one that works.
        kind = generator.choice([signal.SIGINT, signal.SIGUSR1])
        pause, delay = generator.choice([0.0, 0.002, 0.02]), generator.uniform(0.0, 0.03)
        optimizer = _optimizer(spec)
        dist.barrier()
        start = time.monotonic()
        while True:
            if rank == 0:
                threading.Timer(delay, os.kill, (os.getpid(), kind)).start()
            try:
                _until_error(optimizer, pause if rank else 0.0)
            except (KeyboardInterrupt, Preempted, stepc.StepcError) as error:
                text = "".join(traceback.format_exception(error))
                found.append((trial, type(error).__name__, str(error), text))
            try:
                optimizer.step()
            except stepc.PoisonedError:
                break
            found.pop()  # it came between two steps: that is the trainer's affair
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

    def function():
        calls.append(threading.current_thread())
        while len(told) < 1:
            time.sleep(0.001)
        time.sleep(0.2)
        calls.append("ended")

    before = signal.signal(signal.SIGUSR1, _preempt)
    stop = threading.Event()

    def strike():
        while not stop.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=strike)
    try:
        with pytest.raises(Preempted):
            thread.start()
            try:
                call_apart(function, told.append)
            finally:
                stop.set()
        thread.join()
    finally:
        stop.set()
        signal.signal(signal.SIGUSR1, before)
    assert len(calls) == 2 and calls[1] == "ended"
    assert len(told) == 1 and isinstance(told[0], Preempted)
