"""How long steps take, beside torch in the same run. Nothing here fails for being slow: goals are named."""

import statistics
import time

import torch
from checks.machine import Check, Failed
from checks.steps import DTYPES
from orthogonalize import symmetric_flops
from stepc._library import Instance


class Bound:
    """A library with tensors of the device, as a trainer would have them."""

    def __init__(self, machine, case, graph=False):
        self.place = machine.place
        self.library = machine.library(case)
        self.instance = Instance(self.library, threads=1, device=self.place.options(), graph=graph)
        self.parameters, self.kept = [], []
        for one in self.instance.parameters:
            made = torch.nn.Parameter(0.02 * self._random(one.local_shape, one.dtype))
            made.grad = 1e-3 * self._random(one.local_shape, one.gradient_dtype)
            self.instance.bind_parameter(one.index, made.data_ptr(), made.nbytes)
            self.instance.bind_gradient(one.index, made.grad.data_ptr(), made.grad.nbytes)
            for number, state in enumerate(one.states):
                held = torch.full(
                    state.local_shape, state.init, dtype=DTYPES[state.dtype], device=self.place.device
                )
                self.instance.bind_state(one.index, number, held.data_ptr(), held.nbytes)
                self.kept.append(held)
            self.parameters.append(made)
        self.steps = torch.zeros(len(self.parameters), dtype=torch.int64)
        self.instance.bind_steps(self.steps.data_ptr())

    def _random(self, shape, dtype):
        return torch.randn(shape, device=self.place.device).to(DTYPES[dtype])

    @property
    def elements(self):
        return sum(one.numel() for one in self.parameters)

    def run(self):
        self.instance.enqueue()

    def close(self):
        self.place.synchronize()
        self.instance.poll()
        if not all(bool(one.isfinite().all()) for one in self.parameters):
            raise Failed("expected finite parameters after the steps, found others")
        self.instance.close()


def once(place, function):
    """Seconds that a call takes on the device, its queue empty before."""
    if not place.is_gpu:
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(place.device)
    begin.record()
    function()
    end.record()
    torch.cuda.synchronize(place.device)
    return begin.elapsed_time(end) / 1e3


def interleaved(place, functions, budget):
    """The least seconds of each function: they take turns, after two rounds that do not count, for
    `budget` seconds.
    """
    for _ in range(2):
        round_s = sum(once(place, function) for function in functions.values())
    times = {name: [] for name in functions}
    for _ in range(max(3, min(30, int(budget / max(round_s, 1e-6))))):
        for name, function in functions.items():
            times[name].append(once(place, function))
    return {name: min(found) for name, found in times.items()}


def goal(name, found, least):
    return f"{name} {found:.2f} (goal {least}: {'met' if found >= least else 'missed'})"


def adamw(machine):
    """AdamW on what one of eight ranks has of an 8B model, in f32 throughout: 28 bytes of memory per
    element.
    """
    bound = Bound(machine, "time.adamw")
    theirs = torch.optim.AdamW(
        bound.parameters, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True
    )
    one = torch.empty(min(bound.elements, 1 << 30), device=machine.place.device)
    other = torch.empty_like(one)
    times = interleaved(
        machine.place, {"copy": lambda: other.copy_(one), "ours": bound.run, "torch": theirs.step}, 4
    )
    copied, moved = 8 * one.numel() / times["copy"], 28 * bound.elements / times["ours"]
    bound.close()
    figures = {"elements": bound.elements, "copy_gb_s": copied / 1e9, "ours_gb_s": moved / 1e9, **seconds(times)}
    text = f"{bound.elements / 1e9:.2f}e9 elements in {1e3 * times['ours']:.3f} ms, {moved / 1e9:.0f} GB/s: "
    parts = (
        goal("of copy's bandwidth", moved / copied, 0.92),
        goal("of torch's fused", times["torch"] / times["ours"], 1),
    )
    return text + ", ".join(parts), figures


def seconds(times):
    return {f"{name}_s": value for name, value in times.items()}


