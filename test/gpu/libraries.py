"""What is compiled for the checks: definitions and manifests, by name.

A case with `reference` is compiled for a CPU too, whose bits are expected of the GPU. One with `cores` is
compiled a second time with products on tensor cores, which add up in an order of their own. `chips` takes the
place of the usual ones. With `plan` the library's JSON is carried, too. A case with `benchmark` is timed by
`benchmarks/orthogonalize.py`, and no check uses it: if the compiler refuses it, the reason is carried. Checks find cases
by the first part of their names.
"""

import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "test" / "python" / "property"))
sys.path.append(str(ROOT / "benchmarks"))  # behind: its models.py is another one

import orthogonalize  # noqa: E402
from cases import random_batch  # noqa: E402
from random_layouts import Mesh  # noqa: E402

EXAMPLES = ROOT / "examples"

ADAMW = """
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
"""
# As torch.optim.AdamW and examples/muon.optim have it, with a master where the parameter is not f32.
MASTER = ADAMW.replace("AdamW(", "Mastered(").replace("  state m", "  master : f32\n  state m", 1)
MIXED = f"""{ADAMW}{MASTER}
route {{
  Mastered(lr = 1e-3) for "mastered.*"
  AdamW(lr = 1e-3) for rest
}}
"""
# torch.optim.Muon with its own coefficients, and with Nesterov's momentum.
MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : bf16
  m = lerp(m, grad, 1 - momentum)
  let u = lerp(grad, m, momentum)
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = bf16)
  param = (1 - lr * weight_decay) * param - lr * sqrt(max(1, rows / cols)) * o
}
route {
  Muon(lr = 1e-3) for rest
}
"""
# What AdamW without a master in bf16 is, and what rounding by chance adds.
NARROW = ADAMW.replace("state m : f32", "state m : bf16").replace("state v : f32", "state v : bf16")
CHANCE = re.sub(r"(?m)^  (m|v|param) = (.*)$", r"  \1 = stochastic(\2)", NARROW)
ONE_CHANCE = re.sub(r"(?m)^  param = (.*)$", r"  param = stochastic(\1)", ADAMW)
NOISY = """
optimizer Noisy(lr, seed = 3) {
  state u : f32
  state z : f32 = normal
  u = uniform()
  param = stochastic(param - lr * (grad + z * (u - uniform())))
}
"""
FOR_REST = "route {\n  AdamW(lr = 1e-3) for rest\n}\n"
ALL_ADAMW = ADAMW + FOR_REST


def iterated(steps):
    """A rule that is nothing but Newton–Schulz: two of them tell what an iteration takes."""
    triples = ", ".join(["(3.4445, -4.7750, 2.0315)"] * steps)
    return f"""
