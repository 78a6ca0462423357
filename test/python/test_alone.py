"""One rank alone does what the others do not: every rank gets an error, and gets it in time."""

import os
import signal
import sys
import time

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, run_ranks_until
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard

from stepc.errors import TransportError
from stepc.torch import Optimizer, export_manifest
from stepc.torch.links import Links

pytestmark = pytest.mark.tier("land")

TIMEOUT = 6.0
SLACK = 4.0
SIZE = 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second = nn.Linear(6, 7), nn.Linear(7, 3, bias=False)
        self.scale = nn.Parameter(torch.ones(4))


def make():
    """A sharded model with a replicated parameter, and its optimizer after one step."""
    model = Net()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    model.scale = nn.Parameter(distribute_tensor(model.scale.detach(), mesh, [Replicate()]))
    fully_shard(model, mesh=mesh, ignored_params={model.scale})
    optimizer = Optimizer(model.named_parameters(), "rule {}", Plain={"lr": 0.5}, timeout=TIMEOUT)
    set_gradients(model)
    optimizer.step()
    return model, optimizer


def set_gradients(model):
    for p in model.parameters():
        p.grad_dtype = None
        p.grad = torch.ones_like(p)


def swap_parameter(model, optimizer):
    for group in optimizer.param_groups:
        group["params"] = [nn.Parameter(p.detach().clone()) if p is model.first.weight else p
                           for p in group["params"]]  # fmt: skip


def reshard(model, optimizer):
    """As a trainer does it: another tensor under the same name."""
    group = optimizer.param_groups[0]
    moved = nn.Parameter(model.whole)
    moved.grad = torch.ones_like(moved)
    group["params"] = [moved if p is model.first.weight else p for p in group["params"]]


def cut_shard(model, optimizer):
    model.first.bias._local_tensor = torch.zeros(2)


def freeze(model, optimizer):
    model.second.weight.requires_grad_(False)


def wrong_dtype(model, optimizer):
    model.first.weight.grad = model.first.weight.grad.to(torch.float64)


def attempt(function):
    """The error of a call, and how long it took."""
    start = time.monotonic()
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return None, "", time.monotonic() - start


def _alone(rank, changes):
    """Every change on the ranks that it names, and a step of all ranks, with an optimizer each."""
    found = {}
    for key, (change, who) in changes.items():
        model, optimizer = make()
        # Collective, so it is made on all ranks.
        model.whole = model.first.weight.detach().redistribute(placements=[Replicate()])
        dist.barrier()
        if rank in who:
            change(model, optimizer)
        found[key] = attempt(optimizer.step)
        found[key, "next"] = attempt(optimizer.step)
        dist.barrier()
    return found


def check(results, key, alone, cause):
    """All ranks failed in time; those that did not change name the rank that did, and the cause."""
    for rank, found in enumerate(results):
        name, text, seconds = found[key]
        assert name in ("StepcTimeout", "TransportError", "GradientError", "StepcError"), (key, name)
        assert seconds < TIMEOUT + SLACK, (key, rank, seconds, text)
        if rank not in alone:
            assert any(f"rank {one}" in text for one in alone), (key, rank, text)
        if cause is not None:
            assert cause in text, (key, rank, text)
        name, text, _ = found[key, "next"]
        assert name == "PoisonedError", (key, rank, name, text)


def test_one_rank_that_changes_a_parameter(fake):
    changes = {"swap": (swap_parameter, [1]), "lowest": (swap_parameter, [0]),
               "reshard": (reshard, [1]), "cut": (cut_shard, [2]), "freeze": (freeze, [1]),
               "all but one": (swap_parameter, [1, 2]), "all but 2": (swap_parameter, [0, 1])}  # fmt: skip
    results = run_ranks(_alone, SIZE, changes)
    for key, cause in {
        "swap": "parameter 'first.weight' is another tensor",
        "lowest": "parameter 'first.weight' is another tensor",
        "reshard": "parameter 'first.weight' is another tensor",
        "cut": "parameter 'first.bias' has not the placement, shape, dtype or device that was bound",
        "freeze": "parameter 'second.weight' was frozen",
        "all but one": "parameter 'first.weight' is another tensor",
        "all but 2": "parameter 'first.weight' is another tensor",
    }.items():
        alone = changes[key][1]
        check(results, key, alone, cause)
        for rank in range(SIZE):
            text = results[rank][key][1]
            if rank in alone:
                assert "expected every rank to prepare again" in text, (key, text)
                assert "stepped" in text.splitlines()[0], (key, text)
                assert "were not stepped, those of other ranks may be" in text
            else:
                assert "prepares again instead of stepping" in text, (key, text)
                assert "may be half stepped" in text, (key, text)
            # Nobody waited for the timeout: the ranks told one another.
            assert results[rank][key][2] < TIMEOUT, (key, results[rank][key])


