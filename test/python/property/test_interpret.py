"""The target `interpret` gives the bits of `cpu` for the same chip.

Random programs are stepped twice: compiled, and by records that the runtime interprets. What differs is
everything below level 5, loops and instructions included; tables, exchanges and expansions are the same.
STEPC_SEED repeats a run, STEPC_INTERPRET_BATCHES makes it longer.
"""

import json
import os
import re

import numpy as np
import pytest
from cases import SPECIAL, STEPS, random_batch
from compiler import ROOT, STEPC, CompilerFailed, Tensor, run, save, stepc, tensor
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

BATCHES = int(os.environ.get("STEPC_INTERPRET_BATCHES") or draws(4))
PER_BATCH = 12
# Without fused multiply-adds and conversions of f16, with both, and this machine.
CHIPS = (":x86-64-v2", ":x86-64-v3", "")
TYPES = ("f32", "bf16", "f16")


def both(files, folder, *options, chip="", steps=STEPS):
    """(compiled, interpreted): what comes out."""
    return [
        run(*files, folder / f"{kind}.safetensors", *options, "--target", kind + chip, steps=steps)
        for kind in ("cpu", "interpret")
    ]


@pytest.mark.parametrize("index", range(BATCHES))
def test_random_programs(tmp_path, index):
    batch = random_batch(f"{SEED}-interpret-{index}", PER_BATCH)
    batch.write(tmp_path)
    files = [tmp_path / name for name in ("spec.optim", "many.json", "in.safetensors")]
    options = ["--threads", batch.threads, *batch.options()]
    compiled, interpreted = both(files, tmp_path, *options, chip=CHIPS[index % len(CHIPS)])
    wrong = differences(interpreted, compiled)
    assert not wrong, f"STEPC_SEED={SEED}, batch {index}:\n" + "\n".join(wrong)


FUNCTIONS = {
    "exp": "m = exp(grad)\n  param = param + exp(0 - m)",
    "log": "m = log(grad)\n  param = log(abs(param))",
    "powers": "m = grad ^ 0.3\n  param = abs(param) ^ grad + (param ^ 3) * (grad ^ (0 - 2))",
    "roots": "m = sqrt(grad)\n  param = rsqrt(abs(param)) + sign(grad)",
    "floors": "m = floor(grad * 4)\n  param = floor(param) - floor(0 - m / 3) * floor(step / 2)",
    "choices": "m = max(grad, min(param, m))\n  param = select(grad > m, clamp(param, 0 - 1, 1), 0 - param)",
    "scalars": "m = lerp(m, grad, 1 - beta ^ step)\n  param = param - exp(0 - step) * log(step + beta) * (numel ^ 0.37) * m",
}


def any_bits(generator, dtype, size):
    """Numbers of all sizes, denormal ones included, and among them those that are special."""
    words, special = SPECIAL[{"f32": "F32", "bf16": "BF16", "f16": "F16"}[dtype]]
    data = generator.integers(0, np.iinfo(words).max, size, words, endpoint=True)
    plain = np.frombuffer(tensor(generator.normal(size=size), dtype).data, words)
    data = np.where(generator.random(size) < 0.5, data, plain)
    data[: len(special)] = special
    return Tensor({"f32": "F32", "bf16": "BF16", "f16": "F16"}[dtype], (size,), data.astype(words).tobytes())


@pytest.mark.parametrize("chip", CHIPS)
def test_functions_of_all_numbers(tmp_path, chip):
    generator, size = np.random.default_rng(7), 1111
    rules, claims, parameters, tensors = [], [], [], {}
    for name, body in FUNCTIONS.items():
        for dtype in TYPES:
            rule = f"{name.title()}_{dtype}"
            rules.append(f"optimizer {rule}(beta = 0.9) {{\n  state m : {dtype}\n  {body}\n}}\n")
            claims.append(f'  {rule}() for "{rule}"\n')
            parameters.append({"name": rule, "shape": [size], "dtype": dtype, "grad_dtype": dtype, "mesh": "m",
                               "placements": ["S(0)"]})  # fmt: skip
            for role in (f"param:{rule}", f"grad:{rule}", f"state:{rule}:m"):
                tensors[role] = any_bits(generator, dtype, size)
    files = written(tmp_path, "".join(rules) + "route {\n" + "".join(claims) + "}\n", parameters, tensors)
    compiled, interpreted = both(files, tmp_path, "--threads", 2, chip=chip)
    assert not differences(interpreted, compiled)


