"""A running job moves over: states of torch's AdamW and Muon, and of flat buffers with f32 masters, by a
declared mapping.
"""

import copy

import pytest
import torch
import torch.distributed as dist
from flat_buffers import ALIGNMENT, FlatBuffer
from ranks import run_ranks
from sharded_net import ADAMW
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

import stepc
from stepc.torch import Bucket, FlatStates, Optimizer, Placed, import_states, register_placement

BOTH = ADAMW.replace("MASTER", "") + """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m = lerp(m, grad, 1 - momentum)
  let o = orthogonalize(lerp(grad, m, momentum), steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * sqrt(max(1, rows / cols)) * o
}
route {
  Muon(lr = 0.02) for matrix
  AdamW(lr = 1e-3, beta2 = 0.999, weight_decay = 0.01) for rest
}
"""
MAPPING = {"AdamW": {"m": "exp_avg", "v": "exp_avg_sq"}, "Muon": {"m": "momentum_buffer"}}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.up, self.norm = nn.Linear(6, 10, bias=False), nn.LayerNorm(6)


def set_gradients(model, step):
    for index, (_, p) in enumerate(model.named_parameters()):
        whole = torch.randn(p.shape, generator=torch.Generator().manual_seed(100 * step + index))
        p.grad = whole
        if isinstance(p, DTensor):
            part = whole.chunk(2)[p.device_mesh.get_local_rank()].contiguous()
            p.grad = DTensor.from_local(
                part, p.device_mesh, p.placements, run_check=False, shape=p.shape, stride=p.stride()
            )