def partial(model, *names):
    for name in names:
        p = model.get_parameter(name)
        p.grad = DTensor.from_local(torch.ones(p.shape), p.device_mesh, [Partial()])


def sum_one(model, optimizer):
    partial(model, "scale")


def sum_two_or_one(model, optimizer):
    partial(model, *(["first.bias", "scale"] if dist.get_rank() == 1 else ["scale"]))


def test_one_rank_with_a_pending_sum(fake):
    changes = {"one": (sum_one, [1]), "other": (sum_two_or_one, [0, 1, 2])}
    results = run_ranks(_alone, SIZE, changes)
    cause = (
        "parameter 'scale' has a gradient with the placements [Partial(sum)], [Replicate()] when it was bound"
    )
    check(results, "one", [1], cause)
    assert "expected every rank to prepare again" in results[1]["one"][1]
    assert all("prepares again instead of stepping" in results[rank]["one"][1] for rank in (0, 2))
    # All prepare, and find out before any of them steps.
    for found in results:
        assert found["other"][:2] == found["other", "next"][:2]
        assert found["other"][0] == "ValueError" and found["other"][2] < TIMEOUT
        assert (
            "parameter 'first.bias': ranks disagree on its grad_placements: None on rank 0, ('P(sum)',) on rank 1"
            in found["other"][1]
        )


def _fails_inside(rank):
    model, optimizer = make()
    saved = optimizer.state_dict()
    saved["state"][0]["m"] = distribute_tensor(torch.ones(7, 6), model.scale.device_mesh, [Shard(1)])
    dist.barrier()
    if rank == 1:
        def fail(*arguments, **options):
            raise RuntimeError("no memory")

        DTensor.redistribute = fail
    result = attempt(lambda: optimizer.load_state_dict(saved))
    time.sleep(2)  # its process lives on, so that no closed connection tells
    return result


def test_one_rank_that_fails_inside_torchs_collective(fake):
    """The others agreed on the move and wait in torch: they give up there with its reason."""
    codes, results = run_ranks_until(_fails_inside, SIZE, (0, 1, 2), 60)
    what = "parameter 'first.weight': state 'm' from [Shard(dim=1)] to [Shard(dim=0)]: "
    assert results[1][:2] == ("TransportError", f"{what}no memory")
    for name, text, seconds in (results[0], results[2]):
        assert name == "TransportError" and seconds < TIMEOUT, (name, text)
        assert text == f"{what}rank 1 gave up: {what}no memory"


def test_one_rank_with_a_gradient_of_another_dtype(fake):
    results = run_ranks(_alone, SIZE, {"dtype": (wrong_dtype, [1])})
    check(results, "dtype", [1],
          "parameter 'first.weight': gradient: expected torch.float32 on cpu, found torch.float64")
    assert results[1]["dtype"][0] == "GradientError"
    for rank in (0, 2):
        assert results[rank]["dtype"][0] == "TransportError" and results[rank]["dtype"][2] < TIMEOUT
        assert "may be half stepped" in results[rank]["dtype"][1]


def _late(rank):
    """All ranks change alike, one of them later than the others' patience with a running step."""
    model, optimizer = make()
    kept = optimizer.state[model.first.weight]["m"].to_local().clone()
    found = []
    for step in range(3):
        swap = nn.Parameter(model.first.weight.detach().clone())
        for group in optimizer.param_groups:
            group["params"] = [swap if p is model.first.weight else p for p in group["params"]]
        model.first.weight = swap
        set_gradients(model)
        if rank == step:
            time.sleep(1.5)
        optimizer.step()
        kept = 0.9 * kept + 1
        found.append(torch.allclose(optimizer.state[swap]["m"].to_local(), kept))
        found.append(optimizer.state[swap]["step"].item() == step + 2)
    return found


def test_ranks_that_change_alike_keep_states(fake):
    for found in run_ranks(_late, SIZE):
        assert found == [True] * 6


def _apart(rank):
    """A rank alone in prepare or export times out; once all of them come, they find together."""
    model, optimizer = make()
    found = {}
    dist.barrier()
    if rank == 1:
        freeze(model, optimizer)
        found["state"] = attempt(optimizer.state_dict)
        found["poisoned"] = attempt(optimizer.state_dict)
        found["export"] = attempt(lambda: export_manifest(model.named_parameters(), timeout=1.0))
    dist.barrier()
    freeze(model, optimizer)
    optimizer.recover()
    found["stale"] = attempt(optimizer.step)
    optimizer.recover()
    found["again"] = attempt(optimizer.step)
    found["steps"] = optimizer.state[model.first.weight]["step"].item()
    listed = export_manifest(model.named_parameters())["parameters"]
    found["parameters"] = sum(item.get("requires_grad", True) for item in listed)
    return found


