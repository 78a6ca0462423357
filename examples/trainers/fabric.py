"""Lightning Fabric: the model first, then an optimizer of what ``setup_module`` gives."""

from pathlib import Path

import stepc.torch

MUON = Path(__file__).parents[1] / "muon.optim"


def setup(fabric, model):
    """The wrapped model and optimizer; every rank of ``fabric`` holds the model whole, as with DDP."""
    model = fabric.setup_module(model)
    everywhere = ["*"] if fabric.world_size > 1 else []
    optimizer = stepc.torch.Optimizer(model.named_parameters(), MUON, replicated=everywhere)
    return model, fabric.setup_optimizers(optimizer)
