"""Libraries for NVIDIA's GPUs, as far as a machine without one can look at them.

ptxas makes the machine code (scripts/setup.sh installs it by pip). The driver is missing here, or one that
tests plant.
"""

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from compiler import ROOT, CompilerFailed, run, save, stepc, tensor
from stepc._library import Library
from stub_driver import STUB

TOOLS = Path(
    os.environ.get("STEPC_CUDA_BIN") or Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin"
)
pytestmark = pytest.mark.skipif(not (TOOLS / "ptxas").is_file(), reason="no ptxas was installed")

MANIFEST = """{"version": 1, "meshes": [{"name": "one", "axes": [{"name": "dp", "size": 1}]}], "parameters": [
  {"name": "w", "shape": [96, 64], "dtype": "bf16", "mesh": "one", "placements": ["R"]},
  {"name": "b", "shape": [96], "dtype": "f32", "mesh": "one", "placements": ["R"]}]}"""


def library(folder, chips, **variables):
    folder.mkdir(exist_ok=True)
    (folder / "m.json").write_text(MANIFEST)
    files = [ROOT / "examples" / "muon.optim", "-m", folder / "m.json"]
    stepc("compile", *files, "--target", f"cuda:{chips}", "-o", folder / "out", **variables)
    return folder / "out" / "libmuon.so"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return library(tmp_path_factory.mktemp("made"), "sm_80,sm_90a,sm_100a,sm_120")


def test_it_has_a_step_for_each_chip_and_needs_no_cuda(made, tmp_path):
    needed = subprocess.run(["readelf", "-d", made], capture_output=True, text=True, check=True).stdout
    assert "cuda" not in needed
    undefined = subprocess.run(
        ["nm", "-D", "--undefined-only", made], capture_output=True, text=True, check=True
    ).stdout
    assert "cuda" not in undefined and " cu" not in undefined
    data = made.read_bytes()
    assert len(data) < 5 << 20
    # An ELF file of machine EM_CUDA (190) per chip.
    starts = [i for i in range(len(data) - 20) if data[i : i + 4] == b"\x7fELF" and data[i + 18] == 190]
    assert len(starts) == 4
    library_of_four = Library(made)
    assert library_of_four.table.device == 1 and library_of_four.targets == ("cuda",)
    assert library_of_four.chips == ("cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120")
    again = library(tmp_path / "again", "sm_80,sm_90a,sm_100a,sm_120")
    assert again.read_bytes() == data


@pytest.mark.tier("all")
@pytest.mark.parametrize(("name", "manifest"), [("muon", "four_ranks"), ("train_gpt", "four_ranks"), ("c_trainer", "c_trainer_manifest")])
def test_examples_are_small(tmp_path, name, manifest):
    """With machine code for four chips and PTX, less than 6 MiB."""
    files = [ROOT / "examples" / f"{name}.optim", "-m", ROOT / "examples" / f"{manifest}.json"]
    stepc("compile", *files, "--target", "cuda:sm_80,sm_90a,sm_100a,sm_120,ptx", "-o", tmp_path, timeout=600)
    size = (tmp_path / f"lib{name}.so").stat().st_size
    assert 100 << 10 < size < 6 << 20


CREATE = """
import ctypes, sys
from stepc import _abi
from stepc._library import Library
table = Library(sys.argv[1]).table
device, ordinal = map(int, sys.argv[2:])
sizes = {"abi_version": _abi.ABI_VERSION, "struct_size": ctypes.sizeof(_abi.Options)}
options = _abi.Options(**sizes, device=device, device_ordinal=ordinal)
if table.world_size() > 1:  # whose messages are of the host's memory
    transports = (_abi.Transport * table.world_size())()
    for one in transports:
        one.struct_size = ctypes.sizeof(one)
    assert table.in_process_world(len(transports), transports) == _abi.OK
    options.transport = ctypes.pointer(transports[0])
error = ctypes.create_string_buffer(4096)
print(table.create(ctypes.byref(options), ctypes.byref(ctypes.c_void_p()), error, len(error)), error.value.decode())
"""


