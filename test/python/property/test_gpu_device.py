"""The code that drives a GPU, on a driver that is the host (test/devices/StubDriver.cpp).

Libraries of `emulated` are linked with the device `cuda` and that driver, which refuses what NVIDIA's would,
and what a step must not do: to allocate, to make streams and events, to wait. STEPC_SEED repeats a run.
"""

import json
import re

import numpy as np
import pytest
from cases import STEPS, random_batch
from compiler import ROOT, CompilerFailed, run, save, stepc, tensor
from stub_driver import STUB
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")

PER_BATCH = 12


@pytest.mark.parametrize("index", range(draws(1)))
def test_random_programs(tmp_path, index):
    batch = random_batch(f"{SEED}-stub-{index}", PER_BATCH)
    batch.waves = 1 + index
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    expected = run(*files, tmp_path / "cpu.safetensors", *batch.options(), steps=STEPS)
    library = compiled(tmp_path, *files[:2], *batch.options())
    # Streams that do everything at once, and streams with threads of their own, in two orders.
    for streams in ({}, {"STEPC_STUB_ASYNC": 2 * index + 1}, {"STEPC_STUB_ASYNC": 2 * index + 2}):
        found = run(*files, tmp_path / "gpu.safetensors", "--library", library, steps=STEPS, **streams)
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}, {streams}:\n" + "\n".join(wrong)


def compiled(folder, spec, manifest, *options):
    stepc("compile", spec, "-m", manifest, *options, "--target", "emulated", "-o", folder / "gpu", STEPC_RUNTIME_DIR=STUB)
    return folder / "gpu" / f"lib{spec.stem}.so"


def adamw(folder, count, size=64):
    """AdamW for `count` vectors on one rank: the files, and a library that the stub drives."""
    folder.mkdir(exist_ok=True)
    names = [f"w{i}" for i in range(count)]
    parameters = [
        {"name": name, "shape": [size], "dtype": "f32", "mesh": "one", "placements": ["R"]} for name in names
    ]
    mesh = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    generator = np.random.default_rng(3)
    tensors = {f"{what}:{name}": tensor(generator.normal(size=[size]), "f32") for name in names for what in ("param", "grad")}
    save(folder / "in.safetensors", tensors)
    files = [ROOT / "examples" / "muon.optim", folder / "m.json", folder / "in.safetensors"]
    return files, compiled(folder, *files[:2])


def test_calls_of_the_driver_do_not_grow_with_parameters(tmp_path):
    counts = {}
    for count in (2, 400):
        files, library = adamw(tmp_path / str(count), count)
        calls = tmp_path / f"calls-{count}"
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=10, STEPC_STUB_CALLS=calls)
        # The workspace is cleared between the trainer's work, too, as steps are.
        created, *steps = [int(line) for line in calls.read_text().split()]
        assert len(steps) == 10 and created < steps[0]
        # A place in the ring of staging memory that was used before is asked for its event.
        # That is three calls: no graph that a thread captures may forbid it.
        assert set(steps[:8]) == {steps[0]} and set(steps[8:]) == {steps[0] + 3}, steps
        counts[count] = steps[-1]
    assert counts[2] == counts[400] <= 22, counts


FAULTS = [
    ("cuDevicePrimaryCtxRetain:0", "entering the context failed"),
    ("cuStreamCreate:1", "making a stream failed"),
    ("cuEventCreate:4", "making an event failed"),
    ("cuModuleLoadData:0", "loading the kernels for sm_80 failed"),
    ("cuModuleGetFunction:1", "finding kernel AdamW_"),
    (
        "cuMemAlloc_v2:0",
        "a workspace of [0-9]+ bytes, aligned to 64, could not be allocated: allocating memory failed",
    ),
    ("cuCtxPushCurrent_v2:0", "entering the context failed"),
    ("cuEventSynchronize:2", "carrying out a step failed"),
    ("cuMemAlloc_v2:1", "expected memory for the tables of this rank"),
    ("cuMemAllocHost_v2:3", "expected memory for the tables of this rank"),
    ("cuMemcpyHtoDAsync_v2:0", "copying to the GPU failed"),
    ("cuMemcpyHtoDAsync_v2:1", "copying to the GPU failed"),
    ("cuLaunchKernel:0", "starting a kernel failed"),
    ("cuLaunchKernel:1", "starting a kernel failed"),
    ("cuStreamWaitEvent:0", "following the trainer's stream failed"),
    ("cuEventRecord:4", "following the trainer's stream failed"),
    ("cuEventRecord:6", "handing over failed"),
]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return adamw(tmp_path_factory.mktemp("few"), 3)


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=[fault for fault, message in FAULTS])
def test_what_the_driver_refuses_is_an_error(tmp_path, few, fault, message):
    files, library = few
    with pytest.raises(CompilerFailed) as failed:
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=2, STEPC_STUB_FAILS=fault)
    assert re.search(message, str(failed.value)), failed.value
    assert not (tmp_path / "out.safetensors").exists()


def test_code_for_another_chip_is_refused(tmp_path, few):
    files, library = few
    with pytest.raises(
        CompilerFailed, match="library 'muon' has code for sm_80, found 'stub', which is sm_75"
    ):
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=1, STEPC_STUB_CHIP=75)
    # Of one generation a later chip runs what is for an earlier one.
    run(*files, tmp_path / "out.safetensors", "--library", library, steps=1, STEPC_STUB_CHIP=86)
