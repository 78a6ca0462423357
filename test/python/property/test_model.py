"""Numbers of the model are exact and the same on all ranks, whatever each rank holds of the parameters.

A sum, mean, root mean square or norm over all elements of all parameters is what `math.fsum` gives, on every
target. A step that clips by such a number has the bits of a step on one rank. A step that is skipped where a
condition on such numbers holds changes nothing. STEPC_SEED repeats a run.
"""

import json
import math
import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from cases import Case
from compiler import STEPC, CompilerFailed, run, save, tensor
from random_layouts import Layout, Mesh, random_blocks, random_layout, random_meshes
from random_rules import Rule, random_rule
from test_cut_sums import greatest
from tiers import cases, draws, tier

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
CASES = draws(10)
TARGETS = ("cpu", "interpret", "interpret", "emulated:sm_80")
# A target that has the same bits and compiles nothing.
QUICK = {"cpu": "interpret", "interpret": "interpret", "emulated:sm_80": "interpret:sm_80"}
STRATEGIES = ("owner", "gather", "agrs", "hierarchical", "subgroup-gather", "slabs")
DTYPES = ("f32", "bf16", "f16")
KINDS = ("sum", "mean", "rms", "norm", "max")
COUNTING = ("mean", "rms")  # they depend on the number of elements

# --- Numbers as the language defines them ---

ONE = np.float32(1)
# What a reduction reads of gradient, parameter and scalars, in f32 with one rounding per operation.
TERMS = {
    "grad": lambda g, p, s: g,
    "abs(grad)": lambda g, p, s: abs(g),
    "-abs(grad)": lambda g, p, s: -abs(g),
    "grad * param": lambda g, p, s: g * p,
    "param": lambda g, p, s: p,
    "param - 3 * grad": lambda g, p, s: p - 3 * g,
    "grad ^ 2": lambda g, p, s: g * g,
    "scale * grad": lambda g, p, s: np.float32(s["scale"]) * g,
    "step / 3 * grad": lambda g, p, s: np.float32(s["step"] / 3) * g,
    "select(grad > scale * param, grad, 0)": lambda g, p, s: np.where(
        g > np.float32(s["scale"]) * p, g, 0 * ONE
    ),
}
# Terms of a later phase: NAME is an earlier number.
LATER = {
    "abs(grad) / (NAME + 1e-6)": lambda g, p, a: abs(g) / (a + np.float32(1e-6)),
    "grad - NAME": lambda g, p, a: g - a,
    "select(abs(grad) > NAME, grad, 0.5)": lambda g, p, a: np.where(abs(g) > a, g, ONE / 2),
    "min(1, NAME) * param": lambda g, p, a: np.minimum(ONE, a) * p,
}
# Scalars, in f64.
SCALARS = {
    "scale": lambda s: s["scale"],
    "min(1, step / 3)": lambda s: min(1, s["step"] / 3),
    "scale * max_norm + step": lambda s: s["scale"] * s["max_norm"] + s["step"],
}
# What rules see as the gradient. FIRST is a number.
GRADIENTS = (
    "",
    "min(1, max_norm / (total + 1e-6)) * grad",
    "min(1, max_norm / (total + 1e-6)) * grad",
    "clamp(grad, -max_norm, max_norm) * scale",
    "select(finite(total), grad, 0) - FIRST",
)
# When steps are skipped, in f32 for what is compared with numbers. LAST is a number.
SKIPS = {
    "not finite(total)": lambda n, s, last: not np.isfinite(n["total"]),
    "not finite(total) or total > max_norm": lambda n, s, last: not n["total"] <= np.float32(s["max_norm"]),
    "not finite(total)\n  skip when step > 2": lambda n, s, last: (
        not np.isfinite(n["total"]) or s["step"] > 2
    ),
    "not (finite(total) and (LAST > scale or step < 2))": lambda n, s, last: (
        not (np.isfinite(n["total"]) and (last > np.float32(s["scale"]) or s["step"] < 2))
    ),
    "not finite(total) or 2 * max_norm < LAST": lambda n, s, last: (
        not np.isfinite(n["total"]) or np.float32(2 * s["max_norm"]) < last
    ),
}
# New values of a state S of the model, from its old value and a number N.
STATES = {
    "0.5 * S + N": lambda s, n: np.float32(0.5) * s + n,
    "max(S, N)": lambda s, n: np.float32(np.nan) if np.isnan(n) else np.maximum(s, n),
    "S + 1": lambda s, n: s + ONE,
    "select(N > S, N, S)": lambda s, n: n if n > s else s,
}


