#!/usr/bin/env python3
"""A stand-in for the compiler: ``compile``, ``check --json`` and ``--version``.

Routes parameters of two and more axes to "Momentum" and the rest to "Plain", and compiles
fake_library.c with the manifest's parameters. A specification that contains ``error`` is refused;
one that contains ``master`` gives bf16 parameters a master; one that contains ``warn`` is warned of;
one that contains ``head`` has a route for "head*", which a parameter has to match, frozen or not,
unless ``--if-present`` names the pattern. One that contains ``gpu`` makes a library for GPUs, and with
``fails`` one whose steps turn out to have failed. One that contains ``matrix`` refuses tensors of three axes.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "runtime" / "include"


def local_shape(parameter, mesh, rank):
    """This rank's shard: later mesh axes cut what earlier ones left, as torch.chunk does."""
    shape = list(parameter["shape"])
    index = mesh["ranks"].index(rank)
    coordinates = []
    for axis in reversed(mesh["axes"]):
        coordinates.insert(0, index % axis["size"])
        index //= axis["size"]
    for axis, where, text in zip(mesh["axes"], coordinates, parameter["placements"], strict=True):
        if text == "R":
            continue
        dim = int(text.removeprefix("S(").removesuffix(")"))
        chunk = -(-shape[dim] // axis["size"])
        shape[dim] = max(0, min(chunk, shape[dim] - where * chunk))
    return shape


def stepped(manifest):
    return [one for one in manifest["parameters"] if one.get("requires_grad", True)]


def refusal(spec, manifest, if_present):
    """What is wrong with the input, if anything."""
    names = [one["name"] for one in manifest["parameters"]]
    if "error" in spec:
        return "expected a rule, found 'error'"
    if not stepped(manifest):
        return "expected a parameter that requires a gradient, found none"
    if "head" in spec and "head*" not in if_present and not any(n.startswith("head") for n in names):
        return 'pattern "head*" matches no parameter'
    for one in stepped(manifest):
        if "matrix" in spec and len(one["shape"]) > 2:
            return f"expected a matrix, found '{one['name']}' of {len(one['shape'])} axes"
    return None


def plan_header(spec, manifest):
    meshes = {mesh["name"]: mesh for mesh in manifest["meshes"]}
    ranks = sorted({rank for mesh in meshes.values() for rank in mesh["ranks"]})

    def array(values):
        return "{" + ", ".join(map(str, values)) + "}" if values else "{0}"

    rows = []
    for one in stepped(manifest):
        route = 0 if len(one["shape"]) >= 2 else 1
        states = (route == 0) + ("master" in spec and one["dtype"] == "bf16")
        mesh = meshes[one["mesh"]]
        names = ", ".join(f'"{axis["name"]}"' for axis in mesh["axes"])
        local = [local_shape(one, mesh, rank) for rank in ranks]
        rows.append(
            f'{{"{one["name"]}", {route}, "{one["dtype"]}", "{one["grad_dtype"]}", '
            f'"[{", ".join(one["placements"])}]", "{one["mesh"]}", {len(one["shape"])}, '
            f'{array(one["shape"])}, {{{", ".join(map(array, local))}}}, {states}, '
            f'{len(mesh["axes"])}, {one.get("batch_axes", 0)}, {{{names}}}, '
            f'{array([axis["size"] for axis in mesh["axes"]])}, {len(mesh["ranks"])}, '
            f'{array(mesh["ranks"])}}}'
        )
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    return f"""#include "stepc/stepc.h"
#define COUNT {len(rows)}
#define WORLD {len(ranks)}
#define FAKE_ABI {1 if "old_abi" in spec else "STEPC_ABI_VERSION"}
#define FAKE_DEVICE {int("gpu" in spec)}
#define FAKE_FAILS {int("fails" in spec)}
#define FAKE_HASH 0x{digest[:16]}ull
static const int64_t fake_ranks[] = {array(ranks)};
static const char *const fake_routes[] = {{"Momentum", "Plain"}};
static const struct fake_parameter {{
  const char *name; int route; const char *dtype, *grad_dtype, *placements, *mesh; int axes;
  int64_t shape[8]; int64_t local[WORLD][8]; int states;
  int mesh_axes, batch_axes; const char *axis_names[8]; int64_t axis_sizes[8];
  int64_t rank_count; int64_t ranks[WORLD];
}} fake[] = {{
  {("," + chr(10) + "  ").join(rows)}
}};
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="version", version="fake stepc 1")
    commands = parser.add_subparsers(dest="command")
    for name in ("compile", "check"):
        command = commands.add_parser(name)
        command.add_argument("spec")
        command.add_argument("--manifest")
        command.add_argument("--target")
        command.add_argument("--json", action="store_true")
        command.add_argument("--if-present", action="append", default=[])
        command.add_argument("-o", dest="output")
    arguments = parser.parse_args()
    spec = Path(arguments.spec).read_text()
    manifest = json.loads(Path(arguments.manifest).read_text())
    wrong = refusal(spec, manifest, arguments.if_present)
    if wrong is not None:
        print(f"{arguments.spec}:1:1: error: {wrong}", file=sys.stderr)
        return 1
    if "warn" in spec:
        line = spec.splitlines()[0]
        warning = f'{arguments.spec}:1:1: warning: except pattern "haed" matches no parameter'
        print(f"{warning}\n  {line}\n  ^\nhint: one\ncompile: lower (2.1 s)\n{warning}\n  {line}\n  ^\n"
              "hint: one\nother.optim:1:1: remark: no warning\n  x\n  ^", file=sys.stderr)  # fmt: skip
    if arguments.command == "check":
        parameters = [
            {"name": one["name"], "route": "Momentum" if len(one["shape"]) >= 2 else "Plain"}
            for one in stepped(manifest)
        ]
        routes = [
            {"name": "Momentum", "rule": "Momentum", "defaults": {"lr": 0.1, "momentum": 0.9}},
            {"name": "Plain", "rule": "Plain", "defaults": {"lr": None}},
        ]
        print(json.dumps({"parameters": parameters, "routes": routes}))
        return 0
    if os.environ.get("STEPC_FAKE_FAIL"):
        print("error: the fake was told to fail", file=sys.stderr)
        return 1
    time.sleep(float(os.environ.get("STEPC_FAKE_SECONDS", "0")))
    output = Path(arguments.output)
    (output / "fake_plan.h").write_text(plan_header(spec, manifest))
    name = Path(arguments.spec).stem
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I", output,
         "-I", INCLUDE, HERE / "fake_library.c", "-lm", "-o", output / f"lib{name}.so"],
        check=True,
    )  # fmt: skip
    with open(output / "calls.txt", "a") as file:
        file.write("compile\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
