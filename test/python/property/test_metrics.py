"""Metrics: numbers that steps give to the trainer, of the model and of each parameter's matrices."""

import math

import numpy as np
import pytest
from bound import DEVICE, HOST, Bound, compiled
from compiler import STEPC, run, tensor
from random_layouts import Mesh
from stepc import _abi
from stepc.errors import ArgumentError
from stub_driver import STUB
from test_model import SEED, different, reduced
from test_model_cases import CLIP, FLAT, added, drawn, explained, of_64, parameter, write
from test_skipped_steps import EACH_TARGET, TARGETS, stepped_and_replayed

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SPEC = """model(max_norm = 3) {
  state average : f32 = 2
  let total = norm(grad)
  metric before = average
  skip when not finite(total) or total > 50 * average
  metric total = total
  metric taken = step
  average = 0.5 * average + total / 4
  metric after = average
  metric max_norm = max_norm
  grad = grad / average
}
optimizer Sgd(lr) {
  master : f32
  state m : bf16
  m = 0.5 * m + grad
  let change = lr * m
  metric lr = lr
  metric update = rms(change)
  metric largest = max(abs(param))
  param = param - change
}
route { Sgd(lr = 0.5, missing_grad = skip) for rest }
"""
MESH = Mesh("mesh", (4,), [0, 1, 2, 3])
THIRDS = {"axis": "rows", "runs": [[[0, 2], [7, 9]], [[2, 7]]]}  # rows of two parts
PARAMETERS = [
    parameter("a", (9, 4)),
    parameter("b", (6,), placements=["R"], dtype="bf16"),
    parameter("c", (3, 8), placements=["S(1)"], grad_placements=["P(sum)"]),
    parameter("stack", (3, 4, 5), batch_axes=1, dtype="bf16"),
    parameter("fused", (9, 6), placements=["S(1)"], blocks=THIRDS),
    parameter("apart", (8, 3), placements=["R"], state_placements=["S(0)"]),
    parameter("owned", (5, 2), placements=["owned(2)"]),
]
MATRICES = {"stack": [np.s_[0], np.s_[1], np.s_[2]], "fused": [np.s_[[0, 1, 7, 8]], np.s_[2:7]]}
STEPS = 6
SPOILED, TOO_LARGE, ABSENT = 4, 2, 5  # steps


def tensors(steps=STEPS):
    draw = np.random.default_rng(int(SEED))
    made = drawn(draw, PARAMETERS)
    for step in range(1, steps + 1):
        for each in PARAMETERS:
            shape = (4, *each["shape"]) if "grad_placements" in each else each["shape"]
            values = draw.standard_normal(shape) * (1e4 if step == TOO_LARGE else 1)
            if step == SPOILED and each["name"] == "c":
                values[3, 2, 7] = np.inf
            if step != ABSENT or each["name"] != "a":
                made[f"grad:{each['name']}@{step}"] = tensor(values, each["dtype"])
    return made


def bf16(values):
    return tensor(values, "bf16").array().astype(np.float32)


def expected(given, steps=STEPS):
    """What all metrics are after the last step, in f32 as the definition says."""
    f32 = np.float32
    average, taken, found = f32(2), 0, {}
    params = {each["name"]: given[f"param:{each['name']}"].array().astype(f32) for each in PARAMETERS}
    ms = {name: np.zeros_like(value) for name, value in params.items()}
    for step in range(1, steps + 1):
        grads = {name: given[f"grad:{name}@{step}"].array().astype(f32) for name in params if f"grad:{name}@{step}" in given}
        for one in grads["c"][1:]:
            grads["c"][0] += one
        grads["c"] = grads["c"][0]
        total = reduced("norm", grads.values())
        skips = not np.isfinite(total) or total > f32(50) * average
        found |= {"model:before": average, "model:total": total, "model:taken": f32(taken + 1), "model:max_norm": f32(3)}
        # The metric stands below the statement that skips, and shows what the state would have become.
        next_average = f32(0.5) * average + total / f32(4)
        found["model:after"] = next_average
        if skips:
            continue
        average, taken = next_average, taken + 1
        for name, grad in grads.items():
            ms[name] = bf16(f32(0.5) * ms[name] + grad / average)
            change = f32(0.5) * ms[name]
            for metric, kind, of in (("update", "rms", change), ("largest", "max", abs(params[name]))):
                numbers = [reduced(kind, [of[place]]) for place in MATRICES.get(name, [np.s_[:]])]
                found[f"{name}:{metric}"] = np.array(numbers if name in MATRICES else numbers[0], f32)
            found[f"{name}:lr"] = np.full_like(found[f"{name}:update"], 0.5)
            params[name] = params[name] - change
    return found, taken


