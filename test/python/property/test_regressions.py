"""Faults that the random tests have found, each as small as it became."""

import json
import re

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, Tensor, load, run, save, stepc, tensor

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")


def manifest(shape, sizes=(2,), placements=("S(0)",), batch=0):
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    parameter = {"name": "w", "shape": list(shape), "dtype": "f32", "mesh": "m", "placements": list(placements),
                 "batch_axes": batch}  # fmt: skip
    return {"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": [parameter]}


def files(folder, text, document):
    """Specification, manifest and tensors; the tensors are of the first parameter."""
    (folder / "spec.optim").write_text(text + 'route { R(lr = 0.5) for "*" }\n')
    (folder / "m.json").write_text(json.dumps(document))
    shape = document["parameters"][0]["shape"]
    generator = np.random.default_rng(2)
    save(folder / "in.safetensors",
         {name: tensor(generator.normal(size=shape), "f32") for name in ("param:w", "grad:w")})  # fmt: skip
    return folder / "spec.optim", folder / "m.json", folder / "in.safetensors"


def errors_in(found, reference):
    return {name: np.abs(found[name].array() - reference[name].array()).max() for name in reference}


@pytest.mark.parametrize("shape", [(5, 6, 5), (5, 5, 6)])
def test_coefficients_without_a_square(tmp_path, shape):
    """A step with c = 0 scaled its Gram matrix by a stage over the blocks' rows and columns, which are
    more than the Gram matrix has: memory behind it was overwritten."""
    text = """optimizer R(lr) {
  param = param - lr * orthogonalize(grad, precision = f32, coefficients = [(-0.9, -0.3, 0), (1.5, -0.5, 0)])
}
"""
    given = files(tmp_path, text, manifest(shape, batch=1))
    found = run(*given, tmp_path / "out.safetensors")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    assert max(errors_in(found, reference).values()) < 1e-6


def test_unused_values_do_not_travel(tmp_path):
    """The operand of an unused orthogonalize was sent back, and nothing read it."""
    text = """optimizer R(lr) {
  state s : f32[rows]
  let o = orthogonalize(select(param < grad, grad, s), precision = f32)
  s = 0.5 * s + mean(grad, over = columns)
  param = param - lr * grad
}
"""
    given = files(tmp_path, text, manifest((6, 4)))
    found = run(*given, tmp_path / "out.safetensors")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    assert max(errors_in(found, reference).values()) < 1e-6


def test_reductions_of_undeclared_stacks_are_refused(tmp_path):
    """They were accepted, and the plan was found inconsistent in the last pass."""
    text = "optimizer R(lr) {\n  param = param - lr * grad / norm(grad)\n}\n"
    given = files(tmp_path, text, manifest((3, 4, 2)))
    with pytest.raises(CompilerFailed, match="expected a matrix, a vector or a declared stack.*'w'.*3, 4, 2"):
        stepc("compile", given[0], "-m", given[1], "-o", tmp_path)


@pytest.mark.parametrize("placements", [("_S(0, 2)", "R", "S(0)"), ("_S(0, 2)", "S(0)", "_S(0, 2)"),
                                        ("_S(0, 2)", "S(0)", "S(0)"), ("_S(0, 4)", "_S(0, 2)", "S(0)")])  # fmt: skip
def test_factors_of_some_later_axes(tmp_path, placements):
    """The manifest allows a factor of the first few later axes; level 1 refused it."""
    text = "optimizer R(lr) {\n  param = param - lr * grad / norm(grad, over = rows)\n}\n"
    document = manifest((11, 3), (2, 2, 2), placements)
    given = files(tmp_path, text, document)
    if placements[2].startswith("_S"):  # no later axis is there to have cut
        with pytest.raises(CompilerFailed, match="/parameters/0/placements/2"):
            stepc("compile", given[0], "-m", given[1], "-o", tmp_path)
        return
    found = run(*given, tmp_path / "out.safetensors")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    assert max(errors_in(found, reference).values()) < 1e-6


