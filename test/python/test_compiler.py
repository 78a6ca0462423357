"""Which compiler the package uses, and what it says where there is none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stepc
from stepc import _command, _compile, nccl

ROOT = Path(__file__).resolve().parents[2]


def program(path, text="#!/bin/sh\necho compiler\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A source tree without a compiler, and a PATH with a folder for one."""
    monkeypatch.delenv("STEPC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(_compile, "__file__", str(tmp_path / "tree/frontends/python/stepc/_compile.py"))
    return tmp_path


def test_the_nearest_to_the_user_is_taken(tree, monkeypatch):
    built = program(tree / "tree/build/bin/stepc")
    assert stepc.find_compiler() == built
    packaged = program(tree / "tree/frontends/python/stepc/bin/stepc")
    assert stepc.find_compiler() == packaged
    on_path = program(tree / "path/stepc")
    assert stepc.find_compiler() == on_path
    named = program(tree / "named/stepc")
    monkeypatch.setenv("STEPC", str(named))
    assert stepc.find_compiler() == named
    named.unlink()
    with pytest.raises(stepc.CompilerNotFound, match="STEPC=.*expected a program, found none"):
        stepc.find_compiler()


def test_the_command_of_a_package_is_no_compiler_of_its_own(tree):
    """The cache tells builds apart by the program, and this script is the same for all of them."""
    program(tree / "path/stepc", f"#!{sys.executable}\nfrom stepc._command import main\nmain()\n")
    with pytest.raises(stepc.CompilerNotFound):
        stepc.find_compiler()
    packaged = program(tree / "tree/frontends/python/stepc/bin/stepc")
    assert stepc.find_compiler() == packaged


def test_where_there_is_none_a_line_says_what_to_do(tree, monkeypatch):
    with pytest.raises(stepc.CompilerNotFound) as found:
        stepc.find_compiler()
    text = str(found.value)
    assert "\n" not in text and "scripts/wheel.sh" in text and "STEPC" in text and "library=" in text
    with pytest.raises(SystemExit) as ended:
        _command.main()
    assert ended.value.code == f"stepc: error: {text}"


def test_the_command_becomes_the_compiler(tree):
    program(tree / "tree/frontends/python/stepc/bin/stepc", '#!/bin/sh\necho "$@"\nexit 3\n')
    file = tree / "tree/frontends/python/stepc/_compile.py"
    code = f"from stepc import _command, _compile; _compile.__file__ = {str(file)!r}; _command.main()"
    command = [sys.executable, "-c", code, "check", "a b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("check a b\n", 3), done.stderr


def test_the_transport_of_gpus_is_found_without_a_compiler(tree, monkeypatch):
    """On nodes that only load libraries, the package has it."""
    monkeypatch.setattr(nccl, "__file__", str(tree / "site/stepc/nccl.py"))
    monkeypatch.delenv("STEPC_NCCL", raising=False)
    with pytest.raises(stepc.StepcError, match="none at .*site/stepc/lib/libstepc_nccl.so: set STEPC_NCCL"):
        nccl.find_library()
    packaged = program(tree / "site/stepc/lib/libstepc_nccl.so")
    monkeypatch.setenv("STEPC", "/nonexistent")
    assert nccl.find_library() == packaged
    monkeypatch.setenv("STEPC", str(program(tree / "prefix/bin/stepc")))
    assert nccl.find_library() == packaged
    beside = program(tree / "prefix/lib/libstepc_nccl.so")
    assert nccl.find_library() == beside


@pytest.mark.skipif(not os.access(ROOT / "build/bin/stepc", os.X_OK), reason="the compiler was not built")
def test_one_version_stands_everywhere():
    printed = subprocess.check_output([ROOT / "build/bin/stepc", "--version"], text=True)
    found = re.fullmatch(r"stepc ([0-9.]+) \(LLVM [0-9.]+, commit ([0-9a-f]{12}|unknown)\)\n", printed)
    assert found and found[1] == stepc.__version__, printed
    assert f"\nversion: {stepc.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {stepc.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
