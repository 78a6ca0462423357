"""A changed operand or attribute of level exec is refused, or gives equal bits (P4).

Random rules on random parameters are compiled to level exec; in its text one fault is planted in the program
or a kernel, and the text is compiled on. What is not refused is stepped, and must make the bytes of the sound
library. STEPC_SEED repeats a run (its value is printed), STEPC_MUTANTS and STEPC_MUTATED make it longer.
"""

import os
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cases import STEPS, random_batch
from compiler import STEPC, CompilerFailed, load, stepc
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
PROGRAMS = int(os.environ.get("STEPC_MUTATED") or draws(1))
MUTANTS = int(os.environ.get("STEPC_MUTANTS", "50"))  # of each program
NUMBER = r"-?\d+\.\d+(?:[eE][+-]?\d+)?|0x[0-9A-F]+"
WORDS = {
    "kind of value": ("full", "rows", "cols", "one"),
    "end": ("sent", "received", "kept"),
    "distribution": ("shards", "blocks", "hop 0", "state_shards", "gradient_shards"),
    "kind of table": (
        "kind = shard_chunks",
        "kind = block_chunks",
        "kind = copy",
        "kind = message",
    ),
    "collective": ("exchange", "all_gather"),
    "reduction": ("sum", "mean", "rms", "norm", "max"),
    "accumulation": ("fused_chain", "rounded_chain", "tensorcore"),
    "shards": ("#exec.shards<parameter>", "#exec.shards<gradient>"),
    "operation": (
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.maximumf",
        "arith.minimumf",
    ),
    "predicate": ("olt", "ole", "ogt", "oge", "oeq", "une"),
    "function": ("math.exp", "math.log", "math.sqrt", "math.rsqrt", "math.absf"),
    "map": ("#map", "#map1", "#map2", "#map3"),
    "loop": ('"parallel"', '"reduction"'),
    "column": ("%c0]", "%c1]", "%c2]", "%c3]"),
}
COUNTERS = ("start", "traveller", "pool", "member")
NUMBERS = (*COUNTERS, "offset", "bytes", "columns", "element_bytes", "scratch", "exponent", "arena")


