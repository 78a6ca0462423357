"""The transport over NCCL, on a driver and an NCCL that are the host (test/devices/StubNccl.cpp).

Libraries of `emulated` are linked with the device `cuda` and with in-process ranks that meet by NCCL. The
stand-in refuses what NCCL would answer by waiting for ever. STEPC_SEED repeats a run.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from compiler import ROOT, STEPC, load, run, save, stepc, tensor
from stub_driver import STUB
from test_bits import differences

pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")

STEPS = 3


class Case:
    """Some matrices and vectors on a mesh: the files, and the library that the stand-ins drive."""

    def __init__(self, folder, axes, placements, matrices, *options, spec="muon.optim", on_rows=False):
        """With `on_rows` matrices stand in turns on the first two ranks and on the last two; only the vector is on the whole mesh."""
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        shapes = {f"w{i}": [24 + 8 * (i % 3), 16] for i in range(matrices)} | {"norm": [40]}
        mesh = {"name": "mesh", "axes": [{"name": name, "size": size} for name, size in axes.items()]}
        parameters = [
            {"name": name, "shape": shape, "dtype": "f32", "mesh": "mesh", "placements": placements}
            for name, shape in shapes.items()
        ]
        meshes = [mesh]
        if on_rows:
            meshes += [{"name": f"row{i}", "axes": [{"name": "b", "size": 2}], "ranks": [2 * i, 2 * i + 1]} for i in (0, 1)]
            for i in range(matrices):
                parameters[i] |= {"mesh": f"row{i % 2}", "placements": ["S(0)"]}
        (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": parameters}))
        generator = np.random.default_rng(5)
        whats = [f"{what}:{name}" for name in shapes for what in ("param", "grad")]
        tensors = {what: tensor(generator.normal(size=shapes[what.split(":")[1]]), "f32") for what in whats}
        save(folder / "in.safetensors", tensors)
        self.files = [ROOT / "examples" / spec if isinstance(spec, str) else spec, folder / "m.json", folder / "in.safetensors"]
        built = folder / "gpu"
        stepc("compile", *self.files[:1], "-m", self.files[1], *options, "--target", "emulated", "-o", built, STEPC_RUNTIME_DIR=STUB)
        self.library = built / f"lib{self.files[0].stem}.so"

    def step(self, out="gpu.safetensors", steps=STEPS, **environment):
        return run(*self.files, self.folder / out, "--library", self.library, steps=steps, **environment)

    def step_on_cpu(self):
        return run(*self.files, self.folder / "cpu.safetensors", *self.options, steps=STEPS)

    def calls(self, **options):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.step(STEPC_STUB_LOG=log, **options)
        return Counter(log.read_text().split())

    def ranks(self, ways, *file, timeout=1.5, **environment):
        """Each rank in a thread of Python, with an instance of its own: what it came to."""
        return on_ranks("nccl_ranks.py", self.library, STUB, json.dumps(ways), timeout, *file, **environment)


def on_ranks(script, *arguments, **environment):
    """What a script with ranks prints."""
    command = [sys.executable, Path(__file__).with_name(script), *map(str, arguments)]
    variables = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("owner"), {"dp": 4}, ["S(0)"], 5)


@pytest.fixture(scope="module")
def gather(tmp_path_factory):
    return Case(
        tmp_path_factory.mktemp("gather"), {"dp": 2, "tp": 2}, ["S(0)", "R"], 4, "--strategy", "*=gather"
    )


# Streams that do all at once, and streams that do it later, in two orders.
STREAMS = [{}, {"STEPC_STUB_ASYNC": 1}, {"STEPC_STUB_ASYNC": 2}]


@pytest.mark.parametrize("streams", STREAMS)
def test_messages_give_the_bits_of_the_cpu(owner, streams):
    assert not differences(owner.step(**streams), owner.step_on_cpu())
    calls = owner.calls()
    assert calls["ncclSend"] > 0 and calls["ncclRecv"] == calls["ncclSend"]
    # Messages alone need no communicator but the world's.
    assert calls["ncclCommInitRankConfig"] == 4 and calls["ncclCommSplit"] == 0
    assert calls["ncclCommDestroy"] == 4


@pytest.mark.parametrize("streams", STREAMS)
def test_gathers_among_some_ranks_have_communicators_of_their_own(gather, streams):
    assert not differences(gather.step(**streams), gather.step_on_cpu())
    calls = gather.calls()
    # Once on each rank: both pairs are split from the world together.
    assert calls["ncclCommSplit"] == 4 and calls["ncclCommDestroy"] == 8
    # One of all ranks to meet, one before the first step, and one in each; and one before the first step and
    # in it by which ranks compare their numbers.
    assert calls["ncclAllGather"] == 4 * (1 + 1 + STEPS + 2) and calls["ncclSend"] == 0


def test_calls_of_a_step_do_not_grow_with_parameters(tmp_path):
    """Of the driver and of NCCL, each rank's."""

    def per_step(case):
        few, many = (case.calls(steps=steps) for steps in (9, 17))
        counts = {name: (many[name] - few[name]) / 8 / 4 for name in many if many[name] > few[name]}
        # A step that is waited for asks for its end as often as it takes, the driver and itself. Whose memory
        # a gradient is in is asked when another is bound.
        others = ("cuEventQuery", "cuPointerGetAttributes")
        return {name: count for name, count in counts.items() if name not in others and "Ctx" not in name}

    few, many = (
        Case(tmp_path / str(matrices), {"dp": 4}, ["S(0)"], matrices, "--strategy", "*=owner")
        for matrices in (20, 60)
    )
    counts, more = per_step(few), per_step(many)
    assert counts == more
    assert counts["ncclGroupStart"] == counts["ncclGroupEnd"] == 2
    # To and from each of three peers, there and back; a mark on each side of an exchange.
    assert counts["ncclSend"] == counts["ncclRecv"] <= 2 * 3
    assert counts["cuMemcpyDtoHAsync_v2"] == 2 * 2
    assert sum(counts.values()) - counts["cuLaunchKernel"] < 50, counts


