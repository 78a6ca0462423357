"""Times five steps of Newton–Schulz in several ways on a GPU, with one table for each set of matrices.

    test/gpu/run.sh build                      # where stepc is built: libraries and this file into build/gpu
    python3 build/gpu/orthogonalize.py         # where a GPU is; benchmarks/README.md says more

Ways: torch.optim.Muon's function (as it is, and in a CUDA graph), torch on stacks of equal matrices, a
symmetric product in Triton, stepc in its standard and Gram form, and gram-newton-schulz where it is
installed. A way that cannot run is in the table with the reason. The table has milliseconds, operations that
are executed per second, the share of the limit, and the error against float64.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
MANY = 32  # equal matrices that are one parameter with a batch axis, as experts are
EDGE = 64  # of the blocks in which stepc computes symmetric results

# Matrices of each set: how many, rows, columns. Layers have their matrices as trainers have them.
SETS = {
    "1024": [(1, 1024, 1024)],
    "2048": [(1, 2048, 2048)],
    "4096": [(1, 4096, 4096)],
    "8192": [(1, 8192, 8192)],
    "4x4096": [(4, 4096, 4096)],
    "16x1024": [(16, 1024, 1024)],
    "1024x4096": [(1, 1024, 4096)],
    "2048x8192": [(1, 2048, 8192)],
    "4096x14336": [(1, 4096, 14336)],
    "128x768x2048": [(128, 768, 2048)],
    "32x2048x5464": [(32, 2048, 5464)],
    "llama-3-8b": [(2, 4096, 4096), (2, 1024, 4096), (2, 14336, 4096), (1, 4096, 14336)],
    "qwen3-8b": [(2, 4096, 4096), (2, 1024, 4096), (2, 12288, 4096), (1, 4096, 12288)],
    "qwen3-1.7b.x4": [(8, 2048, 2048), (8, 1024, 2048), (8, 6144, 2048), (4, 2048, 6144)],
    "qwen3-1.7b.x28": [(56, 2048, 2048), (56, 1024, 2048), (56, 6144, 2048), (28, 2048, 6144)],
}
SMALL = ("4096", "1024x4096", "128x768x2048", "llama-3-8b")  # of which a small build has little matrices
FORMS = {"standard": "precision = bf16", "gram": "precision = f16, form = gram"}


def small(matrices):
    """The same set in little, for CPUs."""
    return [
        (MANY if count >= MANY else min(count, 2), max(8, rows // 128), max(8, cols // 128))
        for count, rows, cols in matrices
    ]


def rule(form):
    """A rule that orthogonalizes the gradient, and does nothing else."""
    a, b, c = COEFFICIENTS
    triples = ", ".join([f"({a}, {b}, {c})"] * STEPS)
    return f"""
