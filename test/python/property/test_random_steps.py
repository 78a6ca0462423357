"""`uniform()` and `stochastic(x)`: equal to NumPy bit for bit, wherever elements are, and random enough."""

import json
import math

import numpy as np
import pytest
from cases import random_batch
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from draws import halves, stochastic, uniform, words
from random_rules import ON_CORES
from test_bits import SEED, differences, step_both
from test_generality import inputs, manifest, step
from test_positions import ALL, bucketed
from test_random_starts import DIVISIONS
from tiers import draws as drawn_by_tier

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

RULES = {
    # Element by element: stacks of matrices may be joined, and shards may begin anywhere.
    "Round": """(lr) {
  state m : bf16
  m = stochastic(m + grad)
  param = stochastic(param - lr * m)
}""",
    # Elements are counted as they lie in memory, also where the rule sees the transpose.
    "Wide": """(lr) wide {
  state m : bf16
  m = stochastic(m + grad)
  param = stochastic(param - lr * m)
}""",
    "Noise": """(lr, seed = 5) {
  state z : f32 = normal
  state u : f32
  u = uniform()
  let other = uniform()
  param = param - lr * (u - other)
}""",
    # A parameter that takes what a state stores is not rounded by chance itself, also where sizes choose it.
    "Same": """(lr) {
  state m : bf16
  m = stochastic(m + grad)
  param = select(numel < 20, m + 0 * param, m)
}""",
    # Numbers that reductions and operations on matrices read, and nothing else.
    "Direct": """(lr) {
  state t : f32[]
  state r : f32[rows]
  state p : f32[rows, rows]
  t = sum(uniform())
  r = max(transpose(transpose(uniform())), over = columns)
  p = uniform() @ transpose(grad)
  param = param - lr * grad
}""",
    # Beside products of whole matrices: what is rounded is kept in f32, too.
    "Matrix": """(lr) {
  state o : f32
  state z : bf16
  state p : f32[rows, rows]
  state q : bf16[rows, rows]
  o = orthogonalize(grad, coefficients = [(1, 0, 0)], precision = f32)
  p = o @ transpose(o)
  q = stochastic(q + p)
  z = stochastic(z + o)
  param = stochastic(param - lr * o)
}""",
}
STEPS = 2
LR = np.float32(0.125)


def spec(seed, blocks=""):
    text = "".join(f"optimizer {name}{rule}\n" for name, rule in RULES.items())
    return f"""{text}{blocks}route {{
  Round(lr = 0.125, seed = {seed}) for "Round.*"
  Wide(lr = 0.125, seed = {seed}) for "Wide.*"
  Same(lr = 0.125, seed = {seed}) for "Same.*"
  Direct(lr = 0.125, seed = {seed}) for "Direct.*"
  Noise(lr = 0.125) for "Noise.*"
  Matrix(lr = 0.125, seed = {seed}) for "Matrix.*"
}}
"""


def values(tensors, role):
    return tensors[role].array().astype(np.float32)


