"""Times what a step costs beside the library: the way through Python, by the C++ extension and without it.

    .venv/bin/python benchmarks/host.py [--parameters N] [--rounds N]

AdamW on N parameters (default 400) of f32[64], one thread, the two ways in turns in one run; microseconds,
least and median. "library" is the time of the library's own step, "host" all the rest of optimizer.step(),
in which torch's own wrapper of an optimizer's step is, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import torch
from step import ADAMW
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor

from stepc.torch import Optimizer
from stepc.torch.extension import VARIABLE

STEPS = 20  # in a row


def parameters(count: int, mesh: object | None) -> list[torch.nn.Parameter]:
    result = []
    for _ in range(count):
        value, gradient = torch.randn(64), torch.randn(64) * 1e-3
        if mesh is not None:
            value = distribute_tensor(value, mesh, [Replicate()])
            gradient = distribute_tensor(gradient, mesh, [Replicate()])
        p = torch.nn.Parameter(value)
        p.grad = gradient
        result.append(p)
    return result


def made(count: int, mesh: object | None, extension: bool) -> Callable[[], tuple[float, float]]:
    """A function that steps, and says how long the library took and how long all the rest."""
    os.environ[VARIABLE] = "1" if extension else "0"
    optimizer = Optimizer([(f"p{i}", p) for i, p in enumerate(parameters(count, mesh))], ADAMW, threads=1)
    optimizer.prepare()
    instance = optimizer._binding.instance
    inside, spent = instance.step, [0.0]

    def timed() -> None:
        start = time.perf_counter()
        inside()
        spent[0] = time.perf_counter() - start

    instance.step = timed

    def step() -> tuple[float, float]:
        start = time.perf_counter()
        optimizer.step()
        return spent[0], time.perf_counter() - start - spent[0]

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
    print(
        f"torch {torch.__version__}, {options.parameters} parameters of f32[64], microseconds: least, median of "
        f"{options.rounds * STEPS} steps\n\n{'':28}{'host':>16}{'library':>16}"
    )
    for kind, where in (("plain tensors", None), ("DTensors", mesh)):
        ways = {"the C++ extension": made(options.parameters, where, True),
                "Python alone": made(options.parameters, where, False)}  # fmt: skip
        times = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, step in ways.items():
                step()  # what the other way left in the caches is not its to wait for
                times[name] += [step() for _ in range(STEPS)]
        for name, found in times.items():
            library, host = ([1e6 * one[i] for one in found] for i in (0, 1))
            cells = (f"{min(one):8.0f}{statistics.median(one):8.0f}" for one in (host, library))
            print(f"{kind + ', ' + name:34}{''.join(cells)}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
