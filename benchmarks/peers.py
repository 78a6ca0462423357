"""Simulates the step of a 397B mixture of experts on 128 GPUs as stepc plans it, and as others do it.

    .venv/bin/python benchmarks/peers.py [NAME]... [--cluster h100] [--target cuda:sm_90a] [--ranks 128]
        [--layers 60] [--json FILE] [--stepc build/bin/stepc]

Every row is a program that stepc compiles, proves and walks; no time is put in by hand. What another trainer
does is written down as placements, parameters, forced strategies, owners and waves (docs/peers.md says which
and why). All rows have products at the rates of the target's kernels, so that they differ in their plans
alone. With `--target none` products have the rate of a vendor's library:

- stepc: nothing is forced.
- xtuner: experts stay, and what is left of a batch of as many matrices as ranks is gathered and scattered
(strategy `agrs`).
- padded: each batch is filled with parameters of zeros; parameter i of a batch is whole on rank i. A batch is
a wave.
- layer-wise: a rank owns whole parameters, by longest processing time of max · min²; others get the new ones
(`R`, states
  `owned`). Experts lie on (edp, ep) and are owned in edp. What is no matrix has its states in shards
  (ZeRO-1).
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import choices
from choices import EXAMPLES, ROOT, groups_of, run

sys.path.insert(0, str(EXAMPLES / "models"))
from manifest import manifest, parameters  # noqa: E402
from placements import Layout  # noqa: E402

MODEL = "qwen3.5-397b-a17b"
SPEC = EXAMPLES / "models" / "models.optim"
HEAD = ("ms", "of stepc's", "waits for messages, ms", "workspace GiB", "most TFLOP on a rank", "GiB a rank sends")
SMALL = ("embed_tokens", "lm_head", "conv1d", "shared_expert_gate")


def is_matrix(entry: dict) -> bool:
    return choices.is_matrix(entry) and not any(word in entry["name"] for word in SMALL)


def by_shape(entries: list[dict]) -> dict[tuple, list[dict]]:
    shapes = defaultdict(list)
    for entry in entries:
        if is_matrix(entry):
            shapes[tuple(entry["shape"]), json.dumps(entry.get("blocks"))].append(entry)
    return shapes


def padded(document: dict, ranks: int) -> tuple[dict, dict[str, tuple[int, int]]]:
    """With batches filled up, and each parameter's owner and wave."""
    document = copy.deepcopy(document)
    places, wave = {}, 0
    for entries in by_shape(document["parameters"]).values():
        for index in range(-len(entries) % ranks):
            entries.append(entries[0] | {"name": f"padding.{wave}.{index}.weight"})
            document["parameters"].append(entries[-1])
        for index, entry in enumerate(entries):
            places[entry["name"]] = index % ranks, wave + index // ranks
        wave += len(entries) // ranks
    return document, places


