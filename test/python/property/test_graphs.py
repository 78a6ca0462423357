"""Steps as graphs of the device's: one that an instance records, and those that a trainer captures.

On `emulated`, and on a driver that is the host, with streams in orders that seeds draw. STEPC_SEED repeats a
run.
"""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from bound import DEVICE, HOST, Bound, compiled, traced
from cases import STEPS, random_batch
from compiler import run, stepc
from stepc._device import Device
from stepc._library import Instance
from stepc.errors import DeviceError, GraphError
from stub_driver import GLOBAL, RELAXED, STUB, THREAD_LOCAL, StubDriver
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")

SKIPS = """optimizer R(lr, beta = 0.9) { state m : f32
  m = beta * m + grad
  param = param - lr * m / (1 - beta ^ step) }
route { R(lr = 0.1, missing_grad = skip) for rest }
"""


@pytest.mark.parametrize("index", range(draws(1)))
def test_replays_of_random_programs_give_the_bits_of_the_cpu(tmp_path, index):
    batch = random_batch(f"{SEED}-graph-{index}", 12)
    batch.waves = 1 + index
    batch.write(tmp_path)
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    expected = run(*files, tmp_path / "cpu.safetensors", *batch.options(), steps=STEPS)
    for name, variables in {"gpu": {"STEPC_RUNTIME_DIR": STUB}, "emulated": {}}.items():
        stepc("compile", files[0], "-m", files[1], *batch.options(), "--target", "emulated", "-o", tmp_path / name, **variables)
    orders = [("gpu", {}), ("gpu", {"STEPC_STUB_ASYNC": index + 1}), ("emulated", {"STEPC_EMULATED_SEED": index + 1})]
    for name, streams in orders:
        library = tmp_path / name / "libspec.so"
        found = run(
            *files, tmp_path / "out.safetensors", "--graph", "--library", library, steps=STEPS, **streams
        )
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, batch {index}, {name}, {streams}:\n" + "\n".join(wrong)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("stub"), "--target", "emulated", STEPC_RUNTIME_DIR=STUB)


@pytest.fixture(scope="module")
def driver():
    return StubDriver()


@pytest.mark.parametrize("memory", [HOST, DEVICE])
def test_replays_follow_what_is_bound_and_scheduled(library, memory):
    expected = traced(Bound(library, HOST), STEPS)
    assert traced(Bound(library, memory, graph=True), STEPS) == expected
    counted = Bound(library, memory, graph=True)
    traced(counted, STEPS)
    executed, planned = counted.instance.counters()
    assert executed == planned and executed["launches"] > 0


def apart(library, steps, **environment):
    """Steps that replay a graph, in a process whose driver reads the environment."""
    made = f"Bound(Library({str(library.path)!r}), graph=True)"
    script = f"import sys; sys.path[:0] = {sys.path!r}\nfrom bound import *\ntraced({made}, {steps})"
    variables = {"PATH": os.environ["PATH"]} | {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=False
    )


def test_a_step_is_one_launch(tmp_path):
    counts = []
    for parameters in (20, 200):
        shapes = {f"w{i}": [64] for i in range(parameters)}
        library = compiled(
            tmp_path / str(parameters), "--target", "emulated", shapes=shapes, STEPC_RUNTIME_DIR=STUB
        )
        calls = []
        for steps in (9, 17):
            log = tmp_path / f"log-{parameters}-{steps}"
            done = apart(library, steps, STEPC_STUB_LOG=log)
            assert done.returncode == 0, done.stderr
            calls.append(Counter(log.read_text().split()))
        few, many = calls
        # Waiting for the end of a step asks as often as it takes; whose a new gradient is is asked by the
        # bind.
        apart_from = ("cuEventQuery", "cuPointerGetAttributes")
        counts.append({name: (many[name] - few[name]) / 8 for name in many if many[name] > few[name] and name not in apart_from})
    assert counts[0] == counts[1], counts
    assert (
        counts[0]["cuGraphLaunch"] == counts[0]["cuMemcpyHtoDAsync_v2"] == 1
        and "cuLaunchKernel" not in counts[0]
    ), counts
    assert sum(counts[0].values()) <= 24, counts