def muon(machine):
    """A layer of Llama-3-8B, in bf16, beside torch.optim.Muon."""
    bound = Bound(machine, "time.muon")
    theirs = torch.optim.Muon(
        bound.parameters, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_steps=5
    )
    times = interleaved(machine.place, {"ours": bound.run, "torch": theirs.step}, 8)
    bound.close()
    text = f"{len(bound.parameters)} matrices in {1e3 * times['ours']:.2f} ms: "
    return text + goal("times torch.optim.Muon's speed", times["torch"] / times["ours"], 1.75), seconds(times)


def chance(machine):
    """AdamW with bf16 parameters, rounded by chance and to the nearest: with states of bf16 that are rounded
    as well, 14 bytes of memory per element, and with states of f32, 22 bytes.
    """
    names = ("nearest", "chance", "wide_nearest", "wide_chance")
    bounds = {name: Bound(machine, f"time.{name}") for name in names}
    times = interleaved(machine.place, {name: bound.run for name, bound in bounds.items()}, 6)
    elements = bounds["chance"].elements
    for bound in bounds.values():
        bound.close()
    parts = []
    for before, name, what in ((*names[:2], "states of bf16"), (*names[2:], "states of f32")):
        ratio = times[name] / times[before]
        parts.append(
            f"{1e3 * times[name]:.3f} ms, {ratio:.3f} times rounding to nearest with {what} (goal 1.1: "
            f"{'met' if ratio <= 1.1 else 'missed'})"
        )
    text = f"{elements / 1e6:.0f}e6 elements in " + ", in ".join(parts)
    return text, {"elements": elements, **seconds(times)}


def host(machine):
    """What the host spends on a step of 400 parameters; the queue never fills up."""
    bound, replayed = Bound(machine, "time.host"), Bound(machine, "time.host", graph=True)
    theirs = torch.optim.AdamW(bound.parameters, lr=1e-3, fused=True)
    times = {"ours": [], "graph": [], "torch": []}
    for _ in range(40):
        for name, function in (("ours", bound.run), ("graph", replayed.run), ("torch", theirs.step)):
            for _ in range(5):
                begun = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - begun)
            machine.place.synchronize()
    found = {name: statistics.median(each) for name, each in times.items()}
    bound.close()
    replayed.close()
    ours, graph, torchs = (f"{1e6 * found[name]:.0f} µs" for name in times)
    text = f"{ours} for 400 parameters (goal below 100), {graph} as a graph (goal 20), torch's fused {torchs}"
    return text, seconds(found)


def iterations(machine, shape):
    """An iteration of Newton–Schulz is three products, of which stepc makes half of two where it can."""
    rows, cols = map(int, shape.split("x"))
    few, more = (Bound(machine, f"time.product.{shape}.{steps}") for steps in (1, 3))
    count = len(few.parameters)
    x = torch.stack([one.grad for one in few.parameters])

    def once_in_torch():
        gram = x @ x.mT
        square = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        return torch.baddbmm(x, square, x, beta=3.4445)

    times = interleaved(machine.place, {"one": few.run, "three": more.run, "torch": once_in_torch}, 4)
    few.close()
    more.close()
    ours = (times["three"] - times["one"]) / 2
    least, most = sorted((rows, cols))
    full = count * 2.0 * (2 * least * least * most + least**3)
    executed = count * (symmetric_flops(least, most) + symmetric_flops(least, least) + 2.0 * least * least * most)
    figures = {
        name: flops / taken / 1e12 if taken > 0 else float("nan")
        for name, flops, taken in (
            ("ours_executed_tflop_s", executed, ours),
            ("ours_tflop_s", full, ours),
            ("torch_tflop_s", full, times["torch"]),
        )
    }
    text = (
        f"{count} of {shape}: {figures['ours_executed_tflop_s']:.1f} TFLOP/s executed, torch {figures['torch_tflop_s']:.1f} "
        f"({figures['ours_executed_tflop_s'] / figures['torch_tflop_s']:.2f}); "
        f"counted as full products {figures['ours_tflop_s']:.1f}"
    )
    return text, figures | seconds(times)


def checks(machine):
    for function in (host, adamw, chance, muon):
        yield Check(f"time.{function.__name__}", 60, lambda function=function: function(machine))
    shapes = {name.split(".")[2] for name in machine.named("time") if name.startswith("time.product")}
    for shape in sorted(shapes, key=lambda shape: int(shape.split("x")[1])):
        yield Check(f"time.product.{shape}", 40, lambda shape=shape: iterations(machine, shape))