@dataclass
class State:
    """A state of the model: its initial value, its new one, and whether a skipped step changes it."""

    name: str
    init: float
    text: str
    of: str
    isAlways: bool

    def assignment(self):
        return f"  {self.name} = {self.text.replace('S', self.name).replace('N', self.of)}\n"

    def after(self, before, known, skipped):
        if skipped and not self.isAlways:
            return before
        with np.errstate(all="ignore"):
            return np.float32(STATES[self.text](before, known[self.of]))


def exact(values):
    """The exact sum, rounded once to f64."""
    if np.isnan(values).any() or {np.inf, -np.inf} <= {*values[np.isinf(values)]}:
        return math.nan
    infinite = values[np.isinf(values)]
    return infinite[0] if infinite.size else math.fsum(values) or 0.0


def reduced(kind, terms):
    """A number of all elements, from the terms of each parameter."""
    terms = np.concatenate(
        [np.asarray(each, np.float32).ravel() for each in terms] or [np.zeros(0, np.float32)]
    )
    if kind == "max":
        return np.float32(np.nan) if np.isnan(terms).any() else np.float32(greatest(terms))
    wide = terms.astype(np.float64)
    if kind in ("rms", "norm"):
        wide = wide * wide  # exact: f32 has 24 bits
    total = exact(wide)
    if kind in ("mean", "rms"):
        total /= wide.size
    return np.float32(math.sqrt(total) if kind in ("rms", "norm") else total)


@dataclass
class Number:
    """A value of the model that rules read: a reduction, a scalar, or a hyperparameter."""

    name: str
    text: str  # of the `let`; none for a hyperparameter
    value: object  # (gradients and parameters, scalars, earlier numbers) → f32


def reduction(name, kind, term, of=None):
    if of is None:
        return Number(
            name,
            f"{kind}({term})",
            lambda each, s, known: reduced(kind, [TERMS[term](g, p, s) for g, p in each]),
        )
    return Number(name, f"{kind}({term.replace('NAME', of)})",
                  lambda each, s, known: reduced(kind, [LATER[term](g, p, known[of]) for g, p in each]))  # fmt: skip


def scalar(name, text):
    return Number(name, text, lambda each, s, known: np.float32(SCALARS[text](s)))


def hyperparameter(name):
    return Number(name, "", lambda each, s, known: np.float32(s[name]))


def values_of(numbers, each, scalars):
    """All numbers, from the gradient and the parameter of each parameter in f32."""
    known = {}
    with np.errstate(all="ignore"):
        for number in numbers:
            known[number.name] = number.value(each, scalars, known)
    return known


def random_numbers(chosen, kinds):
    numbers = [reduction("total", "norm", "grad")]
    for index in range(chosen.randint(0, 2)):
        numbers.append(reduction(f"n{index}", chosen.choice(kinds), chosen.choice(list(TERMS))))
    for index in range(chosen.choice((0, 0, 1, 2))):
        of = chosen.choice(numbers).name
        numbers.append(reduction(f"later{index}", chosen.choice(kinds), chosen.choice(list(LATER)), of))
    if chosen.random() < 0.3:
        numbers.append(scalar("scalar", chosen.choice(list(SCALARS))))
    if chosen.random() < 0.2:
        numbers.append(hyperparameter(chosen.choice(("max_norm", "scale"))))
    return numbers


def model_text(numbers, gradient, skip, states):
    declared = "".join(f"  state {state.name} : f32 = {state.init}\n" for state in states)
    above, below = (
        "".join(state.assignment() for state in states if state.isAlways == is_above)
        for is_above in (True, False)
    )
    lets = "".join(f"  let {number.name} = {number.text}\n" for number in numbers if number.text)
    gradient = f"  grad = {gradient}\n" if gradient else ""
    skip = f"  skip when {skip.replace('LAST', last_of(numbers))}\n" if skip else ""
    return f"model(max_norm = 1, scale = 0.75) {{\n{declared}{lets}{above}{skip}{below}{gradient}}}\n"


def last_of(numbers):
    """The last number that a model can name in a condition."""
    return next(number.name for number in reversed(numbers) if number.text.split("(")[0] in KINDS)


# --- Rules ---

