"""Every operator, function and reduction of the language, wherever the parameter lives, against the float64
reference; and rules that stand in no example."""

import json
import re

import numpy as np
import pytest
from compiler import ROOT, STEPC, run, save, tensor
from formulas import SETS, orthogonalize

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

ULP = 2.0**-23  # of f32, relative to a value's power of two
SHAPE = (9, 7)  # odd, so that shards are uneven and rows are no multiple of a vector

# What is assigned to the full state `v`, of f32 values that are positive (`p`) or of both signs (`grad`), and
# how many ulp (of the largest addend; 1 + |result| bounds it here) the f32 result may be off. One rounding is
# half an ulp, and an operand's rounding counts again in what is made of it. exp and log are documented at
# 1.01 ulp, of arguments that are exact here.
ELEMENTWISE = {
    "add": ("grad + param", 1), "subtract": ("grad - param", 1), "multiply": ("grad * param", 1),
    "divide": ("grad / p", 1), "negate": ("-grad", 0), "less": ("select(grad < param, grad, param)", 0),
    "less_equal": ("select(grad <= param, grad, param)", 0),
    "greater": ("select(grad > param, grad, 2 * param)", 0),
    "greater_equal": ("select(grad >= param, grad, 2 * param)", 0),
    "equal": ("select(param == param, grad, param)", 0), "unequal": ("select(grad != grad, grad, param)", 0),
    "or_": ("select(grad < 0 or param < 0, 1 * grad, param)", 0),
    "and_": ("select(grad < 0 and param < 0, 1 * grad, param)", 0),
    "not_": ("select(not grad < param, grad, param)", 0),
    "square": ("grad ^ 2", 1), "cube": ("grad ^ 3", 3), "fourth": ("grad ^ 4", 3), "inverse": ("p ^ -2", 3),
    "root": ("p ^ 0.5", 1), "power": ("p ^ 1.7", 24), "power_of": ("p ^ -0.3", 8),
    "sqrt": ("sqrt(p)", 1), "rsqrt": ("rsqrt(p)", 2), "abs": ("abs(grad)", 0), "sign": ("sign(grad)", 0),
    "exp": ("exp(grad)", 4), "log": ("log(p)", 3), "min": ("min(grad, param)", 0),
    "max": ("max(grad, param)", 0), "clamp": ("clamp(grad, -0.5, 0.25)", 0), "lerp": ("lerp(grad, param, 0.3)", 4),
    "floor": ("floor(4 * grad)", 0), "uniform": ("grad * uniform()", 1),
    "finite": ("select(finite(grad), grad, param)", 0),
    "select": ("select(grad > 0, param, grad)", 0), "cast_f32": ("cast(grad, f32)", 0),
    "momentum": ("momentum(grad, param, 0.9)", 2), "decay": ("decay(param, 0.1, 0.5)", 1),
    "scalars": ("grad * ((1 - 0.999 ^ step) + sqrt(2) * log(numel) / exp(lr) - min(lr, 2) * max(lr, 0.5))", 16),
    "scalar_select": ("grad * select(step < 2 and lr > 0, abs(-3), sign(lr))", 1),
}  # fmt: skip
# Rounding to nearest with 8 and 11 significant bits is off by 2⁻⁸ and 2⁻¹¹ relative.
CASTS = {"bf16": ("cast(grad, bf16)", 2.0**-8), "f16": ("cast(grad, f16)", 2.0**-11)}
REDUCTIONS = ("sum", "mean", "rms", "norm", "max")
OWN_COEFFICIENTS = [(1.5, -0.5, 0), (2, -1.5, 0.4)]
COEFFICIENTS = {**SETS, str(OWN_COEFFICIENTS): OWN_COEFFICIENTS}
MESHES = {"line": (3,), "grid": (2, 2), "cube": (2, 1, 2)}
PLACEMENTS = {
    "whole": ("line", SHAPE, ["R"]), "rows": ("line", SHAPE, ["S(0)"]), "columns": ("line", SHAPE, ["S(1)"]),
    "tiles": ("grid", SHAPE, ["S(0)", "S(1)"]), "strided": ("grid", SHAPE, ["_S(0, 2)", "S(0)"]),
    "replicas": ("grid", SHAPE, ["R", "S(1)"]), "empty": ("line", (2, 5), ["S(0)"]),
    "empty_columns": ("cube", (5, 1), ["S(1)", "R", "R"]), "experts": ("grid", (3, 6, 5), ["S(0)", "S(2)"]),
}  # fmt: skip


