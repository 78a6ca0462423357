"""States of sizes of their own in PyTorch: steps, state dicts, and checkpoints that go on with another number of ranks."""

import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from stepc.torch import Optimizer

sys.path.append(str(Path(__file__).parent / "property"))
from product_rules import TEXTS

SPEC = TEXTS["SOAP"] + TEXTS["Dion"] + 'route {\n  SOAP(lr = 0.01) for "a"\n  Dion(lr = 0.01) for "b"\n}\n'
SHAPES = {"a": (6, 4), "b": (5, 8)}


def tensors(seed):
    draw = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=draw) for name, shape in SHAPES.items()}


def steps(parameters, optimizer, which, mesh=None):
    for step in which:
        for name, grad in tensors(100 + step).items():
            parameters[name].grad = distribute_tensor(grad, mesh, [Shard(0)]) if mesh else grad
        optimizer.step()


def made(mesh=None):
    whole = tensors(1)
    parameters = {
        name: nn.Parameter(distribute_tensor(value, mesh, [Shard(0)]) if mesh else value) for name, value in whole.items()
    }
    return parameters, Optimizer(list(parameters.items()), SPEC)


def values(parameters):
    return {name: getattr(each, "full_tensor", lambda each=each: each)().detach().clone() for name, each in parameters.items()}


def _on_two(rank, folder):
    mesh = init_device_mesh("cpu", (2,))
    parameters, optimizer = made(mesh)
    steps(parameters, optimizer, range(2), mesh)
    state = {"model": dict(parameters), "optimizer": optimizer.state_dict()}
    dcp.save(state, checkpoint_id=folder / "two")
    steps(parameters, optimizer, range(2, 4), mesh)
    found = values(parameters)
    expected = torch.load(folder / "expected.pt")
    assert all(torch.equal(found[name], expected[name]) for name in SHAPES)
    # And what one rank saved.
    parameters, optimizer = made(mesh)
    steps(parameters, optimizer, range(1), mesh)
    state = {"model": dict(parameters), "optimizer": optimizer.state_dict()}
    dcp.load(state, checkpoint_id=folder / "one")
    optimizer.load_state_dict(state["optimizer"])
    steps(parameters, optimizer, range(2, 4), mesh)
    found = values(parameters)
    assert all(torch.equal(found[name], expected[name]) for name in SHAPES)


def test_checkpoints_move_between_numbers_of_ranks(tmp_path):
    parameters, optimizer = made()
    steps(parameters, optimizer, range(2))
    saved = optimizer.state_dict()
    assert {name: tuple(one.shape) for name, one in saved["state"][0].items() if one.dim() == 2} == {
        "m": (6, 4), "v": (6, 4), "L": (6, 6), "R": (4, 4), "QL": (6, 6), "QR": (4, 4)}  # fmt: skip
    assert tuple(saved["state"][1]["Q"].shape) == (8, 1)
    dcp.save({"model": dict(parameters), "optimizer": saved}, checkpoint_id=tmp_path / "one")
    steps(parameters, optimizer, range(2, 4))
    expected = values(parameters)
    torch.save(expected, tmp_path / "expected.pt")
    run_ranks(_on_two, 2, tmp_path)
    parameters, optimizer = made()
    steps(parameters, optimizer, range(1))
    state = {"model": dict(parameters), "optimizer": optimizer.state_dict()}
    dcp.load(state, checkpoint_id=tmp_path / "two")
    optimizer.load_state_dict(state["optimizer"])
    steps(parameters, optimizer, range(2, 4))
    found = values(parameters)
    assert all(torch.equal(found[name], expected[name]) for name in SHAPES)


def test_state_dicts_go_on():
    parameters, optimizer = made()
    steps(parameters, optimizer, range(2))
    again, other = made()
    with torch.no_grad():
        for name, each in again.items():
            each.copy_(parameters[name])
    other.load_state_dict(optimizer.state_dict())
    for one, its in ((parameters, optimizer), (again, other)):
        steps(one, its, range(2, 4))
    found, expected = values(again), values(parameters)
    assert all(torch.equal(found[name], expected[name]) for name in SHAPES)
