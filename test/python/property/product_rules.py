"""The library's optimizers that multiply matrices, and what NumPy makes of them from the same formulas.

SOAP and Shampoo take products in the place of QR and of roots: `rotate` and `inverse_sqrt` below.
"""

import numpy as np
from test_random_starts import normal

CANS = [(5.182504, -5.126830), (2.586121, -0.641539), (2.567364, -0.639106), (2.520560, -0.633023), (2.410759, -0.618682),
        (2.188335, -0.589309), (1.859576, -0.544999), (1.589020, -0.507581), (1.505165, -0.495780), (1.492556, -0.492593)]  # fmt: skip


# The files of the library, each with its imports.
TEXTS = {name: f'import "stepc/{name.lower()}.optim"\n' for name in ("SOAP", "Shampoo", "Dion")}


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
