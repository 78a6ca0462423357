"""State dicts, groups and definitions that an optimizer refuses, over the fake library."""

import copy
import json
import re
from pathlib import Path

import pytest
import torch
from conftest import ROOT
from models import SPEC, Model, make, set_gradients
from ranks import run_ranks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.placement_types import Shard

import stepc
from stepc._inputs import MOST_MIB
from stepc.torch import Blocks, Optimizer, export_manifest
from stepc.torch.groups import Routing
from stepc.torch.options import RouteInfo


def saved_by(optimizer, bare=False):
    """A state dict; ``bare`` as distributed checkpoint gives it where groups got no options."""
    saved = copy.deepcopy(optimizer.state_dict())
    if bare:
        saved["param_groups"] = [{"params": group["params"]} for group in saved["param_groups"]]
    return saved


def stepped():
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    return optimizer


def refused(optimizer, saved, match):
    before = saved_by(optimizer)
    with pytest.raises(stepc.StepcError, match=match):
        optimizer.load_state_dict(saved)
    after = saved_by(optimizer)
    assert after["param_groups"] == before["param_groups"]
    for key, state in before["state"].items():
        assert all(torch.equal(after["state"][key][name], value) for name, value in state.items())


def test_options_of_no_group_and_of_another_route(fake):
    optimizer = stepped()
    saved = saved_by(optimizer, bare=True)
    refused(optimizer, saved, "parameter 'w': the state dict has no options for its group: expected lr")
    bool(optimizer.state)  # what distributed checkpoint asks before it saves
    options = {name: optimizer.state[tensor]["@options"] for name, tensor in optimizer._named()}
    for key, name in enumerate("wvbs"):
        saved["state"][key]["@options"] = options[name].clone()
    optimizer.load_state_dict(copy.deepcopy(saved))
    text = r"parameter 'v': expected the options of route Momentum \(lr, momentum\) .* found those of another route"
    for other in (options["b"], options["v"][:-1], "lr = 1", options["v"].to("meta")):
        saved["state"][1]["@options"] = other
        refused(optimizer, saved, text)


def test_parameters_that_are_saved_twice(fake):
    optimizer = stepped()
    saved = saved_by(optimizer)
    saved["param_groups"][0]["param_names"] = ["w", "w"]
    refused(optimizer, saved, "parameter 'w': expected it in the state dict once, found it twice")


def test_saved_groups_of_another_route(fake):
    optimizer = stepped()
    saved = saved_by(optimizer)
    saved["param_groups"][0]["route"] = "Plain"
    refused(optimizer, saved, r"parameter group 0 \(route Momentum\): expected a parameter group of route "
            "Momentum, found one of Plain")  # fmt: skip


def test_groups_that_say_another_route_than_the_definition(fake):
    model = Model()
    with pytest.raises(ValueError, match="expected parameters of route 'Plain' in a group that says so, "
                       "found 'w' of route 'Momentum'"):  # fmt: skip
        Optimizer([{"params": [("w", model.w), ("b", model.b)], "route": "Plain"}], SPEC, lr=1.0)
    optimizer = Optimizer([{"params": [("b", model.b)], "route": "Plain"}], SPEC, lr=1.0)
    assert optimizer.routes == {"b": "Plain"}


def test_only_parameters_can_be_forgotten(fake):
    optimizer = stepped()
    with pytest.raises(stepc.StepcError, match="forget: expected a parameter of this optimizer, found 'x'"):
        optimizer.forget("x")
    assert optimizer.state[dict(optimizer._named())["w"]]["step"] == 1


@pytest.mark.parametrize("name", ["params", "param_names"])
def test_hyperparameters_that_groups_have_no_room_for(name):
    with pytest.raises(
        stepc.HyperparameterError,
        match=f"route R: expected another name for the hyperparameter '{name}': parameter groups keep "
        "something else under that key",
    ):
        Routing({"R": RouteInfo("R", "Rule", {"lr": 0.1, name: None})}, {})


