"""Definitions that import other files: what is compiled, cached, hashed and reported."""

import os
import random
import re

import pytest
import torch
from models import Model

import stepc
from stepc._inputs import Inputs, definition_hash, imported_paths, read_spec
from stepc.errors import CompileError
from stepc.torch import Optimizer

MAIN = """import "../shared/twice.optim"
import "stepc/linalg.optim"

optimizer Sgd(lr) {
  param = param - lr * twice(grad)
}

route {
  Sgd(lr = 0.5) for rest
}
"""
TWICE = 'import "deep/scale.optim"\n\ndef twice(x) = scale(x, 2)\n'
SCALE = "def scale(x, factor) = factor * x\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "main").mkdir()
    (tmp_path / "shared" / "deep").mkdir(parents=True)
    (tmp_path / "main" / "sgd.optim").write_text(MAIN)
    (tmp_path / "shared" / "twice.optim").write_text(TWICE)
    (tmp_path / "shared" / "deep" / "scale.optim").write_text(SCALE)
    return tmp_path


def manifest():
    return {
        "version": 1,
        "meshes": [{"name": "one", "axes": [{"name": "dp", "size": 1}]}],
        "parameters": [{"name": "w", "shape": [4, 4], "dtype": "f32", "mesh": "one", "placements": ["R"]}],
    }


def test_imports_are_read_from_where_they_are(files):
    found = read_spec(files / "main" / "sgd.optim")
    assert found.imports == (("../shared/deep/scale.optim", SCALE), ("../shared/twice.optim", TWICE))
    assert stepc.compile(files / "main" / "sgd.optim", manifest()).library.is_file()


def test_a_change_of_an_import_makes_another_library(files):
    path = files / "main" / "sgd.optim"
    before, hashed = stepc.compile(path, manifest()), definition_hash(path, [])
    assert stepc.compile(path, manifest()).library == before.library
    assert definition_hash(path, []) == hashed
    (files / "shared" / "deep" / "scale.optim").write_text("def scale(x, factor) = factor * x * 3\n")
    assert stepc.compile(path, manifest()).library != before.library
    assert definition_hash(path, []) != hashed  # ranks with different imports are refused by it


def test_errors_name_the_users_files(files):
    path = files / "main" / "sgd.optim"
    (files / "shared" / "deep" / "scale.optim").write_text("def scale(x, factor) = factor @ x\n")
    with pytest.raises(CompileError) as caught:
        stepc.compile(path, manifest())
    text = str(caught.value)
    place = re.escape(str(files / "shared" / "deep" / "scale.optim"))
    assert re.search(rf"^{place}:1:24: error: expected a matrix as a factor of '@'", text, re.M), text
    assert re.search(rf"^{re.escape(str(files / 'shared' / 'twice.optim'))}:3:16: note: in this call", text, re.M)
    assert re.search(rf"^{re.escape(str(path))}:5:24: note: in this call", text, re.M)

    (files / "shared" / "deep" / "scale.optim").unlink()
    with pytest.raises(CompileError, match="cannot import") as caught:
        stepc.compile(path, manifest())
    assert str(files / "shared" / "deep" / "scale.optim") in str(caught.value)
    assert "stepc-" not in str(caught.value)


def test_an_import_that_is_no_text_is_refused(files):
    (files / "shared" / "twice.optim").write_bytes(b"\xff\xfe")
    with pytest.raises(CompileError, match="twice.optim: expected a specification in UTF-8"):
        stepc.compile(files / "main" / "sgd.optim", manifest())


def test_a_text_imports_from_the_library_alone(files):
    text = MAIN.replace('import "../shared/twice.optim"\n', "").replace("twice(grad)", "fine(grad, identity(cols))")
    assert stepc.compile(text, manifest()).library.is_file()
    with pytest.raises(CompileError, match=r"<specification>: expected imports of stepc's library.*'\.\./shared"):
        stepc.compile(MAIN, manifest())


def test_trainers_take_definitions_with_imports(files):
    model = Model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = Optimizer(model.named_parameters(), files / "main" / "sgd.optim")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), before[name] - 1)


def test_imports_are_found_as_the_compiler_finds_them(files):
    """On random texts of the words that an import has: what Python does not see, the compiler must not read."""
    seed = int(os.environ.get("STEPC_SEED") or random.SystemRandom().randrange(10**9))
    draw = random.Random(seed)
    pieces = ["import", '"a.optim"', '"b/c.optim"', "\n", "\n", " ", "\t", "// import\n", 'let x = "d"', "}", "def f(x) = x\n", "\r\n", '"', "\\"]
    reads = 0
    for _ in range(300):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 14)))
        (files / "main" / "t.optim").write_text(text + "\noptimizer T(lr) {\n  param = param - lr * grad\n}\n", newline="")
        with pytest.raises(CompileError) as caught:  # no file is there, and there is no route
            stepc.check(files / "main" / "t.optim", manifest())
        read = set(re.findall(r"cannot import '([^']*)'", str(caught.value)))
        seen = {str(files / "main" / path) for path in imported_paths(text)}
        assert read <= seen, (seed, text, read)
        reads += len(read)
    assert reads


def test_copies_stay_in_their_folder(files, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    arguments = Inputs(files / "main" / "sgd.optim", manifest()).write(folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.optim")} == {
        "inputs/sgd.optim", "shared/twice.optim", "shared/deep/scale.optim"
    }  # fmt: skip
    assert arguments[0] == str(folder / "inputs" / "sgd.optim")
