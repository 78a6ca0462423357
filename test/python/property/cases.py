"""One file of random cases: a specification, its parameters on several meshes, and their tensors."""

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from compiler import Tensor, save, tensor
from random_layouts import TOTALS, Layout, Mesh, parts_of, random_blocks, random_layout, random_meshes
from random_rules import SHAPES, Rule, random_rule

DTYPES = ("f32", "bf16", "f16")
STRATEGIES = ("elementwise", "local", "owner", "gather")
STEPS = 2
SPOILED = 0.2  # share of cases whose tensors have elements that are no plain numbers
# NaNs of both signs, quiet and signalling, with payloads; infinities; zero, the least and the largest number
# below zero.
SPECIAL = {
    "F32": (np.uint32, (0x7FC00000, 0xFFC00000, 0x7FABCDEF, 0xFF800001, 0x7F800000, 0xFF800000, 1 << 31, 0x80000001, 0xFF7FFFFF)),
    "BF16": (np.uint16, (0x7FC0, 0xFFC0, 0x7FAB, 0xFF81, 0x7F80, 0xFF80, 1 << 15, 0x8001, 0xFF7F)),
    "F16": (np.uint16, (0x7E00, 0xFE00, 0x7DAB, 0xFC01, 0x7C00, 0xFC00, 1 << 15, 0x8001, 0xFBFF)),
}
BESIDE = ".whole"  # ends the names of parameters that are whole on one rank, where others are beside them


@dataclass
class Case:
    """One parameter: what the property test counts."""

    name: str
    rule: Rule
    layout: Layout
    dtype: str
    grad_dtype: str
    strategy: str
    forced: bool
    spoiled: bool = False

    def traits(self):
        result = self.layout.traits() | {f"dtype {self.dtype}"} | ({f"forced {self.strategy}"} if self.forced else set())
        result |= {"NaNs and infinities"} if self.spoiled else set()
        return result | ({"other gradient dtype"} if self.dtype != self.grad_dtype else set())

    def json(self, mesh=None):
        placements = self.layout.placements if mesh is None else ["R"]
        lists = {"grad_placements": self.layout.gradient, "state_placements": self.layout.state}
        return {
            "name": self.name, "shape": list(self.layout.shape), "dtype": self.dtype,
            "grad_dtype": self.grad_dtype, "mesh": mesh or self.layout.mesh.name,
            "placements": placements, "batch_axes": self.layout.batch,
            **{key: own for key, own in lists.items() if own and mesh is None},
            **({"blocks": self.layout.blocks} if self.layout.blocks else {}),
            **({"flatten": self.layout.flatten} if self.layout.flatten else {}),
        }  # fmt: skip

    def reduced(self, gradient):
        """The logical gradient: contributions added in their order, in f32, divided and rounded once."""
        count, divisor = self.layout.contributions()
        if count == 1:
            return gradient
        with np.errstate(invalid="ignore", over="ignore"):
            each = gradient.array().reshape(count, *self.layout.shape).astype(np.float32)
            total = each[0]
            for one in each[1:]:
                total = (total + one).astype(np.float32)
            return tensor(total / np.float32(divisor), self.grad_dtype)

    def describe(self):
        mesh = self.layout.mesh
        return (
            f"{self.name}: rule {self.rule.name}, shape {self.layout.shape}, batch {self.layout.batch}, "
            f"columns from {self.layout.flatten}, "
            f"{self.dtype} (gradient {self.grad_dtype}), mesh {mesh.sizes} on {mesh.ranks}, "
            f"{self.layout.placements} (gradient {self.layout.gradient}, states {self.layout.state}), "
            f"blocks {self.layout.blocks}, "
            f"{self.strategy}"
        )


