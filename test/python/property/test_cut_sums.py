"""Reductions of rows, columns and blocks that are cut between ranks are exact: sums are what `math.fsum` says, on every
target, whatever each rank has of them. STEPC_SEED repeats a run."""

import json
import math
import os
import random
from collections import Counter

import numpy as np
import pytest
from compiler import STEPC, run, save, stepc, tensor
from random_layouts import Layout, Mesh, random_meshes, random_placements
from tiers import cases, draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
CASES = draws(16)
TARGETS = ("cpu", "interpret", "emulated:sm_80")
# What a rule makes of the gradient: the kind of the state, and the expression.
LINES = {
    "r": ("rows", "sum(grad, over = columns)"),
    "s": ("rows", "norm(grad, over = columns)"),
    "c": ("cols", "mean(grad, over = rows)"),
    "d": ("cols", "rms(grad, over = rows)"),
    "o": ("", "mean(grad)"),
    "p": ("", "norm(grad)"),
    "x": ("rows", "max(grad, over = columns)"),
    "y": ("cols", "max(grad, over = rows)"),
    "z": ("", "max(grad)"),
    "q": ("", "sum(max(grad, over = columns) * max(grad, over = rows))"),  # of lines alone
}


def rule(names):
    states = "".join(f"  state {name} : f32[{LINES[name][0]}]\n" for name in names)
    assigned = "".join(f"  {name} = {LINES[name][1]}\n" for name in names)
    return f"""optimizer Sums(lr) {{
{states}{assigned}  param = param - lr * grad * ({" + ".join(names)})
}}
route {{ Sums(lr = 0.5) for matrix }}
"""


def gradient(draw, shape, only_maxima):
    """Numbers of all sizes, which cancel each other out here and there. For maxima alone there are zeros, infinities and
    NaNs, too, and lines without a greater number."""
    exponents = draw.choice((0, 8, 60), shape)
    values = np.ldexp(draw.standard_normal(shape), draw.integers(-exponents, exponents + 1))
    half = values.shape[-1] // 2
    values[..., :half] = np.where(
        draw.random(values[..., :half].shape) < 0.3, -values[..., half : 2 * half], values[..., :half]
    )
    values = values.astype(np.float32)
    if only_maxima:
        special = draw.choice(np.array([0, -0.0, np.inf, -np.inf, np.nan, -1e-45], np.float32), values.shape)
        some = np.where(draw.random(values.shape) < draw.choice([0.02, 0.5]), special, -np.abs(values))
        lines = draw.random(values.shape[:-1]) < 0.5  # rows of negative zeros and the least number
        values = np.where(lines[..., None], draw.choice(np.array([-0.0, -np.inf], np.float32), values.shape), some)
    return values.astype(np.float32)


def greatest(block, axis=None):
    """The maximum: NaN if there is one, and 0 is greater than -0."""
    most = block.max(axis=axis)
    positive = ((block == 0) & ~np.signbit(block)).any(axis=axis)
    return np.where((most == 0) & positive, np.float32(0), np.where(most == 0, np.float32(-0.0), most))


def value_of(name, matrix):
    """A state of one matrix: a maximum, or an exact sum in f64, as the language defines them."""
    rows, cols = matrix.shape
    wide = matrix.astype(np.float64)
    squares = wide**2  # exact: f32 has 24 bits
    return {
        "r": lambda: [math.fsum(row) for row in wide],
        "s": lambda: [math.sqrt(math.fsum(row)) for row in squares],
        "c": lambda: [math.fsum(col) / rows for col in wide.T],
        "d": lambda: [math.sqrt(math.fsum(col) / rows) for col in squares.T],
        "o": lambda: math.fsum(wide.ravel()) / (rows * cols),
        "p": lambda: math.sqrt(math.fsum(squares.ravel())),
        "x": lambda: greatest(matrix, 1),
        "y": lambda: greatest(matrix, 0),
        "z": lambda: greatest(matrix),
        "q": lambda: math.fsum(np.outer(greatest(matrix, 1), greatest(matrix, 0)).ravel()),
    }[name]()


