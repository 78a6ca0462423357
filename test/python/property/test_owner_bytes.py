"""What `owner` makes travel, counted element by element from the placements: what is not at a block's owner
goes there once, and the result goes once to each rank that holds a part and lacks it. Contributions to
partial gradients, moves between lists and further hops are counted apart, by `stepc explain` and `stepc
simulate` alike.

STEPC_SEED repeats a run (its value is printed), STEPC_OWNER_BYTES makes it longer.
"""

import itertools
import json
import os
import random
import re
import subprocess
from collections import Counter

import numpy as np
import pytest
from compiler import STEPC
from random_layouts import Mesh, can_be, parse
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
CASES = int(os.environ.get("STEPC_OWNER_BYTES") or draws(10))
SPEC = """
optimizer Sign(lr) {
  state m : f32
  m = 0.9 * m + grad
  param = param - lr * orthogonalize(m, steps = 1, coefficients = simple, precision = bf16)
}
route { Sign(lr = 1) for matrix }
"""
TRAVELLING = 2  # bytes of bf16, which is what orthogonalize takes and gives
GRADIENT = 4
SEAL = 32  # of each message
KINDS = ("_S", "IS", "owned", "flat", "S")
NODES = json.dumps({"levels": [{"name": "node", "ranks": 2, "gb_per_s": 9, "latency_us": 1},
                               {"name": "network", "gb_per_s": 1, "latency_us": 9}]})  # fmt: skip
GROUP = re.compile(r"optim\.group @(\S+) .*parameters \[([^]]*)\].*base \[([^]]*)\]")


