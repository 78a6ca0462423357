"""Runs a tier of the tests of the house and adds up their results.

    .venv/bin/python test/run_all.py [--list] [quick|land|all] [unit|lit|run|style|python]...

The tiers are told in test/README.md. All kinds of tests stand in one queue of pytest-xdist: test/suites holds the unit
binaries, the parts of lit and the scripts of test/run. What each kind took and the longest tests are printed behind them. The last
line is 'N passed, N failed, N skipped'.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections import Counter, defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "support"))

from tiers import TIERS  # noqa: E402

CORES = len(os.sched_getaffinity(0))
# The longest tests first, so that none of them runs at the end beside idle cores.
KINDS = {
    "unit": ["test/suites/test_unit.py"],
    "run": ["test/suites/test_scripts.py"],
    "lit": ["test/suites/test_lit.py"],
    "style": ["test/suites/test_style.py"],
    "python": ["test/python/property", "test/python"],
}
# Its tests raise at single instructions, and so wherever else Python runs code in between: alone in a
# process. Nothing runs beside it, because where a rank waits for a core its connection may end before a peer
# has read why.
ALONE = "test/python/test_signals.py"
LONGEST = 12


class Results:
    """Outcomes and processor seconds of tests, by kind."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter] = defaultdict(Counter)
        self.cpu: Counter = Counter()
        self.tests: list[tuple[float, str]] = []

    def add(self, case: xml.etree.ElementTree.Element) -> None:
        """A test of a report. A suite's test says how many cases it ran."""
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        module = case.get("classname", "")
        kind = next((name for name, paths in KINDS.items() if paths[0].removesuffix(".py").replace("/", ".") == module), "python")
        if "passed" in properties:
            for outcome in ("passed", "failed", "skipped"):
                self.outcomes[kind][outcome] += int(properties[outcome])
        else:
            below = {child.tag for child in case}
            failed = below & {"failure", "error"}
            self.outcomes[kind]["failed" if failed else "skipped" if "skipped" in below else "passed"] += 1
        seconds = float(properties.get("cpu", 0))
        self.cpu[kind] += seconds
        self.tests.append((seconds, f"{module.replace('.', '/')}.py::{case.get('name')}"))

    def fail(self, kind: str) -> None:
        self.outcomes[kind]["failed"] += 1

    def __str__(self) -> str:
        lines = [f"{'processor s':>11}  longest tests"]
        lines += [f"{seconds:11.1f}  {name}" for seconds, name in sorted(self.tests, reverse=True)[:LONGEST]]
        lines += ["", f"{'kind':8} {'passed':>7} {'failed':>7} {'skipped':>8} {'processor s':>12}"]
        for kind, counts in self.outcomes.items():
            lines.append(
                f"{kind:8} {counts['passed']:7} {counts['failed']:7} {counts['skipped']:8} {self.cpu[kind]:12.0f}"
            )
        return "\n".join(lines)

    @property
    def total(self) -> Counter:
        return sum(self.outcomes.values(), Counter())


def run_tests(options: list[str], paths: list[str], results: Results, folder: str) -> None:
    """pytest on paths; what it finds is added to the results."""
    report = pathlib.Path(folder) / f"{len(list(pathlib.Path(folder).iterdir()))}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-o", "junit_family=xunit1", f"--junitxml={report}", *options, *paths]
    print("$", " ".join(command), flush=True)
    code = subprocess.call(command, cwd=ROOT)
    if code not in (0, 1, 5) or not report.exists():  # it did not run to its end; 5: the tier has none of them
        results.fail("python")
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            results.add(case)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Runs a tier of stepc's tests. Ends with 'N passed, N failed, N skipped'.",
        epilog="Tiers: quick before each commit, land (the default) what lands, all before a release.",
    )
    parser.add_argument("chosen", nargs="*", metavar="quick|land|all|" + "|".join(KINDS), default=[],
                        help="a tier, and kinds of tests; without kinds, all of them")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the tests and their tiers, and run none")
    given = parser.parse_args()
    chosen = given.chosen
    unknown = [one for one in chosen if one not in TIERS and one not in KINDS]
    if unknown:
        parser.error(f"expected {', '.join([*TIERS, *KINDS])}, found '{unknown[0]}'")
    tiers = [one for one in chosen if one in TIERS] or [os.environ.get("STEPC_TIER", "land")]
    if len(tiers) > 1 or tiers[0] not in TIERS:
        parser.error(f"expected one of the tiers {', '.join(TIERS)}, found '{' '.join(tiers)}'")
    return argparse.Namespace(list=given.list, tier=tiers[0], kinds=[one for one in KINDS if one in chosen] or list(KINDS))


def seed(tier: str) -> str:
    """What random tests begin with. A commit has one seed in the tiers quick and land, so that what passed for it passes
    again, and other commits draw other cases. The tier all draws its seed.
    """
    drawn = random.SystemRandom().randrange(1 << 28)
    if tier == "all":
        return str(drawn)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return str(int(commit[:7], 16) if commit else drawn)


def main() -> int:
    given = arguments()
    os.environ["STEPC_TIER"] = given.tier
    paths = [path for kind in given.kinds for path in KINDS[kind]]
    if given.list:
        command = [sys.executable, "-m", "pytest", "--collect-only", "--list-tiers", "-p", "no:terminal", *paths]
        return subprocess.call(command, cwd=ROOT)
    os.environ.setdefault("STEPC_SEED", seed(given.tier))
    print(f"STEPC_SEED={os.environ['STEPC_SEED']} repeats what random tests draw", flush=True)
    start = time.monotonic()
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        beside = ["-n", str(min(CORES + 1, 8)), "--dist", "worksteal", f"--ignore={ALONE}"]
        run_tests(beside, paths, results, folder)
        if "python" in given.kinds:
            run_tests([], [ALONE], results, folder)
    total = results.total
    if not total["passed"]:
        total["failed"] += 1  # a run that tests nothing has failed
    print(f"\n{results}\n")
    if not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        print("no GPU on this machine: GPU tests need one and were not run")
    print(f"tier {given.tier}: {sum(results.cpu.values()):.0f} processor seconds in {time.monotonic() - start:.0f} s")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
