"""States of the model: one number each, the same on all ranks, which a skipped step changes only above the statement that skips it."""

import numpy as np
import pytest
from bound import compiled
from compiler import STEPC, CompilerFailed, run, save, tensor
from random_layouts import Mesh
from stub_driver import STUB
from test_model import SEED, different, reduced
from test_model_cases import drawn, parameter, write
from test_skipped_steps import TARGETS, stepped_and_replayed

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SPEC = """model(decay = 0.5) {
  state average : f32 = 2
  state seen : f32[]
  state most : f32 = -1
  state given : f32 = 3
  let total = norm(grad)
  seen = seen + 1
  skip when not finite(total) or total > 50 * average
  average = decay * average + total / 4
  seen = seen + 10
  most = max(most, max(grad))
  given = given
  grad = grad / average * step
}
optimizer Sgd(lr) {
  state z : f32[]
  state m : f32
  z = model.average + model.given
  m = 0.5 * m + grad
  param = param - lr * m
}
route { Sgd(lr = 0.5) for rest }
"""
MESH = Mesh("mesh", (4,), [0, 1, 2, 3])
PARAMETERS = [
    parameter("a", (9, 4)),
    parameter("b", (6,), placements=["R"], dtype="bf16"),
    parameter("c", (3, 8), placements=["S(1)"]),
]
STEPS = 6


def tensors(steps=STEPS):
    draw = np.random.default_rng(int(SEED))
    made = drawn(draw, PARAMETERS)
    for step in range(1, steps + 1):
        for each in PARAMETERS:
            values = draw.standard_normal(each["shape"]) * (1e4 if step == 2 else 1)
            if step == 4 and each["name"] == "c":
                values[2, 7] = np.inf
            made[f"grad:{each['name']}@{step}"] = tensor(values, each["dtype"])
    return made


def expected(given, steps=STEPS):
    """In f32, as the definition says."""
    f32 = np.float32
    average, seen, most, taken = f32(2), f32(0), f32(-1), 0
    for step in range(1, steps + 1):
        gradients = [given[f"grad:{each['name']}@{step}"].array() for each in PARAMETERS]
        total = reduced("norm", gradients)
        seen += f32(1)
        if not np.isfinite(total) or total > f32(50) * average:
            continue
        average = f32(0.5) * average + total / f32(4)
        seen += f32(10)
        most = max(most, reduced("max", gradients))
        taken += 1
    return {"average": average, "seen": seen, "most": most, "given": f32(3), "step": taken}


def held(found):
    return {name[12:]: each.array()[()] for name, each in found.items() if name.startswith("state:model:")}


@pytest.mark.parametrize("target", TARGETS)
def test_states_are_what_the_definition_says(tmp_path, target):
    given = tensors()
    found = run(*write(tmp_path, SPEC, [MESH], PARAMETERS, given), *TARGETS[target], steps=STEPS)
    wanted = expected(given)
    assert wanted["step"] == STEPS - 2
    if target == "reference":
        assert held(found) == pytest.approx(wanted, rel=1e-6)
        return
    assert held(found) == wanted
    assert {float(found[f"state:{each['name']}:z"].array()) for each in PARAMETERS} == {
        wanted["average"] + wanted["given"]
    }


@pytest.mark.parametrize("target", ["cpu", "graph", "interpret"])
def test_a_run_goes_on_with_them(tmp_path, target):
    """Three steps, and three more from what they wrote, on another mesh."""
    given = tensors()
    whole = run(*write(tmp_path / "whole", SPEC, [MESH], PARAMETERS, given), *TARGETS[target], steps=STEPS)
    first = {name: each for name, each in given.items() if name.split("@")[-1] not in ("4", "5", "6")}
    half = run(*write(tmp_path / "half", SPEC, [MESH], PARAMETERS, first), *TARGETS[target], steps=3)
    later = {
        f"grad:{each['name']}@{step}": given[f"grad:{each['name']}@{step + 3}"]
        for each in PARAMETERS
        for step in (1, 2, 3)
    }
    two = Mesh("mesh", (2,), [1, 0])
    again = run(*write(tmp_path / "again", SPEC, [two], PARAMETERS, half | later), *TARGETS[target], steps=3)
    assert not different(again, whole)


REFUSED = {
    "state:model:averag": (tensor(np.float32(1), "f32"), "expected a state of the model (given, most, seen, average, step), found 'state:model:averag'"),
    "state:model:seen": (tensor(np.ones(2), "f32"), "expected one number (F32 []) in 'state:model:seen', found F32 [2]"),
    "state:model:most": (tensor(np.float32(1), "bf16"), "expected one number (F32 []) in 'state:model:most', found BF16 []"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("target", ["interpret", "reference"])
def test_tensors_that_are_no_states_are_refused(tmp_path, name, target):
    given, said = REFUSED[name]
    files = write(tmp_path, SPEC, [MESH], PARAMETERS, tensors(1))
    save(files[2], tensors(1) | {name: given})
    with pytest.raises(CompilerFailed) as failed:
        run(*files, *TARGETS[target])
    assert said in str(failed.value)


@pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")
def test_replays_of_a_trainers_graph_change_them(tmp_path):
    folder = tmp_path / "stub"
    folder.mkdir()
    (folder / "states.optim").write_text(SPEC)
    made = compiled(folder, "--target", "emulated", spec=folder / "states.optim", STEPC_RUNTIME_DIR=STUB)
    results = []
    for bound in stepped_and_replayed(made, 4, ("v", (0, 1), np.nan, (1, 2))):
        assert float(bound.states["model", "seen"]) == 4 + 20
        results.append(bound.everything())
    assert results[0] == results[1]
