"""Names of parameters, and the patterns that match them: the same rules as the compiler's."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

_WRAPPERS = ("module", "_orig_mod", "_checkpoint_wrapped_module")


def canonical_name(name: str) -> str:
    """The name without the components that DDP, torch.compile and checkpointing add.

    The last component is never a wrapper's: a parameter called ``module`` stays one.
    """
    *path, last = name.split(".")
    return ".".join([part for part in path if part not in _WRAPPERS] + [last])


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether a shell pattern matches the whole of a name, as written or in canonical form."""
    return any(
        fnmatch.fnmatchcase(form, pattern) for name in names for form in (name, canonical_name(name))
    )
