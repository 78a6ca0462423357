"""What ranks send in each case of xtuner's list as stepc plans it, and with the way forced that xtuner takes there.

    .venv/bin/python benchmarks/ways.py [--profile h100] [--stepc build/bin/stepc]

Bytes are those that the plan sends, by `stepc simulate`. A strategy that stepc does not have, or that is not legal, is said so.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from pathlib import Path

from choices import EXAMPLES, ROOT

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


def force(case: str, strategy: str) -> list[str]:
    """Matrices in full batches of as many as ranks go by all-to-all, whatever the rest does."""
    document = json.loads((EXAMPLES / "cases" / f"{case}.json").read_text())
    ranks = math.prod(axis["size"] for axis in document["meshes"][0]["axes"])
    names = [one["name"] for one in document["parameters"] if len(one["shape"]) - one.get("batch_axes", 0) == 2]
    full = len(names) // ranks * ranks if "experts" not in case else 0
    hows = ["owner"] * full + [strategy] * (len(names) - full)
    return [word for name, how in zip(names, hows, strict=True) for word in ("--strategy", f"{name}={how}")]


def simulate(stepc: Path, case: str, profile: str, options: list) -> dict | str:
    command = [stepc, "simulate", EXAMPLES / "muon.optim", "--manifest", EXAMPLES / "cases" / f"{case}.json", "--cluster", profile,
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
        chosen = simulate(options.stepc, case, options.profile, [])
        forced = simulate(options.stepc, case, options.profile, force(case, strategy))
        print(f"| `{case}` | {cell(chosen)} | {way} | {cell(forced)} |", flush=True)


if __name__ == "__main__":
    main()
