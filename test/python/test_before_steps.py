"""An optimizer that was never stepped: it has no states, compiles nothing and asks no rank."""

import copy

import pytest
import torch
import torch.distributed as dist
from models import SGD, SPEC, Model, adamw, bits, make, same, set_gradients
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp

import stepc
from stepc.torch import Optimizer

ADAMW = adamw() + "route { AdamW(lr = 0.125) for rest }\n"


@pytest.fixture
def uncompiled(fake):
    """Fails where a library is made; calling what it gives ends that."""
    patch = pytest.MonkeyPatch()

    def refuse(*arguments):
        raise AssertionError("a library was compiled")

    patch.setattr("stepc.torch.optimizer.build_library", refuse)
    yield patch.undo
    patch.undo()


def train(model, optimizer, seeds):
    for seed in seeds:
        set_gradients(model, seed)
        optimizer.step()


def test_state_is_empty_and_has_torchs_form(uncompiled):
    model = Model()
    optimizer = make(model)
    theirs = torch.optim.SGD([{"params": [("w", model.w), ("v", model.v)], "lr": 0.1},
                              {"params": [("b", model.b), ("s", model.s)], "lr": 0.5}])  # fmt: skip
    assert not optimizer.state and len(optimizer.state) == 0 and list(optimizer.state) == []
    saved, torchs = optimizer.state_dict(), theirs.state_dict()
    assert saved.keys() == torchs.keys() and saved["state"] == torchs["state"] == {}
    for mine, other in zip(saved["param_groups"], torchs["param_groups"], strict=True):
        assert {key: mine[key] for key in ("params", "param_names", "lr")} == {
            key: other[key] for key in ("params", "param_names", "lr")
        }
    assert not optimizer.state and optimizer._binding is None


def test_a_load_without_states_sets_options_only(uncompiled):
    model = Model()
    optimizer = make(model)
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0] |= {"lr": 0.25, "momentum": 0.5, "initial_lr": 3.0}
    seen = []
    optimizer.register_load_state_dict_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_load_state_dict_post_hook(lambda *_: seen.append("after"))
    optimizer.load_state_dict(saved)
    group = optimizer.param_groups[0]
    assert (group["lr"], group["momentum"], group["initial_lr"]) == (0.25, 0.5, 3.0)
    assert seen == ["before", "after"] and not optimizer.state
    # What does not fit is refused as ever.
    for key, value, text in (("lr", "fast", "expected a number for 'lr'"), ("rate", 1, "found 'rate'"),
                             ("route", "Plain", "expected a parameter group of route Momentum")):  # fmt: skip
        bad = copy.deepcopy(saved)
        bad["param_groups"][0][key] = value
        bad["param_groups"][1]["lr"] = 9.0
        with pytest.raises(stepc.StepcError, match=text):
            optimizer.load_state_dict(bad)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5]
    # With states it is prepared.
    uncompiled()
    stepped = make(other := Model())
    train(other, stepped, [0])
    optimizer.load_state_dict(stepped.state_dict())
    assert torch.equal(optimizer.state[model.w]["m"], stepped.state[other.w]["m"])


def test_parameters_may_be_exchanged_before(uncompiled):
    """As accelerate does for FSDP2: an empty tensor stands for each parameter until there is another."""
    model, straight = Model(), Model()
    optimizer = make(model)
    for group in optimizer.param_groups:
        for position, parameter in enumerate(group["params"]):
            group["params"][position] = torch.empty(1)
            group["params"][position].data_ptr = parameter.data_ptr()
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    other = Model()
    mapping = {mine.data_ptr(): new for mine, new in zip(model.parameters(), other.parameters(), strict=True)}
    for group in optimizer.param_groups:
        group["params"] = [mapping[one.data_ptr] for one in group["params"]]
    optimizer.load_state_dict(optimizer.state_dict())
    uncompiled()
    train(other, optimizer, range(3))
    train(straight, make(straight), range(3))
    assert same(bits(other), bits(straight)) and not same(bits(other), bits(model))


