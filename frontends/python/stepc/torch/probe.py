"""Measures the cluster that torch's processes run on.

    torchrun --nproc-per-node 8 … -m stepc.torch.probe -o cluster.json

Messages travel between GPUs by NCCL if the processes have GPUs, otherwise by gloo. ``stepc probe --samples``
turns the measured times into a cluster, as it does for times that processes of MPI measure.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from stepc._compile import find_compiler
from stepc.errors import CompileError, StepcError, plural

_SIZES = (1 << 10, 16 << 10, 256 << 10, 4 << 20)
_MOST_BYTES, _MOST_MESSAGES, _WARM_UPS, _TIMES = 32 << 20, 16, 2, 7


def levels_of(hosts: Sequence[str], given: Sequence[tuple[str, int]] = ()) -> list[dict[str, Any]]:
    """Names and ranks of the levels: the given ones, or else hosts and the network between them."""
    size, levels = len(hosts), list(given)
    there = f"{plural(size, 'rank')} that {'is' if size == 1 else 'are'} there"
    if not levels:
        first = next((rank for rank in range(size) if hosts[rank] != hosts[0]), size)
        runs = [list(hosts[rank : rank + first]) for rank in range(0, size, first)]
        mixed = size % first or any(len(set(run)) > 1 for run in runs)
        if mixed or len({run[0] for run in runs}) != len(runs):
            raise ValueError(
                "expected as many ranks with consecutive numbers on each host, found "
                f"{', '.join(hosts)}"
            )
        levels = [("node", first)] if first > 1 else []
    inner = 1
    for index, (name, ranks) in enumerate(levels):
        if ranks < 2:
            raise ValueError(f"expected a level of 2 ranks or more, found {ranks} of {name!r}")
        if name in [other for other, _ in levels[:index]]:
            raise ValueError(f"expected a name that no other level has, found {name!r} twice")
        if ranks % inner or (index > 0 and ranks == inner):
            raise ValueError(
                f"expected levels that grow by whole factors, found {ranks} ranks of {name!r} "
                f"after {inner}"
            )
        if ranks > size:
            raise ValueError(
                f"expected a level of at most the {there}, found {ranks} of {name!r}"
            )
        inner = ranks
    # Otherwise there are no two whole domains of it between which links could be measured.
    if levels and inner != size and inner * 2 > size:
        raise ValueError(
            f"expected a level of which several fit into the {there}, found {inner} of "
            f"{levels[-1][0]!r}"
        )
    if not levels or inner < size:
        levels.append(("network", size))
    # The last level has no number: all ranks are in its domain, also in a larger job.
    return [
        {"name": name} if index + 1 == len(levels) else {"name": name, "ranks": ranks}
        for index, (name, ranks) in enumerate(levels)
    ]


class Prober:
    """One of the processes, which all call the same functions in the same order."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.rank, self.size = device, dist.get_rank(), dist.get_world_size()

    def largest(self, value: float) -> float:
        """The largest value of all ranks. Returns when all ranks have called it."""
        told = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(told, dist.ReduceOp.MAX)
        return told.item()

    def median(self, work: Callable[[], object]) -> float:
        """The median, over several runs, of the seconds that the slowest rank takes for ``work``."""
        times = []
        for turn in range(_WARM_UPS + _TIMES):
            self.largest(0)
            begin = time.perf_counter()
            work()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            slowest = self.largest(time.perf_counter() - begin)
            if turn >= _WARM_UPS:
                times.append(slowest)
        return max(statistics.median(times), 1e-9)

    def samples(self, inner: int, ranks: int) -> list[list[float]]:
        """Samples ``[messages, bytes, seconds]`` of a level whose domains of ``ranks`` ranks consist of
        domains of ``inner`` ranks."""
        first = self.rank // ranks * ranks
        domains = min(ranks, self.size - first) // inner
        domain, place = divmod(self.rank - first, inner)
        mine = (domains - 1) * inner if domain < domains else 0
        found, messages, most = [], 1, int(self.largest(mine))

        def peer(sign: int, index: int) -> int:
            turn, away = divmod(index, domains - 1)
            other = (domain + sign * (away + 1)) % domains
            return first + other * inner + (place + sign * turn) % inner

        while messages <= min(most, _MOST_MESSAGES):
            for size in _SIZES:
                if messages * size > _MOST_BYTES:
                    continue
                sent = torch.ones(size, dtype=torch.uint8, device=self.device)
                received = torch.zeros(messages, size, dtype=torch.uint8, device=self.device)
                # Each rank sends as far ahead as it receives from behind: all have as much to do.
                operations = [
                    operation
                    for index in range(min(messages, mine))
                    for operation in (
                        dist.P2POp(dist.isend, sent, peer(1, index)),
                        dist.P2POp(dist.irecv, received[index], peer(-1, index)),
                    )
                ]
                seconds = self.median(lambda operations=operations: exchange(operations))
                found.append([messages, size, seconds])
            messages *= 2
        return found

    def figures(self) -> dict[str, float]:
        """The device's figures, by the manifest's keys. Matrix products are bf16 on a GPU, f32 on a CPU."""
        gpu = self.device.type == "cuda"
        edge, dtype, copied = 768, torch.float32, 64 << 20
        if gpu:
            edge, dtype, copied = 8192, torch.bfloat16, 1 << 30
        a = torch.ones(edge, edge, dtype=dtype, device=self.device)
        out, few = torch.empty_like(a), torch.ones(64, device=self.device)
        source = torch.ones(copied, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)

        def launches() -> None:
            for _ in range(100):
                few.add_(1)

        product = self.median(lambda: torch.matmul(a, a, out=out))
        copy, launch = self.median(lambda: target.copy_(source)), self.median(launches) / 100
        if gpu:
            properties = torch.cuda.get_device_properties(self.device)
            threads, memory = properties.multi_processor_count, properties.total_memory
        else:
            threads = torch.get_num_threads()
            here = sum(host == socket.gethostname() for host in self.hosts())
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // here
        return {
            "tflop_per_s": 2 * edge**3 / product / 1e12, "memory_gb_per_s": 2 * copied / copy / 1e9,
            "memory_gb": memory / 1e9, "launch_us": launch * 1e6, "threads": threads,
        }  # fmt: skip

    def hosts(self) -> list[str]:
        names: list[str] = [""] * self.size
        dist.all_gather_object(names, socket.gethostname())
        return names


