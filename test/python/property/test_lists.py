"""Parameter, gradient and states that stand apart: placements of their own, and the bits of one list."""

import json
import math
import re

import numpy as np
import pytest
from compiler import STEPC, run, save, stepc, tensor
from sharded_net import ADAMW

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

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


def mesh(name, sizes):
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    return {"name": name, "axes": axes, "ranks": list(range(math.prod(sizes)))}


def parameters(copy="", mesh="m", **lists):
    """All parameters of one copy, on its mesh; their names begin with the copy's."""
    result = []
    for name, shape in SHAPES.items():
        one = {"name": f"{name}{copy}", "shape": list(shape), "dtype": "bf16", "grad_dtype": "f32", "mesh": mesh}
        for key, placements in lists.items():
            cut = [p if p == "R" or int(p[2]) < len(shape) else "R" for p in placements]
            one[key] = cut
        result.append(one)
    return result


def tensors(copies):
    """The same values for each copy."""
    generator = np.random.default_rng(5)
    result = {}
    for name, shape in SHAPES.items():
        values = tensor(generator.normal(size=shape), "bf16")
        result |= {f"param:{name}{copy}": values for copy in copies}
    for name, shape in SHAPES.items():
        for step in range(1, STEPS + 1):
            values = tensor(generator.normal(size=shape), "f32")
            result |= {f"grad:{name}{copy}@{step}": values for copy in copies}
    return result


LISTS = [
    ((2,), ["R"], ["R"], ["S(0)"]),  # optimizer state alone is sharded
    ((4,), ["R"], ["R"], ["S(0)"]),
    ((4,), ["R"], ["S(0)"], ["S(0)"]),
    ((4,), ["S(0)"], ["R"], ["S(1)"]),
    ((4,), ["S(1)"], ["S(0)"], ["R"]),
    ((2, 2), ["S(0)", "R"], ["R", "S(1)"], ["S(1)", "S(0)"]),
    ((2, 2), ["R", "S(0)"], ["S(0)", "S(0)"], ["S(0)", "R"]),
]
STRATEGIES = ("owner", "gather")
WHOLE = ".whole"


def copy_of(number, strategy):
    return f".{number}.{strategy}"


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """What each copy has after the steps: of the library, and of another that was compiled from the text of
    level 3. Copies of all lists by each strategy, and one that is whole on one rank, share what is
    compiled."""
    folder = tmp_path_factory.mktemp("lists")
    spec, many, inputs = folder / "spec.optim", folder / "m.json", folder / "in.safetensors"
    spec.write_text(SPEC)
    meshes, listed, options = [mesh("one", (1,))], parameters(WHOLE, "one", placements=["R"]), ["--waves", "4"]
    for number, (sizes, *lists) in enumerate(LISTS):
        meshes.append(mesh(f"m{number}", sizes))
        keys = dict(zip(("placements", "grad_placements", "state_placements"), lists, strict=True))
        for strategy in STRATEGIES:
            copy = copy_of(number, strategy)
            listed += parameters(copy, f"m{number}", **keys)
            options += ["--strategy", f"matrix*{copy}={strategy}"]
    many.write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": listed}))
    save(inputs, tensors([WHOLE, *(copy_of(number, strategy) for number in range(len(LISTS)) for strategy in STRATEGIES)]))
    found = run(spec, many, inputs, folder / "out.safetensors", *options, steps=STEPS)
    # The text of level 3 is the program.
    (folder / "level3.mlir").write_text(
        stepc("compile", spec, "-m", many, *options, "--emit", "comm", "-o", "-")
    )
    stepc("compile", folder / "level3.mlir", "-o", folder / "lib")
    (library,) = (folder / "lib").glob("*.so")
    again = run(spec, many, inputs, folder / "again.safetensors", "--library", library, steps=STEPS)
    return found, again


def of_copy(tensors, copy):
    return {name.replace(copy, ""): one for name, one in tensors.items() if re.search(rf"{re.escape(copy)}(:|$)", name)}


@pytest.mark.parametrize("number", range(len(LISTS)))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bits_do_not_depend_on_the_lists(stepped, number, strategy):
    found, again = stepped
    expected = of_copy(found, WHOLE)
    assert {f"param:{name}" for name in SHAPES} < expected.keys()
    assert of_copy(found, copy_of(number, strategy)) == expected
    assert again == found


def test_a_library_says_where_each_list_is(tmp_path):
    folder = tmp_path
    (folder / "spec.optim").write_text(SPEC)
    save(folder / "in.safetensors", tensors([""]))
    listed = parameters(placements=["R"], grad_placements=["S(0)"], state_placements=["S(1)"])
    document = {"version": 1, "meshes": [mesh("m", (2,))], "parameters": listed}
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
    with pytest.raises(
        AssertionError, match="expected the manifest's state placements of parameter 'matrix.a'"
    ):
        stepc("run", folder / "spec.optim", "-m", folder / "other.json", "--tensors",
              folder / "in.safetensors", "--library", library, "--steps", STEPS, "-o", folder / "none")  # fmt: skip
