"""Manifests of public models (examples/models): their figures are the published ones, their placements
PyTorch's, and they compile, are proven and simulated. Depths are cut down to some layers of each kind: ranks
and experts are all there."""

import json
import math
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

EXAMPLES = ROOT / "examples" / "models"
sys.path.insert(0, str(EXAMPLES))
sys.path.append(str(ROOT / "benchmarks"))  # behind: its models.py is another one
import manifest as generator  # noqa: E402
from architectures import Parameter  # noqa: E402
from measure import measured  # noqa: E402
from placements import Layout  # noqa: E402

pytestmark = pytest.mark.tier("land")

MODELS = sorted(generator.MODELS)
MATRIX = Parameter("w", (64, 32), "rows")
STACK = Parameter("e", (8, 64, 32), "columns", experts=8)


def run(folder, command, options, *more):
    """A command of the compiler on a generated manifest, which is returned too: (standard output, manifest,
    bytes that it took at most)."""
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    path, out = folder / "m.json", folder / "stdout"
    subprocess.run([sys.executable, EXAMPLES / "manifest.py", *options.split(), "-o", path], check=True)
    with open(out, "w") as stdout, open(folder / "stderr", "w") as stderr:
        done, taken = measured(
            [compiler, command, EXAMPLES / "models.optim", "-m", path, *more], stdout=stdout, stderr=stderr
        )
    errors = (folder / "stderr").read_text()
    assert done.returncode == 0 and "warning" not in errors, errors
    return out.read_text(), json.loads(path.read_text()), taken.peak_bytes


def expect_stepped(groups, document):
    """Each parameter is, matrices by Muon and the rest by AdamW."""
    stepped = {name: group["rule"] for group in groups for name in group["parameters"]}
    assert stepped.keys() == {one["name"] for one in document["parameters"] if one.get("requires_grad", True)}
    for name in (name for name, rule in stepped.items() if rule != "Muon"):
        assert any(
            part in name
            for part in ("norm", "embed_tokens", "lm_head", "conv1d", "A_log", "dt_bias", "expert_gate")
        )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fused", [False, True])
def test_parameters_add_up_to_the_published_count(model, fused):
    """The count is that of the checkpoint's elements, so nothing is missing and no size is off, fused or
    not.
    """
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
    """In another order of axes the mesh has the same ranks in another order: those along ep stay side by
    side.
    """
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
    done = subprocess.run(
        [sys.executable, EXAMPLES / "manifest.py", "llama-3-8b", *options], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert expected in done.stderr


def test_the_list_names_all():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "manifest.py", "--list"], capture_output=True, text=True, check=True
    )
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
    ],
)
def test_they_are_planned_and_proven(tmp_path, options):
    """Matrices are computed as whole blocks, and the rest element by element."""
    text, document, _ = run(tmp_path, "explain", options, "--json")
    said = json.loads(text)
    assert len(said["world"]) == int(options.split()[2])
    expect_stepped(said["groups"], document)
    for group in said["groups"]:
        assert (group["strategy"] == "elementwise") == (group["rule"] != "Muon"), group["parameters"]


@pytest.mark.parametrize(
    "options",
    [
        "llama-3-8b --ranks 64 --layers 2",
        "qwen3-8b --ranks 64 --layers 2",
        "qwen3-30b-a3b --ranks 64 --ep 8 --layers 2",
        "qwen3.5-397b-a17b --ranks 128 --ep 16 --layers 4",
        "deepseek-v3 --ranks 1024 --ep 64 --layers 4",
        pytest.param("deepseek-v3 --ranks 2048 --ep 64 --layers 4", marks=pytest.mark.tier("all")),
        pytest.param("kimi-k2 --ranks 1024 --ep 64 --layers 2", marks=pytest.mark.tier("all")),
        pytest.param("kimi-k2 --ranks 2048 --ep 64 --layers 2", marks=pytest.mark.tier("all")),
    ],
)
def test_they_are_simulated_on_a_cluster_of_gpus(tmp_path, options):
    step = json.loads(run(tmp_path, "simulate", options, "--cluster", "h100", "--json", "-")[0])
    ranks = step["ranks"]
    assert len(ranks) == int(options.split()[2]) and step["progress"] == "streams"
    for what in ("bytes", "messages"):
        sent, received = (sum(rank[f"{what}_{way}"] for rank in ranks) for way in ("sent", "received"))
        assert sent == received > 0
    levels = {level["level"] for rank in ranks for level in rank["sent"] if level["bytes"]}
    assert levels == {*step["levels"]} and len(levels) == 2
    assert 0 < step["latency_seconds"] < 1 and any(rank["flops"] for rank in ranks)
    for rank in ranks:
        assert 0 <= rank["exposed_seconds"] <= step["latency_seconds"] and rank["work_seconds"] > 0


@pytest.mark.tier("all")
def test_a_library_for_2048_ranks_is_small(tmp_path):
    """Only tables, which are made when it is opened, follow ranks. All layers of DeepSeek-V3 take 0.4
    GiB, and 3.5 MiB.
    """
    _, document, memory = run(tmp_path, "compile", "deepseek-v3 --ranks 2048 --ep 64 --layers 4", "--cluster", "h100",
                              "-o", tmp_path / "out")  # fmt: skip
    groups = json.loads((tmp_path / "out" / "models.json").read_text())["groups"]
    expect_stepped(
        [group | {"parameters": [one["name"] for one in group["parameters"]]} for group in groups], document
    )
    size = (tmp_path / "out" / "libmodels.so").stat().st_size
    assert size <= 4 * 2**20 and memory <= 2**30, (size, memory)
