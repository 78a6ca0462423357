"""Checks that PyTorch is installed as this package needs it. Imported first, so that its error is seen."""

import re

TORCH = (2, 11)

_HINT = (
    "hint: pip install 'torch>={}.{}'; for CPUs alone add "
    "--index-url https://download.pytorch.org/whl/cpu"
).format(*TORCH)


def _refused(found: str) -> ImportError:
    wanted = f"PyTorch {TORCH[0]}.{TORCH[1]} or later"
    return ImportError(f"stepc.torch: expected {wanted}, found {found}\n{_HINT}", name="torch")


try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise _refused("none") from error

_version = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
if _version is not None and (int(_version[1]), int(_version[2])) < TORCH:
    raise _refused(str(torch.__version__))
