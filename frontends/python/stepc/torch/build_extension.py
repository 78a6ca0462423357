"""Builds the C++ extension beside this file, unless one that fits is there:

    python -m stepc.torch.build_extension

The compiler is $CXX, otherwise c++. A failure is no error for stepc: without the extension steps are checked
in Python.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import torch

from stepc.torch import extension

_OPTIONS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


class BuildError(Exception):
    """The extension could not be built."""


def command(output: Path) -> list[str]:
    """The compiler's command line."""
    root = Path(torch.__file__).parent
    headers = [root / "include", root / "include/torch/csrc/api/include", sysconfig.get_paths()["include"]]
    return [
        *shlex.split(os.environ.get("CXX") or "c++"), *_OPTIONS,
        f'-DSTEPC_STAMP="{extension.stamp()}"',
        *(part for folder in headers for part in ("-isystem", str(folder))),
        *(str(source) for source in extension.sources() if source.suffix == ".cpp"),
        "-o", str(output), f"-L{root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip


def build(file: Path) -> None:
    """Builds ``file``, whole or not at all."""
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".building-") as folder:
            output = Path(folder) / file.name
            made = subprocess.run(command(output), capture_output=True, text=True, check=False)
            if made.returncode:
                raise BuildError(
                    f"the compiler failed with exit code {made.returncode}:\n{made.stderr.strip()}"
                )
            extension.open_extension(output)
            os.replace(output, file)
    except (OSError, ImportError) as error:
        raise BuildError(str(error)) from error


def main() -> int:
    file = extension.path()
    try:
        if file.exists():
            extension.open_extension(file)
            return 0
    except ImportError:
        pass
    try:
        build(file)
    except BuildError as error:
        print(f"warning: the PyTorch extension was not built, so steps cost more time in Python: {error}",
              file=sys.stderr)  # fmt: skip
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