def in_order(shape):
    """Elements are counted in the order of memory."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def check(found, name, tensors, dtype, seed, numbers=in_order):
    """Compares a parameter and its states after STEPS steps. `numbers` gives the number of each element."""
    param, grad = (values(tensors, f"{role}:{name}") for role in ("param", "grad"))

    def drawn(step, call, shape=param.shape, of=halves):
        return of(name, np.prod(shape, dtype=int), step, seed, call)[numbers(shape)]

    if name.startswith("Direct"):
        blocks, grads = (x.reshape(-1, *param.shape[-2:]) for x in (np.zeros_like(param), grad))
        u, v, w = (uniform(drawn(STEPS, call, of=words)).reshape(blocks.shape) for call in range(3))
        sums = np.array([math.fsum(one.reshape(-1).tolist()) for one in u], np.float32)
        assert values(found, f"state:{name}:t").tobytes() == sums.tobytes(), name
        assert values(found, f"state:{name}:r").tobytes() == v.max(axis=2).tobytes(), name
        product = (w.astype(np.float64) @ grads.astype(np.float64).transpose(0, 2, 1)).reshape(-1)
        assert np.abs(values(found, f"state:{name}:p").reshape(-1) - product).max() < 1e-5, name
        return
    wanted = {"m": np.float32(0), "z": np.float32(0), "q": np.float32(0)}
    exact = dtype == "f32"
    for at in range(1, STEPS + 1):
        if name.startswith(("Round", "Wide")):
            wanted["m"] = stochastic(wanted["m"] + grad, drawn(at, 0))
            new = param - LR * wanted["m"]
            param = new if exact else stochastic(new, drawn(at, 1))
        elif name.startswith("Same"):
            param = wanted["m"] = stochastic(wanted["m"] + grad, drawn(at, 0))
        elif name.startswith("Noise"):
            wanted["u"] = uniform(drawn(at, 1, of=words))  # behind the draw of a start
            new = param - LR * (wanted["u"] - uniform(drawn(at, 2, of=words)))
            param = values({"": tensor(new, dtype)}, "")
        else:
            o, p = (values(found, f"state:{name}:{state}") for state in ("o", "p"))  # equal in each step
            wanted["q"] = stochastic(wanted["q"] + p, drawn(at, 0, p.shape))
            wanted["z"] = stochastic(wanted["z"] + o, drawn(at, 1))
            param = param - LR * o if exact else stochastic(param - LR * o, drawn(at, 2))
    for state in {"Round": "m", "Wide": "m", "Same": "m", "Noise": "u", "Matrix": "zq"}[name.split(".")[0]]:
        assert values(found, f"state:{name}:{state}").tobytes() == wanted[state].tobytes(), (name, state)
    assert values(found, f"param:{name}").tobytes() == param.astype(np.float32).tobytes(), name


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v2", "emulated:sm_80", "interpret"])
def test_bits_are_those_of_numpy(tmp_path, target, dtype, monkeypatch):
    monkeypatch.setattr("test_generality.PLACEMENTS", ALL)
    document = bucketed(manifest(RULES, ALL))
    for parameter in document["parameters"]:
        parameter["dtype"] = dtype
    tensors = inputs(document)
    seed = {"cpu": 0, "interpret": 65536 * 41 + 3}.get(target, 2**32 + 2**31 + 9)
    found, _ = step(tmp_path, spec(seed), document, tensors, "--target", target, steps=STEPS)
    for parameter in document["parameters"]:
        drawn = 5 if parameter["name"].startswith("Noise") else seed % 2**32
        check(found, parameter["name"], tensors, dtype, drawn)


@pytest.mark.parametrize("placements", [["S(0)", "R"], ["S(1)", "S(0)"], ["R", "flat"]])
@pytest.mark.parametrize("division", DIVISIONS)
def test_parts_of_fused_matrices(tmp_path, placements, division):
    """The parts are counted one after another, as they are for what states start at."""
    document = manifest(["Round", "Noise"], ["whole"])
    for parameter in document["parameters"]:
        parameter |= {"mesh": "grid", "shape": [12, 7], "placements": placements, "dtype": "bf16"}
    tensors = inputs(bucketed(document))
    text = spec(7, f'blocks "*" {division}\n')
    for rule in RULES.keys() - {"Round", "Noise"}:
        text = text.replace(f'  {rule}(lr = 0.125, seed = 7) for "{rule}.*"\n', "")
    found, _ = step(tmp_path, text, document, tensors, steps=STEPS)
    numbers, at = np.zeros((12, 7), int), 0
    for rows, cols in DIVISIONS[division]:
        numbers[np.ix_(rows, cols)] = at + np.arange(rows.size * cols.size).reshape(rows.size, cols.size)
        at += rows.size * cols.size
    for name, seed in (("Round.whole", 7), ("Noise.whole", 5)):
        check(found, name, tensors, "bf16", seed, lambda shape: numbers)


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80", "interpret"])
def test_random_rules_on_random_meshes(tmp_path, target):
    """What one rank computes, whatever else a rule has. The seed is that of test_bits.py."""
    seen = ""
    for index in range(drawn_by_tier(2)):
        seed = f"{SEED}-chances-{index}-{target}"
        batch = random_batch(seed, 8, chances=True, forms=ON_CORES if ":" in target else True)
        many, one = step_both(batch, tmp_path / str(index), True, "--target", target)
        assert not differences(many, one), seed
        seen += (tmp_path / str(index) / "spec.optim").read_text()
    assert "stochastic(" in seen or "uniform()" in seen


def test_a_resumed_run_and_large_step_counts(tmp_path):
    document = manifest(RULES, ["rows", "tiles"])
    for parameter in document["parameters"]:
        parameter["dtype"] = "bf16"
    tensors = inputs(document)
    grads = {name: one for name, one in tensors.items() if name.startswith("grad:")}
    whole, _ = step(tmp_path, spec(3), document, tensors, steps=4)
    files = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "half.safetensors"
    save(files[2], tensors)
    half = run(*files, tmp_path / "between.safetensors", steps=2)
    save(files[2], half | grads)
    resumed = run(*files, tmp_path / "out.safetensors", steps=2)
    assert not differences(resumed, whole)
    count = half["state:Noise.rows:step"]
    count.data = np.array(3 * 2**16 + 7, np.int64).tobytes()
    save(files[2], half | grads)
    found = run(*files, tmp_path / "out.safetensors", steps=1)["state:Noise.rows:u"].array()
    assert (found.reshape(-1) == uniform(words("Noise.rows", found.size, 3 * 2**16 + 8, 5, 1))).all()


FILES = ("s.optim", "m.json", "in.safetensors", "out.safetensors")


def run_one(tmp_path, body, grad, routes=("seed = 1",), names=None):
    """Runs a step of a rule for a parameter per route, all with this gradient. Returns their states `s`."""
    names = names or [f"w{i}" for i in range(len(routes))]
    claims = "".join(f'  O({route}) for "{name}"\n' for route, name in zip(routes, names, strict=True))
    common = {"shape": list(grad.shape), "dtype": "f32", "mesh": "line", "placements": ["S(0)"]}
    parameters = [{"name": name} | common for name in names]
    meshes = [{"name": "line", "axes": [{"name": "x", "size": 2}]}]
    document = {"version": 1, "meshes": meshes, "parameters": parameters}
    text = f"optimizer O() {{\n{body}\n  param = param\n}}\nroute {{\n{claims}}}\n"
    (tmp_path / "s.optim").write_text(text)
    (tmp_path / "m.json").write_text(json.dumps(document))
    given = {f"param:{name}": tensor(np.zeros(grad.shape), "f32") for name in names}
    given |= {f"grad:{name}": tensor(grad, "f32") for name in names}
    save(tmp_path / "in.safetensors", given)
    found = run(*(tmp_path / file for file in FILES), steps=1)
    return [values(found, f"state:{name}:s") for name in names]


ROUND = "  state s : bf16\n  s = stochastic(grad)"


def test_results_are_neighbours(tmp_path):
    """Of every exponent, with all kinds of bits below those of bf16."""
    bits = np.arange(0, 2**32, 50021, dtype=np.uint32)
    bits = np.concatenate([bits, bits & np.uint32(0xFFFF0000), bits | np.uint32(0xFFFF)])
    special = [0, 0x80000000, 1, 0x807FFFFF, 0x7F7FFFFF, 0xFF7F0001, 0x7F800000, 0xFF800000, 0x7F800001,
               0x7FFFFFFF, 0xFFFFFFFF]  # fmt: skip
    bits = np.concatenate([bits, np.array(special, np.uint32)])
    x = bits.view(np.float32)
    (found,) = run_one(tmp_path, ROUND, x)
    assert (np.isnan(found) == np.isnan(x)).all()
    is_number = ~np.isnan(x)
    low = bits & np.uint32(0xFFFF0000)
    high = (low.astype(np.uint64) + (low != bits) * np.uint64(1 << 16)).astype(np.uint32)  # exact values stay
    at = found.view(np.uint32)
    assert ((at == low) | (at == high))[is_number].all()
    assert (at == bits)[is_number & (bits & np.uint32(0xFFFF) == 0)].all()  # infinities too
    wanted = stochastic(x, halves("w0", x.size, 1, 1))
    assert (wanted.view(np.uint32) == at)[is_number].all()


def test_errors_have_the_mean_0(tmp_path):
    x = np.random.default_rng(5).normal(size=(1000, 1000)).astype(np.float32)
    ulp = np.exp2(np.floor(np.log2(np.abs(x))) - 7).astype(np.float64)
    up = (x.view(np.uint32) & np.uint32(0xFFFF)) / 2.0**16  # how often the magnitude grows
    sigma = np.sqrt((ulp**2 * up * (1 - up)).sum())
    for found in run_one(tmp_path, ROUND, x, [f"seed = {seed}" for seed in range(10)]):
        assert abs((found.astype(np.float64) - x).sum()) < 4 * sigma
        assert abs((np.abs(found) > np.abs(x)).mean() - up.mean()) < 4e-3


def test_uniform_numbers_are_uniform(tmp_path):
    (found,) = run_one(tmp_path, "  state s : f32\n  s = uniform()", np.zeros((1000, 1000)))
    assert found.min() >= 0 and found.max() < 1
    assert (found * 2**24 == np.floor(found * 2**24)).all()
    assert abs(found.mean(dtype=np.float64) - 0.5) < 4 / np.sqrt(12) / 1000
    counts = np.bincount((found * 64).astype(int).reshape(-1), minlength=64)
    assert abs(((counts - 15625) ** 2 / 15625).sum() - 63) < 4 * np.sqrt(2 * 63)  # chi squared
    # The four elements of a counter, and rows, are not alike.
    for shift in (1, 2, 3, 4, 1000):
        a, b = found.reshape(-1)[shift:].astype(np.float64), found.reshape(-1)[:-shift].astype(np.float64)
        assert abs(((a - 0.5) * (b - 0.5)).mean()) < 4 / 12 / 1000


def test_draws_differ(tmp_path):
    """By the step, the parameter, the call and the seed."""
    text = "  state s : f32[]\n  let a = uniform()\n  s = sum(abs(a - {}))"
    grad = np.zeros((8, 8))
    assert run_one(tmp_path, text.format("uniform()"), grad)[0] > 1
    assert run_one(tmp_path, text.format("a"), grad)[0] == 0  # one call
    plain = "  state s : f32\n  s = uniform()"
    first, second = run_one(tmp_path, plain, grad, ["seed = 1"] * 2)
    assert (first != second).any()
    first, second = (run_one(tmp_path, plain, grad, [f"seed = {seed}"])[0] for seed in (1, 2))
    assert (first != second).any()
    steps = "  state s : f32\n  state before : f32\n  s = uniform() - before\n  before = uniform()"
    run_one(tmp_path, steps, grad)
    files = [tmp_path / file for file in FILES]
    first, second = (values(run(*files, steps=count), "state:w0:before") for count in (1, 2))
    assert (first != second).any()
    # A function has a draw of its own for each call and each turn.
    turns = "  state s : f32\n  let n = 0 * grad\n  repeat 3 {\n    n = n + noise()\n  }\n  s = n"
    body = turns + "\n  param = param\n}\ndef noise() = uniform()\noptimizer Unused() {"
    (found,) = run_one(tmp_path, body, grad)
    drawn = [uniform(words("w0", 64, 1, 1, call)).reshape(8, 8) for call in range(3)]
    assert (found == (drawn[0] + drawn[1]) + drawn[2]).all()


ROUND_ALONE = f"optimizer Round{RULES['Round']}\nroute {{\n  Round(lr = 1) for rest\n}}\n"


def test_parameters_of_f16_are_refused(tmp_path):
    document = manifest(["Round"], ["rows"])
    document["parameters"][0]["dtype"] = "f16"
    (tmp_path / "m.json").write_text(json.dumps(document))
    (tmp_path / "s.optim").write_text(ROUND_ALONE)
    expected = (
        "parameter 'Round.rows': expected a bf16 or f32 parameter, because optimizer Round rounds it by "
        "chance, found f16"
    )
    with pytest.raises(CompilerFailed, match=expected) as failure:
        stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json")
    assert "s.optim:4:11: note: it is rounded here" in str(failure.value)


def test_trainers_are_told_that_elements_differ(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(manifest(["Round"], ["rows"])))
    (tmp_path / "s.optim").write_text(ROUND_ALONE)
    found = json.loads(stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json", "--json"))
    assert [route["elementwise"] for route in found["routes"]] == [False]
