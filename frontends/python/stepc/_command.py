"""The command ``stepc`` of an installed package: the process becomes the compiler."""

from __future__ import annotations

import os
import sys

from stepc._compile import own_compiler
from stepc.errors import CompilerNotFound


def main() -> None:
    try:
        compiler = own_compiler()
    except CompilerNotFound as error:
        sys.exit(f"stepc: error: {error}")
    os.execv(compiler, ["stepc", *sys.argv[1:]])
