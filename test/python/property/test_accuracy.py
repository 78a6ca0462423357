"""How far the compiled step may be from the float64 reference, and that from the papers and torch.

The unit is the ulp of f32 (2⁻²³ of a power of two) of the largest addend, because a sum of terms that cancel
can be no more exact than its terms.
"""

import numpy as np
import models
import pytest
from compiler import STEPC, tensor
from formulas import SETS, adamw, orthogonalize
from test_generality import ULP, step

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

ADAMW = models.adamw() + 'route { AdamW(lr = 3e-3) for "*" }\n'
MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, coefficients = COEFFICIENTS, precision = PRECISION)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
route { Muon(lr = 0.02) for "*" }
"""
LR = 0.02


def document(shapes, dtype="f32"):
    mesh = {"name": "dp", "axes": [{"name": "dp", "size": 2}]}
    parameters = [{"name": name, "shape": list(shape), "dtype": dtype, "mesh": "dp", "placements": ["S(0)"]}
                  for name, shape in shapes.items()]  # fmt: skip
    return {"version": 1, "meshes": [mesh], "parameters": parameters}


def tensors(shapes, steps, seed=1):
    generator = np.random.default_rng(seed)
    result = {}
    for name, shape in shapes.items():
        result[f"param:{name}"] = tensor(generator.normal(size=shape), "f32")
        for number in range(1, steps + 1):
            result[f"grad:{name}@{number}"] = tensor(generator.normal(size=shape), "f32")
    return result


def ulps(error, largest):
    """In ulp of the power of two below `largest`."""
    return (np.abs(error) / (ULP * 2.0 ** np.floor(np.log2(np.maximum(largest, 1e-30))))).max()


def test_adamw_in_ulp(tmp_path, capsys):
    """States are off by at most 2 ulp and parameters by 8 ulp of the largest addend a step."""
    shapes, worst = {"w": (37, 21), "b": (53,)}, {"m": 0.0, "v": 0.0, "param": 0.0}
    state = tensors(shapes, 6)
    for number in range(1, 7):
        one = {k.split("@")[0]: t for k, t in state.items() if "@" not in k or k.endswith(f"@{number}")}
        found, reference = step(tmp_path, ADAMW, document(shapes), one)
        for name in shapes:
            old = {k: one[f"state:{name}:{k}"].array() if number > 1 else 0.0 for k in "mv"}
            g, p = one[f"grad:{name}"].array(), one[f"param:{name}"].array()
            largest = {
                "m": np.maximum(np.abs(old["m"]), np.abs(g)),
                "v": np.maximum(old["v"], g * g),
                "param": np.maximum(np.abs(p), np.abs(p - reference[f"param:{name}"].array())),
            }
            for key in worst:
                full = f"param:{name}" if key == "param" else f"state:{name}:{key}"
                error = found[full].array() - reference[full].array()
                worst[key] = max(worst[key], ulps(error, largest[key]))
        # The next step starts from what was stored, for both: one step's roundings are compared.
        state = {k: t for k, t in state.items() if "@" in k} | found
    with capsys.disabled():
        print("\nAdamW, ulp of the largest addend:", {k: round(v, 2) for k, v in worst.items()})
    assert worst["m"] <= 2 and worst["v"] <= 2 and worst["param"] <= 8


def test_adamw_after_several_steps(tmp_path, capsys):
    """States forget: each step adds at most 2 ulp to what is left of the earlier ones (factor beta), so
    they stay within 2 / (1 - beta) ulp of the largest addend so far; parameters within 8 a step."""
    shapes, count = {"w": (37, 21)}, 10
    found, reference = step(tmp_path, ADAMW, document(shapes), tensors(shapes, count), steps=count)
    given = tensors(shapes, count)
    g = np.max([np.abs(given[f"grad:w@{k}"].array()) for k in range(1, count + 1)], axis=0)
    far = {}
    for key, largest, allowed in (("m", g, 2 / 0.1), ("v", g * g, 2 / 0.05)):
        name = f"state:w:{key}"
        far[key] = ulps(found[name].array() - reference[name].array(), largest)
        assert far[key] <= allowed
    p = np.abs(given["param:w"].array()) + count * 3e-3
    far["param"] = ulps(found["param:w"].array() - reference["param:w"].array(), p)
    with capsys.disabled():
        print(f"\nAdamW after {count} steps, ulp:", {k: round(v, 2) for k, v in far.items()})
    assert far["param"] <= 8 * count


SHAPES = {"square": (32, 32), "wide": (16, 48), "tall": (40, 12), "row": (1, 9)}


def update_of(output, given, shapes):
    """What the orthogonalized update added, without decay, per parameter."""
    return {n: output[f"param:{n}"].array() - (1 - LR * 0.1) * given[f"param:{n}"].array() for n in shapes}


def condition_at_one(coefficients):
    """By how much the iterations enlarge a relative error of a singular value of 1."""
    value = slope = 1.0
    for a, b, c in coefficients:
        slope *= a + 3 * b * value**2 + 5 * c * value**4
        value = a * value + b * value**3 + c * value**5
    return abs(slope / value)


def test_muon_in_f32(tmp_path, capsys):
    """1e-5 of the norm of the update after one step.

    A row has one singular value, and the norm and the division make it 1 within two roundings, an ulp.
    cubic5 enlarges that by 240, in any f32 implementation.
    """
    given, worst = tensors(SHAPES, 1), 0.0
    for coefficients in ("simple", "quintic", "cubic5"):
        text = MUON.replace("COEFFICIENTS", coefficients).replace("PRECISION", "f32")
        text = text.replace("lr * 0.2", "lr * 10")  # so that the parameter's own ulp does not hide the update
        found, reference = step(tmp_path, text, document(SHAPES), given)
        update = update_of(reference, given, SHAPES)
        for name in SHAPES:
            difference = found[f"param:{name}"].array() - reference[f"param:{name}"].array()
            error = np.linalg.norm(difference) / np.linalg.norm(update[name])
            if name == "row":
                assert error <= max(1e-5, ULP * condition_at_one(SETS[coefficients])), coefficients
            else:
                worst = max(worst, error)
    with capsys.disabled():
        print(f"\nMuon in f32: off by {worst:.2g} of the norm of the update")
    assert worst <= 1e-5


def bound(x, steps, u):
    """A bound of ‖found − exact‖ in the Frobenius norm when every product is rounded with unit roundoff u.

    Let s be the largest singular value of the exact iterate X (k its smaller side), e the error so far.
    With A = XXᵀ, B = bA + cA², Y = aX + BX, ‖·‖₂ ≤ ‖·‖_F, t = s + e ≥ the norm of the perturbed iterate:
    Before rounding, Y changes by at most e·(|a| + 3|b|t² + 5|c|t⁴), the derivative's bound between the two.
    Rounding A adds dA ≤ u·√k·t², which B multiplies by |b| + 2|c|t²; rounding B adds u·√k·(|b|t² + |c|t⁴);
    both are multiplied by X (t); rounding Y adds u·√k·t·(|a| + |b|t² + |c|t⁴). f32 sums are 2¹⁶ times finer
    than bf16's roundings. Tensor cores cut off nine terms and a result of every eight steps
    (runtime/emulated), which makes sums of 100 products 50 times finer than f16's roundings: doubling u
    covers all of them. At the start the input's rounding and that of the quotient give e ≤ 2u, since ‖X‖_F =
    1.
    """
    x = np.asarray(x, np.float64)
    x = x.T if x.shape[0] > x.shape[1] else x
    x = x / np.linalg.norm(x)
    root, e, u = np.sqrt(x.shape[0]), 4 * u, 2 * u
    for a, b, c in steps:
        a_, b_, c_ = abs(a), abs(b), abs(c)
        t = np.linalg.norm(x, 2) + e
        grown = e * (a_ + 3 * b_ * t**2 + 5 * c_ * t**4)
        gram = u * root * t**2 * (b_ + 2 * c_ * t**2) * t
        poly = u * root * (b_ * t**2 + c_ * t**4) * t
        last = u * root * t * (a_ + b_ * t**2 + c_ * t**4)
        e = grown + gram + poly + last
        x = orthogonalize_step(x, a, b, c)
    return e


def orthogonalize_step(x, a, b, c):
    gram = x @ x.T
    return a * x + (b * gram + c * gram @ gram) @ x


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80,tensorcore"])
@pytest.mark.parametrize(("precision", "unit"), [("bf16", 2.0**-8), ("f16", 2.0**-11)])
def test_muon_in_half_precision(tmp_path, precision, unit, target, capsys):
    """Within what rounding every product allows: `bound`, after one and two steps of the iteration (it
    grows by about 40 a step, so that later it says nothing); and after five steps, where worst cases do
    not happen at once, within four times what NumPy is off by with the same roundings in another order."""
    shapes = SHAPES | {"tiles": (72, 100)}
    given, rows = tensors(shapes, 1), {}
    for count in (1, 2, 5):
        text = MUON.replace("COEFFICIENTS", f"simple, steps = {count}").replace("PRECISION", precision)
        text = text.replace("lr * 0.2 * sqrt(max(rows, cols)) * o", "o").replace(
            "(1 - lr * weight_decay) * param", "0 * param"
        )
        found, reference = step(tmp_path, text, document(shapes), given, "--target", target)
        for name in shapes:
            u = 1.95 * given[f"grad:{name}@1"].array()
            error = np.linalg.norm(found[f"param:{name}"].array() - reference[f"param:{name}"].array())
            steps = SETS["simple"][:count]
            bits = {"bf16": 8, "f16": 11}[precision]
            numpy = np.linalg.norm(orthogonalize(u, steps, bits=bits) - orthogonalize(u, steps))
            allowed = bound(u, steps, unit) if count < 5 else 4 * numpy
            rows[name, count] = error, allowed, numpy
            assert error <= allowed, (name, count)
            assert error <= 4 * numpy + unit, (name, count)
    with capsys.disabled():
        print(f"\nMuon in {precision} for {target}: (error, allowed, NumPy's) of square:",
              {k[1]: tuple(float(f"{x:.2g}") for x in v) for k, v in rows.items() if k[0] == "square"})  # fmt: skip


PAPERS = """
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.1) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
optimizer Ema(lr, mu = 0.95) {
  state m : f32
  m = lerp(m, grad, 1 - mu)
  let o = orthogonalize(lerp(grad, m, mu), coefficients = simple, precision = bf16)
  param = param - lr * sqrt(max(1, rows / cols)) * o
}
optimizer NorMuon(lr, mu = 0.95, beta2 = 0.95, eps = 1e-8) {
  state m : f32
  state v : f32[rows]
  m = lerp(m, grad, 1 - mu)
  let o = orthogonalize(lerp(grad, m, mu), coefficients = simple)
  v = lerp(v, mean(o * o, over = columns), 1 - beta2)
  let n = o / (sqrt(v) + eps)
  param = param - lr * 0.2 * sqrt(rows * cols) * n / norm(n)
}
optimizer Lion(lr, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1) {
  state m : f32
  let c = lerp(grad, m, beta1)
  m = lerp(grad, m, beta2)
  param = param - lr * (sign(c) + weight_decay * param)
}
"""
ORTHOGONALIZE = """
optimizer NAME(lr) {
  param = param - lr * orthogonalize(grad, coefficients = NAME)
}
"""


def test_reference_is_the_papers(tmp_path):
    """1e-12 relative to the largest value: float64 in another order, a hundred roundings."""
    names = ["AdamW", "Ema", "NorMuon", "Lion", *SETS]
    shapes = {f"{n}.{s}": shape for n in names for s, shape in (("wide", (6, 10)), ("tall", (9, 4)))}
    text = PAPERS + "".join(ORTHOGONALIZE.replace("NAME", n) for n in SETS)
    text += "route {\n" + "".join(f'  {n}(lr = 0.02) for "{n}.*"\n' for n in names) + "}\n"
    count, given = 4, tensors(shapes, 4)
    _, reference = step(tmp_path, text, document(shapes), given, steps=count)
    for name, shape in shapes.items():
        p, m, v = given[f"param:{name}"].array(), np.zeros(shape), np.zeros(shape)
        row = np.zeros((shape[0], 1))
        for number in range(1, count + 1):
            g, rule = given[f"grad:{name}@{number}"].array(), name.split(".")[0]
            if rule == "AdamW":
                p, m, v = adamw(p, m, v, g, number, LR, 0.9, 0.999, 1e-8, 0.1)
            elif rule == "Lion":
                p, m = p - LR * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p), 0.99 * m + 0.01 * g
            elif rule == "Ema":
                m = 0.95 * m + 0.05 * g
                o = orthogonalize(0.95 * m + 0.05 * g, SETS["simple"])
                p = p - LR * np.sqrt(max(1, shape[0] / shape[1])) * o
            elif rule == "NorMuon":
                m = 0.95 * m + 0.05 * g
                o = orthogonalize(0.95 * m + 0.05 * g, SETS["simple"])
                row = 0.95 * row + 0.05 * (o * o).mean(axis=1, keepdims=True)
                n = o / (np.sqrt(row) + 1e-8)
                p = p - LR * 0.2 * np.sqrt(n.size) * n / np.linalg.norm(n)
            else:
                p = p - LR * orthogonalize(g, SETS[rule])
        error = np.abs(reference[f"param:{name}"].array() - p).max()
        assert error <= 1e-12 * np.abs(p).max(), f"{name}: {error:.3g}"


def torch_run(make, given, shapes, count):
    torch = pytest.importorskip("torch")
    weights = {
        n: torch.nn.Parameter(torch.tensor(given[f"param:{n}"].array(), dtype=torch.float32)) for n in shapes
    }
    optimizer = make(torch, list(weights.values()))
    for number in range(1, count + 1):
        for name, weight in weights.items():
            weight.grad = torch.tensor(given[f"grad:{name}@{number}"].array(), dtype=torch.float32)
        optimizer.step()
    return {n: w.detach().double().numpy() for n, w in weights.items()}


def test_torch_adamw(tmp_path, capsys):
    """50 steps: each side is off by 8 ulp of the parameter a step at most, so both by 16."""
    shapes, count = {"w": (12, 9)}, 50
    given = tensors(shapes, count)
    other = torch_run(lambda torch, w: torch.optim.AdamW(w, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1),
                      given, shapes, count)  # fmt: skip
    found, _ = step(tmp_path, ADAMW, document(shapes), given, steps=count)
    far = ulps(found["param:w"].array() - other["w"], np.abs(given["param:w"].array()) + count * 3e-3)
    with capsys.disabled():
        print(f"\ntorch.optim.AdamW after {count} steps: {far:.2f} ulp")
    assert far <= 16 * count


def test_torch_muon(tmp_path, capsys):
    """50 steps on tiny shapes. Both round every product to bf16 in another order (and torch the norm and
    the momentum's lerp otherwise), so each update is off as far as `test_muon_in_half_precision` measures:
    a few percent of its norm, of random direction; the path as a whole within 3 %."""
    shapes, count = {"a": (4, 4), "b": (3, 6), "c": (6, 2)}, 50
    given = tensors(shapes, count)
    other = torch_run(lambda torch, w: torch.optim.Muon(w, lr=1e-3, weight_decay=0.1, momentum=0.95,
                                                        adjust_lr_fn="match_rms_adamw"),
                      given, shapes, count)  # fmt: skip
    text = (
        MUON.replace("COEFFICIENTS", "simple").replace("PRECISION", "bf16").replace("lr = 0.02", "lr = 1e-3")
    )
    text = text.replace("m = momentum * m + grad", "m = lerp(m, grad, 1 - momentum)")
    text = text.replace("grad + momentum * m", "lerp(grad, m, momentum)")
    found, _ = step(tmp_path, text, document(shapes), given, steps=count)
    for name in shapes:
        start = given[f"param:{name}"].array()
        far = np.linalg.norm(found[f"param:{name}"].array() - other[name]) / np.linalg.norm(
            other[name] - start
        )
        with capsys.disabled():
            print(f"\ntorch.optim.Muon, {shapes[name]}: {far:.2%} of the path after {count} steps", end="")
        assert far < 0.03, name
