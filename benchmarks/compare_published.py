"""What `stepc simulate` says of workloads that others published, beside their figures (docs/peers.md).

    .venv/bin/python benchmarks/compare_published.py [megatron] [eight] [overhead] [throughput] [xtuner]
        [--stepc build/bin/stepc]

The workloads stand in benchmarks/published; what a source does not say is swept. Nothing is fitted: each
cluster has the figures of its profile, but for what is swept (the rate of products, the size of an NVLink
domain) and the links of an A800, which are fewer.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from choices import EXAMPLES, ROOT, run
from peers import Peers, is_matrix, layer_wise

sys.path.insert(0, str(EXAMPLES / "models"))
from manifest import manifest, parameters  # noqa: E402
from placements import Layout  # noqa: E402

PUBLISHED = ROOT / "benchmarks" / "published"
SPEC = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = quintic, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
optimizer Redundant(lr) {
  let o = orthogonalize(grad, steps = 5, coefficients = simple, precision = bf16)
  param = param - lr * o
}
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
optimizer Descent(lr) {
  param = param - lr * grad
}
route {
  MATRICES(lr = 0.02) for "m.*" if present
  REST(lr = 0.01) for rest
}
"""


def workload(name: str) -> dict:
    return json.loads((PUBLISHED / f"{name}.json").read_text())


class Simulator:
    def __init__(self, stepc: Path, folder: Path) -> None:
        self.stepc, self.folder = stepc, folder

    def plan(self, document: dict, cluster: str | dict, rules: tuple[str, str], options: Iterable[str] = (),
             places: dict[str, list[int]] | None = None) -> str:  # fmt: skip
        """The program, as text. `rules`: of matrices and of the rest; `places`: owners of each
        parameter's blocks.
        """
        text = SPEC.replace("MATRICES", rules[0]).replace("REST", rules[1])
        text = "".join(part for part in re.split(r"(?m)^(?=optimizer|route)", text)
                       if not part.startswith("optimizer") or re.match(r"optimizer (\w+)", part).group(1) in rules)  # fmt: skip
        (self.folder / "s.optim").write_text(text)
        cluster = {"profile": cluster} if isinstance(cluster, str) else cluster
        (self.folder / "m.json").write_text(json.dumps(document | {"cluster": cluster}))
        inputs, path = (
            [self.folder / "s.optim", "--manifest", self.folder / "m.json", *options],
            self.folder / "s.mlir",
        )
        if places:

            def bases(line: str) -> str:
                names = re.search(r"parameters \[(.*?)\]", line).group(1).split(", ")
                blocks = [str(rank) for name in names for rank in places[name.lstrip("@").strip('"')]]
                return re.sub(r"base \[.*?\]", f"base [{', '.join(blocks)}]", line)

            run([self.stepc, "compile", *inputs, "--emit", "decided", "-o", self.folder])
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(bases(line) if " optim.group " in line and "base [" in line else line for line in lines))
            inputs = [path]
        return self.lowered(*inputs)

    def lowered(self, program: Path, *options: str | Path) -> str:
        """A specification or a decided program at level 5, as text."""
        run([self.stepc, "compile", program, *options, "--emit", "exec", "-o", self.folder])
        return (self.folder / f"{program.stem}.mlir").read_text()

    def step(self, plan: str, efficiency: float = 1.0, symmetric: bool = True, domain: int | None = None,
             between: float | None = None, memory: float | None = None) -> dict:  # fmt: skip
        """A step of a program. `efficiency`: of the profile's rate of products; `symmetric`: whether
        symmetric products do one half; `domain`: ranks of an NVLink domain; `between`, `memory`: bytes per
        second of the network and of the device's memory. None of it changes the program."""
        plan = re.sub(
            r"(device <flops = )([^,]+)", lambda found: f"{found[1]}{float(found[2]) * efficiency:e}", plan
        )
        if domain:
            plan = re.sub(r'(cluster_level<"nvlink", ranks = )\d+', rf"\g<1>{domain}", plan)
        if between:
            plan = re.sub(r'(cluster_level<"network",[^>]*bandwidth = )[^>,]+', rf"\g<1>{between:e}", plan)
        if memory:
            plan = re.sub(r"(device <[^>]*memory = )[^>,]+", rf"\g<1>{memory:e}", plan)
        path = self.folder / "variant.mlir"
        path.write_text(plan if symmetric else plan.replace(", symmetric", ""))
        result = json.loads(
            run([self.stepc, "simulate", path, "--messages", "streams", "--json", "-"]).stdout
        )
        ranks = result["ranks"]
        return {"ms": result["latency_seconds"] * 1e3, "waits": statistics.mean(rank["exposed_seconds"] for rank in ranks) * 1e3,
                "gib": result["workspace_bytes"] / 2**30, "tflop": statistics.mean(rank["flops"] for rank in ranks) / 1e12}  # fmt: skip


