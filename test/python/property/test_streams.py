"""A step's bytes do not depend on how its two streams interleave, as far as records and awaits leave it open.

Libraries are linked with a device that carries out kernels and messages in random order (test/devices).
Random programs must give the CPU's bytes for any seed; a device that loses the record of one event must not;
and no program compiles that lacks a wait.
"""

import os
import re
from collections import Counter

import pytest
from cases import STEPS, random_batch
from compiler import ROOT, STEPC, CompilerFailed, run, stepc
from test_bits import SEED, differences
from tiers import draws

RANDOM = STEPC.parents[1] / "lib" / "random"
pytestmark = pytest.mark.skipif(not RANDOM.is_dir(), reason="build/lib/random was not built")

BATCHES = int(os.environ.get("STEPC_STREAMS_BATCHES") or draws(3))
PER_BATCH = 10
ORDERS = 6
MANY = (
    """{"version": 1, "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": 2}]}], "parameters": [%s]}"""
)
ONE = """{"name": "w%d", "shape": [%d, 8], "dtype": "f32", "mesh": "dp", "placements": ["S(0)"]}"""


@pytest.mark.parametrize("index", range(BATCHES))
def test_any_order_gives_the_same_bytes(tmp_path, index, capsys):
    batch = random_batch(f"{SEED}-{index}", PER_BATCH)
    batch.waves = 1 + index % 3
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", "-m", tmp_path / "many.json"]
    stepc("compile", *files, *batch.options(), "-o", tmp_path / "random", STEPC_RUNTIME_DIR=RANDOM)
    expected = run(files[0], files[2], tmp_path / "in.safetensors", tmp_path / "cpu.safetensors", *batch.options(), steps=STEPS)
    for order in range(ORDERS):
        found = step_randomly(tmp_path, files, order, STEPS, "--threads", batch.threads)
        wrong = differences(found, expected)
        assert not wrong, (
            f"STEPC_SEED={SEED}, order {order} of batch {index}, waves {batch.waves}:\n" + "\n".join(wrong)
        )
    with capsys.disabled():
        counts = Counter(case.strategy for case in batch.cases)
        print(f"\n  STEPC_SEED={SEED}-{index}: {batch.waves} waves, {dict(counts)}", end="")


def step_randomly(folder, files, order, steps, *options, loses=-1):
    library = folder / "random" / f"lib{files[0].stem}.so"
    return run(*files[::2], folder / "in.safetensors", folder / "random.safetensors", "--library", library, *options,
               steps=steps, STEPC_DEVICE_SEED=order, STEPC_DEVICE_LOSES=loses)  # fmt: skip


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """Muon on two ranks in two waves, whose messages travel while others are computed: texts of levels,
    and the CPU's bytes.
    """
    folder = tmp_path_factory.mktemp("waves")
    manifest = folder / "many.json"
    manifest.write_text(MANY % ", ".join(ONE % (i, 8 + 4 * (i % 2)) for i in range(8)))
    files = [ROOT / "examples" / "muon.optim", "-m", manifest]
    write_inputs(folder / "in.safetensors")
    for level in ("scheduled", "exec"):
        stepc("compile", *files, "--waves", 2, "--emit", level, "-o", folder / level)
    stepc("compile", *files, "--waves", 2, "-o", folder / "random", STEPC_RUNTIME_DIR=RANDOM)
    expected = run(
        files[0], manifest, folder / "in.safetensors", folder / "cpu.safetensors", "--waves", 2, steps=2
    )
    return folder, files, expected


def write_inputs(path):
    import numpy as np
    from compiler import save, tensor

    generator = np.random.default_rng(11)
    names = [f"{what}:w{i}{step}" for i in range(8) for what, step in (("param", ""), ("grad", "@1"), ("grad", "@2"))]
    shape = {name: (8 + 4 * (int(re.search(r"w(\d)", name)[1]) % 2), 8) for name in names}
    save(path, {name: tensor(generator.normal(size=shape[name]), "f32") for name in names})


def test_a_lost_record_is_seen(waves):
    """Event 2n lets collective n start when what it sends is there, event 2n + 1 lets others read what has
    arrived: each is needed, so that each, once lost, is seen as other bytes or as a step that is refused."""
    folder, files, expected = waves
    starts = (folder / "exec" / "muon.mlir").read_text().count("exec.start ")
    assert starts >= 4
    for order in range(4):
        assert not differences(step_randomly(folder, files, order, 2), expected)
    unseen = [
        event for event in range(2 * starts) if not any(is_seen(waves, event, order) for order in range(12))
    ]
    assert not unseen


def is_seen(waves, event, order):
    folder, files, expected = waves
    try:
        return bool(differences(step_randomly(folder, files, order, 2, loses=event), expected))
    except CompilerFailed as failed:
        assert re.search("was never waited for|expected a collective that is under way", str(failed)), failed
        return True


@pytest.mark.parametrize(("level", "wait", "refusal"), [
    ("scheduled", "comm.wait", "expected one comm.wait for its token, found 0"),
    ("exec", "exec.await", "expected each collective to be awaited"),
])  # fmt: skip
def test_no_program_lacks_a_wait(waves, tmp_path, level, wait, refusal):
    lines = (waves[0] / level / "muon.mlir").read_text().split("\n")
    at = [i for i, line in enumerate(lines) if line.strip().startswith(wait)]
    assert len(at) >= 4
    for line in at:
        (tmp_path / "muon.mlir").write_text("\n".join(lines[:line] + lines[line + 1 :]))
        with pytest.raises(CompilerFailed, match=re.escape(refusal)):
            stepc("compile", tmp_path / "muon.mlir", "-o", tmp_path / "library")
