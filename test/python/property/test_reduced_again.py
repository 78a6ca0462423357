"""A model over gradients to which several ranks contribute. Their sums are kept from the model to the rules or, where a limit of the
workspace asks for it, made twice: the bits are the same, and each rank sends the contributions twice. STEPC_SEED repeats a run."""

import json
import os
import random

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
# In the second round a number is computed that follows from one of the first.
ROUNDS = ("", "let total = norm(grad / (1 + first))")
SPEC = """
model(max_norm = 0.5) {
  let first = norm(grad)
  let total = first
  let largest = max(abs(grad))
  skip when largest > 100
  grad = min(1, max_norm / total) * grad
}
optimizer Polar(lr) {
  state m : f32
  m = lerp(m, grad, 0.5)
  param = param - lr * orthogonalize(m, coefficients = [(1.5, -0.5, 0)], precision = f32)
}
optimizer Sgd(lr) { param = param - lr * grad }
route {
  Polar(lr = 0.1) for matrix
  Sgd(lr = 0.1) for rest
}
"""
STEPS, RANKS = 2, 4


def spec(more):
    return SPEC.replace("let total = first", more or "let total = first")


def drawn(folder, chosen, draw, text):
    """The arguments of a case, and those of the same on one rank."""
    folder.mkdir()
    kind = chosen.choice(("P(sum)", "P(avg)"))
    # All sums together take more memory than a few waves do.
    kinds = [[4 * chosen.randint(2, 4), chosen.randint(8, 16)] for _ in range(3)]
    shapes = {f"w{i}": chosen.choice(kinds) for i in range(128)} | {"b": [4 * chosen.randint(9, 90)]}
    one = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    mesh = {"name": "mesh", "axes": [{"name": "dp", "size": RANKS}]}

    def manifest(meshes, **given):
        parameters = [{"name": name, "shape": shape, "dtype": "f32", **given} for name, shape in shapes.items()]
        return json.dumps({"version": 1, "meshes": meshes, "parameters": parameters})

    (folder / "r.optim").write_text(text)
    (folder / "many.json").write_text(manifest([mesh], mesh="mesh", placements=["S(0)"], grad_placements=[kind]))
    (folder / "one.json").write_text(manifest([one], mesh="one", placements=["R"]))
    many, alone = {}, {}
    for name, shape in shapes.items():
        many[f"param:{name}"] = alone[f"param:{name}"] = tensor(draw.standard_normal(shape), "f32")
        for step in range(1, STEPS + 1):
            # Small numbers of eighths, so that their sum is exact.
            parts = draw.integers(-40, 40, (RANKS, *shape)).astype(np.float32) / 8
            many[f"grad:{name}@{step}"] = tensor(parts, "f32")
            alone[f"grad:{name}@{step}"] = tensor(parts.sum(0) / (RANKS if kind == "P(avg)" else 1), "f32")
    save(folder / "many.in", many)
    save(folder / "one.in", alone)
    files = [folder / "r.optim", folder / "many.json", folder / "many.in"]
    return files, [folder / "r.optim", folder / "one.json", folder / "one.in"]


def explained(files, *options):
    return json.loads(stepc("explain", "--json", files[0], "-m", files[1], "--strategy", "*=owner", *options))


def least(files):
    """Limits that are kept, from the workspace without one downwards."""
    report = explained(files)
    limit = report["workspace_bytes_at_most"]
    while True:
        limit = limit * 9 // 10
        try:
            report = explained(files, "--workspace-limit", limit)
        except CompilerFailed as failed:
            assert "workspace" in str(failed), failed
            return
        yield limit, report


@pytest.mark.parametrize("number", range(draws(2)))
def test_bits_are_those_of_kept_sums(tmp_path, number):
    chosen, draw = random.Random(f"again {SEED} {number}"), np.random.default_rng([int(SEED), number])
    files, alone = drawn(tmp_path / "case", chosen, draw, spec(ROUNDS[number % 2]))
    where = f"STEPC_SEED={SEED}, {number}: {files[1].read_text()}"
    free = explained(files)
    assert not free["reduces_again"]
    found = list(least(files))
    assert any(report["reduces_again"] for _, report in found), where
    for limit, report in found:
        assert report["workspace_bytes_at_most"] <= limit, where
        twice = report["total"]["bytes_sent"]["max"] > 1.3 * free["total"]["bytes_sent"]["max"]
        assert twice == report["reduces_again"], where
    expected = run(*alone, tmp_path / "one", steps=STEPS)
    again = [limit for limit, report in found if report["reduces_again"]]
    for options in ([], ["--workspace-limit", again[0]], ["--workspace-limit", again[-1]]):
        many = run(*files, tmp_path / "many", "--strategy", "*=owner", *options, steps=STEPS)
        wrong = [name for name in expected if bytes(many[name].data) != bytes(expected[name].data)]
        assert not wrong and many.keys() == expected.keys(), f"{where}, {options}: {wrong}"


def test_a_model_that_reads_no_gradient_keeps_none(tmp_path):
    text = SPEC.replace("norm(grad)", "norm(param)").replace("max(abs(grad))", "max(abs(param))")
    files, _ = drawn(tmp_path / "case", random.Random(SEED), np.random.default_rng(int(SEED)), text)
    found = list(least(files))
    assert found and not any(report["reduces_again"] for _, report in found)
