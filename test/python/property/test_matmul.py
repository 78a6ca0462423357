"""`optim.matmul` in rules of level 1, which the language has no words for yet.

Random rules multiply what they have, transposed or not, and take norms of it. All targets give the same bits,
which are near NumPy's in float64; the compiler proves each program. STEPC_SEED repeats a run.
"""

import json
import os
import random

import numpy as np
import pytest
from bound import PARAMETER, Bound
from compiler import STEPC, stepc
from stepc._library import Library
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or "1"
RULES = draws(8)
TARGETS = ("cpu", "interpret", "emulated:sm_80")
SPEC = "optimizer A(lr) { param = param - lr * grad }\nroute { A(lr = 0.5) for rest }\n"
FULL = ("rows", "cols")


def type_of(kind):
    if kind == ("1", "1"):
        return "tensor<1x1xf32>"
    return "tensor<?x?xf32>" if kind == FULL else f"tensor<?x?xf32, #optim.kind<[{', '.join(kind)}]>>"


class Rule:
    """The body of a rule as text, and what it computes in float64."""

    def __init__(self, rng, gradient):
        self.lines, self.numbers, self.kinds = [], {"%arg1": gradient.astype(np.float64)}, {"%arg1": FULL}
        self.rng = rng
        products = [self.multiply() for _ in range(rng.randint(1, 5))]
        self.result = self.add("optim.splat %arg2 :", FULL, np.full(gradient.shape, 0.5), "tensor<?x?xf32>")
        for value in products:  # each has a part in the result
            if self.kinds[value] == FULL:
                update = value
            else:
                norm = self.add(f"optim.reduce norm {value} : {type_of(self.kinds[value])} to tensor<1x1xf32>", ("1", "1"),
                                np.linalg.norm(self.numbers[value]))  # fmt: skip
                update = self.add(f"optim.broadcast {norm} : tensor<1x1xf32> to tensor<?x?xf32>", FULL, self.numbers[norm])
            self.result = self.add(f"arith.addf {self.result}, {update} : tensor<?x?xf32>", FULL,
                                   self.numbers[self.result] + self.numbers[update])  # fmt: skip

    def add(self, text, kind, numbers, behind=""):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"    {name} = {text} {behind}".rstrip())
        self.kinds[name], self.numbers[name] = kind, np.asarray(numbers)
        return name

    def multiply(self):
        """A product of any two values that fit, in one of the ways in which they do."""
        def orders(value):
            kind = self.kinds[value]
            return [(False, kind), (True, kind[::-1])]

        values = [value for value in self.numbers if self.kinds[value] != ("1", "1")]
        fits = [(a, ta, b, tb, (left[0], right[1])) for a in values for ta, left in orders(a)
                for b in values for tb, right in orders(b) if left[1] == right[0]]  # fmt: skip
        a, ta, b, tb, kind = self.rng.choice(fits)
        words = ", ".join(word for on, word in ((ta, "transpose_lhs"), (tb, "transpose_rhs")) if on)
        left, right = (self.numbers[v].T if t else self.numbers[v] for v, t in ((a, ta), (b, tb)))
        return self.add(f"optim.matmul {a}, {b} {{{words}}} : {type_of(self.kinds[a])}, {type_of(self.kinds[b])} -> "
                        + type_of(kind), kind, left @ right)  # fmt: skip


def module_of(folder, shape, rule, **more):
    """Level 1 with that body in the place of the specification's."""
    parameter = {"name": "w", "shape": shape, **PARAMETER, **more}
    mesh = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": [parameter]}))
    (folder / "a.optim").write_text(SPEC)
    text = stepc("compile", folder / "a.optim", "-m", folder / "m.json", "--emit", "optim", "-o", "-")
    begin, end = text.index("    %0 = optim.splat"), text.index("    optim.yield")
    body = "\n".join(rule.lines)
    after = text[text.index("\n", end) :]
    (folder / "a.mlir").write_text(f"{text[:begin]}{body}\n    optim.yield {rule.result} : tensor<?x?xf32>{after}")
    return folder / "a.mlir"


@pytest.mark.parametrize("index", range(RULES))
def test_products_of_rules(tmp_path, index):
    rng = random.Random(f"{SEED}-matmul-{index}")
    shape = [rng.choice((1, 2, 7, 16, 33, 70)) for _ in range(2)]
    gradient = np.random.default_rng(index).normal(size=shape).astype(np.float32) / np.float32(max(shape) ** 0.5)
    rule = Rule(rng, gradient)
    path = module_of(tmp_path, shape, rule)
    found = []
    for target in TARGETS:
        stepc("compile", path, "--target", target, "-o", tmp_path / "out")
        bound = Bound(Library(tmp_path / "out" / "liba.so"))
        bound.gradients = {"w": gradient}
        bound.instance.bind_gradient(0, gradient.ctypes.data, gradient.nbytes)
        bound.instance.step()
        found.append(bound.parameters["w"])
        (tmp_path / "out" / "liba.so").unlink()
    text = f"STEPC_SEED={SEED}, rule {index} of {shape}:\n" + "\n".join(rule.lines)
    for target, values in zip(TARGETS, found, strict=True):
        assert values.tobytes() == found[0].tobytes(), f"{target}, {text}"
    expected = rule.numbers[rule.result]
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max(), err_msg=text)


def test_a_value_times_its_transpose_is_symmetric(tmp_path):
    """In bits, and its triangle is all that is computed."""
    rng = random.Random(3)
    gradient = np.random.default_rng(3).normal(size=(48, 20)).astype(np.float32)
    rule = Rule(rng, gradient)
    rule.lines = [
        "    %g = optim.matmul %arg1, %arg1 {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> " + type_of(("rows", "rows")),
        f"    %h = optim.matmul %g, %arg1 {{}} : {type_of(('rows', 'rows'))}, tensor<?x?xf32> -> tensor<?x?xf32>",
    ]  # fmt: skip
    rule.result = "%h"
    path = module_of(tmp_path, [48, 20], rule)
    text = stepc("compile", path, "--emit", "comm", "-o", "-")
    lines = [line for line in text.splitlines() if "= optim.product" in line]
    assert [("symmetric" in line, "[rows, rows], blocks" in line) for line in lines] == [(True, True), (False, True)]


@pytest.mark.parametrize("shape, more", [((6, 5), {"blocks": {"axis": "rows", "sizes": [2, 4]}}), ((3, 4, 5), {"batch_axes": 1})])
def test_each_block_is_multiplied_apart(tmp_path, shape, more):
    """Also by a rule that does nothing but multiply."""
    gradient = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    rule = Rule(random.Random(4), np.zeros(shape[-2:], np.float32))
    gram = type_of(("rows", "rows"))
    rule.lines = [
        "    %g = optim.matmul %arg1, %arg1 {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> " + gram,
        f"    %h = optim.matmul %g, %arg1 {{}} : {gram}, tensor<?x?xf32> -> tensor<?x?xf32>",
    ]
    rule.result = "%h"
    stepc("compile", module_of(tmp_path, list(shape), rule, **more), "--target", "interpret", "-o", tmp_path / "out")
    bound = Bound(Library(tmp_path / "out" / "liba.so"))
    bound.instance.bind_gradient(0, gradient.ctypes.data, gradient.nbytes)
    bound.instance.step()
    blocks = [gradient[:2], gradient[2:]] if "blocks" in more else list(gradient)
    expected = np.concatenate([block @ block.T @ block for block in blocks]).reshape(shape)
    np.testing.assert_allclose(bound.parameters["w"], expected, rtol=1e-4, atol=1e-4)
