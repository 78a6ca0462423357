"""Only the first rank needs a compiler: it answers for all when optimizers are made, and compiles."""

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from ranks import run_ranks
from test_worlds import attempt, parameter
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.placement_types import Shard

import stepc
from stepc.torch import Optimizer, building
from stepc.torch import optimizer as optimizer_module
from stepc.torch.links import Links

pytestmark = pytest.mark.tier("land")

TIMEOUT = 20.0
LR = {"Muon": {"lr": 0.02}, "AdamW": {"lr": 3e-4}}
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "muon.optim"


@pytest.fixture
def counted(real, monkeypatch, tmp_path):
    """The compiler, which writes down how it was called."""
    program, log = tmp_path / "stepc", tmp_path / "calls"
    program.write_text(f'#!/bin/sh\necho "$1" >> "{log}"\nexec "{os.environ["STEPC"]}" "$@"\n')
    program.chmod(0o755)
    runtime = Path(os.environ["STEPC"]).resolve().parent.parent / "lib"
    monkeypatch.setenv("STEPC_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("STEPC", str(program))
    monkeypatch.setenv("STEPC_CACHE", str(tmp_path / "cache"))
    return lambda: [call for call in log.read_text().split() if call != "--version"] if log.exists() else []


def without_compiler(rank, first=0):
    """As on a node that has no compiler."""
    if rank != first:
        os.environ["STEPC"] = "/nonexistent"
        os.environ["PATH"] = ""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.embed = nn.Embedding(12, 8)
        self.up, self.down = nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False)
        self.norm = nn.LayerNorm(8)


def train(model, optimizer, steps=2):
    for step in range(steps):
        for index, p in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(100 * step + index)
            if p.requires_grad:
                p.grad = torch.zeros_like(p)
                local = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
                local.copy_(torch.randn(local.shape, generator=generator))
        optimizer.step()
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach().clone() for p in model.parameters()]


def _four(rank, alone):
    if alone:
        without_compiler(rank)
    model = Net()
    fully_shard(model)
    optimizer = Optimizer(model.named_parameters(), EXAMPLE, timeout=TIMEOUT, **LR)
    return optimizer.routes, train(model, optimizer), optimizer.counters()[0]["messages_sent"]


def test_four_ranks_step_with_one_compiler(counted):
    results = run_ranks(_four, 4, True)
    assert counted() == ["check", "compile"]
    expected = run_ranks(_four, 4, False)
    assert counted() == ["check", "compile", "check"]  # the library is in the cache
    for (routes, weights, sent), (as_ever, same, _) in zip(results, expected, strict=True):
        assert routes == as_ever == results[0][0] and sent > 0
        assert set(routes.values()) == {"Muon", "AdamW"}
        assert all(map(torch.equal, weights, same))


def _stages(rank):
    """Two stages with other names and another definition each; the first rank answers for both."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage = mesh.get_local_rank("pp")
    without_compiler(rank)
    named = [(f"stage{stage}.w", parameter(mesh["dp"], [Shard(0)]))]
    rule = "optimizer Sgd(lr) { param = param - lr * grad }\nroute { Sgd(lr = 0.1) for matrix }\n"
    return Optimizer(named, rule.replace("Sgd", f"Sgd{stage}"), timeout=TIMEOUT).routes


def test_the_first_rank_answers_for_all_stages(counted):
    first, second = {"stage0.w": "Sgd0"}, {"stage1.w": "Sgd1"}
    assert run_ranks(_stages, 4) == [first, first, second, second]
    assert counted() == ["check", "check"]


def _paths(rank, folder):
    """Equal texts in files of other names make one question; the error names the first rank's file."""
    path = Path(folder) / str(rank) / "sgd.optim"
    path.parent.mkdir()
    path.write_text("optimizer Sgd(lr) { param = param - lr * grad }\nroute { Sgd(lr = 0.1) for rest }\n")
    without_compiler(rank)
    w = nn.Parameter(torch.ones(4))
    routes = Optimizer([("w", w)], path, replicated=["*"], timeout=TIMEOUT).routes
    path.write_text("optimizer Sgd(lr) { param = }")
    return routes, attempt(lambda: Optimizer([("w", w)], path, replicated=["*"], timeout=TIMEOUT))


def test_an_error_of_the_compiler_reaches_all_ranks(counted, tmp_path):
    results = run_ranks(_paths, 3, str(tmp_path))
    assert counted() == ["check", "check"]
    for rank, (routes, (name, text, seconds)) in enumerate(results):
        assert routes == {"w": "Sgd"} and name == "CompileError" and seconds < TIMEOUT, text
        assert f"{tmp_path}/0/sgd.optim:1:29: error: " in text, text
        assert ("(compiled on rank 0)" in text) == (rank != 0)


