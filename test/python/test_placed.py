"""What a step sees of DTensors: placements by exact class, versions, strided shards."""

from collections import OrderedDict

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard

import stepc
from stepc.torch import Optimizer, Placed, PlacementError, export_manifest, parameters_to_save
from stepc.torch.entries import Entry, Mesh
from stepc.torch.uneven import as_it_lies


ALL = pytest.mark.tier("all")


class Odd(Shard):
    """Equal to a Shard by ``==``, and something else by meaning."""


class OddSum(Partial):
    """Equal to a Partial by ``==``."""


def _exact(rank):
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
    w = nn.Parameter(distribute_tensor(torch.zeros(4, 3), mesh, [Shard(0)]))
    optimizer = Optimizer([("w", w)], "rule {}", Plain={"lr": 1.0})
    w.grad = torch.ones_like(w)
    optimizer.step()
    assert Odd(0) == Shard(0)
    texts = []
    for placement in (Odd(0), OddSum(), Partial("max"), Shard(1)):
        w.grad = DTensor.from_local(torch.ones(4, 3), mesh, [placement], run_check=False)
        try:
            optimizer.step()
        except stepc.GradientError as error:
            texts.append(str(error))
    good = optimizer.state[w]["m"]
    optimizer.state[w]["m"] = DTensor.from_local(good.to_local(), mesh, [Odd(0)], run_check=False)
    try:
        optimizer.step()
    except stepc.StepcError as error:
        texts.append(str(error))
    optimizer.state[w]["m"] = good
    # A graph that saved the shard knows that the step wrote it.
    w.grad = torch.ones_like(w)
    loss = (w.to_local() * torch.ones(4, 3, requires_grad=True)).sum()
    before = w._version, w.to_local()._version
    optimizer.step()
    assert w._version > before[0] and w.to_local()._version > before[1]
    try:
        loss.backward()
    except RuntimeError as error:
        texts.append(str(error))
    meta = nn.Parameter(distribute_tensor(torch.zeros(4, 3, device="meta"), mesh, [Shard(0)]))
    try:
        export_manifest([("w", meta)])
    except ValueError as error:
        texts.append(str(error))
    return texts


def test_placements_count_by_exact_class(fake):
    (texts,) = run_ranks(_exact, 1)
    assert len(texts) == 7, texts
    for text in texts[:4]:
        assert "parameter 'w': gradient: expected placements [Shard(dim=0)] on" in text
    assert "parameter 'w': state 'm': expected the placements [Shard(dim=0)]" in texts[4]
    assert "modified inplace" in texts[5]
    assert "'w': expected a tensor with memory, found a meta tensor" in texts[6]


