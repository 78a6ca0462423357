"""The optimizers of stepc's library against NumPy, written from their papers (catalogue.py), and against torch's own.

The files with products of matrices are in test_matrix_rules.py, too. STEPC_SEED repeats a run.
"""

import json
import os
import random
import re

import catalogue
import numpy as np
import pytest
import torch
from compiler import ROOT, STEPC, run, save, tensor
from test_generality import PLACEMENTS, inputs, manifest, step
from test_matrix_rules import gradients
from test_positions import bucketed
from torch import nn

from stepc.torch import Optimizer, import_states

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
LIBRARY = ROOT / "frontends" / "language" / "library"
ONE = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
LR = 2.0**-6
MOST = 150.0  # the largest logit of a head
CLIPPED = ("MuonClip", "MuonClipQuery", "MuonClipKey")
# By route: the file, and the oracle. Routes of one optimizer with other numbers follow its name.
CASES = {
    "AdamW": ("adamw", catalogue.adamw), "TorchAdamW": ("torch_adamw", catalogue.adamw), "NAdamW": ("nadamw", catalogue.nadamw),
    "Lion": ("lion", catalogue.lion), "AdEMAMix": ("ademamix", catalogue.ademamix),
    "AdEMAMix_warmup": ("ademamix", catalogue.ademamix_warm), "LaProp": ("laprop", catalogue.laprop),
    "ADOPT": ("adopt", catalogue.adopt), "LAMB": ("lamb", catalogue.lamb), "AdamMini": ("adam_mini", catalogue.adam_mini),
    "AdamMiniHeads": ("adam_mini", catalogue.adam_mini_heads), "CAdamW": ("c_adamw", catalogue.c_adamw),
    "MARS": ("mars", catalogue.mars), "ScheduleFree": ("schedule_free", catalogue.schedule_free),
    "Adafactor": ("adafactor", catalogue.adafactor), "AdafactorVector": ("adafactor", catalogue.adafactor_vector),
    "Muon": ("muon", catalogue.muon), "MuonMoonlight": ("muon_moonlight", catalogue.muon_moonlight),
    "MuonDeepSeekV4": ("muon_deepseek_v4", catalogue.muon_deepseek_v4), "MuonHeads": ("muon_heads", catalogue.muon_moonlight),
    "MuonClip": ("muon_clip", catalogue.muon_clip), "MuonClipQuery": ("muon_clip", catalogue.muon_clip_query),
    "MuonClipKey": ("muon_clip", catalogue.muon_clip_key), "NorMuon": ("normuon", catalogue.normuon),
    "AdaMuon": ("adamuon", catalogue.adamuon), "MuonH": ("muonh", catalogue.muonh), "Muown": ("muown", catalogue.muown),
    "Aurora": ("aurora", catalogue.aurora), "Scion": ("scion", catalogue.scion), "ScionSign": ("scion", catalogue.scion_sign),
    "PolarGrad": ("polargrad", catalogue.polargrad), "TorchMuon": ("torch_muon", catalogue.torch_muon),
    "TorchMuonMatchRms": ("torch_muon", catalogue.torch_muon_match_rms),
}  # fmt: skip
NUMBERS = {"AdEMAMix_warmup": ", warmup = 5", "MuonClipQuery": ", nope = 3", "MuonClipKey": ", nope = 3"}
# Their products round to bf16, which the oracles do not.
NARROW = {name for name in CASES if name.startswith(("Muon", "NorMuon", "AdaMuon", "Muown", "TorchMuon"))} | {"Scion"}


def spec(names, isWide=False):
    """A definition with a route for each name. If `isWide`, the files are written out, and their products are of f32."""
    files = sorted({CASES[name][0] for name in names})
    text = "".join(f'import "stepc/{file}.optim"\n' for file in files)
    if isWide:
        text = "\n".join((LIBRARY / f"{file}.optim").read_text() for file in files)
        text = re.sub(r"(?<=orthogonalize\()(?!x, precision|m, coeff)", "wide, ", text).replace("deepseekv4)", "deepseekv4, precision = f32)")
        text = re.sub(r"orthogonalize\(wide, (.*)\)$", r"orthogonalize(\1, precision = f32)", text, flags=re.M).replace("f32, precision = f32", "f32")
        text = text.replace("bf16", "f32")
    text += "route {\n"
    for name in names:
        rule, _, variant = name.partition("_")
        text += f'  {rule}(lr = {LR}{NUMBERS.get(name, "")}) as {rule}{variant} for "{name}.*"\n'
    return text + "}\n"