def longest_first(costs: dict[str, int], owners: int) -> dict[str, int]:
    """Owners by longest processing time."""
    loads, result = [0] * owners, {}
    for name in sorted(costs, key=costs.__getitem__, reverse=True):
        result[name] = loads.index(min(loads))
        loads[result[name]] += costs[name]
    return result


def cost(shape: list[int]) -> int:
    return max(shape) * min(shape) ** 2


def span(values: Iterable[float], digits: str = "{:.2f}") -> str:
    values = sorted(values)
    return f"{digits.format(values[0])} to {digits.format(values[-1])}"


# Megatron: duplicated, distributed (Gram matrices summed), layer_sharded


def megatron_document(counts: list[int], dense: list[int], expert: list[int], both_groups: bool) -> dict:
    """What the 16 ranks of one data-parallel shard have. `both_groups`: tp cuts dense matrices beside gtp."""
    entries = [{"name": f"m.dense.{index}", "shape": dense, "mesh": "dense",
                "placements": [f"S({index % 2})" if both_groups else "R", "S(0)"]} for index in range(counts[0])]  # fmt: skip
    entries += [{"name": f"m.expert.{index}", "shape": [8, *expert], "batch_axes": 1, "mesh": "experts", "placements": ["S(0)", "S(1)"]}
                for index in range(counts[1])]  # fmt: skip
    axes = {"dense": (("tp", 2), ("gtp", 8)), "experts": (("ep", 8), ("egtp", 2))}
    meshes = [
        {"name": name, "axes": [{"name": axis, "size": size} for axis, size in sizes]}
        for name, sizes in axes.items()
    ]
    return {"version": 1, "meshes": meshes, "parameters": [entry | {"dtype": "bf16"} for entry in entries]}


def homes(document: dict) -> dict[str, list[int]]:
    """Of dense matrices among the 16 ranks, of experts between the 2 that have parts of them."""
    result = {}
    for kind, owners in (("dense", 16), ("expert", 2)):
        costs = {
            one["name"]: cost(one["shape"][-2:]) for one in document["parameters"] if kind in one["name"]
        }
        for name, home in longest_first(costs, owners).items():
            result[name] = [home] if kind == "dense" else [2 * ep + home for ep in range(8)]
    return result


def one_matrix(simulator: Simulator, kind: str, shape: list[int]) -> dict[str, str]:
    """The programs that step a single matrix: who steps one after the other takes their sum."""
    counts = [1, 0] if kind == "dense" else [0, 1]
    plan = functools.partial(simulator.plan, cluster="gb300", rules=("Muon", "AdamW"))
    gather = ["--strategy", f"*={'gather' if kind == 'dense' else 'subgroup-gather'}", "--waves", "1"]
    slabs = ["--strategy", "*=slabs", "--waves", "1", "--numerics", "fast"]
    return {"duplicated": plan(megatron_document(counts, shape, shape, both_groups=True), options=gather),
            "distributed": plan(megatron_document(counts, shape, shape, both_groups=False), options=slabs)}  # fmt: skip


