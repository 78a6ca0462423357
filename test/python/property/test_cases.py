"""The manifests of examples/cases step to the bits of a single rank, by the strategies that stepc chooses and by each that
can be forced."""

import json
import math
import re

import numpy as np
import pytest
from compiler import ROOT, STEPC, CompilerFailed, run, save, stepc, tensor
from test_bits import differences
from test_buckets import reduced

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

CASES = sorted((ROOT / "examples" / "cases").glob("*.json"))
SPEC = ROOT / "examples" / "muon.optim"
OPTIONS = ("--if-present", "*embed*", "--if-present", "lm_head*")
FORCED = ("owner", "gather")
STEPS = 2


def copies(document):
    """The case with the strategies that stepc chooses, with each forced one, and whole on one rank: a library for all."""
    alone = {"name": "alone", "axes": [{"name": "alone", "size": 1}], "ranks": [0]}
    own = document["parameters"]
    parameters = [one | {"name": f"{copy}.{one['name']}"} for copy in ("chosen", *FORCED) for one in own]
    for one in own:
        kept = {key: value for key, value in one.items() if key not in ("grad_placements", "state_placements")}
        parameters.append(kept | {"name": f"whole.{one['name']}", "mesh": "alone", "placements": ["R"]})
    buckets = [{**bucket, "name": f"{copy}.{bucket['name']}",
                "parameters": [one | {"name": f"{copy}.{one['name']}"} for one in bucket["parameters"]]}
               for copy in ("chosen", *FORCED) for bucket in document.get("buckets", [])]  # fmt: skip
    more = {"buckets": buckets} if buckets else {}
    return document | {"meshes": [*document["meshes"], alone], "parameters": parameters} | more


def contributions(one, document):
    """How many a gradient has, and what divides their sum."""
    sizes = next([axis["size"] for axis in mesh["axes"]] for mesh in document["meshes"] if mesh["name"] == one["mesh"])
    axes = list(zip(one.get("grad_placements", one["placements"]), sizes, strict=True))
    return (math.prod(size for p, size in axes if p.startswith("P")), math.prod(size for p, size in axes if p == "P(avg)"))


def tensors(document):
    result = {}
    copied = {one["name"].split(".", 1)[1]: one for one in document["parameters"] if one["mesh"] != "alone"}
    for one in document["parameters"]:
        copy, name = one["name"].split(".", 1)
        generator = np.random.default_rng(list(name.encode()))  # the same for all copies
        result[f"param:{copy}.{name}"] = tensor(generator.normal(size=one["shape"]), one["dtype"])
        count, divisor = contributions(copied[name], document)
        dtype = one.get("grad_dtype", one["dtype"])
        for step in range(1, STEPS + 1):
            each = generator.normal(size=(count, *one["shape"])).astype(np.float32)
            whole = count == 1 or copy == "whole"
            result[f"grad:{copy}.{name}@{step}"] = tensor(reduced(each, divisor) if whole else each, dtype)
    return result


def step(document, inputs, folder):
    """What each copy has after the steps, under the case's names."""
    (folder / "copies.json").write_text(json.dumps(document))
    save(folder / "in.safetensors", inputs)
    forces = [option for name in FORCED for option in ("--strategy", f"{name}.*={name}")]
    result = {}
    for key, one in run(SPEC, folder / "copies.json", folder / "in.safetensors", folder / "out.safetensors", *OPTIONS,
                        *forces, steps=STEPS).items():  # fmt: skip
        role, copy, name = re.match(r"(\w+):(\w+)\.(.*)", key).groups()
        result.setdefault(copy, {})[f"{role}:{name}"] = one
    return result


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_cases_have_the_bits_of_one_rank(case, tmp_path):
    document = json.loads(case.read_text())
    every = copies(document)
    found = step(every, tensors(every), tmp_path)
    whole = found.pop("whole")
    assert {f"param:{one['name']}" for one in document["parameters"]} < whole.keys()
    assert list(found) == ["chosen", *FORCED]
    for copy, values in found.items():
        assert not differences(values, whole), copy


def test_a_single_fault_is_seen(tmp_path):
    """The comparison fails where one element of one gradient differs."""
    every = copies(json.loads(CASES[0].read_text()))
    inputs = tensors(every)
    name = next(name for name in inputs if name.startswith("grad:owner.layers"))
    values = inputs[name].array()
    values.flat[-1] += 1
    found = step(every, inputs | {name: tensor(values, "bf16")}, tmp_path)
    assert [copy for copy in found if differences(found[copy], found["whole"])] == ["owner"]


def test_local_is_refused_where_blocks_span_ranks(tmp_path):
    case = ROOT / "examples" / "cases" / "pytorch_157216.json"
    with pytest.raises(CompilerFailed, match="local"):
        stepc("explain", SPEC, "-m", case, *OPTIONS, "--strategy", "*.w1=local")