FAULTS = [
    ("cuStreamBeginCapture_v2:0", "recording the step as a graph: recording a step failed"),
    ("cuLaunchKernel:1", "recording the step as a graph: starting a kernel failed"),
    ("cuStreamEndCapture:0", "recording the step as a graph: recording a step failed"),
    ("cuGraphInstantiateWithFlags:0", "recording the step as a graph: recording a step failed"),
    ("cuGraphLaunch:1", "replaying a step failed"),
    # Of the lists, one copy at create and one in each step; of events, one to begin with.
    ("cuMemcpyHtoDAsync_v2:2", "copying to the GPU failed"),
    ("cuStreamWaitEvent:4", "following the trainer's stream failed"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=[fault for fault, message in FAULTS])
def test_what_the_driver_refuses_is_an_error(tmp_path, library, fault, message):
    done = apart(library, 3, STEPC_STUB_FAILS=fault)
    assert done.returncode == 1 and message in done.stderr and "said the stub" in done.stderr, done.stderr


def test_a_cpu_has_no_graphs(tmp_path):
    library = compiled(tmp_path)
    with pytest.raises(
        GraphError, match="the options ask for a graph of the step, and the device 'cpu' has none"
    ):
        Bound(library, graph=True)
    bound = Bound(library)
    bound.new_gradients()
    bound.instance.refresh()  # kernels read what is bound itself
    bound.instance.step()


def captured(driver, bound, stream, mode=GLOBAL, steps=1):
    def work():
        for _ in range(steps):
            bound.instance.enqueue()

    return driver.capture(stream, work, mode)


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("own", [False, True])
def test_replays_of_a_trainers_graph_are_steps(library, driver, mode, own):
    expected = traced(Bound(library, HOST), STEPS)
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream), graph=own)
    bound.new_gradients()
    before = bound.everything()
    graph = captured(driver, bound, stream, mode)
    assert bound.everything() == before, "a capture is no step"
    bound.generator = Bound(library, HOST).generator  # the gradients that were expected
    found = []
    for step in range(STEPS):
        bound.new_gradients()
        for name in bound.names:
            bound.hyperparameter(name, "lr", 0.02 / (1 + step))
        bound.instance.refresh()
        driver.replay(graph, stream)
        found.append(bound.everything())
    assert found == expected
    # Steps between replays are the same steps.
    bound.instance.step()
    assert bound.steps.tolist() == [STEPS + 1] * len(bound.names)
    driver.call("cuGraphExecDestroy", graph)
    bound.instance.close()


def test_gradients_in_place_need_no_refresh(library, driver):
    stream = driver.stream()
    results = []
    for replays in (False, True):
        bound = Bound(library, DEVICE, device=Device(stream=stream))
        bound.new_gradients()
        if replays:
            graph = captured(driver, bound, stream, steps=2)
        for _ in range(2):
            for gradient in bound.gradients.values():
                gradient *= np.float32(0.5)
            if replays:
                driver.replay(graph, stream)
            else:
                bound.instance.step()
                bound.instance.step()
        results.append(bound.everything())
        if replays:
            driver.call("cuGraphExecDestroy", graph)
    assert results[0] == results[1]


def test_an_instance_outlives_the_graphs_that_hold_its_steps(library, driver):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    bound.new_gradients()
    first, second = (captured(driver, bound, stream, steps=steps) for steps in (1, 2))
    held = (
        "3 steps of this instance stand in graphs of the trainer's: expected that these are destroyed first"
    )
    with pytest.raises(GraphError, match=held):
        bound.instance.close()
    driver.call("cuGraphExecDestroy", second)
    with pytest.raises(GraphError, match="1 step of this instance"):
        bound.instance.close()
    driver.replay(first, stream)
    assert bound.steps.tolist() == [1] * len(bound.names)
    driver.call("cuGraphExecDestroy", first)
    bound.instance.close()


def refused(driver, bound, stream, call, message):
    """What a capture does not take changes nothing, and poisons nothing."""
    bound.new_gradients()
    before = bound.everything()
    with pytest.raises(GraphError, match=message):
        driver.capture(stream, lambda: call(bound.instance))
    bound.instance.step()
    assert bound.everything() != before and set(bound.steps.tolist()) == {1}
    bound.instance.close()


def test_what_a_graph_cannot_hold_is_refused(tmp_path, library, driver):
    stream = driver.stream()
    device = Device(stream=stream)
    enqueue = Instance.enqueue
    counts = "a graph captures this step: expected step counts in the device's memory"
    refused(driver, Bound(library, HOST, device=device), stream, enqueue, counts)
    numbers = Bound(library, DEVICE, device=device)
    numbers.instance.bind_hyperparameters(None, 0, 0, [])
    values = "a graph captures this step: expected hyperparameters that are bound in the device's memory"
    refused(driver, numbers, stream, enqueue, values)
    waits = "step: expected enqueue where a graph captures the stream"
    refused(driver, Bound(library, DEVICE, device=device), stream, Instance.step, waits)
    refreshes = "refresh: expected a stream that no graph captures"
    refused(driver, Bound(library, DEVICE, device=device), stream, Instance.refresh, refreshes)
    (tmp_path / "r.optim").write_text(SKIPS)
    skipping = compiled(tmp_path, "--target", "emulated", spec=tmp_path / "r.optim", STEPC_RUNTIME_DIR=STUB)
    skips = "route 'R' says missing_grad = skip, on which ranks agree anew"
    refused(driver, Bound(skipping, DEVICE, device=device), stream, enqueue, skips)