MATRICES = """
optimizer Large(lr) {
  state v : f32[rows]
  state w : f32[cols]
  state s : f32[]
  v = rms(grad, over = columns)
  w = max(grad, over = rows) + sum(grad, over = rows)
  s = norm(grad) + mean(param)
  let o = orthogonalize(grad, steps = 3, precision = PRECISION)
  param = param - lr * o * v / (w + s)
}
route { Large(lr = 0.1) for rest }
"""


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_large_matrices(tmp_path, precision):
    """Reductions that a CPU shares among threads, products of many tiles, squares that leave the range of f32."""
    generator, parameters, tensors = np.random.default_rng(8), [], {}
    for index, (shape, scale) in enumerate(
        [((190, 131), 1), ((131, 190), 1e-25), ((3, 170, 150), 1e25), ((1, 1), 1), ((7, 1), 0)]
    ):
        name = f"w{index}"
        parameters.append({"name": name, "shape": shape, "dtype": TYPES[index % 3], "grad_dtype": "f32", "mesh": "m",
                           "batch_axes": len(shape) - 2, "placements": [f"S({index % 2})"]})  # fmt: skip
        tensors[f"param:{name}"] = tensor(generator.normal(size=shape), TYPES[index % 3])
        tensors[f"grad:{name}"] = tensor(scale * generator.normal(size=shape), "f32")
    files = written(tmp_path, MATRICES.replace("PRECISION", precision), parameters, tensors)
    compiled, interpreted = both(files, tmp_path, "--threads", 3)
    assert not differences(interpreted, compiled)


def test_what_has_no_gradient_is_skipped(tmp_path):
    generator = np.random.default_rng(5)
    text = (ROOT / "examples" / "muon.optim").read_text()
    for rule in ("Muon(lr = 0.02", "AdamW(lr = 3e-4"):
        assert rule in text
        text = text.replace(rule, rule + ", missing_grad = skip")
    shapes = {f"w{i}": [8 + 4 * (i % 2), 8] if i < 6 else [40] for i in range(9)}
    parameters = [
        {"name": name, "shape": shape, "dtype": "f32", "mesh": "m", "placements": ["S(0)"]}
        for name, shape in shapes.items()
    ]
    tensors = {f"param:{name}": tensor(generator.normal(size=shape), "f32") for name, shape in shapes.items()}
    for step in (1, 2, 3):
        for i, (name, shape) in enumerate(shapes.items()):
            if (i + step) % 3:
                tensors[f"grad:{name}@{step}"] = tensor(generator.normal(size=shape), "f32")
    compiled, interpreted = both(written(tmp_path, text, parameters, tensors), tmp_path, steps=3)
    assert not differences(interpreted, compiled)


def test_damaged_records_are_refused(tmp_path):
    """One byte of the records is changed in the text of level llvm, and compiled on from there."""
    batch = random_batch("damaged", 3)
    batch.write(tmp_path)
    spec, manifest = tmp_path / "spec.optim", tmp_path / "one.json"
    stepc("compile", spec, "-m", manifest, "--target", "interpret", "--emit", "llvm", "-o", tmp_path)
    text = (tmp_path / "spec.mlir").read_text()
    head, records = text.split("@stepc_program_records(", 1)
    assert "_scalars" in records.split("\n", 1)[0]
    (tmp_path / "edited").mkdir()
    edited = tmp_path / "edited" / "spec.mlir"
    edited.write_text(head + "@stepc_program_records(" + records.replace("_scalars", "_skalars", 1))
    stepc("compile", edited, "-o", tmp_path / "library")
    with pytest.raises(CompilerFailed, match=re.escape(
        "library 'spec' is damaged: expected its kernels as the compiler wrote them, found others; compile the library again"
    )):  # fmt: skip
        run(spec, manifest, tmp_path / "one.in.safetensors", tmp_path / "out.safetensors",
            "--library", tmp_path / "library" / "libspec.so", steps=STEPS)  # fmt: skip


def written(folder, spec, parameters, tensors):
    """The files of a program on two ranks."""
    mesh = {"name": "m", "axes": [{"name": "x", "size": 2}]}
    (folder / "spec.optim").write_text(spec)
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    save(folder / "in.safetensors", tensors)
    return [folder / name for name in ("spec.optim", "m.json", "in.safetensors")]