@dataclass
class Batch:
    """Cases that are compiled together."""

    seed: str
    meshes: list
    rules: list
    cases: list = field(default_factory=list)
    waves: int = 1
    threads: int = 1

    def options(self):
        result = ["--waves", self.waves]
        for case in self.cases:
            if case.forced:
                result += ["--strategy", f"{case.name}={case.strategy}"]
        return result

    def write(self, folder: Path):
        """spec.optim, many.json and one.json with in.safetensors, and both.json with both.safetensors: the
        parameters of the two beside each other, so that they share what is compiled."""
        folder.mkdir(parents=True, exist_ok=True)
        used = [rule for rule in self.rules if any(case.rule is rule for case in self.cases)]
        claims = "".join(f'  {rule.name}() for "{rule.name}.*"\n' for rule in used)
        text = f"// seed {self.seed}\n" + "".join(rule.text for rule in used) + f"route {{\n{claims}}}\n"
        (folder / "spec.optim").write_text(text)
        many = {"version": 1, "meshes": [m.json() for m in self.meshes],
                "parameters": [case.json() for case in self.cases]}  # fmt: skip
        one = Mesh("one", (1,), [0])
        single = {"version": 1, "meshes": [one.json()],
                  "parameters": [case.json("one") for case in self.cases]}  # fmt: skip
        (folder / "many.json").write_text(json.dumps(many, indent=1))
        (folder / "one.json").write_text(json.dumps(single, indent=1))
        beside = [case.json("one") | {"name": case.name + BESIDE} for case in self.cases]
        both = many | {"meshes": many["meshes"] + single["meshes"], "parameters": many["parameters"] + beside}
        (folder / "both.json").write_text(json.dumps(both, indent=1))
        tensors = self.tensors()
        alone = self.reduced(tensors)
        save(folder / "in.safetensors", tensors)
        save(folder / "one.in.safetensors", alone)
        save(folder / "both.safetensors", tensors | {renamed(name): one for name, one in alone.items()})

    def reduced(self, tensors):
        """What one rank alone is given."""
        cases = {case.name: case for case in self.cases}
        return {name: cases[name[5:].split("@")[0]].reduced(one) if name.startswith("grad:") else one
                for name, one in tensors.items()}  # fmt: skip

    def tensors(self):
        generator = np.random.default_rng(list(self.seed.encode()))
        result = {}
        for case in self.cases:
            shape = case.layout.shape
            result[f"param:{case.name}"] = tensor(generator.normal(size=shape), case.dtype)
            for step in range(1, STEPS + 1):
                scale = 10.0 ** generator.uniform(-2, 0.5)
                count = case.layout.contributions()[0]
                values = scale * generator.normal(size=shape if count == 1 else (count, *shape))
                result[f"grad:{case.name}@{step}"] = tensor(values, case.grad_dtype)
            for name, (dtype, kind) in case.rule.states.items():
                if generator.random() < 0.4:
                    values = generator.normal(size=state_shape(case.layout, kind))
                    result[f"state:{case.name}:{name}"] = tensor(values, dtype)
        drawn = np.random.default_rng(list(f"{self.seed} spoiled".encode()))
        # In tensors of one shape they are the same elements: two NaNs meet.
        places = {case.name: drawn.random(1 + drawn.integers(8)) for case in self.cases if case.spoiled}
        for name, one in result.items():
            if (where := places.get(re.split("[:@]", name)[1])) is not None:
                result[name] = spoil(drawn, one, where)
        return result


def spoil(generator, one, places):
    """The elements at these places (0 to 1) become what is no plain number."""
    words, special = SPECIAL[one.dtype]
    data = np.frombuffer(one.data, words).copy()
    if data.size and generator.random() < 0.7:
        at = (places * data.size).astype(int)
        data[at] = generator.choice(np.array(special, words), at.size)
    return Tensor(one.dtype, one.shape, data.tobytes())


def renamed(tensor):
    """`role:name@step` of the parameter that is whole on one rank: `role:name.whole@step`."""
    return re.sub(r"(?<=:)[^:@]+", lambda name: name[0] + BESIDE, tensor, count=1)


def apart(tensors):
    """What both.json computes: (on many ranks, on one)."""
    one = {name.replace(BESIDE, "", 1): each for name, each in tensors.items() if BESIDE in name}
    return {name: each for name, each in tensors.items() if BESIDE not in name}, one


