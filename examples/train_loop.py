"""Trains a small sharded model, saves it every third step, and goes on from the last checkpoint.

    torchrun --nproc-per-node 2 examples/train_loop.py FOLDER STEPS
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.optim.lr_scheduler import LambdaLR

from stepc.torch import Optimizer


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.hidden = nn.Embedding(64, 32), nn.Linear(32, 32)
        self.lm_head = nn.Linear(32, 64, bias=False)

    def forward(self, tokens):
        return self.lm_head(torch.relu(self.hidden(self.embed(tokens))))


def everything(model, optimizer, scheduler):
    weights, states = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": states, "scheduler": scheduler.state_dict()}


def main(folder, steps):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Model()
    fully_shard(model, mesh=init_device_mesh("cpu", (size,), mesh_dim_names=("dp",)))
    definition = Path(__file__).with_name("muon.optim")
    optimizer = Optimizer(model.named_parameters(), definition, Muon={"lr": 0.02}, AdamW={"lr": 3e-3})
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))

    begin = 0
    saved = [int(path.parent.name) for path in folder.glob("*/.metadata")]  # written last: those are whole
    if saved:
        begin = max(saved)
        found = everything(model, optimizer, scheduler)
        dcp.load(found, checkpoint_id=folder / str(begin))
        set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
        scheduler.load_state_dict(found["scheduler"])

    for step in range(begin, steps):
        generator = torch.Generator().manual_seed(step * size + rank)
        tokens = torch.randint(64, (4, 16), generator=generator)
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        dist.all_reduce(loss := loss.detach())
        if rank == 0:
            print(f"step {step + 1}: loss {loss.item() / size:.8f}", flush=True)
        if (step + 1) % 3 == 0:
            dcp.save(everything(model, optimizer, scheduler), checkpoint_id=folder / str(step + 1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
