"""Flat buckets and partial gradients: each way to keep them (ZeRO-0 to 3, hybrid, layer-wise) has the
bits of one rank.
"""

import json
import math
import re

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from test_lists import SPEC

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SHAPES = {"matrix.a": (16, 12), "matrix.b": (6, 10), "embed": (10, 4), "bias": (8,), "scalar": ()}
STEPS = 2
# Mesh, and the placements of parameters, gradients and states.
WAYS = {
    "ZeRO-0": ((4,), ["R"], ["P(avg)"], ["R"]),
    "ZeRO-1": ((4,), ["R"], ["P(avg)"], ["flat"]),
    "ZeRO-1, reduced by the trainer": ((4,), ["R"], ["R"], ["flat"]),
    "ZeRO-2": ((4,), ["R"], ["flat"], ["flat"]),
    "ZeRO-3": ((4,), ["flat"], ["flat"], ["flat"]),
    "ZeRO-3, reduced by the step": ((4,), ["flat"], ["P(sum)"], ["flat"]),
    "hybrid": ((2, 2), ["R", "flat"], ["R", "flat"], ["R", "flat"]),
    "hybrid, reduced by the step": ((2, 2), ["R", "flat"], ["P(avg)", "P(avg)"], ["R", "flat"]),
    "states over both axes": ((2, 2), ["R", "R"], ["P(sum)", "P(avg)"], ["flat", "flat"]),
    "beside tensor parallelism": ((2, 2), ["R", "S(0)"], ["P(avg)", "S(0)"], ["flat", "S(0)"]),
    "layer-wise": ((4,), ["R"], ["P(avg)"], ["owned(2)"]),
}


def fitting(placements, shape):
    """What shards no dimension of the shape is replicated."""
    return [p if not p.startswith("S") or shape else "R" for p in placements]