def state_shape(layout, kind):
    """The global shape of a state; matrices of a stack have their own. Where matrices are divided, the axis
    has an element per part in states without it."""
    lead, rows, cols = layout.shape[: layout.batch], layout.shape[-2:-1], layout.shape[-1:]
    if layout.flatten:
        rows, cols = layout.shape[layout.batch : layout.flatten], layout.shape[layout.flatten :]
    ends = {"full": layout.shape[layout.batch :], "rows": rows, "cols": cols, "one": ()}
    if layout.blocks:
        parts = (len(parts_of(layout.blocks)),)
        ends |= {"one": parts} | (
            {"cols": parts + cols} if layout.blocks["axis"] == "rows" else {"rows": rows + parts}
        )
    assert kind in SHAPES
    return (*lead, *ends[kind])


def random_batch(seed, count, divided=2, forms=True, chances=False):
    """`count` cases; strategies, dtypes and classes take turns, so that each comes often. The last `divided`
    of them are matrices of several blocks: what is drawn before does not depend on them. `forms` and
    `chances` as in random_rule."""
    source = random.Random(seed)
    meshes = random_meshes(source, source.choice(TOTALS[1:] if source.random() < 0.95 else TOTALS))
    flavors = ["elementwise", "vector", "matrix", "matrix"]
    rules = [
        random_rule(source, f"R{i}", flavor, forms=forms, chances=chances) for i, flavor in enumerate(flavors)
    ]
    batch = Batch(seed, meshes, rules, waves=source.randint(1, 3), threads=source.randint(1, 4))
    turn = source.randrange(12)
    chosen = {}  # equal parameters form a group, which has one strategy
    while len(batch.cases) < count - divided:
        turn += 1
        strategy = STRATEGIES[turn % 4]
        fit = [rule for rule in rules if rule.elementwise == (strategy == "elementwise")]
        rule = source.choice(fit or rules)
        if rule.elementwise:
            strategy = "elementwise"
        layout = random_layout(source, meshes[source.randrange(3)], rule,
                               batched=source.random() < 0.3, whole=strategy == "local", may_be_partial=True)  # fmt: skip
        dtype = source.choice(DTYPES)
        other = source.choice(DTYPES) if source.random() < 0.5 else dtype
        key = (rule.name, layout.shape, layout.batch, layout.flatten, layout.mesh.name,
               str((layout.placements, layout.gradient, layout.state)), dtype, other)
        if chosen.setdefault(key, strategy) != strategy:
            continue
        forced = strategy == "gather" or (strategy != "elementwise" and source.random() < 0.6)
        if strategy == "owner" and not forced and not layout.kinds - {"R", "owned"}:
            forced = True  # whole matrices would be local
        copies = 2 if source.random() < 0.15 else 1  # two parameters of one group
        for _ in range(min(copies, count - divided - len(batch.cases))):
            name = f"{rule.name}.p{len(batch.cases)}"
            batch.cases.append(Case(name, rule, layout, dtype, other, strategy, forced or copies > 1))
    for case in batch.cases:
        case.forced &= case.strategy != "elementwise"
    source = random.Random(f"{seed} divided")
    while len(batch.cases) < count:
        add_divided(source, batch)
    source = random.Random(f"{seed} spoiled")
    for case in batch.cases:
        case.spoiled = source.random() < SPOILED
        if chances and case.dtype == "f16":
            case.dtype = "bf16"
    return batch


def add_divided(source, batch):
    """One parameter whose matrices are divided. Blocks of each size stand in a group, all of one strategy."""
    rule = source.choice([rule for rule in batch.rules if not rule.elementwise])
    layout = random_layout(source, source.choice(batch.meshes), rule, batched=source.random() < 0.3, whole=False,
                           may_be_partial=True)  # fmt: skip
    if len(layout.matrix) - layout.batch != 2 or max(layout.matrix[-2:]) < 2:
        return
    layout.blocks = random_blocks(source, layout.matrix)
    dtype, strategy = source.choice(DTYPES), source.choice(("owner", "gather"))
    batch.cases.append(Case(f"{rule.name}.p{len(batch.cases)}", rule, layout, dtype, dtype, strategy, True))
