"""The real compiler under a PyTorch trainer: bits across layouts, torch.optim, resuming, errors."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks, run_ranks_until
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Shard, _StridedShard

import stepc
from stepc.torch import Optimizer, export_manifest

ROOT = Path(__file__).resolve().parents[2]
ADAMW = """
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1) {
  MASTER
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
"""
MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  MASTER
  state m : f32
  m     = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
"""
BOTH = MUON + ADAMW + """
route {
  Muon(lr = 0.02)   for matrix except "*embed*"
  AdamW(lr = 3e-4)  for rest
}
"""


def spec(text, master=False):
    return text.replace("MASTER", "master : f32" if master else "")


class Net(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(11, 6)
        self.up, self.down = nn.Linear(6, 10, bias=False), nn.Linear(10, 6, bias=False)
        self.tall, self.norm = nn.Linear(5, 13), nn.LayerNorm(6)
        self.to(dtype)


def set_gradients(model, seed):
    """The same global gradients whatever the placements."""
    for index, (name, p) in enumerate(sorted(model.named_parameters())):
        generator = torch.Generator().manual_seed(1000 * seed + index)
        full = torch.randn(p.shape, generator=generator).to(p.dtype)
        p.grad = shard_like(full, p) if isinstance(p, DTensor) else full


def shard_like(full, p):
    """This rank's piece, without asking other ranks; strided shards by cutting step by step."""
    if not any(isinstance(one, _StridedShard) for one in p.placements):
        return distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)
    # (_S(d, n), S(d)): the inner axis of n ranks has cut d first.
    (outer, inner), mesh = p.placements, p.device_mesh
    piece = full.chunk(mesh.size(1), inner.dim)[mesh.get_local_rank(1)]
    piece = piece.chunk(mesh.size(0), outer.dim)[mesh.get_local_rank(0)].contiguous()
    return DTensor.from_local(piece, mesh, p.placements, run_check=False,
                              shape=full.shape, stride=full.stride())  # fmt: skip


def shards(model, optimizer):
    """Local bytes of parameters and states, and where they sit in the whole."""
    result = {}
    for name, p in model.named_parameters():
        tensors = {"param": p} | optimizer.state[p]
        for key, tensor in tensors.items():
            result[name, key] = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()
            result[name, key] = result[name, key].detach()
    return result


def reference(dtype, steps, master, **options):
    model = Net(dtype)
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, master), **options)
    for step in range(steps):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key].dtype == value.dtype and torch.equal(found[key], value), key


# --- one process ---


