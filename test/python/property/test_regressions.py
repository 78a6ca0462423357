"""Faults that the random tests have found, each as small as it became."""

import json

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")


def manifest(shape, sizes=(2,), placements=("S(0)",), batch=0):
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    parameter = {"name": "w", "shape": list(shape), "dtype": "f32", "mesh": "m", "placements": list(placements),
                 "batch_axes": batch}  # fmt: skip
    return {"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": [parameter]}


def files(folder, text, document):
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
