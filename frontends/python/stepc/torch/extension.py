"""The C++ extension that looks at what is bound in every step: found, loaded, or left aside.

It is optional. Without it ``binding.py`` does the same from Python; ``build_extension.py`` makes it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import torch

from stepc.errors import StepcError, warn_user

# 0: not used; 1: must be there; unset: used if it is there.
VARIABLE = "STEPC_TORCH_EXTENSION"
HOW = "build it with `python -m stepc.torch.build_extension`"
_FOLDER = Path(__file__).resolve().parent
_NAME = "stepc.torch._extension"


def path() -> Path:
    """Where the extension stands for this Python."""
    return _FOLDER / f"_extension{sysconfig.get_config_var('EXT_SUFFIX')}"


def sources() -> list[Path]:
    """The files that it is built from."""
    return sorted((_FOLDER / "native").iterdir())


@functools.cache
def stamp() -> str:
    """What it has to be built from and for: another torch has other objects in memory."""
    made_of = hashlib.sha256(f"{torch.__version__}\0{torch.version.git_version}\0{sys.version}".encode())
    for source in sources():
        made_of.update(source.read_bytes())
    return made_of.hexdigest()


def open_extension(file: Path) -> ModuleType:
    """Loads it; raises an ImportError if it was built for something else."""
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(file))
    spec = importlib.util.spec_from_loader(_NAME, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    if module.STAMP != stamp():
        raise ImportError("it was built from other sources, or for another Python or torch")
    return module


@functools.cache
def _load(file: Path) -> ModuleType | None:
    if not file.exists():
        return None
    try:
        return open_extension(file)
    except ImportError as error:
        warn_user(
            f"the PyTorch extension '{file}' is not used, so steps cost more time in Python: {error}; {HOW}",
            UserWarning,
        )
        return None


def load() -> ModuleType | None:
    """The extension, if it is there, fits and is not switched off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "0", "1"):
        raise StepcError(f"{VARIABLE}: expected 0 or 1, found '{wanted}'")
    module = None if wanted == "0" else _load(path())
    if wanted == "1" and module is None:
        raise StepcError(f"{VARIABLE}=1: expected the PyTorch extension, found none that fits; {HOW}")
    return module