def _other_pieces(rank):
    """A shard of another size under the same placements: other elements, seen before any is copied."""
    mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
    named = [(name, nn.Parameter(distribute_tensor(torch.zeros(4, 3), mesh, [Shard(0)])))
             for name in "vw"]  # fmt: skip
    optimizer = Optimizer(named, SPEC, lr=1.0)
    saved = optimizer.state_dict()
    ones = torch.ones(4, 3)
    saved["state"] = {
        key: {"step": 7, "m": DTensor.from_local(ones[: 4 - key], mesh, [Shard(0)], run_check=False,
                                                 shape=ones.shape, stride=ones.stride())}
        for key in range(2)
    }  # fmt: skip
    try:
        optimizer.load_state_dict(saved)
    except stepc.StepcError as error:
        states = [optimizer.state[tensor] for _, tensor in named]
        return str(error), [bool(state["m"].to_local().any()) for state in states]
    return None


def test_states_in_other_pieces(fake):
    text = "parameter 'w': state 'm': expected a shard of shape [4, 3], found [3, 3]"
    assert run_ranks(_other_pieces, 1) == [(text, [False, False])]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"blocks": {"w": [4, 4]}}, r"blocks=\{'w': …\}: expected a stepc.torch.Blocks, as in Blocks\(\[512, "
                                    r"128, 128\]\), found \[4, 4\]"),
        ({"placements": {"*": "S(0)"}}, r"placements=\{'\*': …\}: expected a stepc.torch.Placed, as in "
                                        r"Placed\(mesh, \[Shard\(0\)\]\), found 'S\(0\)'"),
    ],
)  # fmt: skip
def test_declarations_of_other_types_are_refused(fake, declared, message):
    with pytest.raises(TypeError, match=message):
        Optimizer(Model().named_parameters(), SPEC, **declared)


def test_blocks_are_lists_of_numbers():
    for sizes in ("24", 24, [24, "24"], [24.0]):
        with pytest.raises(TypeError, match="Blocks: expected a list of whole numbers for sizes, found"):
            Blocks(sizes)
    for runs in ("24", [[(0, 4, 8)]], [(0, 4)], [["04"]]):
        with pytest.raises(
            TypeError, match=r"Blocks: expected a list of runs \(begin, end\) for each matrix"
        ):
            Blocks(runs=runs)
    assert Blocks([24, 24]).manifest()["runs"] == [[[0, 24]], [[24, 48]]]


def test_arguments_are_a_list_of_options_for_a_library(fake):
    for arguments in ("--waves 2", tuple("--waves 2"), ["2", "--waves"]):
        with pytest.raises(TypeError, match="arguments: expected a list of options, as in"):
            stepc.compile(SPEC, {}, arguments=arguments)
    for arguments in (["--emit", "comm"], ["--emit=comm"], ["--waves", "2", "-o", "x"]):
        with pytest.raises(ValueError, match="arguments: expected options that shape the library, found '-"):
            stepc.compile(SPEC, {}, arguments=arguments)


@pytest.mark.parametrize(
    ("given", "found"), [({}, "neither"), ({"spec": SPEC, "library": "libmuon.so"}, "both")]
)
def test_a_definition_or_a_library(given, found):
    with pytest.raises(TypeError, match=f"expected a definition or library=, found {found}"):
        Optimizer(Model().named_parameters(), given.get("spec"), library=given.get("library"))


@pytest.mark.parametrize("option", [
    {"target": "banana"}, {"strategy": {"*": "owner"}}, {"workspace_limit": 0}, {"numerics": "exact"}, {"arguments": ["--waves", "2"]},
    {"if_present": ["head*"]}, {"cluster": "h100"},
])  # fmt: skip
def test_a_ready_library_takes_no_compile_options(option):
    (name,) = option
    with pytest.raises(TypeError, match=f"expected no compile options beside library=, .* found {name}=$"):
        Optimizer(Model().named_parameters(), library="libmuon.so", **option)


@pytest.mark.parametrize("cluster", ["", 3, ["h100"], b"h100"])
def test_clusters_are_names_files_or_dicts(fake, cluster):
    for function in (
        lambda: make(Model(), cluster=cluster),
        lambda: stepc.compile(SPEC, {}, cluster=cluster),
        lambda: stepc.explain(SPEC, {}, cluster=cluster),
    ):
        with pytest.raises(
            TypeError, match="cluster: expected a profile's name, the path of a JSON file, or what"
        ):
            function()


