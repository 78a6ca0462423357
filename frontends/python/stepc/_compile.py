"""Runs the compiler, and keeps what it made in a cache.

A compiled library is a function of the specification, the manifest, the options, the chip and the
compiler; their hash names its folder in the cache.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepc import _abi
from stepc._cache import Cache
from stepc._inputs import Inputs, Manifest, Spec, as_json, read_input, shown_path
from stepc.errors import CompileError, CompilerNotFound, warn_user

Cluster = str | os.PathLike[str] | Mapping[str, Any]

_WARNINGS = "warnings.json"
_HEADER = re.compile(r"^\S.*?: (error|warning|note|remark): ")


@dataclass(frozen=True)
class Compiled:
    """The files of one compilation."""

    library: Path
    header: Path
    plan: Path
    #: The compiler's warnings, with source line and hint each, also of a library from the cache.
    warnings: tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return os.fspath(self.library)


def find_compiler() -> Path:
    """The ``stepc`` program: $STEPC, then PATH, then this package's, then this source tree's build folder."""
    named = os.environ.get("STEPC")
    if named:
        found = shutil.which(named)
        if found is None:
            raise CompilerNotFound(f"STEPC={named}: expected a program, found none")
        return Path(found).resolve()
    found = shutil.which("stepc")
    if found is not None and not _is_launcher(Path(found)):
        return Path(found).resolve()
    return own_compiler()


def own_compiler() -> Path:
    """The compiler of this package, otherwise that of this source tree's build folder."""
    here = Path(__file__).resolve()
    builds = (folder / "build" / "bin" / "stepc" for folder in here.parents)
    for candidate in (here.parent / "bin" / "stepc", *builds):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise CompilerNotFound(
        "expected the stepc compiler on PATH, in this package or in the build folder of its source tree, "
        "found none: install the wheel that scripts/wheel.sh makes, set STEPC to a compiler's path, or pass "
        "a compiled library with library="
    )


def _is_launcher(path: Path) -> bool:
    """Whether ``path`` is the script that pip writes for ``stepc._command``: it only starts a compiler."""
    try:
        with open(path, "rb") as file:
            text = file.read(4096)
    except OSError:
        return False
    return text.startswith(b"#!") and b"stepc._command" in text


@functools.cache
def _host_chip() -> str:
    """What tells one host's CPU from another's: the model and its instruction sets."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = re.findall(r"^(?:cpu family|model|flags|Features|CPU part)\s*:.*$", text, re.M)
    return "\n".join([platform.machine(), *dict.fromkeys(lines)])


@functools.lru_cache(maxsize=8)
def _compiler_identity(path: str, size: int, changed: int) -> str:
    del size, changed  # in the key, so that a rebuilt compiler is hashed again
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return f"{digest}\n{version.stdout}"


def _identity(compiler: Path) -> str:
    status = compiler.stat()
    identity = _compiler_identity(str(compiler), status.st_size, status.st_mtime_ns)
    # Every library contains the runtime, so a runtime that was rebuilt alone makes other libraries.
    folder = os.environ.get("STEPC_RUNTIME_DIR")
    runtime = Path(folder) if folder else compiler.resolve().parent.parent / "lib"
    for archive in sorted(runtime.glob("libstepc_runtime*.a")):
        status = archive.stat()
        identity += f"\n{archive.name} {status.st_size} {status.st_mtime_ns}"
    return identity


def option_arguments(
    target: str | Sequence[str] | None = None,
    strategy: str | Sequence[str] | Mapping[str, str] | None = None,
    workspace_limit: int | str | None = None,
    numerics: str | None = None,
    arguments: Sequence[str] = (),
    if_present: Sequence[str] = (),
    cluster: Cluster | None = None,
    state_limit: int | str | None = None,
    keep_owners: str | os.PathLike[str] | None = None,
) -> list[str]:
    """The command-line form of the compile options."""
    check_arguments(arguments)
    result: list[str] = []
    if cluster is not None:
        result.append(f"--cluster={cluster_text(cluster)}")
    result += [f"--target={item}" for item in target_names(target)]
    if isinstance(strategy, str):
        strategy = [strategy]
    elif isinstance(strategy, Mapping):
        strategy = [f"{pattern}={name}" for pattern, name in strategy.items()]
    result += [f"--strategy={item}" for item in strategy or ()]
    if workspace_limit is not None:
        result.append(f"--workspace-limit={workspace_limit}")
    if state_limit is not None:
        result.append(f"--state-limit={state_limit}")
    if keep_owners is not None:
        result.append(f"--keep-owners={os.fspath(keep_owners)}")
    if numerics is not None:
        result.append(f"--numerics={numerics}")
    return result + present_arguments(if_present) + list(arguments)


def cluster_text(cluster: Cluster) -> str:
    """A profile's name, or a cluster as JSON: text that is the same wherever the compiler runs."""
    if isinstance(cluster, Mapping):
        return as_json(cluster, "cluster")
    if not isinstance(cluster, str | os.PathLike) or not os.fspath(cluster):
        raise TypeError(
            "cluster: expected a profile's name, the path of a JSON file, or what the manifest's "
            f"cluster says, found {cluster!r}"
        )
    if isinstance(cluster, str) and re.fullmatch(r"\w+", cluster):
        return cluster
    text = read_input(cluster, "cluster")
    if not text.lstrip().startswith("{"):
        raise CompileError(f"{os.fspath(cluster)}: expected a cluster as a JSON object")
    return text.strip()