def test_absent_gradients_are_agreed_on_through_the_host(tmp_path):
    spec = tmp_path / "skipping.optim"
    muon = (ROOT / "examples" / "muon.optim").read_text()
    spec.write_text(muon.replace("lr = 0.02", "lr = 0.02, missing_grad = skip"))
    case = Case(tmp_path / "case", {"dp": 4}, ["S(0)"], 2, spec=spec)
    tensors = load(case.files[2])
    save(case.files[2], tensors | {"grad:w1@2": tensors.pop("grad:w1")})
    assert not differences(case.step(), case.step_on_cpu())
    # To meet, before the first step, and in each; what is allocated for it is there when a step begins.
    calls, more = case.calls(), case.calls(steps=2 * STEPS)
    assert calls["ncclAllGather"] == 4 * (1 + 1 + STEPS)
    assert more["ncclAllGather"] == 4 * (1 + 1 + 2 * STEPS)
    assert all(
        calls[name] == more[name] > 0 for name in ("cuMemAlloc_v2", "cuMemAllocHost_v2", "cuEventCreate")
    )


LATE = "was not done within 3 seconds: a peer is late, or gone|no answer within 1.5 seconds"
GONE = "remote process exited or there was a network error"
# What some rank says; all others wait for it, and say so.
FAULTS = [
    ({"STEPC_STUB_FAILS": "ncclCommInitRankConfig:1"}, "NCCL's ncclCommInitRankConfig failed: .*ncclCommInitRankConfig: the stub"),
    ({"STEPC_STUB_FAILS": "ncclGroupStart:0"}, "comparing libraries when the ranks met: NCCL's ncclGroupStart failed"),
    ({"STEPC_STUB_FAILS": "ncclAllGather:2"}, "comparing libraries when the ranks met: NCCL's ncclAllGather failed"),
    ({"STEPC_STUB_FAILS": "ncclGroupEnd:1"}, "comparing libraries when the ranks met: NCCL's ncclGroupEnd failed"),
    ({"STEPC_STUB_FAILS": "cuMemcpyDtoHAsync_v2:0"}, "comparing libraries when the ranks met: copying messages from the GPU failed"),
    ({"STEPC_STUB_FAILS": "ncclSend:1"}, "exchange 0 of group .*: NCCL's ncclSend failed"),
    # After four to meet, and two times four by which ranks compare their numbers, of which one rank may be
    # late.
    ({"STEPC_STUB_FAILS": "cuMemcpyDtoHAsync_v2:26"}, "copying from the GPU failed"),
    # Of a rank: one group to meet, three before the first step, three in it, then two in each.
    ({"STEPC_STUB_NCCL_ASYNC": "2:5"}, f"rank 2: exchange 0 of group .*{GONE}"),
    ({"STEPC_STUB_NCCL_ASYNC": "2:6"}, f"rank 2: exchange 1 of group .*{GONE}"),
    ({"STEPC_STUB_NCCL_MISSING": "1:0"}, f"rank 0: comparing libraries when the ranks met: .*({LATE})"),
    # It takes part in the next exchange, and its peers in this: sizes that differ, or nobody who comes.
    ({"STEPC_STUB_NCCL_MISSING": "1:2"}, f"exchange [01] of group .*(NCCL failed: |{LATE})"),
    ({"STEPC_STUB_NCCL_MISSING": "3:5"}, f"exchange [01] of group .*(NCCL failed: |{LATE}).*half stepped"),
]


