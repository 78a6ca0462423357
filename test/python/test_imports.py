"""The package's files build on one another in one direction, also where only types are named."""

import ast
from pathlib import Path

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
