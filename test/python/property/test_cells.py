"""Every cell of strategy × role (parameter, gradient, state) × placement that is legal is executed, and has the bits of one rank.

Layouts are drawn for the cells that have been executed least; the compiler says which strategies there are and which are legal
where, so that a new one enters by itself. What no layout made legal is reported. STEPC_SEED repeats a run."""

import json
import os
import random
from collections import Counter

import pytest
from cases import DTYPES, STEPS, Batch, Case, apart
from compiler import STEPC, run, stepc
from random_layouts import PARTIAL, Layout, parse, random_meshes, random_partial, random_placements, random_shape
from random_rules import random_rule
from test_bits import differences

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
LEAST, MOST_BATCHES, POOL, PER_BATCH = 5, 40, 50, 10
ELEMENTWISE = "elementwise"
KINDS = ("R", "S", "_S", "IS", "owned", "flat")
ROLES = {"parameter": KINDS, "gradient": (*KINDS, *PARTIAL), "state": KINDS}
LEVELS = [{"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 2}, {"name": "network", "gb_per_s": 10, "latency_us": 10}]
CLUSTER = json.dumps({"profile": "cpu", "levels": LEVELS})


def kinds_of(placements):
    return {p if p in PARTIAL else parse(p)[0] for p in placements}


def cells_of(layout, strategy):
    lists = {"parameter": layout.placements, "gradient": layout.gradient, "state": layout.state}
    return {(strategy, role, kind) for role, own in lists.items() for kind in kinds_of(own or layout.placements)}


def drawn(source, meshes, rule, role, kind):
    """A layout that has this placement in this role; None where chance did not find one."""
    mesh = source.choice(meshes)
    shape, batch = random_shape(source, rule.matrix, source.random() < 0.5, rule.elementwise)
    dims, whole = list(range(len(shape))), source.random() < 0.5
    # Blocks that are whole where states are can be computed there.
    of_state = list(range(batch)) if whole else dims
    for _ in range(60):
        layout = Layout(mesh, shape, batch, random_placements(source, mesh, shape, dims))
        layout.state = random_placements(source, mesh, shape, of_state, not whole or kind == "flat")
        layout.gradient = (random_partial(source, mesh, shape, dims, layout) if kind in PARTIAL or source.random() < 0.1
                           else random_placements(source, mesh, shape, dims))  # fmt: skip
        if (ELEMENTWISE, role, kind) in cells_of(layout, ELEMENTWISE):
            return layout
    return None


def legal_strategies(folder, batch):
    """By parameter those that the compiler says are legal, and the names of all."""
    batch.write(folder)
    report = json.loads(stepc("explain", "--json", folder / "spec.optim", "-m", folder / "many.json", "--cluster", CLUSTER))
    legal, names = {}, set()
    for group in report["groups"]:
        found = {one["strategy"] for one in group["strategies"] if one["legal"]}
        names |= {one["strategy"] for one in group["strategies"]}
        for name in group["parameters"]:
            legal[name] = legal.get(name, found) & found
    return legal, names


class Cells:
    """How often each cell was executed; which were legal for some layout."""

    def __init__(self, source):
        self.source, self.executed, self.legal, self.strategies = source, Counter(), set(), set()

    def rare(self):
        return {cell for cell in self.legal if self.executed[cell] < LEAST}

    def pool(self, seed):
        """A batch with many layouts, drawn for cells that are rare or were never legal."""
        source = self.source
        meshes = random_meshes(source, source.choice((2, 4, 4, 6)))
        rules = [random_rule(source, f"R{i}", flavor) for i, flavor in enumerate(("elementwise", "matrix", "matrix"))]
        batch = Batch(seed, meshes, rules, waves=source.randint(1, 3), threads=source.randint(1, 2))
        known = {ELEMENTWISE, *(self.strategies or ["not told yet"])}
        wanted = [(s, role, kind) for s in known for role, kinds in ROLES.items() for kind in kinds
                  if self.executed[s, role, kind] < LEAST]  # fmt: skip
        seen = set()
        while wanted and len(batch.cases) < POOL:
            strategy, role, kind = source.choice(wanted)
            rule = source.choice([one for one in rules if one.elementwise == (strategy == ELEMENTWISE)] or rules)
            layout = drawn(source, meshes, rule, role, kind)
            if layout is None or str(layout) in seen:
                continue
            seen.add(str(layout))  # equal parameters would be one group
            batch.cases.append(Case(f"{rule.name}.p{len(batch.cases)}", rule, layout, source.choice(DTYPES),
                                    source.choice(DTYPES), ELEMENTWISE, False))  # fmt: skip
        return batch

    def choose(self, batch, legal):
        """The cases of a pool that execute what is rare, each with a strategy."""
        chosen, expected = [], Counter(self.executed)
        for case in batch.cases:
            ways = [ELEMENTWISE] if case.rule.elementwise else sorted(legal.get(case.name, ()))
            cells = {way: cells_of(case.layout, way) for way in ways}
            for own in cells.values():
                self.legal |= own
            gain = {way: sum(expected[cell] < LEAST for cell in own) for way, own in cells.items()}
            best = max(gain, key=gain.get, default=None)
            if best is None or not gain[best] or len(chosen) == PER_BATCH:
                continue
            case.strategy, case.forced = best, best != ELEMENTWISE
            expected.update(cells[best])
            chosen.append(case)
        batch.cases = chosen
        return expected


def test_every_legal_cell_is_executed_and_exact(tmp_path, capsys):
    cells, number = Cells(random.Random(SEED)), 0
    while number < MOST_BATCHES and (number < 3 or cells.rare()):
        folder = tmp_path / str(number)
        batch = cells.pool(f"{SEED}-{number}")
        number += 1
        legal, names = legal_strategies(folder, batch)
        cells.strategies |= names - {ELEMENTWISE}
        expected = cells.choose(batch, legal)
        if not batch.cases:
            continue
        batch.write(folder)
        out = run(folder / "spec.optim", folder / "both.json", folder / "both.safetensors", folder / "out.safetensors",
                  "--cluster", CLUSTER, "--threads", batch.threads, *batch.options(), steps=STEPS)  # fmt: skip
        wrong = differences(*apart(out))
        assert not wrong, f"STEPC_SEED={SEED}, batch {number}\n" + "\n".join([*wrong, *(c.describe() for c in batch.cases)])
        cells.executed = expected
    every = {(s, role, kind) for s in (ELEMENTWISE, *cells.strategies) for role, kinds in ROLES.items() for kind in kinds}
    empty = sorted(cell for cell in every if not cells.executed[cell])
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {len(cells.legal)} legal cells of {len(every)}, in {number} batches; empty: "
              + ", ".join(" ".join(cell) for cell in empty))  # fmt: skip
    rare = {cell: cells.executed[cell] for cell in cells.rare()}
    assert not rare, f"STEPC_SEED={SEED}: expected each legal cell at least {LEAST} times, found {rare}"
    # What is legal always has no empty cell; blocks that are computed where they are cannot be cut there.
    assert {"local", "owner", "gather"} <= cells.strategies
    assert not {strategy for strategy, _, _ in empty} & {ELEMENTWISE, "owner", "gather"}
    assert {cell for cell in empty if cell[0] == "local"} <= {("local", "state", "flat")}
