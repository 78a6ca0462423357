"""Step counts and hyperparameters in the device's memory: read and counted by kernels, never by the host."""

import numpy as np
import pytest
from bound import DEVICE, HOST, Bound, compiled, traced
from stepc.errors import ArgumentError

STEPS = 4


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("emulated"), "--target", "emulated")


def test_results_do_not_depend_on_where_numbers_stand(emulated):
    expected = traced(Bound(emulated, HOST), STEPS)
    assert traced(Bound(emulated, DEVICE), STEPS) == expected
    # They matter: a schedule that ends, and counts that begin elsewhere, give other bits.
    assert (
        traced(Bound(emulated, DEVICE), STEPS, lambda bound, step: bound.hyperparameter("b", "lr", 0.5))
        != expected
    )
    late = Bound(emulated, DEVICE)
    late.steps += 10
    assert traced(late, STEPS)[0]["b"] != expected[0]["b"]


def test_the_device_counts_what_a_step_does_not_skip(tmp_path):
    text = """optimizer R(lr, beta = 0.9) { state m : f32
  m = beta * m + grad
  param = param - lr * m / (1 - beta ^ step) }
route { R(lr = 0.1, missing_grad = skip) for rest }
"""
    (tmp_path / "r.optim").write_text(text)
    library = compiled(tmp_path, "--target", "emulated", spec=tmp_path / "r.optim")
    results = []
    for memory in (HOST, DEVICE):
        bound = Bound(library, memory)
        for absent in ({"v"}, set(), {"b", "w"}):
            bound.new_gradients()
            for p in bound.instance.parameters:
                if p.name in absent:
                    bound.instance.bind_gradient(p.index, 0, 0)
            bound.instance.step()
        assert dict(zip(bound.names, bound.steps.tolist(), strict=True)) == {"w": 2, "v": 2, "b": 2, "s": 3}
        results.append(bound.everything())
    assert results[0] == results[1]


def test_counts_of_the_device_are_not_read_by_the_host(emulated):
    bound = Bound(emulated, DEVICE)
    bound.steps -= 5  # what the host refuses of its own
    bound.new_gradients()
    bound.instance.step()
    assert bound.steps.tolist() == [-4] * 4
    host = Bound(emulated, HOST)
    host.steps -= 5
    host.new_gradients()
    with pytest.raises(ArgumentError, match="expected a step count of parameter .* from 0 to .*, found -5"):
        host.instance.step()


def test_a_cpu_has_the_hosts_memory_alone(tmp_path, emulated):
    bound = Bound(compiled(tmp_path / "cpu"), HOST)
    steps = np.zeros(4, np.int64)
    with pytest.raises(ArgumentError, match=r"step counts: expected host memory \(0\), found memory 1"):
        bound.instance._call("bind_steps", steps.ctypes.data, DEVICE)
    bound = Bound(emulated, DEVICE)
    with pytest.raises(
        ArgumentError, match=r"step counts: expected host memory \(0\) or the device's \(1\), found memory 2"
    ):
        bound.instance._call("bind_steps", steps.ctypes.data, 2)
    # What was bound before still is, also in the host's memory once more.
    bound.new_gradients()
    bound.instance.step()
    bound.instance._call("bind_steps", steps.ctypes.data, HOST)
    bound.instance.step()
    assert (bound.steps.tolist(), steps.tolist()) == ([1] * 4, [1] * 4)
