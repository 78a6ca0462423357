"""Ready libraries: whether what they were compiled for is what the model has."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.placement_types import Shard

import stepc
from stepc.torch import Bucket, Optimizer, Placed, export_manifest

MUON = """
optimizer Muon(lr) { param = param - lr * orthogonalize(grad) }
route { Muon(lr = 0.1) for matrix }
"""
SGD = "optimizer Sgd(lr) { param = param - lr * grad }\nroute { Sgd(lr = 0.1) for rest }\n"


def _manifest(sizes, ranks, placements):
    axes = [{"name": name, "size": size} for name, size in zip(("dp", "tp"), sizes, strict=True)]
    parameter = {"name": "w", "shape": [8, 12], "dtype": "f32", "mesh": "m", "placements": placements}
    return {"version": 1, "meshes": [{"name": "m", "axes": axes, "ranks": ranks}],
            "parameters": [parameter]}  # fmt: skip


def _libraries(folder, spec, manifests):
    return {name: str(stepc.compile(spec, manifest, output=folder / name).library)
            for name, manifest in manifests.items()}  # fmt: skip


def _load(rank, libraries):
    """Every library on a (2, 2) mesh of the ranks 0, 2, 1, 3: its error, or the step's values."""
    mesh = DeviceMesh("cpu", torch.tensor([[0, 2], [1, 3]]), mesh_dim_names=("rows", "columns"))
    found = {}
    for name, library in libraries.items():
        torch.manual_seed(0)
        places = [Shard(0), Shard(1)]
        w = nn.Parameter(distribute_tensor(torch.randn(8, 12), mesh, places, src_data_rank=None))
        w.grad = distribute_tensor(torch.randn(8, 12), mesh, places, src_data_rank=None)
        try:
            Optimizer([("w", w)], library=library, timeout=20.0).step()
            found[name] = w.full_tensor().detach()
        except stepc.PlanError as error:
            found[name] = str(error)
    return found


def test_libraries_of_other_meshes_are_refused(real, tmp_path):
    both = ["S(0)", "S(1)"]
    libraries = _libraries(tmp_path, MUON, {
        "same": _manifest((2, 2), [0, 2, 1, 3], both),
        "transposed": _manifest((2, 2), [0, 1, 2, 3], both),
        "permuted": _manifest((2, 2), [3, 2, 1, 0], both),
        "tall": _manifest((4, 1), [0, 2, 1, 3], both),
        "wide": _manifest((1, 4), [0, 2, 1, 3], both),
    })  # fmt: skip
    results = run_ranks(_load, 4, libraries)
    for found in results:
        for name, text in {
            "transposed": "expects mesh ranks [0, 1, 2, 3], the model has [0, 2, 1, 3]",
            "permuted": "expects mesh ranks [3, 2, 1, 0], the model has [0, 2, 1, 3]",
            "tall": "expects mesh sizes [4, 1], the model has [2, 2]",
            "wide": "expects mesh sizes [1, 4], the model has [2, 2]",
        }.items():
            assert isinstance(found[name], str), name
            assert found[name].startswith("parameter 'w': library"), found[name]
            assert text in found[name]
        # Axes may have other names.
        assert torch.equal(found["same"], results[0]["same"])


@pytest.mark.parametrize("spec", [MUON, SGD])
def test_libraries_of_other_batch_axes_are_refused(real, tmp_path, spec):
    def model():
        return [("w", nn.Parameter(torch.zeros(3, 4, 5))), ("v", nn.Parameter(torch.zeros(4, 5)))]

    spec = spec.replace("matrix", "rest")
    made = stepc.compile(spec, export_manifest(model(), batch=["w"]), output=tmp_path)
    named = model()
    for _, tensor in named:
        tensor.grad = torch.randn(tensor.shape)
    Optimizer(named, library=made.library, batch=["w"]).step()
    assert torch.count_nonzero(named[0][1])
    with pytest.raises(
        stepc.PlanError,
        match="parameter 'w': library .* expects batch axes 1, the model has 0",
    ):
        Optimizer(model(), library=made.library).step()


@pytest.mark.parametrize("key, what", [("grad", "gradient"), ("state", "state")])
def test_libraries_of_shards_that_stand_apart_are_refused(real, tmp_path, key, what):
    named = [("w", nn.Parameter(torch.zeros(3, 4)))]
    manifest = export_manifest(named)
    manifest["parameters"][0][f"{key}_placements"] = ["S(0)"]
    spec = "optimizer Sgd(lr) { state m : f32\n m = m + grad\n param = param - lr * m }\n" \
           "route { Sgd(lr = 0.1) for rest }"  # fmt: skip
    made = stepc.compile(spec, manifest, output=tmp_path)
    named[0][1].grad = torch.ones(3, 4)
    with pytest.raises(stepc.PlanError, match=f"parameter 'w': library .* expects {what} placements"):
        Optimizer(named, library=made.library).step()


