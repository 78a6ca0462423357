"""Times compiled steps against torch, side by side in one run.

    .venv/bin/python benchmarks/step.py [--repeats N] [--threads N] [--layers N]

Prints ratios (torch's time / stepc's, more than 1: stepc is faster) of the least times of interleaved
repetitions, for the parameters of a 125M GPT: AdamW against torch.optim.AdamW(fused=True); Newton–Schulz
and the whole Muon step against the same iterations in torch in f32, with the FLOPs that each spends;
torch.optim.Muon as it is (bf16) on small shapes; and what compiling 1,000 parameters for 64 ranks takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measure import measured

from stepc import _compile
from stepc.torch import Optimizer

SIMPLE = (3.4445, -4.7750, 2.0315)
STEPS = 5

ADAMW = """
optimizer AdamW(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1) {
  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad * grad, 1 - beta2)
  let update = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
  param = (1 - lr * weight_decay) * param - lr * update
}
route {
  AdamW(lr = 3e-4) for rest
}
"""

ORTHOGONALIZE = """
optimizer Orthogonalize() {
  param = orthogonalize(grad, steps = 5, coefficients = simple, precision = PRECISION)
}
route {
  Orthogonalize() for rest
}
"""

MUON = """
optimizer Muon(lr, momentum = 0.95, weight_decay = 0.1) {
  state m : f32
  m = momentum * m + grad
  let u = grad + momentum * m
  let o = orthogonalize(u, steps = 5, coefficients = simple, precision = PRECISION)
  param = (1 - lr * weight_decay) * param - lr * 0.2 * sqrt(max(rows, cols)) * o
}
route {
  Muon(lr = 0.02) for rest
}
"""


def gpt_shapes(layers: int) -> dict[str, list[tuple[int, ...]]]:
    """A 125M GPT for 12 layers: width 768, 50304 tokens, 1024 positions."""
    square = [(768, 768)] * (4 * layers)
    wide = [(3072, 768), (768, 3072)] * layers
    other = [(50304, 768), (1024, 768)] + [(768,)] * (4 * layers + 2)
    return {"square": square, "4:1": wide, "other": other}


def tensors(shapes: list[tuple[int, ...]]) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(7)
    result = []
    for shape in shapes:
        parameter = torch.nn.Parameter(torch.randn(shape, generator=generator) * 0.02)
        parameter.grad = torch.randn(shape, generator=generator) * 1e-3
        result.append(parameter)
    return result


def compiled(spec: str, shapes: list[tuple[int, ...]], threads: int) -> Callable[[], None]:
    parameters = tensors(shapes)
    named = [(f"p{i}", p) for i, p in enumerate(parameters)]
    optimizer = Optimizer(named, spec, threads=threads)
    optimizer.prepare()
    return optimizer.step


def newton_schulz(u: torch.Tensor) -> torch.Tensor:
    """The iterations of Jordan's Muon in u's dtype."""
    a, b, c = SIMPLE
    x = u / u.norm().clamp(min=1e-7)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.mT
    for _ in range(STEPS):
        gram = x @ x.mT
        poly = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.addmm(x, poly, x, beta=a)
    return x.mT if tall else x


def torch_orthogonalize(shapes: list[tuple[int, ...]]) -> Callable[[], None]:
    parameters = tensors(shapes)

    @torch.no_grad()
    def step() -> None:
        for p in parameters:
            p.copy_(newton_schulz(p.grad))

    return step


def torch_muon(shapes: list[tuple[int, ...]]) -> Callable[[], None]:
    parameters = tensors(shapes)
    momenta = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step() -> None:
        for p, m in zip(parameters, momenta, strict=True):
            m.mul_(0.95).add_(p.grad)
            u = p.grad.add(m, alpha=0.95)
            o = newton_schulz(u)
            p.mul_(1 - 0.02 * 0.1).add_(o, alpha=-0.02 * 0.2 * max(p.shape) ** 0.5)

    return step


def torch_flops(shapes: list[tuple[int, ...]]) -> float:
    """Of the products of five steps, whole: r²c + r³ + r²c multiply-adds each."""
    total = 0.0
    for rows, cols in shapes:
        r, c = min(rows, cols), max(rows, cols)
        total += STEPS * 2 * (r * r * c + r**3 + r * r * c)
    return total


def planned_flops(spec: str, shapes: list[tuple[int, ...]]) -> float:
    """What `stepc explain` counts in the products that it plans."""
    manifest = {
        "version": 1,
        "meshes": [{"name": "one", "axes": [{"name": "dp", "size": 1}]}],
        "parameters": [{"name": f"p{i}", "shape": list(shape), "dtype": "f32", "mesh": "one", "placements": ["R"]}
                       for i, shape in enumerate(shapes)],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "step.optim").write_text(spec)
        (Path(folder) / "m.json").write_text(json.dumps(manifest))
        command = [str(_compile.find_compiler()), "explain", f"{folder}/step.optim", "--manifest", f"{folder}/m.json"]
        printed = subprocess.run([*command, "--json"], check=True, capture_output=True)
    chosen = [s for group in json.loads(printed.stdout)["groups"] for s in group["strategies"] if s["chosen"]]
    return sum(s["cost"]["flops"]["max"] for s in chosen)


def interleave(first: Callable[[], None], second: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Least seconds of each over alternating calls: other work on the machine only adds."""
    best = [float("inf"), float("inf")]
    for _ in range(repeats + 1):  # the first round warms up
        for i, f in enumerate((first, second)):
            start = time.perf_counter()
            f()
            elapsed = time.perf_counter() - start
            if _ > 0:
                best[i] = min(best[i], elapsed)
    return best[0], best[1]