@pytest.mark.parametrize(
    ("fault", "message"), FAULTS, ids=["=".join(map(str, *fault.items())) for fault, message in FAULTS]
)
def test_what_nccl_refuses_is_an_error_on_all_ranks(owner, fault, message):
    found = owner.ranks({}, **fault)
    texts = [one["error"] or "" for one in found]
    assert any(re.search(message, text) for text in texts), texts
    assert sum(bool(re.search(f"{LATE}|{message}", text)) for text in texts) >= 3, texts
    assert max(one["seconds"] + one["closing"] for one in found) < 15, found


def test_an_old_nccl_is_refused_by_its_version(owner):
    errors = [one["error"] for one in owner.ranks({}, STEPC_STUB_NCCL_VERSION=22605)]
    assert errors[0] == "expected NCCL 2.27.3 or later, found 2.26.5"
    assert set(errors[1:]) == {"rank 0 has no NCCL: expected NCCL 2.27.3 or later, found 2.26.5"}


HALF = "no answer within 1.5 seconds; [0-9]+ parameters? or (their|its) states may be half stepped"


@pytest.mark.parametrize("streams", STREAMS[:2])
@pytest.mark.parametrize("way", ["absent", "late"])
def test_a_peer_that_does_not_come_in_time_is_an_error_on_every_other_rank(owner, way, streams):
    found = owner.ranks({"2": way}, **streams)
    for rank, one in enumerate(found):
        if rank != 2 or way == "late":
            # On a busy machine a rank may first hear that a rank, maybe itself, gave up.
            assert re.search(f"^rank {rank}: (rank [0-9] aborted: )?exchange 0 of group .*{HALF}", one["error"]), one
        assert one["seconds"] < 10 and one["closing"] < 10
        # The step that failed does not count.
        assert set(one["counts"]) == {1}, one


@pytest.mark.parametrize("streams", STREAMS[:2])
def test_polling_never_waits_for_peers(owner, streams):
    assert {one["error"] for one in owner.ranks({str(rank): "polls" for rank in range(4)}, **streams)} == {
        None
    }
    found = owner.ranks({"1": "absent"} | {str(rank): "polls" for rank in (0, 2, 3)}, **streams)
    assert found[1]["error"] is None
    assert all(re.search(HALF, found[rank]["error"]) for rank in (0, 2, 3))


@pytest.mark.parametrize("streams", STREAMS[:2])
def test_a_rank_with_other_step_counts_is_named_before_anything_is_written(owner, streams):
    for one in owner.ranks({"2": "parts"}, **streams):
        assert re.search("5 steps taken of 'w0' and [0-9]+ more on rank 2, and 0 on rank 0", one["error"]) or re.search(
            "0 steps taken of 'w0' and [0-9]+ more on rank 0, and 5 on rank 2", one["error"]), one  # fmt: skip
        assert "no parameter or state was changed" in one["error"], one
        assert set(one["counts"]) in ({0}, {5}), one


LATER = {"rate": r"lr = 0\.0[24] of '\w+'( and \d+ more)? on rank (2, and 0\.02 on rank [013]|[013], and 0\.04 on rank 2)",
         "counts": r"(4 steps|1 step) taken of '\w+' on rank (2, and 1 on rank [013]|[013], and 4 on rank 2)"}  # fmt: skip


@pytest.mark.parametrize("streams", [{"STEPC_STUB_ASYNC": 2}, {}])
@pytest.mark.parametrize("what", LATER)
@pytest.mark.parametrize("mode", ["", "polls", "graph", "device", "device+graph", "replays"])
def test_ranks_that_part_after_the_first_step_are_named(owner, mode, what, streams):
    """Numbers of the host and of the device: kernels compare what messages bring, and tell all of it, or that a peer gave up."""
    ways = {str(rank): "+".join([mode, what] if rank == 2 else [mode]) for rank in range(4)}
    errors = [one["error"] for one in owner.ranks(ways, **streams)]
    assert all(errors), errors
    named = [error for error in errors if "expected equal hyperparameters and step counts" in error]
    assert named and all(re.search(LATER[what], error) for error in named), errors
    assert all("exchange 0 of group" in error for error in named), errors


def test_messages_on_streams_speak_of_all_meshes_that_their_ranks_share(tmp_path):
    """One rank has another rate for a vector that never travels: a message of matrices on its row says so."""
    case = Case(tmp_path / "rows", {"a": 2, "b": 2}, ["R", "R"], 4, on_rows=True)
    assert {one["error"] for one in case.ranks({})} == {None}
    errors = [one["error"] for one in case.ranks({"3": "last rate"})]
    assert errors[:2] == [None, None], errors
    for error in errors[2:]:
        assert re.search(r"lr = (3e-04|6e-04|0\.0003|0\.0006) of 'norm' on rank [23], and ", error), errors


