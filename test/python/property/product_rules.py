"""Optimizers that multiply matrices, written out, and what NumPy makes of them from the same formulas.

SOAP and Shampoo take products in the place of QR and of roots: `rotate` and `inverse_sqrt` below.
"""

import textwrap

import numpy as np
from test_random_starts import normal

CANS = [(5.182504, -5.126830), (2.586121, -0.641539), (2.567364, -0.639106), (2.520560, -0.633023), (2.410759, -0.618682),
        (2.188335, -0.589309), (1.859576, -0.544999), (1.589020, -0.507581), (1.505165, -0.495780), (1.492556, -0.492593)]  # fmt: skip


def polar_text(p, steps):
    """`steps` polar steps from {p}X0: the last value is {p}X{steps}."""
    return "".join(
        f"""let {p}A{i} = transpose({p}X{i}) @ {p}X{i}
let {p}X{i + 1} = 1.875 * {p}X{i} + {p}X{i} @ (-1.25 * {p}A{i} + 0.375 * ({p}A{i} @ {p}A{i}))
"""
        for i in range(steps)
    )


def rotate_text(q, s, p):
    """One step of {q} towards the eigenvectors of {s}: {p}X3."""
    return (
        f"""let {p}I = identity(rows({s}))
let {p}B = transpose({q}) @ ({s} @ {q}) * (rows({s}) / max(sum({p}I * {s}), 1e-30))
let {p}d = sum({p}I * {p}B, over = rows)
let {p}D = {p}d - transpose({p}d)
let {p}E0 = (1 - {p}I) * {p}B * {p}D / ({p}D ^ 2 + 4 * {p}B ^ 2 + 1e-30)
let {p}E = 0.5 * ({p}E0 - transpose({p}E0))
let {p}X0 = {q} + {q} @ ({p}E * min(1, 1.1 / max(sqrt(norm({p}E @ {p}E)), 1e-12)))
"""
        + polar_text(p, 3)
    )


def inverse_sqrt_text(x, p):
    """{x} to the power -1/2: {p}R."""
    text = f"""let {p}bound = max(max(sum(abs({x}), over = columns)), 1e-30)
let {p}y0 = {x} / {p}bound
let {p}z0 = identity(rows({x}))
let {p}p0 = {p}y0
"""
    for i, (b, a) in enumerate(CANS):
        text += f"let {p}z{i + 1} = {b} * {p}z{i} + {a} * {p}p{i} @ {p}z{i}\n"
        if i + 1 < len(CANS):
            text += f"""let {p}y{i + 1} = {b} * {p}y{i} + {a} * {p}y{i} @ {p}p{i}
let {p}p{i + 1} = {p}z{i + 1} @ {p}y{i + 1}
"""
    return f"{text}let {p}R = 0.5 * rsqrt({p}bound) * ({p}z10 + transpose({p}z10))\n"


def body(text):
    return textwrap.indent(text, "  ")


SOAP = (
    """optimizer SOAP(lr, beta1 = 0.95, beta2 = 0.95, shampoo = 0.95, eps = 1e-8, weight_decay = 0.01) {
  state m : f32
  state v : f32
  state L : f32[rows, rows]
  state R : f32[cols, cols]
  state QL : f32[rows, rows] = identity
  state QR : f32[cols, cols] = identity
  L = lerp(L, grad @ transpose(grad), 1 - shampoo)
  R = lerp(R, transpose(grad) @ grad, 1 - shampoo)
"""
    + body(rotate_text("QL", "L", "l") + "QL = lX3\n" + rotate_text("QR", "R", "r") + "QR = rX3\n")
    + """  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, (transpose(QL) @ grad @ QR) ^ 2, 1 - beta2)
  let u = (transpose(QL) @ m @ QR) / (1 - beta1 ^ step) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = decay(param, lr, weight_decay) - lr * (QL @ u @ transpose(QR))
}
"""
)
SHAMPOO = (
    """optimizer Shampoo(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-3) {
  state m : f32
  state L : f32[rows, rows]
  state R : f32[cols, cols]
  L = lerp(L, grad @ transpose(grad), 1 - beta2)
  R = lerp(R, transpose(grad) @ grad, 1 - beta2)
  let A = L + eps * sum(identity(rows) * L) / rows * identity(rows)
  let B = R + eps * sum(identity(cols) * R) / cols * identity(cols)
  m = lerp(m, grad, 1 - beta1)
"""
    + body(inverse_sqrt_text("A", "a") + "let A2 = A @ aR\n" + inverse_sqrt_text("A2", "c"))
    + body(inverse_sqrt_text("B", "b") + "let B2 = B @ bR\n" + inverse_sqrt_text("B2", "d"))
    + """  let u = cR @ m @ dR
  param = param - lr * norm(m) / max(norm(u), 1e-12) * u
}
"""
)
DION = (
    """optimizer Dion(lr, mu = 0.95, weight_decay = 0.01, eps = 1e-8) {
  let r = max(1, floor(0.25 * min(rows, cols)))
  state M : f32
  state Q : f32[cols, r] = normal
  let B = M + grad
  let X = B @ Q
  let pY = X / max(norm(X, over = rows), 1e-20)
  let pX0 = pY * rsqrt(max(max(sum(abs(transpose(pY) @ pY), over = columns)), 1))
"""
    + body(polar_text("p", 8))
    + """  let R = transpose(B) @ pX8
  M = B - (1 - mu) * (pX8 @ transpose(R))
  let length = norm(R, over = rows)
  Q = select(length > 0, R / (length + eps), Q)
  param = decay(param, lr, weight_decay) - lr * sqrt(rows / cols) * (pX8 @ transpose(Q))
}
"""
)
TEXTS = {"SOAP": SOAP, "Shampoo": SHAMPOO, "Dion": DION}