def document(shapes, batch=0):
    return {"version": 1, "meshes": [ONE], "parameters": [
        {"name": name, "shape": list(shape), "dtype": "f32", "mesh": "one", "placements": ["R"], "batch_axes": batch}
        for name, shape in shapes.items()
    ]}  # fmt: skip


def stepped(folder, names, shapes, tensors, steps, batch=0, isWide=False):
    folder.mkdir(exist_ok=True)
    (folder / "s.optim").write_text(spec(names, isWide))
    (folder / "m.json").write_text(json.dumps(document(shapes, batch)))
    save(folder / "in", tensors)
    return run(folder / "s.optim", folder / "m.json", folder / "in", folder / "out", steps=steps)


def given_logits(shapes, blocks=()):
    return {f"input:{name}:most": tensor(np.full(blocks, MOST), "f32") for name in shapes if name.split(".")[0] in CLIPPED}


def test_every_file_is_here():
    apart = {"linalg", "soap", "shampoo", "dion"}  # test_matrix_rules.py has these
    assert {path.stem for path in LIBRARY.glob("*.optim")} == {file for file, _ in CASES.values()} | apart


# Kinds of gradients, and the part of the movement that products of bf16 may be off by: their roundings fill the directions
# that a gradient of rank 3 lacks.
KINDS = {"gaussian": 0.05, "rank 3": 0.25, "partly zero": 0.05}


@pytest.mark.parametrize("isWide", [False, True])
def test_steps_are_those_of_the_papers(tmp_path, isWide):
    """As near to float64 as NumPy's float32, up to a factor of 4 or 1e-4 of the movement. `isWide`: with products of f32."""
    forms = (("wide", (7, 12)), ("tall", (12, 7)))
    shapes = {f"{name}.{kind}.{form}": shape for name in CASES for kind in KINDS for form, shape in forms}
    draw, steps = np.random.default_rng(11), 8
    starts = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    given = {name: list(gradients(name.split(".")[1], shape, steps, 3)) for name, shape in shapes.items()}
    tensors = {f"param:{name}": tensor(start, "f32") for name, start in starts.items()} | given_logits(shapes)
    tensors |= {f"grad:{name}@{i + 1}": tensor(grad, "f32") for name, all_of in given.items() for i, grad in enumerate(all_of)}
    found = stepped(tmp_path / "run", CASES, shapes, tensors, steps, isWide=isWide)
    wrong = []
    for name, start in starts.items():
        (case, kind, _), ends = name.split("."), []
        more = (MOST,) if case in CLIPPED else ()
        for dtype in (np.float64, np.float32):
            param, state = start.astype(dtype), {}
            for i, grad in enumerate(given[name]):
                param = CASES[case][1](state, param, grad.astype(dtype), i + 1, LR, *more)
                assert param.dtype == dtype, case
            ends.append(param.astype(np.float64))
        movement = np.linalg.norm(ends[0] - start)
        error = np.linalg.norm(found[f"param:{name}"].array() - ends[0])
        narrow = KINDS[kind] if case in NARROW and not isWide else 0
        allowed = max(4 * np.linalg.norm(ends[1] - ends[0]), max(narrow, 1e-4) * movement)
        if not (movement > 1e-3 and error <= allowed):
            wrong.append(f"{name}: off by {error:.2g}, allowed {allowed:.2g}, moved {movement:.2g}")
    assert not wrong, "\n".join(wrong)


def test_zero_gradients_do_no_harm(tmp_path):
    """Of the first 1, 2 and 8 steps, and of one matrix of a stack in all of them."""
    shape, steps, firsts = (3, 6, 5), 11, (1, 2, 8)
    shapes, draw = {f"{name}.{first}": shape for name in CASES for first in firsts}, np.random.default_rng(5)
    tensors, start = given_logits(shapes, (3,)), draw.standard_normal(shape)
    for name in shapes:
        tensors[f"param:{name}"] = tensor(start, "f32")
        for i in range(steps):
            grad = draw.standard_normal(shape) * (i >= int(name.split(".")[1]))
            grad[1] = 0
            tensors[f"grad:{name}@{i + 1}"] = tensor(grad, "f32")
    found = stepped(tmp_path, CASES, shapes, tensors, steps, batch=1)
    for name, one in found.items():
        assert np.isfinite(one.array()).all(), name
    for name in shapes:
        after = found[f"param:{name}"].array()
        assert (np.abs(after - start)[[0, 2]].max(axis=(1, 2)) > 1e-4).all(), name


