"""The checks of test/gpu, which a machine with a GPU runs, on this one: libraries of `emulated`, and this CPU
in place of the device.

What the suite makes of checks that fail, hang or crash is planted.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stepc

GPU = Path(__file__).resolve().parents[1] / "gpu"
SKIPPED_HERE = {"errors.another_chip", "errors.step_for_the_gpu", "errors.foreign_stream", "errors.memory_elsewhere", "pinned.table", "ranks.cpp_example",
                "sanitizer.memcheck", "sanitizer.racecheck", "sanitizer.initcheck", "trainer.workspace", "trainer.devices"}  # fmt: skip


def suite(*arguments, script=GPU / "run.sh"):
    """Status and output of the script."""
    command = ["bash", str(script), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHON": sys.executable}
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.tier("all")
def test_dry_run(real, tmp_path):
    out, results = tmp_path / "out", tmp_path / "results"
    status, text = suite("build", "--dry", "--small", out)
    assert status == 0, text
    # The folder is complete: its own script runs it.
    status, text = suite("--dry", "--results", results, script=out / "run.sh")
    assert status == 0, text
    found = json.loads((results / "results.json").read_text())["results"]
    assert {name for name, one in found.items() if one["outcome"] != "passed"} == SKIPPED_HERE, text
    assert set(found) > {"bits.odd.misaligned", "products.repeated", "streams.default", "time.adamw", "trainer.steps", "ranks.2.gather",
                          "ranks.blocks.2", "ranks.blocks.2.moves", "ranks.model.2"}
    assert "0 failed" in (results / "results.txt").read_text().splitlines()[-1]

    # A library that computes something else is found out.
    case = out / "libraries" / "example.muon"
    spec = (case / "step.optim").read_text()
    other = spec.replace("m = lerp(m, grad, 1 - beta1)", "m = lerp(m, grad, 1.01 - beta1)")
    assert other != spec
    stepc.compile(other, case / "manifest.json", target="emulated", output=case / "device")
    status, text = suite("--dry", "--only", "bits.example.muon.*", out)
    assert status == 1, text
    assert "elements differ" in text and "2 failed" in text


PLANTED = """
import os, time
from checks.machine import Check, Failed, Skipped

def fails(): raise Failed("expected 1, found 2")
def skips(): raise Skipped("no reason")
def breaks(): return [][0]
def crashes(): os.abort()
def hangs(): time.sleep(1000)

def all_checks(machine):
    return [Check("passes", 9, lambda: "well"), Check("fails", 9, fails), Check("skips", 9, skips), Check("breaks", 9, breaks),
            Check("crashes", 9, crashes), Check("hangs", 0.4, hangs), Check("figures", 9, lambda: ("timed", {"ms": 1.5}))]
"""


@pytest.fixture
def empty(tmp_path):
    """A folder as `build` makes it, without libraries."""
    out = tmp_path / "out"
    shutil.copytree(GPU, out, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(stepc.__file__).parent, out / "python" / "stepc", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy2(GPU.parents[1] / "benchmarks" / "orthogonalize.py", out)
    (out / "cases.json").write_text(json.dumps({"commit": "none", "dry": True, "targets": {}, "cases": {}, "without_trainer": "a dry run"}))
    return out


@pytest.fixture
def planted(empty):
    """The same with other checks."""
    (empty / "checks" / "__init__.py").write_text(PLANTED)
    return empty


@pytest.mark.tier("all")
def test_what_was_not_built_is_skipped(empty):
    status, text = suite("--dry", "--only", "products.*", empty)
    assert status == 0 and "products.repeated: skipped: products.2 was not built" in text, text
    assert " 0 failed" in text.splitlines()[-1]


@pytest.mark.tier("all")
def test_no_failure_ends_the_run(planted):
    status, text = suite("--dry", planted)
    assert status == 1
    found = json.loads((planted / "results.json").read_text())["results"]
    told = {name: (one["outcome"], one["text"]) for name, one in found.items()}
    assert told["passes"] == ("passed", "well")
    assert told["fails"] == ("failed", "expected 1, found 2")
    assert told["skips"] == ("skipped", "no reason")
    assert told["breaks"] == ("failed", "IndexError: list index out of range")
    assert told["crashes"][0] == "failed" and "the process ended with status -6" in told["crashes"][1]
    # A dry run waits ten times as long.
    assert told["hangs"][0] == "failed" and "no end within 4 s" in told["hangs"][1]
    assert found["figures"]["figures"] == {"ms": 1.5}
    assert text.splitlines()[-1] == "2 passed, 4 failed, 1 skipped"


def test_without_failures_the_status_is_0(planted):
    status, text = suite("--dry", "--only", "[ps]*s", planted)
    assert status == 0 and text.splitlines()[-1] == "1 passed, 0 failed, 1 skipped", text


def test_refusals(planted, tmp_path):
    status, text = suite(tmp_path / "none")
    assert status == 2 and "expected a folder that 'run.sh build' made" in text
    status, text = suite("--dry", "--only", "nothing", planted)
    assert status == 1 and "expected the name of a check, found 'nothing'" in text
    status, text = suite(planted)
    assert (
        status == 1
        and "expected to be run as the folder was built, for a dry run, found a run without --dry" in text
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    status, text = suite("build", "--dry", tmp_path / "full")
    assert status == 1 and "expected an empty folder, or one that was built before" in text


def test_without_a_gpu_it_is_skipped(planted):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (planted / "cases.json").write_text(
        json.dumps({"commit": "none", "dry": False, "targets": {}, "cases": {}})
    )
    status, text = suite(planted)
    assert (status, text) == (0, "skipped: no GPU\n")


def test_without_pytorch_it_fails(planted):
    (planted / "torch.py").write_text("raise ImportError('planted')\n")
    status, text = suite("--dry", planted)
    assert status == 1 and "suite: expected PyTorch, found none: planted" in text
