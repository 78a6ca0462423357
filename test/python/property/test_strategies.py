"""Strategies of several hops, of part of a mesh, and of hops that choose: the bytes of a single rank.

Cases are drawn so that the strategy which each one is forced to is legal; a refusal fails, but for blocks of a matrix in
subgroups, where it depends on the rule. Random rules on random parameters, as in test_bits.py, on clusters whose nodes
are smaller than the meshes.
"""

import json
import os
import random
from collections import Counter

import pytest
from cases import DTYPES, STEPS, Batch, Case, apart, random_rule
from cells import legal_strategies
from compiler import STEPC, run, stepc
from random_layouts import Layout, Mesh
from test_bits import differences
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
STRATEGIES = ("subgroup-gather", "agrs", "hierarchical")
BATCHES = draws(3)
LEAST = draws(2)


def subgroup(source, meshes):
    """Experts along one axis, matrices along the other; or blocks of a matrix, two or more ranks to each."""
    if source.random() < 0.4:
        line = meshes["line"]
        ranks = line.sizes[0]
        blocks = source.choice([count for count in range(2, ranks) if ranks % count == 0])
        rows = source.choice([1, 3]) * ranks // blocks  # of each block, all of which divide alike
        shape, axis = [blocks * rows, source.randint(1, 12)], "rows"
        if source.random() < 0.5:
            shape, axis = shape[::-1], "columns"
        return Layout(line, tuple(shape), 0, [f"S({0 if axis == 'rows' else 1})"],
                      blocks={"axis": axis, "sizes": [rows] * blocks})  # fmt: skip
    grid = meshes["grid"]
    shape = (source.randint(2, 5), source.randint(4, 15), source.randint(4, 15))
    inner = source.choice(["S(1)", "S(2)", "IS(1, 1)"])
    placements = ["S(0)", inner]
    if meshes["cube"].sizes[1] > 1 and source.random() < 0.3:  # replicas of that
        grid, placements = meshes["cube"], ["R", *placements]
    return Layout(grid, shape, 1, placements)


def agrs(source, meshes):
    """Shards of one size, and fewer blocks than ranks."""
    grid = meshes[source.choice(["line", "grid"])]
    ranks = grid.sizes
    copies = len(ranks) == 2 and source.random() < 0.4
    split = [1 if copies and axis == 0 else size for axis, size in enumerate(ranks)]
    dims = [source.randrange(2) for _ in ranks]
    sizes = [source.randint(1, 4), source.randint(1, 4)]
    for size, dim in zip(split, dims, strict=True):
        sizes[dim] *= size
    placements = ["R" if copies and axis == 0 else f"S({dim})" for axis, dim in enumerate(dims)]
    return Layout(grid, tuple(sizes), 0, placements)


def hierarchical(source, meshes):
    """Anything that the levels of the cluster part, shards of any size."""
    grid = meshes[source.choice(["line", "grid", "cube"])]
    batch = source.random() < 0.3
    shape = (*([source.randint(1, 6)] if batch else []), source.randint(1, 15), source.randint(1, 15))
    kinds = [f"S({dim})" for dim in range(len(shape))] + ["R", f"IS({len(shape) - 2}, 1)"]
    while True:
        placements = [source.choice(kinds) for _ in grid.sizes]
        cuts = Counter()
        for placement, size in zip(placements, grid.sizes, strict=True):
            if placement != "R":
                dim = int(placement.strip("IS()").split(",")[0])
                cuts[dim] = max(1, cuts[dim]) * size
        if all(count < 2 * shape[dim] for dim, count in cuts.items()):
            return Layout(grid, shape, int(batch), placements)


DRAW = {"subgroup-gather": subgroup, "agrs": agrs, "hierarchical": hierarchical}


