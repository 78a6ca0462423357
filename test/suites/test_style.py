"""The style of the house, where a machine can check it."""

import shutil
import sys
from pathlib import Path

import pytest
from binaries import run


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
