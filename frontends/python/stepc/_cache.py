"""The cache of compiled libraries: a folder whose files are checked before they are used.

An entry is a folder named by a hash of its compilation's inputs, or a library from another rank, named by its
own digest. An entry appears and disappears by one rename, so that no process ever sees half an entry. A
process that has a library open keeps it. Every file's SHA-256 digest is stored beside the file and compared
before the file is used: a damaged entry is made again. Files and folders that another user may write are
refused, since code is loaded from them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from stepc.errors import CacheError, CompileError

# The file of an entry's digests, in the form that `sha256sum -c` reads.
_SUMS = "SHA256SUMS"
_RECEIVED = "received"
_DEFAULT_LIMIT = 2 * 2**30
_LIMIT_DIGITS = 1000
# Entries that were used within this time are not dropped: another process may be about to open them.
_GRACE_SECONDS = 600.0
# Temporary files that are older were left by a process that was killed.
_LEFTOVER_SECONDS = 24 * 3600.0
_LOCK_SECONDS = 30.0
_COMPILING, _RECEIVING, _REMOVED = ".compile-", ".receive-", ".remove-"
_ENTRY = re.compile(r"[0-9a-f]{40}(\.so)?")
_FACTORS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_PLACE = re.compile(r"^\S.*:\d+:\d+: error: ", re.MULTILINE)
# A compilation needs at least this many bytes of disk.
_ROOM = 4 * 2**20

# Digests by device, inode, size and modification time of a file, so that a process reads each file once.
_digests: dict[tuple[int, int, int, int], str] = {}


def cache_directory() -> Path:
    """The folder of the cache: $STEPC_CACHE, or ``~/.cache/stepc``."""
    named = os.environ.get("STEPC_CACHE")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "stepc"
    except RuntimeError as error:
        raise CacheError(
            f"expected a home folder for the cache of compiled libraries, found none: {error}\nhint: set "
            "HOME, or STEPC_CACHE to a folder that this process may write"
        ) from error


def cache_limit() -> int:
    """Bytes that the cache may have before it drops entries: $STEPC_CACHE_LIMIT, or 2 GiB."""
    text = os.environ.get("STEPC_CACHE_LIMIT", "").strip()
    return _bytes_of("STEPC_CACHE_LIMIT", text) if text else _DEFAULT_LIMIT


def _bytes_of(what: str, text: str) -> int:
    """A size as the compiler's ``--workspace-limit`` reads it: "4096", "64KiB" or "1.5 GiB"."""
    # Python refuses to convert very long texts to numbers.
    if len(text) > _LIMIT_DIGITS:
        raise CacheError(f"{what}: expected a number of bytes, found a text of {len(text)} characters")
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Za-z]*)", text, re.ASCII)
    number, unit = (Fraction(found[1]), found[2]) if found else (Fraction(0), None)
    # A fraction is allowed only with a unit above bytes.
    if unit in _FACTORS and (_FACTORS[unit] > 1 or number.denominator == 1):
        return int(number * _FACTORS[unit])
    hint, power = "", 0 if not unit else "KMGT".find(unit[0].upper()) + 1
    if power and unit[1:].upper() in ("", "B", "IB"):
        hint = f", did you mean '{found[1]}{unit[0].upper()}iB'"
        decimal = number * 1000**power
        if unit[1:].upper() == "B" and decimal.denominator == 1:
            hint += f", or {decimal} in units of 1000"
        hint += "?"
    raise CacheError(
        f"{what}: expected a whole number of bytes, or a number of KiB, MiB, GiB or TiB, as 4096, 64KiB or "
        f"1.5GiB, found '{text}'{hint}"
    )


