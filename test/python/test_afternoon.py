"""A trainer's afternoon on four gloo ranks with the real compiler, in the order of a working day:
FSDP2 over tensor parallelism; two pipeline stages with a route that one of them has; a layer that is
frozen and later unfrozen; Ctrl-C in the middle of a step; the checkpoint goes on in one stage."""

import os
import signal
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from models import adamw
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict,
)  # fmt: skip
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import stepc
from stepc.torch import Optimizer

MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m     = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
"""
SPEC = MUON + adamw() + """
route {
  AdamW(lr = 3e-4) as head for "lm_head*" if present
  Muon(lr = 0.02) for matrix except "*embed*", "lm_head*"
  AdamW(lr = 1e-3) for rest
}
"""
VOCABULARY, WIDTH = 16, 8
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    """Embedding and block 0 are stage 0, block 1 and head stage 1."""

    def __init__(self, stages=(0, 1)):
        super().__init__()
        if 0 in stages:
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleDict({str(stage): Block() for stage in stages})
        if 1 in stages:
            self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        with torch.no_grad():
            for name, p in self.named_parameters():
                generator = torch.Generator().manual_seed(len(name) + sum(map(ord, name)))
                p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + ("norm.weight" in name))

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks.values():
            x = block(x)
        return self.lm_head(x)


def make(model, **options):
    return Optimizer(model.named_parameters(), SPEC, timeout=30.0, **options)


def whole(model):
    return {name: (p.full_tensor() if isinstance(p, DTensor) else p).detach().clone()
            for name, p in model.named_parameters()}  # fmt: skip


# --- FSDP2 over tensor parallelism, the embedding by tensor parallelism alone ---


def _tensor_parallel(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    alone = [dist.new_group([one]) for one in range(4)][rank]
    model, single = Model(), Model()
    parallelize_module(model, mesh["tp"], {
        "embed": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
        "blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel(),
    })  # fmt: skip
    fully_shard(model, mesh=mesh["dp"], ignored_params={model.embed.weight})
    optimizers = [make(model), make(single, process_group=alone)]
    for step in range(3):
        generator = torch.Generator().manual_seed(step)
        tokens = torch.randint(VOCABULARY, (2, 5), generator=generator)
        for one, optimizer in zip((model, single), optimizers, strict=True):
            out = one(tokens)
            loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens.roll(1, 1).flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    executed, planned = optimizers[0].counters()
    assert executed == planned
    single = whole(single)
    for name, p in model.named_parameters():
        # FSDP2's shards of what tensor parallelism cut are checked piece by piece.
        mine = p.to_local()
        expected = distribute_tensor(single[name], p.device_mesh, p.placements, src_data_rank=None)
        # The losses are sums in another order, and Muon's products are rounded to bf16.
        torch.testing.assert_close(mine, expected.to_local(), rtol=0.03, atol=0.003, msg=name)


# --- two pipeline stages, or one ---


def set_gradients(model, step):
    """The same for a parameter wherever it lies; none for what is frozen."""
    for name, p in model.named_parameters():
        generator = torch.Generator().manual_seed(1000 * step + sum(map(ord, name)))
        full = torch.randn(p.shape, generator=generator)
        if isinstance(p, DTensor):
            full = distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None)
        p.grad = full if p.requires_grad else None


FROZEN_STEPS, SAVED, INTERRUPTED, END = (2, 3), 3, 5, 7


def train(model, optimizer, steps):
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = (0.02 if group["route"] == "Muon" else 0.003) / (1 + step)
        freeze(model, step)
        set_gradients(model, step)
        optimizer.step()


def freeze(model, step):
    for name, p in model.named_parameters():
        p.requires_grad_(not (name.startswith("blocks.0") and step in FROZEN_STEPS))


def saved_of(model, optimizer):
    return {"model": model.state_dict(),
            "optimizer": get_optimizer_state_dict(model, optimizer, options=FLAT)}  # fmt: skip


def resume(model, optimizer, folder):
    """torch loads no states of frozen parameters: the loop freezes again after loading."""
    for p in model.parameters():
        p.requires_grad_(True)
    saved = saved_of(model, optimizer)
    dcp.load(saved, checkpoint_id=folder)
    model.load_state_dict(saved["model"])
    set_optimizer_state_dict(model, optimizer, saved["optimizer"], options=FLAT)
    assert {state["step"].item() for state in optimizer.state.values()} <= {2, 3}


def _interrupted(rank, optimizer, model):
    """Ctrl-C reaches rank 0 in its step, while it waits for rank 1. What every rank was told."""
    set_gradients(model, INTERRUPTED)
    dist.barrier()
    if rank == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    if rank == 1:
        time.sleep(1.0)
    start = time.monotonic()
    try:
        optimizer.step()
    except (KeyboardInterrupt, stepc.StepcError) as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return "stepped", "", time.monotonic() - start


def _stages(rank, folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    model = Model([stage])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = make(model)
    routes = {group["route"] for group in optimizer.param_groups}
    assert routes == ({"Muon", "AdamW"} if stage == 0 else {"head", "Muon", "AdamW"})
    train(model, optimizer, range(SAVED))
    assert (stage == 1) == model.blocks[str(stage)].up.weight.requires_grad
    dcp.save(saved_of(model, optimizer), checkpoint_id=folder)
    train(model, optimizer, range(SAVED, INTERRUPTED))
    told = _interrupted(rank, optimizer, model)
    dist.barrier()
    optimizer.recover()
    # Every rank comes, also of the stage that was not interrupted.
    optimizer.prepare()
    resume(model, optimizer, folder)
    train(model, optimizer, range(SAVED, END))
    return whole(model), told, optimizer.library.world_ranks


def _one_stage(rank, folder):
    model = Model()
    fully_shard(model)
    optimizer = make(model, lr=9.0)
    resume(model, optimizer, folder)
    for group in optimizer.param_groups:
        assert group["lr"] == (0.02 if group["route"] == "Muon" else 0.003) / SAVED
    train(model, optimizer, range(SAVED, END))
    return whole(model)


def _afternoon(rank, folder):
    _tensor_parallel(rank)
    return _stages(rank, folder)


def test_a_trainers_afternoon(real, tmp_path):
    model = Model()
    optimizer = make(model)
    train(model, optimizer, range(END))
    expected = whole(model)
    folder = str(tmp_path / "checkpoint")
    found, told, worlds = zip(*run_ranks(_afternoon, 4, folder), strict=True)
    assert worlds == ((0, 1), (0, 1), (2, 3), (2, 3))
    assert [name for name, *_ in told] == ["KeyboardInterrupt", "TransportError", "stepped", "stepped"]
    assert "rank 0" in told[1][1] and all(seconds < 15 for *_, seconds in told)
    assert found[0].keys() | found[2].keys() == expected.keys()
    for one in found:
        assert all(torch.equal(one[name], expected[name]) for name in one)
    for one in run_ranks(_one_stage, 2, folder):
        assert one.keys() == expected.keys()
        assert all(torch.equal(one[name], expected[name]) for name in one)
