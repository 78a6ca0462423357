"""What a command takes: seconds, CPU seconds, and memory at most.

    python benchmarks/measure.py FILE COMMAND...     runs the command and writes a JSON object of them to the
        file

A child's memory at most counts what its parent had when it began. So Python code with much of it asks
`measured`, which runs this file as a small process in between.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple


class Taken(NamedTuple):
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measured(command: list, **options) -> tuple[subprocess.CompletedProcess, Taken]:
    """`subprocess.run` of a command, which may fail, with these options for what it reads and prints, and
    what it took.
    """
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "taken.json"
        between = [sys.executable, "-S", __file__, figures, *command]
        done = subprocess.run([str(part) for part in between], check=False, **options)
        taken = Taken(**json.loads(figures.read_text()))
    return done, taken


def main() -> int:
    start = time.perf_counter()
    try:
        code = subprocess.call(sys.argv[2:])
    except OSError as error:
        print(f"measure.py: {sys.argv[2]}: {error.strerror}", file=sys.stderr)
        code = 127
    seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
    Path(sys.argv[1]).write_text(json.dumps(taken._asdict()))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
