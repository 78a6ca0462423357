"""Runs a function on several gloo ranks of this machine."""

import contextlib
import os
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _entry(index, function, size, folder, arguments, environment):
    os.environ.update(environment)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=index, world_size=size
    )
    try:
        result = function(index, *arguments)
        torch.save(result, f"{folder}/result{index}")
    except BaseException:
        traceback.print_exc()
        raise
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


def _environment():
    return {key: value for key, value in os.environ.items() if key.startswith("STEPC")}


def run_ranks(function, size, *arguments):
    """``function(rank, *arguments)`` on ``size`` ranks; the results in rank order."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            _entry, (function, size, folder, arguments, _environment()), size,
            start_method="forkserver",
        )  # fmt: skip
        return [torch.load(f"{folder}/result{i}", weights_only=False) for i in range(size)]


def run_ranks_until(function, size, finished, seconds, *arguments):
    """As ``run_ranks``, but only waits for the ranks of ``finished``; the others are ended."""
    with tempfile.TemporaryDirectory() as folder:
        context = mp.start_processes(
            _entry, (function, size, folder, arguments, _environment()), size,
            start_method="forkserver", join=False,
        )  # fmt: skip
        limit = time.monotonic() + seconds
        try:
            while time.monotonic() < limit:
                if all(not context.processes[i].is_alive() for i in finished):
                    break
                time.sleep(0.05)
            codes = [context.processes[i].exitcode for i in finished]
            results = [
                torch.load(f"{folder}/result{i}", weights_only=False)
                if os.path.exists(f"{folder}/result{i}") else None
                for i in finished
            ]  # fmt: skip
            return codes, results
        finally:
            for process in context.processes:
                if process.is_alive():
                    process.kill()
                process.join()
