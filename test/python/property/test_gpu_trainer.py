"""examples/gpu_trainer.cpp on a driver and an NCCL that are the host: the losses are those of the CPU's
library.

Its ranks are threads here (test/devices/TrainerRanks.cpp), since the stand-in for NCCL knows no other;
test/gpu runs them as processes.
"""

import os
import re
import subprocess
import sysconfig
import time
from pathlib import Path

import pytest
from compiler import ROOT, stepc
from stub_driver import STUB

HEADERS = [
    Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "include",
    Path("/usr/local/cuda/include"),
]
HEADER = next((folder for folder in HEADERS if (folder / "cuda.h").is_file()), None)
pytestmark = [
    pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built"),
    pytest.mark.skipif(HEADER is None, reason="no cuda.h was installed"),
]
STEPS = 200


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Libraries for one and two ranks, and for a CPU, and one program for all of them."""
    folder = tmp_path_factory.mktemp("trainer")
    manifest = (ROOT / "examples" / "gpu_trainer_manifest.json").read_text()
    for name, ranks, options in (("1", 1, ["--target", "emulated"]), ("2", 2, ["--target", "emulated"]), ("cpu", 1, [])):
        (folder / name).mkdir()
        (folder / name / "m.json").write_text(manifest.replace('"size": 2', f'"size": {ranks}'))
        files = [ROOT / "examples" / "gpu_trainer.optim", "-m", folder / name / "m.json"]
        stepc("compile", *files, *options, "-o", folder / name, **({"STEPC_RUNTIME_DIR": STUB} if options else {}))
    strict = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]
    headers = [f"-I{folder / '1'}", f"-I{ROOT / 'runtime' / 'include'}", "-isystem", HEADER]
    libraries = [f"-L{folder / '1'}", "-lgpu_trainer", f"-L{STUB}", "-lstepc_nccl", "-lcuda", "-pthread"]
    # The example is complete by itself; ranks of one process come from a file that includes it.
    for source, out in (
        (ROOT / "examples" / "gpu_trainer.cpp", "alone"),
        (ROOT / "test" / "devices" / "TrainerRanks.cpp", "trainer"),
    ):
        here = [f"-I{ROOT}", f"-I{ROOT / 'examples'}"] if out == "trainer" else []
        subprocess.run(["c++", *strict, *headers, *here, source, *libraries, "-o", folder / out], check=True)
    return folder


def train(made, library, ranks, tmp_path, *options, started=None, **variables):
    """Output and errors of a run that ended well, or badly with status 1."""
    command = [made / "trainer", started or ranks, ranks, tmp_path / "meeting", "--steps", STEPS, *options]
    here = {"LD_LIBRARY_PATH": f"{made / library}:{STUB}", "STEPC_STUB_DEVICE": "cuda"}
    environment = os.environ | here | {name: str(value) for name, value in variables.items()}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=100, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.tier("all")
def test_losses_are_those_of_the_cpu(made, tmp_path):
    status, expected, error = train(made, "cpu", 1, tmp_path)
    assert status == 0, error
    losses = [float(one) for one in re.findall(r"loss (.*)", expected)]
    assert len(losses) == STEPS // 25 and losses[-1] < 0.5 * losses[0], expected
    for library, ranks in (("1", 1), ("2", 2)):
        for streams in ({}, {"STEPC_STUB_ASYNC": 3}):
            status, found, error = train(made, library, ranks, tmp_path, **streams)
            assert status == 0, error
            assert found == expected, (library, streams)
    assert not list(tmp_path.iterdir())


def test_a_library_for_another_world_is_refused(made, tmp_path):
    status, _, error = train(made, "2", 1, tmp_path)
    assert status == 1
    assert (
        "gpu_trainer: rank 0: create: rank 0: library 'gpu_trainer' is for a world of 2 ranks, the transport has 1"
        in error
    )


def test_a_file_in_the_way_is_left_alone(made, tmp_path):
    (tmp_path / "meeting").write_text("mine")
    status, _, error = train(made, "1", 1, tmp_path)
    assert status == 1 and "meeting, for ranks to meet by: File exists" in error
    assert (tmp_path / "meeting").read_text() == "mine"


def test_a_rank_that_never_comes_is_an_error(made, tmp_path):
    begin = time.monotonic()
    status, _, error = train(made, "2", 2, tmp_path, "--timeout", 1.5, started=1)
    assert status == 1 and "gpu_trainer: rank 0: meeting the other ranks: " in error
    assert time.monotonic() - begin < 30 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call", ["cuMemcpyHtoDAsync_v2:150", "cuLaunchKernel:40", "ncclReduceScatter:40", "ncclAllGather:61"]
)
def test_a_rank_that_fails_ends_the_others(made, tmp_path, call):
    begin = time.monotonic()
    status, _, error = train(
        made, "2", 2, tmp_path, "--timeout", 3, STEPC_STUB_FAILS=call, STEPC_STUB_ASYNC=1
    )
    assert status == 1 and all(f"rank {rank} ended with 1" in error for rank in range(2)), error
    assert "CUDA_ERROR_OUT_OF_MEMORY" in error or "the stub" in error, error
    assert time.monotonic() - begin < 60