def of_torch(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    rest = [(n, p) for n, p in model.named_parameters() if p.dim() != 2]
    return [torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(rest, lr=1e-3)]


def trained(model, steps):
    theirs = of_torch(model)
    for step in range(steps):
        set_gradients(model, step)
        for one in theirs:
            one.step()
    return theirs


def imported(model, sources, **options):
    optimizer = Optimizer(model.named_parameters(), BOTH, timeout=60.0)
    import_states(optimizer, sources, MAPPING, **options)
    return optimizer


def go_on(model, optimizer, theirs, other):
    """Both go on alike: stepc on `model`, torch on `other`. torch's Newton-Schulz rounds otherwise."""
    for step in range(3, 6):
        for net in (model, other):
            set_gradients(net, step)
        optimizer.step()
        for one in theirs:
            one.step()
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        a, b = (one.to_local() if isinstance(one, DTensor) else one for one in (p, q))
        torch.testing.assert_close(a, b, rtol=0, atol=2e-3 if p.dim() == 2 else 1e-6, msg=name)


def expect_same(optimizer, theirs, model, other):
    """The states are torch's, to the bit."""
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        source = next(one for one in theirs if q in one.state).state[q]
        route = "Muon" if p.dim() == 2 else "AdamW"
        for state, key in MAPPING[route].items():
            a, b = (
                one.to_local() if isinstance(one, DTensor) else one
                for one in (optimizer.state[p][state], source[key])
            )
            assert torch.equal(a, b)
        assert optimizer.state[p]["step"] == 3


def test_states_of_torch_optimizers(real):
    model, other = Net(), Net()
    theirs = trained(model, 3)
    others = trained(other, 3)
    optimizer = imported(model, theirs, step=3)  # Muon does not count
    expect_same(optimizer, others, model, other)
    go_on(model, optimizer, others, other)
    # Their state dicts: AdamW's has names, Muon's has not.
    again = Net()
    saved = [copy.deepcopy(one.state_dict()) for one in trained(again, 3)]
    expect_same(imported(again, saved, names=["up.weight"], step=3), trained(other := Net(), 3), again, other)


def test_states_by_torchs_names(real):
    """As get_optimizer_state_dict gives them, and several state dicts without names."""
    model, other = Net(), Net()
    theirs, others = trained(model, 3), trained(other, 3)
    saved = [get_optimizer_state_dict(model, one) for one in theirs]
    assert all(isinstance(key, str) for one in saved for key in one["state"])
    expect_same(imported(model, saved, step=3), others, model, other)
    saved = [copy.deepcopy(one.state_dict()) for one in theirs]
    for group in saved[1]["param_groups"]:
        del group["param_names"]
    names = [["up.weight"], ["norm.weight", "norm.bias"]]
    expect_same(imported(model, saved, names=names, step=3), others, model, other)


def _sharded(rank):
    model, other = fully_shard(Net()), fully_shard(Net())
    theirs, others = trained(model, 3), trained(other, 3)
    optimizer = imported(model, theirs[1:] + [theirs[0].state_dict()], names=["up.weight"], step=3)
    expect_same(optimizer, others, model, other)
    # Whole states, of a job that was not sharded.
    plain = trained(whole := Net(), 3)
    optimizer = imported(model, [one.state_dict() for one in plain], names=["up.weight"], step=3)
    m = optimizer.state[model.up.weight]["m"].to_local()
    assert torch.equal(m, plain[0].state[whole.up.weight]["momentum_buffer"].chunk(2)[rank])
    return True


def test_states_of_sharded_torch_optimizers(real):
    assert all(run_ranks(_sharded, 2))


FLAT = (
    ADAMW.replace("MASTER", "master : f32")
    + "route { AdamW(lr = 1e-2, beta2 = 0.999, weight_decay = 0.01) for rest }"
)


def _megatron(rank):
    """Flat moments and masters: this rank's part of the buffer, as it is."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    whole = {name: torch.randn(shape, generator=torch.Generator().manual_seed(index)).bfloat16()
             for index, (name, shape) in enumerate({"w": (7, 5), "b": (9,), "s": ()}.items())}  # fmt: skip
    buffer = FlatBuffer(whole, mesh.get_group())
    placed = {"*": Placed(mesh, ["R"], states=["flat"])}
    # The bucket knows a tied tensor by its other name.
    named = [*buffer.parameters.items(), ("tied", buffer.parameters["w"])]
    bucket = Bucket(
        buffer.size, {{"w": "tied"}.get(name, name): at for name, at in buffer.offsets.items()}, ALIGNMENT
    )
    optimizer = Optimizer(
        named, FLAT, placements=placed, buckets={"all": bucket}, gradient="main_grad", timeout=60.0
    )
    part = slice(buffer.begin, buffer.begin + buffer.part)
    flat = {key: torch.randn(buffer.size, generator=torch.Generator().manual_seed(7 + index)).abs()
            for index, key in enumerate(("exp_avg", "exp_avg_sq"))}  # fmt: skip
    # Masters round to their parameters; those of padding are never read.
    flat["param"] = torch.nan_to_num(buffer.params.float()) * (1 + 2.0**-12)
    source = FlatStates("all", {key: value[part].clone() for key, value in flat.items()}, step=3)
    mapping = {"AdamW": {"m": "exp_avg", "v": "exp_avg_sq", "master": "param"}}
    import_states(optimizer, source, mapping)
    names = {"m": "exp_avg", "v": "exp_avg_sq", "master": "param"}
    for name, p in buffer.parameters.items():
        for state, key in names.items():
            held = optimizer.state[p][state]
            assert torch.equal(held.plain.view(-1), buffer.own(flat[key], name)), (name, state)
    # A step is that of a process with the same states.
    single = {name: nn.Parameter(value.clone()) for name, value in whole.items()}
    groups = [dist.new_group([one]) for one in range(2)]
    alone = Optimizer(single.items(), FLAT, gradient="main_grad", process_group=groups[rank])
    for name, p in single.items():
        p.main_grad = torch.ones(p.shape)
        buffer.parameters[name].main_grad = torch.ones(p.shape)
    by_name = {name: {key: buffer.view(value, name) for key, value in flat.items()} for name in whole}
    import_states(alone, by_name, mapping, step=3)
    optimizer.step()
    alone.step()
    for name, p in single.items():
        assert torch.equal(p, buffer.parameters[name]), name
    found = []
    for wrong in (
        FlatStates("other", source.tensors, 3),
        FlatStates("all", {key: value[1:] for key, value in source.tensors.items()}, 3),
        FlatStates("all", source.tensors),
    ):
        with pytest.raises(stepc.StepcError) as failed:
            import_states(optimizer, wrong, mapping)
        found.append(str(failed.value))
    return found


def test_flat_states_with_masters(real):
    for found in run_ranks(_megatron, 2):
        assert "expected one of the optimizer's buckets, found 'other'" in found[0]
        assert "bucket 'all': 'exp_avg': expected this rank's 48 elements of 96, found 47" in found[1]
        assert "expected 'step' in the source, or step=, found neither" in found[2]


def test_what_does_not_fit_is_refused_and_nothing_taken_over(real):
    model = Net()
    theirs = trained(model, 3)
    optimizer = Optimizer(model.named_parameters(), BOTH)
    optimizer.prepare()
    before = copy.deepcopy(optimizer.state_dict()["state"])
    muon, adamw = (copy.deepcopy(one.state_dict()) for one in theirs)

    def refused(sources, text, mapping=MAPPING, **options):
        with pytest.raises(stepc.StepcError, match=text):
            import_states(optimizer, sources, mapping, **({"names": ["up.weight"], "step": 3} | options))
        now = optimizer.state_dict()["state"]
        assert all(
            torch.equal(now[key][state], value) for key, own in before.items() for state, value in own.items()
        )

    refused([muon], "'norm.weight': expected states of it, found none")
    refused([muon, adamw, muon], "'up.weight': expected its states once, found them in two sources")
    refused([muon, adamw], "expected a route or rule, AdamW, Muon, found 'Adam'", MAPPING | {"Adam": {}})
    refused([muon, adamw], "'up.weight': expected a mapping of route Muon, found none", {"AdamW": MAPPING["AdamW"]})
    refused([muon, adamw], "expected names= of the state dict's 1 parameter, found 0 names", names=[])
    refused([muon, adamw], "names=: expected a list for each of 2 sources, found 1", names=[["up.weight"]])
    refused([muon, adamw], "found {'m': 'momentum_buffer', 'masters': 'x'}", MAPPING | {"Muon": MAPPING["Muon"] | {"masters": "x"}})
    refused([muon, adamw], "'up.weight': expected 'step' in the source, or step=, found neither", step=None)
    less = MAPPING | {"AdamW": {"m": "exp_avg"}}
    refused([muon, adamw], "expected a name for each of the states m, v, found {'m': 'exp_avg'}", less)
    refused([muon, adamw], "found 'exp_avg_sq', too, which no state takes", MAPPING | {"AdamW": {"m": "exp_avg", "v": None}})
    refused(
        [{"up.weight": {"step": 3}}, adamw], "state 'm': expected 'momentum_buffer' in the source, found step"
    )
    refused(3, "expected an optimizer, a state dict or FlatStates, found int")
    refused([muon, adamw, {"z": {}}], "'z': expected one that this optimizer steps, found states of it")
    refused(trained(Net(), 1), "expected an optimizer of the same parameters")
    double = copy.deepcopy(adamw)
    double["state"][0]["exp_avg"] = double["state"][0]["exp_avg"].double()
    refused([muon, double], "expected torch.float32, found torch.float64; a cast would round it")
    double["state"][0]["exp_avg"] = torch.zeros(3)
    refused([muon, double], r"state 'm': expected shape \[6\], found \[3\]")


class Interleaved(_StridedShard):
    """As in test_exported.py: each stripe is sharded by itself."""


register_placement(Interleaved, lambda one: f"IS({one.dim}, {one.split_factor})")
UNEVEN = {"rows": (8, 3), "stripes": (8, 3), "strided": (7, 3)}


def _part(name, whole, rank):
    """What a rank of (3, 2) has, by the definitions: rows of any number over dp, stripes over tp, FSDP2
    over tp.
    """
    dp, tp = divmod(rank, 2)
    if name == "rows":
        return whole.split((5, 0, 3))[dp]
    if name == "stripes":
        return torch.cat([stripe.chunk(2)[tp] for stripe in whole.chunk(2)])
    parts = whole.chunk(2)[tp].chunk(3)
    return parts[dp] if dp < len(parts) else whole[:0]


def _uneven(rank):
    """DTensors that do not say which elements they have: states of torch's optimizer lie as the
    parameters do.
    """
    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("dp", "tp"))
    places = {"rows": [Shard(0), Replicate()], "stripes": [Replicate(), Interleaved(0, split_factor=2)],
              "strided": [_StridedShard(0, split_factor=2), Shard(0)]}  # fmt: skip

    def sharded(name, whole):
        return DTensor.from_local(_part(name, whole, rank).contiguous(), mesh, places[name], run_check=False,
                                  shape=whole.shape, stride=whole.stride())  # fmt: skip

    def values(seed):
        return {
            name: torch.randn(shape, generator=torch.Generator().manual_seed(seed + len(name)))
            for name, shape in UNEVEN.items()
        }

    model = {name: nn.Parameter(sharded(name, whole)) for name, whole in values(0).items()}
    single = {name: nn.Parameter(whole) for name, whole in values(0).items()}
    theirs, other = (torch.optim.AdamW(one.items(), lr=1e-3, foreach=False) for one in (model, single))
    for step in range(2):
        for name, gradient in values(10 + step).items():
            model[name].grad, single[name].grad = sharded(name, gradient), gradient
        theirs.step()
        other.step()
    saved = {
        "state": {name: dict(theirs.state[p]) for name, p in model.items()},
        "param_groups": [{"params": list(model)}],
    }
    spec = ADAMW.replace("MASTER", "") + "route { AdamW(lr = 1e-3) for rest }"
    for source in (theirs, theirs.state_dict(), saved):
        optimizer = Optimizer(model.items(), spec, timeout=60.0)
        import_states(optimizer, source, {"AdamW": MAPPING["AdamW"]})
        for name, p in model.items():
            for state, key in MAPPING["AdamW"].items():
                whole = other.state[single[name]][key]
                assert torch.equal(optimizer.state[p][state].to_local(), _part(name, whole, rank)), (
                    name,
                    state,
                )
            assert optimizer.state[p]["step"] == 2
    # Shards of another size, as they are on some ranks: all refuse, and nothing was taken over.
    wrong = {name: dict(theirs.state[p]) for name, p in model.items()}
    wrong["rows"]["exp_avg"] = distribute_tensor(torch.ones(8, 3), mesh, places["rows"], src_data_rank=None)
    before = copy.deepcopy(optimizer.state_dict()["state"])
    with pytest.raises(
        stepc.StepcError,
        match=r"'rows': state 'm': expected a shard of shape \[[530], 3\] that says which elements it has",
    ):
        import_states(optimizer, wrong, {"AdamW": MAPPING["AdamW"]})
    expect_kept(optimizer, before)
    return True


def expect_kept(optimizer, before):
    for key, own in optimizer.state_dict()["state"].items():
        for state, value in own.items():
            a, b = (
                one.to_local() if isinstance(one, DTensor) else one for one in (value, before[key][state])
            )
            assert torch.equal(a, b), (key, state)


def _all_or_none(rank):
    """What one rank cannot take over no rank does; an error while values are copied is everybody's."""
    model = fully_shard(Net())
    theirs = trained(model, 3)
    optimizer = Optimizer(model.named_parameters(), BOTH, timeout=20.0)
    optimizer.prepare()
    before = copy.deepcopy(optimizer.state_dict()["state"])
    adamw = copy.deepcopy(theirs[1].state_dict())
    if rank == 1:
        adamw["state"][1]["exp_avg_sq"] = adamw["state"][1]["exp_avg_sq"].double()
    text = "'norm.bias': state 'v': expected torch.float32, found torch.float64"
    with pytest.raises(
        stepc.StepcError,
        match=text if rank == 1 else f"rank 1 could not import its states: StepcError: .*{text}",
    ):
        import_states(optimizer, [theirs[0], adamw], MAPPING, step=3)
    expect_kept(optimizer, before)
    set_gradients(model, 3)
    optimizer.step()  # nobody is torn
    import_states(optimizer, theirs, MAPPING, step=3)
    if rank == 1:
        def fails(*_):
            raise RuntimeError("no memory")

        stepc.torch.imports.copy_state = fails
    dist.barrier()
    found = []
    for action in (lambda: import_states(optimizer, theirs, MAPPING, step=3), optimizer.step, lambda: import_states(optimizer, theirs, MAPPING)):
        try:
            action()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


def test_ranks_import_together_or_not_at_all(real):
    first, second = run_ranks(_all_or_none, 2)
    assert [name for name, _ in second] == ["RuntimeError", "PoisonedError", "PoisonedError"]
    assert "an earlier import_states() failed: no memory" in second[1][1], second
    assert (
        first[0][0] == "TransportError" and "no memory" in first[0][1] and first[1][0] == "PoisonedError"
    ), first


def test_states_of_dtensors_that_do_not_say_what_they_hold(real):
    assert all(run_ranks(_uneven, 6))
