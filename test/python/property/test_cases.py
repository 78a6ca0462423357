"""The manifests of examples/cases step to the bits of a single rank: by the strategies that stepc chooses, by
each one where it is legal, and in the way that xtuner takes there."""

import json
import math
import re
import sys

import numpy as np
import pytest
from cells import CLUSTER, ELEMENTWISE
from compiler import ROOT, STEPC, CompilerFailed, run, save, stepc, tensor
from test_bits import differences
from test_buckets import reduced

sys.path.append(str(ROOT / "benchmarks"))  # behind: its models.py is another one
import ways  # noqa: E402

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

CASES = sorted((ROOT / "examples" / "cases").glob("*.json"))
SPEC = ROOT / "examples" / "muon.optim"
OPTIONS = ("--if-present", "*embed*", "--if-present", "lm_head*", "--cluster", CLUSTER)
CHOSEN, XTUNER, WHOLE = "chosen", "xtuner", "whole"
STEPS = 2
SEAL = 32  # bytes behind the values of each message


def forced(case):
    """By copy of the case: (a parameter, the strategy that it is forced to)."""
    report = json.loads(stepc("explain", "--json", SPEC, "-m", case, *OPTIONS))
    legal = {}  # a divided parameter stands in several groups
    for group in report["groups"]:
        found = {one["strategy"] for one in group["strategies"] if one["legal"]}
        for name in group["parameters"]:
            legal[name] = legal.get(name, found) & found
    names = {strategy for found in legal.values() for strategy in found} - {ELEMENTWISE}
    assert {"owner", "gather"} <= names
    copies = {
        strategy: [(name, strategy) for name, found in legal.items() if strategy in found]
        for strategy in sorted(names)
    }
    if case.stem in ways.WAYS:
        words = ways.force(ways.read(case.stem), ways.WAYS[case.stem][1])
        copies[XTUNER] = [tuple(word.split("=")) for word in words if word != "--strategy"]
    return {CHOSEN: [], **copies}


def copies(document, names, whole=WHOLE):
    """The case once for each name, on meshes of its own, and whole on one rank: a library for all."""
    alone = {"name": "alone", "axes": [{"name": "alone", "size": 1}], "ranks": [0]}
    meshes, parameters, buckets = [], [], []
    for copy in names:
        meshes += [mesh | {"name": f"{copy}.{mesh['name']}"} for mesh in document["meshes"]]
        parameters += [
            one | {"name": f"{copy}.{one['name']}", "mesh": f"{copy}.{one['mesh']}"}
            for one in document["parameters"]
        ]
        buckets += [bucket | {"name": f"{copy}.{bucket['name']}",
                              "parameters": [one | {"name": f"{copy}.{one['name']}"} for one in bucket["parameters"]]}
                    for bucket in document.get("buckets", [])]  # fmt: skip
    for one in document["parameters"]:
        kept = {
            key: value for key, value in one.items() if key not in ("grad_placements", "state_placements")
        }
        parameters.append(kept | {"name": f"{whole}.{one['name']}", "mesh": "alone", "placements": ["R"]})
    more = {"buckets": buckets} if buckets else {}
    return document | {"meshes": [*meshes, alone], "parameters": parameters} | more


def contributions(one, document):
    """How many a gradient has, and what divides their sum."""
    sizes = next(
        [axis["size"] for axis in mesh["axes"]] for mesh in document["meshes"] if mesh["name"] == one["mesh"]
    )
    axes = list(zip(one.get("grad_placements", one["placements"]), sizes, strict=True))
    return (
        math.prod(size for p, size in axes if p.startswith("P")),
        math.prod(size for p, size in axes if p == "P(avg)"),
    )


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
            whole = count == 1 or one["mesh"] == "alone"
            result[f"grad:{copy}.{name}@{step}"] = tensor(reduced(each, divisor) if whole else each, dtype)
    return result


