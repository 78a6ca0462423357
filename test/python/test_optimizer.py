"""The optimizer in one process, over the fake library: groups, binding, checks."""

import copy
import pickle
import re

import pytest
import torch
from models import SPEC, Model, bits, make, same, set_gradients
from torch import nn

import stepc
from stepc.torch import Optimizer, export_manifest

pytestmark = pytest.mark.usefixtures("way")


def test_groups_exist_before_anything_is_compiled(fake):
    model = Model()
    optimizer = make(model, Momentum={"lr": 0.25})
    assert [group["route"] for group in optimizer.param_groups] == ["Momentum", "Plain"]
    momentum, plain = optimizer.param_groups
    assert momentum["param_names"] == ["w", "v"] and plain["param_names"] == ["b", "s"]
    assert (momentum["lr"], momentum["momentum"], plain["lr"]) == (0.25, 0.9, 0.5)
    assert len(optimizer.state) == 0 and optimizer._binding is None
    assert optimizer.routes == {"w": "Momentum", "v": "Momentum", "b": "Plain", "s": "Plain"}


def test_steps_match_torch_sgd(fake):
    model, twin = Model(), Model()
    optimizer = make(model)
    reference = torch.optim.SGD(
        [{"params": [twin.w, twin.v], "lr": 0.1, "momentum": 0.9},
         {"params": [twin.b, twin.s], "lr": 0.5, "momentum": 0.0}], lr=0.1)  # fmt: skip
    for step in range(4):
        for one, other in ((model, optimizer), (twin, reference)):
            set_gradients(one, step)
            other.step()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    assert optimizer.state[model.w]["step"].item() == 4
    assert optimizer.state[model.w]["step"].shape == ()
    assert set(optimizer.state[model.b]) == {"step"}


def test_callers_groups_are_split_by_route(fake):
    model = Model()
    optimizer = Optimizer(
        [{"params": [("w", model.w), ("b", model.b)], "lr": 3.0},
         {"params": [model.v, model.s], "param_names": ["v", "s"]}],
        SPEC, Plain={"lr": 0.5}, Momentum={"momentum": 0.5},
    )  # fmt: skip
    found = [(g["route"], g["param_names"], g["lr"]) for g in optimizer.param_groups]
    assert found == [("Momentum", ["w"], 3.0), ("Plain", ["b"], 3.0), ("Momentum", ["v"], 0.1),
                     ("Plain", ["s"], 0.5)]  # fmt: skip
    before = model.v.detach().clone()
    optimizer.param_groups[2]["lr"] = torch.tensor(0.25)
    set_gradients(model, 0)
    optimizer.step()
    assert torch.equal(model.v, before - 0.25 * model.v.grad)
    # A group may say its route, and nothing else than the definition does.
    Optimizer([{"params": [("w", model.w)], "route": "Momentum"}], SPEC, Plain={"lr": 0.5})
    with pytest.raises(ValueError, match="route 'Plain' in a group.*found 'w' of route 'Momentum'"):
        Optimizer([{"params": [("w", model.w)], "route": "Plain"}], SPEC, Plain={"lr": 0.5})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Plain": {"learning_rate": 1}}, "Plain=: 'learning_rate' is no hyperparameter of Plain"),
        ({"Adam": {"lr": 1}}, "'Adam' is no rule or route of this definition: expected Momentum, Plain"),
        ({"Plain": 0.1}, "Plain: expected a dict of options, found 0.1"),
    ],
)
def test_unknown_options_are_refused(fake, options, message):
    with pytest.raises(TypeError, match=message):
        make(Model(), **options)


