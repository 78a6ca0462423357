"""Sums of rows, columns and blocks that are cut between ranks are exact: what `math.fsum` says, on every target,
whatever each rank has of them. STEPC_SEED repeats a run."""

import json
import math
import os
import random
from collections import Counter

import numpy as np
import pytest
from compiler import STEPC, run, save, stepc, tensor
from random_layouts import Layout, Mesh, random_meshes, random_placements
from tiers import draws

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
}


def rule(names):
    states = "".join(f"  state {name} : f32[{LINES[name][0]}]\n" for name in names)
    assigned = "".join(f"  {name} = {LINES[name][1]}\n" for name in names)
    return f"""optimizer Sums(lr) {{
{states}{assigned}  param = param - lr * grad * ({" + ".join(names)})
}}
route {{ Sums(lr = 0.5) for matrix }}
"""


def gradient(draw, shape):
    """Numbers of all sizes, which cancel each other out here and there."""
    exponents = draw.choice((0, 8, 60), shape)
    values = np.ldexp(draw.standard_normal(shape), draw.integers(-exponents, exponents + 1))
    half = values.shape[-1] // 2
    values[..., :half] = np.where(
        draw.random(values[..., :half].shape) < 0.3, -values[..., half : 2 * half], values[..., :half]
    )
    return values.astype(np.float32)


def expected(grad):
    """The states of each matrix: exact sums in f64, as the language defines them."""
    wide = grad.astype(np.float64)
    rows, cols = grad.shape[-2:]
    result = {name: [] for name in "rscdop"}
    for matrix in wide.reshape(-1, rows, cols):
        squares = matrix**2  # exact: f32 has 24 bits
        result["r"].append([math.fsum(row) for row in matrix])
        result["s"].append([math.sqrt(math.fsum(row)) for row in squares])
        result["c"].append([math.fsum(col) / rows for col in matrix.T])
        result["d"].append([math.sqrt(math.fsum(col) / rows) for col in squares.T])
        result["o"].append(math.fsum(matrix.ravel()) / (rows * cols))
        result["p"].append(math.sqrt(math.fsum(squares.ravel())))
    return {name: np.array(values, np.float32) for name, values in result.items()}


def check(folder, names, layout, target, draw):
    """The kinds of tables that add up parts in the plan of a layout."""
    folder.mkdir()
    (folder / "s.optim").write_text(rule(names))
    parameter = {"name": "w", "shape": list(layout.shape), "dtype": "f32", "mesh": layout.mesh.name,
                 "placements": layout.placements, "batch_axes": layout.batch}  # fmt: skip
    manifest = folder / "m.json"
    manifest.write_text(json.dumps({"version": 1, "meshes": [layout.mesh.json()], "parameters": [parameter]}))
    grad = gradient(draw, layout.shape)
    save(folder / "in", {"param:w": tensor(np.zeros(layout.shape), "f32"), "grad:w": tensor(grad, "f32")})
    found = run(folder / "s.optim", manifest, folder / "in", folder / "out", "--target", target)
    exact = expected(grad)
    for name in names:
        wanted = exact[name]
        values = np.frombuffer(found[f"state:w:{name}"].data, np.float32)
        assert values.tobytes() == (wanted + np.float32(0)).tobytes(), (
            f"STEPC_SEED={SEED} {folder.name}: state {name} on {target}, {parameter}, {layout.mesh}")  # fmt: skip
    level = stepc("compile", folder / "s.optim", "-m", manifest, "--emit", "exec", "-o", "-")
    return Counter(
        {kind: level.count(f"kind = {kind}") > 0 for kind in ("part_rows", "part_columns", "part_blocks")}
    )


def test_sums_of_cut_lines_are_exact(tmp_path, capsys):
    chosen, draw = random.Random(f"cut {SEED}"), np.random.default_rng(int(SEED))
    histogram = Counter()
    for i in range(CASES):
        mesh = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4, 6))))
        batch = chosen.randint(0, 1)
        shape = (*[chosen.randint(1, 3)] * batch, chosen.randint(50, 250), chosen.randint(50, 250))
        placements = random_placements(chosen, mesh, shape, list(range(len(shape))))
        names = chosen.sample(list(LINES), chosen.randint(1, 2))
        layout = Layout(mesh, shape, batch, placements)
        histogram += check(tmp_path / str(i), names, layout, chosen.choice(TARGETS), draw)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(histogram)}")
    assert all(histogram[kind] for kind in ("part_rows", "part_columns", "part_blocks")), histogram


@pytest.mark.parametrize("target", TARGETS)
def test_a_large_block_has_several_sums(tmp_path, target):
    """A rank's part of a block is several exact sums, so that several threads can add up."""
    layout = Layout(Mesh("mesh", (2,), [0, 1]), (700, 801), 0, ["S(0)"])
    found = check(tmp_path / "large", ("o", "p"), layout, target, np.random.default_rng(int(SEED)))
    assert found["part_blocks"]
