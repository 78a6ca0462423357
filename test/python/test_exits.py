"""Processes end without a word: no warning of resources, no thread that is in the way."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch.distributed as dist

PROGRAM = """
    import sys
    sys.path.insert(0, HERE)
    import torch.distributed as dist
    from models import SGD, Model, set_gradients
    from stepc.torch import Optimizer

    many = "RANK" in __import__("os").environ
    if many:
        dist.init_process_group("gloo")
    model = Model()
    optimizer = Optimizer(model.named_parameters(), SGD, replicated=["*"] if many else [], threads=2, timeout=60.0)
    for step in range(2):
        set_gradients(model, step)
        optimizer.step()
    again = optimizer if sys.argv[1] == "kept" else None
    if sys.argv[1] == "failed":
        model.w.grad = None
        try:
            optimizer.step()
        except RuntimeError as error:
            print("failed:", type(error).__name__)
    print("end", flush=True)
"""


def begin(how, environment):
    program = textwrap.dedent(PROGRAM).replace("HERE", repr(str(Path(__file__).parent)))
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", program, how],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
    )  # fmt: skip


def ended(process):
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    assert out.endswith("end\n"), out
    for word in ("ResourceWarning", "Exception ignored", "terminate called", "Traceback"):
        assert word not in err, err
    return out


@pytest.mark.parametrize("how", [pytest.param("dropped", marks=pytest.mark.tier("all")), "failed"])
def test_one_process_ends_without_a_word(real, how):
    out = ended(begin(how, {}))
    assert ("failed: GradientError" in out) == (how == "failed")


@pytest.mark.parametrize("how", [pytest.param("kept", marks=pytest.mark.tier("all")), "failed"])
def test_ranks_end_without_a_word(real, how):
    # The store is served here, as torchrun does it: a port that is free now may be taken when a rank would serve one.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port),
             "TORCHELASTIC_USE_AGENT_STORE": "True"}  # fmt: skip
    ranks = [begin(how, world | {"RANK": str(rank)}) for rank in range(2)]
    for rank in ranks:
        assert ("failed:" in ended(rank)) == (how == "failed")