class Cache:
    """The cache folder, which need not exist yet.

    Raises:
        CacheError: another user may change files in the folder, the folder cannot be read or written, or
            the limit is no size. The message names the environment variable to set.
    """

    def __init__(self) -> None:
        self.root = Path(os.path.abspath(cache_directory()))
        self._limit = cache_limit()
        with _explained(self.root, "read"):
            _refuse_unsafe(self.root)

    def find(self, key: str, files: Sequence[str], is_legible: Callable[[Path], bool]) -> Path | None:
        """The folder of an entry with ``files``, the library first; None if it is absent or damaged.

        ``is_legible`` returns whether the content of files with right digests can be understood.
        """
        folder = self.root / key
        _use(folder / files[0])  # before the check, so that no process evicts the entry meanwhile
        return folder if _is_whole(folder, files) and is_legible(folder) else None

    def make(
        self, key: str, files: Sequence[str], fill: Callable[[Path], None], is_legible: Callable[[Path], bool]
    ) -> Path:
        """Makes an entry and returns its folder. ``fill`` writes the files into the folder that it is given.

        A damaged entry of that name is replaced. If another process made the entry first, that entry stays.
        """
        folder = self.root / key
        with self._writing():
            self._create()
            temporary = Path(tempfile.mkdtemp(dir=self.root, prefix=_COMPILING))
        try:
            made = temporary / "made"
            with self._writing():
                made.mkdir()
                fill(made)
                _seal(made, files)
                self._publish(made, folder, lambda: _is_whole(folder, files) and is_legible(folder))
        except CompileError as error:
            if _lacks_room(error.diagnostics, temporary):
                raise CacheError(
                    f"{error.diagnostics}\n{self.root}: cannot write the cache of compiled libraries: "
                    f"{os.strerror(errno.ENOSPC)}\n{_hint(self.root)}"
                ) from error
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._evict(folder)
        return folder

    def store(self, data: bytes) -> Path:
        """Stores a library that another rank compiled, in a file named by its digest. Returns the path."""
        digest = hashlib.sha256(data).hexdigest()[:40]
        folder = self.root / _RECEIVED
        place = folder / f"{digest}.so"

        def is_whole() -> bool:
            return _is_own_folder(folder) and (_digest(place) or "").startswith(digest)

        _use(place)
        if is_whole():
            return place
        with self._writing():
            self._create()
            if os.path.lexists(folder) and not _is_own_folder(folder):
                self._discard(folder)
            folder.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.root, prefix=_RECEIVING)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                self._publish(Path(temporary), place, is_whole)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
        self._evict(place)
        return place

    # --- changes on the disk ---

    def _create(self) -> None:
        for folder in (*reversed(self.root.parents), self.root):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_unsafe(self.root)  # another user may have made the folder first

    def _publish(self, made: Path, place: Path, is_whole: Callable[[], bool]) -> None:
        """Renames ``made`` to ``place``, unless another process has put a whole entry there."""
        with self._locked():
            while True:
                if os.path.lexists(place):
                    if is_whole():
                        return
                    self._discard(place)
                try:
                    os.rename(made, place)
                    break
                except OSError as error:
                    # Another process made the entry meanwhile, because the file system has no locks.
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR):
                        raise
            _sync(place.parent)

    def _discard(self, path: Path) -> None:
        """Renames an entry away and removes it. Processes that have its files open keep them."""
        aside = self.root / f"{_REMOVED}{uuid.uuid4().hex}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, aside)
            _remove(aside)

    def _evict(self, keep: Path) -> None:
        """Drops the least recently used entries until the rest is within the limit. Also removes temporary
        files of processes that were killed."""
        with contextlib.suppress(OSError), self._locked():
            now, total = time.time(), 0
            found: list[tuple[float, float, int, Path]] = []
            received = self.root / _RECEIVED
            for path in [*self.root.iterdir(), *(received.iterdir() if received.is_dir() else ())]:
                if path.name.startswith((_COMPILING, _RECEIVING, _REMOVED)):
                    if now - _measure(path)[0] > _LEFTOVER_SECONDS:
                        _remove(path)
                elif _ENTRY.fullmatch(path.name):
                    used, size = _measure(path)
                    total += size
                    # A clock that was ahead must not keep an entry for ever.
                    since = used if used < now + _GRACE_SECONDS else 0.0
                    found.append((since, used, size, path))
            for since, used, size, path in sorted(found):
                if total <= self._limit:
                    break
                # Measured again, because another process may have begun to use the entry meanwhile.
                if path == keep or now - since < _GRACE_SECONDS or _measure(path)[0] != used:
                    continue
                self._discard(path)
                total -= size

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lets one process at a time change entries. If the file system has no locks, or after
        ``_LOCK_SECONDS``, the process goes on without the lock. Every change is one rename, so at worst an
        entry is made twice."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.root / ".lock", flags, 0o600)
        except OSError:
            yield
            return
        try:
            limit = time.monotonic() + _LOCK_SECONDS
            while time.monotonic() < limit:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.01)
                except OSError:
                    break
            yield
        finally:
            os.close(handle)

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return _explained(self.root, "write")


# --- whom to trust ---


def _refuse_unsafe(root: Path) -> None:
    """Refuses a cache folder whose files another user could exchange: code is loaded from them."""
    user = os.geteuid()
    why = "could exchange the libraries that are loaded from it"
    for link in (root, *root.parents):
        if link.is_symlink() and not _is_trusted(owner := os.lstat(link).st_uid):
            raise CacheError(
                f"{root}: expected a cache folder that no other user leads to, found the link '{link}' of "
                f"uid {owner}, who {why}\n{_OWN_FOLDER}"
            )
    real = Path(os.path.realpath(root))
    for parent in dict.fromkeys([*real.parents, *root.parents]):
        try:
            found = os.stat(parent)
        except FileNotFoundError:
            continue  # stepc makes it, and only this user may write it then
        private = not found.st_mode & stat.S_IWGRP or _is_private(found.st_gid)
        if found.st_mode & stat.S_ISVTX or (not found.st_mode & stat.S_IWOTH and private):
            continue
        raise CacheError(
            f"{root}: expected a cache folder whose parents only their owners may write, found '{parent}' "
            f"with mode {stat.S_IMODE(found.st_mode):o}: others {why}\n{_OWN_FOLDER}"
        )
    try:
        found = os.stat(root)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise CacheError(f"{root}: expected a folder for the cache, found a file\n{_OWN_FOLDER}")
    if found.st_uid not in (user, 0):
        raise CacheError(
            f"{root}: expected a cache folder of this user (uid {user}), found one of uid {found.st_uid}, "
            f"who {why}\n{_OWN_FOLDER}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheError(
            f"{root}: expected a cache folder that only its owner may write, found mode "
            f"{stat.S_IMODE(found.st_mode):o}: others {why}\n"
            + (_OWN_FOLDER if found.st_mode & stat.S_ISVTX
               else f"{_OWN_FOLDER}, or remove this one: stepc makes it again for this user alone")
        )  # fmt: skip