def megatron(simulator: Simulator) -> None:
    file = workload("megatron_layer_sharded")
    swept = {key: value["values"] for key, value in file["swept"].items()}
    all_counts = swept["dense and expert matrices of a shard"]
    variants = list(itertools.product(*(swept[key] for key in ("product efficiency", "symmetric products", "NVLink domain"))))
    alone = {}  # (kind, shape, way, variant) → ms
    for kind in ("dense", "expert"):
        for shape in swept[f"{kind} matrix"]:
            for way, plan in one_matrix(simulator, kind, shape).items():
                for variant in variants:
                    alone[kind, *shape, way, variant] = simulator.step(plan, *variant)["ms"]
    rows = []
    for counts, dense, expert in itertools.product(all_counts, swept["dense matrix"], swept["expert matrix"]):
        split = megatron_document(counts, dense, expert, both_groups=True)
        sharded = simulator.plan(
            split, "gb300", ("Muon", "AdamW"), ["--strategy", "*=owner", "--waves", "1"], homes(split)
        )
        for variant in variants:
            step = simulator.step(sharded, *variant)
            row = {"counts": counts, "dense": dense, "expert": expert, "variant": variant, "layer_sharded": step["ms"],
                   "waits": step["waits"] / step["ms"]}  # fmt: skip
            for way in ("duplicated", "distributed"):
                row[way] = sum(count * alone[kind, *shape, way, variant]
                               for kind, shape, count in zip(("dense", "expert"), (dense, expert), counts, strict=True))  # fmt: skip
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    megatron_table([one["ms"] for one in file["measured"][:3]], rows, all_counts)


def megatron_table(measured: list[float], rows: list[dict], all_counts: list[list[int]]) -> None:
    """Three ratios, by what share they are off."""
    ratios = {"duplicated / layer_sharded": measured[0] / measured[2], "distributed / layer_sharded": measured[1] / measured[2],
              "duplicated / distributed": measured[0] / measured[1]}  # fmt: skip

    def off(row: dict, name: str) -> float:
        above, below = name.split(" / ")
        return row[above] / row[below] / ratios[name] - 1

    print(f"\n| dense, expert matrices | of | {' | '.join(f'{name}, {value:.2f}' for name, value in ratios.items())} "
          "| layer_sharded within 25 % of its time, too | of these, share that waits |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for counts in (*all_counts, None):
        chosen = [row for row in rows if counts in (None, row["counts"])]
        cells = [f"{counts[0]}, {counts[1]}" if counts else "all", str(len(chosen))]
        for name, value in ratios.items():
            within = sum(abs(off(row, name)) <= 0.25 for row in chosen)
            cells.append(f"{span((1 + off(row, name)) * value for row in chosen)}; {within} within 25 %")
        good = [row for row in chosen if all(abs(off(row, name)) <= 0.25 for name in ratios)]
        cells[1] += f", {len(good)} with all three within 25 %"
        near = [row for row in good if abs(row["layer_sharded"] / measured[2] - 1) <= 0.25]
        print(
            f"| {' | '.join([*cells, str(len(near)), span(row['waits'] for row in near) if near else ''])} |",
            flush=True,
        )
    best = sorted(rows, key=lambda row: max(abs(off(row, name)) for name in ratios))[:5]
    for row in best:
        print(json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}), file=sys.stderr)


# DMuon: owners keep whole matrices


def language_model(sizes: dict, name: str = "m") -> list[dict]:
    """Projections, and what is left: `m.` and `e.` entries without placements."""
    hidden, middle = sizes["hidden"], sizes["intermediate"]
    queries, keys = sizes["heads"] * sizes["head_dim"], sizes["kv_heads"] * sizes["head_dim"]
    shapes = {"q": [queries, hidden], "k": [keys, hidden], "v": [keys, hidden], "o": [hidden, queries],
              "gate": [middle, hidden], "up": [middle, hidden], "down": [hidden, middle]}  # fmt: skip
    entries = [{"name": f"{name}.{layer}.{part}", "shape": shape} for layer in range(sizes["layers"]) for part, shape in shapes.items()]
    if "vocabulary" in sizes:
        entries += [
            {"name": f"e.{index}", "shape": [sizes["vocabulary"], hidden]}
            for index in range(1 if sizes["tied"] else 2)
        ]
    if "beside" in sizes:
        entries += language_model(sizes["beside"], f"{name}.beside")
    return entries


