"""A sample of the checks under compute-sanitizer, where it is installed."""

import glob
import json
import shutil
import subprocess
import sys

from checks.machine import Check, Failed, Skipped

# racecheck takes some hundred times as long: a check of one step and few products.
SAMPLE = {"memcheck": "bits.odd.misaligned", "racecheck": "products.close", "initcheck": "bits.example.muon.aligned"}
SECONDS = 90


def program():
    found = shutil.which("compute-sanitizer") or next(
        iter(sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))), None
    )
    if found is None:
        raise Skipped("no compute-sanitizer")
    return found


def under(machine, tool, name):
    if machine.dry:
        raise Skipped("no GPU")
    command = [program(), "--tool", tool, "--error-exitcode", "99", sys.executable, "worker.py", "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=machine.folder)
    lines = [line for line in done.stdout.splitlines() if line.startswith("=========")]
    if "Device not supported" in done.stdout:
        raise Skipped("compute-sanitizer does not know this GPU or its driver")
    if done.returncode:
        found = [
            line.strip("= ") for line in lines if "Error" in line or "Invalid" in line or "hazard" in line
        ][:2]
        raise Failed(f"exit {done.returncode}: {'; '.join(found) or done.stdout[-300:] + done.stderr[-300:]}")
    result = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    if result["outcome"] != "passed":
        raise Failed(f"{name}: {result['text']}")
    return f"{name} without a finding"


def checks(machine):
    for tool, name in SAMPLE.items():
        yield Check(f"sanitizer.{tool}", SECONDS, lambda tool=tool, name=name: under(machine, tool, name))
