"""Cells of strategy × role (parameter, gradient, state, matrix) × kind, and layouts drawn for those that have
been executed least.

The compiler says which strategies there are and which are legal where, so that a new one enters by itself."""

import json
from collections import Counter

import numpy as np
from cases import DTYPES, Batch, Case
from compiler import stepc
from random_layouts import (
    PARTIAL,
    Layout,
    can_be,
    matrix_shape,
    parse,
    random_blocks,
    random_flattened,
    random_meshes,
    random_partial,
    random_placements,
    random_shape,
)
from random_rules import Rule
from test_bits import differences

POOL, PER_BATCH = 100, 30
ELEMENTWISE, FAST = "elementwise", ("slabs",)
KINDS = ("R", "S", "_S", "IS", "owned", "flat")
ROLES = {"parameter": KINDS, "gradient": (*KINDS, *PARTIAL), "state": KINDS, "matrix": ("batched", "divided", "flattened")}
STRATEGIES = (ELEMENTWISE, "local", "owner", "subgroup-gather", "gather", "agrs", "hierarchical", *FAST)
LEVELS = [
    {"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 2},
    {"name": "network", "gb_per_s": 10, "latency_us": 10},
]
CLUSTER = json.dumps({"profile": "cpu", "levels": LEVELS})
TOLERANCE = 1e-5  # of slabs in f32, relative to the parameter: a wrong slab is off by about 1

# Short, since what costs are their kernels: test_bits.py draws rules.
PLAIN = Rule("Plain", """optimizer Plain(lr = 0.1) {
  state m : f32
  m = lerp(m, grad, 0.5)
  param = param - lr * m
}
""", False, True, {"m": ("f32", "full")})  # fmt: skip
SIGN = Rule("Sign", """optimizer Sign(lr = 0.5) {
  state m : f32
  m = 0.9 * m + grad
  param = param - lr * orthogonalize(m, steps = 2, precision = f32)
}
""", True, False, {"m": ("f32", "full")})  # fmt: skip
FACTORED = Rule("Factored", """optimizer Factored(lr = 0.1) {
  state m : bf16
  state r : f32[rows]
  state c : f32[cols]
  m = lerp(m, grad, 0.5)
  r = lerp(r, mean(m * m, over = columns), 0.5)
  c = lerp(c, mean(m * m, over = rows), 0.5)
  param = param - lr * m * rsqrt(0.01 + abs(r * c))
}
""", True, False, {"m": ("bf16", "full"), "r": ("f32", "rows"), "c": ("f32", "cols")})  # fmt: skip
RULES = [PLAIN, SIGN, FACTORED]


def every_cell(strategies=STRATEGIES):
    return {
        (strategy, role, kind) for strategy in strategies for role, kinds in ROLES.items() for kind in kinds
    }


def kinds_of(placements):
    return {p if p in PARTIAL else parse(p)[0] for p in placements}


def cells_of(layout, strategy):
    lists = {"parameter": layout.placements, "gradient": layout.gradient, "state": layout.state}
    cells = {(strategy, role, kind) for role, own in lists.items() for kind in kinds_of(own)}
    matrix = {"batched": layout.batch, "divided": layout.blocks, "flattened": layout.flatten}
    return cells | {(strategy, "matrix", kind) for kind, there in matrix.items() if there}


def evenly(placements):
    """The same with flat ranges of one length."""
    result = list(placements)
    for axis, text in enumerate(placements):
        kind, cuts = parse(text)
        if kind == "flat" and cuts:
            ranks = len(cuts) - 1
            result[axis] = f"flat({', '.join(str(cuts[-1] * i // ranks) for i in range(ranks + 1))})"
    return result


def by_rows(placements, cols):
    """The same with flat ranges that end with rows, of shards with whole ones."""
    result = list(placements)
    for axis, text in enumerate(placements):
        kind, cuts = parse(text)
        if kind == "flat" and cuts:
            result[axis] = f"flat({', '.join(str(cut // cols * cols) for cut in cuts[:-1])}, {cuts[-1]})"
    return result


def state_dims(strategy, shape, batch, flatten, source):
    """What states may be cut by, so that the strategy is often legal."""
    rows = range(batch, flatten or batch + 1)
    if strategy == "local":
        return list(range(batch))
    if strategy == "slabs":
        matrix = matrix_shape(shape, batch, flatten)
        longer = rows if matrix[-2] >= matrix[-1] else range(rows[-1] + 1, len(shape))
        return [source.choice(longer), *range(batch)][: source.choice([1, 2])]
    return list(range(len(shape)))


def of_subgroups(source, mesh):
    """Experts along one axis, their matrices along others; None where there is one axis."""
    axes = [axis for axis, size in enumerate(mesh.sizes) if size > 1]
    if len(axes) < 2:
        return None
    expert, *others = source.sample(axes, len(axes))
    placements = ["R"] * len(mesh.sizes)
    placements[expert] = "S(0)"
    if len(others) > 1 and source.random() < 0.5:
        first, second = sorted(others[:2])
        placements[first], placements[second] = f"_S(1, {mesh.sizes[second]})", "S(1)"
    else:
        placements[others[0]] = source.choice(["S(1)", "S(2)", "IS(1, 1)"])
    return placements


def drawn(source, meshes, rule, strategy, role, kind):
    """A layout of this cell, for which the strategy may be legal; None where chance did not find one."""
    mesh, flatten = source.choice(meshes), 0
    if strategy == "subgroup-gather":  # of several axes, where there is one
        mesh = max(mesh, source.choice(meshes), key=lambda one: sum(size > 1 for size in one.sizes))
    batched = kind == "batched" or source.random() < (0.8 if strategy == "subgroup-gather" else 0.4)
    if rule.matrix and (kind == "flattened" or source.random() < 0.15):
        shape, batch, flatten = random_flattened(source, batched)
    else:
        shape, batch = random_shape(source, rule.matrix, batched, rule.elementwise)
    if strategy == "agrs" and shape:  # shards of one size, of few blocks; more long axes were too many elements
        long = source.sample(range(batch, len(shape)), min(3, len(shape) - batch))
        shape = tuple(source.randint(1, 2) * len(mesh.ranks) if i in long else 1 for i in range(len(shape)))
    dims = list(range(len(shape)))
    of_state = state_dims(strategy, shape, batch, flatten, source)
    for _ in range(60):
        layout = Layout(mesh, shape, batch, random_placements(source, mesh, shape, dims), flatten=flatten)
        may_be_flat = strategy not in ("local", "agrs") or kind == "flat"
        layout.state = random_placements(source, mesh, shape, of_state, may_be_flat)
        if strategy == "subgroup-gather" and batch and source.random() < 0.7:
            layout.state = of_subgroups(source, mesh) or layout.state
            if not can_be(shape, mesh, layout.state):
                continue
        if strategy == "slabs":
            layout.state = by_rows(layout.state, layout.matrix[-1])
        elif strategy == "agrs" or source.random() < 0.3:
            layout.state = evenly(layout.state)
        layout.gradient = (random_partial(source, mesh, shape, dims, layout) if kind in PARTIAL or source.random() < 0.1
                           else random_placements(source, mesh, shape, dims))  # fmt: skip
        two = len(layout.matrix) - batch == 2 and max(layout.matrix[-2:]) > 1
        if rule.matrix and two and (kind == "divided" or source.random() < 0.15):
            layout.blocks = random_blocks(source, layout.matrix)
        cells = cells_of(layout, strategy)
        if (strategy, role, kind) in cells:
            return layout
    return None


def legal_strategies(folder, batch, options):
    """By parameter those that the compiler says are legal, and the names of all."""
    batch.write(folder)
    report = json.loads(
        stepc("explain", "--json", folder / "spec.optim", "-m", folder / "many.json", *options)
    )
    legal, names = {}, set()
    for group in report["groups"]:
        found = {one["strategy"] for one in group["strategies"] if one["legal"]}
        names |= {one["strategy"] for one in group["strategies"]}
        for name in group["parameters"]:
            legal[name] = legal.get(name, found) & found
    return legal, names


class Cells:
    """How often each cell was executed, of at least `least`; which were legal for some layout."""

    def __init__(self, source, strategies, rules, dtypes=DTYPES, least=5):
        self.source, self.rules, self.dtypes, self.least = source, rules, dtypes, least
        self.wanted = every_cell(strategies)
        self.executed, self.legal, self.strategies = Counter(), set(), set()

    def rare(self):
        return {cell for cell in self.wanted | self.legal if self.executed[cell] < self.least}

    def pool(self, seed, totals=(2, 4, 6, 8)):
        """A batch with many layouts, drawn for cells that are rare. Parameters of a rule have one dtype,
        which costs kernels.
        """
        source = self.source
        meshes = random_meshes(source, source.choice(totals))
        batch = Batch(seed, meshes, self.rules, waves=source.randint(1, 3), threads=source.randint(1, 2))
        dtypes = {rule.name: (source.choice(self.dtypes), source.choice(DTYPES)) for rule in self.rules}
        seen, rare, tries = set(), sorted(self.rare()), 0
        while len(batch.cases) < POOL and tries < 5 * POOL:
            strategy, role, kind = source.choice(rare)
            tries += 1
            rules = [one for one in self.rules if one.elementwise == (strategy == ELEMENTWISE)]
            if strategy == ELEMENTWISE and kind in ("divided", "flattened"):  # a matrix whose reductions run on shards
                rules = [FACTORED]
            if strategy == "subgroup-gather":  # a state that drops an axis often stands on several subgroups
                rules = [
                    one for one in rules if {kind for _, kind in one.states.values()} == {"full"}
                ] or rules
            rule = source.choice(rules)
            layout = drawn(source, meshes, rule, strategy, role, kind)
            if layout is None or str(layout) in seen:
                continue
            seen.add(str(layout))  # equal parameters would be one group
            batch.cases.append(
                Case(f"{rule.name}.p{len(batch.cases)}", rule, layout, *dtypes[rule.name], strategy, False)
            )
        return batch

    def choose(self, batch, legal):
        """The cases of a pool that execute what is rare, each with a strategy."""
        chosen, expected = [], Counter(self.executed)  # of cells, and of strategies
        for case in batch.cases:
            ways = {ELEMENTWISE} if case.rule.elementwise else legal.get(case.name, set())
            cells = {way: cells_of(case.layout, way) for way in STRATEGIES if way in ways and (way, "state", "R") in self.wanted}
            self.legal |= set().union(*cells.values())
            gain = {
                way: sum(cell in self.legal and expected[cell] < self.least for cell in own)
                for way, own in cells.items()
            }
            # What is seldom legal comes first, or chance would leave it for the end.
            best = min(
                (way for way in gain if gain[way]), key=lambda way: (expected[way], -gain[way]), default=None
            )
            if best is None or len(chosen) == PER_BATCH:
                continue
            case.strategy, case.forced = best, best != ELEMENTWISE
            expected.update({best, *cells[best]})
            chosen.append(case)
        batch.cases = chosen
        return expected


def inexact(found, expected):
    """Where numbers of fast numerics are further apart than slabs may be: only parameters may differ at
    all.
    """
    lines = differences(*({name: each for name, each in tensors.items() if not name.startswith("param:")}
                          for tensors in (found, expected)))  # fmt: skip
    for name, one in expected.items():
        if name.startswith("param:"):
            far, size = np.linalg.norm(found[name].array() - one.array()), np.linalg.norm(one.array())
            lines += (
                [f"{name}: {far} of {size} from what one rank has"] if not far <= TOLERANCE * size else []
            )
    return lines
