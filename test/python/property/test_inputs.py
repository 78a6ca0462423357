"""Inputs of rules: QK-clip of attention with and without latent keys, and what is given for some steps alone.

All are held against NumPy in f32 bit for bit, wherever the parameter lies.
"""

import json

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from test_generality import meshes
from test_positions import bucketed

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

HEADS, SIZE, WIDTH = 3, 4, 7
SPEC = f"""
// MuonClip's QK-clip (arXiv 2507.20534), of a query's heads: rows of a head by the square root of gamma.
optimizer Heads(lr, tau = 2) {{
  input most : f32[]
  let gamma = min(1, tau / most)
  param = sqrt(gamma) * (param - lr * grad)
}}
// Latent attention: gamma's square root scales the rows without positions, gamma the shared rotary ones.
optimizer Latent(lr, tau = 2, nope = 3) {{
  input most : f32[]
  let gamma = min(1, tau / most)
  param = select(row < nope, sqrt(gamma), gamma) * (param - lr * grad)
}}
// Inputs of all kinds and types, some of which have a default.
optimizer Kinds(lr) {{
  input whole : bf16 = 0.3
  input perRow : f16[rows] = -0.7
  input perColumn : f32[cols]
  state m : f32
  m = m + whole * grad + perRow
  param = param - lr * (m + perColumn)
}}
blocks "*" rows each {SIZE}
route {{
  Heads(lr = 0.125) for "Heads.*"
  Latent(lr = 0.125) for "Latent.*"
  Kinds(lr = 0.125) for "Kinds.*"
}}
"""
PLACEMENTS = {
    "whole": ("line", ["R"]), "rows": ("line", ["S(0)"]), "columns": ("line", ["S(1)"]), "flat": ("line", ["flat"]),
    "strided": ("grid", ["_S(0, 2)", "S(0)"]), "tiles": ("grid", ["S(0)", "S(1)"]), "replicas": ("grid", ["R", "S(1)"]),
}  # fmt: skip
STEPS = 3


def document(names=("Heads", "Latent", "Kinds"), placements=PLACEMENTS):
    parameters = [
        {"name": f"{name}.{place}", "shape": [HEADS * SIZE, WIDTH], "dtype": "f32", "mesh": mesh, "placements": where}
        for name in names for place, (mesh, where) in placements.items()
    ]  # fmt: skip
    return bucketed({"version": 1, "meshes": meshes(), "parameters": parameters})


def drawn(made):
    """Parameters, a gradient and inputs for each step; `whole` and `perRow` for the second step alone."""
    draw, tensors = np.random.default_rng(5), {}
    for parameter in made["parameters"]:
        name = parameter["name"]
        tensors[f"param:{name}"] = tensor(draw.normal(size=parameter["shape"]), "f32")
        for step in range(1, STEPS + 1):
            tensors[f"grad:{name}@{step}"] = tensor(draw.normal(size=parameter["shape"]), "f32")
            if not name.startswith("Kinds"):
                tensors[f"input:{name}:most@{step}"] = tensor(draw.uniform(1, 4, HEADS), "f32")
        if name.startswith("Kinds"):
            tensors[f"input:{name}:whole@2"] = tensor(draw.normal(size=parameter["shape"]), "bf16")
            tensors[f"input:{name}:perRow@2"] = tensor(draw.normal(size=HEADS * SIZE), "f16")
            tensors[f"input:{name}:perColumn"] = tensor(draw.normal(size=(HEADS, WIDTH)), "f32")
    return tensors


def f32(one):
    return one.array().astype(np.float32)


def expected(name, tensors):
    param, m = f32(tensors[f"param:{name}"]), np.zeros((HEADS * SIZE, WIDTH), np.float32)
    for step in range(1, STEPS + 1):
        grad = f32(tensors[f"grad:{name}@{step}"])
        if name.startswith("Kinds"):
            whole = tensors.get(f"input:{name}:whole@{step}", tensor(np.float32(0.3), "bf16"))
            row = tensors.get(f"input:{name}:perRow@{step}", tensor(np.full(HEADS * SIZE, -0.7), "f16"))
            column = np.repeat(f32(tensors[f"input:{name}:perColumn"]), SIZE, axis=0)
            m = (m + f32(whole) * grad) + f32(row)[:, None]
            param = param - np.float32(0.125) * (m + column)
            continue
        gamma = np.minimum(np.float32(1), np.float32(2) / f32(tensors[f"input:{name}:most@{step}"]))
        factor = np.repeat(np.sqrt(gamma), SIZE)
        if name.startswith("Latent"):
            factor = np.where(np.tile(np.arange(SIZE), HEADS) < 3, factor, np.repeat(gamma, SIZE))
        param = factor[:, None] * (param - np.float32(0.125) * grad)
    return param


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80", "interpret"])
def test_inputs_are_those_of_the_step(tmp_path, target):
    made = document()
    tensors = drawn(made)
    (tmp_path / "s.optim").write_text(SPEC)
    (tmp_path / "m.json").write_text(json.dumps(made))
    save(tmp_path / "in.safetensors", tensors)
    files = tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in.safetensors"
    found = run(*files, tmp_path / "out.safetensors", "--target", target, steps=STEPS)
    reference = run(*files, tmp_path / "reference.safetensors", "--reference", steps=STEPS)
    assert not [name for name in {**found, **reference} if name.startswith("input:") or ":most" in name]
    for parameter in made["parameters"]:
        role = f"param:{parameter['name']}"
        assert f32(found[role]).tobytes() == expected(parameter["name"], tensors).tobytes(), role
        assert np.abs(found[role].array() - reference[role].array()).max() < 1e-2, role


@pytest.mark.parametrize(("change", "message"), [
    ({"input:Heads.rows:most": None}, r"input 'most' of parameter 'Heads.rows' is null, and it has no default"),
    ({"input:Heads.rows:most": ([4], "f32")}, r"expected shape \[3\] of 'input:Heads.rows:most', found \[4\]"),
    ({"input:Heads.rows:most": ([3], "bf16")}, r"expected F32 in 'input:Heads.rows:most', found BF16"),
    ({"input:Heads.rows:least": ([3], "f32")}, r"expected an input of the parameter's rule \(most\), found "
                                               r"'input:Heads.rows:least'"),
    ({"input:Heads.rows:most@2": ([3], "f32")}, r"expected tensors of steps 1 to 1, found "
                                                r"'input:Heads.rows:most@2'"),
    ({"state:Heads.rows:most": ([3], "f32")}, r"expected a state of the parameter's rule \(step\), found "
                                              r"'state:Heads.rows:most'"),
])  # fmt: skip
def test_wrong_inputs_are_refused(tmp_path, change, message):
    made = document(["Heads"], {"rows": PLACEMENTS["rows"]})
    tensors = {name.split("@")[0]: one for name, one in drawn(made).items() if name.endswith(("@1", "rows"))}
    for name, what in change.items():
        if what is None:
            del tensors[name]
        else:
            tensors[name] = tensor(np.ones(what[0]), what[1])
    (tmp_path / "s.optim").write_text(SPEC.replace('Latent(lr = 0.125) for "Latent.*"', "")
                                      .replace('Kinds(lr = 0.125) for "Kinds.*"', ""))  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(made))
    save(tmp_path / "in.safetensors", tensors)
    with pytest.raises(CompilerFailed, match=message):
        stepc("run", tmp_path / "s.optim", "-m", tmp_path / "m.json", "--tensors", tmp_path / "in.safetensors",
              "-o", tmp_path / "out.safetensors")  # fmt: skip
