"""How compiling grows with ranks and with parameters: CPU seconds, peak memory and the library's size.

    .venv/bin/python benchmarks/growth_curves.py [NAME]... [--plot docs/growth.svg] [--json FILE] [--stepc
        build/bin/stepc]

With `--json benchmarks/growth_curves.json`, which holds what docs/growth.md shows, nothing is measured: the
figure is drawn again.

A curve's exponent is its slope on logarithmic axes between its last two points. Goal: at most 1.15
(docs/growth.md). What every library costs is most of a small one and hides how the rest grows, so a second
exponent is of the curve less its first point. Models over ranks are those of examples/models; over parameters
they are as in growth.json, with more and more parameters.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from growth import GPU_CLUSTER, ROOT, SPEC, manifest, timed

MODELS = ROOT / "examples" / "models"
CURVES = {  # name → (what grows, points, how a point is made, options of stepc)
    "llama-3-8b": ("ranks", [64, 128, 256, 512, 1024, 2048, 4096, 8192], "llama-3-8b --ranks {}", []),
    "deepseek-v3, ep 64": ("ranks", [128, 256, 512, 1024, 2048, 4096, 8192], "deepseek-v3 --ranks {} --ep 64", []),
    "deepseek-v3, ep 64, h100": ("ranks", [128, 256, 512, 1024, 2048, 4096], "deepseek-v3 --ranks {} --ep 64", GPU_CLUSTER),
    "dense of four shapes, 2,048 ranks": ("parameters", [250, 500, 1000, 2000, 4000, 8000, 16000, 32000], "dense", []),
    "distinct shapes, 1,024 ranks": ("shapes", [125, 250, 500, 1000], "distinct", []),
    "64 experts each, 2,048 ranks": ("parameters", [125, 250, 500, 1000, 2000, 4000, 8000, 16000], "experts_dealt", []),
}
FIGURES = ("CPU s", "peak MiB", "library MiB")


def measure(stepc: Path, how: str, point: int, rest: list[str], folder: Path) -> list[float]:
    path = folder / "m.json"
    if "{}" in how:
        words = how.format(point).split()
        subprocess.run([sys.executable, MODELS / "manifest.py", *words, "-o", path], check=True, stderr=subprocess.DEVNULL)
        inputs = [MODELS / "models.optim", "--manifest", path]
    else:
        path.write_text(json.dumps(manifest(how, count=point)))
        inputs = [SPEC, "--manifest", path, "--if-present", "*embed*", "--if-present", "lm_head*"]
    taken = timed([stepc, "compile", *inputs, *rest, "-o", folder], folder / "out")
    return [taken.cpu_seconds, taken.peak_bytes / 2**20, next(folder.glob("lib*.so")).stat().st_size / 2**20]


def exponent(points: list[int], values: list[float]) -> float:
    return math.log(values[-1] / values[-2]) / math.log(points[-1] / points[-2])


def exponent_of_growth(points: list[int], values: list[float]) -> str:
    """The same of what is above the first point; nothing where that does not grow by a tenth in all."""
    above = [value - values[0] for value in values]
    if above[-1] < values[0] / 10 or above[-2] <= 0:
        return "–"
    return f"{exponent(points, above):.2f}"


def plot(curves: dict[str, dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 8})
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, rows = plt.subplots(3, len(FIGURES), figsize=(9, 9), layout="constrained")
    for axes_of, what in zip(rows, ("ranks", "parameters", "shapes"), strict=True):
        for index, (axes, figure_name) in enumerate(zip(axes_of, FIGURES, strict=True)):
            for name, curve in curves.items():
                if curve["what"] == what:
                    values = [point[index] for point in curve["values"]]
                    axes.loglog(curve["points"], values, "o-", label=f"{name}: {exponent(curve['points'], values):.2f}")
            axes.set(xlabel=what, title=figure_name)
            axes.set_xticks(sorted({point for curve in curves.values() if curve["what"] == what for point in curve["points"]}))
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:,g}")
            axes.minorticks_off()
            axes.tick_params("x", rotation=45)
            axes.grid(True, alpha=0.3)
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** 0.4)  # room for a legend that hides no point
            axes.legend(fontsize=6, loc="upper left")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of curves (default: all)")
    parser.add_argument("--plot", type=Path, help="where to draw the curves (SVG)")
    parser.add_argument("--json", type=Path, help="where to write all points; if it is there, what it has is not measured again")
    parser.add_argument("--stepc", type=Path, default=ROOT / "build" / "bin" / "stepc", help="the compiler")
    options = parser.parse_args()
    curves = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for name, (what, points, how, rest) in CURVES.items():
        if name in curves or options.names and not any(part in name for part in options.names):
            continue
        curves[name] = {"what": what, "points": points, "values": []}
        for point in points:
            with tempfile.TemporaryDirectory() as folder:
                curves[name]["values"].append(measure(options.stepc, how, point, rest, Path(folder)))
        if options.json:
            options.json.write_text(json.dumps(curves, indent=1) + "\n")
    heads = " | ".join(f"{name}: exponent, of growth" for name in FIGURES)
    print(f"| model | over | {heads} |\n|{'---|' * (len(FIGURES) + 2)}")
    for name, curve in curves.items():
        cells = []
        for values, digits in zip(
            zip(*curve["values"], strict=True), ("{:.1f}", "{:.0f}", "{:.1f}"), strict=True
        ):
            points, values = curve["points"], list(values)
            ends = " → ".join(digits.format(values[at]) for at in (0, -2, -1))
            cells.append(f"{ends}: {exponent(points, values):.2f}, {exponent_of_growth(points, values)}")
        over = " → ".join(f"{curve['points'][at]:,}" for at in (0, -2, -1))
        print(f"| {name} | {over} {curve['what']} | {' | '.join(cells)} |")
    if options.plot:
        plot(curves, options.plot)


if __name__ == "__main__":
    sys.exit(main())