def data_parallel(entries: list[dict], ranks: int, dtype: str, owned: bool) -> dict:
    """FSDP2's shards; `owned`: each matrix with one rank alone."""
    owners = longest_first(
        {one["name"]: cost(one["shape"]) for one in entries if one["name"].startswith("m.")}, ranks
    )
    placed = [one | {"dtype": dtype, "grad_dtype": "bf16", "mesh": "mesh",
                     "placements": [f"owned({owners[one['name']]})" if owned and one["name"] in owners else "S(0)"]}
              for one in entries]  # fmt: skip
    return {"version": 1, "meshes": [{"name": "mesh", "axes": [{"name": "dp", "size": ranks}]}], "parameters": placed}


def eight(simulator: Simulator) -> None:
    file = workload("dmuon_eight_gpus")
    links = {
        "profile": "a100",
        "levels": [{"name": "nvlink", "ranks": 8, "gb_per_s": 153}, {"name": "network"}],
    }
    print("\n| model, rate of products | AdamW, ms | measured | redundant, ms | measured | ratio | DMuon, ms | measured | ratio "
          "| redundant / DMuon | measured | step over AdamW's | measured |\n|" + "---|" * 13)  # fmt: skip
    for measured in file["measured"]:
        model = measured["model"]
        entries = language_model(file["known"]["models"][model])
        sharded, owned = (
            data_parallel(entries, file["known"]["ranks"], "f32", owned=owned) for owned in (False, True)
        )
        gather = ["--strategy", "m.*=gather", "--waves", "1"]
        plans = [simulator.plan(sharded, links, ("AdamW", "AdamW")), simulator.plan(sharded, links, ("Redundant", "Descent"), gather),
                 simulator.plan(owned, links, ("Muon", "AdamW"))]  # fmt: skip
        for efficiency in file["swept"]["product efficiency"]["values"]:
            adamw, redundant, dmuon = (
                simulator.step(plan, efficiency, symmetric=plan is not plans[1])["ms"] for plan in plans
            )
            over = (dmuon - adamw) / (measured["adamw step"] - measured["adamw"] + adamw)
            cells = [f"{model}, {efficiency:.0%}", f"{adamw:.1f}", f"{measured['adamw']:.1f}", f"{redundant:,.0f}",
                     f"{measured['redundant']:,.0f}", f"{redundant / measured['redundant']:.2f}", f"{dmuon:.0f}",
                     f"{measured['dmuon']:.0f}", f"{dmuon / measured['dmuon']:.2f}", f"{redundant / dmuon:.1f}",
                     f"{measured['redundant'] / measured['dmuon']:.1f}", f"{over:+.1%}",
                     f"{measured['dmuon step'] / measured['adamw step'] - 1:+.1%}"]  # fmt: skip
            print(f"| {' | '.join(cells)} |", flush=True)


def overhead(simulator: Simulator) -> None:
    file = workload("dmuon_overhead")
    models = workload("dmuon_eight_gpus")["known"]["models"] | file["known"]["models"]
    print("\n| model | cluster | Muon less AdamW, ms | of AdamW's step | measured |\n|---|---|---|---|---|")
    for model, group in itertools.groupby(file["measured"], key=lambda one: one["model"]):
        group = list(group)
        if model not in models:
            continue
        for profile in file["swept"]["gpu"]["values"]:
            if any("A800" in one["said"] for one in group) and profile != "a100":
                continue
            entries = language_model(models[model])
            sharded, owned = (data_parallel(entries, 128, "f32", owned=owned) for owned in (False, True))
            muon, adamw = (
                simulator.plan(owned, profile, ("Muon", "AdamW")),
                simulator.plan(sharded, profile, ("AdamW", "AdamW")),
            )
            more = [simulator.step(muon, efficiency)["ms"] - simulator.step(adamw, efficiency)["ms"]
                    for efficiency in file["swept"]["product efficiency"]["values"]]  # fmt: skip
            part = [value / one["adamw step"] for value in more for one in group]
            found = ", ".join(f"{one['dmuon step'] / one['adamw step'] - 1:+.1%}" for one in group)
            print(
                f"| {model} | `{profile}` | {span(more, '{:.1f}')} | {span(part, '{:+.1%}')} | {found} |",
                flush=True,
            )