def _nobody(rank):
    without_compiler(rank, first=None)
    w = nn.Parameter(torch.ones(4))
    return attempt(lambda: Optimizer([("w", w)], EXAMPLE, replicated=["*"], timeout=TIMEOUT))[:2]


def test_no_compiler_on_the_first_rank_is_told_on_all(real):
    first, second = run_ranks(_nobody, 2)
    assert first == ("CompilerNotFound", "STEPC=/nonexistent: expected a program, found none")
    assert second == ("CompileError", f"{first[1]}\n(compiled on rank 0)")


def _other_stage_fails(rank):
    w = nn.Parameter(torch.ones(4, 2))
    spec = "rule {}" if rank < 2 else "error {}"
    return attempt(lambda: Optimizer([("w", w)], spec, replicated=["*"], lr=0.1, timeout=TIMEOUT))[:2]


def test_an_error_for_another_ranks_parameters_says_so(fake):
    for name, text in run_ranks(_other_stage_fails, 3):
        assert name == "CompileError" and "expected a rule, found 'error'" in text
        assert "(asked for the parameters of rank 2)" in text, text


def _one_fails(rank, kind):
    """One rank gives no parameters, or options that its routes do not have."""
    named = [] if rank == 1 and kind == "none" else [("w", nn.Parameter(torch.ones(4, 2)))]
    more = {"lrr": 0.1} if rank == 1 and kind == "options" else {"lr": 0.1}
    return attempt(lambda: Optimizer(named, "rule {}", replicated=["*"], timeout=TIMEOUT, **more))


@pytest.mark.parametrize(("kind", "error", "expected"), [
    ("none", "ValueError", "expected at least one parameter, found an empty list"),
    ("options", "TypeError", "'lrr' is no hyperparameter, rule or route of this definition"),
])  # fmt: skip
def test_a_rank_that_cannot_make_its_optimizer_tells_the_others(fake, kind, error, expected):
    for rank, (name, text, seconds) in enumerate(run_ranks(_one_fails, 3, kind)):
        assert name == (error if rank == 1 else "TransportError") and seconds < TIMEOUT / 2
        assert expected in text
        assert rank == 1 or "making an optimizer: rank 1 gave up" in text, text


def _absent(rank, kind):
    """One rank makes no optimizer: it does nothing, steps another one, or is in another group."""
    mesh = init_device_mesh("cpu", (3,), mesh_dim_names=("dp",))
    group = dist.new_group([0, 2])
    named = [("w", parameter(mesh, [Shard(0)], (6, 4)))]
    earlier = Optimizer(named, "rule {}", lr=0.1, timeout=4.0)
    if rank == 2 and kind == "nothing":
        found = None
    elif rank == 2 and kind == "prepares":
        found = attempt(earlier.prepare)
    else:
        more = {"process_group": group} if rank == 2 else {}
        found = attempt(lambda: Optimizer(named, "rule {}", lr=0.1, timeout=4.0, **more))
    dist.barrier()
    # Ranks that make one alone say so, and it works.
    if rank != 1:
        optimizer = Optimizer([("v", nn.Parameter(torch.ones(2)))], "rule {}", lr=0.1, timeout=TIMEOUT,
                              process_group=group, replicated=["*"])  # fmt: skip
        assert optimizer.routes == {"v": "Plain"}
    return found


@pytest.mark.parametrize(("kind", "where"), [
    ("nothing", "did not come; "), ("prepares", "did not come (rank 2 waits in prepare()); "),
    ("group", "did not come (rank 2 waits in making an optimizer with other ranks); "),
])  # fmt: skip
def test_a_rank_that_does_not_come_is_named(fake, kind, where):
    *others, last = run_ranks(_absent, 3, kind)
    start = "making an optimizer: expected all 3 ranks of the process group within 4 s, but rank 2 d"
    for name, text, seconds in others:
        assert name == "StepcTimeout" and seconds < 12, text
        assert start in text
        assert where in text and "all of its ranks have to do so; pass process_group=" in text, text
    if kind == "prepares":
        assert last[0] == "StepcTimeout" and "ranks 0, 1 did not come" in last[1]
        where = "(rank 0 waits in making an optimizer, rank 1 waits in making an optimizer)"
        assert where in last[1], last[1]


def _another_order(rank):
    """Optimizers that ranks make in another order have their routes all the same."""
    named = {"a": [("a", nn.Parameter(torch.ones(2, 2)))], "b": [("b", nn.Parameter(torch.ones(2)))]}
    found = {}
    for key in "ab" if rank else "ba":
        found[key] = Optimizer(named[key], "rule {}", lr=0.1, timeout=TIMEOUT, replicated=["*"]).routes
    return found


