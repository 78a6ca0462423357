"""Exact numerics: the bytes of a step do not depend on mesh, placements, strategy, waves or threads (P2).

Random rules on random parameters are compiled for a random world and for one rank, and stepped with the same
gradients; every output tensor must have the same bytes. A case is one parameter. Most programs are steps of the
target `interpret`, which takes a fifth of the processor time. STEPC_SEED repeats a run (its value is printed),
STEPC_BITS_BATCHES and STEPC_BITS_INTERPRETED make it longer, STEPC_KEEP (a folder) keeps its files.
"""

import json
import os
import random
import re
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cases import STEPS, apart, random_batch
from compiler import STEPC, CompilerFailed, run, stepc
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
BATCHES = int(os.environ.get("STEPC_BITS_BATCHES") or draws(5))
INTERPRETED = int(os.environ.get("STEPC_BITS_INTERPRETED") or draws(16))
PER_BATCH = 10  # what costs are the kernels of a batch's four rules
WORKERS = 2
COUNTED = (
    "strategy elementwise", "strategy local", "strategy owner", "strategy gather",
    "mesh rank 1", "mesh rank 2", "mesh rank 3", "mesh rank 4 or 5",
    "placement R", "placement S", "placement _S", "placement IS", "placement owned", "placement flat",
    "dtype f32", "dtype bf16", "dtype f16", "other gradient dtype", "uneven", "empty", "batched",
    "lists apart", "divided", "equal blocks", "flattened", "partial gradient", "NaNs and infinities",
)  # fmt: skip
LEAST = 2


def differences(found, expected):
    """Names and first differing elements of tensors whose bytes differ."""
    lines = []
    for name, one in expected.items():
        other = found.get(name)
        if other == one:
            continue
        if other is None or (other.dtype, other.shape) != (one.dtype, one.shape):
            lines.append(f"{name}: expected {one.dtype} {one.shape}, found {other and other.dtype}")
            continue
        size = len(one.data) // max(1, int(np.prod(one.shape)))
        a, b = (np.frombuffer(x.data, np.uint8).reshape(-1, size) for x in (one, other))
        at = np.flatnonzero((a != b).any(axis=1))
        want, got = one.array().reshape(-1)[at[0]], other.array().reshape(-1)[at[0]]
        lines.append(f"{name}: {len(at)} of {len(a)} elements differ, [{at[0]}] is {got}, on one rank {want}")
    return lines + [f"{name}: unexpected" for name in found.keys() - expected.keys()]


def step_both(batch, folder, separately, *options):
    """(many ranks, one rank): all tensors that come out. One library for both, which share its kernels,
    or one for each.
    """
    batch.write(folder)
    spec, tensors = folder / "spec.optim", folder / "in.safetensors"
    if not separately:
        return apart(run(spec, folder / "both.json", folder / "both.safetensors", folder / "out.safetensors",
                         "--threads", batch.threads, *batch.options(), *options, steps=STEPS))  # fmt: skip
    many = run(spec, folder / "many.json", tensors, folder / "many.safetensors",
               "--threads", batch.threads, *batch.options(), *options, steps=STEPS)  # fmt: skip
    alone = folder / "one.in.safetensors"
    one = run(spec, folder / "one.json", alone, folder / "one.safetensors", *options, steps=STEPS)
    return many, one


def strategies_of(batch, folder):
    """By which strategy the groups of each parameter are computed: one that is not forced is stepc's
    choice.
    """
    report = json.loads(
        stepc("explain", "--json", folder / "spec.optim", "-m", folder / "many.json", *batch.options())
    )
    result = {}
    for group in report["groups"]:
        for name in group["parameters"]:
            result.setdefault(name, set()).add(group["strategy"])
    return result


def traits_of(batch):
    return Counter(trait for case in batch.cases for trait in case.traits())


def seeds_of(prefix, count):
    """`count` seeds, and more until the cases that they draw are of every class."""
    seeds, drawn = [], Counter()
    while len(seeds) < count or (
        len(seeds) < 3 * count
        and any(drawn[name] < LEAST for name in COUNTED if not name.startswith("strategy"))
    ):
        seeds.append(f"{prefix}{len(seeds)}")
        drawn += traits_of(random_batch(seeds[-1], PER_BATCH))
    return seeds


def check(seed, folder, separately, *options):
    """One batch: (what its cases are, what is wrong with it, outputs that are not finite)."""
    batch = random_batch(seed, PER_BATCH)
    counts = traits_of(batch)
    counts["cases"] += len(batch.cases)
    try:
        many, one = step_both(batch, folder, separately, *options)
        counts += Counter(
            f"strategy {name}" for names in strategies_of(batch, folder).values() for name in names
        )
        wrong = differences(many, one)
        infinite = sum(not np.isfinite(t.array()).all() for t in one.values())
    except CompilerFailed as failed:
        text = str(failed)
        errors = [line for line in text.splitlines() if "error: " in line]
        return counts, f"batch '{seed}': " + "\n".join(errors or [text[:2000]]), 0
    except Exception:
        return counts, f"batch '{seed}': {traceback.format_exc()}", 0
    if not wrong:
        return counts, "", infinite
    cases = "\n  ".join(case.describe() for case in batch.cases)
    text = "\n    ".join(wrong)
    return counts, f"batch '{seed}' in {folder}, waves {batch.waves}:\n  {cases}\n    {text}", infinite


