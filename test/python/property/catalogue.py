"""The optimizers of stepc's library as NumPy computes them, written from their papers.

Each oracle takes its state `s` (an empty dict before the first step), parameter, gradient, the number of the step from 1,
and lr. It computes in the dtype of the parameter, and returns the new parameter.
"""

import numpy as np


def rms(x):
    return np.sqrt(np.mean(x * x))


def ema(s, name, x, beta):
    s[name] = s.get(name, 0 * x)
    s[name] = s[name] + (1 - beta) * (x - s[name])
    return s[name]


def adam(s, g, t, beta1, beta2, eps):
    m, v = ema(s, "m", g, beta1), ema(s, "v", g * g, beta2)
    return m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)


def adamw(s, p, g, t, lr):
    return p * (1 - lr * 0.01) - lr * adam(s, g, t, 0.9, 0.999, 1e-8)


def nadamw(s, p, g, t, lr):
    m, v = ema(s, "m", g, 0.9), ema(s, "v", g * g, 0.999)
    ahead = 0.9 * m / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
    return p * (1 - lr * 1e-4) - lr * ahead / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def lion(s, p, g, t, lr):
    m = s.get("m", 0 * g)
    u = np.sign(0.9 * m + 0.1 * g)
    s["m"] = 0.99 * m + 0.01 * g
    return p - lr * u


def ademamix(s, p, g, t, lr):
    fast, slow, v = ema(s, "fast", g, 0.9), ema(s, "slow", g, 0.9999), ema(s, "v", g * g, 0.999)
    return p - lr * (fast / (1 - 0.9**t) + 2 * slow) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def ademamix_warm(s, p, g, t, lr):
    part = min(1, t / 5)
    fast, slow = (np.log(0.5) / np.log(beta) - 1 for beta in (0.9, 0.9999))  # as the authors' code says it
    beta3 = 0.5 ** (1 / ((1 - part) * fast + part * slow + 1)) if part < 1 else 0.9999
    fast, slow, v = ema(s, "fast", g, 0.9), ema(s, "slow", g, beta3), ema(s, "v", g * g, 0.999)
    return (p - lr * (fast / (1 - 0.9**t) + 2 * part * slow) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)).astype(p.dtype)


def laprop(s, p, g, t, lr):
    v = ema(s, "v", g * g, 0.999)
    m = ema(s, "m", g / (np.sqrt(v / (1 - 0.999**t)) + p.dtype.type(1e-15)), 0.9)
    return p - lr * m / (1 - 0.9**t)


def adopt(s, p, g, t, lr):
    if t == 1:
        s["v"] = g * g
        return p
    most = max(t - 1, 1) ** 0.25
    m = ema(s, "m", np.clip(g / np.maximum(np.sqrt(s["v"]), p.dtype.type(1e-6)), -most, most), 0.9)
    ema(s, "v", g * g, 0.9999)
    return p - lr * m


def lamb(s, p, g, t, lr):
    r = adam(s, g, t, 0.9, 0.999, 1e-6) + 0.01 * p
    length, stride = np.linalg.norm(p), np.linalg.norm(r)
    return p - lr * (length / stride if length > 0 and stride > 0 else 1) * r


def adam_mini(s, p, g, t, lr):
    m, v = ema(s, "m", g, 0.9), ema(s, "v", np.mean(g * g, axis=1, keepdims=True), 0.999)
    return p - lr * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def adam_mini_heads(s, p, g, t, lr):
    m, v = ema(s, "m", g, 0.9), ema(s, "v", np.mean(g * g), 0.999)
    return p - lr * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def c_adamw(s, p, g, t, lr):
    u = adam(s, g, t, 0.9, 0.999, 1e-6)
    mask = (u * g > 0).astype(p.dtype)
    return p - lr * u * mask / np.maximum(np.mean(mask), p.dtype.type(1e-3))


