"""The C++ extension: that it does what Python would, that it is used, and what happens without it."""

import gc
import os
import subprocess
import sys
import warnings
import weakref

import pytest
import torch
from models import SGD, Model, bits, make, same, set_gradients
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import stepc
from stepc.torch import Optimizer, build_extension, extension
from stepc.torch.binding import Binding


@pytest.fixture
def used(monkeypatch):
    """Tests that only make sense with the extension."""
    if not extension.path().exists():
        pytest.skip("the PyTorch extension was not built")
    monkeypatch.setenv(extension.VARIABLE, "1")


@pytest.fixture
def other_path(tmp_path, monkeypatch):
    """A folder without extension in the place of the package's."""
    monkeypatch.delenv(extension.VARIABLE, raising=False)
    file = tmp_path / extension.path().name
    monkeypatch.setattr(extension, "path", lambda: file)
    return file


def refuse(*arguments, **options):
    raise AssertionError("looked at from Python")


def test_nothing_is_looked_at_from_python(fake, used, monkeypatch):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    monkeypatch.setattr(Binding, "_check_record", refuse)
    monkeypatch.setattr(Binding, "_gradient_pointer", refuse)
    monkeypatch.setattr("stepc.torch.binding.signature", refuse)
    before = bits(model)
    set_gradients(model, 1)
    optimizer.step()
    assert not same(before, bits(model))
    model.b.grad = torch.ones(4, dtype=torch.float64).to(torch.float32)[::1]
    optimizer.step()
    model.b.data = model.b.data.clone()
    with pytest.raises(AssertionError, match="looked at from Python"):
        optimizer.step()


