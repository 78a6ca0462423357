"""States that start at random numbers, or at the identity matrix: equal to NumPy bit for bit, wherever the elements are.

NumPy's Philox (draws.py) is held against the known answers of Random123.
"""

import json

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from draws import normal, philox
from test_generality import PLACEMENTS, inputs, manifest, step
from test_positions import ALL, bucketed

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

def test_philox_has_the_known_answers():
    ones, pi = 2**32 - 1, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    for counter, key, wanted in [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (pi[:4], pi[4:], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]:
        assert philox([counter], key).tolist() == [wanted]


RULES = {
    # Element by element: stacks of matrices may be joined, and shards may begin anywhere.
    "Shards": """(lr) {
  state z : f32 = normal
  state half : bf16 = normal
  z = z + grad
  param = param - lr * z * half
}""",
    # Beside a product of whole matrices, which reads what was drawn.
    "Matrix": """(lr, seed = 5) {
  state z : f32 = normal
  state one : f32 = identity
  one = one * 0.5
  z = orthogonalize(z, coefficients = [(1, 0, 0)], precision = f32)
  param = param - lr * z * one
}""",
}
STEPS = 2


def spec(seed, blocks=""):
    text = "".join(f"optimizer {name}{rule}\n" for name, rule in RULES.items())
    return f"""{text}{blocks}route {{
  Shards(lr = 0.125, seed = {seed}) for "Shards.*"
  Matrix(lr = 0.125) for "Matrix.*"
}}
"""


def check(found, reference, document, tensors, seed):
    for parameter in document["parameters"]:
        name, shape = parameter["name"], parameter["shape"]
        param, grad = (tensors[f"{role}:{name}"].array().astype(np.float32) for role in ("param", "grad"))
        if name.startswith("Matrix"):
            assert np.abs(found[f"state:{name}:z"].array() - reference[f"state:{name}:z"].array()).max(initial=0) < 1e-5
            scale = np.float32(0.5**STEPS)
            one = np.broadcast_to(np.eye(*shape[-2:], dtype=np.float32) * scale, shape)
            assert found[f"state:{name}:one"].array().astype(np.float32).tobytes() == one.tobytes(), name
            continue
        z, half = (normal(name, grad.size, seed % 2**32, call).reshape(shape) for call in (0, 1))
        half = tensor(half, "bf16").array().astype(np.float32)
        for _ in range(STEPS):
            z = z + grad
            param = param - np.float32(0.125) * z * half
        for role, wanted in {"param": param, "z": z, "half": half}.items():
            role = f"param:{name}" if role == "param" else f"state:{name}:{role}"
            assert found[role].array().astype(np.float32).tobytes() == wanted.tobytes(), role


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v2", "emulated:sm_80", "interpret"])
def test_draws_are_those_of_numpy(tmp_path, target, monkeypatch):
    monkeypatch.setattr("test_generality.PLACEMENTS", ALL)
    document = bucketed(manifest(RULES, ALL))
    tensors = inputs(document)
    seed = {"cpu": 0, "interpret": 65536 * 41 + 3}.get(target, 2**32 + 2**31 + 9)
    found, reference = step(tmp_path, spec(seed), document, tensors, "--target", target, steps=STEPS)
    check(found, reference, document, tensors, seed)


# Rows and columns of the parts of a matrix of 12 x 7.
ROWS, COLUMNS = np.arange(12), np.arange(7)
DIVISIONS = {
    "rows 4, 3, 5": [(ROWS[:4], COLUMNS), (ROWS[4:7], COLUMNS), (ROWS[7:], COLUMNS)],
    "rows each 4": [(ROWS[:4], COLUMNS), (ROWS[4:8], COLUMNS), (ROWS[8:], COLUMNS)],
    "columns 3, 4": [(ROWS, COLUMNS[:3]), (ROWS, COLUMNS[3:])],
    "repeat 2 rows 4, 2": [(ROWS[[0, 1, 2, 3, 6, 7, 8, 9]], COLUMNS), (ROWS[[4, 5, 10, 11]], COLUMNS)],
}


@pytest.mark.parametrize("placements", [["S(0)", "R"], ["_S(0, 2)", "S(0)"], ["S(1)", "S(0)"], ["R", "flat"]])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("division", DIVISIONS)
def test_draws_of_parts_and_stacks(tmp_path, placements, batch, division):
    """The matrices of a stack, and the parts of fused matrices, are counted one after another."""
    document = manifest(RULES, ["whole"])
    for parameter in document["parameters"]:
        parameter |= {"mesh": "grid", "shape": [2] * batch + [12, 7], "placements": placements, "batch_axes": batch}
    tensors = inputs(bucketed(document))
    found, reference = step(tmp_path, spec(7, f'blocks "*" {division}\n'), document, tensors, steps=STEPS)
    parts = [np.ix_(range(2), *part) if batch else np.ix_(*part) for part in DIVISIONS[division]]

    def placed(name, seed, call=0):
        """What is drawn, each number where its element is."""
        drawn, at = np.zeros((max(batch * 2, 1), 12, 7), np.float32), 0
        numbers = normal(name, drawn.size, seed, call)
        for matrix in drawn:
            for rows, cols in DIVISIONS[division]:
                size = rows.size * cols.size
                matrix[np.ix_(rows, cols)] = numbers[at : at + size].reshape(rows.size, cols.size)
                at += size
        return drawn.reshape([2] * batch + [12, 7])

    param, grad = (tensors[f"{role}:Shards.whole"].array().astype(np.float32) for role in ("param", "grad"))
    z, half = placed("Shards.whole", 7), tensor(placed("Shards.whole", 7, 1), "bf16").array().astype(np.float32)
    for _ in range(STEPS):
        z = z + grad
        param = param - np.float32(0.125) * z * half
    for role, wanted in {"param:Shards.whole": param, "state:Shards.whole:z": z}.items():
        assert found[role].array().astype(np.float32).tobytes() == wanted.tobytes(), role
    z, drawn = found["state:Matrix.whole:z"].array(), placed("Matrix.whole", 5).astype(np.float64)
    assert np.abs(z - reference["state:Matrix.whole:z"].array()).max() < 1e-5
    for part in parts:
        blocks = drawn[part].reshape(max(batch * 2, 1), -1)
        # A step of (1, 0, 0) divides by the norm.
        blocks = blocks / np.sqrt((blocks**2).sum(axis=1, keepdims=True))
        assert np.abs(z[part].reshape(blocks.shape) - blocks).max() < 1e-5


def test_operations_that_nothing_reads_change_no_draws(tmp_path):
    """Whether a rule sees blocks does not depend on what is left out."""
    document = manifest(["Shards"], ["whole"])
    document["parameters"][0] |= {"shape": [12, 7]}
    text = "optimizer Shards" + RULES["Shards"] + '\nblocks "*" columns 3, 4\nroute {\n  Shards(lr = 0.125) for rest\n}\n'
    found, reference = step(tmp_path, text, document, inputs(document))
    other, again = step(tmp_path, text.replace("  z = z +", "  let r = rms(grad)\n  z = z +"), document, inputs(document))
    more, _ = step(tmp_path, text.replace("  z = z +", "  metric size = rms(grad)\n  z = z +"), document, inputs(document))
    role = "state:Shards.whole:half"
    assert found[role].data == other[role].data == more[role].data
    for one in (reference, again):
        assert np.abs(one[role].array() - found[role].array()).max() < 0.02  # of bf16


def test_trainers_are_told_that_elements_differ(tmp_path):
    """A trainer that does not know which elements a rank holds must not draw for them."""
    (tmp_path / "m.json").write_text(json.dumps(manifest(["Shards"], ["rows"])))
    text = "optimizer Shards" + RULES["Shards"] + "\nroute {\n  Shards(lr = 0.125) for rest\n}\n"
    for start, expected in {" = normal": False, "": True}.items():
        (tmp_path / "s.optim").write_text(text.replace(" = normal", start))
        found = json.loads(stepc("check", tmp_path / "s.optim", "-m", tmp_path / "m.json", "--json"))
        assert [route["elementwise"] for route in found["routes"]] == [expected]


def test_draws_have_the_distribution():
    drawn = normal("w", 1 << 16).astype(np.float64)
    assert abs(drawn.mean()) < 4 / 256
    assert abs((drawn**2).mean() - 1) < 4 * np.sqrt(2) / 256
    assert np.abs(drawn).max() < 6
    other = normal("v", 1 << 16)
    assert abs((drawn * other).mean()) < 4 / 256


def test_a_resumed_run_draws_nothing(tmp_path):
    document = manifest(RULES, PLACEMENTS)
    tensors = inputs(document)
    whole, _ = step(tmp_path, spec(3), document, tensors, steps=4)
    files = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "half.safetensors"
    save(files[2], tensors)
    half = run(*files, tmp_path / "between.safetensors", steps=2)
    save(files[2], half | {name: one for name, one in tensors.items() if name.startswith("grad:")})
    # Another seed changes nothing any more.
    files[0].write_text(spec(4))
    resumed = run(*files, tmp_path / "out.safetensors", steps=2)
    assert {name: one.data for name, one in resumed.items()} == {name: one.data for name, one in whole.items()}
    del half["state:Shards.rows:step"]
    save(files[2], half | {name: one for name, one in tensors.items() if name.startswith("grad:")})
    with pytest.raises(CompilerFailed, match=r"expected no tensor 'state:Shards.rows:z' before the first step, because 'z' "
                       r"starts at random numbers, found one"):  # fmt: skip
        run(*files, tmp_path / "out.safetensors", steps=2)