def held(found):
    return {name[7:]: each.array() for name, each in found.items() if name.startswith("metric:")}


@pytest.mark.parametrize("target", EACH_TARGET)
def test_metrics_are_what_the_definition_says(tmp_path, target):
    given = tensors()
    found = run(*write(tmp_path, SPEC, [MESH], PARAMETERS, given), *TARGETS[target], steps=STEPS)
    wanted, taken = expected(given)
    assert taken == STEPS - 2
    metrics = held(found)
    assert metrics.keys() == wanted.keys()
    for name, value in wanted.items():
        if target == "reference":
            np.testing.assert_allclose(metrics[name], value, rtol=1e-5 if "model" in name else 1e-2, err_msg=name)
        else:
            assert metrics[name].shape == np.shape(value), name
            assert np.array_equal(metrics[name], value), (name, metrics[name], value)
    assert not [name for name in found if name.startswith("state:") and name.split(":")[2] in ("update", "total")]


@pytest.mark.parametrize("target", ["cpu", pytest.param("graph", marks=pytest.mark.tier("all"))])
def test_a_run_goes_on_without_them(tmp_path, target):
    """The output of a run is the input of the next, on another mesh: metrics in it are ignored."""
    given = tensors()
    whole = run(*write(tmp_path / "whole", SPEC, [MESH], PARAMETERS, given), *TARGETS[target], steps=STEPS)
    first = {name: each for name, each in given.items() if name.split("@")[-1] not in ("4", "5", "6")}
    half = run(*write(tmp_path / "half", SPEC, [MESH], PARAMETERS, first), *TARGETS[target], steps=3)
    later = {f"{name[:-1]}{int(name[-1]) - 3}": each for name, each in given.items() if name[-2:] in ("@4", "@5", "@6")}
    parameters = [{**each, "placements": ["R"]} for each in PARAMETERS if "grad_placements" not in each]
    contributions = {**PARAMETERS[2], "placements": ["R"]}
    one = Mesh("mesh", (4,), [3, 1, 0, 2])
    files = write(tmp_path / "again", SPEC, [one], [*parameters, contributions], half | later)
    again = run(*files, *TARGETS[target], steps=3)
    assert {name for name in half if name.startswith("metric:")}
    assert not different(again, whole)


@pytest.mark.parametrize("target", ["cpu", "graph"])
def test_a_parameter_without_gradients_has_no_number(tmp_path, target):
    given = {name: each for name, each in tensors(1).items() if not name.startswith("grad:stack")}
    found = held(run(*write(tmp_path, SPEC, [MESH], PARAMETERS, given), *TARGETS[target], steps=1))
    assert np.isnan(found["stack:update"]).all() and found["stack:update"].shape == (3,)
    assert np.isfinite(found["a:update"]) and np.isfinite(found["model:total"])


def test_metrics_of_the_model_send_nothing_more(tmp_path):
    plain = explained(tmp_path / "clip", CLIP, [FLAT], of_64(["S(0)"]))
    more = explained(tmp_path / "metric", CLIP.replace("  grad", "  metric grad_norm = total\n  grad"), [FLAT], of_64(["S(0)"]))
    assert more["exchanges"] == plain["exchanges"]
    assert not any(added(plain, more, "bytes_sent")) and not any(added(plain, more, "messages_sent"))
    assert not any(added(plain, more, "state_bytes"))


