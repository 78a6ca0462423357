"""What a step sees of DTensors: placements by exact class, versions, strided shards."""

from collections import OrderedDict

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard

import stepc
from stepc.torch import Optimizer, PlacementError, export_manifest


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
    for placement in (Odd(0), OddSum(), Partial("max"), Replicate()):
        w.grad = DTensor.from_local(torch.ones(4, 3), mesh, [placement], run_check=False)
        try:
            optimizer.step()
        except stepc.GradientError as error:
            texts.append(str(error))
    w.grad = DTensor.from_local(torch.ones(4, 3), mesh, [Partial()], run_check=False)
    optimizer.step()
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
        try:
            (found,) = export_manifest(model.named_parameters())["parameters"]
            result.append((alike, found["shape"] == [size, 2] and found["placements"]))
        except (PlacementError, RuntimeError) as error:
            result.append((alike, str(error)))
        optimizer = Optimizer(model.named_parameters(), "rule {}", Plain={"lr": 1.0})
        if isinstance(result[-1][1], str):
            with pytest.raises((PlacementError, RuntimeError), match="'up.weight': expected a size"):
                optimizer.prepare()
    return result


@pytest.mark.parametrize(
    ("shape", "rows", "refused"),
    # 3 x 2 holds 13 rows as 3,2 / 3,2 / 1,2 and DTensor reads 2,1 in the last pair.
    [((2, 2), (8, 9, 10, 13, 1), ()), ((3, 2), (6, 7, 10, 13, 5), (7, 13))],
)
def test_strided_shards_hold_what_the_manifest_says(fake, shape, rows, refused):
    """FSDP2 itself takes uneven sizes along the first dimension; where its elements are not those
    that DTensor reads, the parameter is refused by name."""
    results = run_ranks(_strided, shape[0] * shape[1], shape, rows)
    for number, size in enumerate(rows):
        alike = all(found[number][0] for found in results)
        assert alike == (size not in refused), (size, [found[number] for found in results])
        for found in results:
            said = found[number][1]
            if size not in refused:
                assert said == ["_S(0, 2)", "S(0)"], said
                continue
            assert "parameter 'up.weight': expected a size that [_StridedShard(dim=0, sf=2)" in said
            assert f"found dimension 0 of size {size} over 6 shards" in said
            assert "make the size a multiple of 6" in said
