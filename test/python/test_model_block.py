"""Optimizers whose definition has a model block: values over all parameters, their hyperparameters and checkpoints."""

import copy
import math

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from sharded_net import BOTH, Net, assert_same, set_gradients, shard_like, shards, spec
from torch import nn
from torch.distributed.checkpoint import DefaultLoadPlanner
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import stepc
from stepc.torch import Optimizer, export_manifest

CLIP = """
model(max_norm = 1) {
  let total = norm(grad)
  grad = min(1, max_norm / (total + 1e-6)) * grad
}
"""
# The factor grows with the model's count of steps: a count that is lost changes the parameters.
WARM = """
model(max_norm, span = 8) {
  let total = norm(grad)
  grad = min(1, step / span) * min(1, max_norm / (total + 1e-6)) * grad
}
"""
SGD = """
optimizer Sgd(lr) {
  state size : f32[]
  size = model.total
  param = param - lr * grad
}
route { Sgd(lr = 0.1) for rest }
"""


def _train(model, optimizer, steps):
    for step in steps:
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def test_clipping_is_that_of_torch(real, way):
    model, other = Net(), Net()
    optimizer = Optimizer(model.named_parameters(), CLIP + SGD, model={"max_norm": 2})
    theirs = torch.optim.SGD(other.parameters(), lr=0.1)
    for step in range(4):
        # once no gradient is clipped
        limit = optimizer.model["max_norm"] = (2, 0.25, 100, 0.5)[step]
        set_gradients(model, step)
        set_gradients(other, step)
        norm = nn.utils.clip_grad_norm_(other.parameters(), limit)
        optimizer.step()
        theirs.step()
        for (name, mine), expected in zip(model.named_parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-6, atol=1e-7, msg=name)
            torch.testing.assert_close(optimizer.state[mine]["size"], norm, rtol=1e-6, atol=0)
    assert optimizer.state_dict()["model"] == {"step": 4, "max_norm": 0.5}