def report(name: str, ours: float, theirs: float, note: str = "") -> None:
    print(f"{name:44} {ours * 1e3:9.1f} {theirs * 1e3:9.1f} {theirs / ours:7.2f}x  {note}", flush=True)


def compile_cost() -> None:
    shapes = [(1024, 1024), (4096, 1024), (1024, 4096), (1024,)]
    manifest = {
        "version": 1,
        "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": 64}]}],
        "parameters": [
            {"name": f"layers.{i}.w", "shape": list(shapes[i % 4]), "dtype": "bf16", "mesh": "dp",
             "placements": ["S(0)"]} for i in range(1000)
        ],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        spec, path = Path(folder) / "muon.optim", Path(folder) / "m.json"
        spec.write_text(
            MUON.replace("PRECISION", "bf16").replace("for rest", "for matrix").replace(
                "route {", ADAMW.split("route")[0] + "route {\n  AdamW(lr = 3e-4) for rest"))
        path.write_text(json.dumps(manifest))
        command = [str(_compile.find_compiler()), "compile", str(spec), "--manifest", str(path), "-o", folder]
        done, taken = measured(command, capture_output=True)
        done.check_returncode()
    print(
        f"\ncompile 1,000 parameters for 64 ranks: {taken.seconds:.2f} s, {taken.peak_bytes / 2**20:.0f} MiB (goal: 5 s, 1024 MiB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="timed rounds (default 7)")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, help="of both (default: all cores)"
    )
    parser.add_argument("--layers", type=int, default=12, help="of the GPT (default 12: 125M parameters)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    shapes = gpt_shapes(options.layers)
    everything = [s for group in shapes.values() for s in group]
    print(
        f"torch {torch.__version__}, {options.threads} threads, {sum(torch.Size(s).numel() for s in everything) / 1e6:.0f}M "
        f"parameters, least of {options.repeats} interleaved rounds\n"
    )
    print(f"{'':44} {'stepc ms':>9} {'torch ms':>9} {'ratio':>8}")

    # stepc first: what it allocates must not be warmed by torch, nor the other way round.
    parameters = tensors(everything)
    fused = torch.optim.AdamW(parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    report("AdamW, all parameters / fused AdamW",
           *interleave(compiled(ADAMW, everything, options.threads), fused.step, options.repeats),
           "goal 1.0")
    del parameters, fused
    for name in ("square", "4:1"):
        chosen = shapes[name]
        spec = ORTHOGONALIZE.replace("PRECISION", "f32")
        ours, theirs = interleave(compiled(spec, chosen, options.threads), torch_orthogonalize(chosen),
                                  options.repeats)
        mine, full = planned_flops(spec, chosen), torch_flops(chosen)
        report(f"Newton–Schulz f32, {name} / torch f32", ours, theirs,
               f"goal 1.3; {mine / 1e9:.0f} of {full / 1e9:.0f} GFLOP, {mine / ours / 1e9:.0f} and "
               f"{full / theirs / 1e9:.0f} GFLOP/s")
    for name in ("square", "4:1"):
        spec = MUON.replace("PRECISION", "f32")
        report(f"Muon f32 step, {name} / torch f32",
               *interleave(compiled(spec, shapes[name], options.threads), torch_muon(shapes[name]),
                           options.repeats), "goal 1.3")
    small = [(64, 64), (128, 64), (64, 128), (128, 128)] * 4
    parameters = tensors(small)
    muon = torch.optim.Muon(parameters, lr=0.02, momentum=0.95, weight_decay=0.1,
                            adjust_lr_fn="match_rms_adamw")
    report("Muon bf16, 16 small matrices / torch.optim.Muon",
           *interleave(compiled(MUON.replace("PRECISION", "bf16"), small, options.threads), muon.step,
                       options.repeats), "for the record")
    compile_cost()


if __name__ == "__main__":
    main()
