"""Models in single cases: buckets, the reference, absent gradients, values that are not finite, going on, errors, and the
bytes that clipping adds.
"""

import json
import math
import random
import re

import numpy as np
import pytest
from cases import Case
from compiler import STEPC, CompilerFailed, Tensor, run, save, stepc, tensor
from random_layouts import Mesh, random_layout, random_meshes
from test_buckets import SHAPES, WAYS, contributions, document
from test_buckets import tensors as bucket_tensors
from test_model import COUNTING, KINDS, POLAR, SEED, Number, different, named_rule, reduced
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")


CLIP = """model(max_norm = 1) {
  let total = norm(grad)
  grad = min(1, max_norm / (total + 1e-6)) * grad
}
"""
SGD = """optimizer Sgd(lr) {
  state z0 : f32[]
  z0 = model.total
  param = param - lr * grad
}
"""


def route(setting=""):
    return f"route {{\n  Sgd(lr = 0.5{setting}) for rest\n}}\n"


def parameter(name, shape, mesh="mesh", placements=("S(0)",), **more):
    return {
        "name": name,
        "shape": list(shape),
        "dtype": "f32",
        "mesh": mesh,
        "placements": list(placements),
        **more,
    }


def write(folder, spec, meshes, parameters, tensors):
    """The files of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "s.optim").write_text(spec)
    document = {"version": 1, "meshes": [mesh.json() for mesh in meshes], "parameters": parameters}
    (folder / "m.json").write_text(json.dumps(document))
    save(folder / "in", tensors)
    return folder / "s.optim", folder / "m.json", folder / "in", folder / "out"


THREE = [Mesh("mesh", (3,), [0, 1, 2])]
PAIR = [parameter("a", (5, 4)), parameter("b", (7,), placements=["R"])]


def normal(draw, names_and_shapes, steps=("",)):
    """Parameters and gradients of f32."""
    tensors = {
        f"param:{name}": tensor(draw.standard_normal(shape), "f32")
        for name, shape in names_and_shapes.items()
    }
    return tensors | {f"grad:{name}{step}": tensor(draw.standard_normal(shape), "f32")
                      for name, shape in names_and_shapes.items() for step in steps}  # fmt: skip


def drawn(draw, parameters):
    """The parameters' own values, each in its dtype."""
    return {
        f"param:{each['name']}": tensor(draw.standard_normal(each["shape"]), each["dtype"]) for each in parameters
    }


def pair(steps=("",)):
    return normal(np.random.default_rng(int(SEED)), {"a": (5, 4), "b": (7,)}, steps)


def totals(found):
    """What each parameter read of the model, as a set of f32."""
    return {np.frombuffer(each.data, np.float32)[0] for name, each in found.items() if name.endswith(":z0")}


