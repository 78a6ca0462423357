"""Manifests of public models (examples/models): their figures are the published ones, their placements PyTorch's, and
they compile."""

import json
import math
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

EXAMPLES = ROOT / "examples" / "models"
sys.path.insert(0, str(EXAMPLES))
import manifest as generator  # noqa: E402
from architectures import Parameter  # noqa: E402
from placements import Layout  # noqa: E402

MODELS = sorted(generator.MODELS)
MATRIX = Parameter("w", (64, 32), "rows")
STACK = Parameter("e", (8, 64, 32), "columns", experts=8)


def explain(folder, *options):
    """What `stepc explain` says of a generated manifest, and the manifest."""
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    path = folder / "m.json"
    subprocess.run([sys.executable, EXAMPLES / "manifest.py", *options, "-o", path], check=True)
    done = subprocess.run([compiler, "explain", EXAMPLES / "models.optim", "-m", path, "--json"],
                          capture_output=True, text=True)  # fmt: skip
    assert not done.returncode, done.stderr
    assert "warning" not in done.stderr
    return json.loads(done.stdout), json.loads(path.read_text())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fused", [False, True])
def test_parameters_add_up_to_the_published_count(model, fused):
    """The count is that of the checkpoint's elements, so nothing is missing and no size is off, fused or not."""
    for flat in (False, True):
        found = generator.parameters(model, fused, flat)
        assert sum(math.prod(one.shape) for one in found) == generator.MODELS[model]["parameters"]
        assert len({one.name for one in found}) == len(found)
        for one in found:
            if one.blocks:
                rows = sum(one.blocks["sizes"]) * one.blocks.get("repeat", 1)
                assert rows == one.shape[-2], one.name


@pytest.mark.parametrize(
    ("layout", "parameter", "expected"),
    [
        (Layout(8), MATRIX, ["S(0)"]),
        (Layout(8, replicas=2), MATRIX, ["R", "S(0)"]),
        (Layout(8, tp=2), MATRIX, ["_S(0, 2)", "S(0)"]),
        (Layout(8, tp=2), Parameter("w", (64, 32), "columns"), ["S(0)", "S(1)"]),
        (Layout(8, tp=2), Parameter("norm", (64,)), ["S(0)", "R"]),
        (Layout(8, ep=4), MATRIX, ["S(0)"]),
        (Layout(8, ep=4), STACK, ["_S(0, 4)", "S(0)"]),
        (Layout(16, ep=4), STACK, ["S(1)", "S(0)"]),  # 8 experts on 16 ranks
        (Layout(8, ep=4, expert_axes=("ep", "efsdp")), STACK, ["S(0)", "S(0)"]),
        # The placements of PyTorch issue 157216, and with HSDP.
        (Layout(8, ep=2, tp=2), STACK, ["_S(0, 2)", "S(0)", "S(2)"]),
        (Layout(8, ep=2, tp=2), Parameter("e", (8, 64, 32), "rows", experts=8), ["_S(0, 2)", "S(0)", "S(1)"]),
        (Layout(16, 2, ep=2, tp=2), STACK, ["R", "_S(0, 2)", "S(0)", "S(2)"]),
        # Rows that tensor parallelism and fully_shard cut both.
        (Layout(32, ep=8, tp=2), Parameter("e", (8, 64, 32), "rows", experts=8), ["_S(1, 2)", "S(0)", "S(1)"]),
        (Layout(8, ep=4), Parameter("e", (8 * 64, 32), "rows", experts=8), ["_S(0, 4)", "S(0)"]),
    ],
)
def test_placements_are_those_of_pytorch(layout, parameter, expected):
    assert layout.placements(parameter) == expected
    axes = layout.mesh(layout.mesh_of(parameter))["axes"]
    assert len(axes) == len(expected)
    assert math.prod(axis["size"] for axis in axes) == layout.ranks


def test_ranks_that_share_experts_are_neighbours():
    """In another order of axes the mesh has the same ranks in another order: those along ep stay side by side."""
    assert "ranks" not in Layout(8, ep=4).mesh("experts")
    assert Layout(8, ep=4, expert_axes=("ep", "efsdp")).mesh("experts")["ranks"] == [0, 4, 1, 5, 2, 6, 3, 7]
    turned = Layout(16, 2, ep=2, tp=2, expert_axes=("ep", "efsdp")).mesh("experts")["ranks"]
    assert turned == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ranks", "12", "--tp", "8"], "--ranks: expected a multiple of replicas × tp × ep = 8, found 12"),
        (["--tp", "0"], "--tp: expected at least 1, found 0"),
        (["--tp", "2", "--fused"], "expected --tp 1, found 2"),
        (["--ranks", "8", "--layers", "0"], "--layers: expected at least 1, found 0"),
    ],
)
def test_what_cannot_be_is_an_error(options, expected):
    done = subprocess.run([sys.executable, EXAMPLES / "manifest.py", "llama-3-8b", *options], capture_output=True, text=True)
    assert done.returncode == 2
    assert expected in done.stderr


def test_the_list_names_all():
    done = subprocess.run([sys.executable, EXAMPLES / "manifest.py", "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(generator.MODELS)


@pytest.mark.parametrize(
    "options",
    [
        "llama-3-8b --ranks 64",
        "llama-3-8b --ranks 64 --replicas 8 --tp 2",
        "qwen3-8b --ranks 64 --tp 8",
        "qwen3-8b --ranks 64 --fused --dtype f32",
        "qwen3-30b-a3b --ranks 64 --ep 8",
        "qwen3-30b-a3b --ranks 64 --ep 8 --expert-axes ep,efsdp --fused",
        "qwen3-30b-a3b --ranks 64 --ep 8 --tp 2 --layers 4",
        "qwen3-30b-a3b --ranks 64 --ep 8 --flat --layers 1",
        "qwen3.5-397b-a17b --ranks 128 --ep 16 --layers 8",
        "deepseek-v3 --ranks 2048 --ep 64 --layers 4",
        "kimi-k2 --ranks 1024 --ep 64 --layers 3",
    ],
)
def test_they_are_planned_and_proven(tmp_path, options):
    """Each parameter is stepped, matrices by Muon on whole blocks and the rest element by element."""
    said, document = explain(tmp_path, *options.split())
    assert len(said["world"]) == int(options.split()[2])
    stepped = {name for group in said["groups"] for name in group["parameters"]}
    assert stepped == {one["name"] for one in document["parameters"] if one.get("requires_grad", True)}
    for group in said["groups"]:
        assert (group["strategy"] == "elementwise") == (group["rule"] != "Muon"), group["parameters"]
    for name in (name for group in said["groups"] if group["rule"] != "Muon" for name in group["parameters"]):
        assert any(part in name for part in ("norm", "embed_tokens", "lm_head", "conv1d", "A_log", "dt_bias", "expert_gate"))