class Mutator:
    """Changes one thing in the text of a module at level exec; says what, or nothing where it found none."""

    def __init__(self, text, source):
        self.source = source
        self.lines = text.split("\n")
        first = next(i for i, line in enumerate(self.lines) if line.startswith("  exec.program"))
        last = next(i for i, line in enumerate(self.lines) if i > first and line == "  }")
        self.program = range(first, last)
        self.commands = range(first + 1, last - 1)  # but for the one that advances the steps
        self.kernels = [
            i for i, line in enumerate(self.lines) if i > last and ("=" in line or "yield" in line)
        ]

    def mutate(self):
        kinds = (
            self.number,
            self.word,
            self.symbol,
            self.operands,
            self.communicator,
            self.literal,
            self.flag,
            self.order,
            self.value,
        )
        return self.chunk() if self.source.random() < 0.02 else self.source.choice(kinds)()

    def replace(self, places, make):
        """Replaces the text of one of `places` (line, first, last) by what `make` makes of it."""
        if not places:
            return False
        line, first, last = self.source.choice(places)
        text = self.lines[line]
        old, new = text[first:last], make(text[first:last])
        self.lines[line] = text[:first] + (new or old) + text[last:]
        return bool(new) and new != old

    def find(self, pattern, lines, group=0):
        return [(i, *m.span(group)) for i in lines for m in re.finditer(pattern, self.lines[i])]

    def chunk(self):
        """Rows of another length."""
        line = self.program[0]
        sizes = r"(exec.program arena \d+(?: scratch \d+)?)(?: chunk \d+)?"
        self.lines[line] = re.sub(sizes, rf"\1 chunk {self.source.randint(1, 4000)}", self.lines[line])
        return "chunk"

    def number(self):
        name = self.source.choice(NUMBERS)
        places = self.find(rf"\b{name}(?: =)? (-?\d+)", self.program, 1)
        used = [self.lines[i][a:b] for i, a, b in places]
        by = self.source.choice((-64, 64, 1, -1, 32, 128)) if name not in COUNTERS else 1
        other = lambda old: self.source.choice((*used, str(int(old) + by)))
        if self.source.random() < 0.2 and (shapes := self.find(r"tensor<(\d+)x\d+x", self.program, 1)):
            return self.replace(shapes, lambda old: str(int(old) + 1)) and "extents"
        return self.replace(places, other) and name

    def word(self):
        name, words = self.source.choice(list(WORDS.items()))
        lines = self.kernels if words[0][0] in 'a%#m"o' and name != "shards" else self.program
        pattern = "|".join(rf"(?<![\w@]){re.escape(word)}(?!\w)" for word in words)
        return self.replace(self.find(pattern, lines), lambda old: self.source.choice(words)) and name

    def symbol(self):
        """Another segment, group, kernel or state."""
        name, pattern = self.source.choice((("segment", r"<(@[\w.]+), "), ("group", r" of \[(@[\w.]+)"),
                                            ("kernel", r"exec.dispatch_\w+ (@[\w.]+)"),
                                            ("state", r"exec.shards<state, (\"\w+\")")))  # fmt: skip
        places = self.find(pattern, self.commands, 1)
        used = sorted({self.lines[i][a:b] for i, a, b in places})
        return self.replace(places, lambda old: self.source.choice(used)) and name

    def operands(self):
        """Two operands of a command, swapped, or one for another."""
        line = self.source.choice(self.commands)
        text = self.lines[line]
        found = [
            m.span() for m in re.finditer(r"#exec\.(?!table)\w+<[^<>]*>|<offset = (?:[^<>]|<[^<>]*>)*>", text)
        ]
        if len(found) < 2:
            return False
        (a, b), (c, d) = sorted(self.source.sample(found, 2))
        if self.source.random() < 0.5:
            self.lines[line] = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
            return text[a:b] != text[c:d] and "operands swapped"
        self.lines[line] = text[:a] + text[c:d] + text[b:]
        return text[a:b] != text[c:d] and "another operand"

    def communicator(self):
        """Other ranks meet: those of another start, each alone, along another part of an axis, or all."""
        if self.source.random() < 0.2:
            return (
                self.replace(self.find(r" on <@[\w.]+, \[.*?\]>", self.program), lambda old: " ")
                and "the world"
            )
        places = self.find(r" on <@[\w.]+, (\[.*?\])>", self.program, 1)
        used = [self.lines[i][a:b] for i, a, b in places]
        near = lambda found: str(max(0, int(found[0]) + self.source.choice((-1, 0, 1, 2))))
        other = lambda old: self.source.choice((*used, "[]", re.sub(r"\d+", near, old)))
        return self.replace(places, other) and "communicator"

    def literal(self):
        lines = self.source.choice((self.kernels, self.commands))
        by = self.source.choice((-1.0, 1 + 2.0**-20, 1.5, 0.0))
        make = lambda old: f"{float(old) * by:.9e}" if "x" not in old else None
        return self.replace(self.find(NUMBER, lines), make) and "literal"

    def flag(self):
        flags = ("transpose_lhs", "transpose_rhs", "symmetric")
        products = [i for i in self.commands if "exec.product" in self.lines[i]]
        if not products:
            return False
        line, flag = self.source.choice(products), self.source.choice(flags)
        text = self.lines[line]
        self.lines[line] = (
            text.replace(f", {flag}", "") if f", {flag}" in text else text[:-1] + f", {flag}" + "}"
        )
        return flag

    def order(self):
        """A command is missing, comes twice, or stands elsewhere."""
        line, other = (
            self.source.choice(self.commands),
            self.source.choice(self.commands),
        )
        text, what = (
            self.lines[line],
            self.source.choice(("missing", "twice", "moved", "moved")),
        )
        if what != "twice":
            del self.lines[line]
        if what == "missing" and "exec.start" in text:
            token = text.split()[0]
            self.lines = [each for each in self.lines if each.strip() != f"exec.await {token}"]
        if what != "missing":
            self.lines.insert(other, text)
        return what if what != "moved" or line != other else False

    def value(self):
        """Another value of a kernel."""
        line = self.source.choice(self.kernels)
        start = self.lines[line].find("=") + 1
        places = [(line, *m.span()) for m in re.finditer(r"%\w+", self.lines[line]) if m.start() > start]
        near = "\n".join(self.lines[max(line - 6, 0) : line + 1])
        used = sorted(set(re.findall(r"%\w+", near)))
        return (
            bool(used) and self.replace(places, lambda old: self.source.choice(used)) and "value of a kernel"
        )


