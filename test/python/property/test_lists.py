"""Parameter, gradient and states that stand apart: placements of their own, and the bits of one list."""

import json

import numpy as np
import pytest
from compiler import STEPC, load, run, save, stepc, tensor
from sharded_net import ADAMW

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SPEC = ADAMW.replace("MASTER", "master : f32") + """
optimizer Muon(lr) {
  state m : f32
  m = 0.95 * m + grad
  let o = orthogonalize(grad + 0.95 * m, steps = 2, precision = bf16)
  param = (1 - lr * 0.1) * param - lr * o
}
route {
  Muon(lr = 0.02) for "matrix*"
  AdamW(lr = 3e-3) for rest
}
"""
SHAPES = {"matrix.a": (10, 7), "matrix.b": (10, 7), "embed": (9, 4), "bias": (5,), "scalar": ()}
STEPS = 2


def manifest(sizes, **lists):
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    parameters = []
    for name, shape in SHAPES.items():
        one = {"name": name, "shape": list(shape), "dtype": "bf16", "grad_dtype": "f32", "mesh": "m"}
        for key, placements in lists.items():
            cut = [p if p == "R" or int(p[2]) < len(shape) else "R" for p in placements]
            one[key] = cut
        parameters.append(one)
    return {"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": parameters}


@pytest.fixture
def inputs(tmp_path):
    """Specification and tensors, and what one list makes of them."""
    (tmp_path / "spec.optim").write_text(SPEC)
    generator = np.random.default_rng(5)
    tensors = {f"param:{name}": tensor(generator.normal(size=shape), "bf16") for name, shape in SHAPES.items()}
    for name, shape in SHAPES.items():
        for step in range(1, STEPS + 1):
            tensors[f"grad:{name}@{step}"] = tensor(generator.normal(size=shape), "f32")
    save(tmp_path / "in.safetensors", tensors)
    (tmp_path / "one.json").write_text(json.dumps(manifest((1,), placements=["R"])))
    expected = run(tmp_path / "spec.optim", tmp_path / "one.json", tmp_path / "in.safetensors",
                   tmp_path / "one.safetensors", steps=STEPS)  # fmt: skip
    return tmp_path, expected


LISTS = [
    ((2,), ["R"], ["R"], ["S(0)"]),  # optimizer state alone is sharded
    ((4,), ["R"], ["R"], ["S(0)"]),
    ((4,), ["R"], ["S(0)"], ["S(0)"]),
    ((4,), ["S(0)"], ["R"], ["S(1)"]),
    ((4,), ["S(1)"], ["S(0)"], ["R"]),
    ((2, 2), ["S(0)", "R"], ["R", "S(1)"], ["S(1)", "S(0)"]),
    ((2, 2), ["R", "S(0)"], ["S(0)", "S(0)"], ["S(0)", "R"]),
]


@pytest.mark.parametrize("sizes, parameter, gradient, state", LISTS)
@pytest.mark.parametrize("strategy", ["owner", "gather"])
def test_bits_do_not_depend_on_the_lists(inputs, sizes, parameter, gradient, state, strategy):
    folder, expected = inputs
    document = manifest(sizes, placements=parameter, grad_placements=gradient, state_placements=state)
    (folder / "m.json").write_text(json.dumps(document))
    spec, many = folder / "spec.optim", folder / "m.json"
    options = ("--strategy", f"matrix*={strategy}", "--waves", "2")
    found = run(spec, many, folder / "in.safetensors", folder / "out.safetensors", *options, steps=STEPS)
    assert found == expected
    # The text of level 3 is the program.
    (folder / "level3.mlir").write_text(stepc("compile", spec, "-m", many, *options, "--emit", "comm", "-o", "-"))
    stepc("compile", folder / "level3.mlir", "-o", folder / "lib")
    (library,) = (folder / "lib").glob("*.so")
    stepc("run", spec, "-m", many, "--tensors", folder / "in.safetensors", "--steps", STEPS,
          "--library", library, "-o", folder / "again.safetensors")  # fmt: skip
    assert load(folder / "again.safetensors") == expected


def test_a_library_says_where_each_list_is(inputs):
    folder, _ = inputs
    document = manifest((2,), placements=["R"], grad_placements=["S(0)"], state_placements=["S(1)"])
    (folder / "m.json").write_text(json.dumps(document))
    stepc("compile", folder / "spec.optim", "-m", folder / "m.json", "-o", folder / "lib")
    (description,) = (folder / "lib").glob("*.json")
    (header,) = (folder / "lib").glob("*.h")
    groups = json.loads(description.read_text())["groups"]
    (matrices,) = (group for group in groups if group["shape"] == [10, 7])
    assert (matrices["placements"], matrices["gradient_placements"], matrices["state_placements"]) == (
        ["R"], ["S(0)"], ["S(1)"],
    )  # fmt: skip
    assert "[10, 7] bf16 R, gradient S(0), states S(1)" in header.read_text()
    # A manifest with another list is another manifest.
    document["parameters"][0]["state_placements"] = ["R"]
    (folder / "other.json").write_text(json.dumps(document))
    (library,) = (folder / "lib").glob("*.so")
    with pytest.raises(AssertionError, match="expected the manifest's state placements of parameter 'matrix.a'"):
        stepc("run", folder / "spec.optim", "-m", folder / "other.json", "--tensors",
              folder / "in.safetensors", "--library", library, "--steps", STEPS, "-o", folder / "none")  # fmt: skip