def exchange(operations: list[dist.P2POp]) -> None:
    if operations:
        for work in dist.batch_isend_irecv(operations):
            work.wait()


def measure(
    given: Sequence[tuple[str, int]] = (), device: torch.device | None = None
) -> dict[str, Any]:
    """Measures on all ranks of the default group. Returns the input of ``stepc probe --samples``."""
    prober = Prober(device or torch.device("cpu"))
    levels, inner = levels_of(prober.hosts(), given), 1
    for level in levels:
        ranks = level.get("ranks", prober.size)
        level["samples"] = prober.samples(inner, ranks)
        inner = ranks
    return {"levels": levels, "device": prober.figures()}


def write(samples: dict[str, Any], output: str | os.PathLike[str]) -> None:
    """Writes the cluster that follows from the samples to the file ``output``."""
    with tempfile.TemporaryDirectory(prefix="stepc-probe-") as folder:
        path = Path(folder) / "samples.json"
        path.write_text(json.dumps(samples), encoding="utf-8")
        command = [str(find_compiler()), "probe", "--samples", str(path), "-o", os.fspath(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        text = done.stderr.strip() or f"{command[0]} ended with status {done.returncode}"
        raise CompileError(text, done.returncode)


def _level(text: str) -> tuple[str, int]:
    name, _, ranks = text.rpartition("=")
    if not name or not ranks.isdecimal() or int(ranks) < 1:
        raise argparse.ArgumentTypeError(f"expected NAME=RANKS as in nvlink=8, found {text!r}")
    return name, int(ranks)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m stepc.torch.probe", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument(
        "-o", "--output", required=True, help="the cluster (JSON), which rank 0 writes"
    )
    parser.add_argument(
        "--level", type=_level, action="append", default=[], metavar="NAME=RANKS",
        help="ranks of a domain of links, innermost first, in the place of hosts",
    )  # fmt: skip
    parser.add_argument(
        "--backend", choices=("gloo", "nccl"), help="nccl where each process has a GPU, else gloo"
    )
    options = parser.parse_args(arguments)
    backend = options.backend or ("nccl" if torch.cuda.is_available() else "gloo")
    device = None
    if backend == "nccl":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK") or "0"))
        torch.cuda.set_device(device)
    dist.init_process_group(backend)
    try:
        if dist.get_world_size() < 2:
            raise ValueError(
                "expected several processes to measure, found one: start them by torchrun"
            )
        samples = measure(options.level, device)
        if dist.get_rank() == 0:
            write(samples, options.output)
    except (ValueError, StepcError) as error:
        if dist.get_rank() == 0:
            print(f"stepc.torch.probe: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    finally:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
