"""`floor` gives the greatest whole number that is not above its argument, on every target, of scalars and of tensors."""

import json

import numpy as np
import pytest
from compiler import STEPC, run, save, tensor

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

# Ends of what has a fraction (2^23), zeros of both signs, the smallest numbers, and what is no number.
EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 1e-45, -1e-45, 1e-38, -1e-38, 8388607.5, -8388607.5, 8388609.0,
         -8388609.0, 3e38, -3e38, np.inf, -np.inf, np.nan, np.nextafter(np.float32(3), np.float32(0)), 65504.0]  # fmt: skip


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v2", "emulated:sm_80", "interpret"])
def test_floor_is_that_of_numpy(tmp_path, target):
    generator = np.random.default_rng(3)
    with np.errstate(over="ignore"):
        drawn = generator.normal(size=500) * 2.0 ** generator.integers(-140, 127, 500)
    values = np.concatenate([np.array(EDGES, np.float32), drawn.astype(np.float32)])
    grad = generator.normal(size=values.size).astype(np.float32) * 9
    (tmp_path / "spec.optim").write_text(
        "optimizer Floor(lr = 7 / 2) {\n  state m : f32\n  state n : f32\n  m = floor(param)\n"
        "  n = floor(-lr / 2) * grad\n  param = floor(grad)\n}\nroute {\n  Floor() for rest\n}\n"
    )
    parameter = {"name": "w", "shape": [values.size], "dtype": "f32", "grad_dtype": "f32", "mesh": "m", "placements": ["S(0)"]}
    mesh = {"name": "m", "axes": [{"name": "x", "size": 3}]}
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": [parameter]}))
    save(tmp_path / "in.safetensors", {"param:w": tensor(values, "f32"), "grad:w": tensor(grad, "f32")})
    found = run(tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors", tmp_path / "out.safetensors",
                "--target", target)  # fmt: skip
    for role, wanted in {"state:w:m": np.floor(values), "param:w": np.floor(grad), "state:w:n": np.float32(-2) * grad}.items():
        got = np.frombuffer(found[role].data, np.float32)
        numbers = ~np.isnan(wanted)
        assert np.array_equal(np.isnan(got), ~numbers), role
        assert np.array_equal(got[numbers].view(np.uint32), wanted[numbers].view(np.uint32)), role