class Program:
    """A random program, what it makes, and how to step another library of it."""

    def __init__(self, seed, folder):
        self.folder, self.batch = folder, random_batch(seed, 4)
        self.batch.write(folder)
        options = self.batch.options()
        stepc(
            "compile",
            folder / "spec.optim",
            "-m",
            folder / "many.json",
            *options,
            "--emit",
            "exec",
            "-o",
            folder,
        )
        self.text = (folder / "spec.mlir").read_text()
        stepc("compile", folder / "spec.mlir", "-o", folder / "sound")
        self.library = (folder / "sound/libspec.so").read_bytes()
        self.sound = self.step(folder / "sound")

    def step(self, library):
        stepc("run", self.folder / "spec.optim", "-m", self.folder / "many.json", "--tensors",
              self.folder / "in.safetensors", "--steps", STEPS, "-o", library / "out.safetensors", "--library",
              library / "libspec.so")  # fmt: skip
        return load(library / "out.safetensors")

    def judge(self, text, folder):
        """refused, the same library, equal bits, or what is wrong."""
        folder.mkdir()
        (folder / "spec.mlir").write_text(text)
        try:
            stepc("compile", folder / "spec.mlir", "-o", folder)
        except CompilerFailed as failed:
            said = str(failed)
            return "refused" if said.startswith("exit 1:") and "error: " in said else said
        if (folder / "libspec.so").read_bytes() == self.library:
            return "the same library"
        try:
            return "equal bits" if self.step(folder) == self.sound else "accepted, and other bits"
        except CompilerFailed as failed:
            return f"accepted, and {failed}"


def attack(seed, folder):
    program = Program(seed, folder)
    histogram, wrong = Counter(), []
    for index in range(MUTANTS):
        mutator = Mutator(program.text, random.Random(f"{seed}-{index}"))
        what = mutator.mutate()
        if not what:
            continue
        verdict = program.judge("\n".join(mutator.lines), folder / str(index))
        histogram[what, verdict] += 1
        if verdict not in ("refused", "the same library", "equal bits"):
            wrong.append(f"{what} in {folder / str(index)}: {verdict}")
    return histogram, wrong


def test_no_edit_of_a_program_changes_bits(tmp_path, capsys):
    folder = Path(os.environ.get("STEPC_KEEP") or tmp_path)
    seeds = [f"{SEED}-{index}" for index in range(PROGRAMS)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda seed: attack(seed, folder / seed), seeds))
    total = sum((histogram for histogram, _ in results), Counter())
    verdicts = ("refused", "the same library", "equal bits")
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {total.total()} edits of programs; " + ", ".join(verdicts))
        for what in sorted({what for what, _ in total}):
            print(f"  {what:20}" + "".join(f"{total[what, verdict]:5}" for verdict in verdicts))
    wrong = [text for _, texts in results for text in texts]
    assert not wrong, f"STEPC_SEED={SEED}\n" + "\n".join(wrong)
    assert total.total() >= PROGRAMS * MUTANTS // 4
    assert sum(total[key] for key in total if key[1] == "refused") >= total.total() // 2