def test_a_resumed_run_has_the_bits_of_one(tmp_path):
    names = random.Random(SEED).sample(sorted(CASES), 8)
    shapes = {f"{name}.w": (6, 9) for name in names}
    draw, tensors = np.random.default_rng(1), given_logits(shapes)
    for name, shape in shapes.items():
        tensors[f"param:{name}"] = tensor(draw.standard_normal(shape), "f32")
        tensors |= {f"grad:{name}@{i + 1}": tensor(draw.standard_normal(shape), "f32") for i in range(6)}
    whole = stepped(tmp_path / "whole", names, shapes, tensors, 6)
    half = stepped(tmp_path / "half", names, shapes, {name: one for name, one in tensors.items() if name[-1] not in "456" or "@" not in name}, 3)
    rest = {name: one for name, one in half.items() if not name.startswith("metric:")} | given_logits(shapes)
    rest |= {f"{name[:-1]}{int(name[-1]) - 3}": one for name, one in tensors.items() if "@" in name and name[-1] in "456"}
    found = stepped(tmp_path / "rest", names, shapes, rest, 3)
    different = [name for name, one in whole.items() if one.data != found[name].data]
    assert not different, f"STEPC_SEED={SEED} {names}: {different}"


def test_placements_do_not_change_bits(tmp_path):
    names = random.Random(SEED).sample(sorted(set(CASES) - {"AdEMAMix_warmup", *CLIPPED}), 5)
    text = spec(names)
    every = bucketed(manifest(names, PLACEMENTS))
    tensors = inputs(every)
    found, _ = step(tmp_path, text, every, tensors, steps=2)
    for each in every["parameters"]:
        each |= {"mesh": "one", "placements": ["R"]}
    every |= {"meshes": [ONE]}
    every.pop("buckets", None)
    alone, _ = step(tmp_path, text, every, tensors, steps=2)
    different = [name for name in alone if alone[name].data != found[name].data]
    assert not different, f"STEPC_SEED={SEED} {names}: {different}"


# --- torch's own ---


def twins():
    torch.manual_seed(0)
    shapes = {"square": (24, 24), "wide": (8, 40), "tall": (40, 8)}
    model = nn.ParameterDict({name: nn.Parameter(torch.randn(shape)) for name, shape in shapes.items()})
    return model, nn.ParameterDict({name: nn.Parameter(p.detach().clone()) for name, p in model.items()})


def continued(make_torch, text, states):
    """Eight steps of torch, then eight of both: the largest difference, as a part of the path of these steps."""
    model, twin = twins()
    other = make_torch(twin.parameters())
    draw = torch.Generator().manual_seed(2)

    def gradients():
        for p, q in zip(model.values(), twin.values(), strict=True):
            p.grad = torch.randn(p.shape, generator=draw)
            q.grad = p.grad.clone()

    for _ in range(8):
        gradients()
        other.step()
    with torch.no_grad():
        for p, q in zip(model.values(), twin.values(), strict=True):
            p.copy_(q)
    start = [q.detach().clone() for q in twin.values()]
    optimizer = Optimizer(model.named_parameters(), text)
    # The states of torch by parameter, as those of a model with this one's parameters.
    same = make_torch(model.parameters())
    same.load_state_dict(other.state_dict())
    import_states(optimizer, [same], states, step=8)
    for _ in range(8):
        gradients()
        optimizer.step()
        other.step()
    return max(float((p - q).detach().norm() / (q - s).detach().norm()) for p, q, s in zip(model.values(), twin.values(), start, strict=True))


def test_a_run_of_torchs_adamw_continues():
    text = 'import "stepc/torch_adamw.optim"\nroute {\n  TorchAdamW(lr = 2e-3, weight_decay = 0.1) for rest\n}\n'
    far = continued(lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.1, foreach=False), text, {"TorchAdamW": {"m": "exp_avg", "v": "exp_avg_sq"}})
    assert far < 1e-5  # a rounding of 6e-8 of numbers around 1, over a path of about 0.016 for each of them


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize(("rule", "adjust"), [("TorchMuon", "original"), ("TorchMuonMatchRms", "match_rms_adamw")])
def test_a_run_of_torchs_muon_continues(rule, adjust, nesterov):
    text = f'import "stepc/torch_muon.optim"\nroute {{\n  {rule}(lr = 2e-3, nesterov = {int(nesterov)}) for rest\n}}\n'
    far = continued(lambda p: torch.optim.Muon(p, lr=2e-3, nesterov=nesterov, adjust_lr_fn=adjust), text, {rule: {"m": "momentum_buffer"}})
    assert far < 4e-3  # what a rounding of bf16 is of a step


def test_the_table_of_the_docs_names_every_file():
    page = (ROOT / "docs" / "optimizers.md").read_text()
    listed = set(re.findall(r"^\| \[`stepc/(\w+)\.optim`\]", page, re.M))
    assert listed == {path.stem for path in LIBRARY.glob("*.optim")}