# NVIDIA: whole matrices on data-parallel ranks, experts whole on theirs


def throughput(simulator: Simulator) -> None:
    file = workload("nvidia_kimi_qwen")
    print(
        "\n| model | AdamW's step, ms | Muon less AdamW, ms | of AdamW's step | measured |\n|---|---|---|---|---|"
    )
    for measured, ranks, layers in zip(file["measured"], (64, 8), (15, None), strict=True):
        model = parameters(measured["model"], layers=layers)
        document = manifest(model, Layout(ranks, ep=ranks))
        entries = [
            one | {"name": ("m." if is_matrix(one) else "e.") + one["name"]} for one in document["parameters"]
        ]
        sharded = document | {"parameters": entries}
        owned = layer_wise(sharded, ranks, ranks)
        for one in owned["parameters"]:
            one["placements"] = one.pop("state_placements", one["placements"])
        muon, adamw = (
            simulator.plan(owned, "gb300", ("Muon", "AdamW")),
            simulator.plan(sharded, "gb300", ("AdamW", "AdamW")),
        )
        tflop = simulator.step(muon, symmetric=False)["tflop"]  # what the source counts is taken to be these
        sweep = itertools.product(
            *(file["swept"][key]["values"] for key in ("product efficiency", "symmetric products"))
        )
        more = [
            simulator.step(muon, *variant)["ms"] - simulator.step(adamw, variant[0])["ms"]
            for variant in sweep
        ]
        muon_step = tflop / measured["muon, Newton–Schulz"] * 1e3
        step = muon_step * measured["muon, model"] / measured["adamw"]
        print(f"| {measured['model']} | {step:,.0f} | {span(more, '{:.0f}')} | {span((value / step for value in more), '{:+.1%}')} "
              f"| {measured['adamw'] / measured['muon, model'] - 1:+.1%} |", flush=True)  # fmt: skip


# xtuner: padded all-to-all, and its rules by divisibility


PEAK = 989e12  # products of bf16, H100 and H200, of the data sheet
MEMORY = {"H100": 2.9e12, "H200": 4.3e12}  # bytes per second, as in the profiles


def xtuner(simulator: Simulator) -> None:
    swept = {key: value["values"] for key, value in workload("xtuner_padding")["swept"].items()}
    print("\n| shards | GPU | GB/s between nodes | products, of the peak | before, ms | after, ms | before / after "
          "| all-to-all for what is left, ms | before / that |\n|" + "---|" * 9)  # fmt: skip
    for fsdp in swept["fsdp"]:
        # Replicas of HSDP do the same each, and say nothing to each other in a step: one of them is walked.
        peers = Peers(simulator.stepc, "h100", "none", fsdp, None, simulator.folder)
        # Each is lowered before the next takes its file.
        programs = [simulator.lowered(peers.padded_program()), simulator.lowered(peers.xtuner_program()),
                    simulator.lowered(peers.xtuner_program("owner"))]  # fmt: skip
        gib = ", ".join(f"{simulator.step(one)['gib']:.1f}" for one in programs)
        print(f"{fsdp} shards: workspace before, after, with all-to-all {gib} GiB", file=sys.stderr)
        rate = float(re.search(r"device <flops = ([^,]+)", programs[0])[1])  # that plans are made with
        sweep = itertools.product(swept["gpu"], swept["inter-node gb/s per gpu"], swept["product efficiency"])
        for gpu, between, efficiency in sweep:
            before, after, exact = (simulator.step(one, efficiency * PEAK / rate, between=between * 1e9, memory=MEMORY[gpu])["ms"]
                                    for one in programs)  # fmt: skip
            print(f"| {fsdp} | {gpu} | {between} | {efficiency} | {before:,.0f} | {after:,.0f} | {before / after:.2f} "
                  f"| {exact:,.0f} | {before / exact:.2f} |", flush=True)  # fmt: skip


def main() -> None:
    tables = {"megatron": megatron, "eight": eight, "overhead": overhead, "throughput": throughput, "xtuner": xtuner}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"tables (default: all): {', '.join(tables)}")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or tables:
            tables[name](Simulator(options.stepc, Path(folder)))


if __name__ == "__main__":
    main()