def stepc(*words):
    done = subprocess.run(
        [str(word) for word in (STEPC, *words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"STEPC_SEED={SEED}\n{done.stderr}"
    return done.stdout


def held(shape, sizes, placements):
    """Of each rank the elements that it holds, by their numbers; chunks as torch.chunk cuts them. Of stripes,
    and of the pieces of `_S`, which are even here, a rank has its chunk of each; a range is cut from what the
    other axes leave."""
    result = []
    for coordinates in itertools.product(*map(range, sizes)):
        part = np.arange(np.prod(shape)).reshape(shape)
        for size, at, placement in zip(sizes, coordinates, placements, strict=True):
            kind, numbers = parse(placement)
            if kind in ("S", "_S", "IS"):
                dim, stripes = numbers if len(numbers) == 2 else (numbers[0], 1)
                whole = part.shape[dim] // stripes
                step = -(-whole // size)
                inside = range(min(at * step, whole), min((at + 1) * step, whole))
                part = part.take(
                    [stripe * whole + one for stripe in range(stripes) for one in inside], axis=dim
                )
            elif kind == "owned" and at != numbers[0]:
                part = part[:0]
        for at, (kind, numbers) in zip(coordinates, map(parse, placements), strict=True):
            part = part.ravel()[numbers[at] : numbers[at + 1]] if kind == "flat" else part
        result.append(set(part.ravel().tolist()))
    return result


def document(sizes, parameters):
    axes = [{"name": f"a{i}", "size": size} for i, size in enumerate(sizes)]
    return {"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": parameters}


def draw_even(source, kind):
    """Placements of all kinds, of this one in any case, on dimensions that every axis divides: matrices,
    or experts.
    """
    sizes = source.choice(([4], [2, 2], [2, 3], [3, 2], [2, 2, 2])[kind == "_S" :])
    kinds = ["R", "S(0)", "S(1)", "IS(0, 2)", "IS(1, 3)", f"owned({source.randrange(2)})", "flat"]
    parameters = []
    for index in range(source.randint(1, 3)):
        shape = [*([4] if source.random() < 0.3 else []), source.choice((24, 48)), 24]
        while True:
            placements = [source.choice(kinds) for _ in sizes]
            if len(sizes) > 1 and source.random() < (1 if kind == "_S" else 0.3):  # over a later axis that cuts the same dimension
                placements[-2:] = [f"_S({len(shape) - 2}, {sizes[-1]})", f"S({len(shape) - 2})"]
                placements[:-2] = ["R"] * (len(sizes) - 2)
            found = [parse(one)[0] for one in placements]
            if "flat" in found and "owned" in found or found.count("flat") > 1 or index == 0 and kind not in found:
                continue
            if can_be(shape, Mesh("m", tuple(sizes), []), placements):
                break
        if "flat" in placements:  # any ranges, some of them empty, of what the other axes leave
            axis = placements.index("flat")
            left = len(held(shape, sizes, [*placements[:axis], "R", *placements[axis + 1 :]])[0])
            cuts = sorted(source.randint(0, left) for _ in range(sizes[axis] - 1))
            placements[axis] = f"flat({', '.join(map(str, [0, *cuts, left]))})"
        parameters.append({"name": f"w{index}", "shape": shape, "dtype": "f32", "mesh": "m", "placements": placements}
                          | ({"batch_axes": 1} if len(shape) == 3 else {}))  # fmt: skip
    return sizes, document(sizes, parameters)


def draw(source, partial):
    """A manifest of matrices and experts, sharded, replicated and with partial gradients, if only where
    that is asked for.
    """
    sizes = source.choice(([4], [2, 2], [2, 3], [3, 2], [2, 2, 2]))
    parameters = []
    for number in range(source.randint(1, 3)):
        experts = source.random() < 0.4
        shape = [*([source.randint(2, 5)] if experts else []), source.randint(3, 20), source.randint(3, 20)]
        while True:
            placements = [source.choice(["R", "S(0)", "S(1)"]) for _ in sizes]
            placements[0] = "R" if partial else placements[0]
            if can_be(shape, Mesh("m", tuple(sizes), []), placements):
                break
        gradients = [
            source.choice(["R", "P(sum)"]) if placement == "R" else placement for placement in placements
        ]
        gradients[0] = "P(sum)" if partial else gradients[0]
        parameters += [
            {"name": f"w{number}.{i}", "shape": shape, "dtype": "f32", "mesh": "m", "placements": placements}
            | ({"grad_placements": gradients} if gradients != placements else {})
            | ({"batch_axes": 1} if experts else {})
            for i in range(source.randint(1, 3))
        ]
    return sizes, document(sizes, parameters)


def expected(sizes, parameters, bases):
    """Bytes that all ranks send for a group, of each kind."""
    sent = Counter()
    bases = iter(bases)
    for parameter in parameters:
        shape, ranks = parameter["shape"], held(parameter["shape"], sizes, parameter["placements"])
        block = shape[-1] * shape[-2]
        for first in range(0, int(np.prod(shape)), block):
            elements, owner = set(range(first, first + block)), next(bases)
            sent["there"] += TRAVELLING * len(elements - ranks[owner])
            sent["back"] += TRAVELLING * sum(
                len(elements & has) for rank, has in enumerate(ranks) if rank != owner
            )
        partial = int(np.prod([size for size, placement in zip(sizes, parameter.get("grad_placements", []), strict=False)
                               if placement.startswith("P")]))  # fmt: skip
        # Of ranks that have contributions to the same elements each adds up a part: to it come those of the
        # others, and from it the sums go to them.
        elements = sum(map(len, ranks)) // partial
        sent["contributions"] += GRADIENT * (partial - 1) * elements
        sent["lists"] += GRADIENT * (partial - 1) * elements
    return sent


def test_owner_sends_everything_once(tmp_path, capsys):
    histogram = Counter()
    for index in range(CASES):
        source = random.Random(f"{SEED}-{index}")
        sizes, manifest = draw_even(source, KINDS[index // 2 % len(KINDS)]) if index % 2 else draw(source, partial=index == 0)
        histogram.update(
            parse(placement)[0] for one in manifest["parameters"] for placement in one["placements"]
        )
        (tmp_path / "m.json").write_text(json.dumps(manifest))
        (tmp_path / "s.optim").write_text(SPEC)
        program = [tmp_path / "s.optim", "--manifest", tmp_path / "m.json", "--strategy", "*=owner"]
        groups = {name: (re.findall(r'@"?([^",\s]+)"?', names), map(int, bases.split(",")))
                  for name, names, bases in GROUP.findall(stepc("compile", *program, "--emit", "decided", "-o", "-"))}  # fmt: skip
        by_name = {parameter["name"]: parameter for parameter in manifest["parameters"]}
        explained = json.loads(stepc("explain", *program, "--json"))["groups"]
        simulated = json.loads(stepc("simulate", *program, "--json", "-"))["groups"]
        assert len(groups) == len(explained) == len(simulated)
        for one, other in zip(explained, simulated, strict=True):
            names, bases = groups[one["name"]]
            wanted = expected(sizes, [by_name[name] for name in names], bases)
            found = one["bytes_sent_for"]
            assert found == other["bytes_sent_for"], f"STEPC_SEED={SEED}"
            assert found == {key: wanted[key] for key in found}, (
                f"STEPC_SEED={SEED}: case {index}, {one['name']}"
            )
            histogram.update({key: count > 0 for key, count in wanted.items()})
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(histogram)}")
    assert all(histogram[kind] > 0 for kind in KINDS)
    assert histogram["there"] > 0 and histogram["back"] > 0 and histogram["contributions"] > 0


def test_other_moves_are_counted_apart(tmp_path):
    """Further hops, moves between lists and sums of slabs, and nothing twice: in all what is sent on all
    links.
    """
    (tmp_path / "s.optim").write_text(SPEC)
    cases = {
        "further_hops": ({}, ["--strategy", "*=hierarchical", "--cluster", NODES]),
        "lists": ({"grad_placements": ["S(1)"]}, []),
        "contributions": ({"placements": ["R"], "grad_placements": ["P(sum)"]}, []),
        "sums": ({}, ["--numerics=fast", "--strategy", "*=slabs"]),
    }
    for kind, (keys, options) in cases.items():
        parameters = [
            {"name": f"w{i}", "shape": [16, 8], "dtype": "f32", "mesh": "m", "placements": ["S(0)"]} | keys
            for i in range(5)
        ]
        mesh = {"name": "m", "axes": [{"name": "dp", "size": 4}]}
        (tmp_path / "m.json").write_text(
            json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters})
        )
        program = [tmp_path / "s.optim", "--manifest", tmp_path / "m.json", *options]
        step = json.loads(stepc("simulate", *program, "--json", "-"))
        [group] = step["groups"]
        assert group["bytes_sent_for"][kind] > 0, kind
        sent = sum(rank["bytes_sent"] - SEAL * rank["messages_sent"] for rank in step["ranks"])
        assert sum(group["bytes_sent_for"].values()) == sum(group["bytes_sent"]) == sent
        title = "Bytes that all ranks send, by what they are sent for"
        assert title in stepc("simulate", *program) and title in stepc("explain", *program)
