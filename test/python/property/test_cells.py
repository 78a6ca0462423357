"""Every cell of strategy × role (parameter, gradient, state, matrix) × kind that is legal is executed, with
the bits of one rank, or within a tolerance for strategies of fast numerics; and bytes and messages are those
that are simulated.

Which cells must be legal is written in cells.py, so that a strategy cannot become illegal somewhere unseen.
STEPC_SEED repeats a run."""

import os
import random

import pytest
from cases import STEPS, apart
from cells import CLUSTER, ELEMENTWISE, FAST, RULES, SIGN, STRATEGIES, Cells, every_cell, inexact, legal_strategies
from compiler import STEPC, load, stepc
from counters import expect_simulated
from test_bits import differences
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
LEAST, MOST_BATCHES = draws(2), draws(20)


def execute(tmp_path, capsys, cells, compare, *options):
    number = cases = 0
    while number < MOST_BATCHES and cells.rare():
        folder = tmp_path / str(number)
        batch = cells.pool(f"{SEED}-{number}")
        number += 1
        if not batch.cases:  # chance found no layout of what is rare on these meshes
            continue
        legal, names = legal_strategies(folder, batch, ("--cluster", CLUSTER, *options))
        cells.strategies |= names
        expected = cells.choose(batch, legal)
        if not batch.cases:
            continue
        batch.write(folder)
        program = [folder / "spec.optim", "-m", folder / "both.json", "--cluster", CLUSTER, *options, *batch.options()]
        text = stepc("run", *program, "--tensors", folder / "both.safetensors", "--steps", STEPS, "--threads", batch.threads,
                     "-o", folder / "out.safetensors")  # fmt: skip
        wrong = compare(*apart(load(folder / "out.safetensors")))
        assert not wrong, f"STEPC_SEED={SEED}, batch {number}\n" + "\n".join(
            [*wrong, *(c.describe() for c in batch.cases)]
        )
        expect_simulated(text, program)
        cells.executed = expected
        cases += len(batch.cases)
    empty = sorted(
        cell for cell in every_cell({strategy for strategy, _, _ in cells.wanted}) if not cells.executed[cell]
    )
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {len(cells.legal)} cells in {cases} cases of {number} batches; empty: "
              + ", ".join(" ".join(cell) for cell in empty))  # fmt: skip
    rare = {cell: cells.executed[cell] for cell in cells.rare()}
    assert not rare, f"STEPC_SEED={SEED}: expected each legal cell at least {LEAST} times, found {rare}"


def test_every_legal_cell_is_executed_and_exact(tmp_path, capsys):
    exact = [strategy for strategy in STRATEGIES if strategy not in FAST]
    cells = Cells(random.Random(SEED), exact, RULES, least=LEAST)
    execute(tmp_path, capsys, cells, differences)
    assert cells.strategies == {*exact}


def test_every_legal_cell_of_fast_numerics_is_executed(tmp_path, capsys):
    """Parameters are f32: rounded to less, they would hide how far apart numbers are."""
    cells = Cells(random.Random(SEED), FAST, [SIGN], ["f32"], LEAST)
    execute(tmp_path, capsys, cells, inexact, "--numerics=fast")
    assert cells.strategies == {*STRATEGIES} - {ELEMENTWISE}