optimizer Iterate() {{
  param = orthogonalize(grad, coefficients = [{triples}], precision = bf16)
}}
route {{
  Iterate() for rest
}}
"""


# Sums of columns and blocks of which several ranks have parts.
SUMS = f"""{ADAMW}
optimizer Sums(lr) {{
  state c : f32[cols]
  c = lerp(c, mean(grad ^ 2, over = rows), 0.1)
  let u = grad / (sqrt(c) + 1e-4)
  param = param - lr * u * norm(param) / (norm(u) + 1e-6)
}}
route {{
  Sums(lr = 1e-3) for matrix
  AdamW(lr = 1e-3) for rest
}}
"""
# Gradients that are clipped by the norm of all of them, and a rule that reads this norm.
# About every second step is skipped.
CLIPPED = f"""model(max_norm = 1) {{
  let total = norm(grad)
  let center = mean(grad)
  skip when not finite(total) or center < 0
  metric grad_norm = total
  grad = min(1, max_norm / (total + 1e-6)) * grad
}}
{ADAMW}
optimizer Slowed(lr) {{
  state m : f32
  m = lerp(m, grad, 0.1)
  metric momentum = rms(m)
  param = param - lr / (1 + model.total) * m
}}
route {{
  Slowed(lr = 1e-3) for matrix
  AdamW(lr = 1e-3) for rest
}}
"""
# Numbers of rows and columns, and states that start at random numbers and at the identity matrix.
PLACES = f"""{ADAMW}
optimizer Places(lr) {{
  state z : f32 = normal
  state half : bf16 = normal
  state one : f32 = identity
  z = lerp(z, grad, 0.5) + (row - col) / rows
  one = one + half * grad
  let r = sum(select(row < 9, z, 0), over = rows)
  param = param - lr * (z + one * r)
}}
route {{
  Places(lr = 1e-3, seed = 3) for matrix
  AdamW(lr = 1e-3) for rest
}}
"""
# Products of values of a rule, transposes of all kinds, and states of sizes of their own.
MATRICES = f"""{ADAMW}
optimizer Matrices(lr) {{
  let r = max(1, floor(0.25 * min(rows, cols)))
  state L : f32[rows, rows] = identity
  state R : bf16[cols, cols]
  state Q : f32[cols, r] = normal
  L = lerp(L, grad @ transpose(grad), 0.1)
  R = lerp(R, transpose(grad) @ grad, 0.1)
  let P = cast(grad, bf16) @ cast(Q, bf16)
  let D = L - transpose(sum(L, over = columns))
  Q = Q / (norm(Q, over = rows) + 1e-6) + 0.1 * transpose(transpose(P) @ grad)
  let u = transpose(D) @ grad @ cast(R, f32) + P @ transpose(Q)
  param = param - lr * u / (rms(u) + 1e-6)
}}
route {{
  Matrices(lr = 1e-3, seed = 3) for matrix
  AdamW(lr = 1e-3) for rest
}}
"""
# A state that only matrix space reads and writes, so that it stays with the ranks that compute its blocks.
BLOCKS = f"""{ADAMW}
optimizer Between(lr) {{
  state v : f32
  let first = orthogonalize(grad, steps = 2, precision = bf16)
  v = lerp(v, first, 0.5)
  param = param - lr * orthogonalize(v, steps = 2, precision = bf16)
}}
route {{
  Between(lr = 1e-3) for matrix
  AdamW(lr = 1e-3) for rest
}}
"""


@dataclass
class Case:
    name: str
    text: str
    manifest: dict
    options: tuple = ()
    reference: bool = True
    cores: bool = False
    chips: str = ""
    plan: bool = False
    benchmark: bool = False


def parameter(name, shape, dtype="f32", mesh="one", placements=("R",), **more):
    return {"name": name, "shape": list(shape), "dtype": dtype, "mesh": mesh, "placements": list(placements)} | more


def manifest(parameters, sizes=(1,)):
    axes = [{"name": f"a{i}", "size": size} for i, size in enumerate(sizes)]
    return {"version": 1, "meshes": [{"name": "one", "axes": axes}], "parameters": parameters}


def gpt(width, layers, dtype, placements=("R",)):
    """Parameters of a small GPT with experts: the shapes of all that the examples step."""
    shapes = {"tok_embed.weight": (5 * width + 3, width), "lm_head.weight": (5 * width + 3, width)}
    for i in range(layers):
        shapes |= {f"layers.{i}.{name}.weight": (width, width) for name in ("q", "k", "v", "proj")}
        shapes |= {
            f"layers.{i}.up.weight": (4 * width - 2, width),
            f"layers.{i}.down.weight": (width, 4 * width - 2),
        }
        shapes[f"layers.{i}.norm.weight"] = (width,)
    made = [
        parameter(name, shape, dtype if len(shape) > 1 else "f32", placements=placements)
        for name, shape in shapes.items()
    ]
    return [
        *made,
        parameter("experts.weight", (8, width // 2, width), dtype, placements=placements, batch_axes=1),
    ]


def odd_sizes():
    """Sizes that fit no vector and no block of threads, in all types of parameter and gradient."""
    made = []
    for i, shape in enumerate([(1,), (7,), (8,), (127,), (4097,), (33, 17), (64, 64), (3, 5, 7), (70001,)]):
        for dtype, other in (("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("f32", "bf16")):
            rule = "mastered" if i % 2 else "plain"
            made.append(parameter(f"{rule}.{i}.{dtype}.{other}", shape, dtype, grad_dtype=other))
    return made


def rules(count, each):
    """Random rules over the whole language, whole on one rank."""
    for index in range(count):
        seed = f"gpu-{random.SystemRandom().randrange(10**9)}"
        batch = random_batch(seed, each)
        used = [rule for rule in batch.rules if any(case.rule is rule for case in batch.cases)]
        claims = "".join(f'  {rule.name}() for "{rule.name}.*"\n' for rule in used)
        text = f"// seed {seed}\n" + "".join(rule.text for rule in used) + f"route {{\n{claims}}}\n"
        mesh = Mesh("one", (1,), [0]).json()
        whole = {"version": 1, "meshes": [mesh], "parameters": [case.json("one") for case in batch.cases]}
        yield Case(f"rules.{index}", text, whole)


def products(counts, small, large):
    """Muon on equal matrices, 1, 2, … of each shape: all but the first must not be seen in its bits. Large
    ones have tiles of 128, whole and ragged, at addresses that fit copies and at others; this CPU would take
    too long."""
    shapes = [(96, 64), (64, 200), (66, 130), (8, 1000)] if small else [(96, 64), (64, 200), (130, 257), (256, 256), (8, 1000)]
    # On sm_90a those of more than 64 rows and columns run on warpgroups if their rows are whole 16 bytes.
    shapes += [(640, 520), (601, 513), (264, 1032), (904, 328)] * large
    for count in counts:
        made = [parameter(f"{rows}x{cols}.{i}", (rows, cols), "bf16") for rows, cols in shapes for i in range(count)]
        yield Case(f"products.{count}", MUON, manifest(made), reference=count == counts[0], cores=True)
    yield Case("products.waves", MUON, manifest(made), ("--waves", "3"), reference=False, cores=True)
    made = [parameter(f"{rows}x{cols}", (rows, cols), "bf16") for rows, cols in shapes]
    yield Case("products.close", iterated(2), manifest(made), cores=True)


def worlds(sizes, width):
    """The same model on 1, 2, … ranks, by several strategies; what one rank computes is expected of all."""
    text = (EXAMPLES / "muon.optim").read_text()
    yield Case("world.1", text, manifest(gpt(width, 1, "bf16", ("S(0)",))), cores=True)
    for size in sizes:
        sharded = manifest(gpt(width, 1, "bf16", ("S(0)",)), (size,))
        yield Case(f"world.{size}.owner", text, sharded, reference=False, cores=True)
        yield Case(f"world.{size}.gather", text, sharded, ("--strategy", "layers.*=gather", "--waves", "2"), reference=False, cores=True)
        if size > 2:
            cut = manifest(gpt(width, 1, "bf16", ("R", "S(0)")), (2, size // 2))
            yield Case(f"world.{size}.hybrid", text, cut, reference=False, cores=True)


def sums(width):
    """The same matrices on one rank and on two, each of which has some rows of every column and block."""
    yield Case("sums.1", SUMS, manifest(gpt(width, 1, "f32", ("S(0)",))))
    yield Case("sums.2", SUMS, manifest(gpt(width, 1, "f32", ("S(0)",)), (2,)), reference=False)


def clipped(width):
    """The same parameters on one rank and on two, with numbers of the whole model."""
    yield Case("model.1", CLIPPED, manifest(gpt(width, 1, "f32", ("S(0)",))))
    yield Case("model.2", CLIPPED, manifest(gpt(width, 1, "f32", ("S(0)",)), (2,)), reference=False)


def block_states(sizes, width):
    """The same matrices on one rank, and with states that stay with blocks on several."""
    yield Case("blocks.1", BLOCKS, manifest(gpt(width, 1, "bf16", ("S(0)",))), cores=True)
    for size in sizes:
        sharded = manifest(gpt(width, 1, "bf16", ("S(0)",)), (size,))
        yield Case(f"blocks.{size}", BLOCKS, sharded, ("--waves", "2"), reference=False, cores=True)
        yield Case(f"blocks.{size}.gather", BLOCKS, sharded, ("--strategy", "*=gather"), reference=False, cores=True)


def trained_gpt():
    """The model of examples/train_gpt.py under FSDP2 on one rank, in the size that checks/trainer.py
    trains.
    """
    sys.path.insert(0, str(EXAMPLES))
    from train_gpt import GPT

    model = GPT(width=48, heads=3, layers=2, length=32)
    made = [parameter(name, one.shape, placements=("S(0)",)) for name, one in model.named_parameters()]
    return Case("trained.gpt", (EXAMPLES / "train_gpt.optim").read_text(), manifest(made), reference=False)


LLAMA_8B = {"q": (4096, 4096), "k": (1024, 4096), "v": (1024, 4096), "o": (4096, 4096),
            "gate": (14336, 4096), "up": (14336, 4096), "down": (4096, 14336)}  # fmt: skip


def eighth_of_8b(layers):
    """Shards of Llama-3-8B on one of eight ranks that cut rows, as tensors of their own: a billion
    elements.
    """
    made = [parameter("embed", (128256 // 8, 4096)), parameter("head", (128256 // 8, 4096))]
    for i in range(layers):
        made += [parameter(f"{i}.{name}", (rows // 8, cols)) for name, (rows, cols) in LLAMA_8B.items()]
        made += [parameter(f"{i}.{name}", (512,)) for name in ("norm1", "norm2")]
    return made


def timings(small):
    """Without references: they are compared with torch in their own run."""
    yield Case("time.adamw", ALL_ADAMW, manifest(eighth_of_8b(1 if small else 32)) if not small else
               manifest([parameter(f"p{i}", (64, 64)) for i in range(4)]), reference=False)  # fmt: skip
    narrow = manifest([parameter("w", (1 << 6, 1 << 4) if small else (1 << 14, 1 << 14), "bf16")])
    rounded = {"nearest": NARROW, "chance": CHANCE, "wide_nearest": ADAMW, "wide_chance": ONE_CHANCE}
    for name, rule in rounded.items():
        yield Case(f"time.{name}", rule + FOR_REST, narrow, reference=False)
    layer = {name: (16, 24) if small else shape for name, shape in LLAMA_8B.items()}
    yield Case("time.muon", MUON, manifest([parameter(name, shape, "bf16") for name, shape in layer.items()]), reference=False)
    yield Case(
        "time.host", ALL_ADAMW, manifest([parameter(f"p{i}", (64,)) for i in range(400)]), reference=False
    )
    for rows, cols in ((32, 32),) if small else ((1024, 1024), (2048, 2048), (4096, 4096), (4096, 14336)):
        count = 2 if small else max(1, (4096 * 4096) // (rows * cols))
        made = manifest([parameter(f"w{i}", (rows, cols), "bf16") for i in range(count)])
        for steps in (1, 3):
            yield Case(f"time.product.{rows}x{cols}.{steps}", iterated(steps), made, reference=False)


def pinned(small):
    """What cuBLASLt is asked to multiply: whole tiles, ragged ones, and rows that are no whole accesses."""
    shapes = [(48, 16)] if small else [(1024, 1024), (1024, 256), (640, 520), (601, 513)]
    made = [parameter(f"{rows}x{cols}", (rows, cols), "bf16") for rows, cols in shapes]
    yield Case("pinned", iterated(2), manifest(made), reference=False, cores=True, plan=True)


def orthogonalizations(small):
    """The sets of `benchmarks/orthogonalize.py`, each in every form. Many equal matrices are one parameter."""
    for name, matrices in orthogonalized(small).items():
        made = []
        for i, (count, *shape) in enumerate(matrices):
            if count >= orthogonalize.MANY and len(matrices) == 1:
                made.append(parameter(f"w{i}", (count, *shape), "bf16", batch_axes=1))
            else:
                made += [parameter(f"w{i}.{j}", shape, "bf16") for j in range(count)]
        for form in orthogonalize.FORMS:
            yield Case(f"orthogonalize.{name}.{form}", orthogonalize.rule(form), manifest(made), reference=False, benchmark=True)


def orthogonalized(small):
    """Matrices of each set."""
    if not small:
        return orthogonalize.SETS
    return {name: orthogonalize.small(orthogonalize.SETS[name]) for name in orthogonalize.SMALL}


def all_cases(small, dry):
    width = 32 if small else 96
    one = manifest(gpt(width, 1 if small else 2, "bf16"))
    yield Case("example.muon", (EXAMPLES / "muon.optim").read_text(), one)
    if not small:
        f32 = manifest(gpt(width, 2, "f32"))
        yield Case("example.train_gpt", (EXAMPLES / "train_gpt.optim").read_text(), f32)
        plain = [parameter(name, shape) for name, shape in (
            ("embed", (128, 16)), ("hidden.0", (128, 130)), ("hidden.0.bias", (130,)), ("hidden.1", (130, 96)),
            ("hidden.1.bias", (96,)), ("head", (96, 128)), ("head.scale", (1,)))]  # fmt: skip
        yield Case("example.c_trainer", (EXAMPLES / "c_trainer.optim").read_text(), manifest(plain))
    yield Case("odd", MIXED, manifest(odd_sizes()))
    claims = '  AdamW(lr = 1e-3) for "*.q.weight", "*.up.weight", "*norm.weight"\n'
    claims += "  Noisy(lr = 1e-3) for rest\n"
    yield Case("draws", CHANCE + NOISY + f"route {{\n{claims}}}\n", manifest(gpt(width + 3, 1, "bf16")))
    yield Case("places", PLACES, manifest(gpt(width + 3, 1, "bf16")))
    yield Case("matrices", MATRICES, manifest(gpt(width + 3, 1, "bf16")))
    yield from rules(1 if small else 4, 6 if small else 14)
    yield from products((1, 2) if small else (1, 2, 7), small, large=not (small or dry))
    yield from worlds((2,) if small else (2, 4, 8), 32 if small else 64)
    yield from sums(64 if small else 128)
    yield from clipped(64 if small else 128)
    yield from block_states((2,) if small else (2, 4), 32 if small else 64)
    yield from pinned(small)
    yield trained_gpt()
    yield Case("chip", ALL_ADAMW, manifest([parameter("w", (8,))]), reference=False, chips="sm_120")
    yield from timings(small)
    yield from orthogonalizations(small)