@pytest.mark.parametrize("batch", [0, 1])
def test_elements_of_three_axes(tmp_path, batch):
    """`numel` of a parameter of three axes that nothing declares was one matrix's, not the parameter's."""
    given = files(tmp_path, "optimizer R(lr) {\n  param = param - lr * grad * numel\n}\n",
                  manifest((3, 4, 5), batch=batch))  # fmt: skip
    found = run(*given, tmp_path / "out.safetensors")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    assert max(errors_in(found, reference).values()) < 1e-5


REDUCED = [
    # Of one row: the memory for its partial result was that of the matrix's rows.
    "param = param - lr * grad / max(norm(grad, over = rows))",
    "param = param - lr * grad / max(1, sum(rms(grad, over = columns)))",
    "state c : f32[cols] = 1\n  c = c / mean(c) + norm(grad, over = rows)\n  param = param - lr * grad / c",
    "state r : f32[rows] = 1\n  r = r / rms(r) + norm(grad, over = columns)\n  param = param - lr * grad / r",
    # Conditions that cross: between shards and whole matrices, out of reductions, into both at once.
    "param = param - lr * select(grad > 0 and rms(grad) < 1, grad, 0)",
    "param = param - lr * select(grad > 0 or not (norm(grad, over = columns) < 1), grad, param)",
    "param = param - lr * select(param < mean(grad, over = rows) and step < 3, grad, 0)",
    "state c : f32[cols]\n  let s = select(step == 1, max(param), grad)\n  c = c + 1\n"
    "  param = select(c == 1, lr * s, param)",
    "state r : f32[rows]\n  let s = select(step == 1, max(param), grad)\n  r = r + 1\n"
    "  param = select(r == 1 or grad > 2, lr * s, param)",
    "state k : f32[]\n  let up = grad > param\n  k = k + sum(select(up, 1, 0 * grad))\n"
    "  param = param - lr * select(up and k > 20, grad, 0.5 * param)",
    "state m : f32\n  let old = m > 0\n  m = m + grad\n  let o = orthogonalize(m, precision = f32)\n"
    "  param = select(old, param, param - lr * o)",
    # States that take others as they are: no operation read what had to travel.
    "state a : f32[]\n  state b : f32[] = 2\n  a = b\n  param = param - lr * grad",
    "state a : bf16[rows] = 3\n  state b : f32[rows]\n  state c : f16[cols]\n  state d : f32[cols] = 1\n"
    "  let old = b\n  b = a\n  a = old\n  c = cast(d, f16)\n  param = param - lr * grad",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_an_untouched_master(tmp_path, dtype):
    """The parameter is its master rounded, also where the rule leaves both alone: the proof said so, and
    nothing wrote it."""
    text = "optimizer R(lr) {\n  master : f32\n  state m : f32\n  m = lerp(m, grad, lr)\n  param = param\n}\n"
    document = manifest((6, 4))
    document["parameters"][0]["dtype"] = dtype
    spec, path, tensors = files(tmp_path, text, document)
    values = np.random.default_rng(2).normal(size=(6, 4))
    save(tensors, {"param:w": tensor(values, dtype), "grad:w": tensor(values, dtype)})
    found = run(spec, path, tensors, tmp_path / "out.safetensors", steps=2)
    assert found["param:w"] == tensor(values, dtype)
    expected = 0.75 * tensor(values, dtype).array()
    assert np.abs(found["state:w:m"].array() - expected).max() < 1e-6


def many(parameters, size):
    """A manifest of several parameters: name → (shape, batch axes)."""
    listed = [{"name": name, "shape": list(shape), "dtype": "f32", "mesh": "m", "placements": ["S(0)"], "batch_axes": batch}
              for name, (shape, batch) in parameters.items()]  # fmt: skip
    return {"version": 1, "meshes": [{"name": "m", "axes": [{"name": "x", "size": size}]}], "parameters": listed}


STRATEGIES = ("owner", "gather")


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """By strategy what two ranks make of the rules, and what one rank and the reference do; all share
    what is compiled.
    """
    folder = tmp_path_factory.mktemp("crossed")
    spec, document, tensors = folder / "spec.optim", folder / "m.json", folder / "in.safetensors"
    rules = "".join(f"optimizer R{i}(lr = 0.5) {{\n  {body}\n}}\n" for i, body in enumerate(REDUCED))
    claims = "".join(f'  R{i}() for "w{i}.*"\n' for i in range(len(REDUCED)))
    spec.write_text(f"{rules}route {{\n{claims}}}\n")
    shapes = [((6, 4), 0), ((3, 5, 7), 1), ((40, 500), 0)]
    parameters = {f"w{i}.{j}": shape for i in range(len(REDUCED)) for j, shape in enumerate(shapes)}
    generator = np.random.default_rng(2)
    values = {f"{role}:{name}": tensor(generator.normal(size=shape), "f32")
              for name, (shape, _) in parameters.items() for role in ("param", "grad")}  # fmt: skip

    def step(output, copies, *options):
        save(tensors, {f"{name}.{copy}": one for copy in copies for name, one in values.items()})
        several = many({f"{name}.{copy}": shape for copy in copies for name, shape in parameters.items()}, 2)
        several["meshes"].append({"name": "one", "axes": [{"name": "x", "size": 1}], "ranks": [0]})
        for one in several["parameters"]:
            one["mesh"] = "one" if one["name"].endswith(".whole") else "m"
        document.write_text(json.dumps(several))
        found = run(spec, document, tensors, folder / output, *options)
        return {copy: {name.replace(f".{copy}", ""): one for name, one in found.items() if re.search(rf"\.{copy}(:|$)", name)}
                for copy in copies}  # fmt: skip

    forced = [word for strategy in STRATEGIES for word in ("--strategy", f"*.{strategy}={strategy}")]
    found = step("out.safetensors", (*STRATEGIES, "whole"), *forced)
    return found | {"reference": step("reference.safetensors", ("whole",), "--reference")["whole"]}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reductions_and_conditions_cross(crossed, strategy):
    """`check` accepted them, and a pass or the verifier of an operation did not."""
    found, reference = crossed[strategy], crossed["reference"]
    assert reference and found.keys() == reference.keys()
    assert {name: each.data for name, each in found.items()} == {
        name: each.data for name, each in crossed["whole"].items()
    }
    wrong = {name: error for name, error in errors_in(found, reference).items() if not error < 2e-5}
    assert not wrong


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_orthogonalize_of_every_magnitude(tmp_path, precision):
    """f16 was rounded to before it was normalized, and squares left the range of f32: the update was 0 or
    NaN. It is the same for a gradient and for any multiple of it (that is not below eps)."""
    text = f"optimizer R(lr) {{\n  param = param - lr * orthogonalize(grad, precision = {precision}, eps = 1e-30)\n}}\n"
    shapes = {"wide": (6, 10), "tall": (33, 20), "large": (200, 130)}
    magnitudes = {"1": 1, "1e-28": 1e-28, "1e-9": 1e-9, "1e5": 1e5, "1e20": 1e20, "1e30": 1e30, "3e38": 3e38}
    parameters = {f"{shape}.{m}": (shapes[shape], 0) for shape in shapes for m in magnitudes}
    spec, document, tensors = files(tmp_path, text, many(parameters, 2))
    values = {shape: np.random.default_rng(2).uniform(-1, 1, size) for shape, size in shapes.items()}
    given = {}
    for shape, size in shapes.items():
        for name, magnitude in magnitudes.items():
            given[f"param:{shape}.{name}"] = tensor(np.zeros(size), "f32")
            given[f"grad:{shape}.{name}"] = tensor(values[shape] * magnitude, "f32")
    save(tensors, given)
    found = run(spec, document, tensors, tmp_path / "out.safetensors")
    allowed = {"f32": 1e-5, "bf16": 0.05, "f16": 0.01}[precision]
    for shape in shapes:
        expected = found[f"param:{shape}.1"].array()
        assert np.linalg.norm(expected) > 0.3
        for name in magnitudes:
            error = np.linalg.norm(found[f"param:{shape}.{name}"].array() - expected)
            assert error <= allowed * np.linalg.norm(expected), f"{shape} times {name}"


def test_norms_of_every_magnitude(tmp_path):
    text = """optimizer R(lr) {
  state all : f32[]
  state mean : f32[]
  state r : f32[rows]
  state c : f32[cols]
  state big : f32[rows]
  all = norm(grad)
  mean = rms(grad)
  r = norm(grad, over = columns)
  c = rms(grad, over = rows)
  big = norm(param, over = columns)
  param = param + 0 * grad
}
"""
    shapes = {"small": (6, 10), "large": (300, 120)}
    magnitudes = {"1e-44": 1e-44, "1e-38": 1e-38, "1e-30": 1e-30, "1e-19": 1e-19, "1": 1, "1e19": 1e19, "1e36": 1e36}
    parameters = {f"{shape}.{m}": (shapes[shape], 0) for shape in shapes for m in magnitudes}
    given = files(tmp_path, text, many(parameters, 2))
    inputs = {}
    for name, (shape, _) in parameters.items():
        param = np.ones(shape)
        param[0, 0] = 3e38  # one row leaves the range, the others do not
        inputs[f"param:{name}"] = tensor(param, "f32")
        values = np.random.default_rng(2).uniform(-1, 1, shape)
        inputs[f"grad:{name}"] = tensor(values * magnitudes[name.split(".")[1]], "f32")
    save(given[2], inputs)
    found = run(*given, tmp_path / "out.safetensors")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    for name in reference:
        if not name.startswith("state:") or name.endswith(":step"):
            continue
        a, b = found[name].array(), reference[name].array()
        assert np.isfinite(a).all() and (a > 0).all(), name
        # Half the least f32 more: a subnormal result has few digits.
        assert (np.abs(a - b) <= 1e-6 * np.abs(b) + 1e-45).all(), name


@pytest.mark.parametrize("steps", [-3, 2**53 + 2, 2**63 - 1])
@pytest.mark.parametrize("options", [(), ("--reference",)])
def test_step_counts_that_cannot_be(tmp_path, steps, options):
    """The largest I64 overflowed in the step, and --reference wrote a count below 0."""
    spec, path, tensors = files(
        tmp_path, "optimizer R(lr) {\n  param = param - lr * step * grad\n}\n", manifest((6, 4))
    )
    save(tensors, load(tensors) | {"state:w:step": Tensor("I64", (), np.int64(steps).tobytes())})
    with pytest.raises(
        CompilerFailed, match=r"expected a number of steps from 0 to 2\^53 in 'state:w:step', found -?\d+"
    ):
        run(spec, path, tensors, tmp_path / "out.safetensors", *options)


@pytest.mark.parametrize("chip", ["x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_small_scalars_on_chips_without_their_type(tmp_path, dtype, chip):
    """A scalar was rounded to bf16 and then broadcast: on chips without bf16 LLVM called a function for it that no library has."""
    text = f"""optimizer R(lr) {{
  state s : {dtype}[]
  s = clamp(max(rows, cols) + 1 / 3, -8, 41)
  param = param - lr * s * orthogonalize(grad, precision = f32)
}}
"""
    given = files(tmp_path, text, manifest((40, 6)))
    found = run(*given, tmp_path / "out.safetensors", "--target", f"cpu:{chip}")
    reference = run(*given, tmp_path / "reference.safetensors", "--reference")
    assert found["state:w:s"].data == tensor(np.float32(40 + 1 / 3).reshape(()), dtype).data
    assert np.abs(found["param:w"].array() - reference["param:w"].array()).max() < 0.2
