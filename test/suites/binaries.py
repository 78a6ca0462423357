"""Runs a command of a suite and says how many of its cases passed, failed and were skipped."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def run(command, **variables):
    """The status and output of a command in the repository, with variables of its environment. Both are printed."""
    text = [str(part) for part in command]
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        text, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    print("$", " ".join(text) + "\n" + output)
    return done.returncode, output


def report(record_property, outcomes, status):
    """Hands a suite's outcomes (`passed`, `failed`, `skipped`) to test/run_all.py, and fails where one failed or where the
    command failed without one: a sanitizer's report, or a crash.
    """
    failed = outcomes.count("failed")
    if status != 0 and not failed:
        failed = 1
    for name, count in {
        "passed": outcomes.count("passed"), "failed": failed, "skipped": outcomes.count("skipped"),
    }.items():  # fmt: skip
        record_property(name, count)
    if failed:
        pytest.fail(f"{failed} of {len(outcomes)} cases failed, exit status {status}", pytrace=False)
