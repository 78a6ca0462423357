"""Finds and loads the C++ extension that checks the bound tensors in every step.

The extension is optional: without it ``binding.py`` does the same in Python. ``build_extension.py`` makes it.
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
    """The extension's file for this Python."""
    return _FOLDER / f"_extension{sysconfig.get_config_var('EXT_SUFFIX')}"


def sources() -> list[Path]:
    """The extension's source files."""
    return sorted((_FOLDER / "native").iterdir())


@functools.cache
def stamp() -> str:
    """A hash of the extension's sources and of the versions of torch and Python. An extension with another
    stamp is not used, because another torch has other objects in memory."""
    made_of = hashlib.sha256(f"{torch.__version__}\0{torch.version.git_version}\0{sys.version}".encode())
    for source in sources():
        made_of.update(source.read_bytes())
    return made_of.hexdigest()


def open_extension(file: Path) -> ModuleType:
    """Loads the extension. Raises ImportError if it has another stamp."""
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
    """The extension. None if it is absent, does not fit or is switched off."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "0", "1"):
        raise StepcError(f"{VARIABLE}: expected 0 or 1, found '{wanted}'")
    module = None if wanted == "0" else _load(path())
    if wanted == "1" and module is None:
        raise StepcError(f"{VARIABLE}=1: expected the PyTorch extension, found none that fits; {HOW}")
    return module
