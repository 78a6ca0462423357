"""States that stay with the ranks that compute their matrices: trained, saved, loaded on other ranks, and moved when
parameters are frozen, unfrozen and added, with the bits of one rank."""

import pytest
import torch
import torch.distributed.checkpoint as dcp
from ranks import RanksFailed, run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from stepc import StepcError
from stepc.torch import Optimizer, moving

# `v` is read and written between two orthogonalizations, so it stays with the matrix. `m` stays on shards.
SPEC = """
optimizer Between(lr) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 0.1)
  let o = orthogonalize(m, coefficients = [(1.5, -0.5, 0)], precision = f32)
  v = lerp(v, o ^ 2, 0.05)
  param = param - lr * orthogonalize(o / (sqrt(v) + 1e-8), coefficients = [(1.5, -0.5, 0)], precision = f32)
}
route { Between(lr = 0.5) for matrix }
"""
SHAPES = {"a": (6, 5), "b": (6, 5), "c": (9, 4), "d": (6, 5), "e": (9, 4), "experts": (5, 4, 3)}
OPTIONS = {"strategy": {"*": "owner"}}


def on_ranks(function, size, *arguments):
    """``function(rank, size, *arguments)`` on ``size`` ranks."""
    return run_ranks(function, size, size, *arguments)


class Model(nn.Module):
    def __init__(self, mesh=None):
        super().__init__()
        for number, (name, shape) in enumerate(SHAPES.items()):
            whole = torch.randn(shape, generator=torch.Generator().manual_seed(number))
            placed = whole if mesh is None else distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None)
            self.register_parameter(name, nn.Parameter(placed))


def optimizer_of(model, **options):
    return Optimizer(model.named_parameters(), SPEC, batch={"experts": 1}, timeout=60.0, **OPTIONS, **options)


def train(model, optimizer, steps):
    for step in steps:
        for number, (name, shape) in enumerate(SHAPES.items()):
            p = getattr(model, name)
            whole = torch.randn(shape, generator=torch.Generator().manual_seed(1000 * step + number))
            if isinstance(p, DTensor):
                whole = distribute_tensor(whole, p.device_mesh, p.placements, src_data_rank=None)
            p.grad = whole if p.requires_grad else None
        optimizer.step()


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def parameters(model):
    return {name: whole(p.detach()).clone() for name, p in model.named_parameters()}


def alone(schedule):
    """The parameters of one rank that trains by a schedule of steps and frozen names."""
    model = Model()
    optimizer = optimizer_of(model)
    for steps, frozen in schedule:
        freeze(model, frozen)
        train(model, optimizer, steps)
    return parameters(model)


def freeze(model, names):
    for name, p in model.named_parameters():
        p.requires_grad_(name not in names)


def equal(found, expected):
    return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


def held(optimizer, model):
    """By parameter the boxes of `v` that this rank has."""
    return {name: [tuple(box.offsets) for box in optimizer.state[p]["v"].boxes]
            for name, p in model.named_parameters() if p in optimizer.state}  # fmt: skip


