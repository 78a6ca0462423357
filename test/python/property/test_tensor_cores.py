"""Products on tensor cores give the bits of their shapes: on any ranks and meshes, by any strategy, in any
waves, beside any others.

Tensor cores add up otherwise than a CPU, so what is compared is `emulated:<gpu>,tensorcore` with itself:
whole on one rank, and spread over many, with the order of threads, of copies to a block's memory and of
streams drawn. How far they are from float64 is test_accuracy.py's. STEPC_SEED repeats a run,
STEPC_CORES_BATCHES makes it longer.
"""

import json
import os
import re
from collections import Counter

import pytest
from cases import STEPS, apart, random_batch
from compiler import ROOT, STEPC, run, save, stepc
from random_rules import ON_CORES
from stub_driver import STUB
from test_accuracy import document, tensors
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

BATCHES = int(os.environ.get("STEPC_CORES_BATCHES") or draws(1))
PER_BATCH = 8
CORES = ("--target", "emulated:sm_80,tensorcore")


def accumulations(folder, batch):
    """How many products of the batch's program are of which accumulation."""
    stepc("compile", folder / "spec.optim", "-m", folder / "many.json", *batch.options(), *CORES, "--emit", "exec", "-o", folder)
    return Counter(re.findall(r"exec\.product (\w+)", (folder / "spec.mlir").read_text()))


def of_all(batch, strategy):
    """Options by which every matrix is computed in one way."""
    return [word for case in batch.cases if not case.rule.elementwise for word in ("--strategy", f"{case.name}={strategy}")]


@pytest.mark.parametrize("index", range(BATCHES))
def test_random_programs(tmp_path, index, capsys):
    for attempt in range(20):
        batch = random_batch(f"{SEED}-cores-{index}-{attempt}", PER_BATCH, forms=ON_CORES)
        batch.write(tmp_path)
        products = accumulations(tmp_path, batch)
        if products["tensorcore"] >= 3:
            break
    assert products["tensorcore"] >= 3 and products["rounded_chain"] == 0, products
    spec, inputs = tmp_path / "spec.optim", tmp_path / "in.safetensors"
    alone = tmp_path / "one.in.safetensors"
    expected = run(spec, tmp_path / "one.json", alone, tmp_path / "one.safetensors", *CORES, steps=STEPS)
    ways = {"drawn": batch.options(), "owner": ["--waves", 2, *of_all(batch, "owner")], "gather": ["--waves", 3, *of_all(batch, "gather")]}
    for number, (way, options) in enumerate(ways.items()):
        found = run(spec, tmp_path / "many.json", inputs, tmp_path / f"{way}.safetensors", *CORES, *options, "--threads", 1 + number,
                    steps=STEPS, STEPC_EMULATED_SEED=10 * index + number)  # fmt: skip
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}, {way}:\n" + "\n".join(wrong)
    for chip in ("sm_80", "sm_90a"):
        target = ("--target", f"interpret:{chip},tensorcore")
        found = run(spec, tmp_path / "many.json", inputs, tmp_path / "interpreted.safetensors", *target, *batch.options(), steps=STEPS)
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}, interpreted for {chip}:\n" + "\n".join(wrong)
    beside = run(spec, tmp_path / "both.json", tmp_path / "both.safetensors", tmp_path / "both.out", *CORES, *batch.options(),
                 steps=STEPS, STEPC_EMULATED_SEED=index)  # fmt: skip
    for found in apart(beside):
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}, beside themselves:\n" + "\n".join(wrong)
    with capsys.disabled():
        print(f"\n  STEPC_SEED={SEED}, batch {index}: {dict(products)}", end="")


@pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")
def test_streams_of_a_driver_in_any_order(tmp_path):
    """By the code that drives a GPU, whose streams run in threads of their own."""
    shapes = {"wide": (40, 136), "tall": (72, 24), "square": (64, 64), "odd": (35, 61)}
    files = [ROOT / "examples" / "muon.optim", tmp_path / "m.json", tmp_path / "in.safetensors"]
    save(files[2], tensors(shapes, 2))
    files[1].write_text(json.dumps(document(shapes)))
    expected = run(*files, tmp_path / "out.safetensors", *CORES, steps=2)
    stepc("compile", files[0], "-m", files[1], *CORES, "--waves", 2, "-o", tmp_path / "gpu", STEPC_RUNTIME_DIR=STUB)
    for order in range(4):
        found = run(*files, tmp_path / "gpu.safetensors", "--library", tmp_path / "gpu" / "libmuon.so", steps=2,
                    STEPC_STUB_ASYNC=order + 1, STEPC_EMULATED_SEED=order)  # fmt: skip
        wrong = differences(found, expected)
        assert not wrong, f"order {order}:\n" + "\n".join(wrong)
    # Its sums are not the CPU's: what was compared are other products.
    chain = run(*files, tmp_path / "chain.safetensors", "--target", "emulated:sm_80", steps=2)
    assert differences(chain, expected)
