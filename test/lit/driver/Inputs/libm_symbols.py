"""Prints what a library leaves to the math library of the machine that it runs on, or that it is nothing."""

import ctypes
import subprocess
import sys


def symbols(kind, path):
    lines = subprocess.run(
        ["nm", "-D", kind, path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


ctypes.CDLL("libm.so.6")
with open("/proc/self/maps", encoding="utf-8") as maps:
    libm = next(line.split()[-1] for line in maps if "/libm.so" in line or "/libm-" in line)
undefined = symbols("--undefined-only", sys.argv[1])
assert undefined & {"memcpy", "malloc"}, "no symbols were read"
print("from libm:", " ".join(sorted(undefined & symbols("--defined-only", libm))) or "nothing")