def random_strategies(seed):
    """(a batch, its cluster)."""
    source = random.Random(seed)
    total = source.choice([4, 8])
    # in any order, one after the other
    nodes = [
        source.sample([node, node + 1], 2) for node in range(0, total, 2)
    ]
    order = [rank for node in source.sample(nodes, len(nodes)) for rank in node]
    grid = source.choice([(total // 2, 2), (2, total // 2)])
    meshes = {"line": Mesh("line", (total,), order), "grid": Mesh("grid", grid, order),
              "cube": Mesh("cube", (2, total // 4, 2), order)}  # fmt: skip
    rules = [random_rule(source, f"R{i}", "matrix", forms=True) for i in range(3)]
    batch = Batch(
        seed, list(meshes.values()), rules, waves=source.randint(1, 3), threads=source.randint(1, 3)
    )
    matrix = [rule for rule in rules if not rule.elementwise]
    for index in range(9 if matrix else 0):
        strategy, rule = STRATEGIES[index % 3], source.choice(matrix)
        layout, dtype = DRAW[strategy](source, meshes), source.choice(DTYPES)
        name = f"{rule.name}.p{index}"
        # Equal parameters form a group, which has one strategy.
        if any(
            (other.layout, other.rule.name, other.dtype) == (layout, rule.name, dtype)
            for other in batch.cases
        ):
            continue
        batch.cases.append(Case(name, rule, layout, dtype, dtype, strategy, True))
    levels = [{"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 2},
              {"name": "network", "gb_per_s": 10, "latency_us": 10}]  # fmt: skip
    return batch, {"profile": "cpu", "levels": levels}


def legal_strategies_drawn(folder, seed):
    """(a batch, its cluster): as random_strategies, and legal. `folder` gets what the compiler was asked about.

    A value that drops the axis which blocks divide stands on ranks of several subgroups: where a rule keeps one, or
    reads one beside shards, its blocks go to owners.
    """
    batch, cluster = random_strategies(seed)
    divided = [case for case in batch.cases if case.strategy == "subgroup-gather" and case.layout.blocks]
    if divided:
        legal, _ = legal_strategies(folder, batch, ("--cluster", json.dumps(cluster)))
        for case in divided:
            if case.strategy not in legal[case.name]:
                case.strategy = "owner"
    return batch, cluster


def test_results_have_the_same_bytes(tmp_path, capsys):
    counts = Counter()
    for index in range(BATCHES):
        folder = tmp_path / str(index)
        batch, cluster = legal_strategies_drawn(folder / "explained", f"{SEED}-{index}")
        batch.write(folder)
        out = run(folder / "spec.optim", folder / "both.json", folder / "both.safetensors", folder / "out.safetensors",
                  "--cluster", json.dumps(cluster), "--threads", batch.threads, *batch.options(), steps=STEPS)  # fmt: skip
        wrong = differences(*apart(out))
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}\n" + "\n".join(
            [*wrong, *(case.describe() for case in batch.cases)]
        )
        counts += Counter(case.strategy for case in batch.cases)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: cases by strategy: {dict(counts)}")
    assert all(counts[strategy] >= LEAST for strategy in STRATEGIES), f"STEPC_SEED={SEED}: {counts}"


def test_no_rank_has_more_peers_than_it_may(tmp_path):
    """Of what a library is made for: a rank sends one message to each peer in an exchange, so that there
    are as many peers.
    """
    manifest = {"version": 1, "meshes": [{"name": "line", "axes": [{"name": "dp", "size": 12}]}],
                "parameters": [{"name": f"w{i}", "shape": [24, 6], "dtype": "f32", "mesh": "line", "placements": ["S(0)"]}
                               for i in range(12)]}  # fmt: skip
    spec = tmp_path / "spec.optim"
    spec.write_text("optimizer M(lr) {\n  let o = orthogonalize(grad, steps = 1, precision = f32)\n  param = param - lr * o\n}\n"
                    "route { M(lr = 0.5) for matrix }\n")  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    levels = [{"name": "node", "ranks": 4, "gb_per_s": 100, "latency_us": 2},
              {"name": "network", "gb_per_s": 10, "latency_us": 10}]  # fmt: skip
    cluster = json.dumps({"profile": "cpu", "levels": levels})
    # The others in a node of four and the two other nodes, and back; pairs, pairs and threes.
    for name, peers, expected in (("owner", 11, [11, 11]), ("hierarchical", 11, [3, 2, 2, 3]),
                                  ("hierarchical", 3, [3, 2, 2, 3]), ("hierarchical", 2, [1, 1, 2, 2, 1, 1])):  # fmt: skip
        stepc("compile", spec, "-m", tmp_path / "m.json", "--cluster", cluster, "--strategy", f"*={name}",
              "--max-peers", peers, "-o", tmp_path / "out")  # fmt: skip
        exchanges = json.loads((tmp_path / "out" / "spec.json").read_text())["exchanges"]
        most = [max(exchange["messages_sent"]) for exchange in exchanges]
        assert most == expected and max(most) <= peers, (name, peers)