FLAT = """
optimizer A(lr) {
  state m : f32
  state r : f32[rows]
  m = m + grad
  r = r + mean(grad * grad, over = columns)
  param = param - lr * m / (sqrt(r) + 1)
}
route { A(lr = 0.5) for matrix }
"""
BUCKETS = {"one": ((4,), ["flat"]), "hybrid": ((2, 2), ["R", "flat"]), "both": ((2, 2), ["flat", "flat"]),
           "beside tensor parallelism": ((2, 2), ["flat", "S(0)"])}  # fmt: skip


def _bucket(rank, folder):
    """Libraries of flat buckets, compiled from the exported manifest; and the same at another offset."""
    found = []
    for name, (sizes, places) in BUCKETS.items():
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("dp", "tp")[: len(sizes)])
        halves = places[-1] == "S(0)"
        rows = 5 if halves else 9
        local = rows if not halves else (3, 2)[mesh.get_local_rank(1)]
        size = 24 if halves else 64
        bucket = {"all": Bucket(size, {"w": 7})}
        result = []
        for library in (False, True):
            w = nn.Parameter(torch.arange(12.0 * rows).view(rows, 12)[:local, :4].clone())
            w.main_grad = torch.ones_like(w) * (1 + mesh.get_local_rank(0))
            given = {"placements": {"w": Placed(mesh, ["R", "S(0)"] if halves else ["R"] * mesh.ndim, (rows, 4),
                                                ["P(sum)", places[-1]] if halves else ["P(sum)"] * mesh.ndim, places)},
                     "gradient": "main_grad"}  # fmt: skip
            manifest = export_manifest([("w", w)], buckets=bucket, **given)
            path = f"{folder}/{name}"
            if rank == 0 and library:
                stepc.compile(FLAT, manifest, output=path)
            dist.barrier()
            made = {"library": next(Path(path).glob("lib*.so"))} if library else {"spec": FLAT}
            optimizer = Optimizer([("w", w)], buckets=bucket, timeout=60.0, **made, **given)
            optimizer.step()
            result.append(w.detach().clone())
        assert torch.equal(*result), name
        with pytest.raises(stepc.PlanError) as failed:
            Optimizer(
                [("w", w)], buckets={"all": Bucket(size, {"w": 8})}, timeout=60.0, **made, **given
            ).step()
        found.append(str(failed.value))
    return found


def test_libraries_of_flat_buckets(real, tmp_path):
    for found in run_ranks(_bucket, 4, str(tmp_path)):
        assert (
            "expects state placements [['flat(0, 9, 25, 36, 36)']], the model has [['flat(0, 8, 24, 36, 36)']]"
            in found[0]
        ), found[0]
        assert (
            "expects state placements [['R', 'flat(0, 25, 36)']], the model has [['R', 'flat(0, 24, 36)']]"
            in found[1]
        )
        assert (
            "['flat(0, 9, 25, 36, 36)', 'flat']" in found[2]
            and "['flat(0, 8, 24, 36, 36)', 'flat']" in found[2]
        )
        assert (
            "['flat(0, 5, 12)', 'S(0)']" in found[3]
            and "the model has [['flat(0, 4, 12)', 'S(0)']]" in found[3]
        )


def _other_definition(rank):
    """A stale file on one rank: the same names, another body."""
    mesh = DeviceMesh("cpu", torch.arange(3), mesh_dim_names=("dp",))
    w = nn.Parameter(distribute_tensor(torch.ones(6, 2), mesh, [Shard(0)], src_data_rank=None))
    w.grad = distribute_tensor(torch.ones(6, 2), mesh, [Shard(0)], src_data_rank=None)
    text = SGD.replace("lr * grad", "2 * lr * grad") if rank == 1 else SGD
    try:
        Optimizer([("w", w)], text, timeout=20.0).step()
    except stepc.StepcError as error:
        assert torch.equal(w.to_local(), torch.ones(2, 2))
        return str(error)
    return "stepped"


def test_ranks_with_other_definitions_do_not_step(real):
    for text in run_ranks(_other_definition, 3):
        assert "expected the definition and options of rank 0 on all ranks" in text, text
        assert "found others on rank 1" in text