@pytest.mark.parametrize("mode", ["device", "device+graph"])
def test_ranks_with_equal_numbers_in_the_device_step(owner, mode):
    found = owner.ranks({str(rank): mode for rank in range(4)})
    assert [one["error"] for one in found] == [None] * 4, found
    assert [one["counts"][0] for one in found] == [2] * 4, found


def test_ranks_meet_by_a_file(tmp_path, owner):
    meeting = tmp_path / "id"
    assert {one["error"] for one in owner.ranks({}, meeting)} == {None}
    assert list(tmp_path.iterdir()) == []


def test_steps_ahead_of_a_peer_that_does_not_come_end(owner):
    ahead = {str(rank): "ahead" for rank in range(4)}
    assert [one["counts"][0] for one in owner.ranks(ahead, STEPC_STUB_ASYNC=5)] == [21] * 4
    found = owner.ranks(ahead | {"3": "absent"}, STEPC_STUB_ASYNC=5)
    assert all(re.search("exchange 0 of group .*" + HALF, found[rank]["error"]) for rank in (0, 1, 2)), found
    assert max(one["seconds"] + one["closing"] for one in found) < 15, found


@pytest.mark.parametrize("streams", STREAMS)
def test_ranks_replay_steps_beside_others_that_take_them(owner, streams):
    ways = {"0": "replays", "1": "graph", "2": "replays"}
    found = owner.ranks(ways, **streams)
    assert [one["error"] for one in found] == [None] * 4 and [set(one["counts"]) for one in found] == [
        {2}
    ] * 4, found
    # Of a peer that does not come the watchdog hears, whatever put the exchange on the stream.
    found = owner.ranks(ways | {"3": "absent"}, **streams)
    assert all(
        re.search("exchange 0 of group .*no answer within 1.5 seconds", found[rank]["error"])
        for rank in (0, 1, 2)
    ), found
    assert max(one["seconds"] + one["closing"] for one in found) < 15, found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected either store or file"),
        ({"file": "id", "library": "nowhere.so"}, "expected libstepc_nccl.so, found none at nowhere.so: set STEPC_NCCL"),
        ({"file": "id", "rank": 1, "timeout": 0.1}, "expected NCCL's id from rank 0 at id within 0.1 s, found no file"),
        ({"store": None, "rank": 1, "timeout": 0.1}, "expected NCCL's id from rank 0 within 0.1 s, found none"),
        ({"file": "left"}, "expected nothing at left, found a file: another world's id"),
        ({"file": "id", "ordinal": 3}, "rank 0: expected the number of a GPU below 1, found 3"),
    ],
)
def test_what_the_meeting_refuses(tmp_path, given, message):
    (tmp_path / "left").touch()
    script = (
        "import ctypes, sys; from nccl_ranks import *; "
        f"stub = Path({str(STUB)!r}); ctypes.CDLL(str(stub / 'libnccl.so.2')); given = dict({given!r}); "
        "given |= {'store': MemoryStore()} if 'store' in given else {}; "
        "given = {'rank': 0, 'size': 2, 'ordinal': 0, 'timeout': 1, 'library': stub / 'libstepc_nccl.so'} | given; "
        "nccl_transport(**given)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and message in done.stderr.splitlines()[-1], done.stderr


def test_the_transport_loads_where_neither_cuda_nor_nccl_is(tmp_path):
    library = STEPC.parents[1] / "lib" / "libstepc_nccl.so"
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed and not re.search(
        "cuda|nccl.so.2|libcu", needed.replace("libstepc_nccl", "")
    ), needed
    # Elsewhere: a test of this process may have loaded the stand-in.
    loads = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libnccl.so.2')"]
    if subprocess.run(loads, capture_output=True, check=False).returncode == 0:
        pytest.skip("NCCL is installed")
    script = "import sys; from stepc.nccl import nccl_transport; nccl_transport(0, 2, 0, file='id', library=sys.argv[1])"
    command = [sys.executable, "-c", script, library]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "frontends" / "python")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert "expected NCCL, found no libnccl.so.2" in done.stderr, done.stderr


@pytest.mark.parametrize("streams", STREAMS)
def test_states_move_on_the_device(tmp_path, owner, streams):
    whole = Case(tmp_path, {"dp": 4}, ["R"], 5)
    for before, after in ((owner, whole), (whole, owner)):
        found = on_ranks("nccl_moves.py", before.library, after.library, STUB, 5, **streams)
        assert found == [None] * 4, found


def test_a_rank_that_does_not_move_states_fails_the_others(tmp_path, owner):
    whole = Case(tmp_path, {"dp": 4}, ["R"], 1)
    found = on_ranks("nccl_moves.py", owner.library, whole.library, STUB, 1.0, 2)
    assert all("telling where states are" in text for rank, text in enumerate(found) if rank != 2), found