def test_bad_constructions_are_refused(fake):
    model = Model()
    with pytest.raises(stepc.HyperparameterError, match="route Plain: lr has no default"):
        Optimizer(model.named_parameters(), SPEC)
    with pytest.raises(TypeError, match="pass model.named_parameters()"):
        Optimizer(model.parameters(), SPEC)
    with pytest.raises(TypeError, match="a definition or library="):
        Optimizer(model.named_parameters())
    with pytest.raises(TypeError, match="'beta' is no hyperparameter of Momentum, Plain"):
        Optimizer([{"params": list(model.named_parameters()), "beta": 1}], SPEC, Plain={"lr": 1})
    with pytest.raises(stepc.CompileError, match="expected a rule, found 'error'"):
        make(model, "error {}")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (lambda model: dict(model.named_parameters()), "under 'params', found a dict of 'w', 'v', 'b', 's'\nhint: pass its items()"),
        (lambda model: {"Momentum": [model.w]}, "under 'params', found a dict of 'Momentum'$"),
        (lambda model: [{"named_params": []}], "under 'params', found a dict of 'named_params'$"),
        (lambda model: [{}], "under 'params', found a dict of nothing$"),
        (lambda model: [("w", None)], "parameter 'w': expected a tensor beside its name, found None$"),
        (lambda model: [("w", 0.5)], "parameter 'w': expected a tensor beside its name, found float$"),
        (lambda model: [("decay", list(model.named_parameters()))], "found list beside the name 'decay'\nhint: pass model.named"),
    ],
)
def test_groups_of_another_form_are_refused(fake, groups, message):
    with pytest.raises(TypeError, match=message):
        Optimizer(groups(Model()), SPEC, lr=1)


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"timeout": "5"}, TypeError, "timeout: expected a number of seconds, found '5'"),
    ({"timeout": True}, TypeError, "timeout: expected a number of seconds, found True"),
    ({"timeout": float("nan")}, ValueError, "timeout: expected from 0 to 31622400 seconds, found nan"),
    ({"timeout": -1}, ValueError, "timeout: expected from 0 to 31622400 seconds, found -1"),
    ({"timeout": float("inf")}, ValueError, "timeout: expected from 0 to 31622400 seconds, found inf"),
    ({"threads": 1.5}, TypeError, "threads: expected a whole number, found 1.5"),
    ({"threads": -1}, ValueError, "threads: expected a number from 0 on, found -1"),
    ({"lr": 10**400}, stepc.HyperparameterError, "route Momentum: expected a number for 'lr', found 1000"),
    ({"lr": 10**5000}, stepc.HyperparameterError, "expected a number for 'lr', found a number of too many digits"),
])  # fmt: skip
def test_numbers_that_mean_nothing_are_refused(fake, options, error, message):
    with pytest.raises(error, match=message):
        Optimizer(Model().named_parameters(), SPEC, **{"lr": 0.5} | options)


def test_hyperparameters_that_are_taken_out_or_too_large_are_named(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    for value, found in ((10**400, "10000"), (None, "None"), ("gone", "none")):
        optimizer.param_groups[0]["momentum"] = value
        if value == "gone":
            del optimizer.param_groups[0]["momentum"]
        with pytest.raises(stepc.HyperparameterError, match=rf"group 0 \(route Momentum\): .* for 'momentum', found {found}"):
            optimizer.step()


def test_schedulers_change_what_the_next_step_reads(fake):
    model = Model()
    optimizer = make(model)
    schedulers = [
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch),
        torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1.0, 2.0], total_steps=10),
    ]
    assert optimizer.param_groups[0]["momentum"] == 0.95
    for scheduler in schedulers:
        set_gradients(model, 0)
        before = model.b.detach().clone()
        optimizer.step()
        expected = before - torch.tensor(optimizer.param_groups[1]["lr"]) * model.b.grad
        torch.testing.assert_close(model.b.detach(), expected)
        scheduler.step()