def _left(rank, size):
    """The errors of steps after placeholders stayed on rank 0, and of a model that was frozen and exchanged."""
    found = []
    for placeholder in (lambda p: torch.empty(1), lambda p: nn.Parameter(torch.empty(0), requires_grad=False)):
        model = Model()
        optimizer = make(model, replicated=["*"] if size > 1 else (), timeout=20.0)
        if rank == 0:
            for group in optimizer.param_groups:
                group["params"] = [placeholder(p) for p in group["params"]]
        set_gradients(model, 0)
        with pytest.raises(Exception) as raised:  # noqa: B017
            optimizer.step()
        found.append(f"{type(raised.value).__name__}: {raised.value}")
    model = Model()
    optimizer = make(model, replicated=["*"] if size > 1 else (), timeout=20.0)
    for group in optimizer.param_groups[:1]:
        group["params"] = [nn.Parameter(p.detach().clone(), requires_grad=False) for p in group["params"]]
    model.s.requires_grad_(False)
    set_gradients(model, 0)
    optimizer.step()
    found.append(sorted(record.name for record in optimizer._binding.records))
    return found


@pytest.mark.parametrize("size", [1, 2])
def test_placeholders_that_stay_are_an_error(fake, size):
    results = [_left(0, 1)] if size == 1 else run_ranks(_left, size, size)
    for rank, found in enumerate(results):
        for text, shape in zip(found, ([1], [0]), strict=False):
            assert text.startswith("StepcError: rank 0 could not export its manifest: " if rank else "ValueError: "), text
            assert "'w': expected a parameter of shape [4, 3] in param_groups" in text and f"found a tensor of shape {shape}" in text
        assert found[2] == ["b"]


@pytest.mark.parametrize("spec", [SPEC, "master {}"])
def test_a_checkpoint_of_it_loads_into_any_other(fake, way, spec):
    dtype = torch.bfloat16 if "master" in spec else torch.float32
    fresh = copy.deepcopy(make(Model(dtype), spec).state_dict())
    model, straight = Model(dtype), Model(dtype)
    optimizer, other = make(model, spec), make(straight, spec)
    train(model, optimizer, range(3))
    model.load_state_dict(straight.state_dict())
    optimizer.load_state_dict(fresh)
    assert optimizer.state[model.w]["step"] == 0 and not optimizer.state[model.w]["m"].any()
    train(model, optimizer, range(3, 6))
    train(straight, other, range(3, 6))
    assert same(bits(model), bits(straight))
    # One that is whole again, but not bound, and one that is bound and was never stepped.
    optimizer.forget("w")
    optimizer.load_state_dict(fresh)
    assert optimizer.state[model.v]["step"] == 0
    prepared = make(Model(dtype), spec)
    prepared.prepare()
    prepared.load_state_dict(fresh)
    # Its states are those of a state dict with some.
    make(Model(dtype), spec).load_state_dict(prepared.state_dict())


def test_a_state_dict_with_some_states_is_no_fresh_one(fake):
    model = Model()
    optimizer = make(model)
    train(model, optimizer, range(2))
    saved = copy.deepcopy(optimizer.state_dict())
    del saved["state"][1]
    saved["state"][0]["m"] += 1
    kept = optimizer.state[model.w]["m"].clone()
    with pytest.raises(stepc.StepcError, match="'v': the state dict has no state for it"):
        optimizer.load_state_dict(saved)
    assert torch.equal(optimizer.state[model.w]["m"], kept)


def test_a_failed_steps_optimizer_begins_anew(fake):
    model = Model()
    optimizer = make(model)
    train(model, optimizer, range(2))
    optimizer._failure = stepc.StepcError("planted")
    with pytest.raises(stepc.PoisonedError):
        optimizer.state_dict()
    optimizer.load_state_dict(copy.deepcopy(make(Model()).state_dict()))
    assert optimizer.state[model.w]["step"] == 0
    optimizer.step()


def init_optim_state(optimizer):
    """What torchtitan does, as torch's distributed checkpoint does under another name."""
    if optimizer.state:
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad()


def make_states(optimizer):
    """The same, by a trainer of whom nothing is known."""
    return init_optim_state(optimizer)


