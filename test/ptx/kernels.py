"""Writes the kernels that ptx-tests runs: PTX out of what `stepc-opt --stepc-ptx` prints, and what each kernel computes.

    stepc-opt FILE.mlir PASSES --stepc-ptx | python test/ptx/kernels.py DESCRIPTIONS FOLDER

DESCRIPTIONS has a line per kernel, as Kernels.h tells, without `file`. It must name all kernels of the PTX and no others.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def assembly(text: str) -> str:
    """The PTX in the attributes of gpu.binary operations, the modules behind each other."""
    found = re.findall(r'assembly = "((?:[^"\\]|\\.)*)"', text)
    if not found:
        raise ValueError("expected a gpu.binary with PTX, found none")
    unescaped = [re.sub(r"\\(\\|\"|[0-9A-Fa-f]{2})", character, one) for one in found]
    return "\n".join(one.rstrip("\0") for one in unescaped)


def character(match: re.Match[str]) -> str:
    return match[1] if match[1] in '\\"' else chr(int(match[1], 16))


def parted(ptx: str) -> dict[str, str]:
    """Each kernel with what stands before the first one: declarations of its module."""
    parts = re.split(r"^(?=\s*\.version)", ptx, flags=re.MULTILINE)
    found = {}
    for part in parts:
        head, *kernels = re.split(r"^(?=(?:\.visible )?\.entry)", part, flags=re.MULTILINE)
        for kernel in kernels:
            found[re.search(r"\.entry\s+(\w+)", kernel)[1]] = head + kernel
    return found


def described(entries: list[str], descriptions: str) -> str:
    """The lines of kernels.txt."""
    lines = [line for line in descriptions.splitlines() if line.strip() and not line.startswith("#")]
    named = [dict(word.split("=", 1) for word in line.split())["entry"] for line in lines]
    if sorted(named) != sorted(entries):
        missing, extra = sorted(set(entries) - set(named)), sorted(set(named) - set(entries))
        raise ValueError(f"expected a description of each kernel, found none of {missing} and others of {extra}")
    return "".join(f"name={name} file={name}.ptx {line}\n" for name, line in zip(named, lines, strict=True))


def main(descriptions: str, folder: str) -> None:
    kernels = parted(assembly(sys.stdin.read()))
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in kernels.items():
        (Path(folder) / f"{name}.ptx").write_text(text)
    # Last, because it is what the build waits for.
    (Path(folder) / "kernels.txt").write_text(described(list(kernels), Path(descriptions).read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])