def test_steps_of_one_graph_read_the_same_memory(library, driver):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    bound.new_gradients()

    def work():
        bound.instance.enqueue()
        bound.instance.enqueue()
        kept.append(bound.gradients)
        bound.new_gradients()
        bound.instance.enqueue()

    kept = []
    with pytest.raises(
        GraphError, match="expected what was bound for the step before, which the same graph holds"
    ):
        driver.capture(stream, work)
    # Of another graph they are others'.
    graph = captured(driver, bound, stream)
    driver.replay(graph, stream)
    assert bound.steps.tolist() == [1] * len(bound.names)
    driver.call("cuGraphExecDestroy", graph)
    bound.instance.close()


IN_A_CAPTURE = [
    ("cuStreamGetCaptureInfo_v2", "asking the trainer's stream failed"),
    ("cuMemcpyHtoDAsync_v2", "copying to the GPU failed"),
    ("cuEventSynchronize", "waiting for the GPU failed"),
    ("cuUserObjectCreate", "counting the trainer's graphs failed"),
    ("cuGraphRetainUserObject", "counting the trainer's graphs failed"),
]


@pytest.mark.parametrize(("function", "message"), IN_A_CAPTURE)
def test_what_the_driver_refuses_in_a_capture_is_an_error(library, driver, function, message):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    bound.new_gradients()
    driver.library.stepc_stub_fail(
        f"{function}:{driver.library.stepc_stub_calls(function.encode())}".encode()
    )
    try:
        with pytest.raises(DeviceError, match=message):
            driver.capture(stream, bound.instance.enqueue)
    finally:
        driver.library.stepc_stub_fail(b"")
    bound.instance.recover()
    # What did not arrive is brought anew, and another capture holds the step.
    graph = captured(driver, bound, stream)
    driver.replay(graph, stream)
    assert bound.steps.tolist() == [1] * len(bound.names)
    driver.call("cuGraphExecDestroy", graph)
    bound.instance.close()


def test_numbers_stay_where_graphs_read_them(library, driver):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    bound.new_gradients()
    graph = captured(driver, bound, stream)
    with pytest.raises(
        GraphError,
        match=r"step counts: expected the device's memory \(1\) while graphs of the trainer's hold steps",
    ):
        bound.instance.bind_steps(bound.steps.ctypes.data, HOST)
    with pytest.raises(GraphError, match=r"hyperparameters: expected the device's memory \(1\)"):
        bound.instance.bind_hyperparameters(None, 0, 0, [])
    bound.instance.bind_steps(bound.steps.ctypes.data, DEVICE)
    driver.call("cuGraphExecDestroy", graph)
    bound.instance.close()


def test_a_stream_that_a_graph_captures_is_refused_at_create(library, driver):
    stream = driver.stream()
    with pytest.raises(
        DeviceError, match="expected a stream that no graph captures, found one that a graph does"
    ):
        driver.capture(stream, lambda: Bound(library, device=Device(stream=stream)))
    Bound(library, device=Device(stream=stream)).instance.close()


def test_a_capture_that_broke_is_told(library, driver):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    bound.new_gradients()
    driver.call("cuStreamBeginCapture_v2", stream, GLOBAL)
    assert driver.try_("cuStreamSynchronize", stream) == 900
    with pytest.raises(DeviceError, match="found a capture that an earlier call broke"):
        bound.instance.enqueue()
    assert driver.try_("cuStreamEndCapture", stream, driver.out()) == 901
    bound.instance.step()
    bound.instance.close()


def test_what_is_missing_is_found_before_anything_is_captured(library, driver):
    stream = driver.stream()
    bound = Bound(library, DEVICE, device=Device(stream=stream))
    with pytest.raises(Exception, match="the gradient of parameter 'w' was never bound"):
        driver.capture(stream, bound.instance.enqueue)
    with pytest.raises(Exception, match="the gradient of parameter 'w' was never bound"):
        bound.instance.refresh()
    bound.instance.close()
