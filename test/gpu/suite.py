"""Runs all checks and timings, each with its own time limit, and prints a table.

    python3 suite.py [--dry] [--results FOLDER] [--only PART]

Checks run in a worker process, one after another. One that hangs or crashes ends its worker, and the next
begins in a new one; so does what follows a failure, since a failed kernel leaves the context of CUDA
unusable. Needs no package.
"""

import argparse
import contextlib
import fnmatch
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# All must end within 8 minutes, the start of Python included. A dry run may take as long as it likes.
TOTAL_S = 460.0
START_S = 90.0  # of a worker: importing torch from a cold disk
# A check of a dry run is slower, and other tests may run beside it.
DRY_TIMES = 10.0


class Worker:
    """A process that runs one check after another."""

    def __init__(self, dry: bool) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-u", str(FOLDER / "worker.py"), "--reply", str(writing)]
        self.log = open(FOLDER / "worker.log", "ab+")  # noqa: SIM115 - closed in stop()
        self.begin = self.log.seek(0, os.SEEK_END)
        self.process = subprocess.Popen(
            command + ["--dry"] * dry, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, pass_fds=[writing],
            start_new_session=True, cwd=FOLDER, text=True,
        )  # fmt: skip
        os.close(writing)
        self.reading = reading
        self.rest = b""

    def reply(self, limit: float) -> dict | None:
        """One line of the worker, None where it ended without; TimeoutError."""
        end = time.monotonic() + limit
        while b"\n" not in self.rest:
            if not select.select([self.reading], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(self.reading, 1 << 16)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def ask(self, name: str) -> None:
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()

    def last_words(self) -> str:
        """What it printed last."""
        self.log.seek(self.begin)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return " / ".join(line.strip() for line in lines[-3:])[-300:]

    def stop(self) -> str:
        """Ends it with all that it started; how it had ended by itself, if it had."""
        status = self.process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.reading)
        words = self.last_words()
        self.log.close()
        how = "" if status is None else f"the process ended with status {status}"
        return ": ".join(part for part in (how, words) if part)


def run(name: str, limit: float, worker: Worker | None, dry: bool) -> tuple[dict, Worker | None]:
    """The result of one check, and the worker if it can go on."""
    try:
        if worker is None:
            worker, start = Worker(dry), START_S * (DRY_TIMES if dry else 1.0)
            try:
                started = worker.reply(start)
            except TimeoutError:
                return {"outcome": "failed", "text": f"no worker within {start:.0f} s: {worker.stop()}"}, None
            if started is None:
                return {"outcome": "failed", "text": f"no worker: {worker.stop()}"}, None
        worker.ask(name)
        result = worker.reply(limit)
    except TimeoutError:
        return {"outcome": "failed", "text": f"no end within {limit:.0f} s: {worker.stop()}"}, None
    except BrokenPipeError:
        result = None
    if result is None:
        # It closed the pipe, so it is ending.
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(5.0)
        return {"outcome": "failed", "text": worker.stop() or "the process ended"}, None
    if result["outcome"] == "failed":
        worker.stop()
        worker = None
    return result, worker


def listing(dry: bool) -> dict:
    """What there is to check, in order, and on what; or why nothing is."""
    command = [sys.executable, str(FOLDER / "worker.py"), "--list"] + ["--dry"] * dry
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=START_S, cwd=FOLDER
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"suite: expected a list of checks within {START_S:.0f} s, found none")
    if done.returncode:
        sys.exit(f"suite: {done.stderr.strip()}")
    return json.loads(done.stdout)


def print_table(results: dict[str, dict]) -> str:
    width = max(map(len, results))
    lines = [f"{'check':<{width}}  outcome  seconds  what"]
    lines += [
        f"{name:<{width}}  {one['outcome']:<7}  {one['seconds']:7.1f}  {one['text']}"
        for name, one in results.items()
    ]
    counts = [
        f"{sum(one['outcome'] == what for one in results.values())} {what}"
        for what in ("passed", "failed", "skipped")
    ]
    return "\n".join([*lines, ", ".join(counts)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dry", action="store_true", help="the same checks on this CPU, with libraries of emulated"
    )
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of results.json and results.txt")
    parser.add_argument("--only", default="*", help="a pattern of the checks' names")
    options = parser.parse_args()
    begun = time.monotonic()
    times = DRY_TIMES if options.dry else 1.0
    found = listing(options.dry)
    if found["skipped"]:
        print(f"skipped: {found['skipped']}")
        return 0
    about = {
        key: value
        for key, value in json.loads((FOLDER / "cases.json").read_text()).items()
        if key in ("commit", "dry", "targets", "without_trainer")
    }
    about |= {"machine": found["machine"]}
    print(json.dumps(about), flush=True)
    chosen = [one for one in found["checks"] if fnmatch.fnmatch(one["name"], options.only)]
    if not chosen:
        sys.exit(f"suite: expected the name of a check, found '{options.only}'")
    (FOLDER / "worker.log").unlink(missing_ok=True)
    results: dict[str, dict] = {}
    worker = None
    for number, check in enumerate(chosen, 1):
        left = math.inf if options.dry else TOTAL_S - (time.monotonic() - begun)
        start = time.monotonic()
        if left < 5.0:
            result = {"outcome": "failed", "text": f"not run: {TOTAL_S:.0f} s were over"}
        else:
            result, worker = run(check["name"], min(check["seconds"] * times, left), worker, options.dry)
        result["seconds"] = time.monotonic() - start
        results[check["name"]] = result
        print(f"[{number}/{len(chosen)}] {check['name']}: {result['outcome']}: {result['text']}", flush=True)
    if worker is not None:
        worker.stop()
    table = print_table(results)
    print("\n" + table)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "results.json").write_text(json.dumps(about | {"results": results}, indent=1))
    (options.results / "results.txt").write_text(f"{json.dumps(about)}\n\n{table}\n")
    return 1 if any(one["outcome"] == "failed" for one in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
