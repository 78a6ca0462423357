"""A NaN that a step stores is one NaN, whatever made it and wherever its element stands.

Additions, products and maxima of a CPU give the NaN of their first operand, and code for vectors and for
single elements may have operands in two orders. So an element's NaN depended on how many elements its rank
held.
"""

import json

import numpy as np
import pytest
from compiler import STEPC, Tensor, run, save, tensor
from test_bits import differences

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

MATRICES = {
    "product": "param = orthogonalize(grad, steps = 2, precision = f32)",
    "orthogonal": "param = param - orthogonalize(grad, steps = 2, precision = f32)",
    "gram": "param = orthogonalize(grad, steps = 3, precision = f16, form = gram)",
    "rows": "v = max(grad, over = columns)\n  w = mean(grad * param, over = columns)\n  param = param + v * w",
    "columns": "x = rms(grad, over = rows)\n  y = sum(param)\n  param = x * y * param",
}
STATES = {"v": "f32[rows]", "w": "f32[rows]", "x": "f32[cols]", "y": "f32[]", "m": "f32"}
ELEMENTS = 67  # four vectors and a tail, or other ones on each of several ranks
KINDS = {"f32": (np.uint32, 0x7FC00000), "bf16": (np.uint16, 0x7FC0), "f16": (np.uint16, 0x7E00)}
BODIES = {
    "sign": "param = sign(grad) * param",
    "sum": "param = param + grad",
    "maximum": "param = max(grad, min(param, m))\n  m = max(m, grad)",
    "adam": "m = lerp(m, grad, 0.1)\n  let s = sqrt(m * m) + 0.1\n  param = 0.9 * param - grad / s",
    "copy": "param = grad\n  m = grad",
    "copies": "param = grad * 1\n  m = select(grad > 0, grad, grad * (3 - 2)) + 0",
    "apart": "param = select(m > 0, param, 0.5)\n  m = m * grad",
    "kept": "let old = param\n  param = select(grad > 0, old, m)\n  m = select(grad > 0, m, old)",
}


def nans(dtype, generator, share, shape=(ELEMENTS,)):
    """Numbers, among them NaNs of both signs, quiet and signalling, with payloads."""
    words, quiet = KINDS[dtype]
    size = int(np.prod(shape))
    data = np.frombuffer(tensor(generator.normal(size=size), dtype).data, words).copy()
    exponent = quiet & quiet << 1  # without the quiet bit
    drawn = generator.integers(1, 2 * (quiet & ~exponent), size, dtype=np.int64)
    sign = generator.integers(0, 2, size) << (8 * data.itemsize - 1)
    spoiled = generator.random(size) < share
    data[spoiled] = (exponent | drawn | sign)[spoiled].astype(words)
    one = Tensor({"f32": "F32", "bf16": "BF16", "f16": "F16"}[dtype], shape, data.tobytes())
    assert np.isnan(one.array().reshape(-1)[spoiled]).all()
    return one


@pytest.mark.parametrize("target", ["cpu", "emulated:sm_80", "interpret"])
def test_all_meshes_store_one_nan(tmp_path, target):
    rules, claims, tensors = [], [], {}
    for name, body in BODIES.items():
        generator = np.random.default_rng(5)
        for dtype in KINDS:
            state = f"  state m : {dtype}\n" if "m" in body.split() else ""
            rules.append(f"optimizer {name}_{dtype}() {{\n{state}  {body}\n}}\n")
            claims.append(f'  {name}_{dtype}() for "{name}.{dtype}"\n')
            for role in (f"param:{name}.{dtype}", f"grad:{name}.{dtype}", f"state:{name}.{dtype}:m"):
                if state or not role.startswith("state"):
                    tensors[role] = nans(dtype, generator, 0.5)
    (tmp_path / "spec.optim").write_text("".join(rules) + "route {\n" + "".join(claims) + "}\n")
    save(tmp_path / "in.safetensors", tensors)
    found = {}
    for world, placement in ((1, "R"), (2, "R"), (3, "S(0)"), (5, "S(0)"), (7, "S(0)")):
        parameters = [{"name": f"{name}.{dtype}", "shape": [ELEMENTS], "dtype": dtype, "grad_dtype": dtype, "mesh": "m",
                       "placements": [placement]} for name in BODIES for dtype in KINDS]  # fmt: skip
        mesh = {"name": "m", "axes": [{"name": "x", "size": world}]}
        document = {"version": 1, "meshes": [mesh], "parameters": parameters}
        (tmp_path / "m.json").write_text(json.dumps(document))
        found[world] = run(tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors",
                           tmp_path / "out.safetensors", "--target", target)  # fmt: skip
        assert not differences(found[world], found[1]), f"{world} ranks"
    for name in BODIES:
        assert stored_nans({role: one for role, one in found[1].items() if f":{name}." in role}) > 60, name


def stored_nans(found):
    """How many there are; each must be the one."""
    count = 0
    for role, one in found.items():
        if one.dtype == "I64":
            continue
        words, quiet = next(kind for name, kind in KINDS.items() if name.upper() == one.dtype)
        data = np.frombuffer(one.data, words)[np.isnan(one.array().reshape(-1))]
        assert (data == quiet).all(), role
        count += len(data)
    return count


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_store_one_nan(tmp_path, name):
    """Also where a product or a reduction makes it, and nothing else comes behind."""
    body, shape = MATRICES[name], (12, 20)
    states = "".join(f"  state {s} : {kind}\n" for s, kind in STATES.items() if f"{s} = " in body)
    (tmp_path / "spec.optim").write_text(
        f"optimizer R() {{\n{states}  {body}\n}}\nroute {{ R() for rest }}\n"
    )
    generator = np.random.default_rng(6)
    roles = (f"{role}:w{i}" for i in range(3) for role in ("param", "grad"))
    save(
        tmp_path / "in.safetensors",
        {role: nans("f32", generator, 0.02 + 0.1 * (role[-1] == "2"), shape) for role in roles},
    )
    found = {}
    for world, placement in ((1, "R"), (2, "S(0)"), (3, "S(1)"), (5, "S(0)")):
        parameters = [
            {"name": f"w{i}", "shape": shape, "dtype": "f32", "mesh": "m", "placements": [placement]}
            for i in range(3)
        ]
        mesh = {"name": "m", "axes": [{"name": "x", "size": world}]}
        document = {"version": 1, "meshes": [mesh], "parameters": parameters}
        (tmp_path / "m.json").write_text(json.dumps(document))
        found[world] = run(tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors", tmp_path / "out.safetensors")
        assert not differences(found[world], found[1]), f"{world} ranks"
    assert stored_nans(found[1]) > 20