def test_the_order_of_optimizers_is_free(fake):
    assert run_ranks(_another_order, 2) == [{"a": {"a": "Momentum"}, "b": {"b": "Plain"}}] * 2


def _later(rank):
    """Unfreezing asks when ranks prepare; adding a group asks on the rank itself, and waits for nobody."""
    without_compiler(rank)
    model = Net()
    model.up.weight.requires_grad_(False)
    model.experts = nn.Parameter(torch.zeros(4, 4, 4), requires_grad=False)
    fully_shard(model)
    spec = EXAMPLE.read_text()
    optimizer = Optimizer(model.named_parameters(), spec, timeout=TIMEOUT, **LR)
    train(model, optimizer, 1)
    assert optimizer.routes["experts"] is None
    model.up.weight.requires_grad_(True)
    train(model, optimizer, 1)
    own = nn.Parameter(torch.ones(3))
    found = attempt(lambda: optimizer.add_param_group({"params": [("own", own)]}))[:2]
    return optimizer.routes["up.weight"], optimizer.state[model.up.weight]["step"].item(), found


def test_later_routes_are_no_hidden_meeting(counted):
    results = run_ranks(_later, 2)
    for rank, (route, step, (name, text)) in enumerate(results):
        assert route == "Muon" and step == 1
        assert name == (None if rank == 0 else "CompilerNotFound"), text
        assert rank == 0 or "hint: give the optimizer all parameters when it is made; frozen ones get" in text


STACK = """
optimizer Muon(lr) { param = param - lr * orthogonalize(grad) }
optimizer Sgd(lr) { param = param - lr * grad }
route {
  Muon(lr = 0.1) for matrix
  Sgd(lr = 0.1) for rest
}
"""


def _unfrozen_stack(rank, kind):
    """A stack of matrices has no route while it is frozen, as a selector refuses it without batch axes."""
    without_compiler(rank)
    model = nn.Module()
    model.w = nn.Parameter(torch.ones(4, 4))
    model.stack = nn.Parameter(torch.ones(4, 4, 4), requires_grad=False)
    fully_shard(model)
    batch = ["stack"] if kind == "routed" else []
    optimizer = Optimizer(model.named_parameters(), STACK, timeout=TIMEOUT, batch=batch)
    before = optimizer.routes["stack"]
    train(model, optimizer, 1)
    model.stack.requires_grad_(True)
    found = attempt(lambda: train(model, optimizer, 1))
    return before, found, optimizer.routes["stack"]


@pytest.mark.parametrize("kind", ["routed", "refused"])
def test_unfreezing_asks_the_first_rank(counted, kind):
    for before, (name, text, seconds), route in run_ranks(_unfrozen_stack, 3, kind):
        if kind == "routed":
            assert (before, name, route) == ("Muon", None, "Muon"), text
        else:
            assert before is None and name == "CompileError" and seconds < TIMEOUT, (before, name, text)
            assert "'stack'" in text and "pass batch=['stack']" in text, text


def _no_cache(rank, who, folder):
    if rank == who:
        os.environ["STEPC_CACHE"] = f"{folder}/file"
    model = nn.Linear(4, 6)
    fully_shard(model)
    optimizer = Optimizer(model.named_parameters(), "rule {}", lr=0.5, timeout=TIMEOUT)
    return attempt(optimizer.prepare)


@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_that_cannot_keep_the_library_tells_the_others(fake, tmp_path, who):
    (tmp_path / "file").write_text("")
    for rank, (name, text, seconds) in enumerate(run_ranks(_no_cache, 2, who, str(tmp_path))):
        others = "CompileError" if who == 0 else "TransportError"
        assert name == ("CacheError" if rank == who else others) and seconds < TIMEOUT / 2, text
        assert f"{tmp_path}/file: expected a folder for the cache, found a file" in text
        assert "STEPC_CACHE" in text


def _default_device(rank):
    model = nn.Linear(4, 6)
    fully_shard(model)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = model.weight.to_local().clone()
    with torch.device("meta"):  # of the trainer, for models that it makes
        optimizer = Optimizer(model.named_parameters(), "rule {}", lr=0.5, timeout=TIMEOUT)
        optimizer.step()
    changed = torch.count_nonzero(before - model.weight.to_local()).item()
    return changed, optimizer.state[model.weight]["step"].item()


def test_a_default_device_changes_nothing(fake):
    assert run_ranks(_default_device, 2) == [(12, 1)] * 2


