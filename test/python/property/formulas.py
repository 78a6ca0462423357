"""The field's formulas in NumPy, written from the papers and not from stepc."""

import numpy as np

# (a, b, c) of X ← aX + (bA + cA²)X with A = XXᵀ.
SIMPLE = [(3.4445, -4.7750, 2.0315)] * 5  # Jordan et al., Muon
QUINTIC = [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
           (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012)]  # fmt: skip
POLAR_EXPRESS = [  # arXiv 2505.16932, without a safety factor
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
]
CANS = [(8.4703, -25.1081, 18.6293), (4.1828, -3.1087, 0.5806), (3.9619, -2.9541, 0.5630),
        (3.2866, -2.4647, 0.5074), (2.2737, -1.6447, 0.4162)]  # arXiv 2506.10935  # fmt: skip
CUBIC5 = [(3.3656576, -3.3420992, 0), (2.5744352, -1.4957376, 0), (2.5368962, -1.4312570, 0),
          (2.4418906, -1.2764040, 0), (2.2230472, -0.9630650, 0)]  # arXiv 2606.00371  # fmt: skip
DEEPSEEKV4 = [(3.4445, -4.7750, 2.0315)] * 8 + [(2, -1.5, 0.5)] * 2  # DeepSeek-V4's technical report, equation 28
SETS = {"simple": SIMPLE, "quintic": QUINTIC, "polar_express": POLAR_EXPRESS, "cans": CANS, "cubic5": CUBIC5,
        "deepseekv4": DEEPSEEKV4}  # fmt: skip


def rounded(values, bits):
    """To nearest even with that many significant bits; None keeps float64."""
    if bits is None:
        return values
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def orthogonalize(x, steps, eps=1e-7, bits=None):
    """Newton–Schulz on the smaller side; `bits` rounds the input and every product to so many."""
    x = rounded(np.asarray(x, np.float64), bits)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = rounded(x / max(np.sqrt((x * x).sum()), eps), bits)
    for a, b, c in steps:
        gram = rounded(x @ x.T, bits)
        poly = rounded(b * gram + c * (gram @ gram), bits)
        x = rounded(a * x + poly @ x, bits)
    return x.T if tall else x


def adamw(p, m, v, g, step, lr, beta1, beta2, eps, decay):
    """Loshchilov and Hutter; decoupled decay with the learning rate."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    mean, square = m / (1 - beta1**step), v / (1 - beta2**step)
    return p - lr * decay * p - lr * mean / (np.sqrt(square) + eps), m, v
