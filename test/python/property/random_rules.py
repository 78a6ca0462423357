"""Random optimizers: well-typed `.optim` rules over every operator and function.

Values stay finite, because the bits of a NaN are no part of the language: arguments of `log`, `sqrt`, powers
and divisors are made positive, lets and states are clamped.
"""

import contextlib
import random as randomness
from dataclasses import dataclass, field

KINDS = ("full", "rows", "cols", "one", "scalar")
SHAPES = {"full": "", "rows": "[rows]", "cols": "[cols]", "one": "[]"}
ON_CORES = "on tensor cores"  # forms that targets with tensor cores take


def meet(a, b):
    """The kind of an elementwise result (docs/language.md, "Values")."""
    if a == b or b == "scalar":
        return a
    if a == "scalar":
        return b
    if "full" in (a, b) or {a, b} == {"rows", "cols"}:
        return "full"
    return a if b == "one" else b


@dataclass
class Rule:
    name: str
    text: str
    matrix: bool  # only matrices may have it
    elementwise: bool  # nothing in it needs a whole matrix
    states: dict = field(default_factory=dict)  # name → (dtype, kind)
    hypers: str = "lr = 0.05, mu = 0.9"


class Generator:
    """One rule. `elementwise` rules have no reduction and no matrix; `vector` rules fit any shape."""

    def __init__(self, random, name, flavor, idle, forms, chances):
        self.random, self.name, self.flavor, self.idle = random, name, flavor, idle
        self.forms, self.chances = forms, chances
        self.values = {"grad": "full", "param": "full"}
        self.conditions = {}  # lets that hold a condition: name → kind
        self.states, self.lines = {}, []
        self.crossed = False  # something needs a whole matrix

    def chance(self, probability):
        return self.random.random() < probability

    # --- expressions; each method returns text of exactly the wanted kind ---

    def scalar(self, depth=1):
        pick = self.random.choice
        leaves = ["lr", "mu", "step", f"{self.random.uniform(0.1, 2):.3g}"]
        if self.flavor == "matrix":
            leaves += ["rows", "cols"]
        leaves += ["numel"] if self.chance(0.2) else []
        if depth == 0 or self.chance(0.4):
            return pick(leaves)
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        known = [f"{a} >= {b}", *(name for name, kind in self.conditions.items() if kind == "scalar")]
        forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"{a} / (1 + abs({b}))",
                 f"sqrt(abs({a}))", f"max({a}, {b})", f"min({a}, {b})", f"select({a} < {b}, {b}, {a})",
                 "(1 - mu ^ step)", f"lerp({a}, {b}, 0.25)", f"clamp({a}, -1, 1)", f"sign({a})",
                 f"rsqrt(0.5 + abs({a}))", f"select({pick(known)}, {a}, {b})", f"exp(-abs({a}))", f"log(1 + abs({a}))"]  # fmt: skip
        return f"clamp({pick(forms)}, -8, 8)"

    def leaf(self, kind):
        named = [name for name, of in self.values.items() if of == kind]
        if named and (kind == "full" or self.chance(0.7)):
            return self.random.choice(named + named[-2:])  # the newest most often
        return self.reduction(kind)

    def reduction(self, kind, depth=1):
        """A rows, cols or one value: of a full one along an axis, or of anything altogether."""
        self.crossed = True
        function = self.random.choice(["sum", "mean", "rms", "norm", "max"])
        wide = "full"
        if kind == "one" and self.flavor == "matrix":
            wide = self.random.choice(["full", "full", "rows", "cols"])
        named = [name for name, of in self.values.items() if of == wide]
        # A value of a small kind may have to be reduced first: a reduction of a reduction.
        argument = self.random.choice(named) if named else self.reduction(wide)
        if wide == "full" and self.chance(0.4):
            argument += f" * {self.random.choice(named)}"
        elif depth > 0 and self.chance(0.3):
            narrow = self.of(wide, 0) if wide == "full" else self.scalar(0)
            argument = f"select({self.condition(wide, depth - 1)}, {argument}, {narrow})"
        if kind == "one":
            return f"{function}({argument})"
        return f"{function}({argument}, over = {'columns' if kind == 'rows' else 'rows'})"

    def narrower(self, kind):
        """A kind that an operand may have so that the result has `kind`."""
        allowed = [kind, "scalar"]
        if self.flavor == "elementwise" or kind == "scalar":
            return self.random.choice(allowed)
        if kind == "full" and self.flavor == "matrix":
            allowed += ["rows", "cols", "one"]
        elif kind != "one":
            allowed += ["one"]
        return self.random.choice(allowed)

    def of(self, kind, depth):
        if kind == "scalar":
            return self.scalar()
        return self.full(depth) if kind == "full" else self.small(kind, depth)

    def small(self, kind, depth):
        if depth <= 0 or self.chance(0.4):
            return self.leaf(kind)
        return self.elementwise(kind, depth)

    def full(self, depth):
        if depth <= 0 or self.chance(0.15):
            return self.leaf("full")
        return self.elementwise("full", depth)

    def comparison(self, kind, depth):
        a, b = self.of(kind, depth - 1), self.of(self.narrower(kind), depth - 1)
        return f"{a} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {b}"

    def condition_of_sizes(self):
        """A comparison of sizes and literals, which the compiler decides for each group."""
        pick, sizes = self.random.choice, ["numel", "64", "0.5"] + ["rows", "cols"] * (self.flavor == "matrix")
        a, b = self.random.sample(sizes, 2)
        left = pick([a, f"2 * {a}", f"sqrt({a})", f"max({a}, 7)", f"{b} / {a}", f"select({a} < 9, {a}, {b})"])
        return f"{left} {pick(['<', '<=', '>', '>=', '==', '!='])} {b}"

    def condition(self, kind, depth):
        """Up to three comparisons, named conditions among them, each of a kind that fits."""
        if self.chance(0.15):
            return self.condition_of_sizes()
        terms = []
        for _ in range(self.random.choice([1, 1, 2, 2, 3])):
            of = kind if not terms else self.narrower(kind)
            named = [name for name, each in self.conditions.items() if each == of]
            text = self.random.choice(named) if named and self.chance(0.5) else self.comparison(of, depth)
            terms.append(f"not ({text})" if self.chance(0.2) else text)
        text = terms[0]
        if self.chance(0.15):
            terms.append(self.condition_of_sizes())
        for term in terms[1:]:
            text = f"({text}) {self.random.choice(['and', 'or'])} {term}"
        return text

    def elementwise(self, kind, depth):
        """An operator or a function of a value of this kind, others of kinds that fit."""
        pick = self.random.choice
        a = self.of(kind, depth - 1)

        def other():
            return self.of(self.narrower(kind), depth - 1)

        operators = [
            lambda: f"({a} + {other()})", lambda: f"({other()} - {a})", lambda: f"{a} * {other()}",
            lambda: f"({a} / (0.5 + abs({other()})))", lambda: f"-({a})",
        ]  # fmt: skip
        functions = [
            lambda: f"sqrt(abs({a}))", lambda: f"rsqrt(0.25 + abs({a}))", lambda: f"abs({a})",
            lambda: f"sign({a})", lambda: f"exp(clamp({a}, -4, 4))", lambda: f"log(0.1 + abs({a}))",
            lambda: f"min({a}, {other()})", lambda: f"max({a}, {other()})",
            lambda: f"clamp({a}, -abs({other()}), 1 + abs({other()}))",
            lambda: f"lerp({a}, {other()}, {self.scalar()})",
            lambda: f"select({self.condition(kind, depth)}, {a}, {other()})",
            lambda: f"cast(clamp({a}, -900, 900), {pick(['f32', 'bf16', 'f16'])})",
            lambda: f"(0.5 + clamp(abs({a}), 0, 8)) ^ {pick(['2', '3', '-2', '0.5', '1.7', 'mu'])}",
            lambda: f"momentum({a}, {self.of(kind, 0)}, {self.scalar(0)})",
            lambda: f"decay({a}, lr, {self.scalar(0)})",
        ]  # fmt: skip
        return pick(operators if self.chance(0.5) else functions)()

    def orthogonalize(self):
        self.crossed = True
        steps = self.random.randint(1, 3)
        precision = self.random.choice(["f32", "bf16", "f16"])
        options = f"precision = {precision}"
        if self.chance(0.3):
            chosen = self.random.choice(["simple", "quintic", "polar_express", "cans", "cubic5"])
            options += f", coefficients = {chosen}"
        else:
            # |a| + |b| + |c| ≤ 1.2 keeps three steps inside f16.
            triples = []
            for _ in range(steps):
                parts = [self.random.uniform(-1, 1) for _ in range(3)]
                if self.chance(0.2):
                    parts[2] = 0.0
                scale = 1.2 / sum(map(abs, parts))
                triples.append("(" + ", ".join(f"{x * scale:.4f}" for x in parts) + ")")
            options += f", coefficients = [{', '.join(triples)}]"
        if self.chance(0.3):
            options += f", eps = {self.random.choice(['1e-3', '1e-7', '0.5'])}"
        source = self.full(1)
        if self.forms:
            options += random_form(options, steps, self.forms == ON_CORES)
        return f"orthogonalize({source}, {options})"

    # --- statements ---

    def make(self):
        random = self.random
        master = self.chance(0.3)
        kinds = {"elementwise": ["full"], "vector": ["full", "one"], "matrix": list(SHAPES)}[self.flavor]
        for index in range(random.randint(0, 3)):
            name, kind = f"s{index}", random.choice(kinds)
            if self.flavor != "elementwise" and index == 0 and self.chance(0.6):
                kind = random.choice(kinds[1:])
            dtype = random.choice(["f32", "f32", "bf16", "f16"])
            initial = f" = {random.uniform(-1, 1):.3f}" if self.chance(0.3) else ""
            self.states[name] = (dtype, kind)
            self.values[name] = kind
            self.lines.append(f"state {name} : {dtype}{SHAPES[kind]}{initial}")
        for index in range(random.randint(0, 3)):
            self.let(f"t{index}")
        for index in range(random.randint(0, 2)):
            self.let_condition(f"c{index}")
        if self.flavor == "matrix" and self.chance(0.7):
            self.lines.append(f"let o = {self.orthogonalize()}")
            self.values["o"] = "full"
        elif self.flavor != "elementwise":
            kind = random.choice(["one"] if self.flavor == "vector" else ["one", "rows", "cols"])
            self.lines.append(f"let r = {self.reduction(kind)}")
            self.values["r"] = kind
        for name, (_, kind) in self.states.items():
            for _ in range(random.choice([0, 1, 1, 1, 1, 1, 1, 1, 2])):
                self.lines.append(f"{name} = {self.new_state(kind)}")
        update = self.full(2)
        # One of them is always used: a matrix operation that nothing uses makes no matrix rule.
        if "o" in self.values:
            update = f"(o + {update})"
        elif "r" in self.values:
            update = f"{update} * r"
        # Every let and condition shows in the result, and large values do not hide small ones.
        for name in [name for name in self.values if name[0] == "t"]:
            update = f"({update} + {name} / (1 + abs({name})))"
        for name in self.conditions:
            update = f"select({name}, 1, -0.5) * {update}"
        self.lines.append(f"let u = {update}")
        if self.forms:
            self.floors()
            self.positions()
        step = "param = decay(param, lr, 0.1) - lr * 9 * u / (9 + abs(u))"
        self.lines.append("param = param" if self.idle and self.chance(0.05) else step)
        if self.chances:
            self.random_numbers(may_round=not master)
        if master:
            self.lines.insert(0, "master : f32")
        if self.forms and self.flavor != "elementwise":
            self.metrics()
        body = "".join(f"  {line}\n" for line in self.lines)
        hypers = Rule.hypers
        text = f"optimizer {self.name}({hypers}) {{\n{body}}}\n"
        return Rule(self.name, text, self.flavor == "matrix", not self.crossed, self.states)

    def floors(self):
        """Lets some rules round values down."""
        with self.drawn_from_text("floors\n"):
            if self.chance(0.25):
                kind = self.narrower("full")
                self.lines[-1] += f" + floor(3 * clamp({self.of(kind, 1)}, -2, 2)) / 4"

    def positions(self):
        """Lets some rules of matrices count rows and columns."""
        with self.drawn_from_text("positions\n"):
            if self.flavor == "matrix" and self.chance(0.3):
                kind = self.random.choice(["rows", "cols"])
                place = "row" if kind == "rows" else "col"
                value = f"{place} / (1 + {place})"
                for name in [name for name, (_, of) in self.states.items() if of in (kind, "full")]:
                    self.lines.insert(-1, f"{name} = clamp({name} + {value}, -90, 90)")
                other = self.random.choice(["col", "row", self.small(kind, 1)])
                self.lines[-1] += f" + select({place} < {other}, {value}, 0) * {self.leaf('full')}"

    def random_numbers(self, may_round):
        """Lets rules draw numbers, and round states of bf16 and the parameter by chance."""
        with self.drawn_from_text("random numbers\n"):
            if self.chance(0.9):
                self.lines[-2] += f" + uniform() * {self.leaf('full')}"
            rounds = [f"{name} = " for name, of in self.states.items() if of == ("bf16", "full")]
            rounds += ["param = "] if may_round else []
            for index, line in enumerate(self.lines):
                for target in rounds:
                    if line.startswith(target) and line != "param = param" and self.chance(0.7):
                        self.lines[index] = f"{target}stochastic({line.removeprefix(target)})"

    def metrics(self):
        """Adds metrics to some rules."""
        with self.drawn_from_text():
            for index in range(self.random.choice([0, 0, 1, 2])):
                self.crossed = True
                self.lines.insert(-1, f"metric n{index} = {self.of(self.random.choice(['one', 'one', 'scalar']), 1)}")

    @contextlib.contextmanager
    def drawn_from_text(self, what=""):
        """Draws from the rule's text, so that other draws do not depend on those inside."""
        kept, self.random = self.random, randomness.Random(what + "\n".join(self.lines))
        yield
        self.random = kept

    def new_state(self, kind):
        """Mostly a clamped expression; sometimes a value as it is, so that no operation makes what is
        stored.
        """
        same = [name for name, of in self.values.items() if of == kind]
        if same and self.chance(0.25):
            value = self.random.choice(same)
            forms = [value, value, f"cast({value}, {self.random.choice(['f32', 'bf16', 'f16'])})",
                     f"select({self.condition(kind, 1)}, {value}, {self.random.choice(same)})"]  # fmt: skip
            return self.random.choice(forms)
        if kind == "one" and self.chance(0.1):
            return self.scalar()
        return f"clamp({self.of(kind, 2)}, -90, 90)"

    def let_condition(self, name):
        kinds = {"elementwise": ["full", "scalar"], "vector": ["full", "one", "scalar"]}
        kind = self.random.choice(kinds.get(self.flavor, ["full", "full", "rows", "cols", "one", "scalar"]))
        self.lines.append(f"let {name} = {self.condition(kind, 1)}")
        self.conditions[name] = kind

    def let(self, name):
        kinds = {"elementwise": ["full"], "vector": ["full", "one"]}
        kind = self.random.choice(kinds.get(self.flavor, ["full", "full", "rows", "cols", "one"]))
        self.lines.append(f"let {name} = clamp({self.of(kind, 2)}, -90, 90)")
        self.values[name] = kind