POLAR = "coefficients = [(1.5, -0.5, 0)], precision = f32"
BODIES = {
    "Plain": "param = param - lr * grad",
    "Stateful": "state m : bf16\n  m = 0.9 * m + grad\n  param = param - lr * m * model.total",
    "Sgd": "param = param - lr * grad * min(1, abs(grad))",
    "Adam": """master : f32
  state m : f32
  state v : f32
  m = lerp(m, grad, 0.1)
  v = lerp(v, grad * grad, 0.05)
  param = param - lr * m / (sqrt(v) + 1e-8)""",
    "Muon": f"""state m : f32
  m = 0.9 * m + grad
  param = 0.99 * param - lr * orthogonalize(m, {POLAR})""",
    "Between": f"""state v : f32
  let o = orthogonalize(grad, {POLAR})
  v = lerp(v, o ^ 2, 0.05)
  param = param - lr * orthogonalize(o / (sqrt(v) + 1e-8), {POLAR})""",
    "Lines": """state r : f32[rows]
  state c : f32[cols] = 1
  r = lerp(r, mean(grad * grad, over = columns), 0.5)
  c = max(c, rms(grad, over = rows))
  param = param - lr * grad / (sqrt(r) + c)""",
}
ELEMENTWISE = ("Plain", "Stateful")
MATRICES = ("Muon", "Between", "Lines")


def storing(text, numbers):
    """The rule, and a state for each number of the model."""
    states = "".join(f"  state z{i} : f32[]\n" for i in range(len(numbers)))
    assigned = "".join(f"  z{i} = model.{number.name}\n" for i, number in enumerate(numbers))
    text = text.replace("{\n", "{\n" + states, 1)
    at = text.rindex("  param = ")
    return text[:at] + assigned + text[at:]


def named_rule(name, numbers):
    text = f"optimizer {name}(lr = 0.05) {{\n  {BODIES[name]}\n}}\n"
    rule = Rule(name, text, name in MATRICES, name in ELEMENTWISE)
    if not rule.elementwise:
        rule.text = storing(rule.text, numbers)
    return rule


def drawn_rule(chosen, name, numbers):
    rule = random_rule(chosen, name, chosen.choice(("vector", "matrix", "elementwise")))
    if not rule.elementwise:
        rule.text = storing(rule.text, numbers)
    return rule


# --- Cases ---


def several_meshes(chosen):
    """One mesh, two on some of the same ranks, or two that share no rank."""
    total = chosen.choice((2, 3, 4, 6))
    meshes = random_meshes(chosen, total)
    kind = chosen.choice(("one", "any", "apart", "overlapping"))
    if kind == "one":
        return kind, [chosen.choice(meshes)]
    if kind == "any":
        return kind, chosen.sample(meshes, 2)
    ranks = chosen.sample(range(total), total)
    cut = chosen.randint(1, total - 1)
    parts = [ranks[:cut], ranks[cut if kind == "apart" else cut - 1 :]]
    return kind, [Mesh(f"part{i}", (len(part),), part) for i, part in enumerate(parts)]


def gradient_values(draw, shape, dtype):
    """Numbers of all sizes that the type holds, some of which cancel each other out."""
    most = draw.choice((0, 8, 50) if dtype != "f16" else (0, 3))
    values = np.ldexp(draw.standard_normal(shape), draw.integers(-most, most + 1, shape)).astype(np.float32)
    flat = values.reshape(-1)
    half = flat.size // 2
    again = draw.random(half) < draw.choice((0, 0.3))
    flat[:half] = np.where(again, -flat[half : 2 * half], flat[:half])
    return tensor(flat.reshape(shape), dtype)


