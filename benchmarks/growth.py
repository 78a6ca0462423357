"""How compiling, messages, launches and workspace grow with parameters, shapes and ranks.

    .venv/bin/python benchmarks/growth.py [NAME]... [--stepc build/bin/stepc]

Prints a table of the figures of docs/growth.md, or of those whose names contain a NAME. The models stand in
growth.json. Seconds are CPU seconds of the compiler, user and system, so that other work on the machine shows
little.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from measure import Taken, measured

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "examples" / "muon.optim"
GPU_CLUSTER = ["--cluster", "h100", "--target", "cuda:sm_90a"]  # of stepc, for a cluster of GPUs
FIGURES = {  # name → (model, what stepc does, options)
    "1,000 dense × 2,048 ranks, through the proof": ("dense", "proof", []),
    "5,000 of 64 experts, S(1) × 256 ranks, through the proof": ("experts_cut", "proof", []),
    "5,000 of 64 experts, ep 32 × dp 64, through the proof": ("experts_dealt", "proof", []),
    "explain 100 of 64 experts, S(1) × 2,048 ranks": ("experts_cut_100", "explain", []),
    "explain 100 of 64 experts, ep 32 × dp 64": ("experts_dealt_100", "explain", []),
    "gather 100 dense × 2,048 ranks, through the proof": ("dense_100", "proof", ["--strategy", "*=gather"]),
    "125 shapes × 1,024 ranks, through the proof": ("distinct_125", "proof", []),
    "250 shapes × 1,024 ranks, through the proof": ("distinct_250", "proof", []),
    "1,000 shapes × 1,024 ranks, through the proof": ("distinct", "proof", []),
    "125 shapes × 1,024 ranks": ("distinct_125", "to library", []),
    "1,000 shapes × 1,024 ranks": ("distinct", "to library", []),
    "1,000 of 1 shape × 64 ranks": ("one_shape", "library", []),
    "1,000 of 40 shapes × 64 ranks": ("forty_shapes", "library", []),
    "125M GPT's matrices, 8 replicas": ("replicas", "library", []),
}


def manifest(name: str, alone: bool = False, count: int | None = None) -> dict:
    """A model of growth.json, written out; `alone`: on a single rank; `count`: so many parameters in
    place of the model's.
    """

    def shape(index: int) -> list[int]:
        if "shapes_from" in model:
            first, step, side = model["shapes_from"]
            return [first + step * (index % side), first + step * (index // side)]
        return model["shapes"][index % len(model["shapes"])]

    models = json.loads((ROOT / "benchmarks" / "growth.json").read_text())
    model = models["models"][name]
    axes = [
        {"name": axis, "size": 1 if alone else size} for axis, size in models["meshes"][model["mesh"]].items()
    ]
    parameters = [
        {"name": f"layers.{index}.weight", "shape": shape(index),
         "batch_axes": model.get("batch_axes", 0), "dtype": model.get("dtype", "bf16"), "mesh": model["mesh"],
         "placements": model["placements"]} for index in range(count or model["count"])
    ]  # fmt: skip
    return {"version": 1, "meshes": [{"name": model["mesh"], "axes": axes}], "parameters": parameters}


def timed(command: list, output: Path) -> Taken:
    """Runs a command whose standard output goes to a file: what it took."""
    with output.open("wb") as out:
        done, taken = measured(command, stdout=out, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(
            f"growth.py: exit {done.returncode}: {' '.join(map(str, command))}\n{done.stderr.decode()}"
        )
    return taken


def cells(taken: Taken) -> list[str]:
    """CPU seconds and peak MiB."""
    return [f"{taken.cpu_seconds:.1f}", f"{taken.peak_bytes / 2**20:.0f}"]


def span(values: dict, digits: str = "{:,}") -> str:
    low, high = digits.format(values["min"]), digits.format(values["max"])
    return low if low == high else f"{low}–{high}"


def launches(plan: dict) -> str:
    kinds = Counter(command["kind"] for command in plan["commands"])
    return ", ".join(
        f"{kinds[kind]} {kind}" for kind in ("chunks", "parameters", "product", "apply", "copy")
    )


def measure(stepc: Path, model: str, what: str, options: list, folder: Path) -> list[str]:
    """The cells of one row after its name."""
    path = folder / "m.json"
    path.write_text(json.dumps(manifest(model)))
    rest = ["--manifest", path, "--if-present", "*embed*", "--if-present", "lm_head*", *options]
    if what == "explain":
        return [*cells(timed([stepc, "explain", SPEC, *rest], folder / "out")), "", "", "", "", "", ""]
    if what == "proof":
        command = [stepc, "compile", SPEC, *rest, "--emit", "exec", "-o", folder]
        return [*cells(timed(command, folder / "out")), "", "", "", "", "", ""]
    taken = timed([stepc, "compile", SPEC, *rest, "-o", folder], folder / "out")
    if what == "to library":
        size = (folder / "libmuon.so").stat().st_size
        return [*cells(taken), "", "", "", f"{size / 2**10:,.0f}", "", ""]
    plan = json.loads((folder / "muon.json").read_text())
    explained = explain(stepc, rest, folder)
    path.write_text(json.dumps(manifest(model, alone=True)))
    once = explain(stepc, rest, folder)["total"]["flops"]["max"]  # each product once
    flops, ranks = explained["total"]["flops"]["max"], len(explained["world"])
    strategies = "/".join(sorted({group["strategy"] for group in explained["groups"]}))
    library = (folder / "libmuon.so").stat().st_size
    return [*cells(taken), span(explained["total"]["messages_sent"]), launches(plan),
            f"{plan['workspace_bytes'] / 2**20:.2f}", f"{library / 2**10:,.0f}", strategies,
            f"{flops * ranks / once:.2f}"]  # fmt: skip


def explain(stepc: Path, options: list, folder: Path) -> dict:
    timed([stepc, "explain", SPEC, *options, "--json"], folder / "explained.json")
    return json.loads((folder / "explained.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of figures (default: all)")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    options = parser.parse_args()
    print("| figure | CPU s | peak MiB | messages a rank sends | launches | workspace MiB | library KiB | "
          "strategy | most FLOPs on a rank / even share |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, (model, what, rest) in FIGURES.items():
        if options.names and not any(part in name for part in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cells = measure(options.stepc, model, what, rest, Path(folder))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
