"""`stepc run --watch` prints what rules compute, and changes no bits.

Random programs are stepped with all names watched, compiled and interpreted. What is printed of the last step are the values
of its gradients, and parameters and states of an equal program whose rules keep each let in a state. STEPC_SEED repeats a run.
"""

import re

import numpy as np
import pytest
from cases import STEPS, random_batch
from compiler import STEPC, load, stepc, tensor
from random_layouts import parts_of
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

PER_BATCH = 10
LET = re.compile(r"^  let (\w+) = .*\n", re.MULTILINE)
HEADER = re.compile(
    r"step (\d+), (\S+?)((?:\[[\d, ]+\])*), \w+\.(\w+): (\w+) (\w+)(?: \[[\d, ]*\]| = (\S+))$"
)


@pytest.mark.parametrize("index", range(draws(3)))
def test_random_programs(tmp_path, index):
    batch = random_batch(f"{SEED}-watch-{index}", PER_BATCH)
    for rule in batch.rules:
        rule.text = rule.text.replace("  let u =", "  let k = lr / step\n  let u =")
    batch.write(tmp_path)
    plain, _ = stepped(tmp_path, batch, "spec.optim", "--target", "interpret")
    texts = []
    for target in ("interpret", "cpu"):
        found, text = stepped(tmp_path, batch, "spec.optim", "--target", target, "--watch", "*")
        assert not differences(found, plain), f"STEPC_SEED={SEED}, batch {index}"
        texts.append(re.sub(r"^rank .*\n", "", text, flags=re.MULTILINE))
    assert texts[0] == texts[1]
    printed = parsed(texts[0])
    kinds = {(name.split(".")[0], value): (dtype, kind) for _, name, _, value, dtype, kind, _ in printed}

    text = (tmp_path / "spec.optim").read_text()
    (tmp_path / "kept.optim").write_text("".join(kept(rule, kinds) for rule in re.split(r"(?=^optimizer)", text, flags=re.MULTILINE)))  # fmt: skip
    values, _ = stepped(tmp_path, batch, "kept.optim", "--target", "interpret")
    gradients = load(tmp_path / "in.safetensors")
    compared = 0
    for case in batch.cases:
        of_case = {(value, index): rest for step, name, index, value, *rest in printed if (step, name) == (STEPS, case.name)}
        assert len(of_case) >= 2
        for (value, index), (dtype, kind, numbers) in of_case.items():
            if value == "grad":
                whole = case.reduced(gradients[f"grad:{case.name}@{STEPS}"])
            elif value == "param":
                whole = values[f"param:{case.name}"]
            else:
                kept_as = f"state:{case.name}:kept_{value}"
                names = (kept_as, f"state:{case.name}:{value}", f"metric:{case.name}:{value}")
                whole = next(values[name] for name in names if name in values)
            blocks = list(blocks_of(case, "full" if kind == "scalar" else kind, whole.array()))
            block = next(one for at, one in blocks if at == index or (kind == "scalar" and at.endswith(index)))
            expected = [block.flat[0]] if kind in ("scalar", "one") else shown(block)
            where = f"STEPC_SEED={SEED}, {case.name}{index}, {value}"
            assert [text == "…" for text in numbers] == [number is None for number in expected], where
            dtype = {"condition": "f32"}.get(dtype, dtype)
            with np.errstate(invalid="ignore"):  # of NaNs
                read = tensor([float(text) for text in numbers if text != "…"], dtype).array()
                wanted = tensor([number for number in expected if number is not None], dtype).array()
            np.testing.assert_array_equal(read, wanted, where)
            assert (np.signbit(read) == np.signbit(wanted))[~np.isnan(read)].all(), where
            compared += 1
    assert compared > 3 * len(batch.cases)


def stepped(folder, batch, spec, *options):
    """(the tensors that come out, what is printed)."""
    out = folder / "out.safetensors"
    text = stepc("run", folder / spec, "-m", folder / "many.json", "--tensors", folder / "in.safetensors", "-o", out,
                 "--steps", STEPS, "--threads", batch.threads, *batch.options(), *options)  # fmt: skip
    return load(out), text


def parsed(text):
    """[(step, parameter, index of the block, name, type, kind, texts of numbers)]."""
    result = []
    for line in text.splitlines():
        assert len(line) <= 120
        if header := HEADER.match(line):
            step, *words, single = header.groups()
            result.append((int(step), *words, [single] if single else []))
        elif not re.search(r" infinite of \d+$|  true for ", line):
            assert line.startswith("  ")
            result[-1][-1].extend(line.split())
    return result


def kept(rule, kinds):
    """The rule with a state for each let, which is given its value."""
    name = re.match(r"optimizer (\w+)", rule)
    states = []

    def keep(let):
        if (name[1], let[1]) not in kinds:
            return let[0]
        dtype, kind = kinds[name[1], let[1]]
        brackets = {"full": "", "scalar": "", "one": "[]"}.get(kind, f"[{kind}]")
        states.append(f"  state kept_{let[1]} : f32{brackets}\n")
        value = f"select({let[1]}, 1, 0)" if dtype == "condition" else let[1]
        if kind == "scalar":  # for all elements: a state of one value would need whole matrices
            value = f"select(grad == grad, {value}, {value})"
        return f"{let[0]}  kept_{let[1]} = {value}\n"

    if not name:
        return rule
    first, rest = LET.sub(keep, rule).split("\n", 1)
    return f"{first}\n{''.join(states)}{rest}"


def blocks_of(case, kind, array):
    """(index as it is printed, array) of each matrix that the rule sees; a state that drops an axis has one less."""
    layout = case.layout
    if not layout.flatten and not layout.batch and len(layout.shape) != 2:
        yield "", array
        return
    lead, (rows, cols) = layout.shape[: layout.batch], layout.matrix[-2:]
    parts = parts_of(layout.blocks) if layout.blocks else [None]
    divided = layout.blocks and layout.blocks["axis"]
    ends = {"full": (rows, cols), "rows": (rows,), "cols": (cols,), "one": ()}
    if divided:
        ends |= {"one": (len(parts),), **({"cols": (len(parts), cols)} if divided == "rows" else {"rows": (rows, len(parts))})}
    array = array.reshape((*lead, *ends[kind]))
    for number, part in enumerate(parts):
        one = array
        if divided and kind in ("full", divided.replace("columns", "cols")):
            one = array.take(part, -2 if kind == "full" and divided == "rows" else -1)
        elif divided:
            one = array.take(number, -2 if kind == "cols" else -1)
        for at in np.ndindex(*lead):
            text = f"[{', '.join(map(str, at))}]" if lead else ""
            yield text + (f"[{number}]" if divided else ""), np.asarray(one[at])


def shown(block):
    """The numbers of a table in their order, and None for what is left out."""

    def places(size):
        return list(range(size)) if size <= 8 else [*range(4), None, *range(size - 4, size)]

    table = block.reshape(-1, block.shape[-1] if block.ndim else 1)
    rows = [table[row, :] if row is not None else None for row in places(len(table))]
    return [number for row in rows for number in
            ([None] if row is None else [col if col is None else row[col] for col in places(table.shape[1])])]  # fmt: skip