@dataclass
class Random:
    """A random model, with its rules, parameters and tensors."""

    meshes: list
    numbers: list
    gradient: str
    skip: str  # when steps are skipped; none: never
    states: list  # of the model
    rules: list
    cases: list
    probes: list  # ranks that have a parameter of their own
    scalars: dict
    steps: int
    missing: dict  # what an absent gradient means, by rule
    tensors: dict = field(default_factory=dict)

    def spec(self):
        used = [rule for rule in self.rules if any(case.rule is rule for case in self.cases)]
        if self.probes and all(rule.name != "Sgd" for rule in used):
            used.append(named_rule("Sgd", self.numbers))
        claims = "".join(f'  {rule.name}({self.setting(rule.name)}) for "{rule.name}.*"\n' for rule in used)
        blocks = [
            model_text(self.numbers, self.gradient, self.skip, self.states),
            *(rule.text for rule in used),
        ]
        return "".join(blocks) + f"route {{\n{claims}}}\n"

    def setting(self, rule):
        return f"missing_grad = {self.missing[rule]}" if rule in self.missing else ""

    def manifest(self, single=False):
        parameters = [case.json("one" if single else None) for case in self.cases]
        meshes = [Mesh("one", (1,), [0])] if single else list(self.meshes)
        for rank in self.probes:
            if not single:
                meshes.append(Mesh(f"rank{rank}", (1,), [rank]))
            parameters.append({"name": f"Sgd.probe{rank}", "shape": [2], "dtype": "f32",
                               "mesh": meshes[-1].name, "placements": ["R"]})  # fmt: skip
        return json.dumps(
            {"version": 1, "meshes": [mesh.json() for mesh in meshes], "parameters": parameters}
        )

    def options(self):
        return [f"--hyper=model.{name}={value!r}" for name, value in self.scalars.items()]

    def draw(self, draw):
        shapes = {f"Sgd.probe{rank}": ((2,), 1, "f32", "f32") for rank in self.probes}
        for case in self.cases:
            count = case.layout.contributions()[0]
            shapes[case.name] = (case.layout.shape, count, case.dtype, case.grad_dtype)
        for name, (shape, count, dtype, grad_dtype) in shapes.items():
            self.tensors[f"param:{name}"] = tensor(draw.standard_normal(shape), dtype)
            for step in range(1, self.steps + 1):
                whole = shape if count == 1 else (count, *shape)
                if name.split(".")[0] not in self.missing or draw.random() < 0.6:
                    self.tensors[f"grad:{name}@{step}"] = gradient_values(draw, whole, grad_dtype)
        given = [name for name in self.tensors if name.startswith("grad:")]
        if self.skip and given and draw.random() < 0.4:  # an overflow on one rank
            name = given[draw.integers(len(given))]
            values = self.tensors[name].array().copy()
            values.reshape(-1)[draw.integers(values.size)] = draw.choice((np.nan, np.inf, -np.inf))
            self.tensors[name] = tensor(
                values, {"BF16": "bf16", "F16": "f16"}.get(self.tensors[name].dtype, "f32")
            )

    def alone(self):
        """The tensors for one rank, which takes reduced gradients."""
        cases = {case.name: case for case in self.cases}
        return {name: cases[name[5:].split("@")[0]].reduced(each)
                if name.startswith("grad:") and "probe" not in name else each
                for name, each in self.tensors.items()}  # fmt: skip

    def stepping(self, step):
        """The parameters that take a step."""
        names = [name[6:] for name in self.tensors if name.startswith("param:")]
        return [name for name in names
                if f"grad:{name}@{step}" in self.tensors or self.missing[name.split(".")[0]] == "zero"]  # fmt: skip

    def seen(self, before, step):
        """Gradient and parameter of each parameter in f32, as the model sees them in a step."""
        result, given = [], self.alone()
        for name in self.stepping(step):
            held = before.get(f"state:{name}:master", before[f"param:{name}"]).array().astype(np.float32)
            gradient = given.get(f"grad:{name}@{step}")
            result.append((gradient.array().astype(np.float32) if gradient else np.zeros_like(held), held))
        return result

    def is_skipped(self, known, scalars):
        return bool(self.skip) and bool(SKIPS[self.skip](known, scalars, known[last_of(self.numbers)]))


