"""Times what the host spends on a step for a GPU: checks, one upload, launches, and events.

    .venv/bin/python benchmarks/walk.py [--parameters N] [--steps N]

AdamW on N parameters (default 400) of f32[64], by the code that drives a GPU, on the driver of test/devices,
whose kernels and copies do nothing here (STEPC_STUB_EMPTY). So what is timed is the library's own work, and
as much of a driver's as the stand-in's locks and lists cost. Microseconds of `enqueue`, least and median, of
a step with and without new gradients, and of one that replays a graph; the three in turns in one run.
"""

from __future__ import annotations

import argparse
import ctypes as c
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "frontends" / "python"), str(ROOT / "test" / "python"), str(ROOT / "test" / "python" / "property")]
os.environ["STEPC_STUB_EMPTY"] = "1"

from bound import Bound, compiled  # noqa: E402
from stub_driver import STUB  # noqa: E402

SPEC = """optimizer AdamW(lr, b1 = 0.9, b2 = 0.95, eps = 1e-8, wd = 0.1) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - b1)
  v = lerp(v, grad * grad, 1 - b2)
  let update = (m / (1 - b1 ^ step)) / (sqrt(v / (1 - b2 ^ step)) + eps)
  param = param * (1 - lr * wd) - lr * update
}
route { AdamW(lr = 0.001) for rest }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=400)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "adamw.optim"
        spec.write_text(SPEC)
        shapes = {f"p{i}": [64] for i in range(options.parameters)}
        library = compiled(Path(folder) / "made", "--target", "emulated", spec=spec, shapes=shapes, STEPC_RUNTIME_DIR=str(STUB))
        plain, replayed = (Bound(library, graph=graph, threads=1) for graph in (False, True))
        sets = []
        for bound in (plain, replayed):
            bound.new_gradients()
        for _ in range(2):
            gradients = [plain.draw([64]) for _ in plain.names]
            sets.append((gradients, (c.c_uint64 * len(gradients))(*(one.ctypes.data for one in gradients))))

        def step(bound: Bound) -> float:
            enqueue, handle = library.table.enqueue, bound.instance._handle
            begun = time.perf_counter()
            status = enqueue(handle)
            taken = time.perf_counter() - begun
            assert status == 0, library.table.last_error(handle)
            return taken

        def bind(number: int) -> float:
            pointers = sets[number % 2][1]
            begun = time.perf_counter()
            plain.instance.bind_gradients(pointers, len(pointers))
            return time.perf_counter() - begun

        ways = {
            "a step": lambda number: step(plain),
            "a step on new gradients": lambda number: bind(number) + step(plain),
            "a step that replays a graph": lambda number: step(replayed),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(options.steps):
            for name, function in ways.items():
                times[name].append(1e6 * function(number))
    print(f"{options.parameters} parameters, µs of the host: least, median of {options.steps}")
    for name, found in times.items():
        print(f"{name:<30} {min(found):8.1f} {statistics.median(found):8.1f}")


if __name__ == "__main__":
    main()
