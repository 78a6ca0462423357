"""Compiling grows with distinct shapes as they do: counted, not timed. The code, by what each further shape
adds to level llvm; memory, by peaks of the proof for many ranks. And what is too large is refused at once."""

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

sys.path.append(str(ROOT / "benchmarks"))
from measure import measured  # noqa: E402

pytestmark = pytest.mark.tier("land")

SPEC = ROOT / "examples" / "muon.optim"
SIZES = (8, 16, 32, 64)


def compiled(folder, shapes, ranks, *options):
    """What a compile of so many matrices, no two of one shape, sharded over so many ranks, prints and
    takes.
    """
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    path, out = folder / "m.json", folder / "stdout"
    parameters = [{"name": f"layers.{i}.weight", "shape": [256 + 32 * (i % 32), 256 + 32 * (i // 32)], "dtype": "bf16",
                   "mesh": "m", "placements": ["S(0)"]} for i in range(shapes)]  # fmt: skip
    mesh = {"name": "m", "axes": [{"name": "dp", "size": ranks}]}
    path.write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    command = [compiler, "compile", SPEC, "-m", path, "--if-present", "*embed*", "--if-present", "lm_head*", *options, "-o", "-"]
    with open(out, "w") as stdout:
        done, taken = measured(command, stdout=stdout, stderr=subprocess.PIPE)
    return done, out, taken.peak_bytes


def test_code_grows_by_little_for_each_shape(tmp_path):
    """What computes is there once, however many shapes there are; a shape adds kernels that call it."""
    functions, small = [], []
    for shapes in SIZES:
        done, out, _ = compiled(tmp_path, shapes, 4, "--emit", "llvm")
        assert done.returncode == 0, done.stderr
        bodies = re.findall(
            r"^  llvm\.func internal @(\S+?)\((.*?)^  }", out.read_text(), re.DOTALL | re.MULTILINE
        )
        lines = {name: body.count("\n") for name, body in bodies}
        functions.append({name: count for name, count in lines.items() if count > 25})
        small.append(sum(count for count in lines.values() if count <= 25))
    assert functions[0] and all(each == functions[0] for each in functions)
    steps = [
        (after - before) / (more - fewer)
        for before, after, fewer, more in zip(small, small[1:], SIZES, SIZES[1:], strict=False)
    ]
    assert all(0 < step < 200 for step in steps), steps


@pytest.mark.tier("all")
def test_memory_of_a_proof_does_not_grow_with_shapes_times_ranks(tmp_path):
    """Tables of shapes on ranks are not kept: on 512 ranks a further shape takes less than half a MiB,
    where it took 1.3.
    """
    sizes = (50, 100, 200, 400)
    peaks = []
    for shapes in sizes:
        done, _, peak = compiled(tmp_path, shapes, 512, "--emit", "exec")
        assert done.returncode == 0, done.stderr
        peaks.append(peak)
    per_shape = [
        (after - before) / (more - fewer)
        for before, after, fewer, more in zip(peaks, peaks[1:], sizes, sizes[1:], strict=False)
    ]
    assert per_shape[-1] < 2**19, [f"{each / 2**10:.0f} KiB" for each in per_shape]


def test_more_than_can_be_proven_is_refused_at_once(tmp_path):
    done, _, peak = compiled(tmp_path, 100, 2**20, "--emit", "decided")
    assert done.returncode == 1
    text = done.stderr.decode()
    assert (
        "expected at most 8388608 pairs of a group and a rank of its mesh, because a plan is proven for each"
        in text
    )
    assert "found 104857600: mesh 'm' has 1048576 ranks and parameters of 100 groups" in text
    assert peak < 2**30
