"""The forms of orthogonalize: errors against float64, and what must hold to the last bit.

Errors are of matrices whose longer side is at least 1.5 times the shorter one, over spectra from flat to 1e-10. The Gram
form in f16 is compared with the standard form in bf16. STEPC_SEED repeats a run (its value is printed).
"""

import json
import os
import random

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, Tensor, run, save, tensor
from formulas import POLAR_EXPRESS, SIMPLE, orthogonalize
from test_slabs import matrix
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
SPECTRA = ("flat", 1e-2, 1e-4, 1e-7, 1e-10, "rank", "one large", "gauss")
SAFE = [(a / 1.01, b / 1.01**3, c / 1.01**5) for a, b, c in POLAR_EXPRESS]
SETS = {"simple": SIMPLE, "polar_express, steps = 5, safety = 1.01": SAFE}


def drawn(generator, rows, cols, spectrum):
    if spectrum == "gauss":
        return generator.normal(size=(rows, cols))
    if spectrum in ("rank", "one large"):
        small = min(rows, cols)
        left, right = (np.linalg.qr(generator.normal(size=(n, small)))[0] for n in (rows, cols))
        few = np.arange(small) < max(1, small // 4 if spectrum == "rank" else 1)
        return (left * np.where(few, 1.0, 0.0 if spectrum == "rank" else 1e-3)) @ right.T
    return matrix(generator, rows, cols, spectrum)


def results(folder, given, options, *command):
    """What each options' rule makes of each gradient: (options, name) → array. The parameters lie in shards."""
    rules, claims, parameters, tensors = [], [], [], {}
    for index, each in enumerate(options):
        rules.append(f"optimizer O{index}() {{\n  param = orthogonalize(grad, {each})\n}}\n")
        claims.append(f'  O{index}() for "{index}.*"\n')
        for name, values in given.items():
            parameters.append({"name": f"{index}.{name}", "shape": list(values.shape), "dtype": "f32",
                               "mesh": "m", "placements": ["S(0)"]})  # fmt: skip
            tensors[f"param:{index}.{name}"] = tensor(np.zeros(values.shape), "f32")
            tensors[f"grad:{index}.{name}"] = tensor(values, "f32")
    mesh = {"name": "m", "axes": [{"name": "x", "size": 2}]}
    manifest = {"version": 1, "meshes": [mesh], "parameters": parameters}
    spec, file = folder / "spec.optim", folder / "m.json"
    spec.write_text("".join(rules) + "route {\n" + "".join(claims) + "}\n")
    file.write_text(json.dumps(manifest))
    save(folder / "in.safetensors", tensors)
    found = run(spec, file, folder / "in.safetensors", folder / "out.safetensors", *command)
    return {
        (each, name): found[f"param:{index}.{name}"] for index, each in enumerate(options) for name in given
    }


# Targets, and how many matrices of each spectrum they orthogonalize: their products add up in different orders.
TARGETS = {"cpu": draws(1), "interpret": draws(4), "emulated:sm_90a,tensorcore": draws(1)}


@pytest.mark.parametrize("target", TARGETS)
def test_the_gram_form_in_f16_is_more_accurate_than_bf16(tmp_path, target, capsys):
    """The error of the Gram form in f16 is at most that of the standard form in bf16, in the geometric mean over the
    matrices of one spectrum. It is at most 1.5 times as large for every single matrix."""
    draw, generator = random.Random(f"{SEED}-forms-{target}"), np.random.default_rng([int(SEED), len(target)])
    given = {}
    for spectrum in SPECTRA:
        for index in range(TARGETS[target]):
            small = draw.randint(24, 72)
            large = draw.randint(-(-3 * small // 2), 4 * small)
            shape = (small, large) if draw.random() < 0.5 else (large, small)
            # Largest and smallest norms that f32 can hold, and that eps leaves alone.
            scale = 10.0 ** draw.choice((0, 0, -5, 20, 36))
            given[f"{spectrum}.{index}"] = np.float32(scale * drawn(generator, *shape, spectrum))
    every = []
    for coefficients, steps in SETS.items():
        (folder := tmp_path / coefficients[:6]).mkdir()
        forms = [
            f"coefficients = {coefficients}, {more}"
            for more in ("precision = bf16", "precision = f16, form = auto")
        ]
        found = results(folder, given, forms, "--target", target)
        for spectrum in SPECTRA:
            ratios = []
            for name in (name for name in given if name.startswith(f"{spectrum}.")):
                exact = orthogonalize(given[name], steps)
                standard, gram = (np.linalg.norm(found[form, name].array() - exact) for form in forms)
                ratios.append(gram / standard)
            every.append((coefficients, spectrum, float(np.exp(np.mean(np.log(ratios)))), max(ratios)))
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}, {target}: errors of gram in f16 divided by those of standard in bf16, mean and worst")
        for coefficients, spectrum, mean, worst in every:
            print(f"  {coefficients[:13]:13} {spectrum!s:9} {mean:.2f} {worst:.2f}")
    for coefficients, spectrum, mean, worst in every:
        assert mean <= 1 and worst <= 1.5, (coefficients, spectrum, mean, worst)


def test_ranks_of_larger_matrices(tmp_path, capsys):
    """Of 256 x 384, with equal singular values up to the rank. In the Gram form rounding adds to R where it is 0, so
    these are the hardest matrices. Polar Express needs two restarts for them."""
    generator, draw = np.random.default_rng([int(SEED), 6]), random.Random(f"{SEED}-ranks")
    left, right = (np.linalg.qr(generator.normal(size=(n, 256)))[0] for n in (256, 384))
    given = {f"{rank}": np.float32((left * (np.arange(256) < rank)) @ right.T) for rank in draw.sample(range(8, 257), 8)}
    ratios = {}
    for coefficients, steps in SETS.items():
        (folder := tmp_path / coefficients[:6]).mkdir()
        restarts = "" if steps is SIMPLE else ", restarts = [1, 3]"
        forms = [f"coefficients = {coefficients}, precision = {each}" for each in ("bf16", f"f16, form = gram{restarts}")]
        found = results(folder, given, forms)
        for name, x in given.items():
            exact = orthogonalize(x, steps)
            standard, gram = (np.linalg.norm(found[form, name].array() - exact) for form in forms)
            ratios[coefficients[:6], name] = gram / standard
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: by rank of 256:", {" ".join(key): round(float(one), 2) for key, one in ratios.items()})
    assert max(ratios.values()) <= 1.5, ratios


def test_norms_below_eps(tmp_path):
    """Such a matrix is divided by eps, so that little is left of it: f16 cuts off what is below 2^-25. The error is
    then at most that times the factors a of all steps, which is less than a thousandth of an orthogonal matrix."""
    generator, draw = np.random.default_rng([int(SEED), 5]), random.Random(f"{SEED}-below")
    given = {"zero": np.zeros((30, 50), np.float32)}
    for exponent in (-7, -8, -9, -10, -11, -13, -20, -30, -38):
        small = draw.randint(24, 48)
        x = generator.normal(size=(small, draw.randint(-(-3 * small // 2), 3 * small)))
        given[f"1e{exponent}"] = np.float32(10.0**exponent * x / np.linalg.norm(x))
    for coefficients, steps in SETS.items():
        (folder := tmp_path / coefficients[:6]).mkdir()
        forms = [f"coefficients = {coefficients}, precision = {each}" for each in ("bf16", "f16, form = auto")]
        found = results(folder, given, forms, "--target", "interpret")
        for name, x in given.items():
            exact = orthogonalize(np.float64(x), steps)
            standard, gram = (np.linalg.norm(found[form, name].array() - exact) for form in forms)
            cut = np.sqrt(x.size) * 2.0**-25 * np.prod([a for a, *_ in steps])
            assert gram <= max(1.5 * standard, 1.1 * cut), (coefficients, name, gram, standard, cut)
            assert cut <= 1e-3 * np.sqrt(min(x.shape)), (coefficients, name)
            if name == "zero":
                assert gram == standard == 0


def test_a_run_of_one_step_is_the_standard_step(tmp_path):
    """To the bit: with a restart behind each step there is no Q."""
    generator = np.random.default_rng(1)
    given = {"wide": generator.normal(size=(20, 33)), "tall": generator.normal(size=(33, 20))}
    for precision in ("f32", "bf16", "f16"):
        (folder := tmp_path / precision).mkdir()
        more = (f"precision = {precision}", f"precision = {precision}, form = gram, restarts = [1, 2, 3, 4]")
        for coefficients in ("simple", "cubic5"):
            forms = [f"coefficients = {coefficients}, {each}" for each in more]
            found = results(folder, given, forms)
            # c = 0 in the standard form puts b before it rounds X Xᵀ, and in the Gram form after.
            same = [found[forms[0], name] == found[forms[1], name] for name in given]
            assert all(same) if coefficients == "simple" else not any(same), (precision, coefficients)


@pytest.mark.parametrize("target", ["cpu", "interpret", "emulated"])
def test_auto_is_a_form_by_shape(tmp_path, target):
    generator = np.random.default_rng(2)
    shapes = {(4, 6): "gram", (6, 9): "gram", (9, 6): "gram", (5, 7): "standard", (5, 8): "gram", (8, 8): "standard",
              (17, 26): "gram", (17, 25): "standard", (1, 1): "standard", (1, 2): "gram"}  # fmt: skip
    given = {f"{rows}x{cols}": generator.normal(size=(rows, cols)) for rows, cols in shapes}
    forms = ["precision = f16, form = auto", "precision = f16, form = gram", "precision = f16"]
    found = results(tmp_path, given, forms, "--target", target)
    for (rows, cols), form in shapes.items():
        auto, gram, standard = (found[each, f"{rows}x{cols}"] for each in forms)
        assert auto == (gram if form == "gram" else standard), (rows, cols)
        if min(rows, cols) > 4:
            assert gram != standard, (rows, cols)


def test_the_sizes_of_numbers(tmp_path):
    """Zero gives zero. Very large and very small gradients stay within f16. NaN and infinity give NaN, as in the
    standard form."""
    generator = np.random.default_rng(3)
    x = np.float32(generator.normal(size=(12, 30)))
    given = {
        "zero": 0 * x,
        "huge": x * np.float32(1e37),
        "tiny": x * np.float32(1e-30),
        "small": x * np.float32(1e-5),
    }
    given |= {
        "nan": np.where(x == x[3, 4], np.float32(np.nan), x),
        "inf": np.where(x == x[3, 4], np.float32(np.inf), x),
    }
    forms = ["precision = f16, form = gram", "precision = f16"]
    found = results(tmp_path, given, forms)
    gram, standard = ({name: found[form, name].array() for name in given} for form in forms)
    assert found[forms[0], "zero"] == Tensor("F32", x.shape, bytes(4 * x.size))
    for name in ("huge", "small"):
        exact = orthogonalize(np.float64(given[name]), SIMPLE)
        assert np.linalg.norm(gram[name] - exact) <= 5e-3 * np.linalg.norm(exact), name
    assert np.isfinite(gram["tiny"]).all() and abs(gram["tiny"]).max() < 1e-5
    for name in ("nan", "inf"):
        assert (np.isnan(gram[name]) == np.isnan(standard[name])).all() and np.isnan(gram[name]).any(), name


@pytest.mark.parametrize("form", ["restarts = []", "restarts = [1]", "restarts = [2]", "restarts = [1, 3]"])
def test_f16_holds_what_the_bound_allows(tmp_path, form):
    """The longest runs that the bound allows have four steps."""
    generator, steps = np.random.default_rng(4), 4 if form == "restarts = []" else 5
    given = {
        f"{spectrum}.{small}": drawn(generator, small, 2 * small, spectrum)
        for spectrum in SPECTRA
        for small in (5, 24, 96)
    }
    options = f"precision = f16, steps = {steps}, form = gram, {form}"
    found = results(tmp_path, given, [options])
    largest = max(abs(one.array()).max() for one in found.values())
    assert largest < 2, largest  # NaN is not


def test_longer_runs_are_refused_in_f16(tmp_path):
    with pytest.raises(
        CompilerFailed, match="expected restarts that keep all numbers within f16, at most 65504"
    ):
        results(tmp_path, {"w": np.ones((3, 5))}, ["precision = f16, form = gram, restarts = [4]"])
