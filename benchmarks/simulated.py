"""Whether `stepc simulate` puts plans in the order in which they run: on MPI ranks of this machine.

    .venv/bin/python benchmarks/simulated.py [NAME]... [--stepc build/bin/stepc] [--steps 25] [--rounds 3]
        [--json FILE]

Every model below is compiled for several plans (strategies, waves, placements) and 2, 4 and 8 ranks of one
thread each, whose steps are timed under mpirun and simulated. Of two plans for one model and number of ranks
that differ by over 10 % in the measured time, the simulated times must be in the same order. The cluster's
figures are measured once, before: a product's operations per second and a kernel's bytes per second by steps
on one rank, latency and bandwidth by messages between two. Nothing is fitted to what is compared. Ranks
beyond the cores share them (`--oversubscribe`).
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORES = len(os.sched_getaffinity(0))
RANKS = (2, 4, 8)
APART = 0.1  # pairs that differ by less have no order
SPEC = """
optimizer Muon(lr = 0.02, momentum = 0.95, weight_decay = 0.1) {{
  state m : f32
  m = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = {steps}, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}}
optimizer AdamW(lr = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8) {{
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  param = param - lr * (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
}}
route {{
  Muon() for "m.*"
  AdamW() for "e.*"
}}
"""
# name: (matrices [count, shape, batch axes], elements of AdamW, dtype, Newton–Schulz steps, placements,
# plans)
OWNER, GATHER, LOCAL = ["--strategy=m.*=owner"], ["--strategy=m.*=gather"], ["--strategy=m.*=local"]
PLANS = {
    "owner": OWNER + ["--waves=1"],
    "owner, 3 waves": OWNER + ["--waves=3"],
    "gather": GATHER + ["--waves=1"],
    "gather, 3 waves": GATHER + ["--waves=3"],
    "local": LOCAL + ["--waves=1"],
    "subgroup-gather": ["--strategy=m.*=subgroup-gather", "--waves=1"],
    "agrs": ["--strategy=m.*=agrs", "--waves=1"],
    "hierarchical": ["--strategy=m.*=hierarchical", "--waves=1"],
}
SHARDED = ("owner", "gather")
IN_HOPS = ("owner", "gather", "agrs", "hierarchical")
IN_WAVES = ("owner", "owner, 3 waves", "gather", "gather, 3 waves")
MODELS = {
    "8 of 512×512": ([(8, [512, 512], 0)], 0, "bf16", 5, ["S(0)"], IN_WAVES + ("hierarchical",)),
    "6 of 1024×256, f32": ([(6, [1024, 256], 0)], 0, "f32", 5, ["S(0)", "S(1)"], SHARDED),
    "8 of 1024×1024, one step": ([(8, [1024, 1024], 0)], 0, "f32", 1, ["S(0)"], (*SHARDED, "hierarchical")),
    "16 of 2048×128, one step": ([(16, [2048, 128], 0)], 0, "f32", 1, ["S(0)", "S(1)"], IN_WAVES),
    "3 of 1024×256": ([(3, [1024, 256], 0)], 0, "f32", 5, ["S(0)", "S(1)"], IN_HOPS),
    "6 of 384×384": ([(6, [384, 384], 0)], 0, "bf16", 5, ["S(0)"], IN_HOPS),
    "3 of 512×512": ([(3, [512, 512], 0)], 0, "bf16", 5, ["S(0)"], IN_HOPS),
    "100 of 64×64": ([(100, [64, 64], 0)], 0, "f32", 5, ["S(0)"], SHARDED),
    "64 experts of 128×128": ([(1, [64, 128, 128], 1)], 0, "bf16", 5, ["S(0)", "S(1)", "R", "S(0) S(1)"],
                              (*SHARDED, "local", "subgroup-gather", "hierarchical")),
    "replicas of 8 of 384×384": ([(8, [384, 384], 0)], 0, "f32", 5, ["R"], ("owner", "local", "gather")),
    "4 of 512×512 with 8M of AdamW": ([(4, [512, 512], 0)], 8 << 20, "f32", 2, ["S(0)", "R"], SHARDED + ("local",)),
}


def run(command: list, environment: dict | None = None, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, check=False
    )
    if check and done.returncode:
        fail(done)
    return done


def fail(done: subprocess.CompletedProcess) -> None:
    raise SystemExit(
        f"simulated.py: exit {done.returncode}: {shlex.join(done.args)}\n{done.stdout}{done.stderr}"
    )


def manifest(model: str, ranks: int, placement: str, cluster: dict | None) -> dict:
    matrices, elements, dtype, _, _, _ = MODELS[model]
    parameters = []
    for count, shape, batch in matrices:
        for _ in range(count):
            parameters.append({"name": f"m.{len(parameters)}", "shape": shape, "dtype": dtype, "mesh": "mesh",
                               "placements": placement.split(), "batch_axes": batch})  # fmt: skip
    if elements:
        parameters.append({"name": "e.0", "shape": [elements // 1024, 1024], "dtype": dtype, "mesh": "mesh",
                           "placements": placement.split()})  # fmt: skip
    sizes = [ranks] if len(placement.split()) == 1 else [2, ranks // 2]
    mesh = {
        "name": "mesh",
        "axes": [{"name": f"axis{axis}", "size": size} for axis, size in enumerate(sizes)],
    }
    return {"version": 1, "meshes": [mesh], "parameters": parameters} | (
        {"cluster": cluster} if cluster else {}
    )


class Machine:
    """What runs and what simulates."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.stepc, self.steps, self.rounds, self.nice = options.stepc, options.steps, options.rounds, options.nice
        self.folder = folder
        self.program = folder / "mpi_step"
        libraries = self.stepc.parent.parent / "lib"
        run(["mpicc", "-O2", f"-I{ROOT}/runtime/include", ROOT / "benchmarks" / "mpi_step.c", f"-L{libraries}",
             "-lstepc_mpi", "-ldl", f"-Wl,-rpath,{libraries}", "-o", self.program])  # fmt: skip
        self.environment = os.environ | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
        }  # fmt: skip
        self.cluster = None
        self.cluster = self.measure_cluster()

    def mpirun(self, ranks: int, *words) -> str:
        return run(
            ["nice", "-n", self.nice, "mpirun", "-np", ranks, self.program, *words], self.environment
        ).stdout

    def write(self, model: str, ranks: int, placement: str) -> list:
        """The arguments for what was written."""
        (self.folder / "m.json").write_text(json.dumps(manifest(model, ranks, placement, self.cluster)))
        (self.folder / "spec.optim").write_text(SPEC.format(steps=MODELS[model][3]))
        absent = [pattern for pattern, there in zip(("m.*", "e.*"), MODELS[model], strict=False) if not there]
        return [self.folder / "spec.optim", "--manifest", self.folder / "m.json",
                *(word for pattern in absent for word in ("--if-present", pattern))]  # fmt: skip

    def compile(self, arguments: list, name: str) -> Path | None:
        """The library; nothing where the plan is not legal."""
        done = run([self.stepc, "compile", *arguments, "-o", self.folder / name], check=False)
        if done.returncode and "legal to force" not in done.stderr:
            fail(done)
        return None if done.returncode else self.folder / name / "libspec.so"

    def time(self, ranks: int, library: Path) -> tuple[float, int]:
        """Seconds and launches of a step."""
        words = self.mpirun(ranks, library, self.steps).split()
        return float(words[0]) * 1e-6, int(words[1])

    def simulate(self, ranks: int, arguments: list) -> dict:
        share = ["--oversubscribe", f"{ranks}/{CORES}"] if ranks > CORES else []
        return json.loads(
            run([self.stepc, "simulate", *arguments, "--messages", "waits", *share, "--json", "-"]).stdout
        )

    def measure_cluster(self) -> dict:
        """A rank of one thread, by single ranks that multiply, and that step elementwise; and messages
        between two.
        """

        def alone(name: str, *model) -> tuple[float, int, dict]:
            MODELS[name] = model
            arguments = self.write(name, 1, "R")
            library = self.compile(arguments, "alone")
            seconds, launches = min(self.time(1, library) for _ in range(self.rounds))
            figures = self.simulate(1, arguments)["ranks"][0]
            del MODELS[name]
            return seconds, launches, figures

        tiny, launches, _ = alone("tiny", [(1, [8, 8], 0)], 64 * 1024, "f32", 5, [], [])
        launch = tiny / launches
        seconds, _, figures = alone("products", [(4, [512, 512], 0)], 0, "bf16", 5, [], [])
        flops = figures["flops"] / seconds
        seconds, _, figures = alone("elementwise", [], 16 << 20, "f32", 5, [], [])
        memory = figures["bytes_touched"] / seconds
        ways: dict[float, float] = {}  # bytes: seconds
        for _ in range(self.rounds):
            for line in self.mpirun(2).splitlines():
                size, micro = map(float, line.split())
                ways[size] = min(ways.get(size, math.inf), micro * 1e-6)
        latency, bandwidth = min(ways.values()) * 1e6, max(size / seconds for size, seconds in ways.items())
        link = {"gb_per_s": bandwidth / 1e9, "latency_us": latency}
        return {
            # Alike, because there is one memory; plans of several hops need domains.
            "levels": [{"name": "pair", "ranks": 2} | link, {"name": "memory"} | link],
            "device": {"tflop_per_s": flops / 1e12, "memory_gb_per_s": memory / 1e9, "launch_us": launch * 1e6, "threads": 1},
        }


