"""Fixtures: the fake compiler, and the real one where it has been built."""

import multiprocessing
import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Threads of torch that wait for each other sleep: there are more of them than cores, and spinning takes the
# time of others.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

# A fork server that has imported once what ranks need: starting four of them then takes no seconds.
# Optimizers and checkpoints of torch import the second row where they are first used.
multiprocessing.set_forkserver_preload([
    "torch", "torch.distributed.tensor", "stepc.torch",
    "torch._dynamo", "torch.distributed.checkpoint", "fsspec.core", "numpy.random",
])  # fmt: skip


@pytest.fixture(autouse=True)
def _interpret_most(request, monkeypatch):
    """Has a test of plans interpret most of its programs (property/compiler.py)."""
    if request.node.get_closest_marker("plans"):
        monkeypatch.setattr("compiler.about_plans", True)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Libraries that tests compile do not land in the user's cache."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # workers share what they compile
        base = base.parent
    monkeypatch.setenv("STEPC_CACHE", os.environ.get("STEPC_TEST_CACHE") or str(base / "cache"))


@pytest.fixture
def fake(monkeypatch):
    """Puts the fake compiler in the place of the real one."""
    monkeypatch.setenv("STEPC", str(HERE / "fake_library" / "fake_stepc.py"))


def real_compiler():
    """The compiler under test: $STEPC_UNDER_TEST, or the build folder's."""
    path = Path(os.environ.get("STEPC_UNDER_TEST") or ROOT / "build" / "bin" / "stepc")
    return path if path.is_file() and os.access(path, os.X_OK) else None


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """The real compiler with -O0, which takes half of the time and does not change bits; None where it
    was not built.
    """
    path = real_compiler()
    if path is None:
        return None
    folder = tmp_path_factory.mktemp("quick")
    program = folder / "bin" / "stepc"
    program.parent.mkdir()
    # its text says which compiler it is: libraries of another one are not taken from the cache
    changed = path.stat().st_mtime_ns
    program.write_text(
        f'#!/bin/sh\n# {changed}\nif [ "$1" = compile ]; then shift; set -- compile -O0 "$@"; fi\nexec "{path}" "$@"\n'
    )
    program.chmod(0o755)
    (folder / "lib").symlink_to(path.resolve().parent.parent / "lib")  # is looked for beside it
    return program


@pytest.fixture
def real(monkeypatch, quick):
    """The real compiler; tests that need it are skipped, loudly, where it was not built."""
    if quick is None:
        pytest.skip("build/bin/stepc was not built")
    monkeypatch.setenv("STEPC", str(quick))


@pytest.fixture(params=["extension", "python"])
def way(request, monkeypatch):
    """Both ways of binding: by the C++ extension, which has to be there, and from Python alone."""
    if request.param == "extension":
        from stepc.torch import extension

        if not extension.path().exists():
            pytest.skip("the PyTorch extension was not built")
    monkeypatch.setenv("STEPC_TORCH_EXTENSION", "1" if request.param == "extension" else "0")
    return request.param
