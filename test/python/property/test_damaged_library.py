"""A library whose plan or whose code for GPUs was damaged is refused where it is opened, by each that
opens it.
"""

import ctypes
import re
import subprocess

import numpy as np
import pytest
from compiler import ROOT, STEPC, save, stepc, tensor
from stepc._library import Library
from stepc.errors import PlanError
from test_cuda_library import TOOLS, create, library

MANIFEST = ROOT / "test" / "inputs" / "two_ranks.json"
TEXT = "the library is damaged: expected its plan with hash"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    stepc("compile", ROOT / "examples" / "muon.optim", "-m", MANIFEST, "-o", folder)
    return folder / "libmuon.so"


def flipped(path, folder, at, name="damaged.so"):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    (folder / name).write_bytes(data)
    return folder / name


def plan_of(path):
    """Where the plan begins in the file, and its length."""
    table = Library(path).table
    plan = ctypes.string_at(table.plan, table.plan_bytes)
    data = path.read_bytes()
    assert data.count(plan) == 1
    return data.index(plan), len(plan)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
def test_python_and_the_driver_refuse_it(whole, tmp_path, part):
    begin, size = plan_of(whole)
    damaged = flipped(whole, tmp_path, begin + round(part * (size - 1)))
    with pytest.raises(PlanError, match=TEXT) as refused:
        Library(damaged)
    assert str(damaged) in str(refused.value) and refused.value.status == 5
    values = np.linspace(-1, 1, 32)
    shapes = {"w1": (8, 4), "w2": (4, 8)}
    tensors = {f"{kind}:{name}": tensor(values.reshape(shape), "f32") for name, shape in shapes.items() for kind in ("param", "grad")}
    save(tmp_path / "in.safetensors", tensors)
    run = [STEPC, "run", ROOT / "examples" / "muon.optim", "-m", MANIFEST, "--tensors", tmp_path / "in.safetensors"]
    run += ["-o", tmp_path / "out.safetensors", "--library"]
    subprocess.run([*run, whole], check=True)
    for more in ([], ["--target", "cpu"]):
        done = subprocess.run([*run, damaged, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and TEXT in done.stderr, done
        assert str(damaged) in done.stderr and "Traceback" not in done.stderr and "fault of stepc" not in done.stderr


@pytest.mark.skipif(not (TOOLS / "ptxas").is_file(), reason="no ptxas was installed")
def test_a_gpu_gets_no_damaged_code(tmp_path):
    """The driver would take what it gets for machine code."""
    made = library(tmp_path / "made", "sm_80,sm_90a")
    data = made.read_bytes()
    images = [i for i in range(len(data) - 20) if data[i : i + 4] == b"\x7fELF" and data[i + 18] == 190]
    assert len(images) == 2
    stub = stub_driver(tmp_path / "stub")
    assert "damaged" not in create(made, **stub)
    wrong = "14 rank 0: library 'muon' is damaged: expected its code for sm_80 as the compiler wrote it, found other bytes; compile"
    assert wrong in create(flipped(made, tmp_path, images[0] + 1000), **stub)
    # The other chip's is not looked at: nobody runs it here.
    assert "damaged" not in create(flipped(made, tmp_path, images[1] + 1000), **stub)


def stub_driver(folder):
    """A driver with one GPU, an sm_80, whose modules are whatever it gets."""
    folder.mkdir()
    names = re.findall(r"STEPC_LOAD\((\w+)\)", (ROOT / "runtime/devices/gpu/CudaDriver.cpp").read_text())
    own = {
        "cuInit": "int cuInit(unsigned f) { return 0; }",
        "cuDriverGetVersion": "int cuDriverGetVersion(int *v) { *v = 13000; return 0; }",
        "cuDeviceGetCount": "int cuDeviceGetCount(int *n) { *n = 1; return 0; }",
        "cuDeviceGetAttribute": "int cuDeviceGetAttribute(int *v, int which, int d) { *v = which == 75 ? 8 : 0; return 0; }",
        "cuGetErrorName": 'int cuGetErrorName(int e, const char **n) { *n = "A"; return 0; }',
        # Where loading begins, the test has seen enough.
        "cuModuleLoadData": "int cuModuleLoadData(void **m, const void *image) { return 7; }",
    }
    text = "\n".join(own.get(name, f"int {name}() {{ return 0; }}") for name in {*names, *own})
    (folder / "driver.c").write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}