def measure(machine: Machine, model: str, ranks: int, wanted: Iterable[tuple[str, str]]) -> list[dict]:
    """All legal plans of a model, in rounds: each plan's least time is of the machine's quietest moment."""
    plans = []
    for placement, name in wanted:
        arguments = [*machine.write(model, ranks, placement), *PLANS[name]]
        if library := machine.compile(arguments, f"plan{len(plans)}"):
            simulated = machine.simulate(ranks, arguments)["latency_seconds"]
            plans.append({"model": model, "ranks": ranks, "plan": f"{name}, {placement}", "simulated": simulated, "library": library})
    for _ in range(machine.rounds):
        for plan in plans:
            seconds, _ = machine.time(ranks, plan["library"])
            plan["measured"] = min(seconds, plan.get("measured", seconds))
    for plan in plans:
        del plan["library"]
        print(f"| {model} | {ranks} | {plan['plan']} | {plan['measured'] * 1e3:.3f} | {plan['simulated'] * 1e3:.3f} "
              f"| {plan['simulated'] / plan['measured']:.2f} |", flush=True)  # fmt: skip
    return plans


def strategy(plan: dict) -> str:
    return plan["plan"].split(",")[0]


def compare(name: str, plans: list[dict], counts: dict[tuple, list[int]], wrong: list[str]) -> None:
    """Counts of pairs, by their strategies: in the wrong order, and in the right one."""
    for first, second in itertools.combinations(plans, 2):
        ratio = first["measured"] / second["measured"]
        if max(ratio, 1 / ratio) <= 1 + APART:
            continue
        right = (ratio > 1) == (first["simulated"] > second["simulated"])
        counts[tuple(sorted((strategy(first), strategy(second))))][right] += 1
        if not right:
            wrong.append(f"{name}: {first['plan']} / {second['plan']}: measured {ratio:.2f}, "
                         f"simulated {first['simulated'] / second['simulated']:.2f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of models (default: all)")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    parser.add_argument("--steps", type=int, default=25, help="steps, of which the fastest counts")
    parser.add_argument("--rounds", type=int, default=3, help="how often each plan is started anew")
    parser.add_argument(
        "--nice", type=int, default=0, help="of what is timed: below 0 beside other work, as root"
    )
    parser.add_argument("--json", type=Path, help="where figures go, too")
    options = parser.parse_args()
    wrong: list[str] = []
    counts: dict[tuple, list[int]] = collections.defaultdict(lambda: [0, 0])
    all_plans = []
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options, Path(folder))
        print(f"{CORES} cores; a rank of one thread: {json.dumps(machine.cluster)}\n", flush=True)
        print(
            "| model | ranks | plan | measured ms | simulated ms | simulated / measured |\n|---|---|---|---|---|---|"
        )
        for model, (_, _, _, _, placements, names) in MODELS.items():
            if options.names and not any(part in model for part in options.names):
                continue
            for ranks in RANKS:
                plans = measure(machine, model, ranks, itertools.product(placements, names))
                compare(f"{model} on {ranks} ranks", plans, counts, wrong)
                all_plans += plans
    right = sum(count[1] for count in counts.values())
    print(
        f"\n{right + len(wrong)} pairs differ by over {APART:.0%}: {right} in the right order, {len(wrong)} not\n"
    )
    print("| pairs of | in the right order | not |\n|---|---|---|")
    for (first, second), (false, true) in sorted(counts.items()):
        print(f"| `{first}`, in other waves or placements | {true} | {false} |" if first == second
              else f"| `{first}` and `{second}` | {true} | {false} |")  # fmt: skip
    print("\n" + "\n".join(wrong))
    if options.json:
        options.json.write_text(json.dumps({"cluster": machine.cluster, "plans": all_plans, "right": right, "wrong": wrong}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
