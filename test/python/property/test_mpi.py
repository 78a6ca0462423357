"""A sample of the random cases on MPI ranks: processes that hold their own shards alone, with the bytes of
one rank. Random rules under strategies of one hop, and cells of all strategies, those of fast numerics within
their tolerance.

STEPC_SEED repeats a run."""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import STEPS, random_batch
from cells import CLUSTER, FAST, RULES, SIGN, STRATEGIES, Cells, inexact, legal_strategies
from compiler import ROOT, STEPC, Tensor, run, stepc
from test_bits import differences
from tiers import draws

MPI = ROOT / "build" / "lib" / "libstepc_mpi.so"
pytestmark = pytest.mark.skipif(
    not STEPC.is_file() or shutil.which("mpirun") is None or not MPI.is_file(),
    reason="no compiler, or no MPI, is here",
)

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
BATCHES, PER_BATCH, MOST_RANKS, LEAST = draws(1), 6, 5, draws(1)
COUNTED = (
    *(f"placement {kind}" for kind in ("R", "S", "_S", "IS", "owned", "flat")),
    "partial gradient", "lists apart", "batched", "divided", "flattened", "uneven", "empty",
)  # fmt: skip


def on_mpi(folder, batch, *options):
    """What all ranks have in the end."""
    world = len({rank for case in batch.cases for rank in case.layout.mesh.ranks})
    stepc("compile", folder / "spec.optim", "-m", folder / "many.json", *options, *batch.options(), "-o", folder / "library")
    ones = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe",
            "OMPI_MCA_mpi_yield_when_idle")  # fmt: skip
    environment = os.environ | dict.fromkeys(ones, "1") | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    command = ["mpirun", "-np", world, sys.executable, Path(__file__).with_name("mpi_ranks.py"), MPI,
               folder / "library" / "libspec.so", folder / "many.json", folder / "in.safetensors", STEPS,
               batch.threads, folder]  # fmt: skip
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(world)]


def put_together(ranks, like):
    """Whole tensors of what ranks have; replicas have to agree, and no element may be missing."""
    result = {}
    for key, one in like.items():
        whole = np.zeros(
            (max(1, int(np.prod(one.shape))), len(one.data) // max(1, int(np.prod(one.shape)))), np.uint8
        )
        there = np.zeros(len(whole), bool)
        for number, rank in enumerate(ranks):
            for start, at, length in rank.get(f"runs {key}", ()):
                piece, known = rank[key][at : at + length], there[start : start + length]
                other = whole[start : start + length]
                assert (piece == other)[known].all(), (
                    f"{key}: rank {number} has others from {start} than ranks before it"
                )
                other[:], known[:] = piece, True
        assert there.all(), f"{key}: expected every element on some rank"
        result[key] = Tensor(one.dtype, one.shape, whole.tobytes())
    return result


def random_rules():
    """Batches of random rules, of few ranks: (what to compile with, how to compare)."""
    number = batches = 0
    while batches < BATCHES:
        batch = random_batch(f"{SEED}-mpi-{number}", PER_BATCH)
        number += 1
        if 2 <= len({rank for case in batch.cases for rank in case.layout.mesh.ranks}) <= MOST_RANKS:
            batches += 1
            yield batch, (), differences


def all_strategies(folder):
    """Batches of cells, at least two of exact numerics, until each strategy has come."""
    exact = [strategy for strategy in STRATEGIES if strategy not in FAST]
    for strategies, rules, dtypes, options, compare in (
        (exact, RULES, ("f32", "bf16", "f16"), ("--cluster", CLUSTER), differences),
        (FAST, [SIGN], ("f32",), ("--cluster", CLUSTER, "--numerics=fast"), inexact),
    ):
        cells = Cells(random.Random(f"{SEED} mpi"), strategies, rules, dtypes, LEAST)
        number, least = 0, 2 if strategies == exact else 1
        while number < least or (number < 8 and any(cells.executed[each] < LEAST for each in strategies)):
            batch = cells.pool(f"{SEED}-mpi-{compare.__name__}-{number}", totals=(4,))
            cells.executed = cells.choose(batch, legal_strategies(folder / "explained", batch, options)[0])
            number += 1
            yield batch, options, compare


def test_mpi_ranks_have_the_bytes_of_one(tmp_path, capsys):
    counts = Counter()
    for number, (batch, options, compare) in enumerate([*random_rules(), *all_strategies(tmp_path)]):
        folder = tmp_path / str(number)
        batch.write(folder)
        one = run(folder / "spec.optim", folder / "one.json", folder / "one.in.safetensors", folder / "one.out", steps=STEPS)
        expected = {key: each for key, each in one.items() if not key.endswith(":step")}
        found = put_together(on_mpi(folder, batch, *options), expected)
        wrong = compare(found, expected)
        cases = "\n".join(case.describe() for case in batch.cases)
        assert not wrong, f"STEPC_SEED={SEED}, batch {number}\n" + "\n".join(wrong) + f"\n{cases}"
        counts += Counter(trait for case in batch.cases for trait in case.layout.traits())
        counts += Counter(
            f"strategy {case.strategy}" for case in batch.cases if case.forced or case.rule.elementwise
        )
        counts["tensors"] += len(expected)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: on MPI ranks: {dict(counts)}")
    rare = {name: counts[name] for name in [*COUNTED, *(f"strategy {each}" for each in STRATEGIES)] if counts[name] < LEAST}
    assert not rare, f"STEPC_SEED={SEED}: expected each at least {LEAST} times, found {rare}"