def batches(document: dict, ranks: int) -> dict[str, tuple[int, int]]:
    """No owner (-1), and a wave for each batch."""
    places, wave = {}, 0
    for entries in by_shape(document["parameters"]).values():
        for index, entry in enumerate(entries):
            places[entry["name"]] = -1, wave + index // ranks
        wave += -(-len(entries) // ranks)
    return places


def layer_wise(document: dict, ranks: int, ep: int) -> dict:
    """Parameters on all ranks that reduce their gradients, and owners of their states. A layer's experts are
    cut into as many parameters as owners, so that they can be dealt."""
    document = copy.deepcopy(document)
    edp = ranks // ep
    expert_mesh = {"name": "experts", "axes": [{"name": "edp", "size": edp}, {"name": "ep", "size": ep}]}
    document["meshes"] = [*(mesh for mesh in document["meshes"] if mesh["name"] == "dense"), expert_mesh]
    entries = []
    for entry in document["parameters"]:
        if entry.get("batch_axes"):
            count = entry["shape"][0] // edp
            for part in range(edp):
                piece = {"name": f"{entry['name']}.{part}", "mesh": "experts", "shape": [count, *entry["shape"][1:]]}
                entries.append(entry | piece | {"placements": ["R", "S(0)"]})
        else:
            entries.append(entry | {"placements": ["R"]})
    loads = {"dense": [0] * ranks, "experts": [0] * edp}

    def cost(entry: dict) -> int:
        least, most = sorted(entry["shape"][-2:])
        return math.prod(entry["shape"][:-2]) * most * least**2

    for entry in entries:
        if not is_matrix(entry):
            entry["state_placements"] = ["S(0)"]
    for entry in sorted(filter(is_matrix, entries), key=cost, reverse=True):
        load = loads[entry["mesh"]]
        rank = load.index(min(load))
        load[rank] += cost(entry)
        entry["state_placements"] = [f"owned({rank})", *entry["placements"][1:]]
    document["parameters"] = entries
    return document


def force(text: str, places: dict[str, tuple[int, int]]) -> str:
    """The decided program with these owners and waves, for all blocks of a parameter."""

    def edit(line: str) -> str:
        names = re.search(r"parameters \[(.*?)\]", line)
        waves = re.search(r"waves \[(.*?)\]", line)
        if not names or not waves:
            return line
        names = [name.strip().lstrip("@").strip('"') for name in names.group(1).split(",")]
        blocks = len(waves.group(1).split(",")) // len(names)

        def spread(which: int) -> str:
            return ", ".join(str(places[name][which]) for name in names for _ in range(blocks))

        if all(places[name][0] >= 0 for name in names):
            line = re.sub(r"base \[.*?\]", lambda _: f"base [{spread(0)}]", line)
        return re.sub(r"waves \[.*?\]", lambda _: f"waves [{spread(1)}]", line)

    return "".join(edit(line) if " optim.group " in line else line for line in text.splitlines(keepends=True))


class Peers:
    def __init__(
        self, stepc: Path, cluster: str, target: str, ranks: int, layers: int | None, folder: Path
    ) -> None:
        self.stepc, self.cluster, self.ranks, self.folder = stepc, cluster, ranks, folder
        self.target = [] if target == "none" else ["--target", target]
        self.model = parameters(MODEL, fused=True, layers=layers)
        self.document = manifest(self.model, Layout(ranks))

    def inputs(self, document: dict) -> list:
        path = self.folder / "m.json"
        path.write_text(json.dumps(document))
        return [SPEC, "--manifest", path]

    def forced(self, document: dict, places: dict, strategies: list[str]) -> Path:
        """The decided program with these owners and waves."""
        options = [word for one in strategies for word in ("--strategy", one)]
        run([self.stepc, "compile", *self.inputs(document), "--cluster", self.cluster, *self.target, "--emit", "decided", "-o", self.folder, *options])
        path = self.folder / "models.mlir"
        path.write_text(force(path.read_text(), places))
        return path

    def walked(self, program: Path) -> dict:
        return summary(
            json.loads(
                run([self.stepc, "simulate", program, *self.target, "--messages", "streams", "--json", "-"]).stdout
            )
        )

    def chosen(self, document: dict) -> dict:
        return summary(json.loads(run([self.stepc, "simulate", *self.inputs(document), "--cluster", self.cluster, *self.target, "--json", "-"]).stdout))

    def stepc_row(self) -> dict:
        return self.chosen(self.document)

    def padded_program(self) -> Path:
        document, places = padded(self.document, self.ranks)
        names = [entry["name"] for entry in document["parameters"] if is_matrix(entry)]
        return self.forced(document, places, [f"{name}=owner" for name in names])

    def xtuner_program(self, rest: str = "agrs") -> Path:
        names = [entry for entry in self.document["parameters"] if is_matrix(entry)]
        legal = {group["parameters"][0]: {one["strategy"] for one in group["strategies"] if one["legal"]}
                 for group in groups_of(self.stepc, self.inputs(self.document), self.cluster)}  # fmt: skip
        uneven = {name for group, names in legal.items() if rest not in names for name in [group]}
        shapes = {tuple(entry["shape"]) for entry in names if entry["name"] in uneven}
        strategy = {entry["name"]: "local" if entry.get("batch_axes") else "owner" if tuple(entry["shape"]) in shapes else rest
                    for entry in names}  # fmt: skip
        return self.forced(self.document, batches(self.document, self.ranks), [f"{name}={how}" for name, how in strategy.items()])

    def layer_wise_row(self, ep: int) -> dict:
        return self.chosen(layer_wise(self.document, self.ranks, ep))


def summary(result: dict) -> dict:
    ranks = result["ranks"]
    mean = lambda key: sum(rank[key] for rank in ranks) / len(ranks)  # noqa: E731
    return {"ms": result["latency_seconds"] * 1e3, "gib": result["workspace_bytes"] / 2**30, "exposed": mean("exposed_seconds") * 1e3,
            "tflop": max(rank["flops"] for rank in ranks) / 1e12, "sent": mean("bytes_sent") / 2**30}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of rows' names (default: all)")
    parser.add_argument("--cluster", default="h100", help="a profile (default: %(default)s)")
    parser.add_argument(
        "--target", default="cuda:sm_90a", help="whose kernels' rates products have, or none (default: %(default)s)"
    )
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--layers", type=int, help="so many in place of the model's 60")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    options = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(options.stepc, options.cluster, options.target, options.ranks, options.layers, Path(folder))
        ways = {"stepc": peers.stepc_row, "padded all-to-all": lambda: peers.walked(peers.padded_program()),
                "xtuner's rules": lambda: peers.walked(peers.xtuner_program()),
                "xtuner's rules, all-to-all for what is left": lambda: peers.walked(peers.xtuner_program("owner"))}  # fmt: skip
        for ep in (128, 64, 32):
            if options.ranks % ep == 0:
                ways[f"layer-wise, ep {ep}"] = lambda ep=ep: peers.layer_wise_row(ep)
        print(
            f"| {options.cluster}, {options.ranks} ranks | {' | '.join(HEAD)} |\n|{'---|' * (len(HEAD) + 1)}",
            flush=True,
        )
        for name, way in ways.items():
            if options.names and not any(part in name for part in options.names):
                continue
            row = rows[name] = way()
            ratio = f"{row['ms'] / rows['stepc']['ms']:.2f}" if "stepc" in rows else ""
            print(f"| {name} | {row['ms']:,.0f} | {ratio} | {row['exposed']:,.0f} | {row['gib']:.1f} | {row['tflop']:.1f} "
                  f"| {row['sent']:.2f} |", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
