"""What is compiled: a specification and a manifest, as files and under their users' names."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepc.errors import CompileError


@dataclass(frozen=True)
class Definition:
    """A specification that was read. Another machine may have no such file, or another one.

    ``name`` is that of libraries made of it, ``file`` that of the compiler's copy, and ``shown`` stands
    in diagnostics.
    """

    name: str
    text: str
    file: str
    shown: str


Spec = str | os.PathLike[str] | Definition
Manifest = Mapping[str, Any] | str | os.PathLike[str]

# Stand for the two files in kept diagnostics: another caller may have other paths of their texts.
_SPEC_MARK, _MANIFEST_MARK = "\0", "\1"


def is_text(spec: Spec) -> bool:
    """Whether it is the text itself: with a brace or a line break, which no sensible path has."""
    return isinstance(spec, str) and ("\n" in spec or "{" in spec)


def read_spec(spec: Spec) -> Definition:
    """A specification, given as a path or as the text itself."""
    if isinstance(spec, Definition):
        return spec
    if is_text(spec):
        return Definition("step", str(spec), "step.optim", "<specification>")
    path = Path(spec)
    return Definition(path.stem, _read(path, "specification"), path.name, os.fspath(spec))


def definition_hash(spec: Spec, arguments: Sequence[str]) -> str:
    """Equal for ranks that would compile the same: the specification's text, and the command line."""
    return hashlib.sha256(repr((read_spec(spec).text, list(arguments))).encode()).hexdigest()


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
        definition = read_spec(spec)
        self.name, self.spec, self._file = definition.name, definition.text, definition.file
        if isinstance(manifest, Mapping):
            self.manifest, shown = json.dumps(dict(manifest), indent=1), "<manifest>"
        else:
            self.manifest, shown = _read(manifest, "manifest"), os.fspath(manifest)
        self._shown = {_SPEC_MARK: definition.shown, _MANIFEST_MARK: shown}
        self._marks: dict[str, str] = {}

    def write(self, folder: Path) -> list[str]:
        """Writes the copies, and gives the compiler's arguments."""
        # No file that the compiler writes beside them has that name, as <name>.json could be manifest.json.
        files = folder / self._file, folder / f"{self.name}.manifest.json"
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