def expected(grad, name):
    """A state of all matrices of a stack. The sign of a zero that is a sum is +."""
    values = [value_of(name, matrix) for matrix in grad.reshape(-1, *grad.shape[-2:])]
    with np.errstate(over="ignore"):  # what f32 cannot hold is infinite
        values = np.array(values, np.float32)
    return values if name in "xyz" else values + np.float32(0)


def check(folder, names, layout, target, draw):
    """The kinds of tables that add up parts in the plan of a layout."""
    folder.mkdir()
    (folder / "s.optim").write_text(rule(names))
    parameter = {"name": "w", "shape": list(layout.shape), "dtype": "f32", "mesh": layout.mesh.name,
                 "placements": layout.placements, "batch_axes": layout.batch}  # fmt: skip
    manifest = folder / "m.json"
    manifest.write_text(json.dumps({"version": 1, "meshes": [layout.mesh.json()], "parameters": [parameter]}))
    only_maxima = not set(names) - set("xyz")
    grad = gradient(draw, layout.shape, only_maxima)
    save(folder / "in", {"param:w": tensor(np.zeros(layout.shape), "f32"), "grad:w": tensor(grad, "f32")})
    found = run(folder / "s.optim", manifest, folder / "in", folder / "out", "--target", target)
    for name in names:
        wanted = expected(grad, name).ravel()
        values = np.frombuffer(found[f"state:w:{name}"].data, np.float32)
        same = (values.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(values) & np.isnan(wanted))
        assert same.all(), (
            f"STEPC_SEED={SEED} {folder.name}: state {name} on {target}, {parameter}, {layout.mesh}")  # fmt: skip
    level = stepc("compile", folder / "s.optim", "-m", manifest, "--emit", "exec", "-o", "-")
    return Counter(
        {kind: level.count(f"kind = {kind}") > 0 for kind in ("part_rows", "part_columns", "part_blocks")}
    )


def test_reductions_of_cut_lines_are_exact(tmp_path, capsys):
    chosen, draw = random.Random(f"cut {SEED}"), np.random.default_rng(int(SEED))
    histogram, kinds = Counter(), ("part_rows", "part_columns", "part_blocks")

    def has_all():
        return all(histogram[kind] for kind in kinds)

    for i in cases(CASES, has_all, times=10):
        mesh = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4, 6))))
        batch = chosen.randint(0, 1)
        shape = (*[chosen.randint(1, 3)] * batch, chosen.randint(50, 250), chosen.randint(50, 250))
        placements = random_placements(chosen, mesh, shape, list(range(len(shape))))
        names = chosen.sample("xyz" if chosen.random() < 0.3 else list(LINES), chosen.randint(1, 2))
        layout = Layout(mesh, shape, batch, placements)
        histogram += check(tmp_path / str(i), names, layout, chosen.choice(TARGETS), draw)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(histogram)}")
    assert has_all(), histogram


@pytest.mark.parametrize("target", TARGETS)
def test_a_large_block_has_several_sums(tmp_path, target):
    """A rank's part of a block is several exact sums, so that several threads can add up."""
    layout = Layout(Mesh("mesh", (2,), [0, 1]), (700, 801), 0, ["S(0)"])
    found = check(tmp_path / "large", ("o", "p", "z"), layout, target, np.random.default_rng(int(SEED)))
    assert found["part_blocks"]


def test_maxima_of_a_block_travel_beside_sums(tmp_path):
    """Eleven maxima of 4 bytes are more bytes than a column's sum, in smaller words."""
    layout = Layout(Mesh("mesh", (2,), [0, 1]), (1500, 2000), 0, ["S(0)"])
    found = check(tmp_path / "beside", ("z", "c"), layout, "cpu", np.random.default_rng(int(SEED)))
    assert found["part_blocks"] and found["part_columns"]
