"""What compiling the models of examples/models costs: time, memory, the library's size.

    .venv/bin/python benchmarks/models.py [NAME]... [--for cpu,gpu] [--stepc build/bin/stepc]

Prints the tables of docs/models.md, or the rows whose names contain a NAME: for this machine's CPU, and the
largest models for a cluster of GPUs. CPU seconds are the compiler's, user and system, so that other work on
the machine shows little; seconds are those that somebody waits, with as many cores as the machine has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from growth import GPU_CLUSTER, ROOT, cells, span, timed

EXAMPLES = ROOT / "examples" / "models"
FIGURES = [  # options of examples/models/manifest.py
    "llama-3-8b --ranks 64",
    "llama-3-8b --ranks 64 --replicas 8",
    "qwen3-8b --ranks 64 --tp 8",
    "qwen3-8b --ranks 64 --fused",
    "qwen3-30b-a3b --ranks 64 --ep 8",
    "qwen3-30b-a3b --ranks 64 --ep 8 --tp 2",
    "qwen3.5-397b-a17b --ranks 128",
    "qwen3.5-397b-a17b --ranks 128 --ep 16",
    "qwen3.5-397b-a17b --ranks 128 --flat",
    "deepseek-v3 --ranks 1024 --ep 64",
    "deepseek-v3 --ranks 2048 --ep 64",
    "kimi-k2 --ranks 1024 --ep 64",
    "kimi-k2 --ranks 2048 --ep 64",
]
ON_GPUS = [figure for figure in FIGURES if figure == "qwen3.5-397b-a17b --ranks 128" or figure.startswith(("deepseek", "kimi"))]
TABLES = {"cpu": (FIGURES, []), "gpu": (ON_GPUS, GPU_CLUSTER)}
HEAD = ("s", "CPU s", "peak MiB", "library MiB", "groups", "MiB a rank sends", "most TFLOP on a rank", "workspace MiB", "strategies")


def measure(stepc: Path, figure: str, options: list[str], folder: Path) -> list[str]:
    path, library = folder / "m.json", folder / "library"
    subprocess.run([sys.executable, EXAMPLES / "manifest.py", *figure.split(), "-o", path], check=True, stderr=subprocess.DEVNULL)
    rest = [EXAMPLES / "models.optim", "--manifest", path, *options]
    taken = timed([stepc, "compile", *rest, "-o", library], folder / "out")
    size = (library / "libmodels.so").stat().st_size
    workspace = json.loads((library / "models.json").read_text())["workspace_bytes"]
    timed([stepc, "explain", *rest, "--json"], folder / "explained.json")
    explained = json.loads((folder / "explained.json").read_text())
    mib = {key: value / 2**20 for key, value in explained["total"]["bytes_sent"].items()}
    flops = explained["total"]["flops"]
    strategies = ", ".join(sorted({group["strategy"] for group in explained["groups"]} - {"elementwise"}))
    return [f"{taken.seconds:.1f}", *cells(taken), f"{size / 2**20:.1f}", f"{len(explained['groups'])}", span(mib, "{:,.0f}"),
            f"{flops['max'] / 1e12:.1f}", f"{workspace / 2**20:,.0f}", strategies]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of figures (default: all)")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    parser.add_argument("--for", dest="targets", default="cpu,gpu", help="tables (default: %(default)s)")
    options = parser.parse_args()
    for target in options.targets.split(","):
        figures, rest = TABLES[target]
        print(
            f"\n| `{' '.join(['manifest.py', *rest])}` | {' | '.join(HEAD)} |\n|{'---|' * (len(HEAD) + 1)}",
            flush=True,
        )
        for figure in figures:
            if options.names and not any(part in figure for part in options.names):
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = measure(options.stepc, figure, rest, Path(folder))
            print(f"| `{figure}` | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