ON_BUCKETS = f"""optimizer Muon(lr = 0.5) {{
  state m : f32
  state z0 : f32[]
  m = 0.9 * m + grad
  z0 = model.total
  param = param - lr * orthogonalize(m, {POLAR})
}}
optimizer Adam(lr = 0.5) {{
  master : f32
  state m : f32
  state z0 : f32[]
  m = lerp(m, grad, 0.1)
  z0 = model.total
  param = param - lr * m
}}
route {{
  Muon() for "matrix*"
  Adam() for rest
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_keep_an_optimizer_clips_alike(tmp_path, way):
    """Flat buckets, owners and partial gradients, with padding that counts nowhere."""
    (tmp_path / "s.optim").write_text(CLIP + ON_BUCKETS)
    for name, layout in (("many", WAYS[way]), ("one", ((1,), ["R"], ["R"], ["R"]))):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(*layout)))
    count, divisor = contributions(way)
    save(tmp_path / "many.in", bucket_tensors({"": (count, divisor, False)}))
    alone = bucket_tensors({"": (count, divisor, True)})
    save(tmp_path / "one.in", alone)
    found = {name: run(tmp_path / "s.optim", tmp_path / f"{name}.json", tmp_path / f"{name}.in", tmp_path / name,
                       "--target", "interpret", steps=2) for name in ("many", "one")}  # fmt: skip
    assert not different(found["many"], found["one"])
    expected = reduced("norm", [alone[f"grad:{name}@2"].array() for name in SHAPES])
    assert totals(found["many"]) == {expected}


REFERENCE_MODEL = """model(max_norm = 1) {
  let total = norm(grad)
  let most = max(abs(grad) / total)
  let center = mean(grad)
  let spread = rms(grad - center)
  let both = sum(grad * param)
  let warm = min(1, step / 3)
  grad = warm * min(1, max_norm / (total + 1e-6)) * grad
}
"""


def test_steps_are_what_the_reference_computes(tmp_path):
    """In f32, over three steps."""
    chosen, draw = random.Random(f"reference {SEED}"), np.random.default_rng(int(SEED))
    numbers = [
        Number(name, "", None) for name in ("total", "most", "center", "spread", "both", "warm", "max_norm")
    ]
    rules = [named_rule(name, numbers) for name in ("Plain", "Sgd", "Adam", "Muon", "Lines")]
    for index in range(draws(4)):
        mesh = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4))))
        parameters, shapes = [], {}
        for rule in rules:
            layout = random_layout(chosen, mesh, rule, False, whole=False)
            shapes[f"{rule.name}.w"] = layout.shape
            one_case = Case(f"{rule.name}.w", rule, layout, "f32", "f32", "", False)
            parameters.append(one_case.json())
        claims = "".join(f'  {rule.name}() for "{rule.name}.*"\n' for rule in rules)
        spec = REFERENCE_MODEL + "".join(rule.text for rule in rules) + f"route {{\n{claims}}}\n"
        tensors = normal(draw, shapes, ("@1", "@2", "@3"))
        files = write(tmp_path / str(index), spec, [mesh], parameters, tensors)
        hyper = f"--hyper=model.max_norm={chosen.choice((0.5, 5.0, 500.0))}"
        found = run(*files, "--target", "interpret", hyper, steps=3)
        reference = run(*files, "--reference", hyper, steps=3)
        assert found.keys() == reference.keys() and "state:model:step" in found
        for name, each in reference.items():
            a, b = found[name].array(), each.array()
            number = re.search(r":z(\d)$", name)
            # A sum whose terms cancel is as exact as its terms are: `both` adds products of standard normals.
            size = math.sqrt(sum(math.prod(shape) for shape in shapes.values()))
            usual = 1 if not number else size if numbers[int(number[1])].name == "both" else 1e-5
            far = np.abs(a - b) / (usual + np.abs(b))
            limit = 1e-5 if number else 1e-4
            assert far.max() <= limit, f"STEPC_SEED={SEED} {index}: {name} is {a}, by the reference {b}"


@pytest.mark.parametrize("kind", ["norm", "sum", "max"])
@pytest.mark.parametrize("missing", ["skip", "zero"])
def test_absent_gradients_are_left_out_or_count_as_zero(tmp_path, kind, missing):
    """All present gradients are negative, so that a zero would be their maximum."""
    spec = f"model() {{\n  let total = {kind}(grad)\n}}\n" + SGD + route(f", missing_grad = {missing}")
    tensors = {
        name: each if name.startswith("param") else tensor(-abs(each.array()), "f32")
        for name, each in pair().items()
    }
    present = tensors["grad:a"].array()
    del tensors["grad:b"]
    expected = reduced(kind, [present] if missing == "skip" else [present, np.zeros(7)])
    found = run(*write(tmp_path, spec, THREE, PAIR, tensors))
    assert np.frombuffer(found["state:a:z0"].data, np.float32) == expected
    assert found["state:b:z0"].array() == (0 if missing == "skip" else expected)
    assert found["state:b:step"].array() == (missing == "zero")
    assert found["param:b"] == tensors["param:b"]


@pytest.mark.parametrize("target", ["cpu", "interpret", "emulated:sm_80"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_and_a_rule_reduce_alike(tmp_path, kind, target):
    """Parts of a number of the model and parts of a value of each block are equal terms in other tables."""
    spec = f"""model() {{
  let all = {kind}(grad)
}}
optimizer Sgd(lr) {{
  state z0 : f32[]
  state z1 : f32[]
  z0 = model.all
  z1 = {kind}(grad)
  param = param - lr * grad
}}
""" + route()
    parameters = [parameter("a", (50, 40))]
    tensors = normal(np.random.default_rng(int(SEED)), {"a": (50, 40)})
    found = run(*write(tmp_path, spec, THREE, parameters, tensors), "--target", target)
    assert found["state:a:z0"].data == found["state:a:z1"].data


@pytest.mark.parametrize("strategy", ["owner", "gather"])
def test_states_of_scalars_beside_operations_on_whole_matrices(tmp_path, strategy):
    """Stages that write them come before what reads their old and their new values."""
    spec = f"""optimizer Counts(lr) {{
  state n : f32[] = 2
  state w : f32[rows]
  state m : f32
  let old = n
  let o = orthogonalize(grad + n * param, {POLAR})
  n = n + lr
  w = 0.5 * w + n
  m = 0.5 * m + n * o
  param = param - lr * m * old / (n + w)
}}
route {{
  Counts(lr = 0.5) for rest
}}
"""
    steps = ("@1", "@2", "@3")
    tensors = normal(np.random.default_rng(int(SEED)), {"a": (6, 10), "b": (12, 7)}, steps)
    parameters = [parameter("a", (6, 10)), parameter("b", (12, 7), placements=["S(1)"])]
    found = [
        run(*write(tmp_path / str(len(mesh.ranks)), spec, [mesh], parameters, tensors), *options, steps=3)
        for mesh, options in ((THREE[0], ["--strategy", f"*={strategy}"]), (Mesh("mesh", (1,), [0]), []))
    ]
    assert not different(*found)
    for name in ("a", "b"):
        assert float(found[0][f"state:{name}:n"].array()) == 3.5
        assert set(found[0][f"state:{name}:w"].array().ravel()) == {0.25 * 2.5 + 0.5 * 3 + 3.5}


def test_a_step_without_any_gradient_is_a_step_of_the_model(tmp_path):
    tensors = {name: each for name, each in pair().items() if name.startswith("param")}
    found = run(
        *write(tmp_path, CLIP + SGD + route(", missing_grad = skip"), THREE, PAIR, tensors),
        "--target",
        "interpret",
    )
    assert all(found[name] == each for name, each in tensors.items())
    assert found["state:model:step"].array() == 1 and found["state:a:step"].array() == 0


def test_frozen_parameters_do_not_count(tmp_path):
    parameters = [PAIR[0], PAIR[1] | {"requires_grad": False}]
    tensors = pair()
    for kind, term in (("norm", "grad"), ("mean", "param")):
        spec = f"model() {{\n  let total = {kind}({term})\n}}\n" + SGD + route()
        found = run(*write(tmp_path, spec, THREE, parameters, tensors), "--target", "interpret")
        assert totals(found) == {reduced(kind, [tensors[f"{term}:a"].array()])}


@pytest.mark.parametrize("kind", COUNTING)
def test_a_mean_beside_skipped_parameters_is_refused(tmp_path, kind):
    spec = f"model() {{\n  let total = {kind}(grad)\n}}\n" + SGD + route(", missing_grad = skip")
    with pytest.raises(CompilerFailed) as failed:
        run(*write(tmp_path, spec, THREE, PAIR, pair()))
    text = str(failed.value)
    assert f"s.optim:2:15: error: expected no {kind} of the whole model beside missing_grad = skip" in text
    assert f"    let total = {kind}(grad)\n                ^" in text
    assert "s.optim:10:3: note: this route may leave parameters out" in text


SPOILED = {"nan": np.nan, "infinity": np.inf, "-infinity": -np.inf}


@pytest.mark.parametrize("target", ["cpu", "interpret", "emulated:sm_80"])
def test_one_element_that_is_not_finite_is_known_on_every_rank(tmp_path, target):
    """A parameter of its own shows what each rank knows. The model leaves the step out."""
    meshes = [
        Mesh("mesh", (6,), [3, 1, 4, 0, 5, 2]),
        *(Mesh(f"rank{rank}", (1,), [rank]) for rank in range(6)),
    ]
    parameters = [
        parameter("w", (20, 3)),
        *(parameter(f"p{rank}", (2,), f"rank{rank}", ["R"]) for rank in range(6)),
    ]
    shapes = {each["name"]: each["shape"] for each in parameters}
    kinds = ("norm", "sum", "max")
    numbers = "".join(f"  let {kind}s = {kind}(grad)\n" for kind in kinds)
    rule = SGD.replace("model.total", "model.norms").replace(
        "  z0", "  z1 = model.sums\n  z2 = model.maxs\n  z0"
    )
    rule = rule.replace("  state", "  state z1 : f32[]\n  state z2 : f32[]\n  state", 1)
    model = f"model() {{\n{numbers}  grad = select(finite(norms), grad, 0)\n}}\n"
    draw = np.random.default_rng(int(SEED))
    for place in ("w", "p4"):
        tensors = normal(draw, shapes, [f"@{step}" for step in (1, 2, 3)])
        for step, value in enumerate(SPOILED.values(), 1):
            values = tensors[f"grad:{place}@{step}"].array().astype(np.float32)
            values.reshape(-1)[values.size // 3 * 2] = value
            tensors[f"grad:{place}@{step}"] = tensor(values, "f32")
        # The states keep the numbers of the last step, so that each step is a run.
        files = write(tmp_path, model + rule + route(), meshes, parameters, tensors)
        stepc("compile", files[0], "-m", files[1], "--target", target, "-o", tmp_path / "lib")
        for step in (1, 2, 3):
            one_step = {re.sub("@.*", "", name): each for name, each in tensors.items()
                        if "@" not in name or name.endswith(f"@{step}")}  # fmt: skip
            save(files[2], one_step)
            found = (
                run(*files, "--library", tmp_path / "lib" / "libs.so")
                if target != "interpret"
                else run(*files, "--target", target)
            )
            with np.errstate(invalid="ignore"):
                expected = [
                    reduced(kind, [one_step[f"grad:{name}"].array() for name in shapes]) for kind in kinds
                ]
            for name in shapes:
                held = [np.frombuffer(found[f"state:{name}:z{i}"].data, np.float32)[0] for i in range(3)]
                assert np.array_equal(held, expected, equal_nan=True), (step, name, held, expected)
                assert found[f"param:{name}"] == one_step[f"param:{name}"], (step, name)


WARMING = """model(max_norm = 1) {
  let total = norm(grad)
  let warm = min(1, step / 3)
  grad = warm * min(1, max_norm / (total + 1e-6)) * grad
}
"""
MOMENTUM = (
    SGD.replace("  z0 =", "  m = 0.9 * m + grad\n  z0 =")
    .replace("  state", "  state m : f32\n  state", 1)
    .replace("* grad\n}", "* m\n}")
)


@pytest.mark.parametrize("target", ["--reference", "--target=interpret", "--target=cpu"])
def test_a_run_goes_on_from_its_output(tmp_path, target):
    """Four steps are two and two, since the steps of the model are an output and an input."""
    spec, steps = WARMING + MOMENTUM + route(), range(1, 5)
    tensors = pair([f"@{step}" for step in steps])
    whole = run(*write(tmp_path / "whole", spec, THREE, PAIR, tensors), target, steps=4)
    assert whole["state:model:step"].array() == 4
    first = {name: each for name, each in tensors.items() if not name.endswith(("@3", "@4"))}
    half = run(*write(tmp_path / "first", spec, THREE, PAIR, first), target, steps=2)
    if target == "--reference":  # it writes float64
        half = {
            name: tensor(each.array(), "f32") if each.dtype == "F64" else each for name, each in half.items()
        }
    second = half | {
        name.replace("@3", "@1").replace("@4", "@2"): tensors[name]
        for name in tensors
        if name.endswith(("@3", "@4"))
    }
    rest = run(*write(tmp_path / "second", spec, THREE, PAIR, second), target, steps=2)
    if target == "--reference":
        assert all(
            np.allclose(rest[name].array(), each.array(), rtol=1e-5, atol=1e-6)
            for name, each in whole.items()
        )
    else:
        assert not different(rest, whole)
    del second["state:model:step"]
    fresh = run(*write(tmp_path / "fresh", spec, THREE, PAIR, second), target, steps=2)
    assert fresh["state:model:step"].array() == 2 and fresh["param:a"] != rest["param:a"]


def refusal(folder, spec, parameters, tensors, *options):
    with pytest.raises(CompilerFailed) as failed:
        run(*write(folder, spec, THREE, parameters, tensors), *options)
    return str(failed.value)


OTHERS = {
    "norm(grad)": ("max(grad)", "expected the formulas of the model as in"),
    "let total = norm(grad)": ("let total = norm(param)", "expected the formulas of the model as in"),
    "1e-6": ("1e-5", "expected the formulas of optimizer 'Sgd' as in"),
    "max_norm = 1": ("max_norm = 2", "of route 'model' as in"),
    "  grad = min": ("  metric total = total\n  grad = min", "expected metrics .total. of the model as in .*, found none"),
    "z0 : f32[]\n  z0 =": ("z1 : f32[]\n  z1 = 0\n  metric z0 =", "expected states .z1 : f32 one = 0. of optimizer 'Sgd' as in"),
    "(max_norm = 1)": ("(max_norm = 1, spare = 2)", "expected hyperparameters .* of the model as in"),
}


def test_a_library_of_another_model_is_refused(tmp_path):
    spec, manifest, tensors, out = write(tmp_path, CLIP + SGD + route(), THREE, PAIR, pair())
    stepc("compile", spec, "-m", manifest, "--target", "interpret", "-o", tmp_path / "library")
    library = "--library", tmp_path / "library" / "libs.so"
    run(spec, manifest, tensors, out, *library)
    for words, (others, said) in OTHERS.items():
        spec.write_text((CLIP + SGD + route()).replace(words, others))
        with pytest.raises(CompilerFailed, match=said):
            run(spec, manifest, tensors, out, *library)


TAKEN = Tensor("I64", (), np.int64(3).tobytes())


def test_a_parameter_has_not_the_name_of_the_model(tmp_path):
    parameters = [parameter("model", (5, 4)), PAIR[1]]
    tensors = {name.replace(":a", ":model"): each for name, each in pair().items()}
    found = refusal(tmp_path, CLIP + SGD + route(), parameters, tensors)
    assert "m.json:1:" in found and "error: expected no parameter named 'model' beside a model" in found
    # Without a model the name is any name.
    spec = SGD.replace("model.total", "norm(grad)") + route()
    assert "state:model:step" in run(
        *write(tmp_path, spec, THREE, parameters, tensors | {"state:model:step": TAKEN})
    )


ONLY_STEP = "expected a state of the model (step), found "


@pytest.mark.parametrize("given, said", [
    ({"state:model:stop": TAKEN}, ONLY_STEP + "'state:model:stop'"),
    ({"state:model:total": TAKEN}, ONLY_STEP + "'state:model:total'"),
    ({"state:model:step": tensor(3, "f32")}, "expected one number of steps (I64) in 'state:model:step', found F32"),
    ({"state:model:step": Tensor("I64", (), np.int64(-1).tobytes())}, "from 0 to 2^53 in 'state:model:step', found -1"),
    ({"param:model": tensor(3, "f32")}, "found 'param:model'"),
    ({"grad:model": tensor(3, "f32")}, "found 'grad:model'"),
])  # fmt: skip
@pytest.mark.parametrize("how", ["--target=interpret", "--reference"])
def test_tensors_of_the_model_that_it_has_not_are_refused(tmp_path, given, said, how):
    assert said in refusal(tmp_path, CLIP + SGD + route(), PAIR, pair() | given, how)


def test_steps_of_a_model_that_is_not_there_are_refused(tmp_path):
    spec = SGD.replace("model.total", "norm(grad)") + route()
    found = refusal(tmp_path, spec, PAIR, pair() | {"state:model:step": TAKEN})
    assert "because the specification has no model, found 'state:model:step'" in found


@pytest.mark.parametrize("how", ["--target=interpret", "--reference"])
def test_unknown_hyperparameters_of_the_model_are_refused(tmp_path, how):
    found = refusal(tmp_path, CLIP + SGD + route(), PAIR, pair(), how, "--hyper", "model.max_nrm=1")
    assert "(Sgd.lr, model.max_norm), found 'model.max_nrm'\nhint: did you mean 'model.max_norm'?" in found
    spec = SGD.replace("model.total", "norm(grad)") + route()
    assert "(Sgd.lr), found 'model.max_norm'" in refusal(
        tmp_path, spec, PAIR, pair(), how, "--hyper", "model.max_norm=1"
    )


@pytest.mark.parametrize("how", ["--target=interpret", "--reference"])
def test_a_hyperparameter_without_a_value_is_refused(tmp_path, how):
    """The specification gives no default, and the command no value."""
    spec = CLIP.replace("max_norm = 1", "max_norm") + SGD + route()
    assert "'max_norm'" in refusal(tmp_path, spec, PAIR, pair(), how)
    run(*write(tmp_path, spec, THREE, PAIR, pair()), how, "--hyper", "model.max_norm=1")


# --- Bytes ---

ACCUMULATOR = 80 + 32  # bytes of a sum of squares, and of a message's seal
NUMBER = 4 + 32
RANKS = 64
RULES = f"""optimizer Muon(lr) {{
  state m : f32
  m = 0.9 * m + grad
  param = param - lr * orthogonalize(m, {POLAR})
}}
optimizer Adam(lr) {{
  state m : f32
  state v : f32
  m = lerp(m, grad, 0.1)
  v = lerp(v, grad * grad, 0.05)
  param = param - lr * m / (sqrt(v) + 1e-8)
}}
route {{
  Muon(lr = 0.02) for matrix except "embed"
  Adam(lr = 0.01) for rest
}}
"""
FLAT = Mesh("mesh", (RANKS,), list(range(RANKS)))
HYBRID = Mesh("mesh", (8, 8), list(range(RANKS)))
SHAPES_OF_64 = {**{f"w{i}": (512, 256) for i in range(4)}, "embed": (1000, 128), "bias": (256,)}


def of_64(placements, **lists):
    return [parameter(name, shape, placements=placements, **lists) for name, shape in SHAPES_OF_64.items()]


HALVES = [Mesh("mesh", (32,), list(range(32))), Mesh("other", (32,), list(range(32, 64)))]
EXPERTS = [parameter(f"expert{i}", (16, 32, 24), "other", ["S(1)"], batch_axes=1) for i in range(3)]
LAYOUTS = {
    "sharded": ([FLAT], of_64(["S(0)"])),
    "replicated": ([FLAT], of_64(["R"])),
    "hybrid": ([HYBRID], of_64(["R", "S(0)"])),
    "two meshes": (HALVES, of_64(["S(0)"]) + EXPERTS),
    "states apart": ([FLAT], of_64(["R"], grad_placements=["S(0)"], state_placements=["S(0)"])),
}


def explained(folder, model, meshes, parameters):
    files = write(folder, model + RULES, meshes, parameters, {})
    return json.loads(stepc("explain", "--json", files[0], "-m", files[1]))


def added(plain, more, key):
    """What each rank does more of."""
    return [b[key] - a[key] for a, b in zip(plain["ranks"], more["ranks"], strict=True)]


def check_bytes(folder, meshes, parameters):
    """Each rank sends one sum to one rank, which sends the result to all."""
    plain, clipped = (explained(folder, model, meshes, parameters) for model in ("", CLIP))
    assert clipped["exchanges"] <= plain["exchanges"] + 2
    for kind in ("sent", "received"):
        most = sorted(added(plain, clipped, f"bytes_{kind}"))
        messages = sorted(added(plain, clipped, f"messages_{kind}"))
        each, one_rank = (ACCUMULATOR, NUMBER) if kind == "sent" else (NUMBER, ACCUMULATOR)
        assert most[:-1] == [each] * (RANKS - 1) and most[-1] == one_rank * (RANKS - 1)
        assert messages == [1] * (RANKS - 1) + [RANKS - 1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clipping_sends_one_sum_per_rank(tmp_path, layout):
    check_bytes(tmp_path, *LAYOUTS[layout])


PARTIAL = {
    "ZeRO-0": {"grad_placements": ["P(avg)"]},
    "ZeRO-1": {"grad_placements": ["P(avg)"], "state_placements": ["S(0)"]},
}


@pytest.mark.parametrize("lists", PARTIAL)
def test_clipping_does_not_move_contributions_twice(tmp_path, lists):
    """The gradient that the step reduces for the norm is the one that rules read."""
    check_bytes(tmp_path, [FLAT], of_64(["R"], **PARTIAL[lists]))


def test_numbers_of_one_phase_travel_together(tmp_path):
    """A number that needs another one takes two exchanges more."""
    plain = explained(tmp_path, "", *LAYOUTS["sharded"])
    together = "".join(f"  let {kind}s = {kind}(grad)\n" for kind in KINDS)
    use = " + ".join(f"{kind}s" for kind in KINDS)
    several = explained(tmp_path, f"model() {{\n{together}  grad = grad * ({use})\n}}\n", *LAYOUTS["sharded"])
    assert several["exchanges"] == plain["exchanges"] + 2
    assert sorted(added(plain, several, "messages_sent")) == [1] * (RANKS - 1) + [RANKS - 1]
    later = (
        "model() {\n  let total = norm(grad)\n  let most = max(abs(grad) / total)\n  grad = grad / most\n}\n"
    )
    assert explained(tmp_path, later, *LAYOUTS["sharded"])["exchanges"] == plain["exchanges"] + 4
