"""`benchmarks/orthogonalize.py` on this machine: libraries of `emulated`, and CPU torch in place of a GPU's."""

import json
import math
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

GPU = ROOT / "test" / "gpu"
sys.path.append(str(ROOT / "benchmarks"))  # behind: its models.py is another one

import orthogonalize  # noqa: E402

SHAPES = ((40, 24), (64, 64), (65, 130), (200, 72), (128, 512))


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as `run.sh build` makes it, with this benchmark alone."""
    if real_compiler() is None:
        pytest.skip("build/bin/stepc was not built")
    out = tmp_path_factory.mktemp("gpu") / "out"
    status, text = run("bash", GPU / "run.sh", "build", "--dry", "--small", "--only", "orthogonalize.*", out)
    assert status == 0, text
    return out


def bench(folder, *options):
    return run(sys.executable, folder / "orthogonalize.py", "--dry", "--budget", "0.01", *options)


def test_symmetric_products_count_their_blocks():
    for rows in (1, 63, 64, 65, 200, 1024):
        edges = [min(64, rows - at) for at in range(0, rows, 64)]
        elements = sum(height * width for i, height in enumerate(edges) for width in edges[: i + 1])
        assert orthogonalize.symmetric_flops(rows, 7) == 2 * 7 * elements


def test_the_compiler_counts_the_same(real, tmp_path):
    """Products of a step, and all operations less those of the norm."""
    (tmp_path / "step.optim").write_text(orthogonalize.rule("standard"))
    for rows, cols in SHAPES:
        manifest = {"version": 1, "meshes": [{"name": "one", "axes": [{"name": "a", "size": 1}]}],
                    "parameters": [{"name": "w", "shape": [rows, cols], "dtype": "bf16", "mesh": "one", "placements": ["R"]}]}  # fmt: skip
        (tmp_path / "m.json").write_text(json.dumps(manifest))
        command = ["explain", tmp_path / "step.optim", "-m", tmp_path / "m.json", "--target", "cuda:sm_90a", "--json"]
        status, text = run(real_compiler(), *command)
        assert status == 0, text
        report = json.loads(text)
        least, most = min(rows, cols), max(rows, cols)
        found = {
            (one["m"], one["n"], one["k"], one["symmetric"]): (one["flops"], one["full_flops"])
            for one in report["products"]
        }
        whole = 2 * least * least * most
        gram = orthogonalize.symmetric_flops(least, most)
        square = orthogonalize.symmetric_flops(least, least)
        assert found[least, least, most, True] == (gram, whole)
        assert found[least, least, least, True] == (square, 2 * least**3)
        assert found[(rows, cols, least, False)] == (whole, whole)
        norm = 2 * rows * cols
        for key, form in (("flops", "standard"), ("full_flops", "full")):
            expected = orthogonalize.flops([(1, rows, cols)], form) + norm
            assert report["total"][key] == {"min": expected, "max": expected}
            assert report["ranks"][0][key] == expected


def test_the_limit():
    matrices = [(2, 1024, 4096)]
    full, gram = orthogonalize.flops(matrices, "full"), orthogonalize.flops(matrices, "gram")
    assert gram < orthogonalize.flops(matrices, "standard") < full
    found = {"torch.optim.Muon": {"seconds": 2.0, "executed": full, "error": 0.0},
             "torch, batched": {"seconds": 1.0, "executed": full, "error": 0.0}}  # fmt: skip
    assert orthogonalize.limit(matrices, found) == (pytest.approx(gram / full), full)
    text = orthogonalize.table("set", matrices, found | {"a": {"seconds": 0.5, "executed": gram, "error": 1e-3}, "b": {"missing": "no | reason"}})
    assert f"| a | 500 | 4.00 | {gram / 0.5e12:.4g} | {gram / full / 0.5:.2f} | 1.0e-03 |" in text
    assert "| b | not here: no / reason |" in text
    assert all(math.isnan(one) for one in orthogonalize.limit(matrices, {"a": {"seconds": 1.0}}))


@pytest.mark.tier("all")
def test_dry_run(folder, tmp_path):
    # A stand-in for the package, which has no wheel for this machine.
    (folder / "gram_newton_schulz.py").write_text(
        "from orthogonalize import COEFFICIENTS, reference\n"
        "import torch\n"
        "class GramNewtonSchulz:\n"
        "    def __init__(self, ns_coefficients, gram_newton_schulz_reset_iterations):\n"
        "        assert ns_coefficients == [list(COEFFICIENTS)] * 5 and gram_newton_schulz_reset_iterations == [2]\n"
        "    def __call__(self, stack):\n"
        "        return torch.stack([reference(one) for one in stack])\n"
    )
    status, text = bench(folder, "--results", tmp_path, "--only", "128x768x2048,llama-3-8b")
    assert status == 0, text
    sets = json.loads((tmp_path / "orthogonalize.json").read_text())["sets"]
    assert list(sets) == ["128x768x2048", "llama-3-8b"]
    about = json.loads((folder / "cases.json").read_text())
    for name, one in sets.items():
        ways = one["found"]
        missing = {way for way, each in ways.items() if "missing" in each}
        expected = {"torch.optim.Muon, in a graph", "Triton, symmetric", "gram-newton-schulz, compiled"}
        if f"orthogonalize.{name}.gram" in about["missing"]:
            expected.add("stepc, gram form")
        assert missing == expected, text
        assert ways["gram-newton-schulz"]["error"] == 0
        for way in set(ways) - missing:
            assert ways[way]["seconds"] > 0 and ways[way]["executed"] > 0 and ways[way]["error"] < 3e-2, way
    experts = json.loads((folder / "libraries" / "orthogonalize.128x768x2048.standard" / "manifest.json").read_text())
    assert [(one["shape"], one["batch_axes"]) for one in experts["parameters"]] == [([32, 8, 16], 1)]
    text = (tmp_path / "orthogonalize.txt").read_text()
    assert "| Triton, symmetric | not here: RuntimeError: there is no GPU |" in text
    assert "llama-3-8b: 2 × (32 × 32), 2 × (8 × 32), 2 × (112 × 32), 1 × (32 × 112)." in text


@pytest.mark.tier("all")
def test_a_set_that_crashes_or_hangs_ends_alone(folder, tmp_path):
    package = folder / "gram_newton_schulz.py"
    package.write_text("import os\nos._exit(7)\n")
    status, text = bench(folder, "--only", "4096")
    assert status == 1 and "4096: status 7" in text
    package.write_text("import time\ntime.sleep(1000)\n")
    status, text = bench(folder, "--only", "4096,1024x4096", "--seconds", "14")
    assert status == 1 and "4096: no end within 14 s" in text and "1024x4096: not run: 14 s were over" in text
    package.unlink()


def test_refusals(tmp_path):
    script = ROOT / "benchmarks" / "orthogonalize.py"
    status, text = run(sys.executable, script, tmp_path)
    assert status == 1 and "expected a folder that 'test/gpu/run.sh build' made" in text
    (tmp_path / "cases.json").write_text(json.dumps({"dry": True, "sets": {"one": []}, "commit": "none"}))
    status, text = run(sys.executable, script, tmp_path)
    assert status == 1 and "expected a folder that was built without --dry, found one that was built with it" in text
    status, text = run(sys.executable, script, tmp_path, "--dry", "--only", "two")
    assert status == 1 and "expected a set (one), found 'two'" in text
    status, text = run(sys.executable, GPU / "build.py", "--only", "nothing", tmp_path / "out")
    assert status == 1 and "expected the name of a case, found 'nothing'" in text