def create(path, device=1, ordinal=0, **variables):
    """What `create` says, in a process of its own, because a driver stays loaded."""
    command = [sys.executable, "-c", CREATE, str(path), str(device), str(ordinal)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def planted(folder, text):
    """A driver of that C text."""
    folder.mkdir()
    (folder / "driver.c").write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


def test_a_driver_that_is_missing_or_old_is_named(made, tmp_path):
    assert "library 'muon' is for GPUs: expected device 1, found device 0" in create(made, device=0)
    assert "14 rank 0: expected NVIDIA's driver, found no libcuda.so.1" in create(made, **planted_nothing())
    partial = planted(tmp_path / "partial", "int cuInit(unsigned flags) { return 0; }")
    assert "expected the function cuDriverGetVersion in libcuda.so.1, found none: an older driver" in create(
        made, **partial
    )
    every = re.findall(r"STEPC_LOAD\((\w+)\)", (ROOT / "runtime/devices/gpu/CudaDriver.cpp").read_text())
    text = "".join(f"int {name}() {{ return 0; }}\n" for name in every if name not in ("cuInit", "cuDriverGetVersion", "cuGetErrorName"))
    name = 'int cuGetErrorName(int e, const char **n) { *n = e == 100 ? "CUDA_ERROR_NO_DEVICE" : "?"; return 0; }\n'
    version = "int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { *v = 11080; return 0; }"
    old = planted(tmp_path / "old", text + name + version)
    assert "expected NVIDIA's driver for CUDA 12.0 or later, found 11.8" in create(made, **old)
    refuses = "int cuInit(unsigned f) { return 100; } int cuDriverGetVersion(int *v) { return 0; }"
    none = planted(tmp_path / "none", text + name + refuses)
    assert "NVIDIA's driver does not start: CUDA_ERROR_NO_DEVICE" in create(made, **none)
    silent = "int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { return 3; }"
    mute = planted(tmp_path / "mute", text + name + silent)
    assert "NVIDIA's driver tells no version: ?, no text" in create(made, **mute)
    counts = text.replace(
        "int cuDeviceGetCount() { return 0; }", "int cuDeviceGetCount(int *n) { *n = 2; return 0; }"
    )
    two = planted(tmp_path / "two", counts + name + version.replace("11080", "13000"))
    assert "expected the number of a GPU below 2, found 2" in create(made, ordinal=2, **two)


# A driver of one GPU of the chip in the environment, which refuses to load anything, and says what it was
# given.
LOADS = """
#include <stdlib.h>
#include <string.h>
int cuDriverGetVersion(int *v) { *v = 13010; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strcpy(name, "planted"); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int chip = atoi(getenv("PLANTED_CHIP"));
  *value = attribute == 75 ? chip / 10 : chip % 10;
  return 0;
}
int cuModuleLoadData(void **module, const char *image) {
  if (memcmp(image, "\\x7f" "ELF", 4) == 0) return 1;
  return strstr(image, getenv("PLANTED_PTX")) && strstr(image, ".visible .entry") ? 2 : 3;
}
int cuGetErrorName(int e, const char **n) {
  *n = e == 1 ? "GIVEN_MACHINE_CODE" : e == 2 ? "GIVEN_PTX" : "GIVEN_ANYTHING";
  return 0;
}
"""


@pytest.mark.tier("all")
def test_ptx_is_for_chips_without_machine_code(tmp_path):
    every = re.findall(r"STEPC_LOAD\((\w+)\)", (ROOT / "runtime/devices/gpu/CudaDriver.cpp").read_text())
    rest = "".join(f"int {name}() {{ return 0; }}\n" for name in every if f"{name}(" not in LOADS)
    driver = planted(tmp_path / "driver", LOADS + rest)
    plain, both = library(tmp_path / "plain", "sm_80,sm_90a"), library(tmp_path / "both", "sm_80,sm_90a,ptx")
    for chip, taken in ((80, "sm_80"), (89, "sm_80"), (90, "sm_90a")):
        for made in (plain, both):
            assert f"loading the kernels for {taken} failed: GIVEN_MACHINE_CODE" in create(
                made, PLANTED_CHIP=str(chip), **driver
            ), chip
    driver["PLANTED_PTX"] = ".target sm_90"
    for chip in (100, 121):
        found = f"found 'planted', which is sm_{chip}"
        assert f"library 'muon' has code for sm_80, sm_90a, {found}" in create(
            plain, PLANTED_CHIP=str(chip), **driver
        )
        assert "loading the kernels for sm_90 failed: GIVEN_PTX" in create(
            both, PLANTED_CHIP=str(chip), **driver
        ), chip
    refused = create(both, PLANTED_CHIP="75", **driver)
    images = "sm_80, PTX for sm_80, sm_90a, sm_90, PTX for sm_90"
    assert f"library 'muon' has code for {images}, found 'planted', which is sm_75" in refused


# Opens the library on the stand-in for the driver, and tells which step was taken.
TAKEN = """
import sys
from stepc import _abi
from stepc._device import Device
from stepc._library import Instance, Library
library = Library(sys.argv[1])
taken = Instance(library, device=Device(_abi.DEVICE_CUDA)).library
print(library.chip, taken.chip, taken.plan_hash == library.plan_hash)
"""


@pytest.mark.parametrize("order", ["sm_80,sm_90a", "sm_90a,sm_80"])
def test_an_instance_takes_the_step_for_its_gpu(tmp_path, order):
    if not STUB.is_dir():
        pytest.skip("build/lib/stub was not built")
    made = library(tmp_path, order, STEPC_RUNTIME_DIR=STUB)
    first = order.split(",")[0]
    for chip, taken in {"80": "sm_80", "86": "sm_80", "90": "sm_90a"}.items():
        done = subprocess.run([sys.executable, "-c", TAKEN, str(made)], capture_output=True, text=True, check=True,
                              env=os.environ | {"STEPC_STUB_CHIP": chip})  # fmt: skip
        assert done.stdout.split() == [f"cuda:{first}", f"cuda:{taken}", str(taken == first)]


def planted_nothing():
    """A machine with a driver is not this test's."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {}
    pytest.skip("NVIDIA's driver is installed")


def test_it_does_not_run_where_there_is_no_gpu(tmp_path):
    refusal = "expected a target that steps on this machine, cpu, emulated or interpret, found cuda"
    for layout, size in {"one": 1, "two": 2}.items():
        (tmp_path / "m.json").write_text(MANIFEST.replace('"size": 1', f'"size": {size}'))
        save(tmp_path / "in.safetensors", {f"{what}:{name}": tensor(np.ones(shape), dtype) for what in ("param", "grad")
                                           for name, shape, dtype in (("w", (96, 64), "bf16"), ("b", (96,), "f32"))})  # fmt: skip
        files = [ROOT / "examples" / "muon.optim", tmp_path / "m.json", tmp_path / "in.safetensors"]
        stepc("compile", *files[:1], "-m", files[1], "--target", "cuda:sm_80", "-o", tmp_path / layout)
        with pytest.raises(CompilerFailed, match=refusal):
            run(*files, tmp_path / "out.safetensors", "--library", tmp_path / layout / "libmuon.so", steps=1)
    # Through the C interface.
    for layout, refusal in {"one": "expected device 1, found device 0",
                            "two": "expected a transport of GPUs' memory, found one of the host's"}.items():  # fmt: skip
        assert f"library 'muon' is for GPUs: {refusal}" in create(tmp_path / layout / "libmuon.so", device=0)


def test_a_ptxas_that_is_missing_or_old_is_named(tmp_path):
    with pytest.raises(
        CompilerFailed, match="(?s)exit 3.*expected ptxas in STEPC_CUDA_BIN, found no program .*pip install"
    ) as failed:
        library(tmp_path / "none", "sm_80", STEPC_CUDA_BIN=tmp_path)
    assert "fault of stepc" not in str(failed.value)
    old = tmp_path / "ptxas"
    printings = {
        "Cuda compilation tools, release 13.0, V13.0.88": "found 13.0",
        "hello": "to tell its release, found 'hello",
    }
    for printed, found in printings.items():
        old.write_text(f"#!/bin/sh\necho '{printed}'\n")
        old.chmod(0o755)
        with pytest.raises(CompilerFailed, match=found):
            library(tmp_path / "old", "sm_80", STEPC_CUDA_BIN=tmp_path)
    old.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 'release 13.1' && exit 0\necho 'no such chip' && exit 7\n"
    )
    # What it does not take is stepc's.
    with pytest.raises(CompilerFailed, match="(?s)failed: no such chip.*this is a fault of stepc"):
        library(tmp_path / "fails", "sm_80", STEPC_CUDA_BIN=tmp_path)
