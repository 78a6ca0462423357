"""Compiled optimizer steps for PyTorch trainers: plain, FSDP2, HSDP, tensor and expert parallel."""

from stepc.torch import needed as _needed  # noqa: F401 - first, since the others import torch
from stepc.torch.checkpoint import parameters_to_save
from stepc.torch.declarations import Blocks, Bucket, Placed
from stepc.torch.imports import FlatStates, import_states
from stepc.torch.manifest import export_manifest
from stepc.torch.optimizer import Optimizer
from stepc.torch.placements import PlacementError, register_placement
from stepc.torch.planned import planned_mesh

__all__ = [
    "Blocks",
    "Bucket",
    "FlatStates",
    "Optimizer",
    "Placed",
    "PlacementError",
    "export_manifest",
    "import_states",
    "parameters_to_save",
    "planned_mesh",
    "register_placement",
]
