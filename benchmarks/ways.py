"""What ranks send in each case of xtuner's list: as stepc plans it, and with the way that xtuner takes.

    .venv/bin/python benchmarks/ways.py [--profile h100] [--stepc build/bin/stepc]

Bytes are those that the plan sends, by `stepc simulate`. Where xtuner pads, its way is that of a manifest
with the padding in it: no strategy of stepc sends any. A strategy that is not legal is said so.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from pathlib import Path

from choices import EXAMPLES, ROOT, is_matrix

WAYS = {  # case → (what xtuner does there, the strategy that is that)
    "xtuner_experts_divide": ("nothing is sent", "local"),
    "xtuner_ranks_divide": ("all-gather in subgroups", "subgroup-gather"),
    "xtuner_full_even": ("all-to-all", "owner"),
    "xtuner_full_uneven": ("all-to-all, uneven", "owner"),
    "xtuner_remainder_even": ("all-gather, reduce-scatter", "agrs"),
    "xtuner_remainder_uneven": ("all-to-all with padding", "owner"),
    "xtuner_neither_divides": ("all-to-all with padding", "owner"),
    "experts_ep_uneven": ("all-to-all with padding", "owner"),
}
HEAD = ("case", "stepc's choice", "bytes of all ranks", "µs", "xtuner's way", "forced", "bytes of all ranks", "µs")


def read(case: str) -> dict:
    return json.loads((EXAMPLES / "cases" / f"{case}.json").read_text())


def ranks_of(document: dict) -> int:
    return math.prod(axis["size"] for axis in document["meshes"][0]["axes"])


def padded(document: dict) -> dict:
    """As many matrices as ranks, or a multiple of that, of rows that they divide: experts of a stack, those
    of a fused weight, or matrices of a list. What is added is zeros for xtuner, and is orthogonalized and
    sent like the rest."""
    ranks, matrices = ranks_of(document), []
    for one in filter(is_matrix, document["parameters"]):
        if one.get("batch_axes"):
            one["shape"][0] += -one["shape"][0] % ranks
        elif blocks := one.get("blocks"):
            blocks["sizes"] += blocks["sizes"][:1] * (-len(blocks["sizes"]) % ranks)
            one["shape"][0] = sum(blocks["sizes"])
        elif len(document["meshes"]) == 1:
            one["shape"][0] += -one["shape"][0] % ranks
            matrices.append(one)
    document["parameters"] += [
        matrices[0] | {"name": f"padding.{index}.weight"} for index in range(-len(matrices) % ranks)
    ]
    return document


def force(document: dict, strategy: str) -> list[str]:
    """Matrices in full batches of as many as ranks go by all-to-all, whatever the rest does."""
    ranks = ranks_of(document)
    names = [one["name"] for one in document["parameters"] if is_matrix(one)]
    full = 0 if any("experts" in name for name in names) else len(names) // ranks * ranks
    hows = ["owner"] * full + [strategy] * (len(names) - full)
    return [word for name, how in zip(names, hows, strict=True) for word in ("--strategy", f"{name}={how}")]


def simulate(stepc: Path, document: dict, profile: str, options: list) -> dict | str:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        command = [stepc, "simulate", EXAMPLES / "muon.optim", "--manifest", file.name, "--cluster", profile,
                   "--if-present", "*embed*", "--if-present", "lm_head*", "--json", "-", *options]  # fmt: skip
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        line = next(line for line in done.stderr.splitlines() if line.strip())
        return line.split("found ")[-1]
    return json.loads(done.stdout)


def cell(result: dict | str) -> str:
    if isinstance(result, str):
        return f"{result} | | "
    ranks = result["ranks"]
    names = ", ".join(sorted({group["strategy"] for group in result["groups"]} - {"elementwise"}))
    total = sum(rank["bytes_sent"] for rank in ranks)
    return f"{names} | {total:,} | {result['latency_seconds'] * 1e6:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="h100", help="a cluster (default: %(default)s)")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    options = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for case, (way, strategy) in WAYS.items():
        chosen = simulate(options.stepc, read(case), options.profile, [])
        document = padded(read(case)) if "padding" in way else read(case)
        forced = simulate(options.stepc, document, options.profile, force(document, strategy))
        print(f"| `{case}` | {cell(chosen)} | {way} | {cell(forced)} |", flush=True)


if __name__ == "__main__":
    main()
