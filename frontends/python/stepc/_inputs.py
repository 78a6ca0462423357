"""The compiler's inputs, a specification and a manifest: their texts, their copies and their users' names."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
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
    name in diagnostics. ``imports`` are the files that it imports, by way of others too: their paths from
    its folder, and their texts, or None for files that are not there. They have no files of stepc's library.
    """

    name: str
    text: str
    file: str
    shown: str
    imports: tuple[tuple[str, str | None], ...] = ()

    @property
    def texts(self) -> str:
        """All that the specification says, for hashes."""
        return self.text if not self.imports else json.dumps([self.text, *self.imports])


Spec = str | os.PathLike[str] | Definition
Manifest = Mapping[str, Any] | str | os.PathLike[str]

# Marks for the files' names in kept diagnostics: another caller may give the same texts by other paths.
_SPEC_MARK, _MANIFEST_MARK = "\0", "\1"


def _import_mark(number: int) -> str:
    return f"\2{number}\2"


def is_text(spec: Spec) -> bool:
    """Whether ``spec`` is the text itself: it has a brace or a line break, which no sensible path has."""
    return isinstance(spec, str) and ("\n" in spec or "{" in spec)


def read_spec(spec: Spec) -> Definition:
    """A specification, given as a path or as the text itself."""
    if isinstance(spec, Definition):
        return spec
    if is_text(spec):
        text = _in_utf8(str(spec), "specification")
        for path in imported_paths(text):
            raise CompileError(
                "<specification>: expected imports of stepc's library, because the definition is given as a "
                f"text, found {shown_path(path)!r}"
            )
        return Definition("step", text, "step.optim", "<specification>")
    path = Path(spec)
    try:
        path.name.encode()
    except UnicodeEncodeError as error:  # the library would also have that name
        raise CompileError(f"{shown_path(path)}: expected a file name in UTF-8: {error}") from error
    text = read_input(path, "specification")
    return Definition(path.stem, text, path.name, os.fspath(spec), _read_imports(path.parent, text))


# An import starts a line. Between the word and the string there may be white space and comments.
_IMPORT = re.compile(r'^[ \t\r]*import(?:\s|//[^\n]*\n)*"([^"\\\n]+)"', re.M)


def imported_paths(text: str) -> list[str]:
    """The paths that a specification imports, from the folder that it is in. The compiler refuses absolute
    ones, and has the library's (``stepc/...``)."""
    paths = _IMPORT.findall(text.removeprefix("\ufeff"))
    return [path for path in paths if not path.startswith(("stepc/", "/")) and path != "-"]


def _read_imports(folder: Path, text: str) -> tuple[tuple[str, str | None], ...]:
    """What ``Definition.imports`` has. The compiler says which of the files are missing."""
    found: dict[str, str | None] = {}
    opened = [("", os.fspath(folder), text)]
    while opened:
        importer, beside, text = opened.pop()
        for path in imported_paths(text):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
            if name in found:
                continue
            place = os.path.join(beside, path)  # not made plain, because a folder may be a link
            is_there = os.path.isfile(place)
            found[name] = read_input(place, "specification") if is_there else None
            if is_there:
                opened.append((name, os.path.dirname(place), found[name] or ""))
    return tuple(sorted(found.items()))


def definition_hash(spec: Spec, arguments: Sequence[str]) -> str:
    """A hash of the specification's text, of what it imports, and of the command line. It is equal for ranks
    that would compile the same."""
    return hashlib.sha256(repr((read_spec(spec).texts, list(arguments))).encode()).hexdigest()


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
        self.name, self.spec, self._file = definition.name, definition.texts, definition.file
        self._text, self._imports = definition.text, definition.imports
        if isinstance(manifest, Mapping):
            self.manifest, shown = as_json(manifest, "manifest", indent=1), "<manifest>"
        elif isinstance(manifest, str) and manifest.lstrip().startswith("{"):
            self.manifest, shown = _in_utf8(manifest, "manifest"), "<manifest>"
        else:
            self.manifest, shown = read_input(manifest, "manifest"), os.fspath(manifest)
        self._shown = {_SPEC_MARK: definition.shown, _MANIFEST_MARK: shown}
        folder = os.path.dirname(definition.shown)
        for number, (path, _) in enumerate(self._imports):
            self._shown[_import_mark(number)] = os.path.normpath(os.path.join(folder, path))
        self._marks: dict[str, str] = {}

    def write(self, folder: Path) -> list[str]:
        """Writes the copies, and returns the compiler's arguments."""
        # The compiler writes no file of this name, while its <name>.json could be manifest.json.
        # Imports may be in folders above: the copies have as many folders above them.
        above = max((path.count("../") for path, _ in self._imports), default=0)
        base = folder.joinpath(*["inputs"] * above)
        texts = {base / self._file: self._text, base / f"{self.name}.manifest.json": self.manifest}
        spec, manifest = map(str, texts)
        self._marks = {spec: _SPEC_MARK, manifest: _MANIFEST_MARK}
        for number, (path, text) in enumerate(self._imports):
            copy = Path(os.path.normpath(base / path))
            self._marks[str(copy)] = _import_mark(number)
            if text is not None:
                texts[copy] = text
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return [spec, "--manifest", manifest]

    def marked(self, diagnostics: str) -> str:
        """The compiler's text with marks in place of the copies' paths; :meth:`named` replaces the marks."""
        for path, mark in sorted(self._marks.items(), key=lambda item: -len(item[0])):
            diagnostics = diagnostics.replace(path, mark)
        return diagnostics

    def named(self, diagnostics: str) -> str:
        """The compiler's text, or the result of :meth:`marked`, with the user's names for the inputs."""
        diagnostics = self.marked(diagnostics)
        for mark, shown in self._shown.items():
            diagnostics = diagnostics.replace(mark, shown)
        return diagnostics
