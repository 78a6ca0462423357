"""Races between the two streams, within a launch and with staging memory are a step's error, whatever bits
come out.

Programs for `emulated:<gpu>,races` are stepped with a device in whose plan or calls one fault was planted
(test/devices/RacyDevice.cpp): each must be told in every order of the streams, and nothing of the sound
program. test/unit/products/RacesTest.cpp has the faults of kernels, test/unit/runtime/RacesTest.cpp those of
the host.
"""

import re

import pytest
from cases import STEPS, random_batch
from compiler import ROOT, STEPC, CompilerFailed, run, stepc
from random_rules import ON_CORES
from test_bits import SEED, differences
from test_streams import MANY, ONE, write_inputs

RACY = STEPC.parents[1] / "lib" / "racy"
pytestmark = pytest.mark.skipif(not RACY.is_dir(), reason="build/lib/racy was not built")

ORDERS = 4


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """Muon on two ranks in two waves: the files, the number of its starts, and the CPU's bytes."""
    folder = tmp_path_factory.mktemp("races")
    (folder / "many.json").write_text(MANY % ", ".join(ONE % (i, 8 + 4 * (i % 2)) for i in range(8)))
    files = [ROOT / "examples" / "muon.optim", folder / "many.json", folder / "in.safetensors"]
    write_inputs(files[2])
    options = ["-m", files[1], "--waves", 2]
    stepc("compile", files[0], *options, "--emit", "exec", "-o", folder / "exec")
    stepc("compile", files[0], *options, "--target", "emulated:sm_80,races", "-o", folder / "racy", STEPC_RUNTIME_DIR=RACY)
    expected = run(*files, folder / "cpu.safetensors", "--waves", 2, steps=2)
    return folder, files, (folder / "exec" / "muon.mlir").read_text().count("exec.start "), expected


def found(waves, fault, order, *options):
    """What a step with a fault says, or nothing, and whether its bytes are the CPU's."""
    folder, files, _, expected = waves
    try:
        out = run(*files, folder / "out.safetensors", "--library", folder / "racy" / "libmuon.so", *options, steps=2,
                  STEPC_EMULATED_SEED=order, STEPC_RACY_FAULT=fault)  # fmt: skip
    except CompilerFailed as failed:
        return str(failed), False
    return "", not differences(out, expected)


def test_a_sound_program_has_none(waves):
    for order in range(ORDERS):
        assert found(waves, "", order) == ("", True)


@pytest.mark.tier("all")
def test_random_programs_on_tensor_cores_have_none(tmp_path):
    batch = random_batch(f"{SEED}-races", 10, forms=ON_CORES)
    batch.waves = 2
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    steps = [run(*files, tmp_path / "out.safetensors", *batch.options(), "--target", f"emulated:sm_80,tensorcore{races}", steps=STEPS,
                 STEPC_EMULATED_SEED=3) for races in ("", ",races")]  # fmt: skip
    wrong = differences(*steps)
    assert not wrong, f"STEPC_SEED={SEED}:\n" + "\n".join(wrong)


def test_a_missing_wait_is_told(waves):
    """Event 2n lets start n read what it sends, event 2n + 1 lets kernels read what has arrived."""
    starts = waves[2]
    assert starts >= 4
    for event in range(2 * starts):
        texts = [found(waves, f"wait {event}", order)[0] for order in range(ORDERS)]
        races = [text for text in texts if "was never waited for" not in text]
        # Where kernels come to the step's end before the last exchange is awaited, that is told first.
        assert races, (event, texts)
        assert len(races) == ORDERS or event == 2 * starts - 1, (event, texts)
        for text in races:
            assert re.search("race in command .* expected an event between the streams, found none", text), (
                event,
                text,
            )
            # Both streams have a part in it, and the exchange is named.
            assert "on the stream of messages" in text, text
            assert "on the stream of kernels" in text, text
            assert re.search(r"\((start|await) of exchange \d+ of group ", text), text


def test_a_write_after_the_start_is_told(waves):
    """A start before the kernel that packs what it sends: this writes while messages read."""
    for start in range(waves[2]):
        for order in range(ORDERS):
            text, _ = found(waves, f"start {start}", order)
            assert re.search(r"race in command .* expected an event between the streams", text), (start, order, text)


def test_a_reused_buffer_is_told(waves):
    """A buffer that stands where another is still sent or received: where kernels alone use both there is
    no race.
    """
    buffers = range(waves[2])
    texts = {(a, b): [found(waves, f"reuse {a} {b}", order)[0] for order in range(2)] for a in buffers for b in buffers if a != b}
    told = [each for each in texts.values() if any(each)]
    assert told
    assert all("race in command " in text for each in told for text in each), told
    both = re.compile("race in command .*on the stream of messages.*expected an event between the streams")
    assert any(all(both.search(text) for text in each) for each in told), told


def test_a_replayed_step_is_watched_like_any_other(waves):
    for order in range(ORDERS):
        assert found(waves, "", order, "--graph") == ("", True)
        for fault in ("wait 0", "wait 1", "start 1"):
            text, _ = found(waves, fault, order, "--graph")
            assert re.search(r"race in command .* expected an event between the streams", text), (fault, order, text)


def test_what_a_command_does_not_declare_is_told(waves):
    """Of the first command of each kind operands are left out one after another: kernels touch each that
    is declared.
    """
    text = (waves[0] / "exec" / "muon.mlir").read_text()
    commands = re.findall(r"^    (?:%\w+ = )?exec\.(\w+) ", text, re.MULTILINE)
    # The first product is of a matrix by itself: its two operands are the same memory.
    kinds = {"dispatch_parameters": [0], "dispatch_chunks": [0, 1, 2], "apply": [0, 1], "product": [2], "copy": [0, 1]}
    for kind, operands in kinds.items():
        number = commands.index(kind)
        for operand in operands:
            told, _ = found(waves, f"undeclared {number} {operand}", operand)
            expected = rf"command {number} .* (reads \d+ bytes .* declares to read|writes \d+ bytes .* declares to write)"
            assert re.search(expected, told), (kind, operand, told)