def step(document, inputs, forces, folder):
    """What each copy has after the steps, under the case's names."""
    (folder / "copies.json").write_text(json.dumps(document))
    save(folder / "in.safetensors", inputs)
    options = [word for copy, pairs in forces.items() for name, strategy in pairs
               for word in ("--strategy", f"{copy}.{name}={strategy}")]  # fmt: skip
    result = {}
    for key, one in run(SPEC, folder / "copies.json", folder / "in.safetensors", folder / "out.safetensors", *OPTIONS,
                        *options, steps=STEPS).items():  # fmt: skip
        role, copy, name = re.match(r"(\w+):([\w-]+)\.(.*)", key).groups()
        result.setdefault(copy, {})[f"{role}:{name}"] = one
    return result


def of_case(case, copy):
    return f"{copy}-{case.stem}"


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """What each copy of each case has, and the copies' names by case: all share what is compiled."""
    documents, inputs, forces, names = [], {}, {}, {}
    for case in CASES:
        own = {of_case(case, copy): pairs for copy, pairs in forced(case).items()}
        documents.append(copies(json.loads(case.read_text()), own, of_case(case, WHOLE)))
        inputs |= tensors(documents[-1])
        forces |= own
        names[case] = list(own)
    # the one of one rank once
    meshes = {
        mesh["name"]: mesh for document in documents for mesh in document["meshes"]
    }
    every = {
        key: [one for document in documents for one in document.get(key, ())]
        for key in ("parameters", "buckets")
    }
    every |= {"version": 1, "meshes": list(meshes.values())}
    return step(every, inputs, forces, tmp_path_factory.mktemp("cases")), names


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_cases_have_the_bits_of_one_rank(case, stepped):
    found, names = stepped
    whole = found[of_case(case, WHOLE)]
    assert {f"param:{one['name']}" for one in json.loads(case.read_text())["parameters"]} < whole.keys()
    assert len(names[case]) > 2
    for copy in names[case]:
        assert not differences(found[copy], whole), copy


def test_each_way_of_xtuner_has_a_case():
    assert {*ways.WAYS} <= {case.stem for case in CASES}


def test_padding_is_sent_beside_what_there_is():
    """Seven matrices of 18 rows become eight of 20 on four ranks, of which each sends three quarters to
    others and back.
    """
    document = ways.padded(ways.read("xtuner_remainder_uneven"))
    assert [tuple(one["shape"]) for one in document["parameters"] if ways.is_matrix(one)] == [(20, 12)] * 8
    found = ways.simulate(STEPC, document, "h100", ways.force(document, "owner"))
    sent = sum(rank["bytes_sent"] - SEAL * rank["messages_sent"] for rank in found["ranks"])
    assert sent == 2 * 8 * 20 * 12 * 2 * 3 // 4
    for case in ("xtuner_neither_divides", "experts_ep_uneven"):
        before, document = ways.read(case), ways.padded(ways.read(case))
        ranks = ways.ranks_of(document)
        for small, large in zip(before["parameters"], document["parameters"], strict=True):
            if "experts" in small["name"]:
                assert large["shape"][0] * 6 == small["shape"][0] * 8 and 8 % ranks == 0


def test_a_single_fault_is_seen(tmp_path):
    """The comparison fails where one element of one gradient differs."""
    forces = forced(CASES[0])
    every = copies(json.loads(CASES[0].read_text()), forces)
    inputs = tensors(every)
    name = next(name for name in inputs if name.startswith("grad:owner.layers"))
    values = inputs[name].array()
    values.flat[-1] += 1
    found = step(every, inputs | {name: tensor(values, "bf16")}, forces, tmp_path)
    assert [copy for copy in found if differences(found[copy], found[WHOLE])] == ["owner"]


def test_local_is_refused_where_blocks_span_ranks(tmp_path):
    case = ROOT / "examples" / "cases" / "pytorch_157216.json"
    with pytest.raises(CompilerFailed, match="local"):
        stepc("explain", SPEC, "-m", case, *OPTIONS, "--strategy", "*.w1=local")