def functions():
    """The names in the compiler's own table of functions."""
    text = (ROOT / "frontends" / "language" / "Builtins.cpp").read_text()
    table = text[text.index("table[] = {") : text.index("};")]
    return set(re.findall(r'\{"(\w+)", Function::', table))


def rules():
    """name → (text, kind of the state v, tolerance relative to 1 + the largest value)."""
    result = {}
    for name, (expression, ulps) in ELEMENTWISE.items():
        result[f"e_{name}"] = expression, "", ulps * ULP
    for name, (expression, error) in CASTS.items():
        result[f"c_{name}"] = expression, "", error
    for name in REDUCTIONS:
        # n terms in 16 chains and a tree: a chain of the shapes here has at most 4 additions, the tree 4.
        # The root halves the error, squares round once more.
        tolerance = 0 if name == "max" else 10 * ULP
        result[f"r_{name}"] = f"{name}(grad)", "[]", tolerance
        result[f"r_{name}_columns"] = f"{name}(grad, over = columns)", "[rows]", tolerance
        result[f"r_{name}_rows"] = f"{name}(grad, over = rows)", "[cols]", tolerance
        result[f"r_{name}_full"] = f"grad - {name}(grad, over = rows) * {name}(param, over = columns)", "", 30 * ULP
    product = "(grad @ transpose(grad)) @ (grad @ identity(cols(grad))) / rows(grad)"
    result["p_product"] = product, "", 100 * ULP  # sums of 9 products of 7
    for index, chosen in enumerate(COEFFICIENTS):
        # By the conditioning of the iteration: see orthogonalize_error.
        result[f"o_{index}"] = f"orthogonalize(grad, coefficients = {chosen}, precision = f32)", "", None
    return result


def orthogonalize_error(name, gradient):
    """What NumPy is off by when it rounds the input and every product to f32 (24 bits). The steps of some
    sets multiply an error by up to |p'(1)| = |a + 3b + 5c| ≈ 24, so this measures how the matrix is
    conditioned. Other orders of addition round otherwise: 16 times as much is allowed."""
    steps = list(COEFFICIENTS.values())[int(name.split("_")[1])]
    blocks = gradient.reshape(-1, *gradient.shape[-2:])
    return max(np.abs(orthogonalize(x, steps) - orthogonalize(x, steps, bits=24)).max() for x in blocks)


def specification():
    text, claims = "", ""
    for name, (expression, kind, _) in rules().items():
        positive = "  let p = 0.25 + abs(param)\n" if re.search(r"\bp\b", expression) else ""
        new = "param - lr * v"
        if name == "e_uniform":  # parameters here are f32, which it leaves as they are
            new = f"stochastic({new})"
        text += (f"optimizer {name}(lr) {{\n  state v : f32{kind}\n{positive}  v = {expression}\n"
                 f"  param = {new}\n}}\n")  # fmt: skip
        claims += f'  {name}(lr = 0.5) for "{name}.*"\n'
    return f"{text}route {{\n{claims}}}\n"


def meshes():
    result = []
    for name, sizes in MESHES.items():
        axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
        result.append({"name": name, "axes": axes})
    return result


def manifest(names, places):
    parameters = []
    for name in names:
        for place in places:
            mesh, shape, placements = PLACEMENTS[place]
            parameters.append({"name": f"{name}.{place}", "shape": list(shape), "dtype": "f32", "mesh": mesh,
                               "placements": placements, "batch_axes": len(shape) - 2})  # fmt: skip
    return {"version": 1, "meshes": meshes(), "parameters": parameters}


def inputs(document, seed=3):
    generator = np.random.default_rng(seed)
    result = {}
    for parameter in document["parameters"]:
        for role in ("param", "grad"):
            values = generator.normal(size=parameter["shape"])
            result[f"{role}:{parameter['name']}"] = tensor(values, parameter["dtype"])
    return result