@pytest.mark.parametrize("flat", [False, True])
def test_distributed_checkpoints_make_states_without_a_step(fake, flat):
    options = dcp.StateDictOptions(flatten_optimizer_state_dict=flat)
    model = Model()
    optimizer = make(model)
    before = bits(model)
    saved = dcp.get_optimizer_state_dict(model, optimizer, options=options)
    assert same(bits(model), before)
    key = saved["state.w.step"] if flat else saved["state"]["w"]["step"]
    assert key == 0 and [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    other = Model()
    again = make(other)
    dcp.set_optimizer_state_dict(other, again, saved, options=options)
    train(model, optimizer, range(3))
    train(other, again, range(3))
    assert same(bits(model), bits(other)) and again.state[other.w]["step"] == 3


def test_other_trainers_make_states_by_a_step_that_leaves_parameters(real):
    """A step of zero gradients at lr = 0 counts, as torch's does, and changes no bit of a parameter."""
    muon = "optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {\n state m : f32\n" \
        " m = momentum * m + grad\n let o = orthogonalize(grad + momentum * m)\n" \
        " param = (1 - lr * weight_decay) * param - lr * o\n}\n"  # fmt: skip
    spec = muon + ADAMW.replace("route {", "route {\n Muon(lr = 0.5) for matrix\n").replace(
        "rest }", "rest\n}"
    )
    model, theirs = Model(), Model()
    optimizer, other = (
        Optimizer(model.named_parameters(), spec),
        torch.optim.AdamW(theirs.parameters(), lr=0.125),
    )
    before = bits(model)
    for one in (optimizer, other):
        for group in one.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter)
            group["lr"] = 0.0
        one.step()
    assert same(bits(model), before) and same(bits(theirs), before)
    assert optimizer.state[model.w]["step"] == other.state[theirs.w]["step"] == 1
    assert not any(state["m"].any() for state in optimizer.state.values())
    # The names of those that are known for it: no step at all.
    optimizer = Optimizer(model.named_parameters(), spec)
    make_states(optimizer)
    assert optimizer.state[model.w]["step"] == 0


class Counted:
    """Counts what this rank asks of others: torch's collectives, groups, the store and connections."""

    def __init__(self, patch):
        self.calls = []
        names = ["all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "broadcast",
                 "broadcast_object_list", "gather_object", "scatter_object_list", "barrier", "send", "recv",
                 "isend", "irecv", "new_group", "ProcessGroupGloo", "PrefixStore"]  # fmt: skip
        for name in names:
            patch.setattr(dist, name, self._counted(name, getattr(dist, name)))
        for name in ("Links", "default_store"):
            patch.setattr(f"stepc.torch.meeting.{name}", self._counted(name, None))
        patch.setattr("stepc.torch.links.default_store", self._counted("default_store", None))

    def _counted(self, name, function):
        def call(*arguments, **keywords):
            self.calls.append(name)
            return function(*arguments, **keywords)

        return call


def _alone_of_two(rank, sharded):
    """An unsharded model, as a trainer has it before it shards: the other rank asks nothing."""
    model = Model()
    if sharded:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard

        mesh = init_device_mesh("cpu", (2,))
        model.w = nn.Parameter(DTensor.from_local(model.w.detach(), mesh, [Shard(0)]))
    optimizer = Optimizer(model.named_parameters(), SGD, timeout=2.0)
    if rank:
        return None
    with pytest.MonkeyPatch.context() as patch:
        counted = Counted(patch)
        assert not bool(optimizer.state) and len(optimizer.state) == 0
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)
        assert optimizer.param_groups[0]["lr"] == 0.5 and saved["state"] == {}
        calls = list(counted.calls)
        try:  # that the counters count
            optimizer.prepare()
        except Exception as error:  # noqa: BLE001
            failed = type(error).__name__
        return calls, failed, len(counted.calls)


@pytest.mark.parametrize("sharded", [False, True])
def test_one_rank_of_two_asks_alone(real, sharded):
    (calls, failed, more), _ = run_ranks(_alone_of_two, 2, sharded)
    assert calls == []
    # What prepares needs the other rank, or to know where tensors lie.
    if sharded:
        assert failed in ("StepcTimeout", "TransportError") and more > 0
    else:
        assert failed == "PlacementError"