def test_ranks_that_were_apart_find_together(fake):
    results = run_ranks(_apart, SIZE)
    name, text, seconds = results[1]["state"]
    assert name == "StepcTimeout" and TIMEOUT <= seconds < TIMEOUT + SLACK
    assert "expected all 3 ranks that share parameters within 6 s" in text
    assert "since parameter 'second.weight' was frozen on rank 1, but ranks 0, 2 did not come" in text
    assert results[1]["poisoned"][0] == "PoisonedError"
    assert results[1]["export"][0] == "StepcTimeout"
    assert "export_manifest(): expected all 3 ranks" in results[1]["export"][1]
    for found in results:
        assert found["stale"][0] is None and found["again"][0] is None, found
        assert found["steps"] == 3 and found["parameters"] == 3


def _stops(rank, where):
    """A rank is stopped on the way into prepare, or inside it."""
    model, optimizer = make()
    freeze(model, optimizer)
    if rank == 1:
        def stop(*arguments):
            os.kill(os.getpid(), signal.SIGSTOP)

        place, name = where.rsplit(".", 1)
        setattr(sys.modules[place], name, stop)
    return attempt(optimizer.step)


@pytest.mark.parametrize(("where", "text"), [
    ("stepc.torch.optimizer.Meeting", "but rank 1 did not come"),
    ("stepc.torch.optimizer.describe", "prepare(): receiving from rank 1: no answer within 6 s"),
])  # fmt: skip
def test_a_rank_that_stops_in_prepare(fake, where, text):
    codes, results = run_ranks_until(_stops, SIZE, (0, 2), 60, where)
    assert codes == [0, 0]
    assert any(text in found for _, found, _ in results), results
    for name, found, seconds in results:
        assert name in ("StepcTimeout", "TransportError") and "rank 1" in found
        assert seconds < TIMEOUT + SLACK


def _slow(rank):
    if rank == 0:
        os.environ["STEPC_FAKE_SECONDS"] = str(4.5)
    model = fully_shard(Net())
    optimizer = Optimizer(model.named_parameters(), "slow {}", Plain={"lr": 0.5}, timeout=2.0)
    optimizer.prepare()
    return optimizer.library.world_ranks


def test_a_long_compilation_is_no_silence(fake):
    assert run_ranks(_slow, 2) == [(0, 1)] * 2


def _bad_plan(rank):
    """A rank that fails while planning tells the others at once."""
    model, optimizer = make()
    dist.barrier()
    if rank == 2:
        model.extra = nn.Parameter(torch.zeros(2, 2))  # plain: nobody said where it lives
        optimizer.add_param_group({"params": [("extra", model.extra)]})
    else:
        freeze(model, optimizer)
    return attempt(optimizer.step)


def test_a_rank_that_cannot_plan(fake):
    results = run_ranks(_bad_plan, SIZE)
    assert results[2][0] == "PlacementError" and "'extra'" in results[2][1]
    for name, text, seconds in results[:2]:
        assert name == "StepcError" and seconds < TIMEOUT, text
        assert "rank 2 could not export its manifest: PlacementError: parameter 'extra'" in text


def test_moved_states_are_agreed_on(fake):
    """Loading states that one rank alone holds otherwise: an error, not torch's timeout."""
    results = run_ranks(_loads, SIZE)
    assert results[1][0] in ("StepcTimeout", "StepcError")
    assert "parameter 'first.weight': state 'm' from [Replicate()] to [Shard(dim=0)]" in results[1][1]
    assert all(seconds < TIMEOUT + SLACK for _, _, seconds in results)


def _loads(rank):
    model, optimizer = make()
    saved = optimizer.state_dict()
    moved = saved["state"][0]["m"].redistribute(placements=[Replicate()])
    assert isinstance(moved, DTensor) and saved["state"][0]["m"].placements == (Shard(0),)
    if rank == 1:
        saved["state"][0] = saved["state"][0] | {"m": moved}
    result = attempt(lambda: optimizer.load_state_dict(saved))
    dist.barrier()
    return result


def _two_leave(rank):
    """Ranks 1 and 0 give up, one after the other, while rank 2 waits for both."""
    links = Links(range(SIZE), TIMEOUT, "two leave")
    dist.barrier()
    start = time.monotonic()
    text = ""
    if rank == 2:
        with pytest.raises(TransportError) as error:
            links.exchange({0: "x", 1: "x"}, "waiting")
        text = str(error.value)
    else:
        time.sleep(0.3 if rank == 1 else 0.6)
        links.abort("it left")
    seconds = time.monotonic() - start
    dist.barrier()
    links.close()
    return text, seconds


def test_a_second_rank_that_gives_up_is_noticed():
    """The connection by which it breaks its group may be one that the first has closed."""
    text, seconds = run_ranks(_two_leave, SIZE)[2]
    assert text == "waiting: rank 1 gave up: it left"
    assert seconds < TIMEOUT