_OWN_FOLDER = (
    "hint: set STEPC_CACHE to a folder that this user alone may write, as "
    f"STEPC_CACHE=/tmp/stepc-{os.geteuid()}"
)


def _is_trusted(owner: int) -> bool:
    """Whether ``owner`` is this user, root (who may change everything anyhow), or the uid by which a
    container shows users from outside."""
    return owner in (os.geteuid(), 0, 65534)


def _is_private(group: int) -> bool:
    """Whether a group has this user's name and no other members. Distributions make one for each user."""
    try:
        user, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == user and set(found.gr_mem) <= {user}


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_own_folder(path: Path) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


# --- files ---


def _digest(path: Path) -> str | None:
    """A file's SHA-256 digest. None if it is no regular file, or if other users own it or may write it."""
    try:
        # O_NONBLOCK: otherwise a pipe in the place of a file would block.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or not _is_own(found):
                return None
            identity = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
            if identity not in _digests:
                _digests[identity] = hashlib.file_digest(file, "sha256").hexdigest()
            return _digests[identity]
    except (OSError, ValueError):  # a name with a zero byte is a ValueError
        return None


def _is_whole(folder: Path, files: Sequence[str]) -> bool:
    """Whether all files of an entry are there, and have the digests that were written."""
    if not _is_own_folder(folder) or _digest(folder / _SUMS) is None:
        return False
    try:
        lines = (folder / _SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return set(files) <= sums.keys() and all(_digest(folder / name) == sums[name] for name in sums)


def _seal(folder: Path, files: Sequence[str]) -> None:
    """Writes the digests of a finished folder's files, and waits until all files are on the disk."""
    for name in files:
        if not (folder / name).is_file():
            raise CompileError(f"expected the compiler to write {name}, found none")
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            continue
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
        _sync(path)
        lines.append(f"{_digest(path)}  {path.name}\n")
    sums = folder / _SUMS
    sums.write_text("".join(lines), encoding="utf-8")
    sums.chmod(0o644)
    _sync(sums)
    folder.chmod(0o755)
    _sync(folder)


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no folders
            raise
    finally:
        os.close(handle)


def _use(path: Path) -> None:
    """Sets a file's access time to now, since many mounts do not update access times."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), os.stat(path).st_mtime_ns))


def _measure(path: Path) -> tuple[float, int]:
    """The last use of a file, or of any file of a folder, as a time, and the bytes of all. A path that is
    gone counts as used now."""
    used, size = None, 0
    files = [os.fspath(path)]
    # os.walk goes on if another process moves files meanwhile.
    for folder, folders, names in os.walk(path):
        files += [os.path.join(folder, name) for name in (*folders, *names)]
    for file in files:
        with contextlib.suppress(OSError):
            found = os.lstat(file)
            is_file = stat.S_ISREG(found.st_mode)
            used = max(used or 0.0, found.st_mtime, found.st_atime if is_file else 0.0)
            size += found.st_size if is_file else 0
    return time.time() if used is None else used, size


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _lacks_room(diagnostics: str, folder: Path) -> bool:
    """Whether the compiler failed because the disk is full. A linker that writes through mapped memory is
    killed on a full disk, and gives no reason, so a file is allocated as a test."""
    if _PLACE.search(diagnostics):  # an error in the input
        return False
    if any(os.strerror(code).lower() in diagnostics.lower() for code in (errno.ENOSPC, errno.EDQUOT)):
        return True
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM)
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return False


def _hint(root: Path) -> str:
    return (
        f"hint: compiled libraries are kept in {root}: set STEPC_CACHE to a folder that this process may "
        "write, on a disk with room"
    )


@contextlib.contextmanager
def _explained(root: Path, verb: str) -> Iterator[None]:
    """Turns an OSError into a CacheError, which names the file or folder and says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CacheError(
            f"{error.filename or root}: cannot {verb} the cache of compiled libraries: {reason}\n"
            + _hint(root)
        ) from error
