"""The package's files build on one another in one direction, also where only types are named."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "frontends" / "python"


def _imports():
    files = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        files[name] = ast.parse(path.read_text())
    return {
        name: {
            full if (full := f"{node.module}.{one.name}") in files else node.module
            for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
            for one in node.names if (node.module or "").startswith("stepc")
        } - {name}
        for name, tree in files.items()
    }  # fmt: skip


def test_no_file_needs_one_that_needs_it():
    imports = _imports()
    assert len(imports) > 20

    def needed(name):
        found, ahead = set(), list(imports[name])
        while ahead:
            one = ahead.pop()
            if one not in found:
                found.add(one)
                ahead += imports.get(one, ())
        return found

    assert [name for name in imports if name in needed(name)] == []


@pytest.mark.parametrize(("found", "text"), [("None", "none"), ("'2.9.1+cpu'", "2.9.1+cpu")])
def test_without_torch_the_package_says_which_it_needs(found, text):
    program = f"""
import sys, types
found = {found}
sys.modules["torch"] = found and types.ModuleType("torch")
if found:
    sys.modules["torch"].__version__ = found
import stepc
try:
    import stepc.torch
except ImportError as error:
    print(error.name, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, hint = done.stdout.splitlines()
    assert first == f"torch stepc.torch: expected PyTorch 2.11 or later, found {text}"
    assert hint.startswith("hint: pip install 'torch>=2.11'")


def test_pages_and_package_name_one_version_of_torch():
    from stepc.torch.needed import TORCH

    version = ".".join(map(str, TORCH))
    for page in ("README.md", "docs/install.md"):
        assert f"torch ≥ {version}" in (ROOT.parents[1] / page).read_text(), page
    assert f"torch>={version}" in (ROOT / "pyproject.toml").read_text()
