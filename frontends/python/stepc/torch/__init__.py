"""Compiled optimizer steps for PyTorch trainers: plain, FSDP2, HSDP, tensor and expert parallel."""

from stepc.torch.describe import Blocks, Placed
from stepc.torch.manifest import export_manifest
from stepc.torch.optimizer import Optimizer
from stepc.torch.placements import PlacementError, register_placement

__all__ = [
    "Blocks",
    "Optimizer",
    "Placed",
    "PlacementError",
    "export_manifest",
    "register_placement",
]