def test_hooks_closures_and_versions(fake):
    model = Model()
    optimizer = make(model)
    calls = []
    optimizer.register_step_pre_hook(lambda *a: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *a: calls.append("post"))
    before = model.w._version

    def closure():
        assert torch.is_grad_enabled()
        set_gradients(model, 0)
        return 7.0

    assert optimizer.step(closure) == 7.0
    assert calls == ["pre", "post"] and model.w._version > before
    with torch.profiler.profile() as profile:
        optimizer.step()
    assert any(event.key == "stepc.step" for event in profile.key_averages())
    optimizer.zero_grad()
    assert model.w.grad is None
    loss = (model.w * model.w.detach().requires_grad_()).sum()
    set_gradients(model, 0)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_absent_and_wrong_gradients_are_named(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    model.v.grad = None
    before = bits(model)
    with pytest.raises(stepc.GradientError, match="parameter 'v': its gradient is absent"):
        optimizer.step()
    assert same(before, bits(model))
    model.v.grad_dtype = None
    model.v.grad = torch.zeros(2, 5, dtype=torch.float64)
    with pytest.raises(stepc.GradientError, match="'v': gradient: expected torch.float32 on cpu"):
        optimizer.step()
    model.v.grad = torch.ones(5, 2).t()
    with pytest.warns(UserWarning, match="parameter 'v': its gradient has the strides"):
        optimizer.step()
    torch.testing.assert_close(model.v.detach(), before[1] - 0.1)


def test_moved_memory_is_bound_again(fake):
    model, twin = Model(), Model()
    optimizer, other = make(model), make(twin)
    for step in range(3):
        for one, its in ((model, optimizer), (twin, other)):
            set_gradients(one, step)
            its.step()
        model.w.data = model.w.data.clone()
        optimizer.state[model.w]["m"] = optimizer.state[model.w]["m"].clone()
        optimizer.state[model.v]["step"] = torch.tensor(float(optimizer.state[model.v]["step"]))
        optimizer.state[model.w]["step"].data = optimizer.state[model.w]["step"].clone()
    assert same(bits(model), bits(twin))
    assert optimizer.state[model.v]["step"].item() == optimizer.state[model.w]["step"].item() == 3


def test_stale_tensors_are_refused_by_name(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    state = optimizer.state[model.w]
    good = state["m"]
    state["m"] = good.to(torch.bfloat16)
    with pytest.raises(stepc.StepcError, match="'w': state 'm': expected dtype, local shape"):
        optimizer.step()
    state["m"] = good.t().contiguous().t()
    with pytest.raises(stepc.StepcError, match="'w': state 'm': expected a contiguous tensor"):
        optimizer.step()
    state["m"] = good
    whole = model.w.data
    model.w.data = torch.zeros(4, 6)[:, ::2]
    with pytest.raises(stepc.StepcError, match=r"'w': expected a contiguous tensor, or one whose axes "
                       r"are permuted, found the strides \(6, 2\) .*p.data.contiguous"):  # fmt: skip
        optimizer.step()
    model.w.data = whole
    optimizer.step()
    model.v.data = model.w.data.view(-1)[:10].view(2, 5)
    model.w.data = model.v.data.view(-1)[:10].view(5, 2)
    with pytest.raises((stepc.StepcError, ValueError)):
        optimizer.step()


def test_states_whose_memory_means_something_else_are_refused(fake):
    """The same tensor object at the same address, with another dtype or shape."""
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    state = optimizer.state[model.w]["m"]
    good, before = state.data, bits(model)
    for bad in (good.view(torch.int32), good[:2], good.view(3, 4)):
        state.data = bad
        with pytest.raises(stepc.StepcError, match="'w': state 'm': expected dtype, local shape"):
            optimizer.step()
    state.data = good
    assert same(before, bits(model))
    optimizer.step()


def test_gradients_whose_storage_was_freed_are_refused(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    model.v.grad.untyped_storage().resize_(0)
    with pytest.raises(stepc.GradientError, match="'v': gradient: expected memory, found a freed"):
        optimizer.step()


def test_transposed_views_of_bound_memory_are_noticed(fake):
    """A square matrix and its transpose share address, shape and dtype: only strides tell."""
    model = nn.Module()
    model.w = nn.Parameter(torch.randn(4, 4))
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    before, m = model.w.detach().clone(), optimizer.state[model.w]["m"].clone()
    model.w.data = model.w.data.t()
    with pytest.warns(UserWarning, match=r"'w': it has the strides \(1, 4\) .* copied in every step"):
        optimizer.step()
    m = 0.9 * m + model.w.grad
    torch.testing.assert_close(model.w.detach(), before.t() - 0.1 * m)
    before = model.w.detach().t().clone()
    model.w.data = model.w.data.t()
    optimizer.step()
    m = 0.9 * m + model.w.grad
    torch.testing.assert_close(model.w.detach(), before - 0.1 * m)
    before = model.w.detach().clone()
    optimizer.state[model.w]["m"].t_()
    with pytest.raises(stepc.StepcError, match="'w': state 'm': expected a contiguous tensor"):
        optimizer.step()
    assert torch.equal(model.w, before)


def test_parameters_may_share_no_memory(fake):
    model = Model()
    model.v.data = model.w.data.view(-1)[:10].view(2, 5)
    set_gradients(model, 0)
    with pytest.raises(stepc.StepcError, match="'w' and parameter 'v' share their memory"):
        make(model).step()
    # A part of it, and only after the first step; a state and a parameter.
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    good, before = model.v.data, bits(model)
    model.v.data = model.w.data.view(-1)[2:12].view(2, 5)
    for _ in range(2):
        with pytest.raises(stepc.StepcError, match="'w' and parameter 'v' share their memory"):
            optimizer.step()
    model.v.data = good
    optimizer.state[model.w]["m"] = model.w.data
    with pytest.raises(stepc.StepcError, match="'w' .*share their memory"):
        optimizer.step()
    optimizer.state[model.w]["m"] = torch.zeros(4, 3)
    assert same(before, bits(model))
    optimizer.step()


def test_added_swapped_and_unfrozen_parameters_keep_states(fake):
    model = Model()
    model.v.requires_grad_(False)
    optimizer = make(model)
    assert optimizer.routes["v"] == "Momentum"
    set_gradients(model, 0)
    model.v.grad = None
    optimizer.step()
    assert model.v not in optimizer.state
    kept = optimizer.state[model.w]["m"].clone()
    # Unfreeze one, swap another for a tensor of the same value, and add a third.
    model.v.requires_grad_(True)
    replacement = nn.Parameter(model.w.detach().clone())
    group = optimizer.param_groups[0]
    group["params"] = [replacement if p is model.w else p for p in group["params"]]
    model.w = replacement
    extra = nn.Parameter(torch.ones(2, 2))
    optimizer.add_param_group({"params": [("extra", extra)], "lr": 1.0})
    assert [g["route"] for g in optimizer.param_groups] == ["Momentum", "Plain", "Momentum"]
    set_gradients(model, 1)
    extra.grad = torch.ones(2, 2)
    optimizer.step()
    torch.testing.assert_close(optimizer.state[model.w]["m"], 0.9 * kept + model.w.grad)
    assert optimizer.state[model.w]["step"] == 2 and optimizer.state[model.v]["step"] == 1
    assert torch.equal(extra.detach(), torch.zeros(2, 2))


def test_resized_parameters_say_how_to_go_on(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    model.w.data = torch.ones(6, 3)
    set_gradients(model, 1)
    for _ in range(2):
        with pytest.raises(
            stepc.StepcError,
            match=r"'w': state 'm': expected shape \[6, 3\], found \[4, 3\]; .*forget\('w'\)",
        ):
            optimizer.step()
    with pytest.raises(stepc.StepcError, match="expected a parameter of this optimizer, found 'x'"):
        optimizer.forget("x")
    optimizer.forget("w")
    optimizer.step()
    assert optimizer.state[model.w]["m"].shape == (6, 3)
    assert optimizer.state[model.w]["step"] == 1 and optimizer.state[model.v]["step"] == 2


@pytest.mark.parametrize("name", ["params", "param_names"])
def test_hyperparameters_called_like_keys_of_groups_are_refused(real, name):
    spec = f"optimizer Sgd({name}) {{ param = param - {name} * grad }}\n"
    spec += f"route {{ Sgd({name} = 0.1) for rest }}"
    with pytest.raises(stepc.HyperparameterError, match=f"route Sgd: .* hyperparameter '{name}'"):
        Optimizer(Model().named_parameters(), spec)


def test_a_ready_library_needs_no_compiler(fake, tmp_path, monkeypatch):
    model, twin = Model(), Model()
    made = stepc.compile(SPEC, export_manifest(model.named_parameters()), output=tmp_path)
    reference = make(twin)
    set_gradients(twin, 0)
    reference.step()
    monkeypatch.setenv("STEPC", "/nowhere/stepc")
    optimizer = Optimizer(model.named_parameters(), library=made.library, Plain={"lr": 0.5})
    set_gradients(model, 0)
    optimizer.step()
    assert same(bits(model), bits(twin))
    other = nn.ParameterDict({"w": nn.Parameter(torch.zeros(9, 9))})
    with pytest.raises(stepc.PlanError, match="'w': library .* expects shape \\[4, 3\\], the model"):
        Optimizer(other.named_parameters(), library=made.library).step()
    other = nn.ParameterDict({"x": nn.Parameter(torch.zeros(9, 9))})
    refused = f"'x': library '{made.library}' was not compiled for it\nhint: it was for 4 parameters, first of them 'w', 'v', 'b'"
    with pytest.raises(stepc.PlanError, match=re.escape(refused)):
        Optimizer(other.named_parameters(), library=made.library)
    other = nn.ParameterDict({"w0": nn.Parameter(torch.zeros(4, 3))})
    with pytest.raises(stepc.PlanError, match="4 parameters, the closest of them 'w'$"):
        Optimizer(other.named_parameters(), library=made.library)


def test_meta_tensors_and_copies_are_refused(fake):
    with torch.device("meta"):
        empty = nn.Linear(3, 3)
    optimizer = Optimizer(empty.named_parameters(), SPEC, Plain={"lr": 1})
    with pytest.raises(ValueError, match="'weight': expected a tensor with memory, found a meta"):
        optimizer.step()
    optimizer = make(Model())
    with pytest.raises(TypeError, match="save its state_dict"):
        copy.deepcopy(optimizer)
    with pytest.raises(TypeError, match="save its state_dict"):
        pickle.dumps(optimizer)
    optimizer.grad_scale = torch.ones(1)
    with pytest.raises(NotImplementedError, match="GradScaler's fused path"):
        optimizer.step()
