"""The kernels of a GPU, run by this machine thread after thread, give the bytes of the CPU's.

Random programs and the examples are stepped twice, compiled for the CPU and for `emulated`: a chunk per block
with vectors of eight where addresses allow, against loops with vectors of sixteen; tiles and warps against
panels and vectors, with threads that wait for each other in an order that is drawn. STEPC_SEED repeats a run,
STEPC_EMULATED_BATCHES makes it longer.
"""

import json
import os
from collections import Counter

import numpy as np
import pytest
from cases import STEPS, random_batch
from compiler import ROOT, STEPC, CompilerFailed, run, save, stepc, tensor
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

BATCHES = int(os.environ.get("STEPC_EMULATED_BATCHES") or draws(1))
PER_BATCH = 12


@pytest.mark.parametrize("index", range(BATCHES))
def test_random_programs(tmp_path, index, capsys):
    batch = random_batch(f"{SEED}-gpu-{index}", PER_BATCH)
    batch.waves = 1 + index % 2
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    options = ["--threads", batch.threads, *batch.options()]
    expected = run(*files, tmp_path / "cpu.safetensors", *options, steps=STEPS)
    # In half of them races are looked for, too.
    target = ("emulated:sm_80", "emulated:sm_80,races")[index % 2]
    found = run(*files, tmp_path / "gpu.safetensors", *options, "--target", target, steps=STEPS,
                STEPC_EMULATED_SEED=index)  # fmt: skip
    wrong = differences(found, expected)
    assert not wrong, f"STEPC_SEED={SEED}, batch {index}:\n" + "\n".join(wrong)
    with capsys.disabled():
        counts = Counter(
            trait for case in batch.cases for trait in case.traits() if trait.startswith(("dtype", "forced"))
        )
        print(f"\n  STEPC_SEED={SEED}, batch {index}: {dict(counts)}", end="")


def test_streams_in_any_order(tmp_path):
    """The device carries out its two streams in an order that a seed draws."""
    batch = random_batch(f"{SEED}-gpu-streams", PER_BATCH)
    batch.waves = 2
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    expected = run(*files, tmp_path / "cpu.safetensors", *batch.options(), steps=STEPS)
    stepc("compile", files[0], "-m", files[1], *batch.options(), "--target", "emulated:sm_80,races", "-o", tmp_path / "gpu")
    for order in range(2):
        found = run(*files, tmp_path / "gpu.safetensors", "--library", tmp_path / "gpu" / "libspec.so", steps=STEPS,
                    STEPC_EMULATED_SEED=order)  # fmt: skip
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, order {order}:\n" + "\n".join(wrong)


def test_kernels_skip_what_has_no_gradient(tmp_path):
    """A launch on a GPU covers skipped parameters, too: the kernels themselves leave them out, by their
    records.
    """
    generator = np.random.default_rng(5)
    text = (ROOT / "examples" / "muon.optim").read_text()
    for rule in ("Muon(lr = 0.02", "AdamW(lr = 3e-4"):
        assert rule in text
        text = text.replace(rule, rule + ", missing_grad = skip")
    (tmp_path / "spec.optim").write_text(text)
    shapes = {f"w{i}": [8 + 4 * (i % 2), 8] if i < 6 else [40] for i in range(9)}
    mesh = {"name": "dp", "axes": [{"name": "dp", "size": 2}]}
    parameters = [
        {"name": name, "shape": shape, "dtype": "f32", "mesh": "dp", "placements": ["S(0)"]}
        for name, shape in shapes.items()
    ]
    (tmp_path / "two.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    tensors = {f"param:{name}": tensor(generator.normal(size=shape), "f32") for name, shape in shapes.items()}
    for step in (1, 2, 3):
        for i, (name, shape) in enumerate(shapes.items()):
            if (i + step) % 3:
                tensors[f"grad:{name}@{step}"] = tensor(generator.normal(size=shape), "f32")
    save(tmp_path / "in.safetensors", tensors)
    files = [tmp_path / "spec.optim", tmp_path / "two.json", tmp_path / "in.safetensors"]
    expected = run(*files, tmp_path / "cpu.safetensors", steps=3)
    found = run(*files, tmp_path / "gpu.safetensors", "--target", "emulated:sm_80,races", steps=3)
    assert not differences(found, expected)


def test_unknown_gpu(tmp_path):
    batch = random_batch("unknown", 1)
    batch.write(tmp_path)
    with pytest.raises(CompilerFailed, match="expected a GPU of .* found 'h100'"):
        stepc("compile", tmp_path / "spec.optim", "-m", tmp_path / "one.json", "--target", "emulated:h100", "-o", tmp_path)