CHANGES = {
    "parameter": lambda model, state: setattr(model.w, "data", model.w.data.clone()),
    "frozen": lambda model, state: model.w.requires_grad_(False),
    "group": lambda model, state: None,
    "state": lambda model, state: state.update(m=state["m"].clone()),
    "memory of a state": lambda model, state: setattr(state["m"], "data", state["m"].clone()),
    "no state": lambda model, state: state.pop("m"),
    "dtype of a state": lambda model, state: setattr(state["m"], "data", state["m"].view(torch.int32)),
    "strides": lambda model, state: setattr(model.w, "data", model.w.data.view(3, 4).t()),
    "step": lambda model, state: state.update(step=torch.tensor(3)),
    "freed": lambda model, state: model.w.untyped_storage().resize_(0),
    "class": lambda model, state: setattr(model.w, "__class__", type("Own", (nn.Parameter,), {})),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_is_seen(fake, used, change):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    binding, groups = optimizer._binding, optimizer.param_groups
    assert binding.is_bound(groups)
    if change == "group":
        groups = [dict(group) for group in groups]
        groups[0]["params"] = groups[0]["params"][::-1]
    # Other tensors in other orders of the states' dict are the same.
    state = optimizer.state[model.w]
    state["m"] = state.pop("m")
    assert binding.is_bound(groups) == (change != "group")
    CHANGES[change](model, state)
    assert not binding.is_bound(groups)


@pytest.mark.parametrize("gradient", [
    torch.ones(5, 2).t(), torch.ones(2, 5).to_sparse(), torch.ones(2, 5, dtype=torch.float64),
    torch.ones(5, 2),
])  # fmt: skip
def test_unusual_gradients_are_left_to_python(fake, used, gradient):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    table = optimizer._binding._table
    assert table.bind_gradients() == []
    position = [record.name for record in optimizer._binding.records].index("v")
    model.v.grad_dtype = None
    model.v.grad = None
    assert table.bind_gradients() == []
    # torch compares shapes where a gradient is set, but not where a parameter changes.
    data, model.v.data = model.v.data, gradient.to_dense() if gradient.is_sparse else gradient
    model.v.grad = gradient
    model.v.data = data
    assert table.bind_gradients() == [position]
    assert table.look(optimizer.param_groups) == [position]


def test_a_class_with_its_own_gradient_is_bound_from_python(fake, used):
    class Own(nn.Parameter):
        @property
        def grad(self):
            return self.other

        @grad.setter
        def grad(self, value):
            self.other = value

    model = Model()
    plain = Model()
    model.w = Own(model.w.detach().clone())
    for one in (model, plain):
        optimizer = make(one)
        for seed in range(3):
            set_gradients(one, seed)
            optimizer.step()
    assert same(bits(model), bits(plain))
    assert make(model)._binding is None and optimizer._binding._table is not None


@pytest.mark.parametrize("spec", ["rule {}", "master {}"])
def test_both_ways_give_the_same(fake, used, monkeypatch, spec):
    """Bits, step counts and what autograd counts, while memory moves and weights are written."""
    found = []
    for way in ("1", "0"):
        monkeypatch.setenv(extension.VARIABLE, way)
        model = Model(torch.bfloat16 if "master" in spec else torch.float32)
        optimizer = make(model, spec)
        versions = []
        for seed in range(6):
            set_gradients(model, seed)
            before = [p._version for p in model.parameters()]
            if seed == 2:
                optimizer.state[model.w]["m"] = optimizer.state[model.w]["m"].clone()
            if seed == 3:
                model.w.data = model.w.data.clone()
                model.v.data = model.v.data.t().contiguous().t()
            if seed == 4:
                with torch.no_grad():
                    model.w[0, 0] = 3.0
                before = [p._version for p in model.parameters()]
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*strides")
                optimizer.step()
            if seed != 3:
                versions.append([p._version - v for p, v in zip(model.parameters(), before, strict=True)])
        states = [value.clone() for p in model.parameters() for value in optimizer.state[p].values()]
        found.append((bits(model) + states, versions))
        assert (optimizer._binding._table is not None) == (way == "1")
    assert same(found[0][0], found[1][0]) and found[0][1] == found[1][1]


def test_an_optimizer_in_a_cycle_is_collected(fake, used):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    model.w.optimizer = optimizer
    seen = weakref.ref(optimizer), weakref.ref(model.w)
    del optimizer, model
    gc.collect()
    assert [one() for one in seen] == [None, None]


def _sharded(rank):
    """FSDP2 by both ways, and gradients whose spec is equal but not the same object."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    results = []
    for way in ("1", "0"):
        os.environ[extension.VARIABLE] = way
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 1))  # rank 1 holds nothing of the last
        fully_shard(model, mesh=mesh)
        optimizer = Optimizer(model.named_parameters(), SGD, timeout=60.0)
        for seed in range(3):
            optimizer.zero_grad()
            model(torch.full((2, 6), seed + rank + 1.0)).sum().backward()
            if seed == 2:
                p = model[0].weight
                p.grad = DTensor.from_local(p.grad._local_tensor, mesh, p.placements, run_check=False,
                                            shape=p.shape, stride=p.stride())  # fmt: skip
                assert p.grad._spec is not p._spec
            counted = [(p._version, p._local_tensor._version) for p in model.parameters()]
            binding = optimizer._binding
            if binding is not None and way == "1":
                assert binding.is_bound(optimizer.param_groups) and binding._unusual == []
            optimizer.step()
            after = [(p._version, p._local_tensor._version) for p in model.parameters()]
            assert all(x < y and z < w for (x, z), (y, w) in zip(counted, after, strict=True))
        results.append([p._local_tensor.detach().clone() for p in model.parameters()])
        # A null address with elements is no empty shard.
        model[0].weight.grad._local_tensor.untyped_storage().resize_(0)
        with pytest.raises(stepc.GradientError, match="'0.weight': gradient: expected memory, found a freed"):
            optimizer.step()
    return same(*results)


def test_shards_are_bound_by_their_local_tensors(real, used):
    assert run_ranks(_sharded, 2) == [True, True]


def steps(model):
    optimizer = make(model)
    for seed in range(2):
        set_gradients(model, seed)
        optimizer.step()
    return optimizer


def test_without_the_extension_python_serves(fake, other_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert steps(Model())._binding._table is None
    monkeypatch.setenv(extension.VARIABLE, "1")
    with pytest.raises(stepc.StepcError, match="expected the PyTorch extension, found none that fits"):
        steps(Model())
    monkeypatch.setenv(extension.VARIABLE, "yes")
    with pytest.raises(stepc.StepcError, match="STEPC_TORCH_EXTENSION: expected 0 or 1, found 'yes'"):
        steps(Model())


@pytest.mark.parametrize("fault", ["no library", "another torch"])
def test_an_extension_that_does_not_fit_is_left_aside_with_one_warning(
    fake, used, other_path, monkeypatch, fault
):
    if fault == "no library":
        other_path.write_bytes(b"no library")
    else:
        other_path.symlink_to(extension._FOLDER / other_path.name)
        monkeypatch.setattr(extension, "stamp", lambda: "another")
    expected = bits_with(fault, monkeypatch)
    with pytest.warns(UserWarning, match="PyTorch extension .* is not used.*build it with") as told:
        optimizer = steps(model := Model())
        steps(Model())
    assert len(told) == 1 and told[0].filename == __file__
    assert optimizer._binding._table is None and same(bits(model), expected)


def bits_with(fault, monkeypatch):
    """What steps give without any extension."""
    with monkeypatch.context() as patch:
        patch.setenv(extension.VARIABLE, "0")
        steps(model := Model())
    return bits(model)


def test_a_failing_build_warns_and_leaves_nothing(fake, other_path, monkeypatch, capfd):
    monkeypatch.setenv("CXX", f"{sys.executable} -c 'import sys; sys.exit(\"no such header\")'")
    assert build_extension.main() == 1
    assert "warning: the PyTorch extension was not built, so steps cost" in (text := capfd.readouterr().err)
    assert "no such header" in text
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert build_extension.main() == 1
    assert "No such file" in capfd.readouterr().err
    assert list(other_path.parent.iterdir()) == []
    assert steps(Model())._binding._table is None


def test_what_fits_is_not_built_again(used, monkeypatch):
    monkeypatch.setattr(subprocess, "run", refuse)
    assert build_extension.main() == 0
    monkeypatch.setattr(extension, "stamp", lambda: "another")
    with pytest.raises(AssertionError):
        build_extension.main()