def random_case(chosen, draw):
    kind, meshes = several_meshes(chosen)
    skips = chosen.random() < 0.3
    numbers = random_numbers(chosen, [kind for kind in KINDS if not skips or kind not in COUNTING])
    gradient = chosen.choice(GRADIENTS).replace("FIRST", numbers[-1].name if numbers[-1].text else "total")
    skip = chosen.choice(("", *SKIPS))
    names = chosen.sample(list(BODIES), 3)
    rules = [named_rule(name, numbers) for name in names]
    rules += [drawn_rule(chosen, "R0", numbers)] if chosen.random() < 0.5 else []
    cases = []
    for _ in range(chosen.randint(2, 5)):
        rule, mesh = chosen.choice(rules), chosen.choice(meshes)
        layout = random_layout(chosen, mesh, rule, chosen.random() < 0.25, whole=False, may_be_partial=True)
        if not rule.matrix and chosen.random() < 0.1:  # several sums per rank
            layout = Layout(
                mesh, (chosen.randint(400, 700), chosen.randint(200, 500)), 0, ["S(0)"] * len(mesh.sizes)
            )
        matrix = layout.matrix
        if rule.matrix and len(matrix) - layout.batch == 2 and max(matrix[-2:]) > 1 and chosen.random() < 0.3:
            layout.blocks = random_blocks(chosen, matrix)
        dtype = chosen.choice(DTYPES)
        grad_dtype = chosen.choice((dtype, dtype, *DTYPES))
        strategy = "" if rule.elementwise or chosen.random() < 0.5 else chosen.choice(STRATEGIES)
        for _ in range(chosen.choice((1, 1, 1, 2))):
            cases.append(
                Case(f"{rule.name}.p{len(cases)}", rule, layout, dtype, grad_dtype, strategy, bool(strategy))
            )
    world = sorted({rank for case in cases for rank in case.layout.mesh.ranks})
    probes = world if chosen.random() < 0.3 else []
    scalars = {"max_norm": chosen.choice((0.25, 1.0, 3e4))} if chosen.random() < 0.8 else {}
    scalars |= {"scale": chosen.uniform(-1, 1)} if chosen.random() < 0.3 else {}
    missing = {
        rule: chosen.choice(("skip", "skip", "zero"))
        for rule in [*BODIES, "R0"]
        if skips or chosen.random() < 0.1
    }
    if not skips:
        missing = dict.fromkeys(missing, "zero")
    reductions = [number.name for number in numbers if number.text.split("(")[0] in KINDS]
    states = [
        State(f"s{i}", chosen.choice((0.0, 1.0, -2.5)), chosen.choice(list(STATES)), chosen.choice(reductions),
              chosen.random() < 0.5)
        for i in range(chosen.choice((0, 1, 2)))
    ]  # fmt: skip
    if states and chosen.random() < 0.5:  # rules see what a state holds
        gradient = f"grad / (1 + abs({states[0].name}))"
    made = Random(
        meshes, numbers, gradient, skip, states, rules, cases, probes, scalars, chosen.randint(1, 3), missing
    )
    made.draw(draw)
    return kind, made


def different(found, expected):
    names = [name for name in expected if name not in found
             or (found[name].dtype, found[name].shape, bytes(found[name].data))
             != (expected[name].dtype, expected[name].shape, bytes(expected[name].data))]  # fmt: skip
    return names + [name for name in found if name not in expected]


def wrong_numbers(found, numbers, expected, stepping=None):
    """States that hold a number of the model, and are not what is expected, to the bit."""
    lines, compared = [], 0
    for name, each in found.items():
        match = re.fullmatch(r"state:(.*):z(\d)", name)
        if not match or (stepping is not None and match[1] not in stepping):
            continue
        number, compared = numbers[int(match[2])], compared + 1
        wanted = expected[number.name]
        held = np.frombuffer(each.data, np.float32)
        same = (
            np.isnan(held) if np.isnan(wanted) else held.view(np.uint32) == np.float32(wanted).view(np.uint32)
        )
        if not same.all():
            lines.append(
                f"{name}, {number.text or number.name}: expected {wanted!r}, found {held[~same][0]!r}"
            )
    return lines, compared


SCALAR_DEFAULTS = {"max_norm": 1.0, "scale": 0.75}


