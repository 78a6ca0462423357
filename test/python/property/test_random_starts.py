"""States that start at random numbers, or at the identity matrix: equal to NumPy bit for bit, wherever the elements are.

NumPy's Philox here is written from the paper (Salmon and others, SC 2011), and is held against the known answers of
Random123.
"""

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, tensor
from test_generality import PLACEMENTS, inputs, manifest, step
from test_positions import ALL, bucketed

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

FACTORS, GROWTH = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
MASK = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Four words for each counter, an array of shape (n, 4)."""
    words = np.array(counter, np.uint64).T.copy()
    keys = [int(word) for word in key]
    for _ in range(10):
        a, b = np.uint64(FACTORS[0]) * words[0], np.uint64(FACTORS[1]) * words[2]
        words = np.stack([
            (b >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]), b & MASK,
            (a >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]), a & MASK,
        ])  # fmt: skip
        keys = [(word + more) % 2**32 for word, more in zip(keys, GROWTH, strict=True)]
    return words.T


def test_philox_has_the_known_answers():
    ones, pi = 2**32 - 1, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    for counter, key, wanted in [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (pi[:4], pi[4:], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]:
        assert philox([counter], key).tolist() == [wanted]


def hashed(name):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return (state ^ (state >> 32)) % 2**32


def normal(name, count, seed=0, call=0):
    """The numbers of a parameter's elements."""
    total = np.full(count, 6 - (6 << 24), np.int64)
    for part in range(3):
        elements = np.arange(count, dtype=np.uint64)
        counters = np.stack([elements & MASK, elements >> np.uint64(32), np.full(count, 1, np.uint64),
                             np.full(count, 4 * call + part, np.uint64)], axis=1)  # fmt: skip
        total += (philox(counters, (seed, hashed(name))) >> np.uint64(8)).astype(np.int64).sum(axis=1)
    return total.astype(np.float32) * np.float32(2.0**-24)


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


@pytest.mark.parametrize("placements", [["S(0)", "R"], ["_S(0, 2)", "S(0)"], ["S(1)", "S(0)"], ["R", "flat"]])
@pytest.mark.parametrize("batch", [0, 1])
def test_draws_of_parts_and_stacks(tmp_path, placements, batch):
    """The matrices of a stack, and the parts of fused matrices, are counted one after another."""
    document = manifest(RULES, ["whole"])
    for parameter in document["parameters"]:
        parameter |= {"mesh": "grid", "shape": [2] * batch + [12, 7], "placements": placements, "batch_axes": batch}
    bucketed(document)
    tensors = inputs(document)
    blocks = 'blocks "Matrix.*" rows 4, 3, 5\n'
    found, reference = step(tmp_path, spec(7, blocks), document, tensors, steps=STEPS)
    for name in [name for name in found if name.endswith(":one")]:
        del found[name]
    shards = [each for each in document["parameters"] if each["name"].startswith("Shards")]
    check(found, reference, document | {"parameters": shards}, tensors, 7)
    z = found["state:Matrix.whole:z"].array()
    assert np.abs(z - reference["state:Matrix.whole:z"].array()).max() < 1e-5
    drawn, expected = normal("Matrix.whole", z.size, seed=5).reshape(-1, 12, 7), []
    begin = 0
    for matrix in drawn.reshape(-1, 12 * 7):
        at = 0
        for rows in (4, 3, 5):
            part = matrix[at : at + rows * 7].astype(np.float64)
            expected.append(part / np.sqrt((part**2).sum()))
            at += rows * 7
        begin += 1
    # The step of (1, 0, 0) divides by the norm, and does so again in the second step.
    assert np.abs(z.reshape(-1) - np.concatenate(expected)).max() < 1e-5


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
