"""`row` and `col` are the element's place in its block, wherever the block's elements are, held against NumPy bit for bit.

Results are whole numbers, or are rounded once, so that NumPy in f32 has the same bits.
"""

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed
from test_generality import PLACEMENTS, inputs, manifest, step

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

RULES = {
    # Where shards are: the strict lower triangle, and a number of each element.
    "Shards": """(lr) {
  state n : f32
  n = 10 * row + col
  param = select(row > col, param, grad)
}""",
    # One value per row, per column and per block.
    "Lines": """(lr) {
  state r : f32[rows]
  state c : bf16[cols]
  state t : f32[]
  r = r + row * 2
  c = max(c, col / 2)
  t = sum(select(row == col, grad, 0))
  param = param + r - c
}""",
    # Terms of reductions along each axis, and of numbers alone.
    "Sums": """(lr) {
  state r : f32[rows]
  state c : f32[cols]
  state t : f32[]
  r = max(grad * (col - 2), over = columns)
  c = sum(select(row < 2, grad, 0), over = rows)
  t = sum(row) - max(col)
  param = param
}""",
    # Beside a product of whole matrices, on both of its sides.
    "Matrix": """(lr) {
  state o : f32
  let masked = select(row < 2, 0, grad + col)
  o = (row + 1) * orthogonalize(masked, coefficients = [(1, 0, 0)], precision = f32)
  param = param - o * col
}""",
}  # fmt: skip
STEPS = 2
ALL = PLACEMENTS | {"flat": ("line", (9, 7), ["flat"]), "bucket": ("grid", (9, 7), ["flat", "R"])}


def bucketed(document):
    """Puts each flat parameter in a bucket of its own, with an end that is padding."""
    for mesh in document["meshes"]:
        ranks = np.prod([axis["size"] for axis in mesh["axes"]])
        mesh["ranks"] = [*range(ranks)]
    for each in document["parameters"]:
        if "flat" in each["placements"]:
            ways = next(mesh for mesh in document["meshes"] if mesh["name"] == each["mesh"])["axes"]
            ways = np.prod([axis["size"] for axis, p in zip(ways, each["placements"], strict=True) if p == "flat"])
            size = int(-(-(np.prod(each["shape"]) + 3) // ways) * ways)
            document.setdefault("buckets", []).append(
                {"name": each["name"], "size": size, "parameters": [{"name": each["name"], "offset": 1}]}
            )
    return document


def spec(blocks=""):
    text = "".join(f"optimizer {name}{rule}\n" for name, rule in RULES.items())
    return f"{text}{blocks}route {{\n" + "".join(f'  {name}(lr = 0.125) for "{name}.*"\n' for name in RULES) + "}\n"


def expected(rule, param, grad):
    """What NumPy makes of one block: what tensors have after the steps."""
    rows, cols = param.shape
    row, col = np.arange(rows, dtype=np.float32)[:, None], np.arange(cols, dtype=np.float32)[None, :]
    if rule == "Shards":
        return {"n": 10 * row + col, "param": np.where(row > col, param, grad)}
    if rule == "Lines":
        total = np.array([[np.float32(np.where(row == col, grad, 0).astype(np.float64).sum())]])
        for step in range(1, STEPS + 1):
            param = (param + 2 * step * row) - col / 2
        return {"r": 2 * STEPS * row, "c": col / 2, "t": total, "param": param}
    if rule == "Sums":
        below = np.where(row < 2, grad, 0).astype(np.float64).sum(axis=0, keepdims=True)
        return {"r": (grad * (col - 2)).max(axis=1, keepdims=True), "c": below.astype(np.float32),
                "t": np.array([[rows * (rows - 1) // 2 - (cols - 1)]]), "param": param}  # fmt: skip
    return {}


def blocks_of(values, sizes=None):
    """The blocks of a parameter, or of what there is of each: stacks by their first axis, parts by `sizes` rows."""
    if values.ndim == 3:
        return list(values)
    return np.split(values, np.cumsum(sizes)[:-1]) if sizes else [values]


def check(found, document, tensors, sizes=None):
    for parameter in document["parameters"]:
        name = parameter["name"]
        rule = name.split(".")[0]
        param, grad = (tensors[f"{role}:{name}"].array().astype(np.float32) for role in ("param", "grad"))
        blocks = [expected(rule, *each) for each in zip(blocks_of(param, sizes), blocks_of(grad, sizes), strict=True)]
        for what in blocks[0]:
            role = f"param:{name}" if what == "param" else f"state:{name}:{what}"
            wanted = np.concatenate([block[what].astype(np.float32).ravel() for block in blocks])
            assert found[role].array().astype(np.float32).tobytes() == wanted.tobytes(), role


def close(found, reference, rule="Matrix."):
    """Whether the results of whole matrices are those of the reference in float64."""
    for role in [role for role in found if role.split(":")[1].startswith(rule)]:
        scale = 1 + np.abs(reference[role].array()).max(initial=0)
        assert np.abs(found[role].array() - reference[role].array()).max(initial=0) <= 1e-5 * scale, role


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v2", "emulated:sm_80", "interpret"])
def test_positions_count_in_the_block(tmp_path, target, monkeypatch):
    monkeypatch.setattr("test_generality.PLACEMENTS", ALL)
    document = bucketed(manifest(RULES, ALL))
    tensors = inputs(document)
    found, reference = step(tmp_path, spec(), document, tensors, "--target", target, steps=STEPS)
    check(found, document, tensors)
    close(found, reference)


@pytest.mark.parametrize("placements", [["S(0)", "R"], ["_S(0, 2)", "S(0)"], ["S(1)", "S(0)"], ["R", "flat"]])
def test_positions_count_in_parts_of_a_fused_matrix(tmp_path, placements):
    document = manifest(RULES, ["whole"])
    for parameter in document["parameters"]:
        parameter |= {"mesh": "grid", "shape": [12, 7], "placements": placements}
    bucketed(document)
    tensors = inputs(document)
    found, reference = step(tmp_path, spec('blocks "*" rows 4, 3, 5\n'), document, tensors, steps=STEPS)
    check(found, document, tensors, [4, 3, 5])
    close(found, reference)


def test_positions_of_many_columns(tmp_path):
    """Chunks begin in the middle of rows, and at rows that are no multiple of what a chunk has."""
    document = manifest(["Shards", "Sums"], ["whole"])
    for parameter, shape in zip(document["parameters"], [[5, 40000], [700, 301]], strict=True):
        parameter |= {"shape": shape, "placements": ["flat"]}
    bucketed(document)
    tensors = inputs(document)
    text = spec().replace('"Lines.*"', '"Lines.*" if present').replace('"Matrix.*"', '"Matrix.*" if present')
    found, _ = step(tmp_path, text, document, tensors, steps=STEPS)
    check(found, document, tensors)


def test_slabs_are_refused(tmp_path):
    """Rows of a slab are not those of its block. Positions on shards do not matter."""
    document = manifest(["M"], ["rows"])
    call = "orthogonalize({}, coefficients = [(1, 0, 0)], precision = f32)"
    text = f"""optimizer M(lr) {{
  let o = {call.format('grad + row')}
  param = param - lr * col * o
}}
route {{ M(lr = 0.125) for rest }}
"""
    options = "--numerics", "fast", "--strategy", "*=slabs"
    found, reference = step(tmp_path, text, document, inputs(document), *options)
    close(found, reference, "M.")
    with pytest.raises(CompilerFailed, match="rule M counts rows, columns or elements where blocks have to be whole"):
        step(tmp_path, text.replace("* col * o", f"* {call.format('o * row')}"), document, inputs(document), *options)
