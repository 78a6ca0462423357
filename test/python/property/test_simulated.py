"""Bytes and messages of a simulated step are those that the runtime counts: random rules on in-process ranks,
with strategies of one hop and of several on a cluster with levels. test_cells.py does the same for each cell
of strategies and placements.

STEPC_SEED repeats a run (its value is printed), STEPC_SIMULATED_BATCHES makes it longer.
"""

import json
import os
import random
from collections import Counter

import pytest
from cases import random_batch
from compiler import STEPC, stepc
from counters import expect_simulated
from test_strategies import legal_strategies_drawn
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
BATCHES = int(os.environ.get("STEPC_SIMULATED_BATCHES") or draws(4))
# Whatever takes how long, what travels is the same.
WAYS = ("--messages=streams", "--messages=waits", "--oversubscribe=3/2")


def test_counters(tmp_path, capsys):
    histogram = Counter()
    for index in range(BATCHES):
        folder, seed = tmp_path / str(index), f"{SEED}-{index}"
        batch, cluster = (
            legal_strategies_drawn(folder / "explained", seed)
            if index % 3 == 2
            else (random_batch(seed, 6), {"profile": "cpu"})
        )
        batch.write(folder)
        program = [folder / "spec.optim", "--manifest", folder / "many.json", "--cluster", json.dumps(cluster), *batch.options()]
        ran = stepc(
            "run", *program, "--tensors", folder / "in.safetensors", "--steps", 2, "-o", folder / "out"
        )
        histogram += expect_simulated(ran, program, WAYS[index // 2 % 3])
        histogram += Counter(case.strategy for case in batch.cases if case.forced)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(histogram)}")
    assert histogram["messages"] >= 10 * BATCHES
