"""Bytes and messages of a simulated step are those that the runtime counts: random programs on in-process ranks.

STEPC_SEED repeats a run (its value is printed), STEPC_SIMULATED_BATCHES makes it longer.
"""

import json
import os
import random
import re
import subprocess
from collections import Counter

import pytest
from cases import random_batch
from compiler import STEPC

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
BATCHES = int(os.environ.get("STEPC_SIMULATED_BATCHES", "8"))
COUNTERS = re.compile(
    r"rank (\d+): .*; sent (\d+) messages, (\d+) bytes; received (\d+) messages, (\d+) bytes; as planned"
)
KEYS = ("rank", "messages_sent", "bytes_sent", "messages_received", "bytes_received")


def stepc(*arguments):
    done = subprocess.run([str(word) for word in (STEPC, *arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"STEPC_SEED={SEED}\n{done.stderr}"
    return done.stdout


def test_counters(tmp_path, capsys):
    histogram = Counter()
    source = random.Random(SEED)
    for index in range(BATCHES):
        folder = tmp_path / str(index)
        batch = random_batch(f"{SEED}-{index}", 6)
        batch.write(folder)
        program = [folder / "spec.optim", "--manifest", folder / "many.json", *batch.options()]
        ran = stepc("run", *program, "--tensors", folder / "in.safetensors", "--steps", 2, "-o", folder / "out")
        counted = [tuple(map(int, found)) for found in COUNTERS.findall(ran)]
        # Whatever takes how long, what travels is the same.
        options = source.choice(["--messages=streams", "--messages=waits", "--oversubscribe=3/2"])
        step = json.loads(stepc("simulate", *program, options, "--json", "-"))
        assert [tuple(rank[key] for key in KEYS) for rank in step["ranks"]] == counted, f"STEPC_SEED={SEED}"
        histogram["ranks"] += len(counted)
        histogram["messages"] += sum(rank[1] for rank in counted)
        histogram["bytes"] += sum(rank[2] for rank in counted)
        histogram[options] += 1
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(histogram)}")
    assert histogram["messages"] > 100