def random_form(options, steps, cores):
    """The form of a call with these options, drawn from their text: what else is drawn does not depend on it. Targets
    with tensor cores refuse the Gram form in f32."""
    source = randomness.Random(options)
    form = source.choice(["", "standard", "gram", "auto"])
    if cores and "precision = f32" in options:
        form = form and "standard"
    if "f16" in options and ("cans" in options or "polar_express" in options):
        form = form and "standard"  # their bounds are above the largest f16
    if form in ("", "standard"):
        return form and ", form = standard"
    last = steps if "[" in options else 5
    if source.random() < 0.3:
        return f", form = {form}"
    restarts = [step for step in range(1, last) if source.random() < 0.4]
    if last == 5 and "f16" in options:
        restarts = source.choice([[2], [1, 3], [2, 4], [1, 2, 3, 4]])  # f16 has no room for longer runs
    return f", form = {form}, restarts = {restarts}"


def random_rule(random, name, flavor, idle=False, forms=False, chances=False):
    """`flavor`: "elementwise", "vector" (any shape, reductions of everything) or "matrix". `idle`: some leave
    the parameter alone; then nothing may need a whole matrix, whatever the flavor. `forms`: orthogonalize may
    have a form; if it is ON_CORES, one that targets with tensor cores take. Such rules may also have metrics.
    `chances`: rules draw random numbers, which depend on the parameter's name. No parameter is f16."""
    rule = Generator(random, name, flavor, idle, forms, chances).make()
    named = any(word in rule.text for word in ("row", "col", "over =", "orthogonalize"))
    return Rule(rule.name, rule.text, named, rule.elementwise, rule.states)
