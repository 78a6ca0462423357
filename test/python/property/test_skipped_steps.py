"""Steps that the model skips: a run has the bits of a run without them, on every target, in graphs of the device and of the
trainer, and beside parameters that have no gradient.
"""

import numpy as np
import pytest
from bound import DEVICE, HOST, Bound, compiled
from compiler import STEPC, run, stepc, tensor
from random_layouts import Mesh
from stepc._device import Device
from stepc.errors import ArgumentError
from stub_driver import STUB, StubDriver
from test_model import POLAR, SEED, different
from test_model_cases import CLIP, FLAT, SGD, added, drawn, explained, of_64, parameter, route, write

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SKIP = CLIP.replace("  grad", "  skip when not finite(total)\n  grad")
RULES = f"""optimizer Muon(lr = 0.5) {{
  state m : f32
  state best : f32[rows]
  m = 0.9 * m + grad
  best = max(best, mean(m * m, over = columns))
  param = param - lr * orthogonalize(m, {POLAR}) / (1 + sqrt(best))
}}
optimizer Adam(lr = 0.01, beta = 0.9) {{
  master : f32
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta)
  v = lerp(v, grad ^ 2, 0.05)
  param = param - lr * (m / (1 - beta ^ step)) / (sqrt(v) + 1e-8)
}}
route {{
  Muon() for "w*"
  Adam(missing_grad = skip) for rest
}}
"""
# `races` does what `emulated` does, and watches it, so that one of them is enough when landing.
TARGETS = {
    "cpu": ["--target", "cpu"],
    "interpret": ["--target", "interpret"],
    "emulated": ["--target", "emulated:sm_80"],
    "graph": ["--target", "emulated:sm_80", "--graph"],
    "races": ["--target", "emulated:sm_80,races"],
    "waves": ["--target", "interpret", "--waves", "2"],
    "reference": ["--reference"],
}
EACH_TARGET = [pytest.param(name, marks=pytest.mark.tier("all" if name == "emulated" else "land")) for name in TARGETS]
MESH = Mesh("mesh", (4,), [0, 1, 2, 3])
PARAMETERS = [
    parameter("w0", (12, 8), grad_placements=["P(avg)"]),
    parameter("w1", (8, 20), placements=["S(1)"], dtype="bf16"),
    parameter("e", (9, 4)),
    parameter("bias", (7,), placements=["R"], dtype="bf16"),
]
GIVEN = (1, 3, 6, 7)  # the steps that are not skipped, of 7
SPOILED = {2: ("w0", np.nan), 4: ("e", np.inf), 5: ("bias", -np.inf)}


def spoiled(values, by):
    values = np.array(values)
    values.reshape(-1)[-1] = by
    return values


def tensors_of(steps):
    """The same gradients for each step, wherever it stands among `steps`."""
    draw = np.random.default_rng(int(SEED))
    made = drawn(draw, PARAMETERS)
    for step in range(1, 8):
        for each in PARAMETERS:
            name, count = each["name"], 4 if "grad_placements" in each else 1
            values = draw.standard_normal((count, *each["shape"]) if count > 1 else each["shape"])
            absent = name == "bias" and step in (3, 4)
            if step in steps and not absent:
                by = SPOILED.get(step)
                values = spoiled(values, by[1]) if by and by[0] == name else values
                made[f"grad:{name}@{steps.index(step) + 1}"] = tensor(values, each["dtype"])
    return made


@pytest.mark.parametrize("target", EACH_TARGET)
def test_a_run_has_the_bits_of_one_without_its_skipped_steps(tmp_path, target):
    """One is skipped after a step, two after one another. A parameter has no gradient in a step before and in one of them."""
    results = []
    for folder, steps in (("all", tuple(range(1, 8))), ("given", GIVEN)):
        files = write(tmp_path / folder, SKIP + RULES, [MESH], PARAMETERS, tensors_of(steps))
        results.append(run(*files, *TARGETS[target], steps=len(steps)))
    assert not different(*results), f"STEPC_SEED={SEED}"
    counts = {name: int(each.array()) for name, each in results[0].items() if name.endswith(":step")}
    assert counts == {"state:w0:step": 4, "state:w1:step": 4, "state:e:step": 4, "state:bias:step": 3,
                      "state:model:step": 4}  # fmt: skip


