"""Runs a function on several gloo ranks of this machine.

Starting a rank, with its connection to the others, takes longer than most tests. So ranks outlive a test: processes wait for
functions, and a world of any size is the first of them. Each function finds a process group of its own, and what a process that
has just started has: variables of the environment, numbers of random generators, types and threads of torch, and functions of
the package that a test has replaced. After a failure all processes are renewed.
"""

import atexit
import contextlib
import gc
import importlib
import multiprocessing.connection
import os
import pkgutil
import random
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.tensor.debug import _clear_sharding_prop_cache

import stepc.torch

_CONTEXT = mp.get_context("forkserver")


class RanksFailed(Exception):
    """A function raised on a rank, or a rank ended. The text has what the rank printed of it."""


def _environment():
    return {key: value for key, value in os.environ.items() if key.startswith("STEPC")}


def _package():
    """The namespaces of the package: its modules, and the classes in them."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "stepc"]
    classes = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    return modules + [one for one in classes if one.__module__.partition(".")[0] == "stepc"]


class _Fresh:
    """What a process that has just started has."""

    def __init__(self):
        for module in pkgutil.iter_modules(stepc.torch.__path__, "stepc.torch."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
        self.package = [(one, dict(vars(one))) for one in _package()]
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPC")}
        self.folder = os.getcwd()
        self.random = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
        gc.freeze()  # so that each collection looks at what a function has made alone

    def restore(self, environment):
        os.environ.clear()
        os.environ.update(self.environment | environment)
        os.chdir(self.folder)
        for one, names in self.package:
            for name, value in names.items():
                if vars(one).get(name) is not value:
                    setattr(one, name, value)
        python, array, tensor = self.random
        random.setstate(python)
        numpy.random.set_state(array)
        torch.set_rng_state(tensor)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_num_threads(1)


def _release():
    """Lets go of process groups. A thread of each that is kept asks for messages a hundred times a second, and those of many
    functions took a fifth of the machine."""
    # DTensor keeps what it has planned for meshes whose process groups are gone.
    _clear_sharding_prop_cache()
    gc.collect()


def _call(rank, size, function, arguments, folder):
    """The function in a process group of its own; its result goes into the folder."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    result = function(rank, *arguments)
    torch.save(result, f"{folder}/result{rank}")
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


def _serve(rank, tasks):
    """Takes functions until the other end of the pipe is closed."""
    fresh = _Fresh()
    while True:
        try:
            task = tasks.recv()
        except EOFError:
            return
        environment, *call = task
        fresh.restore(environment)
        with warnings.catch_warnings():
            try:
                _call(rank, *call)
            except BaseException:
                tasks.send(traceback.format_exc())
                raise
        _release()
        tasks.send(None)


class _Ranks:
    """The processes, and the ends of their pipes."""

    def __init__(self):
        self.processes, self.pipes = [], []
        self.owner = os.getpid()

    def grow(self, size):
        while len(self.processes) < size:
            here, there = _CONTEXT.Pipe()
            process = _CONTEXT.Process(target=_serve, args=(len(self.processes), there))
            process.start()
            there.close()
            self.processes.append(process)
            self.pipes.append(here)

    def start(self, size, *task):
        self.grow(size)
        for pipe in self.pipes[:size]:
            pipe.send((_environment(), size, *task))

    def end(self):
        """Ends all processes, also those that never will by themselves."""
        if os.getpid() != self.owner:  # a fork: they are not its own
            return
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        self.processes, self.pipes = [], []

    def wait(self, size):
        """Until each of the first ranks has answered. The first that fails ends all."""
        waiting = dict(zip(self.pipes[:size], range(size), strict=True))
        while waiting:
            for pipe in multiprocessing.connection.wait(list(waiting)):
                rank = waiting.pop(pipe)
                try:
                    failure = pipe.recv()
                except (EOFError, ConnectionResetError):
                    self.processes[rank].join()
                    failure = f"it ended with exit code {self.processes[rank].exitcode}"
                if failure is not None:
                    self.end()
                    raise RanksFailed(f"rank {rank} of {size}:\n{failure}")


_ranks = _Ranks()
atexit.register(_ranks.end)


def run_ranks(function, size, *arguments):
    """``function(rank, *arguments)`` on ``size`` ranks; the results in rank order."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _ranks.start(size, function, arguments, folder)
            _ranks.wait(size)
        except BaseException:  # a test that is interrupted leaves no rank within its function
            _ranks.end()
            raise
        return [torch.load(f"{folder}/result{i}", weights_only=False) for i in range(size)]


def run_ranks_until(function, size, finished, seconds, *arguments):
    """As ``run_ranks`` on ranks of its own, but only waits for the ranks of ``finished``; the others are ended. Returns
    the exit codes and the results of ``finished``.
    """
    alone = _Ranks()
    with tempfile.TemporaryDirectory() as folder:
        alone.start(size, function, arguments, folder)
        limit = time.monotonic() + seconds
        try:
            codes = []
            for rank in finished:
                pipe, code = alone.pipes[rank], None
                if pipe.poll(max(0, limit - time.monotonic())):
                    with contextlib.suppress(EOFError, ConnectionResetError):
                        code = 1 if pipe.recv() else 0
                codes.append(code)
            results = [
                torch.load(path, weights_only=False) if (path := Path(folder, f"result{rank}")).exists() else None
                for rank in finished
            ]
            return codes, results
        finally:
            alone.end()