def step(tmp_path, spec, document, tensors, *options, steps=1):
    """(compiled, reference): tensors after the steps."""
    (tmp_path / "spec.optim").write_text(spec)
    (tmp_path / "m.json").write_text(json.dumps(document))
    save(tmp_path / "in.safetensors", tensors)
    files = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors"
    found = run(*files, tmp_path / "out.safetensors", *options, steps=steps)
    reference = run(*files, tmp_path / "reference.safetensors", "--reference", steps=steps)
    return found, reference


def test_every_function_is_here():
    text = specification()
    assert {name for name in functions() if f"{name}(" not in text} == set()


@pytest.fixture(scope="module")
def of_every_function(tmp_path_factory):
    """Inputs, and what is compiled and the reference make of them; all places share what is compiled."""
    document = manifest(rules(), PLACEMENTS)
    tensors = {name: one for place in PLACEMENTS for name, one in inputs(manifest(rules(), [place])).items()}
    return tensors, *step(tmp_path_factory.mktemp("every_function"), specification(), document, tensors)


@pytest.mark.parametrize("place", PLACEMENTS)
def test_every_function_agrees_with_the_reference(of_every_function, place, capsys):
    tensors, found, reference = of_every_function
    worst, problems = {}, []
    for name, (_, _, tolerance) in rules().items():
        if tolerance is None:
            tolerance = 4 * ULP + 16 * orthogonalize_error(name, tensors[f"grad:{name}.{place}"].array())
        for tensor_name in (f"state:{name}.{place}:v", f"param:{name}.{place}"):
            a, b = found[tensor_name].array(), reference[tensor_name].array()
            assert np.isfinite(b).all() and a.shape == b.shape, tensor_name
            # Half an ulp more for the update's product, one for its difference.
            allowed = tolerance + (2 * ULP if tensor_name.startswith("param") else 0)
            error = np.abs(a - b).max() / (1 + np.abs(b).max())
            kind = name.split("_")[0]
            worst[kind] = max(worst.get(kind, 0), error)
            if not error <= allowed:
                problems.append(f"{tensor_name}: off by {error:.3g}, allowed {allowed:.3g}")
    with capsys.disabled():
        print(f"\n{place}: largest errors " + ", ".join(f"{k} {v:.2g}" for k, v in worst.items()))
    assert not problems, "\n".join(problems)


OWN = """
// In no example: a polynomial of the gradient, row and column statistics, comparisons, a one-value state.
optimizer Odd(lr, keep = 0.9, bound = 1.5) {
  state m : f32
  state spread : f32[rows]
  state centre : f32[cols]
  state size : f32[]
  let g = clamp(grad, -bound, bound)
  let shaped = 0.5 * g + 0.25 * g ^ 3 - 0.01 * g ^ 5
  m = lerp(m, shaped, 1 - keep)
  spread = lerp(spread, rms(m, over = columns), 1 - keep)
  centre = lerp(centre, mean(grad, over = rows), 1 - keep)
  size = max(size, norm(grad))
  let scaled = (m - centre) / (0.1 + spread / (1 - keep ^ step))
  let bounded = select(abs(scaled) > 2 and not param * scaled < 0, 2 * sign(scaled), scaled)
  param = decay(param, lr, 0.1) - lr * sqrt(rows / cols) * bounded / (1 + log(1 + size))
}
route { Odd(lr = 0.05) for "*" }
"""


@pytest.mark.parametrize("strategy", ["", "owner", "gather"])
def test_a_rule_in_no_example(tmp_path, strategy):
    document = manifest(["w"], PLACEMENTS)
    tensors = inputs(document)
    for name in [n for n in tensors if n.startswith("grad:")]:
        for number in (1, 2, 3):
            values = np.random.default_rng(number).normal(size=tensors[name].shape)
            tensors[f"{name}@{number}"] = tensor(values, "f32")
        del tensors[name]
    force = ["--strategy", f"*={strategy}"] if strategy else []
    found, reference = step(tmp_path, OWN, document, tensors, *force, steps=3)
    for name, expected in reference.items():
        a, b = found[name].array(), expected.array()
        # About 20 roundings a step on values below 3, divided by at least 0.1.
        assert np.abs(a - b).max() <= 1e-5 * (1 + np.abs(b).max()), name
