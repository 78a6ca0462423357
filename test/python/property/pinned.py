"""Libraries whose products cuBLASLt makes at pinned algorithms, on stand-ins for the driver and for it
(test/devices).

Only `--target cuda` takes a table from the command line, so what runs here gets it as IR: at level scheduled,
where a module has it.
"""

import json
import os
import re
import subprocess

from compiler import STEPC, CompilerFailed, stepc
from stub_driver import STUB

# Algorithms of the stand-in: fused multiply-adds over increasing k, as the kernels' chains, over decreasing
# k, and either by the place in a batch.
FORWARD, BACKWARD, IN_TURNS = 7, 8, 9
VERSION, CHIP, MULTIPROCESSORS = 130002, 80, 108
FOUND = {"LD_LIBRARY_PATH": STUB}


def products(spec, manifest, *options):
    """What a library multiplies, by `explain`."""
    return json.loads(
        stepc("explain", spec, "-m", manifest, *options, "--target", "emulated:sm_80", "--json")
    )["products"]


def takes(product):
    """Whether cuBLASLt could make it."""
    lhs, rhs = (product[name].removesuffix("ᵀ") for name in ("lhs", "rhs"))
    return not product["symmetric"] and lhs == rhs and product["addend"] in (None, product["out"]) and product["out"] in (lhs, "f32")


def entry(
    product, algorithm=BACKWARD, version=VERSION, chip=CHIP, multiprocessors=MULTIPROCESSORS, tile=1, more=""
):
    """An entry of a table, as IR."""
    m, n, k = (product[name] for name in "mnk")
    lhs, rhs = product["lhs"], product["rhs"]
    addend = f", addend = {product['addend']}" if product["addend"] else ""
    leading = [m if lhs.endswith("ᵀ") else k, k if rhs.endswith("ᵀ") else n] + [n] * (2 if addend else 1)
    flags = "".join(
        f", transpose_{side} = true" for side, kind in (("lhs", lhs), ("rhs", rhs)) if kind.endswith("ᵀ")
    )
    return (f"#exec.product_entry<m = {m}, n = {n}, k = {k}, lhs = {lhs.removesuffix('ᵀ')}, rhs = {rhs.removesuffix('ᵀ')}{addend}, "
            f"out = {product['out']}{flags}, leading = {leading}, algorithm = <cublaslt = {version}, chip = {chip}, "
            f"multiprocessors = {multiprocessors}, alignment = 16, algorithm = {algorithm}, tile = {tile}{more}>>")  # fmt: skip


def compiled(folder, spec, manifest, entries, *options):
    """A library of `emulated` that runs on the stand-ins, with those entries, and how many products have
    an algorithm.
    """
    folder.mkdir(exist_ok=True)
    text = stepc("compile", spec, "-m", manifest, *options, "--emit", "scheduled", "-o", "-")
    text, count = re.subn(r"^(module @\w+ attributes \{)", rf"\1exec.products = [{', '.join(entries)}], ", text, flags=re.MULTILINE)
    assert count == 1, text[:200]
    lower = [
        STEPC.with_name("stepc-opt"),
        "--pass-pipeline=builtin.module(stepc-exec{target=emulated:sm_80})",
    ]
    done = subprocess.run(lower, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerFailed(done.stderr)
    path = folder / f"{spec.stem}.mlir"
    path.write_text(done.stdout)
    stepc("compile", path, "-o", folder, STEPC_RUNTIME_DIR=STUB)
    return folder / f"lib{spec.stem}.so", len(re.findall(r"exec\.product .* pinned \[", done.stdout))


def environment(**variables):
    return os.environ | {name: str(value) for name, value in variables.items()}
