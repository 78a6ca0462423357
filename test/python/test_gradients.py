"""Gradients that come otherwise than their parameters: replicated, in flight, with other strides."""

import copy
import warnings

import pytest
import torch
import torch.distributed as dist
from models import SGD
from ranks import run_ranks
from torch import nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard

import stepc
from stepc.torch import Optimizer, Placed, export_manifest

R, S0, S1 = Replicate(), Shard(0), Shard(1)
CUTS = {
    "rows": ([S0, R], [R, R]),
    "columns": ([R, S1], [R, R]),
    "both": ([S0, S1], [R, R]),
    "one of both": ([S0, S1], [S0, R]),
    "other of both": ([S0, S1], [R, S1]),
    "twice": ([S0, S0], [R, R]),
    "half of twice": ([S0, S0], [S0, R]),
    "strided": ([_StridedShard(0, split_factor=2), S0], [R, R]),
    "half of strided": ([_StridedShard(0, split_factor=2), S0], [_StridedShard(0, split_factor=2), R]),
    "inner of strided": ([_StridedShard(0, split_factor=2), S0], [R, S0]),
}


def _cut(rank):
    """A gradient that is replicated where its parameter is sharded: what distribute_tensor cuts."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model, wholes = nn.ParameterDict(), {}
    for name, (places, given) in CUTS.items():
        for shape in ((8, 4), (7, 5), (1, 3), (5, 9)):
            if name == "inner of strided" and shape != (8, 4):
                continue  # a shard of tensor parallelism alone cuts other rows than both do
            if shape[0] == 1 and ("twice" in name or "strided" in name):
                continue  # one row has no place on four ranks
            key = f"{name} {shape}"
            model[key] = nn.Parameter(
                distribute_tensor(torch.zeros(shape), mesh, places, src_data_rank=None)
            )
            wholes[key] = torch.randn(shape, generator=torch.Generator().manual_seed(len(wholes)))
            model[key].grad = distribute_tensor(wholes[key], mesh, given, src_data_rank=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Optimizer(model.named_parameters(), SGD, timeout=60.0).step()
    for key, whole in wholes.items():
        places = CUTS[key[: key.index(" (")]][0]
        expected = distribute_tensor(-0.5 * whole, mesh, places, src_data_rank=None).to_local()
        assert torch.equal(model[key].to_local(), expected), key
    return len(wholes)


def test_replicated_gradients_of_sharded_parameters_are_cut(real):
    assert run_ranks(_cut, 4) == [33] * 4


def _rowwise(rank):
    """Tensor parallelism whose input is replicated: autograd gives a replicated gradient."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

    def build():
        torch.manual_seed(0)
        return nn.Sequential(nn.Embedding(10, 6), nn.Linear(6, 5, bias=False))

    x = torch.tensor([1, 3, 5, 1])
    single = build()
    single(x).square().sum().backward()
    torch.optim.SGD(single.parameters(), lr=0.5).step()
    text = SGD.replace("0.5 * m + ", "")
    for wrapped in (False, True):
        model = build()
        plan = {"0": RowwiseParallel(input_layouts=R, output_layouts=R),
                "1": RowwiseParallel(input_layouts=R, output_layouts=R)}  # fmt: skip
        parallelize_module(model, mesh["tp"], plan)
        if wrapped:
            fully_shard(model, mesh=mesh["dp"])
        model(x).square().sum().backward()
        Optimizer(model.named_parameters(), text, timeout=60.0).step()
        for p, q in zip(model.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(p.full_tensor(), q)
    return True


def test_rowwise_parallelism_with_replicated_input(real):
    assert all(run_ranks(_rowwise, 4))


APART = {"zero-2": ([R, R], [S0, R]), "zero-2 of both": ([R, R], [S0, S0]), "other axis": ([S0, R], [S1, R]),
         "other mesh axis": ([S0, R], [R, S0]), "swapped": ([S0, S1], [S1, S0])}  # fmt: skip


def _apart(rank):
    """Gradients in shards of their own: the manifest says so, and the step brings them to the parameters."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model, single = nn.ParameterDict(), nn.ParameterDict()
    generator = torch.Generator().manual_seed(1)
    for name, (places, _) in APART.items():
        whole = torch.randn((6, 5), generator=generator)
        single[name] = nn.Parameter(whole.clone())
        model[name] = nn.Parameter(distribute_tensor(whole, mesh, places, src_data_rank=None))
    optimizers = [Optimizer(one.named_parameters(), SGD, timeout=60.0, **more)
                  for one, more in ((model, {}), (single, {"replicated": ["*"]}))]  # fmt: skip
    for _ in range(2):
        for name, (_, given) in APART.items():
            single[name].grad = torch.randn((6, 5), generator=generator)
            model[name].grad = distribute_tensor(single[name].grad, mesh, given, src_data_rank=None)
        for optimizer in optimizers:
            optimizer.step()
    for name in APART:
        assert torch.equal(model[name].full_tensor(), single[name]), name
    manifest = export_manifest(model.named_parameters())
    lists = {one["name"]: one.get("grad_placements") for one in manifest["parameters"]}
    # Without the gradients they are taken to lie as their parameters; what comes otherwise is an error.
    for p in model.values():
        p.grad = None
    optimizers[0].prepare()
    model["swapped"].grad = distribute_tensor(torch.ones(6, 5), mesh, APART["swapped"][1], src_data_rank=None)
    for name in APART.keys() - {"swapped"}:
        model[name].grad = distribute_tensor(torch.ones(6, 5), mesh, APART[name][0], src_data_rank=None)
    with pytest.raises(stepc.GradientError, match="'swapped': gradient: expected placements"):
        optimizers[0].step()
    return lists


def test_gradients_may_lie_in_shards_of_their_own(real, way):
    for lists in run_ranks(_apart, 4):
        assert lists == {"zero-2": ["S(0)", "R"], "zero-2 of both": ["S(0)", "S(0)"], "other axis": ["S(1)", "R"],
                         "other mesh axis": ["R", "S(0)"], "swapped": ["S(1)", "S(0)"]}  # fmt: skip


LATE = {"whole": ([R], [Partial()]), "average": ([R], [Partial("avg")]), "sharded": ([S0], [Partial()])}
ADDING = "optimizer A(lr) {\n state m : f32\n m = m + grad\n param = param - lr * m\n}\nroute { A(lr = 1) for rest }"


def _late(rank):
    """The same sums, there when the optimizer compiles and after it was prepared or loaded."""
    mesh = init_device_mesh("cpu", (3,), mesh_dim_names=("dp",))
    saved, found = None, {}

    def made():
        return nn.ParameterDict({
            name: nn.Parameter(distribute_tensor(torch.zeros(6, 2, dtype=torch.bfloat16), mesh, places, src_data_rank=None))
            for name, (places, _) in LATE.items()
        })  # fmt: skip

    for when in ("first", "prepared", "loaded"):
        model = made()
        optimizer = Optimizer(model.named_parameters(), ADDING, timeout=60.0)
        if when == "prepared":
            optimizer.prepare()
            saved = copy.deepcopy(optimizer.state_dict())
        elif when == "loaded":
            optimizer.load_state_dict(saved)
        for name, (_, given) in LATE.items():
            # In bf16, in any order, 256 + 1 + 1 is 256; the plan adds in f32 and rounds once.
            part = torch.full((6, 2), 256.0 if rank == 0 else 1.0, dtype=torch.bfloat16)
            model[name].grad = DTensor.from_local(part, mesh, given, run_check=False)
        optimizer.step()
        found[when] = {name: optimizer.state[p]["m"].to_local().clone() for name, p in model.items()}
    # Whoever asks for none gets none, and a declaration holds.
    w = nn.Parameter(distribute_tensor(torch.zeros(4), mesh, [R], src_data_rank=None))
    texts = []
    for options in ({"partial_gradients": "error"}, {"placements": {"w": Placed(gradient=[R])}}):
        optimizer = Optimizer([("w", w)], ADDING, timeout=20.0, **options)
        w.grad = DTensor.from_local(torch.ones(4), mesh, [Partial()], run_check=False)
        with pytest.raises(stepc.GradientError) as failed:
            optimizer.step()
        texts.append(str(failed.value))
        dist.barrier()
    return found, texts


def test_sums_that_are_pending_later_are_the_plans_too(real, way):
    for found, (refused, declared) in run_ranks(_late, 3):
        for each in found.values():
            assert torch.equal(each["whole"], torch.full((6, 2), 258.0))
            assert torch.equal(each["average"], torch.full((6, 2), 86.0))
            assert torch.equal(each["sharded"], torch.full((2, 2), 258.0))
        expected = "parameter 'w': gradient: expected placements [Replicate()]"
        assert refused.startswith(expected + ", found [Partial(sum)]; reduce it before the step"), refused
        assert declared.startswith(expected + ", as declared, found [Partial(sum)]"), declared


def _absent(rank, how):
    """Contributions that some ranks have not, as of experts without tokens; what the others have tells
    where gradients lie.
    """
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    zeros = distribute_tensor(torch.zeros(4, 2, dtype=torch.bfloat16), mesh, [R], src_data_rank=None)
    ones = DTensor.from_local(torch.ones(4, 2), mesh, [Partial()], run_check=False)
    spec = ADDING.replace("lr = 1", f"lr = 1, missing_grad = {how}")
    trace = []
    for attribute, gradient in (("grad", ones.bfloat16()), ("main_grad", ones)):
        model = {name: nn.Parameter(zeros.clone()) for name in ("some", "all")}
        optimizer = Optimizer(model.items(), spec, timeout=30.0, gradient=attribute)
        for step in range(3):
            setattr(model["all"], attribute, gradient)
            setattr(model["some"], attribute, gradient if (rank, step) == (1, 0) or step == 1 else None)
            optimizer.step()
        trace.append([(optimizer.state[p]["m"].to_local()[0, 0].item(), optimizer.state[p]["step"].item()) for p in model.values()])
        (some, _) = optimizer.library.parameters
        assert (some.gradient_dtype, some.gradient_placements) == (
            "bf16" if attribute == "grad" else "f32",
            "[P(sum)]",
        )
    # Ranks that have gradients have to have them alike.
    w = nn.Parameter(zeros.clone())
    w.grad = DTensor.from_local(
        torch.ones(4, 2, dtype=torch.bfloat16), mesh, [Partial() if rank else R], run_check=False
    )
    with pytest.raises(ValueError, match=r"'w': ranks disagree on its grad_placements: None on rank 0, \('P\(sum\)',\) on rank 1\nhint: "
                       r"Placed\(gradient=…\) in placements= says"):  # fmt: skip
        Optimizer([("w", w)], spec, timeout=30.0).step()
    return trace


@pytest.mark.parametrize(("how", "expected"), [("skip", [(2, 1), (6, 3)]), ("zero", [(3, 3), (6, 3)])])
def test_gradients_that_some_ranks_have_not(real, how, expected):
    assert run_ranks(_absent, 2, how) == [[expected] * 2] * 2


def _refused(rank):
    """What no rank can cut alone, or what means something else, stays an error."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    other = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    w = nn.Parameter(distribute_tensor(torch.zeros(4, 6), mesh, [S0], src_data_rank=None))
    optimizer = Optimizer([("w", w)], SGD, timeout=60.0)
    optimizer.prepare()
    found = []
    for gradient in (
        DTensor.from_local(torch.ones(4, 3), mesh, [S1], run_check=False),
        DTensor.from_local(torch.ones(4, 6), mesh, [Partial("max")], run_check=False),
        DTensor.from_local(torch.ones(4, 6), other, [R], run_check=False),
    ):
        w.grad = gradient
        try:
            optimizer.step()
        except stepc.GradientError as error:
            found.append(str(error))
        dist.barrier()
        optimizer.recover()
        optimizer.prepare()
    # A whole gradient of another shape cannot be set; one whose shard was swapped can.
    w.grad = DTensor.from_local(torch.ones(4, 6), mesh, [R], run_check=False)
    w.grad._local_tensor = torch.ones(4, 6, dtype=torch.float64)
    try:
        optimizer.step()
    except stepc.GradientError as error:
        found.append(str(error))
    return found


def test_other_placements_of_gradients_are_refused(real, way):
    for found in run_ranks(_refused, 2):
        assert len(found) == 4, found
        for text, what in zip(found, ("[Shard(dim=1)]", "Partial(max)", "[Replicate()]",
                                      "torch.float64"), strict=True):  # fmt: skip
            assert "parameter 'w': gradient: expected" in text and what in text, text


def _in_flight(rank):
    """Gradients that a collective of torch is still writing, plain and in a DTensor."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    places = {"sharded": [S0], "replicated": [R], "cut": [S0]}
    model = nn.ParameterDict({
        name: nn.Parameter(distribute_tensor(torch.zeros(4, 3), mesh, place, src_data_rank=None))
        for name, place in places.items()
    })  # fmt: skip
    optimizer = Optimizer(model.named_parameters(), SGD, timeout=60.0)
    optimizer.prepare()

    # Before torch 2.13 it had another name.
    all_gather = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor

    def gathered(rows):
        flying = all_gather(torch.full((rows, 3), 1.0 + rank), 0, mesh)
        assert type(flying) is collectives.AsyncCollectiveTensor
        return flying

    model["sharded"].grad = DTensor.from_local(gathered(1), mesh, [S0], run_check=False)
    model["replicated"].grad = DTensor.from_local(gathered(2), mesh, [R], run_check=False)
    model["cut"].grad = DTensor.from_local(gathered(2), mesh, [R], run_check=False)
    for p in model.values():
        assert isinstance(p.grad._local_tensor, collectives.AsyncCollectiveTensor)
    optimizer.step()
    return [model[name].to_local()[:, 0].tolist() for name in places]


def test_gradients_in_flight_are_waited_for(real, way):
    whole = [-0.5, -0.5, -1.0, -1.0]
    first, second = run_ranks(_in_flight, 2)
    # Every rank's shard is what it gathered: one row of each rank.
    assert first == [[-0.5, -1.0], whole, whole[:2]]
    assert second == [[-0.5, -1.0], whole, whole[2:]]


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4, 5)])
def test_gradients_with_other_strides_are_copied(real, shape):
    w = nn.Parameter(torch.zeros(shape))
    w.grad_dtype = None
    value = torch.randn(shape)
    w.grad = value.transpose(0, 1).contiguous().transpose(0, 1)
    with pytest.warns(UserWarning, match="its gradient has the strides"):
        Optimizer([("w", w)], SGD).step()
    assert torch.equal(w.detach(), -0.5 * value)