# --- The C interface ---


def library(folder, *options, **variables):
    folder.mkdir()
    (folder / "metrics.optim").write_text(SPEC.replace(", missing_grad = skip", "").replace("bf16", "f32"))
    return compiled(folder, *options, spec=folder / "metrics.optim", **variables)


def numbers(bound):
    return {
        f"{p.name}:{metric.name}": bound.instance.metrics(p.index, number)
        for p in bound.instance.parameters
        for number, metric in enumerate(p.metrics)
    }


def test_the_library_has_their_memory(tmp_path):
    made = library(tmp_path / "cpu")
    w, model = made.parameters[0], made.model
    assert [state.name for state in w.states] == ["m"] and [state.name for state in model.states] == ["average"]
    assert [metric.name for metric in w.metrics] == ["lr", "update", "largest"]
    assert [metric.name for metric in model.metrics] == ["before", "total", "taken", "after", "max_norm"]
    assert made.table.metric_count(-1) == made.table.metric_count(len(made.parameters)) == 0
    bound = Bound(made, HOST)
    assert all(math.isnan(value) for values in numbers(bound).values() for value in values)
    bound.new_gradients()
    bound.instance.step()
    found = numbers(bound)
    assert found["model:taken"] == [1] and found["w:lr"] == [0.5]
    for number, given in ((3, "metric 3 does not exist, there are 3"), (-1, "metric -1 does not exist")):
        with pytest.raises(ArgumentError, match=f"metrics: parameter 'w': {given}"):
            bound.instance._call("metrics", w.index, number, None, 0)
        with pytest.raises(ArgumentError, match=f"metric_info: parameter 'w': {given}"):
            bound.instance._call("metric_info", w.index, number, None)
    for call, index in (("metrics", -1), ("metric_info", len(made.parameters))):
        arguments = (0, None, 0) if call == "metrics" else (0, None)
        with pytest.raises(ArgumentError, match=f"{call}: parameter {index} does not exist"):
            bound.instance._call(call, index, *arguments)
    values = (_abi.c.c_float * 2)()
    for count, pointer, said in ((2, values, 2), (1, None, 0)):
        with pytest.raises(ArgumentError, match="metrics: expected a place for 1 number of metric 'update' of parameter "
                                                f"'w', found one for {said}"):  # fmt: skip
            bound.instance._call("metrics", w.index, 1, pointer, count)
    with pytest.raises(ArgumentError, match=r"state 1 does not exist"):  # nothing binds a metric
        bound.instance.bind_state(w.index, 1, 0, 0)
    with pytest.raises(ArgumentError, match=r"one of the 1 states or of the 3 metrics \(from -3 down\) of 'w', found -6"):
        bound.instance.shard_runs(w.index, _abi.METRIC - 3)


@pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")
@pytest.mark.parametrize("own", [False, True])
def test_replays_of_a_trainers_graph_write_them(tmp_path, own):
    made, results = library(tmp_path / "stub", "--target", "emulated", STEPC_RUNTIME_DIR=STUB), []
    for bound in stepped_and_replayed(made, 5, ("w", (5, 6), np.inf, (1, 4)), graph=own):
        assert bound.steps.tolist() == [3] * len(bound.names)
        found = numbers(bound)
        assert found["model:taken"] == [4] and found["model:total"] == [math.inf] and found["w:update"][0] > 0
        results.append(found)
    assert results[0] == results[1]


def test_targets_have_the_same_numbers(tmp_path):
    results = []
    for target, memory in (("cpu", HOST), ("interpret", HOST), ("emulated", DEVICE)):
        bound = Bound(library(tmp_path / target, "--target", target), memory)
        for _ in range(3):
            bound.new_gradients()
            bound.instance.step()
        results.append(numbers(bound))
    assert results[0] == results[1] == results[2]
