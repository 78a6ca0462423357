"""What is compiled: a specification and a manifest, as files and under their users' names."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepc.errors import CompileError

Spec = str | os.PathLike[str]
Manifest = Mapping[str, Any] | str | os.PathLike[str]

# Stand for the two files in kept diagnostics: another caller may have other paths of their texts.
_SPEC_MARK, _MANIFEST_MARK = "\0", "\1"


def is_text(spec: Spec) -> bool:
    """Whether it is the text itself: with a brace or a line break, which no sensible path has."""
    return isinstance(spec, str) and ("\n" in spec or "{" in spec)


def load_spec(spec: Spec) -> tuple[str, str]:
    """Name and text of a specification, given as a path or as the text itself."""
    if is_text(spec):
        return "step", str(spec)
    return Path(spec).stem, _read(spec, "specification")


def definition_hash(spec: Spec, arguments: Sequence[str]) -> str:
    """Equal for ranks that would compile the same: the specification's text, and the command line."""
    return hashlib.sha256(repr((load_spec(spec)[1], list(arguments))).encode()).hexdigest()


def _read(path: str | os.PathLike[str], what: str) -> str:
    try:
        # As bytes, so that line breaks stay what they are.
        return Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise CompileError(f"{path}: cannot read the {what}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CompileError(f"{path}: expected a {what} in UTF-8: {error}") from error


class Inputs:
    """A specification and a manifest, read once.

    The compiler gets copies, word for word, so that what it compiled is what was read. Its
    diagnostics name the user's files in their place, or ``<specification>`` and ``<manifest>``
    where there is none.
    """

    def __init__(self, spec: Spec, manifest: Manifest) -> None:
        self.name, self.spec = load_spec(spec)
        if isinstance(manifest, Mapping):
            self.manifest, shown = json.dumps(dict(manifest), indent=1), "<manifest>"
        else:
            self.manifest, shown = _read(manifest, "manifest"), os.fspath(manifest)
        self._shown = {
            _SPEC_MARK: "<specification>" if is_text(spec) else os.fspath(spec),
            _MANIFEST_MARK: shown,
        }
        self._file = f"{self.name}.optim" if is_text(spec) else Path(spec).name
        self._marks: dict[str, str] = {}

    def write(self, folder: Path) -> list[str]:
        """Writes the copies, and gives the compiler's arguments."""
        files = folder / self._file, folder / "manifest.json"
        for file, text in zip(files, (self.spec, self.manifest), strict=True):
            file.write_bytes(text.encode())
        spec, manifest = map(str, files)
        self._marks = {spec: _SPEC_MARK, manifest: _MANIFEST_MARK}
        return [spec, "--manifest", manifest]

    def marked(self, diagnostics: str) -> str:
        """The compiler's text without the paths of the copies; :meth:`named` gives theirs."""
        for path, mark in self._marks.items():
            diagnostics = diagnostics.replace(path, mark)
        return diagnostics

    def named(self, diagnostics: str) -> str:
        """The compiler's text, or what :meth:`marked` made of it, with the user's names."""
        diagnostics = self.marked(diagnostics)
        for mark, shown in self._shown.items():
            diagnostics = diagnostics.replace(mark, shown)
        return diagnostics
