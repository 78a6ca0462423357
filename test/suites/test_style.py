"""The style of the house, where a machine can check it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from binaries import ROOT, run

#: The product's sources. README.md and docs are prose with tables.
SUFFIXES = {".c", ".cpp", ".h", ".td", ".py", ".txt"}
#: A comment, or a line of a description or docstring, that begins without a subject.
OPENING = re.compile(
    r'^\s*(///?<?|/?\*+|#|""")? ?(Of|Those|The same|That of|Likewise)\b'
    r"|\S\s+(///?<?|#) (Of|Those|The same|That of|Likewise)\b"
)


@pytest.mark.tier("quick")
def test_ruff():
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if not ruff:
        pytest.skip("ruff is not installed")
    status, output = run([ruff, "check", "--quiet", "."])
    assert status == 0, output


@pytest.mark.tier("quick")
def test_sentences():
    """No sentence of README.md or of docs/ has more words than a reader holds in mind."""
    status, output = run([sys.executable, "test/sentences.py"])
    assert status == 0, output


def product_lines():
    """Where each line of the product's sources stands ("runtime/plan/Plan.h:12"), and the line."""
    rooms = ("dialects", "passes", "runtime", "frontends", "tools")
    listed = subprocess.run(["git", "ls-files", *rooms], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in SUFFIXES and path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield f"{name}:{number}", line


@pytest.mark.tier("quick")
def test_comments_have_a_subject():
    found = [place for place, line in product_lines() if OPENING.search(line)]
    assert len(found) <= 20, "expected plain sentences (CONTRIBUTING.md, Words), found\n" + "\n".join(found)


@pytest.mark.tier("quick")
def test_lines_end_at_110_columns():
    found = [place for place, line in product_lines() if len(line) > 110]
    assert not found, "expected lines of at most 110 columns, found\n" + "\n".join(found)