def check(folder, chosen, draw):
    """Steps a random model on its meshes and on one rank. Returns what is wrong, and what the case was."""
    folder.mkdir()
    kind, made = random_case(chosen, draw)
    target, waves, threads = chosen.choice(TARGETS), chosen.randint(1, 3), chosen.randint(1, 3)
    spec = folder / "spec.optim"
    spec.write_text(made.spec())
    (folder / "many.json").write_text(made.manifest())
    (folder / "one.json").write_text(made.manifest(single=True))
    save(folder / "in", made.tensors)
    save(folder / "one.in", made.alone())
    options = [*made.options(), "--target", target, "--waves", waves, "--threads", threads]
    if target.startswith("emulated") and chosen.random() < 0.5:
        options.append("--graph")
    forced = [
        word for case in made.cases if case.forced for word in ("--strategy", f"{case.name}={case.strategy}")
    ]
    where = f"STEPC_SEED={SEED} in {folder}: {options}, {forced}, {made.steps} steps"
    found = Counter({f"meshes {kind}": 1, target: 1, f"waves {waves}": 1, "probes": bool(made.probes)})
    for case in made.cases:
        found.update(case.traits() | {f"rule {case.rule.name}"})
    found.update(number.text.split("(")[0] for number in made.numbers if number.text.split("(")[0] in KINDS)
    found["a second phase"] += any(number.name == "later0" for number in made.numbers)
    found["clipped"] += "max_norm / " in made.gradient
    many = None
    while many is None:
        try:
            many = run(
                spec,
                folder / "many.json",
                folder / "in",
                folder / "many",
                *options,
                *forced,
                steps=made.steps,
            )
        except CompilerFailed as failed:
            # A rule may have no operation on whole matrices.
            if not forced or not re.search("legal to force|stepped element by element", str(failed)):
                return [f"{where}\n{failed}"], found
            forced = forced[2:]
    found["a forced strategy"] += bool(forced)
    one = (spec, folder / "one.json", folder / "one.in", folder / "one")
    quick = [*made.options(), "--target", QUICK[target]]
    try:
        single = run(*one, *quick, steps=made.steps)
        before = made.tensors if made.steps == 1 else run_before(folder, made, one, quick)
    except CompilerFailed as failed:
        return [f"{where}, on one rank\n{failed}"], found
    stepping = made.stepping(made.steps)
    taken = 0 if made.steps == 1 else int(before["state:model:step"].array())
    scalars = SCALAR_DEFAULTS | made.scalars | {"step": taken + 1.0}
    expected = values_of(made.numbers, made.seen(before, made.steps), scalars) if stepping else {}
    wrong = [f"differs from one rank: {name}" for name in different(many, single)]
    skipped = bool(stepping) and made.is_skipped(expected, scalars)
    for state in made.states if stepping else []:
        name = f"state:model:{state.name}"
        old = np.float32(state.init if made.steps == 1 else before[name].array())
        wanted, held = state.after(old, expected, skipped), np.float32(single[name].array())
        wrong += (
            []
            if np.array_equal(wanted, held, equal_nan=True)
            else [f"{name}: expected {wanted}, found {held}"]
        )
        found["states of the model"] += 1
    if stepping and made.skip:
        found["skipped" if skipped else "not skipped"] += 1
        counted = int(single["state:model:step"].array()) - taken
        wrong += [f"the step is counted {counted} times"] if counted != (not skipped) else []
        if skipped:
            held = {name: each for name, each in single.items()
                    if (made.steps > 1 or name.startswith("param:")) and not re.match(r"state:model:s\d", name)}  # fmt: skip
            there = {name: before[name] for name in held if name in before}
            wrong += [f"a skipped step changed {name}" for name in different(held, there)]
            stepping = []
    for each in (many, single):
        lines, compared = wrong_numbers(each, made.numbers, expected, stepping)
        wrong += lines
        found["numbers compared"] += compared
    found["absent gradients"] += bool(made.missing)
    return [f"{where}\n    " + "\n    ".join(wrong)] if wrong else [], found


def run_before(folder, made, one, quick):
    """What there is before the last step."""
    given = {name: each for name, each in made.alone().items() if not name.endswith(f"@{made.steps}")}
    save(folder / "before.in", given)
    return run(*one[:2], folder / "before.in", folder / "before", *quick, steps=made.steps - 1)


def test_numbers_are_exact_and_steps_have_the_bits_of_one_rank(tmp_path, capsys):
    chosen, draw = random.Random(f"model {SEED}"), np.random.default_rng(int(SEED))
    found, problems = Counter(), []
    wanted = ("skipped", "not skipped", "states of the model",
              "partial gradient", "a second phase", "clipped")  # fmt: skip
    wanted = () if tier() == "quick" else wanted
    count = 0

    def has_all():
        return all(found[kind] for kind in wanted)

    for index in cases(CASES, has_all, times=6):
        count += 1
        wrong, traits = check(tmp_path / str(index), chosen, draw)
        found += traits
        problems += wrong
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {count} random models")
        for name, count in sorted(found.items()):
            print(f"  {name:30} {count:5}")
    assert not problems, "\n".join(problems)
    assert found["numbers compared"] >= 2 * (count - found["skipped"]), found
    assert has_all(), found


# --- Single cases ---