def test_ranks_that_load_models_have_time_to_come(fake, monkeypatch):
    limits = []

    def meet(group, what, seconds, original=optimizer_module.Meeting):
        limits.append(seconds)
        return original(group, what, seconds)

    monkeypatch.setattr(optimizer_module, "Meeting", meet)
    for more in ({}, {"timeout": 7.0}):
        Optimizer([("w", nn.Parameter(torch.ones(2)))], "rule {}", lr=0.1, **more)
    assert limits[0] >= 600 and limits[1] == 7


def _quiet(rank):
    """With a library, or in one process, nobody meets."""
    made = []
    original = Links.__init__

    def count(self, *arguments):
        made.append(arguments)
        original(self, *arguments)

    Links.__init__ = count
    try:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
        w = parameter(mesh, [Shard(0)])
        alone = [dist.new_group([one]) for one in range(2)][rank]
        Optimizer([("v", nn.Parameter(torch.ones(2)))], "rule {}", lr=0.1, process_group=alone)
        none = len(made)
        optimizer = Optimizer([("w", w)], "rule {}", lr=0.1, timeout=TIMEOUT)
        one = len(made)
        optimizer.step()
        path, before = optimizer.library.path, len(made)
        again = Optimizer([("w", w)], library=path, Momentum={"lr": 0.1}, timeout=TIMEOUT)
        return none, one, len(made) - before, again.routes
    finally:
        Links.__init__ = original


def test_nobody_meets_where_nobody_has_to_be_asked(fake):
    assert run_ranks(_quiet, 2) == [(0, 1, 0, {"w": "Momentum"})] * 2


def test_a_definition_that_was_read_is_one(fake, tmp_path):
    from stepc._inputs import read_spec
    from stepc.torch import export_manifest

    path = tmp_path / "own.optim"
    path.write_text("error {}")
    manifest = export_manifest([("w", nn.Parameter(torch.ones(2)))])
    read = read_spec(path)
    path.write_text("rule {}")
    for spec, text in ((read, "error"), (read_spec("error {}"), "error")):
        with pytest.raises(stepc.CompileError, match=f"found '{text}'") as failed:
            stepc.check(spec, manifest)
        assert read is not spec or str(failed.value).startswith(f"{path}:1:1")


def _other_chip(rank, everywhere):
    """The library is for a CPU that all ranks lack, or that one lacks whose machine is another."""
    if not everywhere and rank == 1:
        def lacks(*arguments, **options):
            raise stepc.ChipError("library 'step' is for chip 'znver5', this CPU lacks 'avx512f'")

        building.Instance = lacks
    model = nn.Linear(4, 6)
    fully_shard(model)
    options = {"target": "cpu:sapphirerapids"} if everywhere else {}
    optimizer = Optimizer(model.named_parameters(), EXAMPLE, timeout=TIMEOUT, **LR, **options)
    return attempt(optimizer.prepare)


@pytest.mark.skipif("amx_tile" in Path("/proc/cpuinfo").read_text(), reason="this CPU has all")
def test_a_library_for_another_cpu_is_refused_on_all_ranks(real):
    for name, text, seconds in run_ranks(_other_chip, 2, True):
        assert name == "ChipError" and seconds < TIMEOUT, text
        assert "is for chip 'sapphirerapids', this CPU lacks " in text
        assert "compile for the target 'cpu:x86-64-v3'" in text
    zero, one = run_ranks(_other_chip, 2, False)
    assert one[0] == "ChipError" and zero[0] == "TransportError" and max(zero[2], one[2]) < TIMEOUT
    assert "this CPU lacks 'avx512f'" in zero[1]


class NoCollectives(dist.ProcessGroup):
    """A trainer's group that can do nothing of what is done on the CPU, as NCCL's."""

    def getBackendName(self):
        return "nothing"


def _without_gloo(index, folder, environment):
    os.environ.update(environment)
    dist.Backend.register_backend(
        "nothing", lambda store, rank, size, timeout: NoCollectives(rank, size), devices=["cpu"]
    )
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("nothing", store=store, rank=index, world_size=2)
    without_compiler(index)
    named = [("w", nn.Parameter(torch.ones(4)))]
    optimizer = Optimizer(named, "rule {}", replicated=["*"], lr=0.1, timeout=TIMEOUT)
    named[0][1].grad = torch.ones(4)
    optimizer.step()
    Path(f"{folder}/{index}").write_text(repr(optimizer.routes))


def test_a_group_without_gloo_is_no_obstacle(fake, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key.startswith("STEPC")}
    mp.start_processes(_without_gloo, (str(tmp_path), environment), 2, start_method="forkserver")
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["{'w': 'Plain'}"] * 2
