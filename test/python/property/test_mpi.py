"""A sample of the random cases on MPI ranks: processes that hold their own shards alone, with the bytes of one rank.

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
from compiler import ROOT, STEPC, run, stepc

MPI = ROOT / "build" / "lib" / "libstepc_mpi.so"
pytestmark = pytest.mark.skipif(
    not STEPC.is_file() or shutil.which("mpirun") is None or not MPI.is_file(), reason="no compiler, or no MPI, is here"
)

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
BATCHES, PER_BATCH, MOST_RANKS, LEAST_CASES = 4, 8, 5, 24


def on_mpi(folder, batch, world):
    """What all ranks have in the end, put together; replicas have to agree, and no element may be missing."""
    stepc("compile", folder / "spec.optim", "-m", folder / "many.json", *batch.options(), "-o", folder / "library")
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


def expect_same(ranks, expected):
    compared = 0
    for key, one in expected.items():
        if key.endswith(":step"):
            continue
        whole = np.frombuffer(one.data, np.uint8).reshape(max(1, int(np.prod(one.shape))), -1)
        there = np.zeros(len(whole), bool)
        for number, rank in enumerate(ranks):
            for start, at, length in rank.get(f"runs {key}", ()):
                there[start : start + length] = True
                same = np.array_equal(rank[key][at : at + length], whole[start : start + length])
                assert same, f"{key}: elements {start} to {start + length} on rank {number} are not those of one rank"
        assert there.all(), f"{key}: expected every element on some rank"
        compared += 1
    return compared


def test_mpi_ranks_have_the_bytes_of_one(tmp_path, capsys):
    counts, number, batches = Counter(), 0, 0
    while batches < BATCHES:
        batch = random_batch(f"{SEED}-mpi-{number}", PER_BATCH)
        number += 1
        world = len({rank for case in batch.cases for rank in case.layout.mesh.ranks})
        if not 2 <= world <= MOST_RANKS:
            continue
        batches += 1
        folder = tmp_path / str(number)
        batch.write(folder)
        expected = run(folder / "spec.optim", folder / "one.json", folder / "one.in.safetensors", folder / "one.out", steps=STEPS)
        counts["tensors"] += expect_same(on_mpi(folder, batch, world), expected)
        counts += Counter(trait for case in batch.cases for trait in case.traits())
        counts["cases"] += len(batch.cases)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: on MPI ranks: {dict(counts)}")
    assert counts["cases"] >= LEAST_CASES and counts["tensors"] >= counts["cases"]
