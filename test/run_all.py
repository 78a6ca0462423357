"""Runs every test of the house and adds up their results.

    .venv/bin/python test/run_all.py [unit|lit|python|run]...

Unit tests are the GoogleTest binaries in build/bin/unit, lit tests stand in test/lit, Python tests in
test/python, and run tests are the scripts test/run/*.sh (exit 0 passed, 77 skipped). Results are read from
the runners' own machine-readable reports. Within a kind, tests run beside each other, one per core.
The last line is 'N passed, N failed, N skipped'.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
CORES = len(os.sched_getaffinity(0))
LLVM_BIN = pathlib.Path("/usr/lib/llvm-22/bin")


class Tally:
    """Counts of one kind of tests."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def add(self, outcome: str) -> None:
        setattr(self, outcome, getattr(self, outcome) + 1)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command: list) -> int:
    print("$", " ".join(str(part) for part in command), flush=True)
    return subprocess.call([str(part) for part in command], cwd=ROOT)


def run_beside(commands: list[list], **variables: list) -> list[int]:
    """As `run`, one command per core, each with its own of every variable; what it prints is printed when
    it has ended.
    """

    def one(number: int, command: list) -> int:
        text = [str(part) for part in command]
        environment = os.environ | {name: str(values[number]) for name, values in variables.items()}
        done = subprocess.run(
            text, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        print("$", " ".join(text) + "\n" + done.stdout.decode(errors="replace"), end="", flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(one, range(len(commands)), commands))


# Each of them takes longer than all that are not here, and so runs in as many parts as there are cores.
LONGEST_UNITS = ("codegen-tests", "plan-tests", "products-tests")


def unit(report: pathlib.Path) -> Tally:
    tally = Tally()
    # What does not end in -tests (or a sanitizer's name after it) belongs to a run test.
    binaries = [path for path in sorted((BUILD / "bin" / "unit").glob("*-tests*"))
                if os.access(path, os.X_OK) and path.is_file()]  # fmt: skip
    counts = [CORES if binary.name in LONGEST_UNITS else 1 for binary in binaries]
    parts = [
        (binary, count, part) for binary, count in zip(binaries, counts, strict=True) for part in range(count)
    ]
    outputs = [report / f"{binary.name}-{part}.json" for binary, _, part in parts]
    codes = run_beside([[binary, "--gtest_brief=1", f"--gtest_output=json:{output}"]
                        for (binary, *_), output in zip(parts, outputs, strict=True)],
                       GTEST_TOTAL_SHARDS=[count for _, count, _ in parts], GTEST_SHARD_INDEX=[part for *_, part in parts])  # fmt: skip
    for code, output in zip(codes, outputs, strict=True):
        if not output.exists():  # crashed before it could report
            tally.add("failed")
            continue
        failures = 0
        for suite in json.loads(output.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                if case.get("failures"):
                    tally.add("failed")
                    failures += 1
                elif case.get("result") == "SKIPPED":
                    tally.add("skipped")
                elif case.get("status") == "RUN":
                    tally.add("passed")
        if code != 0 and failures == 0:  # a sanitizer, or a crash at exit
            tally.add("failed")
    return tally


def lit(report: pathlib.Path) -> Tally:
    tally = Tally()
    output = report / "lit.json"
    run([LLVM_BIN / "lit", "-sv", "--output", output, BUILD / "test" / "lit"])
    if not output.exists():
        tally.add("failed")
        return tally
    for test in json.loads(output.read_text())["tests"]:
        code = test["code"]
        if code in ("PASS", "XFAIL", "FLAKYPASS"):
            tally.add("passed")
        elif code in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            tally.add("skipped")
        else:
            tally.add("failed")
    return tally


# Its tests raise at single instructions, and so wherever else Python runs code in between: alone in a
# process. Nothing runs beside it, because where a rank waits for a core its connection may end before a peer
# has read why.
ALONE = "test/python/test_signals.py"


def python(report: pathlib.Path) -> Tally:
    tally = Tally()
    ruff = shutil.which("ruff", path=f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    tally.add("skipped" if not ruff else "failed" if run([ruff, "check", "--quiet", "."]) else "passed")
    for name, options in {
        "together": ["-n", min(CORES + 1, 8), "--dist", "worksteal", f"--ignore={ALONE}", "test/python"],
        "alone": [ALONE],
    }.items():
        output = report / f"pytest-{name}.xml"
        code = run(
            [sys.executable, "-m", "pytest", "-q", "-ra", "--durations=15", f"--junitxml={output}", *options]
        )
        if code not in (0, 1) or not output.exists():  # it did not run to its end
            tally.add("failed")
        if not output.exists():
            continue
        for case in xml.etree.ElementTree.parse(output).iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                tally.add("failed")
            elif "skipped" in kinds:
                tally.add("skipped")
            else:
                tally.add("passed")
    return tally


def scripts(report: pathlib.Path) -> Tally:
    tally = Tally()
    files = sorted((ROOT / "test" / "run").glob("*.sh"))
    for script, code in zip(files, run_beside([["bash", script] for script in files]), strict=True):
        tally.add({0: "passed", 77: "skipped"}.get(code, "failed"))
        if code not in (0, 77):
            print(f"FAILED: {script.relative_to(ROOT)} (exit {code})")
    return tally


KINDS = {"unit": unit, "lit": lit, "python": python, "run": scripts}


def main() -> int:
    chosen = sys.argv[1:] or list(KINDS)
    for name in chosen:
        if name not in KINDS:
            print(f"run_all.py: expected {', '.join(KINDS)}, found {name}", file=sys.stderr)
            return 2
    total, lines = Tally(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            start = time.monotonic()
            tally = KINDS[name](pathlib.Path(folder))
            lines.append(f"{name:8} {tally}   ({time.monotonic() - start:.0f} s)")
            total.passed += tally.passed
            total.failed += tally.failed
            total.skipped += tally.skipped
    print("\n" + "\n".join(lines))
    if not total.passed:
        total.failed += 1  # a run that tests nothing has failed
    if not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        print("no GPU on this machine: GPU tests need one and were not run")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