def target_names(target: str | Sequence[str] | None) -> list[str]:
    """The targets, one text each. An empty list lets the compiler choose."""
    names = [target] if isinstance(target, str) else target
    if names is None:
        return []
    is_list = isinstance(names, Sequence) and all(isinstance(one, str) and one for one in names)
    if not names or not is_list:
        raise TypeError(
            "target: expected a text, as in 'cuda:sm_90a', or a list of such texts, found "
            f"{target!r}"
        )
    return list(names)


# Options that this module itself gives to the compiler, or that make it write something else.
_OWN_OPTIONS = ("-m", "--manifest", "-o", "--output", "--emit", "--json", "-h", "--help")


def check_arguments(arguments: Sequence[str]) -> None:
    """Checks that ``arguments`` is a list of options that shape a library. Raises TypeError for other values,
    and ValueError for options that this module sets or that ask for other outputs."""
    wanted = "arguments: expected a list of options, as in ['--waves', '2'], found "
    if isinstance(arguments, str):
        raise TypeError(f"{wanted}the text {arguments!r}")
    # Also finds a text that became a list of its letters.
    if arguments and str(arguments[0])[:2] != "--":
        raise TypeError(f"{wanted}{list(arguments)!r}")
    for argument in arguments:
        name = str(argument).split("=")[0]
        if name in _OWN_OPTIONS:
            raise ValueError(
                f"arguments: expected options that shape the library, found {name!r}: run "
                "`stepc compile` for other outputs"
            )