optimizer Orthogonalize() {{
  param = orthogonalize(grad, coefficients = [{triples}], {FORMS[form]})
}}
route {{
  Orthogonalize() for rest
}}
"""


def symmetric_flops(rows, k, edge=EDGE):
    """Operations of the blocks on or below the diagonal of a symmetric product rows × k by k × rows, as
    stepc counts them."""
    whole, rest = divmod(rows, edge)
    return 2 * k * (edge * edge * whole * (whole + 1) // 2 + rest * rows)


def flops(matrices, form, edge=EDGE):
    """Operations that five steps execute: `full` of whole products, `standard` and `gram` (one restart behind
    step 2) with symmetric ones, in blocks of `edge`."""
    total = 0
    for count, rows, cols in matrices:
        r, c = sorted((rows, cols))
        square, wide = symmetric_flops(r, r, edge), symmetric_flops(r, c, edge)
        each = {
            "full": STEPS * (4 * r * r * c + 2 * r**3),
            "standard": STEPS * (wide + square + 2 * r * r * c),
            "gram": 2 * wide + 14 * square + 4 * r * r * c,
        }[form]
        total += count * each
    return total


# ------------------------------------------------------------------------------------------------------
# One set, in a process of its own
# ------------------------------------------------------------------------------------------------------


def reference(matrix):
    """What the steps give in float64."""
    a, b, c = COEFFICIENTS
    x = matrix.double()
    x = x.mT if x.shape[0] > x.shape[1] else x
    x = x / x.norm().clamp_min(1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if matrix.shape[0] > matrix.shape[1] else x


def wide(stack):
    """The stack with its shorter side first, as a view."""
    return stack.mT if stack.shape[1] > stack.shape[2] else stack


def normalized(stack):
    import torch

    norms = torch.linalg.vector_norm(stack, dim=(1, 2), keepdim=True, dtype=torch.float32)
    return stack / norms.clamp_min(1e-7).to(stack.dtype)


class Ways:
    """Functions that orthogonalize the same matrices. Each returns stacks in the order of the set."""

    def __init__(self, machine, name, matrices):
        import torch

        self.machine, self.name, self.matrices = machine, name, matrices
        self.torch, self.device = torch, machine.place.device
        torch.manual_seed(7)
        self.stacks = [(0.02 * torch.randn(one, device=self.device)).bfloat16() for one in matrices]

    def all(self):
        """Each way's name, what it executes, and a function that makes it ready."""
        full, gram = flops(self.matrices, "full"), flops(self.matrices, "gram")
        tiles = flops(self.matrices, "standard", edge=128)  # those of CONFIGS in triton_symmetric.py
        yield "torch.optim.Muon", full, self.torch_muon
        yield "torch.optim.Muon, in a graph", full, self.torch_graph
        yield "torch, batched", full, lambda: self.batched
        yield "Triton, symmetric", tiles, self.triton
        for form in FORMS:
            yield f"stepc, {form} form", self.planned(form), lambda form=form: self.stepc(form)
        yield "gram-newton-schulz", gram, self.gram_newton_schulz
        yield "gram-newton-schulz, compiled", gram, lambda: self.gram_newton_schulz(compiled=True)

    def torch_muon(self):
        from torch.optim._muon import _zeropower_via_newtonschulz as theirs

        # It divides its argument in place, so it has copies.
        flat = [one.clone() for stack in self.stacks for one in stack]

        def run():
            made = iter([theirs(one, COEFFICIENTS, STEPS, 1e-7) for one in flat])
            return [[next(made) for _ in stack] for stack in self.stacks]

        return run

    def torch_graph(self):
        if not self.machine.place.is_gpu:
            raise RuntimeError("there is no GPU")
        run = self.torch_muon()
        self.torch.cuda.synchronize()
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            run()
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            made = run()

        def replay():
            graph.replay()
            return made

        return replay

    def batched(self):
        a, b, c = COEFFICIENTS
        made = []
        for stack in self.stacks:
            x = wide(normalized(stack))
            for _ in range(STEPS):
                gram = self.torch.bmm(x, x.mT)
                x = self.torch.baddbmm(x, self.torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
            made.append(x.mT if wide(stack) is not stack else x)
        return made

    def triton(self):
        if not self.machine.place.is_gpu:
            raise RuntimeError("there is no GPU")
        from triton_symmetric import CONFIGS, product

        a, b, c = COEFFICIENTS
        squares = [self.torch.empty(one.shape[0], *2 * (min(one.shape[1:]),), dtype=one.dtype, device=self.device) for one in self.stacks]  # fmt: skip
        others = [self.torch.empty_like(one) for one in squares]

        def run(config):
            made = []
            for stack, gram, poly in zip(self.stacks, squares, others, strict=True):
                x = wide(normalized(stack))
                for _ in range(STEPS):
                    product(x, None, gram, 1.0, 0.0, config)
                    product(gram, gram, poly, c, b, config)
                    x = self.torch.baddbmm(x, poly, x, beta=a)
                made.append(x.mT if wide(stack) is not stack else x)
            return made

        from checks.timings import once

        def taken(config):
            return min(once(self.machine.place, lambda: run(config)) for _ in range(3))

        best = min(CONFIGS, key=taken)
        return lambda: run(best)

    def planned(self, form):
        """What the compiler says that the library's step executes; of products and norms."""
        return self.machine.about["flops"].get(f"orthogonalize.{self.name}.{form}", 0)

    def stepc(self, form):
        case = f"orthogonalize.{self.name}.{form}"
        if case in self.machine.about["missing"]:
            raise RuntimeError(self.machine.about["missing"][case])
        from checks.timings import Bound

        bound = Bound(self.machine, case, graph=self.machine.place.is_gpu)
        flat = {f"w{i}.{j}": one for i, stack in enumerate(self.stacks) for j, one in enumerate(stack)}
        held = {}
        for one, made in zip(bound.instance.parameters, bound.parameters, strict=True):
            if one.name in flat:
                made.grad.copy_(flat[one.name])
                held[one.name] = made.data
            else:  # a stack
                made.grad.copy_(self.stacks[int(one.name[1:])])
                held |= {f"{one.name}.{j}": made.data[j] for j in range(len(made))}

        def run():
            bound.run()
            return [[held[f"w{i}.{j}"] for j in range(len(stack))] for i, stack in enumerate(self.stacks)]

        return run

    def gram_newton_schulz(self, compiled=False):
        theirs = importlib.import_module("gram_newton_schulz").GramNewtonSchulz(
            ns_coefficients=[list(COEFFICIENTS)] * STEPS, gram_newton_schulz_reset_iterations=[2]
        )
        # The package compiles a function of the instance, which a call of the instance does not use.
        function = vars(theirs).get("__call__") if compiled else theirs
        if function is None:
            raise RuntimeError("this version compiles nothing")
        return lambda: [function(stack) for stack in self.stacks]


def measure(folder, name, dry, budget):
    """The ways of one set: seconds, executed operations and error; or why a way is missing."""
    sys.path[:0] = [str(folder), str(folder / "python")]
    from checks.machine import Machine
    from checks.timings import interleaved

    machine = Machine(folder, dry)
    ways = Ways(machine, name, machine.about["sets"][name])
    found, functions = {}, {}
    expected = [reference(stack[0]) for stack in ways.stacks]
    for way, executed, make in ways.all():
        try:
            function = make()
            made = function()
            machine.place.synchronize()
            errors = [float((got[0].double() - want).norm() / want.norm()) for got, want in zip(made, expected, strict=True)]  # fmt: skip
            found[way] = {"executed": executed, "error": max(errors)}
            functions[way] = function
        except Exception as error:  # noqa: BLE001 - told in the table
            found[way] = {"missing": f"{type(error).__name__}: {str(error).strip() or 'no reason'}".splitlines()[0][:160]}
    for way, seconds in interleaved(machine.place, functions, budget).items():
        found[way]["seconds"] = seconds
    return found


# ------------------------------------------------------------------------------------------------------
# All sets, and their tables
# ------------------------------------------------------------------------------------------------------

TORCH = ("torch.optim.Muon", "torch.optim.Muon, in a graph")
HEAD = ("way", "ms", "times torch.optim.Muon", "TFLOP/s executed", "of the limit", "error")


def limit(matrices, found):
    """Seconds of the fewest operations of any form at the rate of torch's fastest way, and that rate."""
    torchs = [one["seconds"] for way, one in found.items() if way.startswith("torch") and "seconds" in one]
    if not torchs:
        return math.nan, math.nan
    rate = flops(matrices, "full") / min(torchs)
    return min(flops(matrices, form) for form in ("standard", "gram")) / rate, rate


def table(name, matrices, found):
    """A set's table as Markdown."""
    seconds, rate = limit(matrices, found)
    muon = min((found[way]["seconds"] for way in TORCH if "seconds" in found.get(way, {})), default=math.nan)
    shapes = ", ".join(f"{count} × ({rows} × {cols})" for count, rows, cols in matrices)
    lines = [
        f"{name}: {shapes}. {flops(matrices, 'full') / 1e12:.4g} TFLOP as full products, {flops(matrices, 'standard') / 1e12:.4g} "
        f"in the standard form, {flops(matrices, 'gram') / 1e12:.4g} in the Gram form; torch's rate {rate / 1e12:.4g} TFLOP/s, "
        f"limit {seconds * 1e3:.4g} ms.",
        "", f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD),
    ]  # fmt: skip
    for way, one in found.items():
        if "missing" in one:
            lines.append(f"| {way} | not here: {one['missing'].replace('|', '/')} |" + " |" * (len(HEAD) - 2))
            continue
        taken = one["seconds"]
        lines.append(
            f"| {way} | {taken * 1e3:.4g} | {muon / taken:.2f} | {one['executed'] / taken / 1e12:.4g} "
            f"| {seconds / taken:.2f} | {one['error']:.1e} |"
        )
    return "\n".join(lines)