@pytest.mark.parametrize("master", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_resume_is_bit_for_bit(real, dtype, master):
    def train(model, optimizer, first, last):
        for step in range(first, last):
            for group in optimizer.param_groups:
                group["lr"] = 0.01 / (1 + step // 3)
            set_gradients(model, step)
            optimizer.step()

    def make():
        model = Net(dtype)
        return model, Optimizer(model.named_parameters(), spec(BOTH, master))

    straight, optimizer = make()
    train(straight, optimizer, 0, 20)
    expected = shards(straight, optimizer)
    model, optimizer = make()
    train(model, optimizer, 0, 10)
    saved = model.state_dict(), optimizer.state_dict()
    again, optimizer = make()
    optimizer.load_state_dict(saved[1])
    again.load_state_dict(saved[0])
    assert [group["lr"] for group in optimizer.param_groups] == [0.01 / 4] * 2
    for state in optimizer.state.values():
        assert all(t.dtype == (torch.int64 if k == "step" else torch.float32) for k, t in state.items())
    train(again, optimizer, 10, 20)
    assert_same(shards(again, optimizer), expected)


def test_adamw_is_torchs_within_rounding(real):
    model, twin = Net(), Net()
    route = 'route { AdamW(lr = 1e-3) for rest }'
    optimizer = Optimizer(model.named_parameters(), spec(ADAMW) + route)
    other = torch.optim.AdamW(twin.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(50):
        set_gradients(model, step)
        set_gradients(twin, step)
        optimizer.step()
        other.step()
    for (name, a), b in zip(model.named_parameters(), twin.parameters(), strict=True):
        # 50 steps of at most 1e-3, each rounded to about an ulp of a value near one.
        assert (a - b).abs().max() < 50 * 2e-7, name
        torch.testing.assert_close(optimizer.state[a]["v"], other.state[b]["exp_avg_sq"],
                                   rtol=1e-5, atol=1e-7)  # fmt: skip
        assert optimizer.state[a]["step"] == other.state[b]["step"] == 50


TORCH_MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m     = lerp(m, grad, 1 - momentum)
  let u = lerp(grad, m, momentum)
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
route { Muon(lr = 1e-3) for matrix }
"""


def test_muon_is_torchs_within_bf16(real):
    torch.manual_seed(0)
    shapes = {"a": (8, 8), "b": (4, 12), "c": (12, 4)}
    model = nn.ParameterDict({n: nn.Parameter(torch.randn(s)) for n, s in shapes.items()})
    twin = nn.ParameterDict({n: nn.Parameter(p.detach().clone()) for n, p in model.items()})
    start = {n: p.detach().clone() for n, p in model.items()}
    optimizer = Optimizer(model.named_parameters(), TORCH_MUON)
    other = torch.optim.Muon(twin.parameters(), lr=1e-3, weight_decay=0.1, momentum=0.95,
                             adjust_lr_fn="match_rms_adamw")  # fmt: skip
    for step in range(50):
        set_gradients(model, step)
        set_gradients(twin, step)
        optimizer.step()
        other.step()
    for name, p in model.items():
        # Both round every product to bf16 (8 bits), in another order: a few percent of the path.
        moved = (twin[name] - start[name]).norm()
        assert (p - twin[name]).norm() < 0.03 * moved, name


def test_a_library_without_a_compiler(real, tmp_path, monkeypatch):
    model = Net()
    made = stepc.compile(spec(BOTH), export_manifest(model.named_parameters()), output=tmp_path)
    made.plan.unlink()
    monkeypatch.setenv("STEPC", "/nowhere/stepc")
    optimizer = Optimizer(model.named_parameters(), library=made.library, Muon={"lr": 0.02})
    for step in range(2):
        set_gradients(model, step)
        optimizer.step()
    monkeypatch.undo()
    monkeypatch.setenv("STEPC_CACHE", str(tmp_path / "cache"))
    assert_same(shards(model, optimizer), reference(torch.float32, 2, False))


def test_diagnostics_are_the_compilers(real):
    model = Net()
    with pytest.raises(stepc.CompileError, match="error: unknown function 'orthogonalise'"):
        Optimizer(model.named_parameters(), spec(BOTH).replace("orthogonalize", "orthogonalise"))
    with pytest.raises(stepc.CompileError, match="norm.bias"):
        Optimizer(model.named_parameters(), spec(MUON) + "route { Muon(lr = 1) for matrix }").step()


def test_the_workspace_is_bounded_and_the_bits_stay(real):
    """What docs/torch.md says of workspace_limit=."""
    torch.manual_seed(5)
    values = [torch.randn(96, 64) for _ in range(8)]

    def stepped(**options):
        parameters = [nn.Parameter(value.clone()) for value in values]
        for index, p in enumerate(parameters):
            p.grad = values[index - 1].clone()
        optimizer = Optimizer([(f"w{i}", p) for i, p in enumerate(parameters)],
                              spec(MUON) + "route { Muon(lr = 0.02) for rest }", **options)  # fmt: skip
        optimizer.step()
        return optimizer._binding.instance.library.workspace_bytes, parameters

    free, expected = stepped()
    limit = free // 3
    bounded, found = stepped(workspace_limit=limit)
    assert bounded <= limit < free
    for one, other in zip(expected, found, strict=True):
        assert torch.equal(one, other)
    with pytest.raises(stepc.CompileError, match="workspace within the limit of 4096 bytes") as error:
        stepped(workspace_limit="4KiB")
    assert error.value.exit_code == 1


def test_missing_gradients_follow_the_route(real):
    text = spec(ADAMW) + 'route { AdamW(lr = 1e-2, missing_grad = MODE) for rest }'
    for mode in ("error", "skip", "zero"):
        model = Net()
        optimizer = Optimizer(model.named_parameters(), text.replace("MODE", mode))
        set_gradients(model, 0)
        model.up.weight.grad = None
        before = model.up.weight.detach().clone()
        if mode == "error":
            with pytest.raises(stepc.GradientError, match="up.weight"):
                optimizer.step()
            continue
        optimizer.step()
        state = optimizer.state[model.up.weight]
        assert state["step"] == (0 if mode == "skip" else 1)
        assert torch.equal(model.up.weight, before) == (mode == "skip")
        assert optimizer.state[model.norm.weight]["step"] == 1


# --- several ranks ---


def _layouts(rank, dtype, master):
    """The same steps under FSDP2, HSDP and FSDP2 + TP: the bits of one rank."""
    alone = [dist.new_group([one]) for one in range(4)][rank]
    expected = reference(dtype, 3, master, process_group=alone)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for layout in ("fsdp", "hsdp", "tp"):
        model = Net(dtype)
        if layout == "tp":
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(model, mesh["tp"], plan)
        fully_shard(model, mesh={"fsdp": None, "hsdp": mesh, "tp": mesh["dp"]}[layout])
        optimizer = Optimizer(model.named_parameters(), spec(BOTH, master), timeout=60.0)
        for step in range(3):
            set_gradients(model, step)
            optimizer.step()
        if layout != "tp":
            assert_same(shards(model, optimizer), expected)
        else:
            # full_tensor() of strided shards is checked through local pieces instead.
            for name, p in model.named_parameters():
                whole = expected[name, "param"]
                assert torch.equal(p.to_local(), shard_like(whole, p).to_local()), name
        executed, planned = optimizer.counters()
        assert executed == planned
    return True


@pytest.mark.parametrize(("dtype", "master"), [(torch.float32, False), (torch.bfloat16, True)])
def test_layouts_give_the_bits_of_one_rank(real, dtype, master):
    assert all(run_ranks(_layouts, 4, dtype, master))


def _experts_and_stages(rank):
    """Experts on a mesh of their own beside dense weights; then two pipeline stages, each a world."""
    dense = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
    sparse = init_device_mesh("cpu", (2, 2), mesh_dim_names=("edp", "ep"))
    generator = torch.Generator().manual_seed(1)
    whole = {"up": torch.randn(6, 5, generator=generator),
             "experts": torch.randn(4, 6, 3, generator=generator)}  # fmt: skip

    def train(model, **options):
        optimizer = Optimizer(model.named_parameters(), spec(MUON) + "route { Muon(lr = 0.1) for matrix }",
                              batch=["experts*"], timeout=60.0, **options)  # fmt: skip
        for step in range(2):
            set_gradients(model, step)
            optimizer.step()
        return optimizer

    places = {"up": (dense, [Shard(0)]), "experts": (sparse, [Shard(1), Shard(0)])}
    model = nn.ParameterDict({
        name: nn.Parameter(distribute_tensor(value, *places[name], src_data_rank=None))
        for name, value in whole.items()
    })  # fmt: skip
    train(model)
    single = nn.ParameterDict({name: nn.Parameter(value.clone()) for name, value in whole.items()})
    groups = [dist.new_group([one]) for one in range(4)]
    train(single, process_group=groups[rank])
    for name, p in model.items():
        assert torch.equal(p.full_tensor(), single[name]), name
    # Stage 0 has "w" of one shape, stage 1 of another; worlds are {0, 1} and {2, 3}.
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    value = torch.randn((4, 3) if stage == 0 else (3, 7), generator=torch.Generator().manual_seed(2))
    model = nn.ParameterDict({"w": nn.Parameter(
        distribute_tensor(value, mesh["dp"], [Shard(0)], src_data_rank=None))})  # fmt: skip
    optimizer = train(model)
    single = nn.ParameterDict({"w": nn.Parameter(value.clone())})
    train(single, process_group=groups[rank])
    assert torch.equal(model["w"].full_tensor(), single["w"])
    return optimizer.library.world_ranks


def test_experts_and_pipeline_stages(real):
    assert run_ranks(_experts_and_stages, 4) == [(0, 1), (0, 1), (2, 3), (2, 3)]


def _save(rank, folder):
    model = fully_shard(Net(torch.bfloat16))
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, True), timeout=60.0)
    for step in range(10):
        set_gradients(model, step)
        optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.0125
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.save(saved, checkpoint_id=folder)
    for step in range(10, 14):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def _load(rank, folder):
    model = fully_shard(Net(torch.bfloat16))
    optimizer = Optimizer(model.named_parameters(), spec(BOTH, True), timeout=60.0)
    saved = {"optimizer": get_optimizer_state_dict(model, optimizer), "model": model.state_dict()}
    dcp.load(saved, checkpoint_id=folder)
    model.load_state_dict(saved["model"])
    set_optimizer_state_dict(model, optimizer, saved["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.0125
    for step in range(10, 14):
        set_gradients(model, step)
        optimizer.step()
    return shards(model, optimizer)


def test_checkpoints_move_between_world_sizes(real, tmp_path):
    straight = run_ranks(_save, 4, str(tmp_path / "c"))[0]
    for size in (2, 4):
        assert_same(run_ranks(_load, size, str(tmp_path / "c"))[0], straight)


def _stopped(rank):
    model = fully_shard(Net())
    optimizer = Optimizer(model.named_parameters(), spec(BOTH), timeout=4.0)
    set_gradients(model, 0)
    optimizer.step()
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        optimizer.step()
    except stepc.StepcError as error:
        return type(error).__name__, str(error), error.half_stepped, time.monotonic() - start
    return None


def test_a_stopped_rank_hangs_nobody(real):
    codes, results = run_ranks_until(_stopped, 4, (0, 2, 3), 90)
    assert codes == [0, 0, 0]
    assert any(result[0] == "StepcTimeout" and "rank 1" in result[1] for result in results)
    for name, text, half, seconds in results:
        assert name in ("StepcTimeout", "TransportError"), text
        assert half and seconds < 30


def test_the_example_trains(real, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "train_gpt.py", "--steps", "8", "--ranks", "4",
         "--width", "48", "--layers", "2", "--heads", "3", "--length", "32", "--out", tmp_path],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "train_gpt.png").stat().st_size > 5000
    line = next(x for x in done.stdout.splitlines() if x.startswith("largest difference"))
    # Rounding alone gives 5e-7 (as does splitting the batch in plain torch); a momentum that is wrong
    # by 1e-4 gives 4e-5 in 15 steps.
    assert math.isfinite(float(line.split()[-1])) and float(line.split()[-1]) < 5e-6
    assert "loss plot:" in done.stdout and "Muon" in done.stdout
