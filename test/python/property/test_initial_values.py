"""States that start at the parameter: the first step takes it, whatever the state's memory has, and a resumed run does not.

The rules that act element by element are held against NumPy in f32, bit for bit, on all placements and targets.
"""

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, load, run, save, tensor
from test_generality import PLACEMENTS, inputs, manifest, step

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

RULES = {
    # The average of the positions, and the position where gradients are taken (arXiv 2405.15682).
    "ScheduleFree": """(lr, beta = 0.75) {
  state z : f32 = param
  let x = (param - (1 - beta) * z) / beta
  let moved = z - lr * grad
  z = moved
  param = lerp(moved, lerp(x, moved, 1 / step), beta)
}""",
    # It is pulled back to where it began, which is never assigned.
    "Anchor": """(lr, pull = 0.5) {
  state begun : bf16 = param
  param = param - lr * (grad + pull * (param - begun))
}""",
    # Two of them, one read before and one behind its assignment.
    "Two": """(lr) {
  state a : f32 = param
  state b : f16 = param
  let before = a
  a = a + grad
  b = b - lr * a
  param = before + b
}""",
    # The state takes part in what is computed of whole matrices.
    "Matrix": """(lr) {
  state z : f32 = param
  z = z - lr * orthogonalize(grad + z, steps = 2, precision = f32)
  param = lerp(param, z, 0.5)
}""",
}  # fmt: skip
SPEC = "".join(f"optimizer {name}{text}\n" for name, text in RULES.items())
SPEC += "route {\n" + "".join(f'  {name}(lr = 0.125) for "{name}.*"\n' for name in RULES) + "}\n"
STEPS = 4


def rounded(values, dtype):
    """f32 values as a state of this dtype holds them."""
    return tensor(values, dtype).array().astype(np.float32)


def expected(name, param, grads):
    """What NumPy makes of a rule: the parameter, then the states, each as f32."""
    lr = np.float32(0.125)
    half, third, quarter = np.float32(0.5), np.float32(0.75), np.float32(0.25)
    if name == "ScheduleFree":
        z = param
        for count, grad in enumerate(grads, 1):
            x, moved = (param - quarter * z) / third, z - lr * grad
            mean = x + np.float32(1 / count) * (moved - x)
            z, param = moved, moved + third * (mean - moved)
        return param, {"z": z}
    if name == "Anchor":
        begun = rounded(param, "bf16")
        for grad in grads:
            param = param - lr * (grad + half * (param - begun))
        return param, {"begun": begun}
    a, b = param, rounded(param, "f16")
    for grad in grads:
        before, a = a, a + grad
        b = rounded(b - lr * a, "f16")
        param = before + b
    return param, {"a": a, "b": b}


def gradients(document):
    """Inputs with a gradient of its own for each step."""
    tensors = inputs(document)
    for name in [name for name in tensors if name.startswith("grad:")]:
        for number in range(1, STEPS + 1):
            values = np.random.default_rng(len(name) + number).normal(size=tensors[name].shape)
            tensors[f"{name}@{number}"] = tensor(values, "f32")
        del tensors[name]
    return tensors


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80", "interpret"])
def test_the_first_step_takes_the_parameter(tmp_path, target):
    document = manifest(RULES, PLACEMENTS)
    tensors = gradients(document)
    found, reference = step(tmp_path, SPEC, document, tensors, "--target", target, steps=STEPS)
    for parameter in document["parameters"]:
        name = parameter["name"]
        rule = name.split(".")[0]
        if rule == "Matrix":
            for role in (f"param:{name}", f"state:{name}:z"):
                assert np.abs(found[role].array() - reference[role].array()).max() <= 2e-4, role
            continue
        grads = [tensors[f"grad:{name}@{number}"].array().astype(np.float32) for number in range(1, STEPS + 1)]
        param, states = expected(rule, tensors[f"param:{name}"].array().astype(np.float32), grads)
        assert found[f"param:{name}"].array().astype(np.float32).tobytes() == param.tobytes(), name
        for state, values in states.items():
            assert found[f"state:{name}:{state}"].array().astype(np.float32).tobytes() == values.tobytes(), (name, state)


def test_a_resumed_run_takes_what_was_stored(tmp_path):
    document = manifest(RULES, PLACEMENTS)
    tensors = gradients(document)
    whole, _ = step(tmp_path, SPEC, document, tensors, steps=STEPS)
    files = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "half.safetensors"
    first = {name: one for name, one in tensors.items() if not name.endswith(("@3", "@4"))}
    save(files[2], first)
    half = run(*files, tmp_path / "between.safetensors", steps=2)
    for name, one in tensors.items():
        if name.endswith(("@3", "@4")):
            half[f"{name[:-1]}{int(name[-1]) - 2}"] = one
    save(files[2], half)
    assert load(tmp_path / "between.safetensors").keys() <= half.keys()
    resumed = run(*files, tmp_path / "out.safetensors", steps=2)
    assert {name: one.data for name, one in resumed.items()} == {name: one.data for name, one in whole.items()}
    # Before the first step such a state is nobody's to give.
    del half["state:ScheduleFree.rows:step"]
    save(files[2], half)
    with pytest.raises(CompilerFailed, match=r"(?s)expected no tensor 'state:ScheduleFree.rows:z' before the first step, "
                       r"because 'z' starts at the parameter, found one.*'state:ScheduleFree.rows:step' says"):  # fmt: skip
        run(*files, tmp_path / "out.safetensors", steps=2)


def test_a_master_is_what_it_starts_at(tmp_path):
    """The first value of a bf16 parameter's master is the parameter; a later one has more bits."""
    text = "optimizer M(lr) {\n  master : f32\n  state z : f32 = param\n  z = z - lr * grad\n  param = param - lr * grad\n}\n"
    document = manifest(["M"], PLACEMENTS)
    for parameter in document["parameters"]:
        parameter["dtype"] = "bf16"
    found, _ = step(tmp_path, text + "route {\n  M(lr = 0.125) for rest\n}\n", document, inputs(document), steps=3)
    for parameter in document["parameters"]:
        name = parameter["name"]
        assert found[f"state:{name}:z"].data == found[f"state:{name}:master"].data, name