def run_set(folder, name, dry, budget, seconds):
    """The set's figures from a process of its own, which a crash or a hang ends without the others."""
    with tempfile.TemporaryDirectory() as place:
        reply = Path(place) / "found.json"
        command = [sys.executable, __file__, str(folder), "--set", name, "--reply", str(reply), "--budget", str(budget)]
        try:
            done = subprocess.run(
                command + ["--dry"] * dry, capture_output=True, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no end within {seconds:.0f} s"}
        if not reply.exists():
            words = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing was said"]
            return {"error": f"status {done.returncode}: {words[0][:200]}"}
        return {"found": json.loads(reply.read_text())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = HERE if (HERE / "cases.json").is_file() else HERE.parent / "build" / "gpu"
    parser.add_argument("folder", type=Path, nargs="?", default=built, help="what 'test/gpu/run.sh build' made")
    parser.add_argument("--dry", action="store_true", help="on this CPU, with libraries of emulated")
    parser.add_argument("--only", default="", help="sets, separated by commas")
    parser.add_argument("--seconds", type=float, default=440, help="for all sets together (default: %(default)s)")
    parser.add_argument("--results", type=Path, help="folder of orthogonalize.json and orthogonalize.txt")
    parser.add_argument("--set", help=argparse.SUPPRESS)
    parser.add_argument("--reply", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, default=6, help="seconds of measuring a set (default: %(default)s)")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not (folder / "cases.json").is_file():
        sys.exit(f"orthogonalize: expected a folder that 'test/gpu/run.sh build' made, found '{options.folder}'")
    about = json.loads((folder / "cases.json").read_text())
    if about["dry"] != options.dry:
        asked, built = ("with", "without") if options.dry else ("without", "with")
        sys.exit(f"orthogonalize: expected a folder that was built {asked} --dry, found one that was built {built} it")
    if options.set:
        options.reply.write_text(json.dumps(measure(folder, options.set, options.dry, options.budget)))
        return 0
    chosen = [name for name in options.only.split(",") if name] or list(about["sets"])
    for name in chosen:
        if name not in about["sets"]:
            sys.exit(f"orthogonalize: expected a set ({', '.join(about['sets'])}), found '{name}'")
    begun, results, failed = time.monotonic(), {}, 0
    for name in chosen:
        left = options.seconds - (time.monotonic() - begun)
        one = run_set(folder, name, options.dry, options.budget, min(left, 120)) if left > 10 else {"error": f"not run: {options.seconds:.0f} s were over"}
        results[name] = one
        failed += "error" in one
        text = f"{name}: {one['error']}" if "error" in one else table(name, about["sets"][name], one["found"])
        print(text + "\n", flush=True)
        if options.results:
            options.results.mkdir(parents=True, exist_ok=True)
            (options.results / "orthogonalize.json").write_text(json.dumps({"commit": about["commit"], "sets": results}, indent=1))
            with open(options.results / "orthogonalize.txt", "w" if name == chosen[0] else "a") as file:
                file.write(text + "\n\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