def mars(s, p, g, t, lr):
    c = g + 0.025 * 0.95 / 0.05 * (g - s.get("before", 0 * g))
    c = c / np.maximum(np.linalg.norm(c), p.dtype.type(1))
    s["before"] = g
    return p - lr * adam(s, c, t, 0.95, 0.99, 1e-8)


def schedule_free(s, p, g, t, lr):
    z = s.setdefault("z", p)
    v = ema(s, "v", g * g, 0.999)
    x = (p - (1 - 0.9) * z) / 0.9
    s["total"] = s.get("total", 0) + lr**2
    s["z"] = z - lr * g / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    x = x + lr**2 / s["total"] * (s["z"] - x)
    return s["z"] + 0.9 * (x - s["z"])


def adafactor(s, p, g, t, lr):
    weight, square = t**-0.8, g * g + p.dtype.type(1e-30)
    if g.ndim == 2 and min(g.shape) > 0:
        rows, cols = ema(s, "R", square.mean(1, keepdims=True), 1 - weight), ema(s, "C", square.mean(0, keepdims=True), 1 - weight)
        u = g / np.sqrt(rows / rows.mean()) / np.sqrt(cols)
    size = np.maximum(rms(p), p.dtype.type(1e-3)) * min(lr, t**-0.5)
    return p - size * u / np.maximum(rms(u), p.dtype.type(1))


def adafactor_vector(s, p, g, t, lr):
    u = g / np.sqrt(ema(s, "v", g * g + p.dtype.type(1e-30), 1 - t**-0.8))
    return p - np.maximum(rms(p), p.dtype.type(1e-3)) * min(lr, t**-0.5) * u / np.maximum(rms(u), p.dtype.type(1))


# --- Muon and its kin: iterations in the dtype, without the roundings to bf16 ---

KJ = [(3.4445, -4.775, 2.0315)] * 5
DEEPSEEK = [(3.4445, -4.775, 2.0315)] * 8 + [(2, -1.5, 0.5)] * 2
CANS12 = [(5.182503604966906, -5.178098480082684, 0), (2.586120737395915, -0.6479542005271643, 0),
          (2.567364126726186, -0.6454968804392178, 0), (2.520560084348265, -0.6393528082067044, 0),
          (2.410759275435182, -0.6248683598710716, 0), (2.1883348130094173, -0.5952022073798908, 0),
          (1.8595760874873613, -0.5504490972723968, 0), (1.589020160467417, -0.5126569802066718, 0),
          (1.5051653981684994, -0.5007377068751799, 0)] + [(1.5, -0.5, 0)] * 3  # fmt: skip


def newton_schulz(x, steps=KJ):
    x = x / np.maximum(np.linalg.norm(x), x.dtype.type(1e-7))
    flip = x.shape[0] > x.shape[1]
    x = x.T if flip else x
    for a, b, c in steps:
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if flip else x


def polar(x):
    left, values, right = np.linalg.svd(x.astype(np.float64), full_matrices=False)
    return (left * (values > 1e-12) @ right).astype(x.dtype)


def nesterov(s, g, mu):
    """Of an average: Jordan's."""
    return (1 - mu) * g + mu * ema(s, "m", g, mu)


def nesterov_sum(s, g, mu):
    s["m"] = mu * s.get("m", 0 * g) + g
    return g + mu * s["m"]


def tall(p):
    return max(1, p.shape[0] / p.shape[1]) ** 0.5


def muon(s, p, g, t, lr):
    return p - lr * tall(p) * newton_schulz(nesterov(s, g, 0.95))


def muon_moonlight(s, p, g, t, lr):
    return p * (1 - lr * 0.1) - lr * 0.2 * max(p.shape) ** 0.5 * newton_schulz(nesterov_sum(s, g, 0.95))


def muon_deepseek_v4(s, p, g, t, lr):
    return p * (1 - lr * 0.1) - lr * 0.18 * max(p.shape) ** 0.5 * newton_schulz(nesterov_sum(s, g, 0.95), DEEPSEEK)


def muon_clip(s, p, g, t, lr, most):
    return min(1, 100 / most) ** 0.5 * muon_moonlight(s, p, g, t, lr)


