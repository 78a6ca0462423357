"""What `check` accepts compiles, keeps its bits on other meshes, and is what the reference computes.

Random rules over every function, reduction, kind of value, condition and shape of state, twenty to a
specification. STEPC_RULES says how many (default 140), STEPC_SEED which.

The reference knows no roundings, so rules are compared with it in f32 throughout: their bf16 and f16 casts,
states and precisions are replaced. Comparisons make rules discontinuous; where the reference itself jumps
when its inputs and what a rule reads move by a few ulps, nothing is said about the result.
"""

import json
import os
import random
import re
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cases import state_shape
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from random_layouts import Layout, Mesh, random_layout, random_meshes, random_placements
from random_rules import random_rule
from test_bits import SEED, WORKERS, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

PER_FILE = 20
RULES = int(os.environ.get("STEPC_RULES") or draws(28))
STEPS = 2
FLAVORS = ("elementwise", "vector", "matrix", "matrix", "matrix")
# What the draw must show, as patterns over the rules' text; the histogram counts the rules that have each.
KINDS = {"full": "", "rows": r"\[rows\]", "cols": r"\[cols\]", "one": r"\[\]"}
SEEN = {
    **{f"{name}()": rf"\b{name}\(" for name in (
        "sqrt", "rsqrt", "abs", "sign", "exp", "log", "min", "max", "clamp", "lerp", "select", "cast",
        "momentum", "decay", "sum", "mean", "rms", "norm", "orthogonalize")},
    **{f"operator {sign}": rf" {re.escape(sign)} " for sign in ("<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "^")},
    **{word: rf"\b{word}\b" for word in ("and", "or", "not", "step", "rows", "cols", "numel", "master")},
    "over = columns": "over = columns", "over = rows": "over = rows",
    "a named condition": r"let c0",
    "a state as it is": r"(?m)^ +s\d = \w+$", "a state twice": r"(?ms)^ +(s\d) = .*^ +\1 = ",
    "a state of a scalar": r"(?m)^ +s\d = clamp\([^s]*$", "param = param": r"param = param\n",
    **{f"state {dtype} {kind}": rf"state \w+ : {dtype}{text}(?!\[)" for dtype in ("f32", "bf16", "f16") for kind, text in KINDS.items()},
}  # fmt: skip


class File:
    """Rules. Each steps one parameter three times: on a mesh of each of two families, and whole on one
    rank.
    """

    def __init__(self, seed, count):
        source = random.Random(seed)
        self.seed, self.rules, self.layouts = seed, [], []
        one = Mesh("one", (1,), [0])
        families = [[Mesh(f"{name}{mesh.name}", mesh.sizes, mesh.ranks) for mesh in random_meshes(source, source.choice(totals))]
                    for name, totals in (("first", (2, 3, 4)), ("second", (3, 4, 6)))]  # fmt: skip
        self.meshes = [one, *families[0], *families[1]]
        for index in range(count):
            rule = random_rule(source, f"R{index}", source.choice(FLAVORS), idle=True)
            whole, batched = source.random() < 0.2, source.random() < 0.3
            first = random_layout(source, source.choice(families[0]), rule, batched, whole)
            self.rules.append(rule)
            self.layouts.append({
                "one": Layout(one, first.shape, first.batch, ["R"], flatten=first.flatten), "first": first,
                "second": elsewhere(source, first, source.choice(families[1]), whole),
            })  # fmt: skip
        self.dtypes = [source.choice(("f32", "f32", "bf16", "f16")) for _ in self.rules]
        self.waves = source.randint(1, 3)
        self.chosen = list(range(count))  # what is compiled and stepped; tensors do not depend on it

    def text(self, single=False, moved=None):
        chosen = [self.rules[i] for i in self.chosen]
        rules = "".join(rule.text for rule in chosen)
        if single:
            rules = re.sub(r"\bb?f16\b", "f32", rules)
            # Of one row or column the singular value is 1 whatever the inputs, and these two multiply what it
            # is off by in f32 by 10^4 and more (test_generality.py bounds them by their condition).
            rules = re.sub(r"\b(cans|polar_express)\b", "quintic", rules)
        if moved is not None:
            rules = moved_reads(rules, f"{self.seed} {moved // 2}", (-1) ** moved)
        claims = "".join(f'  {rule.name}() for "{rule.name}.*"\n' for rule in chosen)
        return f"// seed {self.seed}\n{rules}route {{\n{claims}}}\n"

    def manifest(self, places, single=False):
        parameters = []
        for rule, dtype, layouts in ((self.rules[i], self.dtypes[i], self.layouts[i]) for i in self.chosen):
            for place in places:
                layout = layouts[place]
                parameters.append({
                    "name": f"{rule.name}.{place}", "shape": list(layout.shape), "dtype": "f32" if single else dtype,
                    "mesh": layout.mesh.name, "placements": layout.placements, "batch_axes": layout.batch,
                    **({"flatten": layout.flatten} if layout.flatten else {}),
                })  # fmt: skip
        return {"version": 1, "meshes": [mesh.json() for mesh in self.meshes], "parameters": parameters}

    def tensors(self, places, single=False, moved=None):
        """`moved`: a seed; every value moves by up to four ulps of f32, as does every use of a name in
        `text`.
        """
        generator = np.random.default_rng(list(self.seed.encode()))
        noise = np.random.default_rng(moved)
        result = {}

        def put(role, rule, rest, values, dtype):
            values = np.asarray(values, np.float32)
            if moved is not None:
                values = values * (1 + noise.uniform(-4, 4, values.shape) * 2.0**-23)
            for place in places if self.rules.index(rule) in self.chosen else ():
                result[f"{role}:{rule.name}.{place}{rest}"] = tensor(values, "f32" if single else dtype)

        for rule, dtype, layouts in zip(self.rules, self.dtypes, self.layouts, strict=True):
            layout = layouts["one"]
            put("param", rule, "", generator.normal(size=layout.shape), dtype)
            for step in range(1, STEPS + 1):
                put("grad", rule, f"@{step}", generator.normal(size=layout.shape), dtype)
            for name, (of, kind) in rule.states.items():
                put("state", rule, f":{name}", generator.normal(size=state_shape(layout, kind)), of)
        return result

    def run(self, folder, name, *options, places=("one",), single=False, moved=None):
        """`stepc run` of the whole file; the tensors that come out."""
        files = [folder / f"{name}.{suffix}" for suffix in ("optim", "json", "safetensors")]
        files[0].write_text(self.text(single, moved))
        files[1].write_text(json.dumps(self.manifest(places, single), indent=1))
        save(files[2], self.tensors(places, single, moved))
        stepc("check", files[0], "-m", files[1])  # what it refuses is the generator's fault
        return run(*files, folder / f"{name}.out.safetensors", *options, steps=STEPS)


def moved_reads(rules, seed, sign):
    """Every value that a statement reads moves by up to four ulps of f32, by as much the other way with the
    other sign. Moved inputs alone leave `s0 == lerp(s1, s0, 1)` true, whose sides f32 rounds to different
    values."""
    source = random.Random(seed)

    def move(name):
        return f"({name[0]} * {1 + sign * source.uniform(1, 4) * source.choice((-1, 1)) * 2.0**-23!r})"

    def move_reads(statement):
        return statement[1] + re.sub(r"\b(param|grad|[storu]\d*)\b", move, statement[2])

    return re.sub(r"(?m)^(  (?:let )?\w+ = )(.*)$", move_reads, rules)


def elsewhere(source, layout, mesh, whole):
    """The same parameter on another mesh."""
    dims = list(range(layout.batch if whole else len(layout.shape)))
    placements = random_placements(source, mesh, layout.shape, dims, not whole)
    return Layout(mesh, layout.shape, layout.batch, placements, flatten=layout.flatten)


def disagreements(found, reference, moved):
    """Tensors of which more than a few elements are off by more than rounding explains."""
    lines = []
    for name, one in reference.items():
        if name.endswith(":step"):
            continue
        a, b = found[name].array(), one.array()
        if not np.isfinite(b).all():
            lines.append(f"{name}: the reference is not finite")
            continue
        others = np.stack([each[name].array() for each in moved])
        spread = np.abs(others - b).max(axis=0)
        # Values are clamped to 90 in a rule; a rule rounds some tens of times.
        allowed = 2e-4 * (1 + np.abs(b)) + 30 * spread
        wrong = ~(np.abs(a - b) <= allowed)
        # One element in fifty may lie so near a comparison's edge that no move of the inputs crossed it.
        if wrong.sum() > max(1, b.size // 50):
            at = np.flatnonzero(wrong)[0]
            lines.append(f"{name}: {wrong.sum()} of {b.size} elements, [{at}] is {a.reshape(-1)[at]}, "
                         f"the reference {b.reshape(-1)[at]}, its spread {spread.reshape(-1)[at]:.2g}")  # fmt: skip
    return lines


def check(seed, folder):
    """One file: its rules' texts, and what is wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    file = File(seed, PER_FILE)
    texts = [rule.text for rule in file.rules]
    try:
        found = file.run(folder, "many", "--waves", file.waves, places=("one", "first", "second"))
        one = {name: each for name, each in found.items() if ".one" in name}
        wrong = []
        for place in ("first", "second"):
            many = {
                name.replace(f".{place}", ".one"): each for name, each in found.items() if f".{place}" in name
            }
            wrong += [f"on the {place} mesh: {line}" for line in differences(many, one)]
        single = file.run(folder, "single", single=True)
        reference = file.run(folder, "reference", "--reference", single=True)
        moved = [file.run(folder, f"moved{i}", "--reference", single=True, moved=i) for i in range(6)]
        wrong += disagreements(single, reference, moved)
    except CompilerFailed as failed:
        return texts, f"'{seed}': {failed}"
    except Exception:
        return texts, f"'{seed}': {traceback.format_exc()}"
    return texts, f"'{seed}' in {folder}:\n    " + "\n    ".join(wrong) if wrong else ""


def test_what_check_accepts_compiles_and_is_right(tmp_path, capsys):
    folder = Path(os.environ.get("STEPC_KEEP") or tmp_path)
    seeds = [f"rules-{SEED}-{index}" for index in range(-(-RULES // PER_FILE))]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda seed: check(seed, folder / seed), seeds))
    texts = [text for some, _ in results for text in some]
    histogram = Counter(
        {name: sum(bool(re.search(pattern, text)) for text in texts) for name, pattern in SEEN.items()}
    )
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {len(texts)} random rules; of these have")
        for name in SEEN:
            print(f"  {name:18} {histogram[name]:5} {'#' * (60 * histogram[name] // len(texts))}")
    problems = [text for _, text in results if text]
    assert not problems, f"STEPC_SEED={SEED}\n" + "\n".join(problems)
    missing = [name for name in SEEN if not histogram[name]]
    # Few rules leave something out now and then.
    assert len(missing) <= (0 if RULES > 200 else 2), f"STEPC_SEED={SEED}: no rule has {missing}"


PLANTED = [(" < ", " >= "), (" and ", " or "), ("mean(", "rms("), (" * ", " + ")]
MOST_PLANTED = 8


def test_rules_that_compute_otherwise_are_found(tmp_path, capsys):
    """The comparison with the reference sees that other rules were compiled than it computes: not every time,
    since much of a random rule hardly matters, but often."""
    file = File("planted", PER_FILE)
    texts = [rule.text for rule in file.rules]
    reference = file.run(tmp_path, "reference", "--reference", single=True)
    moved = [file.run(tmp_path, f"moved{i}", "--reference", single=True, moved=i) for i in range(3)]

    def wrong(name):
        found = file.run(tmp_path, name, single=True)
        return disagreements(found, {key: reference[key] for key in found}, moved)

    assert not wrong("sound")
    for old, new in PLANTED:
        file.chosen = [i for i, text in enumerate(texts) if old in text][:MOST_PLANTED]
        for i in file.chosen:
            file.rules[i].text = texts[i].replace(old, new)
        has = {file.rules[i].name for i in file.chosen}
        found = {re.match(r"\w+:(\w+)\.one", line)[1] for line in wrong("planted")}
        with capsys.disabled():
            print(f"\n  '{old}' → '{new}': {len(found)} of {len(has)} rules", end="")
        assert found <= has and len(found) >= 2 and len(has) > 3
        for i in file.chosen:
            file.rules[i].text = texts[i]
