"""A library that was damaged is refused where it is opened, by each that opens it."""

import ctypes
import re
import struct
import subprocess

import numpy as np
import pytest
from compiler import ROOT, STEPC, save, stepc, tensor
from stepc._library import Library
from stepc.errors import PlanError
from test_cuda_library import TOOLS, create, library

MANIFEST = ROOT / "test" / "inputs" / "two_ranks.json"
FILE = "the library is damaged: expected checksum [0-9a-f]{8}, as the compiler wrote it, found [0-9a-f]{8}; compile the library again"
TEXT = "the library is damaged: expected its plan with hash"
SEAL = 32  # bytes behind the library's last section


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    stepc("compile", ROOT / "examples" / "muon.optim", "-m", MANIFEST, "-o", folder)
    return folder / "libmuon.so"


def flipped(path, folder, at, name="damaged.so", sealed=True):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    if not sealed:
        del data[-SEAL:]
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
    """A damaged plan, by the file's checksum, and without one by the plan's own."""
    begin, size = plan_of(whole)
    for sealed in (True, False):
        damaged = flipped(whole, tmp_path, begin + round(part * (size - 1)), sealed=sealed)
        refused_by_both(whole, damaged, tmp_path, FILE if sealed else TEXT)


@pytest.mark.parametrize("where", ["header", "dynsym", "dynstr", "gnu.hash", "rela.dyn", "dynamic", "text", "end"])
def test_a_flip_anywhere_is_refused(whole, tmp_path, where):
    """Before the system's loader believes it."""
    data = whole.read_bytes()
    place = {"header": 40, "end": len(data) - 7}.get(where) or section(data, where) + 5
    refused_by_both(whole, flipped(whole, tmp_path, place), tmp_path, FILE)


@pytest.mark.parametrize("part", [0, 3, 63, 1000, 4096, 100_000, -4000, -33])
def test_half_a_file_is_refused(whole, tmp_path, part):
    data = whole.read_bytes()
    (tmp_path / "cut.so").write_bytes(data[:part])
    wrong = "expected an ELF file, found |expected its .* within the file, up to byte [0-9]+, found [0-9]+ bytes; the library is truncated"
    refused_by_both(whole, tmp_path / "cut.so", tmp_path, wrong)


def test_what_follows_the_sections_is_a_checksum_or_nothing(whole, tmp_path):
    data = whole.read_bytes()
    for name, tail, wrong in (
        ("part", data[-SEAL:-7], "expected a checksum behind its sections, or nothing, found 25 other bytes"),
        ("more", data[-SEAL:] + b"x", "expected a checksum behind its sections, or nothing, found 33 other bytes"),
        ("twice", data[-SEAL:] * 2, "expected [0-9]+ bytes, found [0-9]+ before its checksum"),
    ):
        (tmp_path / name).write_bytes(data[:-SEAL] + tail)
        refused_by_both(whole, tmp_path / name, tmp_path, wrong)
    # A tool such as strip drops the checksum; the rest is whole.
    (tmp_path / "stripped.so").write_bytes(data[:-SEAL])
    assert Library(tmp_path / "stripped.so").plan_hash == Library(whole).plan_hash
    (tmp_path / "other.so").write_bytes(data[:18] + b"\xb7" + data[19:-SEAL])
    refused_by_both(whole, tmp_path / "other.so", tmp_path, "expected a shared library for x86-64, found another file")


def section(data, name):
    """Where a section of an ELF file begins."""
    table, size, count, names = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58))
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    begin = headers[names][4]
    return next(h[4] for h in headers if data[begin + h[0] :].startswith(f".{name}\0".encode()))


def refused_by_both(whole, damaged, tmp_path, wrong):
    with pytest.raises(PlanError, match=wrong) as refused:
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
        assert done.returncode == 1 and re.search(wrong, done.stderr), done
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
    assert wrong in create(flipped(made, tmp_path, images[0] + 1000, sealed=False), **stub)
    # The other chip's is not looked at: nobody runs it here.
    assert "damaged" not in create(flipped(made, tmp_path, images[1] + 1000, sealed=False), **stub)


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
