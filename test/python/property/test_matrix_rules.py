"""Rules that multiply matrices, with states of sizes of their own: SOAP, Shampoo and Dion, held against NumPy, and random
ones against the float64 reference. All placements give the bits of one rank. STEPC_SEED repeats a run.
"""

import json
import os
import random
import re

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from product_rules import ORACLES, TEXTS
from random_layouts import random_meshes, random_placements
from test_generality import PLACEMENTS, inputs, manifest, step
from test_positions import bucketed
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
ONE = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
LR = 2.0**-6


def spec(names, more=""):
    claims = "".join(f'  {name}(lr = {LR}) for "{name}.*"\n' for name in names)
    return "".join(TEXTS[name] for name in names) + more + f"route {{\n{claims}}}\n"


def gradients(kind, shape, steps, seed):
    """Of each step: of all directions, of three, or zero in some rows and columns."""
    draw = np.random.default_rng(seed)
    for _ in range(steps):
        grad = draw.standard_normal(shape)
        if kind == "rank 3":
            grad = draw.standard_normal((shape[0], 3)) @ draw.standard_normal((3, shape[1]))
        elif kind == "partly zero":
            grad[shape[0] // 3 :: 2] = 0
            grad[:, : shape[1] // 4] = 0
        yield grad.astype(np.float32)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", ["gaussian", "rank 3", "partly zero"])
def test_steps_are_those_of_numpy(tmp_path, name, kind):
    """As near to float64 as NumPy's float32, up to a factor of 4, or to 1e-4 of the movement."""
    shapes = {f"{name}.wide": (12, 20), f"{name}.tall": (24, 10)}
    draw, steps = np.random.default_rng(5), 8
    starts = {each: draw.standard_normal(shape).astype(np.float32) for each, shape in shapes.items()}
    tensors = {f"param:{each}": tensor(start, "f32") for each, start in starts.items()}
    given = {each: list(gradients(kind, shape, steps, 7)) for each, shape in shapes.items()}
    for each, list_of in given.items():
        tensors |= {f"grad:{each}@{i + 1}": tensor(grad, "f32") for i, grad in enumerate(list_of)}
    parameters = [{"name": each, "shape": list(shape), "dtype": "f32", "mesh": "one", "placements": ["R"]} for each, shape in shapes.items()]
    (tmp_path / "s.optim").write_text(spec([name]))
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": parameters}))
    save(tmp_path / "in", tensors)
    found = run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out", steps=steps)
    for each, start in starts.items():
        ends = []
        for dtype in (np.float64, np.float32):
            param = start.astype(dtype)
            oracle = ORACLES[name](param, each, 0)
            for i, grad in enumerate(given[each]):
                param = oracle.step(param, grad.astype(dtype), i + 1, LR)
            ends.append(param.astype(np.float64))
        movement = np.linalg.norm(ends[0] - start)
        error = np.linalg.norm(found[f"param:{each}"].array() - ends[0])
        allowed = max(4 * np.linalg.norm(ends[1] - ends[0]), 1e-4 * movement)
        assert movement > 0.01 and error <= allowed, f"{each}: off by {error:.2g}, allowed {allowed:.2g}, moved {movement:.2g}"


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80", "interpret"])
def test_every_placement_has_the_bits_of_one_rank(tmp_path, target, monkeypatch):
    every = PLACEMENTS | {"flat": ("line", (9, 7), ["flat"]), "line": ("line", (1, 6), ["S(1)"]), "column": ("grid", (7, 1), ["S(0)", "R"])}
    monkeypatch.setattr("test_generality.PLACEMENTS", every)
    document = bucketed(manifest(TEXTS, every))
    tensors = inputs(document)
    found, reference = step(tmp_path, spec(TEXTS), document, tensors, "--target", target, steps=2)
    for each in document["parameters"]:
        each |= {"mesh": "one", "placements": ["R"]}
    document |= {"meshes": [ONE]}
    document.pop("buckets")
    alone, _ = step(tmp_path, spec(TEXTS), document, tensors, "--target", target, steps=2)
    different = [name for name in alone if alone[name].data != found[name].data]
    assert not different and alone.keys() == found.keys()
    for name, one in reference.items():
        error = np.abs(found[name].array() - one.array()).max(initial=0)
        assert error <= 2e-4 * (1 + np.abs(one.array()).max(initial=0)), f"{name} is off by {error:.2g}"


@pytest.mark.parametrize("first", [1, 2, 8])
def test_zero_gradients_do_no_harm(tmp_path, first):
    """Of all parameters in the first steps, and of one matrix of a stack in all of them."""
    steps, shape = first + 2, (3, 8, 6)
    parameters = [{"name": f"{name}.w", "shape": list(shape), "dtype": "f32", "mesh": "one", "placements": ["R"], "batch_axes": 1} for name in TEXTS]
    draw, tensors = np.random.default_rng(first), {}
    for name in TEXTS:
        tensors[f"param:{name}.w"] = tensor(np.ones(shape), "f32")
        for i in range(steps):
            grad = draw.standard_normal(shape) * (i >= first)
            grad[1] = 0
            tensors[f"grad:{name}.w@{i + 1}"] = tensor(grad, "f32")
    (tmp_path / "s.optim").write_text(spec(TEXTS))
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": parameters}))
    save(tmp_path / "in", tensors)
    found = run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out", steps=steps)
    decayed = {"SOAP": (1 - LR * 0.01) ** steps, "Dion": (1 - LR * 0.01) ** steps, "Shampoo": 1}
    for name, one in found.items():
        assert np.isfinite(one.array()).all(), name
    for name in TEXTS:
        after = found[f"param:{name}.w"].array()
        assert np.allclose(after[1], decayed[name], rtol=1e-5), name
        assert (np.abs(after[[0, 2]] - decayed[name]).max(axis=(1, 2)) > 1e-3).all(), name


# --- Transposes ---


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_transposes_keep_bits(tmp_path, dtype):
    """Of NaN, of zeros with a sign, and of all shapes: a state is what comes back, and what a product makes of rows."""
    text = f"""optimizer T(lr) {{
  state a : {dtype}[cols, rows]
  state s : {dtype}[1, rows]
  a = cast(transpose(cast(grad, {dtype})), {dtype})
  s = transpose(cast(max(grad, over = columns), {dtype}))
  param = cast(transpose(a), f32)
}}
route {{ T(lr = 1) for rest }}
"""
    shapes = [(1, 1), (1, 33), (33, 1), (31, 32), (32, 33), (70, 5), (64, 96), (129, 67)]
    draw, tensors, parameters = np.random.default_rng(3), {}, []
    for rows, cols in shapes:
        name = f"w{rows}x{cols}"
        grad = draw.standard_normal((rows, cols)).astype(np.float32)
        grad.reshape(-1)[:: max(1, grad.size // 5)] = np.resize([-0.0, np.inf, 0.0], grad.reshape(-1)[:: max(1, grad.size // 5)].shape)
        tensors[f"param:{name}"], tensors[f"grad:{name}"] = tensor(np.zeros_like(grad), "f32"), tensor(grad, "f32")
        parameters.append({"name": name, "shape": [rows, cols], "dtype": "f32", "mesh": "one", "placements": ["R"]})
    (tmp_path / "s.optim").write_text(text)
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": parameters}))
    save(tmp_path / "in", tensors)
    for target in ("cpu", "cpu:x86-64-v2", "interpret", "emulated:sm_80"):
        found = run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out", "--target", target)
        for rows, cols in shapes:
            name = f"w{rows}x{cols}"
            grad = tensor(tensors[f"grad:{name}"].array(), dtype).array()  # rounded
            assert found[f"param:{name}"].array().astype(np.float32).tobytes() == grad.astype(np.float32).tobytes(), (target, name)
            assert np.array_equal(found[f"state:{name}:a"].array(), grad.T), (target, name)
            assert np.array_equal(found[f"state:{name}:s"].array(), grad.max(axis=1)[None]), (target, name)


# --- Random rules ---


class Random:
    """A rule with products, transposes, identities and states of any two sizes."""

    SIZES = ("rows", "cols", "r", "3")

    def __init__(self, chosen, wide=False, draws=True):
        """`wide` rules see tall matrices transposed. Without `draws` no state starts at random numbers."""
        self.wide = " wide" * wide
        self.chosen, self.lines, self.values, self.states = chosen, [], {"grad": ("rows", "cols"), "param": ("rows", "cols")}, {}
        self.lines.append(f"let r = max(1, floor({chosen.choice(('0.5', '0.25', '0.9'))} * {chosen.choice(('min(rows, cols)', 'rows', 'cols'))}))")
        for i in range(chosen.randint(1, 3)):
            sizes = (chosen.choice(self.SIZES), chosen.choice(self.SIZES))
            start = chosen.choice(["", " = 0.5"] + [" = normal"] * draws + [" = identity"] * (sizes[0] == sizes[1]))
            self.lines.append(f"state s{i} : {chosen.choice(('f32', 'f32', 'bf16'))}[{sizes[0]}, {sizes[1]}]{start}")
            self.states[f"s{i}"] = self.values[f"cast(s{i}, f32)"] = sizes
        for i in range(chosen.randint(3, 8)):
            self.add(f"x{i}")
        for state, sizes in self.states.items():
            self.lines.append(f"{state} = lerp(cast({state}, f32), {self.of(sizes)}, 0.25)")
        self.lines.append(f"param = param - lr * {self.of(('rows', 'cols'))}")

    def add(self, name):
        kind = self.chosen.choice(("product", "product", "product", "transpose", "sum", "line", "element", "narrow"))
        value, sizes = self.chosen.choice(list(self.values.items()))
        if kind == "product" or kind == "narrow":
            fits = [(f"transpose({each})" if flip else each, other[::-1] if flip else other) for each, other in self.values.items() for flip in (0, 1)]
            left = self.chosen.choice((value, f"transpose({value})"))
            inner = sizes[1] if left == value else sizes[0]
            right, found = self.chosen.choice([each for each in fits if each[1][0] == inner] + [(f"identity({inner})", (inner, inner))])
            text, sizes = f"({left} @ {right}) / 4", (sizes[0] if left == value else sizes[1], found[1])
            if kind == "narrow":
                text = f"cast(cast(cast({left}, bf16) @ cast({right}, bf16), bf16), f32)"
        elif kind == "transpose":
            text, sizes = f"transpose({value})", sizes[::-1]
        elif kind == "sum":
            text, sizes = f"{value} / (1 + norm({value}))", sizes
        elif kind == "line" and "1" not in sizes:
            axis = self.chosen.choice(("rows", "columns"))
            text = f"{value} + {self.chosen.choice(('mean', 'max', 'rms'))}({value}, over = {axis})"
        else:
            text = f"clamp({value}, -1, 1) * 0.5"
        self.lines.append(f"let {name} = {text}")
        self.values[name] = sizes

    def of(self, sizes):
        """A value of these sizes that follows from what was made last."""
        same = [value for value, other in self.values.items() if other == sizes] + [f"transpose({value})" for value, other in self.values.items() if other == sizes[::-1]]
        last = list(self.values)[-1]
        return f"({self.chosen.choice(same) if same else '0.1'} + 0.1 * max({last}) * {self.chosen.choice(same) if same else self.ones(sizes)})"

    @staticmethod
    def ones(sizes):
        return f"sum(identity({sizes[0]}), over = columns) * sum(identity({sizes[1]}), over = rows)"

    def text(self):
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"optimizer R(lr){self.wide} {{\n{body}}}\nroute {{ R(lr = 0.125) for rest }}\n"


@pytest.mark.parametrize("part", range(4))
def test_random_rules_have_the_bits_of_one_rank(tmp_path, part):
    for index in range(draws(3)):
        chosen, draw = random.Random(f"{SEED}-{part}-{index}"), np.random.default_rng([int(SEED), part, index])
        rule, folder = Random(chosen, wide=chosen.random() < 0.4), tmp_path / str(index)
        folder.mkdir()
        (folder / "s.optim").write_text(rule.text())
        mesh = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4))))
        batch = chosen.randint(0, 1)
        shape = [chosen.randint(1, 3)] * batch + [chosen.randint(1, 12), chosen.randint(1, 12)]
        each = {"name": "w", "shape": shape, "dtype": "f32", "batch_axes": batch}
        many = {"mesh": mesh.name, "placements": random_placements(chosen, mesh, tuple(shape), list(range(len(shape))))}
        for name, meshes, place in (("many", [mesh.json()], many), ("one", [ONE], {"mesh": "one", "placements": ["R"]})):
            (folder / f"{name}.json").write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": [each | place]}))
        save(folder / "in", {"param:w": tensor(draw.standard_normal(shape), "f32")}
             | {f"grad:w@{i}": tensor(draw.standard_normal(shape) / 2, "f32") for i in (1, 2)})  # fmt: skip
        target = chosen.choice(("cpu", "interpret", "emulated:sm_80"))
        where = f"STEPC_SEED={SEED} {part} {index} on {target}, {many}, {shape}:\n{rule.text()}"
        files = [folder / "s.optim", folder / "one.json", folder / "in", folder / "out"]
        one = run(*files, "--target", "cpu", steps=2)
        reference = run(*files, "--reference", steps=2)
        files[1] = folder / "many.json"
        found = run(*files, "--target", target, steps=2)
        different = [name for name in one if one[name].data != found[name].data]
        assert not different and one.keys() == found.keys(), f"{where}\n{different}"
        for name, expected in reference.items():
            # bf16 rounds to 8 bits, and later operations see that.
            error, scale = np.abs(found[name].array() - expected.array()).max(initial=0), 1 + np.abs(expected.array()).max(initial=0)
            assert error <= (0.05 if "bf16" in rule.text() else 2e-3) * scale, f"{where}\n{name} is off by {error / scale:.2g}"