def _trained(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    model = Model(mesh)
    optimizer = optimizer_of(model)
    train(model, optimizer, range(4))
    infos = {info.name: info for info in optimizer._binding.instance.parameters}
    states = {state.name: state for state in infos["a"].states}
    assert states["v"].placements == "[blocks]" and states["m"].placements == "[S(0)]"
    shapes = {name: tuple(optimizer.state[p]["v"].shape) for name, p in model.named_parameters()}
    return parameters(model), shapes


def test_training_has_the_bits_of_one_rank():
    results = on_ranks(_trained, 4)
    expected = alone([(range(4), ())])
    assert all(equal(found, expected) for found, _ in results)
    for name, shape in SHAPES.items():
        sizes = [int(torch.Size(shapes[name]).numel()) for _, shapes in results]
        assert sum(sizes) == torch.Size(shape).numel(), (name, sizes)
        # A rank has the whole matrix, some experts in one list, or nothing.
        assert all(shapes[name] == shape or len(shapes[name]) == 1 or 0 in shapes[name] for _, shapes in results)


def _save(rank, size, folder, strategy):
    model = Model(init_device_mesh("cpu", (size,)))
    optimizer = Optimizer(model.named_parameters(), SPEC, batch={"experts": 1}, timeout=60.0, strategy={"*": strategy})
    train(model, optimizer, range(2))
    weights, states = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": states}, checkpoint_id=folder)


def _load(rank, size, folder, strategy):
    model = Model(init_device_mesh("cpu", (size,)))
    optimizer = Optimizer(model.named_parameters(), SPEC, batch={"experts": 1}, timeout=60.0, strategy={"*": strategy})
    weights, states = get_state_dict(model, optimizer)
    found = {"model": weights, "optimizer": states}
    dcp.load(found, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    train(model, optimizer, range(2, 4))
    return parameters(model)


@pytest.mark.parametrize(
    ("before", "saved_by", "after", "loaded_by"),
    [(6, "owner", 4, "owner"), (4, "gather", 3, "owner"), (3, "owner", 4, "gather"), (4, "owner", 1, "local")],
)
def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path, before, saved_by, after, loaded_by):
    on_ranks(_save, before, str(tmp_path), saved_by)
    expected = alone([(range(4), ())])
    assert all(equal(found, expected) for found in on_ranks(_load, after, str(tmp_path), loaded_by))


SCHEDULE = [(range(2), ("a", "c", "experts")), (range(2, 4), ()), (range(4, 6), ("b", "d")), (range(6, 8), ("e",))]


def _unfrozen(rank, size):
    model = Model(init_device_mesh("cpu", (size,)))
    optimizer, boxes = optimizer_of(model), []
    for steps, frozen in SCHEDULE:
        freeze(model, frozen)
        train(model, optimizer, steps)
        boxes.append(held(optimizer, model))
    return parameters(model), boxes


def test_states_move_when_parameters_are_frozen_and_unfrozen():
    results = on_ranks(_unfrozen, 4)
    expected = alone(SCHEDULE)
    assert all(equal(found, expected) for found, _ in results)
    # Some block of a parameter that was stepped before has gone to another rank.
    assert any(before[name] != after[name] for _, boxes in results
               for before, after in zip(boxes, boxes[1:], strict=False) for name in before if name in after)  # fmt: skip


def _kept(rank, size):
    """Equal layers, of which the first is unfrozen later: dealt out anew, all of them would get other owners."""
    mesh, model = init_device_mesh("cpu", (size,)), nn.Module()
    for number in range(3 * size):
        value = torch.randn(2 * size, 5, generator=torch.Generator().manual_seed(number))
        placed = distribute_tensor(value, mesh, [Shard(0)], src_data_rank=None)
        model.register_parameter(f"p{number}", nn.Parameter(placed))
    model.p0.requires_grad_(False)
    optimizer = Optimizer(model.named_parameters(), SPEC, timeout=60.0, **OPTIONS)
    owners = []
    for again in (True, True, False):
        for p in model.parameters():
            p.grad = torch.ones_like(p) if p.requires_grad else None
        if not again:
            optimizer._before, optimizer._compiled = None, (None, None)  # as if there were no previous library
            optimizer.prepare()
        optimizer.step()
        owners.append([bool(optimizer.state[p]["v"].boxes) for name, p in model.named_parameters() if name != "p0"])
        model.p0.requires_grad_(True)
    return owners


def test_owners_stay_where_that_costs_little():
    found = on_ranks(_kept, 3)
    assert all(before == after for before, after, _ in found)
    assert any(after != anew for _, after, anew in found)


def begun(size):
    """A model that has trained by the first entry of SCHEDULE, and its optimizer."""
    model = Model(init_device_mesh("cpu", (size,)))
    optimizer = optimizer_of(model)
    freeze(model, SCHEDULE[0][1])
    train(model, optimizer, SCHEDULE[0][0])
    return model, optimizer


def _fails(rank, size):
    model, optimizer = begun(size)
    before = {name: optimizer.state[p]["v"].plain.clone() for name, p in model.named_parameters() if p in optimizer.state}
    move = moving._move
    if rank == 1:

        def broken(*arguments):
            raise StepcError("the disk is full")

        moving._move = broken
    freeze(model, ())
    optimizer._before = None  # as if there were no previous library, so that states move
    with pytest.raises(Exception, match="the disk is full"):
        optimizer.prepare()
    moving._move = move
    kept = {name: optimizer.state[p]["v"].plain for name, p in model.named_parameters() if name in before}
    assert all(torch.equal(kept[name], before[name]) for name in before)
    train(model, optimizer, SCHEDULE[1][0])
    return parameters(model)


def test_a_rank_that_fails_while_states_move_loses_nothing():
    expected = alone(SCHEDULE[:2])
    assert all(equal(found, expected) for found in on_ranks(_fails, 4))


def _cast(rank, size):
    """Rank 1 puts a state of another type in the place of its own, and another layer is unfrozen."""
    model, optimizer = begun(size)
    freeze(model, ())
    own = optimizer.state[model.b]["v"]
    if rank == 1:
        optimizer.state[model.b]["v"] = own.plain.to(torch.bfloat16)
    with pytest.raises(StepcError, match=r"'b': state 'v': expected torch.float32, found torch.bfloat16"):
        optimizer.prepare()
    optimizer.state[model.b]["v"] = own
    train(model, optimizer, SCHEDULE[1][0])
    return parameters(model)


def test_an_error_of_one_rank_before_states_move_is_all_ranks_error():
    expected = alone(SCHEDULE[:2])
    assert all(equal(found, expected) for found in on_ranks(_cast, 4))


def _torn(rank, size):
    model, optimizer = begun(size)
    for p in model.parameters():
        if p in optimizer.state and optimizer.state[p]["v"].boxes:
            del optimizer.state[p]  # only where the state is
    freeze(model, ())
    optimizer._before = None  # as if there were no previous library, so that states move
    optimizer.prepare()


def test_a_state_that_no_rank_has_any_more_is_refused():
    with pytest.raises(RanksFailed, match=r"'v': expected all of its elements on some rank, found 0 of .*forget\("):
        on_ranks(_torn, 4)


def _between_shards_and_blocks(rank, size):
    """States go from blocks to shards and back, as the strategy changes."""
    model = Model(init_device_mesh("cpu", (size,)))
    freeze(model, ("experts", "d"))
    optimizer = optimizer_of(model, numerics="fast")
    train(model, optimizer, range(2))
    kept = {}
    for strategy in ("slabs", "owner"):
        before = {name: optimizer.state[getattr(model, name)]["v"] for name in "abce"}
        optimizer._compile_options = optimizer._compile_options | {"strategy": {"*": strategy}}
        optimizer.prepare()
        after = {name: optimizer.state[getattr(model, name)]["v"] for name in "abce"}
        assert all(isinstance(after[name], DTensor) == (strategy == "slabs") for name in after)
        for name, tensor in (after if strategy == "slabs" else before).items():
            kept[strategy, name] = tensor.full_tensor()
        held = before if strategy == "slabs" else after
        for name, piece in held.items():
            for box in piece.boxes:
                assert torch.equal(box.of(piece.plain), box.within(kept[strategy, name])), (strategy, name)
    return sum(float(one.abs().sum()) for one in kept.values())


def test_states_move_between_shards_and_blocks():
    assert min(on_ranks(_between_shards_and_blocks, 3)) > 0


def _ready(rank, size, folder):
    model = Model(init_device_mesh("cpu", (size,)))
    first = optimizer_of(model)
    first.prepare()
    path = first._binding.instance.library.path
    optimizer = Optimizer(model.named_parameters(), library=path, batch={"experts": 1}, timeout=60.0)
    train(model, optimizer, range(4))
    return parameters(model)


def test_a_ready_library_says_where_states_stay(tmp_path):
    expected = alone([(range(4), ())])
    assert all(equal(found, expected) for found in on_ranks(_ready, 3, str(tmp_path)))


def _limited(rank, size, limit):
    model = Model(init_device_mesh("cpu", (size,)))
    optimizer = optimizer_of(model, state_limit=limit)
    optimizer.prepare()
    return sum(state.numel() * 4 for p in model.parameters()
               for state in (optimizer.state[p]["v"].plain, optimizer.state[p]["m"].to_local()))  # fmt: skip


def test_a_limit_of_states_is_obeyed_or_an_error():
    every = on_ranks(_limited, 4, None)
    limit = sum(every) // 4 + 4 * 36
    assert max(on_ranks(_limited, 4, limit)) <= limit
    with pytest.raises(RanksFailed, match=r"at most 100 bytes of states on a rank \(--state-limit\), found no less than"):
        on_ranks(_limited, 4, 100)
