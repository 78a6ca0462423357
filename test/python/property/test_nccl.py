"""The transport over NCCL, on a driver and an NCCL that are the host (test/devices/StubNccl.cpp).

Libraries of `emulated` are linked with the device `cuda` and with in-process ranks that meet by NCCL. The stand-in refuses what NCCL
would answer by waiting for ever. STEPC_SEED repeats a run.
"""

import json
import re
from collections import Counter

import numpy as np
import pytest
from compiler import ROOT, STEPC, CompilerFailed, run, save, stepc, tensor
from test_bits import differences

STUB = STEPC.parents[1] / "lib" / "stub"
pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")

STEPS = 3


class Case:
    """Some matrices and vectors on a mesh: the files, and the library that the stand-ins drive."""

    def __init__(self, folder, axes, placements, matrices, *options, spec="muon.optim"):
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        shapes = {f"w{i}": [24 + 8 * (i % 3), 16] for i in range(matrices)} | {"norm": [40]}
        mesh = {"name": "mesh", "axes": [{"name": name, "size": size} for name, size in axes.items()]}
        parameters = [
            {"name": name, "shape": shape, "dtype": "f32", "mesh": "mesh", "placements": placements} for name, shape in shapes.items()
        ]
        (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
        generator = np.random.default_rng(5)
        tensors = {f"{what}:{name}": tensor(generator.normal(size=shape), "f32") for name, shape in shapes.items() for what in ("param", "grad")}
        save(folder / "in.safetensors", tensors)
        self.files = [ROOT / "examples" / spec if isinstance(spec, str) else spec, folder / "m.json", folder / "in.safetensors"]
        built = folder / "gpu"
        stepc("compile", *self.files[:1], "-m", self.files[1], *options, "--target", "emulated", "-o", built, STEPC_RUNTIME_DIR=STUB)
        self.library = built / f"lib{self.files[0].stem}.so"

    def step(self, out="gpu.safetensors", steps=STEPS, **environment):
        return run(*self.files, self.folder / out, "--library", self.library, steps=steps, **environment)

    def step_on_cpu(self):
        return run(*self.files, self.folder / "cpu.safetensors", *self.options, steps=STEPS)

    def calls(self, **environment):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.step(STEPC_STUB_LOG=log, **environment)
        return Counter(log.read_text().split())


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("owner"), {"dp": 4}, ["S(0)"], 5)


@pytest.fixture(scope="module")
def gather(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("gather"), {"dp": 2, "tp": 2}, ["S(0)", "R"], 4, "--strategy", "*=gather")


def test_messages_give_the_bits_of_the_cpu(owner):
    assert not differences(owner.step(), owner.step_on_cpu())
    calls = owner.calls()
    assert calls["ncclSend"] > 0 and calls["ncclRecv"] == calls["ncclSend"]
    # Messages alone need no communicator but the world's.
    assert calls["ncclCommInitRankConfig"] == 4 and calls["ncclCommSplit"] == 0
    assert calls["ncclCommDestroy"] == 4


def test_gathers_among_some_ranks_have_communicators_of_their_own(gather):
    assert not differences(gather.step(), gather.step_on_cpu())
    calls = gather.calls()
    # Once on each rank: both pairs are split from the world together.
    assert calls["ncclCommSplit"] == 4 and calls["ncclCommDestroy"] == 8
    # One of all ranks to meet, one before the first step, and one in each.
    assert calls["ncclAllGather"] == 4 * (1 + 1 + STEPS) and calls["ncclSend"] == 0