# --- Wide rules ---

SEEN = """optimizer Seen(lr) wide {
  let r = max(1, floor(rows / 2))
  state m : f32
  state L : f32[rows, rows] = identity
  state P : f32[r, cols]
  state longest : f32[rows]
  input weights : f32[cols] = 1
  master : f32
  L = lerp(L, grad @ transpose(grad), 0.25)
  m = lerp(m, L @ grad * weights + 0.01 * row - 0.02 * col, 0.5)
  longest = max(longest, max(m, over = columns))
  P = P + identity(r) @ P + max(mean(m, over = rows))
  let o = orthogonalize(m, precision = f32)
  metric sides = 1000 * rows + cols
  metric flipped = select(transposed, 1, 0)
  metric size = numel + norm(P @ transpose(m))
  param = param - lr * sqrt(cols / rows) * select(transposed or rows <= cols, o, 1e9 * o) / (1 + longest)
}
route { Seen(lr = 0.125) for rest }
"""


def run_transposed(folder, text, shape, draw, *options):
    """Steps a wide rule on a matrix and on its transpose: the results of both, and of the float64 reference."""
    folder.mkdir(exist_ok=True)
    (folder / "s.optim").write_text(text)
    given = {f"{role}:w": draw.standard_normal(shape).astype(np.float32) / 2 for role in ("param", "grad@1", "grad@2")}
    given = {name if "@" not in name else f"grad:w@{name[5]}": value for name, value in given.items()}
    results = []
    for flip in (False, True):
        tensors = {name: tensor(value.T if flip else value, "f32") for name, value in given.items()}
        if "input weights" in text:
            tensors["input:w:weights"] = tensor(np.arange(max(shape), dtype=np.float32) / max(shape), "f32")
        each = {"name": "w", "shape": list(shape[::-1] if flip else shape), "dtype": "f32", "mesh": "one", "placements": ["R"]}
        (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": [each]}))
        save(folder / "in", tensors)
        results.append(run(folder / "s.optim", folder / "m.json", folder / "in", folder / "out", *options, steps=2))
    return results


@pytest.mark.parametrize("target", ["cpu", "interpret", "emulated:sm_80"])
@pytest.mark.parametrize("shape", [(9, 9), (7, 12), (1, 5)])
def test_a_wide_rule_sees_a_tall_matrix_transposed(tmp_path, target, shape):
    wide, tall = run_transposed(tmp_path, SEEN, shape, np.random.default_rng(2), "--target", target)
    flipped = shape[0] != shape[1]
    assert wide["metric:w:flipped"].array() == 0 and tall["metric:w:flipped"].array() == flipped
    assert wide["metric:w:sides"].array() == 1000 * shape[0] + shape[1] == tall["metric:w:sides"].array()
    if not flipped:
        return
    assert tall["param:w"].array().shape == shape[::-1] and tall["state:w:P"].array().shape == (shape[1], max(1, shape[0] // 2))
    for name, one in wide.items():
        found = tall[name].array()
        assert name == "metric:w:flipped" or np.array_equal(found.T if found.ndim == 2 else found, one.array()), name


@pytest.mark.parametrize("part", range(2))
def test_random_wide_rules_have_the_bits_of_the_transpose(tmp_path, part):
    for index in range(draws(4)):
        chosen, draw = random.Random(f"{SEED}-wide-{part}-{index}"), np.random.default_rng([int(SEED), 77, part, index])
        rule = Random(chosen, wide=True, draws=False)
        rows = chosen.randint(1, 9)
        shape = (rows, rows + chosen.randint(1, 9))
        target = chosen.choice(("cpu", "interpret", "emulated:sm_80"))
        where = f"STEPC_SEED={SEED} {part} {index} on {target}, {shape}:\n{rule.text()}"
        wide, tall = run_transposed(tmp_path / str(index), rule.text(), shape, draw, "--target", target)
        for name, one in wide.items():
            found = tall[name].array()
            assert np.array_equal(found.T if found.ndim == 2 else found, one.array()), f"{where}\n{name}"


def test_wide_rules_of_all_placements_and_checkpoint_shapes(tmp_path):
    document = bucketed(manifest(["Seen"], PLACEMENTS))
    tensors = inputs(document)
    found, reference = step(tmp_path, SEEN.replace("  input weights : f32[cols] = 1\n", "").replace(" * weights", ""), document, tensors, steps=2)
    for name, one in reference.items():
        error = np.abs(found[name].array() - one.array()).max(initial=0)
        assert error <= 2e-3 * (1 + np.abs(one.array()).max(initial=0)), f"{name} is off by {error:.2g}"


def test_wide_rules_of_divided_parameters(tmp_path):
    """Elementwise ones, too: the block decides, and not the matrix that it is a part of."""
    text = "optimizer A(lr) wide {\n  state v : f32[rows]\n  v = max(abs(grad), over = columns)\n  param = param - lr * select(transposed, 2, 1) * grad / (1 + v)\n}\n"
    plain = "optimizer B(lr) wide {\n  param = param - lr * select(transposed, 2, 1) * grad\n}\n"
    (tmp_path / "s.optim").write_text(text + plain + 'route {\n  A(lr = 0.5) for "a*"\n  B(lr = 0.5) for "b*"\n}\n')
    mesh = {"name": "mesh", "axes": [{"name": "dp", "size": 2}]}
    parameters, tensors, draw = [], {}, np.random.default_rng(4)
    for name, shape, axis, size in (("wide", (16, 10), "rows", 8), ("tall", (24, 5), "rows", 12), ("columns", (12, 24), "columns", 8)):
        for rule in "ab":
            parameters.append({"name": f"{rule}.{name}", "shape": list(shape), "dtype": "f32", "mesh": "mesh", "placements": ["S(0)"], "blocks": {"axis": axis, "sizes": [size] * (shape[axis == "columns"] // size)}})
            tensors |= {f"{role}:{rule}.{name}": tensor(draw.standard_normal(shape), "f32") for role in ("param", "grad")}
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    save(tmp_path / "in", tensors)
    found = run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out")
    for name, factor in (("wide", 1), ("tall", 2), ("columns", 2)):
        for rule in "ab":
            param, grad = (tensors[f"{role}:{rule}.{name}"].array() for role in ("param", "grad"))
            parts = np.split(grad, param.shape[name == "columns"] // {"wide": 8, "tall": 12, "columns": 8}[name], axis=int(name == "columns"))
            largest = [np.broadcast_to(np.abs(part).max(axis=int(factor == 1), keepdims=True), part.shape) for part in parts]
            divisor = 1 + np.concatenate(largest, axis=int(name == "columns")) if rule == "a" else 1
            assert np.allclose(found[f"param:{rule}.{name}"].array(), param - 0.5 * factor * grad / divisor, atol=1e-6), (rule, name)


def test_blocks_of_both_orientations_are_refused(tmp_path):
    text = "optimizer A(lr) wide {\n  param = param - lr * grad @ transpose(grad) @ grad\n}\nroute { A(lr = 1) for rest }\n"
    (tmp_path / "s.optim").write_text(text)
    for sizes, wrong in (([2, 4], False), ([5, 6], False), ([2, 6], True)):
        each = {"name": "w", "shape": [sum(sizes), 4], "dtype": "f32", "mesh": "one", "placements": ["R"], "blocks": {"axis": "rows", "sizes": sizes}}
        (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": [each]}))
        if not wrong:
            assert "no errors" in stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json")
            continue
        with pytest.raises(CompilerFailed, match=r"parameter 'w': expected blocks that all have at most as many rows as columns, or all more, "
                           r"because optimizer A is wide, found 2 x 4 and 6 x 4"):  # fmt: skip
            stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json")


# --- Errors ---


def test_wrong_sizes_are_refused(tmp_path):
    def check(text, *parameters):
        (tmp_path / "s.optim").write_text(text)
        (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": [
            {"name": f"w{i}", "dtype": "f32", "mesh": "one", "placements": ["R"], **each} for i, each in enumerate(parameters)
        ]}))  # fmt: skip
        return stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json")

    half = "optimizer A(lr) {\n  let r = rows / 2\n  param = param - lr * sum(identity(r)) * grad\n}\nroute { A(lr = 1) for rest }\n"
    assert "no errors" in check(half, {"shape": [4, 3]})
    with pytest.raises(CompilerFailed, match=r"s.optim:2:3: error: expected a whole number from 1 to 2\^20 as the size 'r', found 2.5 "
                       r"for the blocks of parameter 'w0', 5 x 3"):  # fmt: skip
        check(half, {"shape": [5, 3]})
    square = "optimizer A(lr) {\n  state L : f32[rows, rows]\n  L = grad @ transpose(grad)\n  param = param - lr * L @ grad\n}\nroute { A(lr = 1) for rest }\n"
    assert "no errors" in check(square, {"shape": [6, 3], "blocks": {"axis": "rows", "sizes": [3, 3]}})
    with pytest.raises(CompilerFailed, match=r"parameter 'w0': expected blocks of one size, because optimizer A has matrices of other sizes "
                       r"for each block, found 4, 2 rows"):  # fmt: skip
        check(square, {"shape": [6, 3], "blocks": {"axis": "rows", "sizes": [4, 2]}})
    with pytest.raises(CompilerFailed, match=r"parameter 'w0': expected at most 8 GiB of state \"L\" of optimizer A, found 86 GiB for 151936 x "
                       r"151936 beside a matrix of 151936 x 768(.|\n)*where rows <= 8192"):  # fmt: skip
        check(square, {"shape": [151936, 768]})
    with pytest.raises(CompilerFailed, match="expected matrices, found 'w0'|matri"):
        check(square, {"shape": [7]})


EDGES = """optimizer A(lr) {
  let r = 1 + max(0, floor(rows / 8) - 1)
  state unused : f32[rows, r]
  state S : bf16[rows, rows] = identity
  S = cast(S @ cast(identity(rows) + 0.125 * grad @ transpose(grad), bf16), f32)
  param = param - lr * (identity(1) * grad + transpose(S) @ cast(grad, bf16))
}
route { A(lr = 0.125) for rest }
"""


def test_small_things_have_the_meaning_of_the_reference(tmp_path):
    """An identity of one row, a state of 16 bits as a factor, a maximum of zeros as a size, a state that nothing reads."""
    document = manifest(["A"], PLACEMENTS)
    tensors = inputs(document)
    found, reference = step(tmp_path, EDGES, document, tensors, steps=2)
    for name, one in reference.items():
        error = np.abs(found[name].array() - one.array()).max(initial=0)
        assert error <= 0.02 * (1 + np.abs(one.array()).max(initial=0)), f"{name} is off by {error:.2g}"


def test_blocks_inside_of_shards_keep_their_states(tmp_path):
    """Each block of a fused weight is whole on a rank, which is all that its states ask for."""
    text = "optimizer A(lr) {\n  state L : f32[rows, rows]\n  L = L + grad @ transpose(grad)\n  param = param - lr * L @ grad\n}\nroute { A(lr = 1) for rest }\n"
    (tmp_path / "s.optim").write_text(text)
    draw = np.random.default_rng(1)
    save(tmp_path / "in", {f"{role}:w": tensor(draw.standard_normal((8, 4)), "f32") for role in ("param", "grad")})
    found = []
    for size, placement in ((1, "R"), (2, "S(0)")):
        mesh = {"name": "mesh", "axes": [{"name": "dp", "size": size}]}
        each = {"name": "w", "shape": [8, 4], "dtype": "f32", "mesh": "mesh", "placements": [placement], "blocks": {"axis": "rows", "sizes": [4, 4]}}
        (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": [each]}))
        found.append(run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out", steps=2))
    assert {name: one.data for name, one in found[0].items()} == {name: one.data for name, one in found[1].items()}
    # Values of sizes of their own are shown whole.
    shown = stepc("run", tmp_path / "s.optim", "-m", tmp_path / "m.json", "--tensors", tmp_path / "in", "--watch", "A.L", "-o", tmp_path / "out")
    assert shown.count("[rows, rows] [4, 4]") == 2
    numbers = np.array([float(text) for text in re.findall(r"-?\d+\.\d+", shown)])
    assert all(np.abs(numbers - value).min() < 1e-6 for value in found[0]["state:w:L"].array().ravel() / 2), shown


WRITTEN = """def polar(x) {
  let X = x / max(norm(x), 1e-7)
  repeat (a, b, c) in [(3.4445, -4.775, 2.0315), (2.5, -1.5, 0.5), (1.5, -0.5, 0.125)] {
    let A = X @ transpose(X)
    X = (c * (A @ transpose(A)) + b * A) @ X + a * X
  }
  return X
}

optimizer Written(lr) {
  param = param - lr * polar(grad)
}

optimizer Builtin(lr) {
  let steps = orthogonalize(grad, precision = f32,
      coefficients = [(3.4445, -4.775, 2.0315), (2.5, -1.5, 0.5), (1.5, -0.5, 0.125)])
  param = param - lr * steps
}

route {
  Written(lr = 0.5) for "written"
  Builtin(lr = 0.5) for "builtin"
}
"""


@pytest.mark.parametrize("target", ["cpu", "interpret", "emulated:sm_80"])
def test_repeated_products_have_the_bits_of_the_builtin(tmp_path, target):
    """`orthogonalize` of a wide matrix in f32 multiplies, scales and adds as its formula is written."""
    draw, tensors, shape = np.random.default_rng(3), {}, (13, 29)
    param, grad = (draw.standard_normal(shape).astype(np.float32) for _ in range(2))
    for name in ("written", "builtin"):
        tensors |= {f"param:{name}": tensor(param, "f32"), f"grad:{name}": tensor(grad, "f32")}
    parameters = [{"name": name, "shape": list(shape), "dtype": "f32", "mesh": "one", "placements": ["R"]} for name in ("written", "builtin")]
    (tmp_path / "s.optim").write_text(WRITTEN)
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [ONE], "parameters": parameters}))
    save(tmp_path / "in", tensors)
    found = run(tmp_path / "s.optim", tmp_path / "m.json", tmp_path / "in", tmp_path / "out", "--target", target)
    written, builtin = (found[f"param:{name}"].array() for name in ("written", "builtin"))
    assert np.abs(written - param).max() > 1e-3
    np.testing.assert_array_equal(written.view(np.int32), builtin.view(np.int32))
