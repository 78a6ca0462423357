"""Optimizers compiled by the real compiler, in one process; the example on several ranks."""

import math
import re
import subprocess
import sys

import pytest
import torch
from conftest import ROOT
from sharded_net import ADAMW, BOTH, MUON, Net, assert_same, reference, set_gradients, shards, spec
from torch import nn

import stepc
from stepc.torch import Optimizer, export_manifest


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


def torchs_muon():
    """The definition that docs/torch.md says to be torch's."""
    page = (ROOT / "docs" / "torch.md").read_text()
    return re.search(r"<!-- torch.optim.Muon -->\n```optim\n(.*?)```", page, re.DOTALL)[1]


def muon_of_the_example():
    text = (ROOT / "examples" / "muon.optim").read_text()
    rule = re.search(r"^optimizer Muon.*?^}\n", text, re.M | re.S)[0]
    return rule + "route { Muon(lr = 1e-3) for matrix }\n"


@pytest.mark.parametrize(("text", "adjust", "small", "momentum"), [
    # As it stands, with torch's own scale and with the scale of AdamW.
    (torchs_muon, None, 1, 0.95), (torchs_muon, "original", 1, 0.95),
    (lambda: torchs_muon().replace("sqrt(max(1, rows / cols))", "0.2 * sqrt(max(rows, cols))"), "match_rms_adamw", 1, 0.95),
    # The sum of examples/muon.optim is torch's average up to a factor, which orthogonalize does not see …
    (muon_of_the_example, "match_rms_adamw", 1, 0.95), (muon_of_the_example, "match_rms_adamw", 1, 0.5),
    # … but for eps: tiny gradients need another one, as the page says.
    (torchs_muon, "original", 1e-11, 0.95),
    (lambda: muon_of_the_example().replace("precision = bf16", "precision = bf16, eps = 2e-6"), "match_rms_adamw", 1e-11, 0.95),
])  # fmt: skip
def test_muon_of_the_page_is_torchs(real, text, adjust, small, momentum):
    torch.manual_seed(0)
    shapes = {"square": (24, 24), "wide": (8, 40), "tall": (40, 8)}
    model = nn.ParameterDict({n: nn.Parameter(torch.randn(s)) for n, s in shapes.items()})
    twin = nn.ParameterDict({n: nn.Parameter(p.detach().clone()) for n, p in model.items()})
    start = {n: p.detach().clone() for n, p in model.items()}
    optimizer = Optimizer(model.named_parameters(), text(), lr=1e-3, momentum=momentum)
    # its defaults: lr 1e-3, weight decay 0.1
    other = torch.optim.Muon(
        twin.parameters(), adjust_lr_fn=adjust, momentum=momentum
    )
    for step in range(20):
        for each in (model, twin):
            set_gradients(each, step)
            for p in each.parameters():
                p.grad *= small
        optimizer.step()
        other.step()
    for name, p in model.items():
        far = (p - twin[name]).norm() / (twin[name] - start[name]).norm()
        print(f"{name}: {far:.4f} of the path")
        assert far < 0.03, name
    if text is torchs_muon:  # the average is torch's buffer
        for name, p in model.items():
            torch.testing.assert_close(optimizer.state[p]["m"], other.state[twin[name]]["momentum_buffer"], rtol=1e-5, atol=1e-7 * small)


@pytest.mark.parametrize("change", ["scale", "eps"])
def test_muon_of_the_example_differs_where_the_page_says(real, change):
    """The other side of the test above: with torch's own scale, and with tiny gradients, the example is
    another optimizer.
    """
    torch.manual_seed(0)
    model = nn.ParameterDict({"w": nn.Parameter(torch.randn(40, 8))})
    twin = nn.ParameterDict({"w": nn.Parameter(model["w"].detach().clone())})
    start = model["w"].detach().clone()
    optimizer = Optimizer(model.named_parameters(), muon_of_the_example(), lr=1e-3)
    other = torch.optim.Muon(
        twin.parameters(), adjust_lr_fn="original" if change == "scale" else "match_rms_adamw"
    )
    for step in range(5):
        for each in (model, twin):
            set_gradients(each, step)
            each["w"].grad *= 1e-11 if change == "eps" else 1
        optimizer.step()
        other.step()
    assert (model["w"] - twin["w"]).norm() > 0.1 * (twin["w"] - start).norm()


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


def test_no_name_of_a_definition_is_that_of_a_copy(real, tmp_path):
    """The compiler writes <name>.json beside the copies of what it reads."""
    manifest = export_manifest(Net().named_parameters())
    for name in ("manifest", "manifest.cpu"):
        (tmp_path / f"{name}.optim").write_text(spec(ADAMW) + "route { AdamW(lr = 1e-2) for rest }")
        made = stepc.compile(tmp_path / f"{name}.optim", manifest)
        assert made.library.name == f"lib{name}.so"


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
