"""Simulates whether the plan that stepc chooses is about the fastest of those that it can be forced to.

    .venv/bin/python benchmarks/choices.py [NAME]... [--profiles h100,cpu] [--target cuda:sm_90a]
        [--strategies] [--json FILE] [--stepc build/bin/stepc]

Each manifest of examples/cases, and of the models below, is simulated on each profile as stepc plans it, and
with other numbers of waves forced: 1, 2, 3, 4, 6, 8, 12, … until they are half as slow again as the best.
With --strategies each strategy is forced on all parameters for which it is legal, in place of the waves. A
row says what was chosen, the best of all, and the ratio of their times. Words choose cases whose names
contain them. With --target products have the rates of that target's kernels, and otherwise the profile's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROFILES = ("cpu", "a100", "h100", "h200", "b200", "gb200", "gb300")
MODELS = [  # options of examples/models/manifest.py
    "llama-3-8b --ranks 64",
    "llama-3-8b --ranks 64 --replicas 8",
    "llama-3-8b --ranks 512",
    "qwen3-8b --ranks 64 --tp 8",
    "qwen3-30b-a3b --ranks 64 --ep 8",
    "qwen3-30b-a3b --ranks 64 --ep 8 --tp 2",
    "qwen3-30b-a3b --ranks 256",
    "qwen3.5-397b-a17b --ranks 128",
    "deepseek-v3 --ranks 64 --ep 64",
    "deepseek-v3 --ranks 1024 --ep 64",
    "deepseek-v3 --ranks 2048 --ep 64",
    "kimi-k2 --ranks 1024 --ep 64",
]
CASES = [path.name for path in sorted((EXAMPLES / "cases").glob("*.json"))]
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of a sweep
WORSE = 1.5  # where a sweep ends: so many times the best
HEAD = ("case", "cluster", "chosen", "ms", "modelled ms", "GiB", "best", "ms", "modelled ms", "GiB", "chosen / best")


def run(command: list) -> subprocess.CompletedProcess:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"choices.py: exit {done.returncode}: {' '.join(map(str, command))[:400]}\n{done.stderr}"
        )
    return done


def is_matrix(entry: dict) -> bool:
    """Whether a manifest's parameter is matrices: of two axes behind those of a batch."""
    return len(entry["shape"]) - entry.get("batch_axes", 0) == 2


def simulate(stepc: Path, inputs: list, profile: str, options: list, name: str = "") -> dict:
    """A plan: latency, workspace, waves and what the model of waves says."""
    done = run([stepc, "simulate", *inputs, "--cluster", profile, "--remarks", "assign-waves", "--json", "-", *options])
    result = json.loads(done.stdout)
    found = re.search(r"waves-assigned.*modelled-ns=(\d+).*waves=(\d+)", done.stderr)
    modelled, waves = (int(text) for text in found.groups()) if found else (0, 1)
    return {"name": name or str(waves), "ms": result["latency_seconds"] * 1e3, "modelled": modelled / 1e6,
            "waves": waves, "gib": result["workspace_bytes"] / 2**30}  # fmt: skip


def in_waves(stepc: Path, inputs: list, profile: str) -> Iterator[dict]:
    least = float("inf")
    before = 0
    for count in COUNTS:
        plan = simulate(stepc, inputs, profile, ["--waves", count])
        if plan["waves"] == before:
            return  # there are no more blocks
        yield plan
        before, least = plan["waves"], min(least, plan["ms"])
        if plan["ms"] > WORSE * least:
            return


def groups_of(stepc: Path, inputs: list, profile: str) -> list[dict]:
    explained = run([stepc, "explain", *inputs, "--cluster", profile, "--json"]).stdout
    return [group for group in json.loads(explained)["groups"] if group["strategy"] != "elementwise"]


def by_strategy(stepc: Path, inputs: list, groups: list[dict], profile: str) -> Iterator[dict]:
    legal = {}  # strategy → parameters
    for group in groups:
        for one in group["strategies"]:
            if one["legal"]:
                legal.setdefault(one["strategy"], []).extend(group["parameters"])
    for strategy, names in legal.items():
        options = [word for name in names for word in ("--strategy", f"{name}={strategy}")]
        yield simulate(stepc, inputs, profile, options, strategy)


def inputs_of(case: str, folder: Path) -> list:
    if case.endswith(".json"):
        return [EXAMPLES / "muon.optim", "--manifest", EXAMPLES / "cases" / case, "--if-present", "*embed*", "--if-present", "lm_head*"]
    path = folder / (re.sub(r"\W+", "_", case) + ".json")
    if not path.exists():
        run([sys.executable, EXAMPLES / "models" / "manifest.py", *case.split(), "-o", path])
    return [EXAMPLES / "models" / "models.optim", "--manifest", path]


def cells(plan: dict) -> list[str]:
    return [plan["name"], f"{plan['ms']:.3g}", f"{plan['modelled']:.3g}", f"{plan['gib']:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of cases' names (default: all)")
    parser.add_argument("--profiles", default=",".join(PROFILES), help="clusters (default: %(default)s)")
    parser.add_argument("--target", help="the target of the program (default: cpu)")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    parser.add_argument("--json", type=Path, help="where to write all that was simulated")
    parser.add_argument("--strategies", action="store_true", help="force strategies in place of waves")
    options = parser.parse_args()
    rows, ratios = [], []
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for case in [*CASES, *MODELS]:
            if options.names and not any(part in case for part in options.names):
                continue
            inputs = [*inputs_of(case, Path(name)), *(["--target", options.target] if options.target else [])]
            for profile in options.profiles.split(","):
                chosen = simulate(options.stepc, inputs, profile, [])
                if options.strategies:
                    groups = groups_of(options.stepc, inputs, profile)
                    chosen["name"] = ", ".join(sorted({group["strategy"] for group in groups}))
                    found = list(by_strategy(options.stepc, inputs, groups, profile))
                else:
                    found = list(in_waves(options.stepc, inputs, profile))
                best = min([chosen, *found], key=lambda plan: plan["ms"])
                ratios.append(chosen["ms"] / best["ms"])
                print(
                    f"| {' | '.join([case, profile, *cells(chosen), *cells(best), f'{ratios[-1]:.2f}'])} |",
                    flush=True,
                )
                rows.append({"case": case, "profile": profile, "chosen": chosen, "forced": found})
                if options.json:
                    options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\nOf {len(ratios)} the largest ratio is {max(ratios):.2f}.")


if __name__ == "__main__":
    main()
