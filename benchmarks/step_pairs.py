"""Times whole steps of two builds of stepc in one run, taking turns so that both meet the same noise.

    .venv/bin/python benchmarks/step_pairs.py BEFORE [AFTER] [--rounds 15] [--case NAME]...

BEFORE and AFTER (default: this checkout) are built checkouts. Each compiles a case with its own compiler and
steps it through its own Python package, in a process of its own that waits while the other one measures. So
the C interface may differ. Printed are the least and the median time of `library->step`, and the median of
the ratios of neighbours (AFTER's time / BEFORE's: less than 1 is faster). Ranks are threads of one process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CASES = {  # name → (route, shapes, dtype, ranks, threads of each, placements)
    "AdamW 400 × f32[64], 1 thread": ("AdamW", [[64]] * 400, "f32", 1, 1, "R"),
    "AdamW 20M, 2 threads": ("AdamW", [[5000, 1000]] * 4, "f32", 1, 2, "R"),
    "Muon bf16, 16 small, 1 thread": ("Muon", [[64, 64], [128, 64], [64, 128], [128, 128]] * 4, "bf16", 1, 1, "R"),
    "Muon bf16, 8 of 512×512, 2 threads": ("Muon", [[512, 512]] * 8, "bf16", 1, 2, "R"),
    "Muon bf16, 40 shapes, 4 ranks, S(0)": (
        "Muon", [[64 * (1 + i % 8), 32 * (1 + i // 8)] for i in range(40)], "bf16", 4, 1, "S(0)"),
    "Muon f32, a block of the 125M GPT, 8 replicas": ("Muon", [[768, 768]] * 4 + [[3072, 768], [768, 3072]], "f32", 8, 1, "R"),
}  # fmt: skip


# --- a worker: one build, one case, in a process of its own ---


class Rank:
    """An instance with memory of its own. Values are random and steps start at 10 in every round: zeros, and
    powers that underflow, take another time than training does."""

    def __init__(self, library, transport, threads: int) -> None:
        from stepc._library import Instance

        self.instance, self.memory = Instance(library, transport, threads=threads), []
        self.random = np.random.default_rng(7)
        gradients = []
        for p in self.instance.parameters:
            self.instance.bind_parameter(p.index, *self.room(p.local_shape, p.dtype))
            for index, state in enumerate(p.states):
                self.instance.bind_state(p.index, index, *self.room(state.local_shape, state.dtype))
            gradients.append(self.room(p.local_shape, p.gradient_dtype)[0])
        self.gradients = (ctypes.c_uint64 * len(gradients))(*gradients)
        self.instance.bind_gradients(self.gradients, len(gradients))
        self.counts = np.zeros(len(gradients), np.int64)
        self.instance.bind_steps(self.counts.ctypes.data)
        self.call, self.handle = library.table.step, self.instance._handle

    def room(self, shape, dtype: str) -> tuple[int, int]:
        """(address, bytes) of small positive values: a second moment is positive, too."""
        values = np.abs(self.random.normal(size=shape, scale=0.02)).astype(np.float32)
        if dtype != "f32":
            values = (values.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bf16" else values.astype(np.float16)
        self.memory.append(np.ascontiguousarray(values))
        return self.memory[-1].ctypes.data, self.memory[-1].nbytes

    def steps(self, count: int) -> None:
        call, handle = self.call, self.handle
        for _ in range(count):
            if call(handle):
                fail(self.instance.library.table.last_error(handle).decode())


def fail(text: str) -> None:
    print(f"step_pairs.py: {text}", file=sys.stderr, flush=True)
    os._exit(1)  # other threads may wait for this one


def ranks_of(library, size: int, threads: int) -> list[Rank]:
    if size == 1:
        return [Rank(library, None, threads)]
    from stepc import _abi
    from stepc.errors import StepcError

    tables = (_abi.Transport * size)()
    if hasattr(tables[0], "struct_size"):  # since version 2 of the interface
        tables[0].struct_size = ctypes.sizeof(_abi.Transport)
    if library.table.in_process_world(size, tables):
        fail("no world in this process")

    class Transport:
        def __init__(self, table) -> None:
            self.table = table

    made = [None] * size

    def make(rank: int) -> None:
        try:
            made[rank] = Rank(library, Transport(tables[rank]), threads)
        except StepcError as error:
            fail(str(error))

    together(make, size)
    return made


def together(function, size: int) -> None:
    """Calls a function with each rank, in threads where there are several: creating and stepping are
    collective.
    """
    if size == 1:
        return function(0)
    workers = [threading.Thread(target=function, args=(rank,)) for rank in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def work(checkout: Path, case: str, folder: Path) -> None:
    """Measures on request: a line with a count of steps comes in, the seconds that they took go out."""
    from stepc._library import Library

    route, shapes, dtype, size, threads, placement = CASES[case]
    text = (ROOT / "examples" / "muon.optim").read_text()
    claim = "for matrix" if route == "Muon" else "for rest"
    (folder / "step.optim").write_text(
        f"{text[: text.index('route {')]}route {{\n  {route}(lr = 0.01) {claim}\n}}\n"
    )
    parameters = [{"name": f"p{i}", "shape": shape, "dtype": dtype, "mesh": "w", "placements": [placement]}
                  for i, shape in enumerate(shapes)]  # fmt: skip
    mesh = {"name": "w", "axes": [{"name": "dp", "size": size}]}
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    command = [checkout / "build" / "bin" / "stepc", "compile", "step.optim", "-m", "m.json", "-o", "."]
    subprocess.run(list(map(str, command)), cwd=folder, check=True, capture_output=True)
    ranks = ranks_of(Library(folder / "libstep.so"), size, threads)
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        for rank in ranks:
            rank.counts[:] = 10
        start = time.perf_counter()
        together(lambda rank, count=count: ranks[rank].steps(count), size)
        print(time.perf_counter() - start, flush=True)
    os._exit(0)  # nothing to tidy up


# --- the pairs ---


class Worker:
    def __init__(self, checkout: Path, case: str, folder: Path) -> None:
        folder.mkdir()
        python = {**os.environ, "PYTHONPATH": str(checkout / "frontends" / "python")}
        command = [sys.executable, __file__, str(checkout), "--case", case, "--worker", str(folder)]
        self.process = subprocess.Popen(
            command, env=python, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.read()

    def read(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"step_pairs.py: exit {self.process.wait()}: {self.process.args}")
        return line

    def seconds(self, count: int) -> float:
        """Of one step, over `count`."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.read()) / count

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def shown(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def pair(checkouts: list[Path], case: str, rounds: int) -> str:
    """One row: least and median of each, median of the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(checkout, case, Path(folder) / str(i)) for i, checkout in enumerate(checkouts)]
        once = min(worker.seconds(3) for worker in workers)
        count = max(1, int(0.1 / once))
        times = [[] for _ in workers]
        for turn in range(rounds):
            order = range(len(workers)) if turn % 2 == 0 else reversed(range(len(workers)))
            for index in order:
                times[index].append(workers[index].seconds(count))
        for worker in workers:
            worker.close()
    cells = [f"{shown(min(one))}, {shown(statistics.median(one))}" for one in times]
    if len(times) > 1:
        cells.append(f"{statistics.median(b / a for a, b in zip(*times, strict=True)):.3f}")
    return f"| {case} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="+", type=Path, help="one or two built checkouts")
    parser.add_argument("--rounds", type=int, default=15, help="of each build (default 15)")
    parser.add_argument("--case", action="append", help="a part of a case's name (default: all cases)")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.checkouts[0], options.case[0], options.worker)
    checkouts = [path.resolve() for path in options.checkouts[:2]]
    checkouts += [ROOT] if len(checkouts) < 2 else []
    print("| step | before: least, median | after: least, median | ratio |\n|---|---|---|---|", flush=True)
    for case in CASES:
        if not options.case or any(part in case for part in options.case):
            print(pair(checkouts, case, options.rounds), flush=True)


if __name__ == "__main__":
    main()
