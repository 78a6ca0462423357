"""The compiler's inputs, a specification and a manifest: their texts, their copies and their users' names."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepc.errors import CompileError


@dataclass(frozen=True)
class Definition:
    """A specification that was read. Its text is kept, because another machine may have another file or none.

    ``name`` is the name of libraries made of it, ``file`` the name of the compiler's copy, and ``shown`` the
    name in diagnostics.
    """

    name: str
    text: str
    file: str
    shown: str


Spec = str | os.PathLike[str] | Definition
Manifest = Mapping[str, Any] | str | os.PathLike[str]

# Marks for the two files' names in kept diagnostics: another caller may give the same texts by other paths.
_SPEC_MARK, _MANIFEST_MARK = "\0", "\1"


def is_text(spec: Spec) -> bool:
    """Whether ``spec`` is the text itself: it has a brace or a line break, which no sensible path has."""
    return isinstance(spec, str) and ("\n" in spec or "{" in spec)


def read_spec(spec: Spec) -> Definition:
    """A specification, given as a path or as the text itself."""
    if isinstance(spec, Definition):
        return spec
    if is_text(spec):
        return Definition("step", _in_utf8(str(spec), "specification"), "step.optim", "<specification>")
    path = Path(spec)
    try:
        path.name.encode()
    except UnicodeEncodeError as error:  # the library would also have that name
        raise CompileError(f"{shown_path(path)}: expected a file name in UTF-8: {error}") from error
    return Definition(path.stem, read_input(path, "specification"), path.name, os.fspath(spec))


def definition_hash(spec: Spec, arguments: Sequence[str]) -> str:
    """A hash of the specification's text and the command line. It is equal for ranks that would compile the
    same."""
    return hashlib.sha256(repr((read_spec(spec).text, list(arguments))).encode()).hexdigest()


#: The most MiB that are read of each input, as the compiler reads them (tools/stepc/Report.h).
MOST_MIB = {"specification": 64, "manifest": 256, "cluster": 64, "table of products": 64}


def read_input(path: str | os.PathLike[str], what: str) -> str:
    """The text of an input file, or of a pipe or a device up to its end, with its line breaks as they are.

    Raises CompileError for a file that cannot be read, is not UTF-8, or exceeds the bound in ``MOST_MIB``.
    """
    most = MOST_MIB[what] << 20
    expected = f"{shown_path(path)}: expected a {what} of at most {MOST_MIB[what]} MiB, found "
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_size > most:
                raise CompileError(f"{expected}{found.st_size} bytes")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CompileError(
            f"{shown_path(path)}: expected a {what}, but the file cannot be read: {reason}"
        ) from error
    if len(data) > most:
        raise CompileError(f"{expected}more")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CompileError(f"{shown_path(path)}: expected a {what} in UTF-8: {error}") from error


def as_json(value: Mapping[str, Any], what: str, **options: Any) -> str:
    """A dict as JSON. Raises TypeError if the dict holds something that JSON cannot express."""
    try:
        return json.dumps(dict(value), **options)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{what}: expected a dict of lists, dicts, texts and numbers: {error}") from error


def _in_utf8(text: str, what: str) -> str:
    """Returns ``text``. Raises CompileError if it holds characters that UTF-8 cannot spell."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CompileError(f"<{what}>: expected a {what} in UTF-8: {error}") from error
    return text


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path as printable text: file names may hold bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


class Inputs:
    """A specification and a manifest, read once. A manifest is a dict, a path, or a text that begins
    with ``{``.

    The compiler gets copies, word for word, so that it compiles what was read. In its diagnostics
    the copies' names become the user's, or ``<specification>`` and ``<manifest>`` for inputs
    without a file.
    """

    def __init__(self, spec: Spec, manifest: Manifest) -> None:
        definition = read_spec(spec)
        self.name, self.spec, self._file = definition.name, definition.text, definition.file
        if isinstance(manifest, Mapping):
            self.manifest, shown = as_json(manifest, "manifest", indent=1), "<manifest>"
        elif isinstance(manifest, str) and manifest.lstrip().startswith("{"):
            self.manifest, shown = _in_utf8(manifest, "manifest"), "<manifest>"
        else:
            self.manifest, shown = read_input(manifest, "manifest"), os.fspath(manifest)
        self._shown = {_SPEC_MARK: definition.shown, _MANIFEST_MARK: shown}
        self._marks: dict[str, str] = {}

    def write(self, folder: Path) -> list[str]:
        """Writes the copies, and returns the compiler's arguments."""
        # The compiler writes no file of this name, while its <name>.json could be manifest.json.
        files = folder / self._file, folder / f"{self.name}.manifest.json"
        for file, text in zip(files, (self.spec, self.manifest), strict=True):
            file.write_bytes(text.encode())
        spec, manifest = map(str, files)
        self._marks = {spec: _SPEC_MARK, manifest: _MANIFEST_MARK}
        return [spec, "--manifest", manifest]

    def marked(self, diagnostics: str) -> str:
        """The compiler's text with marks in place of the copies' paths; :meth:`named` replaces the marks."""
        for path, mark in self._marks.items():
            diagnostics = diagnostics.replace(path, mark)
        return diagnostics

    def named(self, diagnostics: str) -> str:
        """The compiler's text, or the result of :meth:`marked`, with the user's names for the inputs."""
        diagnostics = self.marked(diagnostics)
        for mark, shown in self._shown.items():
            diagnostics = diagnostics.replace(mark, shown)
        return diagnostics
