"""A library's products are, to the last bit, what the dialect says of `optim.product`.

The expected numbers are worked out in exact fractions, so that no compiler or chip has a say in them.
"""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from compiler import STEPC, run, save, tensor

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")


def nearest(exact):
    """The f32 nearest to a fraction; ties to even."""
    guess = np.float32(float(exact))
    near = [guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf))]
    distance = [abs(Fraction(float(x)) - exact) for x in near]
    best = [x for x, d in zip(near, distance, strict=True) if d == min(distance)]
    return next(x for x in best if len(best) == 1 or not int(x.view(np.int32)) & 1)


# Where the chip has no fused multiply-add, a product and a sum stand for it.
FUSED = "fma" in Path("/proc/cpuinfo").read_text().split()


def multiply_add(a, b, c):
    if not FUSED:
        return np.float32(a * b) + c
    return nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def chain(left, right):
    """Each element from +0 over k in increasing order, rounded once a step."""
    out = np.zeros((left.shape[0], right.shape[1]), np.float32)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(left.shape[1]):
                out[i, j] = multiply_add(left[i, k], right[k, j], out[i, j])
    return out


def one_step(x, a, b, c):
    """B = c · (A A) + b · A with A = X Xᵀ, then (B X) + a · X; epilogues round each operation."""
    gram = chain(x, x.T)
    poly = np.float32(c) * chain(gram, gram) + np.float32(b) * gram
    return chain(poly, x) + np.float32(a) * x


def square(left, right, addend=None, alpha=1.0, beta=0.0, shift=0.0):
    """A product of n × n matrices with its epilogue. The half above the diagonal is that below."""
    out = np.float32(alpha) * chain(left, right)
    if addend is not None:
        out = out + np.float32(beta) * addend
    if shift:
        out = out + np.where(np.eye(len(out), dtype=bool), np.float32(shift), np.float32(0))
    return np.tril(out) + np.tril(out, -1).T


def gram_form(x, steps, restarts):
    """What the dialect says of the Gram form: R, Z, P, Q and W, run by run."""
    begin = 0
    for end in (*restarts, len(steps)):
        r = square(x, x.T)
        first, q = None, None  # of the first step of the run: Z, or R and its factor
        for i in range(begin, end):
            a, b, c = steps[i]
            if i == begin + 1:
                z = square(r, r, r, c, b, a)
                q = square(first[0], z, z, first[1], steps[begin][0])
                w = square(r, z) if i + 1 < end else None
                r = square(z, w) if i + 1 < end else None
                continue
            z, factor = (square(r, r, r, c, b), 1.0) if c else (r, b)
            if i == begin:
                first = (z, factor)
            else:
                q = square(q, z, q, factor, a)
            if i + 1 < end:
                w = square(r, z, r, factor, a)
                r = square(z, w, w, factor, a)
        if q is None:
            x = np.float32(first[1]) * chain(first[0], x) + np.float32(steps[begin][0]) * x
        else:
            x = chain(q, x)
        begin = end
    return x


def orthogonalized(folder, grad, coefficients, options=""):
    (folder / "o.optim").write_text(
        "optimizer O() {\n  param = orthogonalize(grad, precision = f32, "
        f"coefficients = [{coefficients}]{options})\n}}\nroute {{ O() for matrix }}\n"
    )
    rows, cols = grad.shape
    mesh = {"name": "m", "axes": [{"name": "x", "size": 2}]}
    parameter = {"name": "w", "shape": [rows, cols], "dtype": "f32", "mesh": "m", "placements": ["S(0)"]}
    manifest = {"version": 1, "meshes": [mesh], "parameters": [parameter]}
    Path(folder / "m.json").write_text(json.dumps(manifest))
    save(
        folder / "in.safetensors",
        {"param:w": tensor(np.zeros_like(grad), "f32"), "grad:w": tensor(grad, "f32")},
    )
    out = run(folder / "o.optim", folder / "m.json", folder / "in.safetensors", folder / "out.safetensors")
    return out["param:w"].array().astype(np.float32)


@pytest.mark.parametrize("shape", [(3, 5), (17, 18), (18, 3)])
def test_bits_of_a_step(tmp_path, shape):
    grad = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    # Of these coefficients the step leaves what the norm has made of the gradient.
    x = orthogonalized(tmp_path, grad, "(1, 0, 0)")
    assert abs(np.linalg.norm(x.astype(np.float64)) - 1) < 1e-6
    found = orthogonalized(tmp_path, grad, "(3.4445, -4.775, 2.0315)")
    wide = x if shape[0] <= shape[1] else x.T
    expected = one_step(wide, 3.4445, -4.775, 2.0315)
    expected = expected if shape[0] <= shape[1] else expected.T
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("shape", [(5, 8), (9, 4)])
@pytest.mark.parametrize("restarts", [[], [2], [1, 3]])
@pytest.mark.parametrize("cubic", [False, True])
def test_bits_of_the_gram_form(tmp_path, shape, restarts, cubic):
    grad = np.random.default_rng(6).normal(size=shape).astype(np.float32)
    steps = [(3.4445, -4.775, 0.0 if cubic else 2.0315), (2.5, -1.5, 0.5), (1.5, -0.5, 0.0), (1.875, -1.25, 0.375)]
    if cubic:
        steps[0], steps[1] = (2.5, -1.5, 0.0), (2.0, -1.0, 0.0)
    # Of these coefficients the step leaves what the norm has made of the gradient.
    x = orthogonalized(tmp_path, grad, "(1, 0, 0)")
    options = f", form = auto, restarts = {restarts}"
    found = orthogonalized(tmp_path, grad, ", ".join(map(str, steps)), options)
    wide = x if shape[0] <= shape[1] else x.T
    expected = gram_form(wide, steps, restarts)
    expected = expected if shape[0] <= shape[1] else expected.T
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()