@pytest.mark.parametrize("by", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("target", ["cpu", "interpret", "graph"])
def test_one_element_on_one_of_16_ranks_skips_the_first_step_on_all(tmp_path, by, target):
    mesh = Mesh("mesh", (4, 4), list(range(16)))
    parameters = [
        parameter("a", (33, 5), placements=["S(0)", "R"]),
        parameter("b", (64,), placements=["R", "S(0)"]),
    ]
    draw = np.random.default_rng(int(SEED))
    tensors = {}
    for each in parameters:
        for kind in ("param:{}", "grad:{}@1", "grad:{}@2"):
            tensors[kind.format(each["name"])] = tensor(draw.standard_normal(each["shape"]), "f32")
    tensors["grad:b@1"] = tensor(spoiled(tensors["grad:b@1"].array(), by), "f32")
    first = {name: each for name, each in tensors.items() if not name.endswith("@2")}
    found = run(*write(tmp_path / "one", SKIP + SGD + route(), [mesh], parameters, first), *TARGETS[target])
    assert all(found[name] == each for name, each in tensors.items() if name.startswith("param"))
    assert all(int(each.array()) == 0 for name, each in found.items() if name.startswith("state"))
    twice = run(
        *write(tmp_path / "two", SKIP + SGD + route(), [mesh], parameters, tensors), *TARGETS[target], steps=2
    )
    again = {name.replace("@2", ""): each for name, each in tensors.items() if not name.endswith("@1")}
    once = run(*write(tmp_path / "once", SKIP + SGD + route(), [mesh], parameters, again), *TARGETS[target])
    assert not different(twice, once)


def test_skipping_sends_nothing_more(tmp_path):
    """Beside the exchanges of the norm, which clipping needs anyway."""
    plain = explained(tmp_path / "clip", CLIP, [FLAT], of_64(["S(0)"]))
    skips = explained(tmp_path / "skip", SKIP, [FLAT], of_64(["S(0)"]))
    assert skips["exchanges"] == plain["exchanges"]
    assert not any(added(plain, skips, "bytes_sent")) and not any(added(plain, skips, "messages_sent"))


# --- Step counts in the device's memory, and graphs of the trainer's ---

SPEC = SKIP + RULES.replace("missing_grad = skip", "")


def library(folder, *options, **variables):
    folder.mkdir()
    (folder / "skips.optim").write_text(SPEC)
    return compiled(folder, *options, spec=folder / "skips.optim", **variables)


def test_a_gpu_counts_the_steps_that_it_takes(tmp_path):
    """The host does not know which are skipped, so it cannot count them."""
    made = library(tmp_path / "emulated", "--target", "emulated")
    assert made.model.steps_on_device
    with pytest.raises(ArgumentError, match=r"step counts: expected the device's memory \(1\), because the device "
                                            r"alone knows whether the model skips a step, found the host's \(0\)"):  # fmt: skip
        Bound(made, HOST)
    cpu = library(tmp_path / "cpu")
    assert not cpu.model.steps_on_device
    results = []
    for bound in (Bound(made, DEVICE), Bound(cpu, HOST)):
        for step in range(4):
            bound.new_gradients()
            if step in (0, 2):
                bound.gradients["b"][3] = np.nan
            bound.instance.step()
        assert bound.steps.tolist() == [2] * len(bound.names)
        results.append(bound.everything())
    assert results[0] == results[1]


def stepped_and_replayed(made, steps, spoil, **options):
    """Yields what took `steps` steps, then what took them in replays of a trainer's graph. Gradients change in place, and
    nothing tells the library. `spoil` gives a parameter, an element, its value and the steps in which the gradient has it.
    """
    name, element, value, spoiled_steps = spoil
    driver = StubDriver()
    stream = driver.stream()
    for replays in (False, True):
        bound = Bound(made, DEVICE, device=Device(stream=stream), **options)
        bound.new_gradients()
        graph = driver.capture(stream, bound.instance.enqueue) if replays else None
        for step in range(steps):
            for gradient in bound.gradients.values():
                gradient *= np.float32(0.5)
            kept = bound.gradients[name].copy()
            if step in spoiled_steps:
                bound.gradients[name][element] = value
            if replays:
                driver.replay(graph, stream)
            else:
                bound.instance.step()
            bound.gradients[name][:] = kept
        yield bound
        if replays:
            driver.call("cuGraphExecDestroy", graph)
        bound.instance.close()


@pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")
@pytest.mark.parametrize("own", [False, True])
def test_replays_of_a_trainers_graph_skip_steps(tmp_path, own):
    made, results = library(tmp_path / "stub", "--target", "emulated", STEPC_RUNTIME_DIR=STUB), []
    for bound in stepped_and_replayed(made, 5, ("w", (5, 6), np.inf, (1, 2, 4)), graph=own):
        # A step that is no replay, behind a skipped one.
        bound.instance.step()
        assert bound.steps.tolist() == [3] * len(bound.names)
        results.append(bound.everything())
    assert results[0] == results[1]


@pytest.mark.parametrize("target", ["interpret", "reference"])
def test_watching_says_why_a_parameter_is_not_stepped(tmp_path, target):
    given = tensors_of((1, 3, 4))  # in step 2 one parameter has no gradient, step 3 is skipped
    files = write(tmp_path, SKIP + RULES, [MESH], PARAMETERS, given)
    said = stepc("run", *files[:1], "-m", files[1], "--tensors", files[2], "-o", files[3], "--steps", 3, "--watch", "grad",
                 *TARGETS[target])  # fmt: skip
    lines = [line for line in said.splitlines() if "not stepped" in line]
    assert lines == ["step 2, bias: not stepped, it has no gradient"] + [
        f"step 3, {each['name']}: not stepped, the model skips the step" for each in PARAMETERS
    ]