def test_files_of_clusters_are_read_before_anything_else(fake, tmp_path):
    with pytest.raises(stepc.CompileError, match=r"none.json: expected a cluster, but the file cannot be read: .*no such file"):
        make(Model(), cluster=tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(stepc.CompileError, match=r"list.json: expected a cluster as a JSON object"):
        make(Model(), cluster=str(tmp_path / "list.json"))


def few_mebibytes(monkeypatch):
    monkeypatch.setattr("stepc._inputs.MOST_MIB", dict.fromkeys(MOST_MIB, 1))


@pytest.mark.parametrize("path", ["/dev/zero", "large.json", "a.folder", "binary.json", "no\0path"])
@pytest.mark.parametrize("what", ["specification", "manifest", "cluster"])
def test_inputs_are_read_up_to_a_bound(fake, tmp_path, monkeypatch, what, path):
    """As by the command line: what has no end is an error, and so is what is too large."""
    few_mebibytes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("large.json").write_bytes(b" " * (2**20 + 1))
    Path("a.folder").mkdir()
    Path("binary.json").write_bytes(b"\xff")
    found = {"/dev/zero": "of at most 1 MiB, found more", "large.json": "of at most 1 MiB, found 1048577 bytes",
             "a.folder": "is a directory", "binary.json": "in UTF-8: ", "no\0path": "embedded null byte"}[path]  # fmt: skip
    manifest = {"version": 1, "parameters": []}
    calls = {
        "specification": [lambda: stepc.compile(path, manifest), lambda: make(Model(), path), lambda: stepc.check(path, manifest)],
        "manifest": [lambda: stepc.compile(SPEC, path), lambda: stepc.explain(SPEC, path)],
        "cluster": [lambda: stepc.compile(SPEC, manifest, cluster=path), lambda: make(Model(), cluster=path)],
    }[what]
    for call in calls:
        with pytest.raises(stepc.CompileError) as raised:
            call()
        text = str(raised.value)
        assert text.startswith(path.replace("\0", "\\0") + ": ") and what in text and found in text


def test_a_manifest_may_be_its_text(fake, tmp_path):
    manifest = export_manifest([("w", nn.Parameter(torch.zeros(2, 2)))])
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    for given in (json.dumps(manifest), "\n " + json.dumps(manifest, indent=2), tmp_path / "manifest.json"):
        assert stepc.check(SPEC, given) == stepc.check(SPEC, manifest)
    for call in (lambda: stepc.check(SPEC, '{"\udc80": 1}'), lambda: stepc.check("rule \udc80 {}", manifest)):
        with pytest.raises(stepc.CompileError, match=r"^<(manifest|specification)>: expected a \1 in UTF-8: "):
            call()


def test_files_of_options_are_read_up_to_a_bound(fake, monkeypatch):
    few_mebibytes(monkeypatch)
    with pytest.raises(stepc.CompileError):  # by the compiler, which knows no such option or bounds it, too
        stepc.compile(SPEC, {"version": 1, "meshes": [], "parameters": []}, arguments=["--products", "/dev/zero"])


def test_bounds_are_the_command_lines():
    report = (ROOT / "tools/stepc/Report.h").read_text()
    source = (ROOT / "frontends/language/Source.h").read_text()
    found = {name: int(size) for name, size in re.findall(r"kMost(\w+) = uint64_t\((\d+)\) << 20", report)}
    (specification,) = re.findall(r"maxBytes = size_t\((\d+)\) << 20", source)
    assert MOST_MIB == {"specification": int(specification), "manifest": found["Manifest"], "cluster": found["Table"],
                        "table of products": found["Table"]}  # fmt: skip


@pytest.mark.parametrize("target", [[], (), "", 3, ["cpu", 3], ["cpu", ""], b"cpu"])
def test_targets_are_texts(fake, target):
    for function in (
        lambda: make(Model(), target=target),
        lambda: stepc.compile(SPEC, {}, target=target),
        lambda: stepc.explain(SPEC, {}, target=target),
    ):
        with pytest.raises(
            TypeError, match="target: expected a text, as in 'cuda:sm_90a', or a list of such texts, found"
        ):
            function()