def _strided(rank, shape, rows):
    """FSDP2 over tensor parallelism: what a rank stores, and what DTensor reads out of placements."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    result = []
    for size in rows:
        model = nn.Sequential(OrderedDict(up=nn.Linear(2, size, bias=False)))
        whole = torch.arange(2.0 * size).view(size, 2)
        with torch.no_grad():
            model.up.weight.copy_(whole)
        parallelize_module(model, mesh["tp"], {"up": ColwiseParallel()})
        fully_shard(model, mesh=mesh["dp"])
        p = model.up.weight
        read = distribute_tensor(whole, p.device_mesh, p.placements, src_data_rank=None)
        alike = torch.equal(p.to_local(), read.to_local())
        manifest = export_manifest(model.named_parameters())
        (found,) = manifest["parameters"]
        axes = [axis["name"] for axis in manifest["meshes"][0]["axes"]]
        result.append((alike, found["shape"] == [size, 2] and found["placements"], axes))
        # DTensor's reading of the same placements, cut as distribute_tensor does.
        manifest = export_manifest([("up.weight", nn.Parameter(read))])
        assert manifest["parameters"][0]["placements"] == ["_S(0, 2)", "S(0)"]
    return result


@pytest.mark.parametrize(
    ("shape", "rows", "moved"),
    # 3 x 2 holds 13 rows as 3,2 / 3,2 / 1,2 and DTensor reads 2,1 in the last pair.
    [((2, 2), (8, 9, 10, 13, 1), ()), ((3, 2), (6, 7, 10, 13, 5), (7, 13))],
)
def test_strided_shards_hold_what_the_manifest_says(fake, shape, rows, moved):
    """FSDP2 itself takes uneven sizes along the first dimension; where its elements are not those
    that DTensor reads, the sizes of the shards tell which they are."""
    results = run_ranks(_strided, shape[0] * shape[1], shape, rows)
    for number, size in enumerate(rows):
        alike = all(found[number][0] for found in results)
        assert alike == (size not in moved), (size, [found[number] for found in results])
        for found in results:
            # What tensor parallelism cut first stands first.
            expected = (["S(0)", "S(0)"], ["tp", "dp"]) if size in moved else (
                ["_S(0, 2)", "S(0)"], ["dp", "tp"])  # fmt: skip
            assert found[number][1:] == expected, (size, found[number])


def test_shards_that_nothing_cuts_so_are_refused():
    mesh = Mesh((("dp", 3), ("tp", 2)), tuple(range(6)))
    entry = Entry("w", (7, 2), "f32", "f32", mesh, ("_S(0, 2)", "S(0)"))
    stored = {0: 2, 1: 1, 2: 2, 3: 1, 4: 0, 5: 1}
    assert as_it_lies(entry, {r: (n, 2) for r, n in stored.items()}).mesh.ranks == (0, 2, 4, 1, 3, 5)
    stored[0] = 3
    with pytest.raises(PlacementError, match="'w': expected shards of the sizes .* fit neither"):
        as_it_lies(entry, {rank: (n, 2) for rank, n in stored.items()})


SGD = """
optimizer Mean(lr) {
  state m : f32
  state r : f32[rows]
  m = 0.5 * m + grad
  r = r + mean(m * m, over = columns)
  param = param - lr * orthogonalize(m) - 0.01 * r
}
optimizer Sgd(lr) {
  state m : f32
  m = 0.5 * m + grad
  param = param - lr * m
}
route {
  Mean(lr = 0.1) for "mean*"
  Sgd(lr = 0.1) for rest
}
"""


def _cut_twice(whole, rank, dp, tp):
    """A rank's rows: tensor parallelism cuts first."""
    for index, pieces in ((rank % tp, tp), (rank // tp, dp)):
        parts = whole.chunk(pieces)
        whole = parts[index] if index < len(parts) else whole[:0]
    return whole


def _uneven(rank, rows, dp, tp, folder):
    """FSDP2 over tensor parallelism against whole tensors, element by element."""
    mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    names = ("mean", "plain")
    model, single = (
        nn.Sequential(OrderedDict((name, nn.Linear(4, rows, bias=False)) for name in names))
        for _ in range(2)
    )
    generator = torch.Generator().manual_seed(1)
    values = [torch.randn(rows, 4, generator=generator) for _ in range(8)]
    with torch.no_grad():
        for name, value in zip(names, values, strict=False):
            model.get_submodule(name).weight.copy_(value)
            single.get_submodule(name).weight.copy_(value)

    def piece(whole):
        return _cut_twice(whole, rank, dp, tp)

    parallelize_module(model, mesh["tp"], dict.fromkeys(names, ColwiseParallel()))
    fully_shard(model, mesh=mesh["dp"])
    # The manifest names the axes as they cut, of gradients too.
    pending = export_manifest(
        model.named_parameters(), placements={"*": Placed(gradient=[Partial(), Shard(0)])}
    )
    for one in pending["parameters"]:
        assert (one["placements"], one["grad_placements"]) == (["S(0)", "S(0)"], ["S(0)", "P(sum)"])
    whole = nn.Parameter(DTensor.from_local(torch.zeros(rows, 4), mesh, [Replicate()] * 2, run_check=False))
    with pytest.raises(PlacementError, match=r"'w': gradient: expected placements that FSDP2 and DTensor read alike, .* found "
                       rf"\['_S\(0, {tp}\)', 'S\(0\)'\] of the shape \[{rows}, 4\]"):  # fmt: skip
        export_manifest([("w", whole)], placements={"*": Placed(gradient=[f"_S(0, {tp})", "S(0)"])})
    optimizer = Optimizer(model.named_parameters(), SGD, timeout=60.0)
    alone = [dist.new_group([one]) for one in range(dp * tp)][rank]
    other = Optimizer(single.named_parameters(), SGD, process_group=alone)
    for step in range(3):
        for number, name in enumerate(names):
            whole = values[2 + 2 * step + number]
            p = model.get_submodule(name).weight
            single.get_submodule(name).weight.grad = whole
            p.grad = DTensor.from_local(piece(whole).contiguous(), p.device_mesh, p.placements,
                                        run_check=False, shape=p.shape, stride=p.stride())  # fmt: skip
            if step == 2:  # the same on every rank, whole
                p.grad = DTensor.from_local(whole.clone(), p.device_mesh, [Replicate()] * 2,
                                            run_check=False)  # fmt: skip
            if step == 1:  # the same as a pending sum, all of it on one rank
                mine = whole if rank == 4 else torch.zeros_like(whole)
                p.grad = DTensor.from_local(mine, p.device_mesh, [Partial(), Partial()],
                                            run_check=False)  # fmt: skip
        optimizer.step()
        other.step()
        assert [one.gradient_placements == "[P(sum), P(sum)]" for one in optimizer.library.parameters] == [
            step == 1
        ] * 2
    for name in names:
        p, q = model.get_submodule(name).weight, single.get_submodule(name).weight
        assert torch.equal(p.to_local(), piece(q)), name
        state = optimizer.state[p]["m"]
        assert state.placements == p.placements and state.device_mesh == p.device_mesh
        assert torch.equal(state.to_local(), piece(other.state[q]["m"])), name
    r = optimizer.state[model.mean.weight]["r"]
    assert r.placements == (_StridedShard(0, split_factor=tp), Shard(0))
    assert torch.equal(r.to_local(), piece(other.state[single.mean.weight]["r"]))
    # A checkpoint of whole states is cut as the shards really lie; nothing is permuted in silence.
    whole = other.state_dict()
    for state in optimizer.state.values():
        for tensor in state.values():
            tensor.zero_()
    optimizer.load_state_dict(whole)
    for name in names:
        for key, value in other.state[single.get_submodule(name).weight].items():
            mine = optimizer.state[model.get_submodule(name).weight][key]
            mine = mine.to_local() if isinstance(mine, DTensor) else mine
            assert torch.equal(mine, piece(value) if value.dim() else value), (name, key)
    # A distributed checkpoint has every element where it belongs, on whatever ranks it is loaded.
    params = parameters_to_save(optimizer)
    saved = {
        name: {"param": params[f"{name}.weight"], **optimizer.state[model.get_submodule(name).weight]}
        for name in names
    }
    dcp.save(saved, checkpoint_id=folder)
    plain = {
        name: {key: torch.zeros(value.size(), dtype=value.dtype) for key, value in own.items()}
        for name, own in saved.items()
    }
    dcp.load(plain, checkpoint_id=folder)
    for name in names:
        q = single.get_submodule(name).weight
        for key, value in ({"param": q} | other.state[q]).items():
            assert torch.equal(plain[name][key], value), (name, key)
            mine = saved[name][key]._local_tensor if value.dim() else saved[name][key]
            mine.zero_()
    dcp.load(saved, checkpoint_id=folder)
    for name in names:
        p, q = model.get_submodule(name).weight, single.get_submodule(name).weight
        assert torch.equal(p.to_local(), piece(q)) and torch.equal(
            optimizer.state[p]["m"].to_local(), piece(other.state[q]["m"])
        )
    return [tuple(model.get_submodule(name).weight.to_local().shape) for name in names]


# 27 rows on 3 x 4 leave a rank with two rows, which both ways of cutting would give it.
@pytest.mark.parametrize(("rows", "dp", "tp"), [(7, 3, 2), pytest.param(13, 3, 2, marks=ALL), pytest.param(27, 3, 4, marks=ALL)])
def test_uneven_fsdp_over_tensor_parallelism_steps(real, tmp_path, rows, dp, tp):
    results = run_ranks(_uneven, dp * tp, rows, dp, tp, str(tmp_path))
    assert sum(shape[0][0] for shape in results) == rows


def _loaded_while_frozen(rank):
    """Whole states of a frozen parameter are cut as it lies, and fit when it is unfrozen."""
    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(OrderedDict(mean=nn.Linear(2, 7, bias=False)))
    parallelize_module(model, mesh["tp"], {"mean": ColwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    p = model.mean.weight
    p.requires_grad_(False)
    optimizer = Optimizer(model.named_parameters(), SGD, timeout=60.0)
    whole = torch.arange(14.0).view(2, 7).t()
    saved = optimizer.state_dict() | {"state": {0: {"m": whole, "r": torch.zeros(7), "step": 3}}}
    optimizer.load_state_dict(saved)
    expected = _cut_twice(whole, rank, 3, 2)
    m = optimizer.state[p]["m"]
    assert m.shape == p.shape and m.placements == p.placements and m.stride() == p.stride()
    assert torch.equal(m.to_local(), expected)
    p.requires_grad_(True)
    optimizer.prepare()
    assert torch.equal(optimizer.state[p]["m"].to_local(), expected)
    return tuple(expected.shape)


def test_whole_states_of_uneven_frozen_parameters(real):
    shapes = run_ranks(_loaded_while_frozen, 6)
    assert shapes == [(2, 2), (1, 2), (2, 2), (1, 2), (0, 2), (1, 2)]