def muon_clip_query(s, p, g, t, lr, most, nope=3):
    gamma = min(1, 100 / most)
    return np.where(np.arange(len(p))[:, None] < nope, gamma**0.5, gamma).astype(p.dtype) * muon_moonlight(s, p, g, t, lr)


def muon_clip_key(s, p, g, t, lr, most, nope=3):
    gamma = min(1, 100 / most)
    return np.where(np.arange(len(p))[:, None] < nope, gamma**0.5, 1).astype(p.dtype) * muon_moonlight(s, p, g, t, lr)


def normuon(s, p, g, t, lr):
    o = newton_schulz(nesterov(s, g, 0.95))
    v = ema(s, "v", np.mean(o * o, axis=1, keepdims=True), 0.95)
    n = o / (np.sqrt(v) + p.dtype.type(1e-10))
    return p - lr * tall(p) * np.linalg.norm(o) / (np.linalg.norm(n) + p.dtype.type(1e-10)) * n


def adamuon(s, p, g, t, lr):
    o = newton_schulz(np.sign(nesterov(s, g, 0.95)))
    n = o / (np.sqrt(ema(s, "v", o * o, 0.95)) + p.dtype.type(1e-8))
    return p * (1 - lr * 0.01) - lr * 0.2 * p.size**0.5 / (np.linalg.norm(n) + p.dtype.type(1e-8)) * n


def muonh(s, p, g, t, lr):
    u = newton_schulz(nesterov_sum(s, g, 0.95))
    length = np.linalg.norm(p)
    w = p - lr * length / np.maximum(np.linalg.norm(u), p.dtype.type(1e-10)) * u
    return w / np.linalg.norm(w) * length


def muown(s, p, g, t, lr):
    def lengths(x):
        return np.linalg.norm(x, axis=1, keepdims=True)

    if t == 1:
        s["g"] = s["r"] = lengths(p)
    unit = p / s["g"]
    along = np.sum(g * unit, axis=1, keepdims=True)
    o = newton_schulz(nesterov_sum(s, s["g"] / s["r"] * (g - unit * along), 0.95))
    v = unit * s["r"] - lr * 0.2 * max(p.shape) ** 0.5 * o
    first, second = ema(s, "first", along, 0.9), ema(s, "second", along * along, 0.95)
    s["g"] = s["g"] - lr * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.95**t)) + p.dtype.type(1e-8))
    s["r"] = lengths(v)
    return s["g"] * v / s["r"]


def aurora(s, p, g, t, lr):
    u, (rows, cols) = nesterov(s, g, 0.95), p.shape
    if rows > cols:
        d = 1 / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), p.dtype.type(1e-7))
        once = newton_schulz(d * u, CANS12)
        squares = np.maximum(np.sum(once * once, axis=1, keepdims=True), p.dtype.type(1e-14))
        u = d * ((cols / rows) / squares) ** 0.5 * u
    return p * (1 - lr * 0.025) - lr * tall(p) * newton_schulz(u, CANS12)


def scion(s, p, g, t, lr):
    return (1 - lr) * p - lr * 50 * (p.shape[0] / p.shape[1]) ** 0.5 * newton_schulz(ema(s, "d", g, 0.9))


def scion_sign(s, p, g, t, lr):
    return (1 - lr) * p - lr * 3000 / p.shape[1] * np.sign(ema(s, "d", g, 0.9))


def polargrad(s, p, g, t, lr):
    m = ema(s, "m", g, 0.95)
    u = polar(m)
    return p - lr * np.sum(m * u) * u


def torch_muon(s, p, g, t, lr):
    return p * (1 - lr * 0.1) - lr * tall(p) * newton_schulz(nesterov(s, g, 0.95))


def torch_muon_match_rms(s, p, g, t, lr):
    return p * (1 - lr * 0.1) - lr * 0.2 * max(p.shape) ** 0.5 * newton_schulz(nesterov(s, g, 0.95))