def local(shape, placements, sizes):
    ways = math.prod(size for p, size in zip(placements, sizes, strict=True) if p.startswith("S"))
    return math.prod((shape[0] // ways, *shape[1:])) if shape else 1


def copied(sizes, parameter, gradient, state, copy="", padding=3):
    """A mesh, all parameters on it, and one bucket that holds them, with padding between them and at its end;
    all names but the parameters' end with the copy's."""
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    mesh = {"name": f"m{copy}", "axes": axes, "ranks": list(range(math.prod(sizes)))}
    lists = {"placements": parameter, "grad_placements": gradient, "state_placements": state}
    parameters, members, end = [], [], 0
    for name, shape in SHAPES.items():
        own = {key: fitting(placements, shape) for key, placements in lists.items()}
        one = {"name": name + copy, "shape": list(shape), "dtype": "bf16", "grad_dtype": "f32", "mesh": mesh["name"]}
        parameters.append(one | own)
        members.append({"name": one["name"], "offset": end})
        end += local(shape, own["state_placements"], sizes) + padding
    flat = [size for p, size in zip(state, sizes, strict=True) if p == "flat"]
    ranks = math.prod(flat)
    bucket = {"name": f"all{copy}", "size": -(-end // (8 * ranks)) * 8 * ranks, "alignment": 8, "parameters": members}
    return {"meshes": [mesh], "parameters": parameters, "buckets": [bucket] if flat else []}


def together(copies):
    document = {
        key: [one for copy in copies for one in copy[key]] for key in ("meshes", "parameters", "buckets")
    }
    return {"version": 1} | {key: value for key, value in document.items() if value}


def document(sizes, parameter, gradient, state):
    return together([copied(sizes, parameter, gradient, state)])


def reduced(contributions, divisor):
    total = contributions[0]
    for one in contributions[1:]:
        total = (total + one).astype(np.float32)
    return total / np.float32(divisor)


def tensors(copies):
    """Of copies of all parameters, by name (how many contributions, their divisor, whether it takes them
    reduced). Those of as many contributions, divided alike, have the same values."""
    result = {}
    for copy, (count, divisor, whole) in copies.items():
        generator = np.random.default_rng(7)
        result |= {
            f"param:{name}{copy}": tensor(generator.normal(size=shape), "bf16")
            for name, shape in SHAPES.items()
        }
        for name, shape in SHAPES.items():
            for step in range(1, STEPS + 1):
                each = generator.normal(size=(count, *shape)).astype(np.float32)
                values = reduced(each, divisor) if whole else each if count > 1 else each[0]
                result[f"grad:{name}{copy}@{step}"] = tensor(values, "f32")
    return result


STRATEGIES = ("owner", "gather")


def contributions(way):
    """How many a gradient has, and what divides their sum."""
    sizes, _, gradient, _ = WAYS[way]
    count = math.prod(size for p, size in zip(gradient, sizes, strict=True) if p.startswith("P"))
    return count, math.prod(size for p, size in zip(gradient, sizes, strict=True) if p == "P(avg)")


def copy_of(way, strategy):
    return f".{list(WAYS).index(way)}.{strategy}"


def whole_copy(way):
    count, divisor = contributions(way)
    return f".whole.{count}.{divisor}"


def of_copy(tensors, copy):
    return {name.replace(copy, ""): one for name, one in tensors.items() if re.search(rf"{re.escape(copy)}(:|$)", name)}


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """What each copy has after the steps, and by the reference. Copies of all ways by each strategy, and
    whole ones on one rank, share what is compiled."""
    folder = tmp_path_factory.mktemp("buckets")
    spec, manifest, inputs = folder / "spec.optim", folder / "m.json", folder / "in.safetensors"
    spec.write_text(SPEC)
    made, given, options = [], {}, ["--waves", "4"]
    for way, (sizes, *lists) in WAYS.items():
        for strategy in STRATEGIES:
            copy = copy_of(way, strategy)
            made.append(copied(sizes, *lists, copy))
            given[copy] = *contributions(way), False
            options += ["--strategy", f"matrix*{copy}={strategy}"]
    for way in WAYS:
        if whole_copy(way) not in given:
            made.append(copied((1,), ["R"], ["R"], ["R"], whole_copy(way)))
            given[whole_copy(way)] = *contributions(way), True
    manifest.write_text(json.dumps(together(made)))
    save(inputs, tensors(given))
    found = run(spec, manifest, inputs, folder / "out.safetensors", *options, steps=STEPS)
    return found, run(spec, manifest, inputs, folder / "reference.safetensors", "--reference", steps=STEPS)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("way", WAYS)
def test_bits_do_not_depend_on_how_optimizer_states_are_kept(stepped, way, strategy):
    """The reference adds contributions up as the step does."""
    for result in stepped:
        expected = of_copy(result, whole_copy(way))
        assert {f"param:{name}" for name in SHAPES} < expected.keys()
        assert of_copy(result, copy_of(way, strategy)) == expected


CLIPPED = """optimizer R(lr, limit = 1, largest = 0.5) {
  state size : f32[]
  size = norm(grad)
  let own = grad * min(1, limit / max(norm(grad), 1e-12))
  param = param - lr * select(abs(grad) > largest, 0 * grad, own)
}
route { R(lr = 0.5) for "*" }
"""


REDUCED = pytest.mark.parametrize("parameter, gradient", [
    (["R", "R"], ["P(avg)", "R"]),
    (["R", "S(0)"], ["P(avg)", "S(0)"]),
    (["S(0)", "R"], ["P(avg)", "R"]),
])  # fmt: skip


def stepped_once(folder, rule, sizes, lists, grads):
    """What a rule makes of parameters of ones and these gradients, by name, on a mesh of such sizes."""
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    shape = next(iter(grads.values())).shape[-2:]
    parameters = [{"name": name, "shape": shape, "dtype": "f32", "mesh": "m", **lists} for name in grads]
    (folder / "spec.optim").write_text(rule)
    (folder / "m.json").write_text(
        json.dumps({"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": parameters})
    )
    save(folder / "in.safetensors", {f"param:{name}": tensor(np.ones(shape), "f32") for name in grads}
         | {f"grad:{name}": tensor(grad, "f32") for name, grad in grads.items()})  # fmt: skip
    return run(
        folder / "spec.optim", folder / "m.json", folder / "in.safetensors", folder / "out.safetensors"
    )


@REDUCED
def test_norms_and_conditions_see_the_reduced_gradient(tmp_path, parameter, gradient):
    """Of contributions neither the norm nor what is large is the average's; and a replica counts once."""
    each = np.random.default_rng(9).normal(size=(2, 6, 4)).astype(np.float32)
    average = reduced(each, 2)
    found = stepped_once(
        tmp_path, CLIPPED, (2, 2), {"placements": parameter, "grad_placements": gradient}, {"w": each}
    )
    assert found == stepped_once(tmp_path, CLIPPED, (1,), {"placements": ["R"]}, {"w": average})
    size = np.linalg.norm(average)
    assert np.allclose(found["state:w:size"].array(), size, rtol=1e-6)
    kept = np.where(abs(average) > 0.5, 0, average / size)
    assert 0 < np.count_nonzero(kept) < kept.size
    assert np.allclose(found["param:w"].array(), 1 - 0.5 * kept, rtol=1e-6)


GUARDED = """optimizer R(lr, momentum = 0.9) {
  state m : f32
  state skipped : f32[]
  let fine = sum(grad * 0) == 0
  m = select(fine, momentum * m + grad, m)
  param = select(fine, param - lr * m, param)
  skipped = skipped + select(fine, 0, 1)
}
route { R(lr = 0.5) for "*" }
"""


@REDUCED
def test_what_is_not_finite_is_found_in_the_reduced_gradient(tmp_path, parameter, gradient):
    """Each contribution is finite, and their sum is not: no rank changes that parameter, and all change
    the others.
    """
    grads = {
        name: np.random.default_rng(7).normal(size=(2, 6, 4)).astype(np.float32)
        for name in ("fine", "sum", "nan")
    }
    grads["sum"][:, 5, 3] = 3e38
    grads["nan"][1, 0, 2] = np.nan
    found = stepped_once(
        tmp_path, GUARDED, (2, 2), {"placements": parameter, "grad_placements": gradient}, grads
    )
    with np.errstate(over="ignore"):
        average = {name: reduced(each, 2) for name, each in grads.items()}
    assert found == stepped_once(tmp_path, GUARDED, (1,), {"placements": ["R"]}, average)
    for name in grads:
        fine = name == "fine"
        assert found[f"state:{name}:skipped"].array() == (0 if fine else 1)
        assert np.array_equal(found[f"state:{name}:m"].array(), average[name] if fine else np.zeros((6, 4)))
        assert np.allclose(found[f"param:{name}"].array(), 1 - 0.5 * average[name] if fine else 1, rtol=1e-6)


def test_blocks_are_computed_where_their_states_are(tmp_path):
    """Layer-wise: each matrix has an owner, to whom contributions go, and who gives the new parameter to
    all.
    """
    (tmp_path / "spec.optim").write_text(SPEC)
    (tmp_path / "m.json").write_text(json.dumps(document(*WAYS["layer-wise"])))
    text = stepc("explain", tmp_path / "spec.optim", "-m", tmp_path / "m.json", "--strategy", "matrix*=local")
    rows = [line.split() for line in text.splitlines() if " local " in line and "* local" in line]
    # Of 16 × 12 numbers of f32 each of three ranks sends all to the owner, who sends three times as many of
    # bf16.
    assert ["768", "B–1.12", "KiB"] == rows[0][3:6]


def test_contributions_of_another_number_are_refused(tmp_path):
    (tmp_path / "spec.optim").write_text(SPEC)
    (tmp_path / "m.json").write_text(json.dumps(document(*WAYS["ZeRO-1"])))
    tensors = {f"param:{name}": tensor(np.ones(shape), "bf16") for name, shape in SHAPES.items()}
    tensors |= {f"grad:{name}": tensor(np.ones((3, *shape)), "f32") for name, shape in SHAPES.items()}
    save(tmp_path / "in.safetensors", tensors)
    with pytest.raises(CompilerFailed) as failed:
        run(tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors", tmp_path / "out.safetensors")
    expected = (
        "expected the manifest's shape [8] for each of 4 contributions, [4, 8], in 'grad:bias', found [3, 8]"
    )
    assert expected in str(failed.value)
