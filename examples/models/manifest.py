"""Makes the manifest of a public model's shapes, sharded as PyTorch's trainers do.

    .venv/bin/python examples/models/manifest.py deepseek-v3 --ranks 2048 --ep 64 -o deepseek.json
    .venv/bin/python examples/models/manifest.py --list
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from architectures import FAMILIES, Parameter
from placements import Layout

MODELS = json.loads(Path(__file__).with_name("shapes.json").read_text())
del MODELS["comment"]
ORDERS = {"efsdp,ep": ("efsdp", "ep"), "ep,efsdp": ("ep", "efsdp")}


def parameters(
    model: str, fused: bool = False, flat: bool = False, layers: int | None = None
) -> list[Parameter]:
    config = MODELS[model]["config"]
    if layers is not None:
        config = config | {"num_hidden_layers": layers}
    return list(FAMILIES[MODELS[model]["architecture"]](config, fused, flat).parameters())


def entry(parameter: Parameter, layout: Layout, dtype: str, grad_dtype: str) -> dict:
    result = {"name": parameter.name, "shape": list(parameter.shape), "dtype": dtype,
              "grad_dtype": grad_dtype, "mesh": layout.mesh_of(parameter),
              "placements": layout.placements(parameter)}  # fmt: skip
    if parameter.stacked:
        result["batch_axes"] = 1
    if parameter.blocks:
        result["blocks"] = parameter.blocks
    if not parameter.trained:
        result["requires_grad"] = False
    return result


def manifest(
    chosen: list[Parameter], layout: Layout, dtype: str = "bf16", grad_dtype: str | None = None
) -> dict:
    entries = [entry(parameter, layout, dtype, grad_dtype or dtype) for parameter in chosen]
    return {"version": 1, "meshes": layout.meshes(chosen), "parameters": entries}


def text(document: dict) -> Iterator[str]:
    """JSON with a line for each mesh and parameter."""
    yield '{\n  "version": 1,\n'
    for key in ("meshes", "parameters"):
        lines = ",\n    ".join(json.dumps(one) for one in document[key])
        yield f'  "{key}": [\n    {lines}\n  ]{"," if key == "meshes" else ""}\n'
    yield "}\n"


def describe() -> None:
    for name, model in MODELS.items():
        every = parameters(name)
        print(f"{name:18} {model['parameters'] / 1e9:8.2f} B in {len(every):4} parameters  {model['source']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", choices=MODELS, help="whose shapes")
    parser.add_argument("--list", action="store_true", help="print the models and leave")
    parser.add_argument("--ranks", type=int, default=8, help="in all (default: %(default)s)")
    parser.add_argument("--replicas", type=int, default=1, help="HSDP: so many replicas of all shards")
    parser.add_argument("--tp", type=int, default=1, help="tensor parallelism: FSDP × TP")
    parser.add_argument("--ep", type=int, default=1, help="expert parallelism, over ranks of FSDP")
    parser.add_argument("--expert-axes", choices=ORDERS, default="efsdp,ep",
                        help="the order of the axes of the experts' mesh (default: %(default)s, as "
                        "torchtitan and xtuner)")  # fmt: skip
    parser.add_argument("--fused", action="store_true", help="fuse queries, keys and values, and gate and up")
    parser.add_argument("--flat", action="store_true", help="experts as matrices [experts · out, in]")
    parser.add_argument("--layers", type=int, help="so many layers instead of the model's")
    parser.add_argument("--dtype", default="bf16", help="of the parameters (default: %(default)s)")
    parser.add_argument("--grad-dtype", help="of the gradients (default: the parameters')")
    parser.add_argument("-o", type=Path, metavar="FILE", help="where to write (default: standard output)")
    options = parser.parse_args()
    if options.list:
        describe()
        return
    if not options.model:
        parser.error("expected a model, or --list")
    if options.tp > 1 and (options.fused or options.flat):
        parser.error(f"--fused and --flat: expected --tp 1, found {options.tp}: it would cut each fused "
                     "matrix, and one shard of their rows is not that")  # fmt: skip
    if options.layers is not None and options.layers < 1:
        parser.error(f"--layers: expected at least 1, found {options.layers}")
    try:
        layout = Layout(options.ranks, options.replicas, options.tp, options.ep, ORDERS[options.expert_axes])
    except ValueError as error:
        parser.error(str(error))
    chosen = parameters(options.model, options.fused, options.flat, options.layers)
    document = manifest(chosen, layout, options.dtype, options.grad_dtype)
    total = sum(math.prod(parameter.shape) for parameter in chosen)
    with options.o.open("w") if options.o else sys.stdout as out:
        out.writelines(text(document))
    print(
        f"{options.model}: {total:,} elements in {len(chosen)} parameters on {options.ranks} ranks",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