def test_results_have_the_same_bytes(tmp_path, capsys):
    compare(seeds_of(f"{SEED}-", BATCHES), tmp_path, capsys)


def test_interpreted_results_have_the_same_bytes(tmp_path, capsys):
    compare(seeds_of(f"{SEED}-interpreted-", INTERPRETED), tmp_path, capsys, "--target", "interpret")


def compare(seeds, folder, capsys, *options):
    folder = Path(os.environ.get("STEPC_KEEP") or folder)
    with ThreadPoolExecutor(WORKERS) as pool:
        # Every fourth is compiled for one rank alone, as a user compares them.
        checks = [
            pool.submit(check, seed, folder / seed, index % 4 == 0, *options)
            for index, seed in enumerate(seeds)
        ]
        results = [one.result() for one in checks]
    histogram, infinite = Counter(), 0
    for counts, _, count in results:
        histogram += counts
        infinite += count
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {histogram['cases']} cases of exact numerics, "
              f"{infinite} tensors not finite")  # fmt: skip
        for name in COUNTED:
            print(f"  {name:22} {histogram[name]:4} {'#' * (histogram[name] // 4)}")
    problems = [text for _, text, _ in results if text]
    assert not problems, f"STEPC_SEED={SEED}\n" + "\n".join(problems)
    assert histogram["cases"] >= 7 * len(seeds)
    rare = {name: histogram[name] for name in COUNTED if histogram[name] < LEAST}
    assert not rare, f"STEPC_SEED={SEED}: expected each class at least {LEAST} times, found {rare}"


FAULT = """
optimizer Signed(lr) {
  state m : f32
  m = m + grad
  let o = orthogonalize(m, steps = 1, precision = f32)
  param = param - lr * o
}
route { Signed(lr = 0.5) for matrix }
"""
MANIFEST = """{"version": 1, "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": SIZE}]}],
 "parameters": [{"name": "w", "shape": [12, 8], "dtype": "f32", "mesh": "dp", "placements": ["S(0)"]}]}"""


@pytest.mark.parametrize("fault", [False, True])
def test_a_fault_in_an_unpack_offset_is_found(tmp_path, fault):
    """The comparison above fails when the stage that unpacks what was received reads one element
    too far. The fault is planted in the text of level llvm, and compiled on from there."""
    spec, tensors = tmp_path / "spec.optim", tmp_path / "in.safetensors"
    spec.write_text(FAULT)
    for name, size in (("many", 2), ("one", 1)):
        (tmp_path / f"{name}.json").write_text(MANIFEST.replace("SIZE", str(size)))
    write_inputs(tensors)
    stepc("compile", spec, "-m", tmp_path / "many.json", "--emit", "llvm", "-o", tmp_path)
    text = (tmp_path / "spec.mlir").read_text()
    if fault:
        text = plant(text)
    (tmp_path / "edited").mkdir()
    edited = tmp_path / "edited" / "spec.mlir"
    edited.write_text(text)
    stepc("compile", edited, "-o", tmp_path / "library")
    many = run(spec, tmp_path / "many.json", tensors, tmp_path / "many.safetensors",
               "--library", tmp_path / "library" / "libspec.so")  # fmt: skip
    one = run(spec, tmp_path / "one.json", tensors, tmp_path / "one.safetensors")
    wrong = differences(many, one)
    assert bool(wrong) == fault, wrong
    assert all(line.startswith("param:w") for line in wrong)


def write_inputs(path):
    from compiler import save, tensor

    generator = np.random.default_rng(5)
    save(path, {name: tensor(generator.normal(size=(12, 8)), "f32") for name in ("param:w", "grad:w")})


def plant(kernels):
    """Adds one to the staged offset (field 8 of a chunk, runtime/include/stepc/kernel_abi.h) that the
    out stage loads."""
    start = kernels.index("llvm.func internal @Signed_out")
    head, body = kernels[:start], kernels[start:]
    staged = re.search(
        r"(%\d+) = llvm.getelementptr %\d+\[8\].*\n(\s+)(%\d+) = llvm.load \1.* : !llvm.ptr -> i64\n", body
    )
    assert staged, "the out stage loads no staged offset"
    indent, value = staged[2], staged[3]
    more = f"{indent}%planted_one = llvm.mlir.constant(1 : i64) : i64\n{indent}%planted = llvm.add {value}, %planted_one : i64\n"
    end = body.index("llvm.func", 10) if "llvm.func" in body[10:] else len(body)
    rest = re.sub(rf"{re.escape(value)}(?!\d)", "%planted", body[staged.end() : end])
    return head + body[: staged.end()] + more + rest + body[end:]