def _layouts(rank, folder):
    """The same steps under FSDP2, HSDP and FSDP2 + TP, and on after a distributed checkpoint: the bits of one rank."""
    given = {"model": {"max_norm": 0.7}, "timeout": 60.0}
    text = WARM + spec(BOTH, True)
    single = Net(torch.bfloat16)
    alone = [dist.new_group([one]) for one in range(4)][rank]
    with pytest.raises(stepc.StepcError, match="computes over all parameters, and the job has 4 ranks"):
        Optimizer(single.named_parameters(), text, process_group=alone, **given).step()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    found = {}
    for layout in ("fsdp", "hsdp", "tp"):
        model = Net(torch.bfloat16)
        if layout == "tp":
            parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(model, mesh={"fsdp": None, "hsdp": mesh, "tp": mesh["dp"]}[layout])
        optimizer = Optimizer(model.named_parameters(), text, **given)
        whole = _train(model, optimizer, range(3))
        executed, planned = optimizer.counters()
        assert executed == planned
        if layout == "tp":
            # full_tensor() of strided shards is checked through local pieces instead.
            found[layout] = all(torch.equal(p.to_local(), shard_like(found["fsdp"][name, "param"], p).to_local())
                                for name, p in model.named_parameters())  # fmt: skip
            continue
        found[layout] = whole
        if layout == "hsdp":
            continue
        dcp.save({"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)},
                 checkpoint_id=folder)  # fmt: skip
        again = fully_shard(Net(torch.bfloat16))
        other = Optimizer(again.named_parameters(), text, model={"max_norm": 5.0}, timeout=60.0)
        into = {"model": again.state_dict(), "optimizer": get_optimizer_state_dict(again, other)}
        dcp.load(into, checkpoint_id=folder)
        again.load_state_dict(into["model"])
        set_optimizer_state_dict(again, other, into["optimizer"])
        assert other.state_dict()["model"] == {"step": 3, "max_norm": 0.7, "span": 8.0}
        found["on"] = _train(again, other, range(3, 5))
    return found if rank == 0 else found["tp"]


def test_layouts_give_the_bits_of_one_rank(real, tmp_path):
    found = run_ranks(_layouts, 4, str(tmp_path))
    assert found[0]["tp"] and all(found[1:])
    model = Net(torch.bfloat16)
    optimizer = Optimizer(model.named_parameters(), WARM + spec(BOTH, True), model={"max_norm": 0.7})
    expected = _train(model, optimizer, range(3))
    assert_same(found[0]["fsdp"], expected)
    assert_same(found[0]["hsdp"], expected)
    assert_same(found[0]["on"], _train(model, optimizer, range(3, 5)))


def _stages(rank):
    """Two pipeline stages, each a world of two ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    value = torch.ones((4, 3) if mesh.get_local_rank("pp") == 0 else (3, 7))
    w = nn.Parameter(distribute_tensor(value, mesh["dp"], [Shard(0)], src_data_rank=None))
    w.grad = torch.ones_like(w)
    with pytest.raises(stepc.StepcError) as refused:
        Optimizer([("w", w)], CLIP + SGD, timeout=20.0).step()
    assert torch.equal(w.full_tensor(), value)
    return str(refused.value)


def test_a_pipeline_stage_alone_is_refused(real):
    for text in run_ranks(_stages, 4):
        assert "expected them all to step together, found 2 of them (of a pipeline stage" in text, text


def test_state_dicts_hold_the_model(real):
    model = Net()
    optimizer = Optimizer(model.named_parameters(), WARM + SGD, model={"max_norm": 2.0})
    assert optimizer.state_dict()["model"] == {"step": 0, "max_norm": 2.0, "span": 8.0}
    _train(model, optimizer, range(2))
    optimizer.model["max_norm"] = 0.5
    saved, weights = copy.deepcopy((optimizer.state_dict(), model.state_dict()))
    expected = _train(model, optimizer, range(2, 4))
    for stepped in (False, True):  # states that are made as they are loaded, and ones that are there
        other = Net()
        again = Optimizer(other.named_parameters(), WARM + SGD, model={"max_norm": 3.0})
        if stepped:
            _train(other, again, range(4))
        other.load_state_dict(weights)
        again.load_state_dict(copy.deepcopy(saved))
        assert again.model == {"max_norm": 0.5, "span": 8.0} and again.state_dict()["model"]["step"] == 2
        assert_same(_train(other, again, range(2, 4)), expected)
    for wrong, text in [
        ({"step": 1, "max_norm": 1}, "expected step, max_norm, span, found step, max_norm"),
        ({"step": 1.5, "max_norm": 1, "span": 1}, "'step': expected a whole number of steps"),
        ({"step": 1, "max_norm": 1, "span": "x"}, "expected a number for 'span', found 'x'"),
        (3, "'model' in the state dict: expected a dict, found int"),
    ]:
        before = copy.deepcopy(again.state_dict())
        with pytest.raises(stepc.StepcError, match=text):
            again.load_state_dict(saved | {"model": wrong})
        assert again.state_dict()["model"] == before["model"]
    # A state dict of a definition that had no model block: the model goes on.
    again.load_state_dict({key: value for key, value in saved.items() if key != "model"})
    assert again.state_dict()["model"] == before["model"]
    plain = Optimizer(other.named_parameters(), SGD.replace("model.total", "norm(grad)"))
    with pytest.raises(stepc.StepcError, match="expected a definition with a model block, found one without"):
        plain.load_state_dict(saved)


def test_arguments_of_the_model(real):
    named = list(Net().named_parameters())
    for given, error, text in [
        ({"maxnorm": 1}, TypeError, "'maxnorm' is no hyperparameter of the model.*\n.*may stand for 'max_norm'"),
        ({}, stepc.StepcError, "max_norm has no default"),
        ({"max_norm": "x"}, stepc.StepcError, "expected a number for 'max_norm', found 'x'"),
        (3, TypeError, "expected a dict of hyperparameters, found 3"),
    ]:
        with pytest.raises(error, match=text):
            Optimizer(named, WARM + SGD, model=given)
    with pytest.raises(TypeError, match="expected a definition with a model block, found one without"):
        Optimizer(named, SGD.replace("model.total", "norm(grad)"), model={"max_norm": 1})
    optimizer = Optimizer(named, WARM + SGD, model={"max_norm": 1})
    optimizer.model["max_norm"] = "x"
    for _, tensor in named:
        tensor.grad = torch.ones_like(tensor)
    with pytest.raises(stepc.StepcError, match="model: expected a number for 'max_norm', found 'x'"):
        optimizer.step()
    for nothing in (math.nan, torch.tensor(math.nan)):
        optimizer.model["max_norm"] = nothing
        with pytest.raises(stepc.StepcError, match="model: expected a number for 'max_norm', found .*nan"):
            optimizer.step()
    optimizer.model["max_nrm"] = 1.0
    with pytest.raises(stepc.StepcError, match="model: 'max_nrm' is no hyperparameter .*\n.*may stand for 'max_norm'"):
        optimizer.step()
    del optimizer.model["max_nrm"]
    with pytest.raises(TypeError, match=r"'max_norm' is a hyperparameter of the model: pass model=\{'max_norm': …\}"):
        Optimizer(named, WARM + SGD, model={"max_norm": 1}, max_norm=1)
    optimizer.model["max_norm"] = torch.tensor(2.0)
    optimizer.step()


def test_a_ready_library_has_a_model(real, tmp_path):
    model, other = Net(), Net()
    made = stepc.compile(WARM + SGD, export_manifest(model.named_parameters()), output=tmp_path)
    ready = Optimizer(model.named_parameters(), library=made.library, model={"max_norm": 0.5})
    own = Optimizer(other.named_parameters(), WARM + SGD, model={"max_norm": 0.5})
    assert ready.model == {"max_norm": 0.5, "span": 8.0}
    assert_same(_train(model, ready, range(3)), _train(other, own, range(3)))
    with pytest.raises(stepc.StepcError, match="max_norm has no default"):
        Optimizer(other.named_parameters(), library=made.library)


def test_missing_gradients_count_as_zero(real):
    """A parameter without a gradient adds nothing to numbers, whether its rule then skips it or not."""
    text = CLIP + SGD.replace("lr = 0.1", "lr = 0.1, missing_grad = skip")
    model, other = Net(), Net()
    optimizer = Optimizer(model.named_parameters(), text)
    set_gradients(model, 0)
    set_gradients(other, 0)
    model.up.weight.grad = other.up.weight.grad = None
    norm = nn.utils.clip_grad_norm_(other.parameters(), 1)
    optimizer.step()
    torch.testing.assert_close(optimizer.state[model.tall.weight]["size"], norm, rtol=1e-6, atol=0)
    assert torch.equal(model.up.weight, other.up.weight)


def _saved(folder, optimizer, model):
    dcp.save({"optimizer": get_optimizer_state_dict(model, optimizer)}, checkpoint_id=folder)


def test_distributed_checkpoints_hold_the_model_by_name(real, tmp_path):
    model, other = Net(), Net()
    optimizer = Optimizer(model.named_parameters(), WARM + SGD, model={"max_norm": 2.0})
    kept = optimizer.model
    optimizer.model |= {"span": 4.0}
    _train(model, optimizer, range(2))
    optimizer.model.clear()
    optimizer.model |= {"span": 4.0, "max_norm": 2.0, "of the trainer": 7}  # in another order
    _saved(tmp_path / "warm", optimizer, model)
    assert kept is optimizer.model
    again = Optimizer(other.named_parameters(), WARM + SGD, model={"max_norm": 1.0})
    into = {"optimizer": get_optimizer_state_dict(other, again)}
    dcp.load(into, checkpoint_id=tmp_path / "warm")
    set_optimizer_state_dict(other, again, into["optimizer"])
    assert again.state_dict()["model"] == {"step": 2, "max_norm": 2.0, "span": 4.0}
    # As many hyperparameters of other names.
    swapped = WARM.replace("max_norm", "most")
    wrong = Optimizer(other.named_parameters(), swapped + SGD, model={"most": 1.0})
    with pytest.raises(stepc.StepcError, match="found those of another model"):
        set_optimizer_state_dict(other, wrong, into["optimizer"])
    # A checkpoint of a definition without a model: the model keeps what it has.
    plain = Optimizer(model.named_parameters(), SGD.replace("model.total", "norm(grad)"))
    _train(model, plain, range(1))
    _saved(tmp_path / "plain", plain, model)
    into = {"optimizer": get_optimizer_state_dict(other, again)}
    dcp.load(into, checkpoint_id=tmp_path / "plain", planner=DefaultLoadPlanner(allow_partial_load=True))
    set_optimizer_state_dict(other, again, into["optimizer"])
    assert again.state_dict()["model"] == {"step": 2, "max_norm": 2.0, "span": 4.0}


def test_model_stays_a_name_where_there_is_no_model(real):
    text = "optimizer model(lr) {\n  param = param - lr * grad\n}\nroute { model(lr = 0.1) for rest }\n"
    optimizer = Optimizer(Net().named_parameters(), text, model={"lr": 0.5})
    assert optimizer.param_groups[0]["lr"] == 0.5 and optimizer.model == {}


def test_the_dict_of_the_model_stays(real):
    model = Net()
    named = list(model.named_parameters())
    optimizer = Optimizer(named[1:], WARM + SGD, model={"max_norm": 2.0})
    kept = optimizer.model
    kept["max_norm"] = 3.0
    optimizer.add_param_group({"params": named[:1]})
    assert optimizer.model is kept and kept == {"max_norm": 3.0, "span": 8}


SKIPS = WARM.replace("  grad", "  skip when not finite(total)\n  grad")


def _spoil(model, by):
    gradient = list(model.parameters())[1].grad
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
    local.view(-1)[-1:] = by  # a rank may have no element


def test_skipped_steps_leave_all_as_it_was(real):
    """Two after one another, the first of them at the first step. Then a run goes on as one that never had them."""
    results = []
    for spoiled in ((0, 1, 3), ()):
        model = Net()
        optimizer = Optimizer(model.named_parameters(), SKIPS + spec(BOTH, True), model={"max_norm": 0.7})
        for step in range(5):
            if not spoiled and step in (0, 1, 3):
                continue
            set_gradients(model, step)
            if step in spoiled:
                _spoil(model, (float("nan"), float("inf"), 0, -float("inf"))[step])
            before = shards(model, optimizer)
            optimizer.step()
            if step in spoiled:
                after = shards(model, optimizer)  # with the states, which the first call makes
                assert_same({name: after[name] for name in before}, before)
        assert optimizer.state_dict()["model"]["step"] == 2
        results.append(shards(model, optimizer))
    assert_same(*results)


def _skips(rank):
    model = Net()
    fully_shard(model)
    optimizer = Optimizer(model.named_parameters(), SKIPS + SGD, model={"max_norm": 0.7}, timeout=60.0)
    counted = []
    for step in range(3):
        set_gradients(model, step)
        if step == 1 and rank == 2:
            _spoil(model, float("inf"))
        optimizer.step()
        counted.append(optimizer.state_dict()["model"]["step"])
    return counted


def test_an_overflow_on_one_rank_skips_the_step_on_all(real):
    assert run_ranks(_skips, 3) == [[1, 1, 2]] * 3


def test_a_device_that_decides_counts_the_steps(real):
    model = Net()
    optimizer = Optimizer(model.named_parameters(), SKIPS + SGD, model={"max_norm": 0.7}, target="emulated")
    for step in range(3):
        set_gradients(model, step)
        if step == 1:
            _spoil(model, float("nan"))
        optimizer.step()
    assert optimizer.state_dict()["model"]["step"] == 2
    assert {int(state["step"]) for state in optimizer.state.values()} == {2}


AVERAGED = """
model(max_norm, decay = 0.5) {
  state average : f32 = 1
  state skipped : f32[]
  let total = norm(grad)
  skipped = skipped + 1
  skip when not finite(total)
  skipped = skipped - 1
  average = decay * average + total
  grad = min(1, max_norm / average) * grad
}
"""


def _averaged(rank, folder):
    model = Net()
    fully_shard(model)
    optimizer = Optimizer(model.named_parameters(), AVERAGED + SGD, model={"max_norm": 0.7}, timeout=60.0)
    for step in range(3):
        set_gradients(model, step)
        if step == 1 and rank == 2:
            _spoil(model, float("inf"))
        optimizer.step()
    dcp.save({"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)},
             checkpoint_id=folder)  # fmt: skip
    again = fully_shard(Net())
    other = Optimizer(again.named_parameters(), AVERAGED + SGD, model={"max_norm": 5.0}, timeout=60.0)
    into = {"model": again.state_dict(), "optimizer": get_optimizer_state_dict(again, other)}
    dcp.load(into, checkpoint_id=folder)
    again.load_state_dict(into["model"])
    set_optimizer_state_dict(again, other, into["optimizer"])
    assert other.state_dict()["model"] == optimizer.state_dict()["model"]
    return _train(again, other, range(3, 5)), other.state_dict()["model"]


def test_states_of_the_model_are_saved_and_loaded(real, tmp_path):
    """On three ranks, on after a distributed checkpoint, and on one rank, on after a state dict."""
    found = run_ranks(_averaged, 3, str(tmp_path))
    model = Net()
    named = list(model.named_parameters())
    optimizer = Optimizer(named, AVERAGED + SGD, model={"max_norm": 0.7})
    assert optimizer.state_dict()["model"] == {"step": 0, "max_norm": 0.7, "decay": 0.5, "average": 1.0, "skipped": 0.0}
    for step in range(3):
        set_gradients(model, step)
        if step == 1:
            _spoil(model, float("inf"))
        optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    assert saved["model"]["step"] == 2 and saved["model"]["skipped"] == 1.0 and saved["model"]["average"] != 1.0
    other = Net()
    other.load_state_dict(model.state_dict())
    again = Optimizer(other.named_parameters(), AVERAGED + SGD, model={"max_norm": 9.0})
    again.load_state_dict(saved)
    assert again.state_dict()["model"] == saved["model"]
    results = [_train(each, by, range(3, 5)) for each, by in ((model, optimizer), (other, again))]
    assert_same(*results)
    assert_same(found[0][0], results[0])
    assert found[0][1] == optimizer.state_dict()["model"] == again.state_dict()["model"]
    # They stay when a library is made anew.
    before = optimizer.state_dict()["model"]
    named[0][1].requires_grad_(False)
    optimizer.zero_grad()
    set_gradients(model, 5)
    named[0][1].grad = None
    optimizer.step()
    after = optimizer.state_dict()["model"]
    total = torch.stack([p.grad.double().square().sum() for _, p in named[1:]]).sum().sqrt().float()
    assert after["average"] == pytest.approx(0.5 * before["average"] + float(total), rel=1e-6) and after["step"] == 5
    wrong = copy.deepcopy(saved)
    del wrong["model"]["average"]
    with pytest.raises(stepc.StepcError, match="expected step, max_norm, decay, average, skipped, found step"):
        again.load_state_dict(wrong)


def test_states_of_the_model_are_f32_whatever_torch_makes(real):
    torch.set_default_dtype(torch.float64)
    try:
        model = Net().float()
        optimizer = Optimizer(model.named_parameters(), AVERAGED + SGD, model={"max_norm": 0.7})
        optimizer.load_state_dict(optimizer.state_dict())
        set_gradients(model, 0)
        optimizer.step()
    finally:
        torch.set_default_dtype(torch.float32)
    assert optimizer.state_dict()["model"]["step"] == 1


def test_cleared_states_leave_the_model_its_count(real):
    """States that the trainer clears begin anew, and counts of steps are bound anew."""
    model = Net()
    optimizer = Optimizer(model.named_parameters(), WARM + SGD, model={"max_norm": 0.7})
    _train(model, optimizer, range(2))
    optimizer.state.clear()
    _train(model, optimizer, range(2, 4))
    assert optimizer.state_dict()["model"]["step"] == 4
    assert {int(state["step"]) for state in optimizer.state.values()} == {2}
    saved = copy.deepcopy(optimizer.state_dict())
    _train(model, optimizer, range(4, 5))
    optimizer.load_state_dict(saved)
    assert optimizer.state_dict()["model"]["step"] == 4
    _train(model, optimizer, range(5, 6))
    assert optimizer.state_dict()["model"]["step"] == 5