def _digest(path: str) -> str:
    """A hash of a file. Empty if the file cannot be read, which the compiler will say."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _files(options: Sequence[str]) -> str:
    """The texts of the files that options name. They are part of the cache's key: other texts make another
    library."""
    texts = []
    for option, following in itertools.pairwise([*options, ""]):
        name, _, path = option.partition("=")
        if name == "--keep-owners":
            texts.append(_digest(path or following))
        elif name in ("--products", "--cluster"):
            try:
                texts.append(read_input(path or following, "table of products"))
            except CompileError:
                texts.append("")  # a profile's name, or a file that the compiler will refuse
    return json.dumps(texts)


def present_arguments(if_present: Sequence[str]) -> list[str]:
    """The command-line form of patterns that may match nothing."""
    if isinstance(if_present, str):
        raise TypeError(f"if_present: expected a list of patterns, found the text {if_present!r}")
    return [f"--if-present={pattern}" for pattern in if_present]


def _run(
    subcommand: str, inputs: Inputs, folder: Path, options: Sequence[str]
) -> tuple[str, list[str]]:
    """Runs the compiler on copies of the inputs in ``folder``. Returns what it printed, and its warnings, in
    which marks stand for the inputs' names."""
    command = [str(find_compiler()), subcommand, *inputs.write(folder), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except ValueError as error:  # a zero byte, or text that UTF-8 cannot hold
        wrong = [one for one in options if one != one.encode(errors="ignore").decode().replace("\0", "")]
        raise CompileError(
            f"expected options in UTF-8 without zero bytes, found {wrong[:1] or options!r}: {error}", 2
        ) from error
    if done.returncode != 0:
        text = inputs.named(done.stderr.strip() or done.stdout.strip())
        raise CompileError(
            text or f"{command[0]} ended with status {done.returncode}", done.returncode
        )
    return done.stdout, [inputs.marked(text) for text in warnings_of(done.stderr)]


def warnings_of(diagnostics: str) -> list[str]:
    """The warnings among diagnostics, each with its source line, notes and hints, each once."""
    found: list[list[str]] = []
    inside = False
    for line in diagnostics.splitlines():
        header = _HEADER.match(line)
        if header and header[1] == "warning":
            found.append([line])
            inside = True
        elif inside and (line.startswith(("  ", "hint: ")) or (header and header[1] == "note")):
            found[-1].append(line)
        else:  # an error, a remark, or how far a long compilation has come
            inside = False
    return list(dict.fromkeys("\n".join(lines) for lines in found))


def compile(  # noqa: A001 - the name that users expect: stepc.compile
    spec: Spec,
    manifest: Manifest,
    *,
    target: str | Sequence[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    strategy: str | Sequence[str] | Mapping[str, str] | None = None,
    workspace_limit: int | str | None = None,
    numerics: str | None = None,
    arguments: Sequence[str] = (),
    if_present: Sequence[str] = (),
    cluster: Cluster | None = None,
    state_limit: int | str | None = None,
    keep_owners: str | os.PathLike[str] | None = None,
) -> Compiled:
    """Compiles an optimizer definition for the parameters of a manifest.

    Args:
        spec: path of an ``.optim`` file, or its text.
        manifest: a dict (see :func:`stepc.torch.export_manifest`), the path of a JSON file, or its
            text, which begins with ``{``.
        target: ``cpu`` for this host's chip (the default), ``cpu:<llvm cpu>``, ``cuda:<gpu>,…``,
            ``emulated:<gpu>`` for the kernels of a GPU on this host, or ``interpret`` for kernels
            that are interpreted; ``stepc compile --help`` has more. Several, in a list, make one
            library with a step for each, and each GPU of ``cuda`` has a step of its own. ``cpu``,
            ``emulated`` and ``interpret`` are for parameters on the CPU, and a trainer takes the one
            that is named first.
        output: the folder for the files; without it they live in the cache.
        strategy: forced strategies, ``"PATTERN=gather"``, several of them, or a dict.
        workspace_limit: bytes of workspace per rank, or a text as ``"1.5GiB"``, rounded down.
        numerics: ``exact``, the default, or ``fast``, where bits may depend on the ranks within the
            tolerances that docs/promises.md states.
        arguments: further arguments of ``stepc compile``, verbatim, as ``["--products", "table.json"]``.
        if_present: patterns of the definition's routes that may match no parameter.
        cluster: the machines that the plan is chosen for, in the place of the manifest's: a
            profile's name (``"h100"``), a file that ``stepc probe`` wrote, or what the manifest's
            ``cluster`` says, as a dict.
        state_limit: bytes of states per rank, or a text as ``"1.5GiB"``: owners of blocks whose states stay
            with them are chosen so that no rank has more.
        keep_owners: the path of the library that stepped before: blocks whose states stay with them keep its
            owners, unless that makes the busiest rank over 5 % busier.

    The compiler's warnings become :class:`stepc.CompileWarning`.

    Raises:
        CompileError: the input was refused; the message is the compiler's diagnostics.
    """
    options = option_arguments(
        target, strategy, workspace_limit, numerics, arguments, if_present, cluster, state_limit,
        keep_owners,
    )  # fmt: skip
    made = compile_silently(spec, manifest, options, output)
    for text in made.warnings:
        warn_user(text)
    return made


def compile_silently(
    spec: Spec,
    manifest: Manifest,
    options: Sequence[str],
    output: str | os.PathLike[str] | None = None,
) -> Compiled:
    """Like :func:`compile`, but takes options of the command line, and only returns the warnings."""
    compiler = find_compiler()
    inputs, options = Inputs(spec, manifest), list(options)
    name = inputs.name
    key = hashlib.sha256()
    versions = f"{_abi.ABI_VERSION} {_abi.TRANSPORT_VERSION}"
    for part in (name, inputs.spec, inputs.manifest, json.dumps(options),
                 _files(options), _host_chip(), _identity(compiler), versions):  # fmt: skip
        data = part.encode()
        key.update(len(data).to_bytes(8, "little") + data)
    def fill(made: Path) -> None:
        _, told = _run("compile", inputs, made, [*options, "-o", str(made)])
        (made / _WARNINGS).write_text(json.dumps(told), encoding="utf-8")

    cache, entry, wanted = Cache(), key.hexdigest()[:40], (f"lib{name}.so", _WARNINGS)
    folder = cache.find(entry, wanted, _has_warnings) or cache.make(entry, wanted, fill, _has_warnings)
    warnings = tuple(inputs.named(text) for text in _kept_warnings(folder))
    if output is not None:
        files = [folder / file for file in (f"lib{name}.so", f"{name}.h", f"{name}.json")]
        for target in ("cpu", "cuda.*", "emulated", "interpret"):  # plans of further targets
            files += sorted(folder.glob(f"{glob.escape(name)}.{target}.json"))
        copy_files([file for file in files if file.is_file()], Path(output))
        folder = Path(output)
    return Compiled(
        folder / f"lib{name}.so", folder / f"{name}.h", folder / f"{name}.json", warnings
    )


def _kept_warnings(folder: Path) -> list[str]:
    """The warnings of a cache entry. Raises ValueError if their file holds no list of texts."""
    told = json.loads((folder / _WARNINGS).read_text(encoding="utf-8"))
    if not isinstance(told, list) or not all(isinstance(text, str) for text in told):
        raise ValueError(f"expected a list of texts in {_WARNINGS}")
    return told


def _has_warnings(folder: Path) -> bool:
    try:
        _kept_warnings(folder)
    except (OSError, ValueError, RecursionError):
        return False
    return True


def check(spec: Spec, manifest: Manifest, *, if_present: Sequence[str] = ()) -> dict[str, Any]:
    """Which route every parameter takes, and each route's rule and defaults.

    Placements need not be right, since routing looks at names and shapes alone. The compiler's
    warnings become :class:`stepc.CompileWarning`.
    """
    found, warnings = check_silently(spec, manifest, if_present)
    for text in warnings:
        warn_user(text)
    return found


def check_silently(
    spec: Spec, manifest: Manifest, if_present: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Like :func:`check`, but returns the warnings beside the result."""
    inputs = Inputs(spec, manifest)
    with tempfile.TemporaryDirectory(prefix="stepc-check-") as folder:
        printed, warnings = _run(
            "check", inputs, Path(folder), [*present_arguments(if_present), "--json"]
        )
    try:
        return json.loads(printed), [inputs.named(text) for text in warnings]
    except ValueError as error:
        raise CompileError(f"stepc check printed no JSON: {error}\n{printed[:2000]}") from error


def explain(spec: Spec, manifest: Manifest, *, json_form: bool = False, **options: Any) -> str:
    """The compiler's table of groups, strategies and costs."""
    inputs, extra = Inputs(spec, manifest), ["--json"] if json_form else []
    with tempfile.TemporaryDirectory(prefix="stepc-explain-") as folder:
        printed, warnings = _run(
            "explain", inputs, Path(folder), [*option_arguments(**options), *extra]
        )
    for text in warnings:
        warn_user(inputs.named(text))
    return printed


def copy_files(sources: Sequence[Path], folder: Path) -> None:
    """Copies files into a folder, which is made if there is none: all of them, or none and a CompileError.

    Each file appears by a rename, so that a process that has the old file open keeps it whole.
    """
    place, made = folder, []  # pairs of a temporary file and its place
    absent = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            place = folder / source.name
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{source.name}-")
            os.close(handle)
            made.append((temporary, place))
            shutil.copyfile(source, temporary)
            os.chmod(temporary, 0o755 if source.suffix == ".so" else 0o644)
        for temporary, place in made:  # noqa: B020 - the error names the last one
            os.replace(temporary, place)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileExistsError):
            reason = "expected a folder, found a file"
        raise CompileError(
            f"{shown_path(place)}: cannot write the compiled library: {reason}\nhint: output= names the "
            "folder "
            "for its files"
        ) from error
    finally:
        for temporary, _ in made:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        for one in absent:  # new folders that stayed empty
            with contextlib.suppress(OSError, ValueError):
                one.rmdir()