# --- NumPy, in the dtype of what it gets ---


def polar(x, steps):
    for _ in range(steps):
        a = x.T @ x
        x = 1.875 * x + x @ (-1.25 * a + 0.375 * (a @ a))
    return x


def rotate(q, s):
    one = np.eye(len(s), dtype=s.dtype)
    b = q.T @ (s @ q) * (len(s) / np.maximum(np.sum(one * s), s.dtype.type(1e-30)))
    diagonal = np.sum(one * b, axis=0, keepdims=True)
    d = diagonal - diagonal.T
    e = (1 - one) * b * d / (d**2 + 4 * b**2 + s.dtype.type(1e-30))
    e = 0.5 * (e - e.T)
    length = np.sqrt(np.linalg.norm(e @ e))
    return polar(q + q @ (e * np.minimum(1, 1.1 / np.maximum(length, s.dtype.type(1e-12)))).astype(s.dtype), 3)


def inverse_sqrt(x):
    bound = np.maximum(np.abs(x).sum(axis=1).max(), x.dtype.type(1e-30))
    y, z = x / bound, np.eye(len(x), dtype=x.dtype)
    p = y
    for b, a in np.array(CANS, x.dtype):
        z = b * z + a * p @ z
        y = b * y + a * y @ p
        p = z @ y
    return x.dtype.type(0.5) / np.sqrt(bound) * (z + z.T)


class Soap:
    def __init__(self, param, name, block):
        rows, cols = param.shape
        self.m, self.v = np.zeros_like(param), np.zeros_like(param)
        self.L, self.R = np.zeros((rows, rows), param.dtype), np.zeros((cols, cols), param.dtype)
        self.QL, self.QR = np.eye(rows, dtype=param.dtype), np.eye(cols, dtype=param.dtype)

    def step(self, param, grad, step, lr):
        f = param.dtype.type
        self.L += f(0.05) * (grad @ grad.T - self.L)
        self.R += f(0.05) * (grad.T @ grad - self.R)
        self.QL, self.QR = rotate(self.QL, self.L), rotate(self.QR, self.R)
        self.m += f(0.05) * (grad - self.m)
        self.v += f(0.05) * ((self.QL.T @ grad @ self.QR) ** 2 - self.v)
        fix = f(1 - 0.95**step)
        u = (self.QL.T @ self.m @ self.QR) / fix / (np.sqrt(self.v / fix) + f(1e-8))
        return param * f(1 - lr * 0.01) - f(lr) * (self.QL @ u @ self.QR.T)


class Shampoo:
    def __init__(self, param, name, block):
        rows, cols = param.shape
        self.m = np.zeros_like(param)
        self.L, self.R = np.zeros((rows, rows), param.dtype), np.zeros((cols, cols), param.dtype)

    def step(self, param, grad, step, lr):
        f = param.dtype.type
        self.L += f(0.05) * (grad @ grad.T - self.L)
        self.R += f(0.05) * (grad.T @ grad - self.R)
        a, b = (x + f(1e-3) * np.trace(x) / f(len(x)) * np.eye(len(x), dtype=x.dtype) for x in (self.L, self.R))
        self.m += f(0.1) * (grad - self.m)
        u = inverse_sqrt(a @ inverse_sqrt(a)) @ self.m @ inverse_sqrt(b @ inverse_sqrt(b))
        return param - f(lr) * np.linalg.norm(self.m) / np.maximum(np.linalg.norm(u), f(1e-12)) * u


class Dion:
    def __init__(self, param, name, block):
        rows, cols = param.shape
        r = int(max(1, np.floor(0.25 * min(rows, cols))))
        self.M = np.zeros_like(param)
        first = block * cols * r
        self.Q = normal(name, first + cols * r)[first:].reshape(cols, r).astype(param.dtype)

    def step(self, param, grad, step, lr):
        f = param.dtype.type
        b = self.M + grad
        x = b @ self.Q
        y = x / np.maximum(np.linalg.norm(x, axis=0, keepdims=True), f(1e-20))
        p = polar(y / np.sqrt(np.maximum(np.abs(y.T @ y).sum(axis=1).max(), f(1))), 8)
        r = b.T @ p
        self.M = b - f(0.05) * (p @ r.T)
        length = np.linalg.norm(r, axis=0, keepdims=True)
        self.Q = np.where(length > 0, r / (length + f(1e-8)), self.Q)
        rows, cols = param.shape
        return param * f(1 - lr * 0.01) - f(lr * np.sqrt(rows / cols)) * (p @ self.Q.T)


ORACLES = {"SOAP": Soap, "Shampoo": Shampoo, "Dion": Dion}
