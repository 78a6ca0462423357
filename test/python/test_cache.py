"""The cache of compiled libraries: damage is found and mended, other users are kept out, old entries go."""

import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from models import SPEC, Model, make, set_gradients

import stepc
from stepc import _cache
from stepc._cache import Cache, cache_limit
from stepc.torch import export_manifest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder of libraries, so that the fake compiler makes each once for all of these tests."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def own(kept, monkeypatch, tmp_path):
    """A cache of its own, and a compiler that counts its compilations in a file."""
    program = tmp_path / "stepc"
    program.write_text(f"""#!/bin/sh
fake="{HERE}/fake_library/fake_stepc.py"
[ "$1" = compile ] || exec "$fake" "$@"
echo >> "{tmp_path}/compilations"
out="$6"
key=$(cat "$2" "$4" | sha256sum | cut -c1-16)
if [ ! -d "{kept}/$key" ]; then
  "$fake" "$@" 2> "$out/told" || {{ cat "$out/told" >&2; exit 1; }}
  cp -r "$out" "{kept}/$key.$$" && mv -T "{kept}/$key.$$" "{kept}/$key" 2> /dev/null
fi
cp "{kept}/$key/libstep.so" "{kept}/$key/fake_plan.h" "$out" && sed "s|^[^:]*optim|$2|" "{kept}/$key/told" >&2
""")
    program.chmod(0o755)
    monkeypatch.setenv("STEPC", str(program))
    monkeypatch.setenv("STEPC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compilations(own):
    path = own.parent / "compilations"
    return len(path.read_text()) if path.exists() else 0


def manifest(rows=4):
    axes = [{"name": "world", "size": 1}]
    return {"version": 1, "meshes": [{"name": "world", "axes": axes, "ranks": [0]}],
            "parameters": [{"name": "w", "shape": [rows, 3], "dtype": "f32", "grad_dtype": "f32",
                            "mesh": "world", "placements": ["R"]}]}  # fmt: skip


def build(rows=4, spec=SPEC):
    made = stepc.compile(spec, manifest(rows))
    assert stepc.Library(made).parameters[0].name == "w"
    return made.library


def age(path, seconds):
    """As if nothing of it had been used for so long."""
    then = time.time() - seconds
    for one in [*path.rglob("*"), path] if path.is_dir() else [path]:
        os.utime(one, (then, then))


def half(path):
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[: len(data) // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # what is mapped stays whole
    path.write_bytes(data)


def empty(path):
    path.unlink()
    path.touch()


def folder(path):
    path.unlink()
    path.mkdir()


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def link(path):
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def loose(path):
    path.chmod(0o775)


def broken(path):
    path.write_text("{")


def resealed(text):
    """Another text under a digest that is right."""
    def change(path):
        path.write_text(text)
        sums = path.parent / "SHA256SUMS"
        done = subprocess.run("sha256sum $(ls | grep -v SUMS)", shell=True, cwd=path.parent, capture_output=True, check=True)
        sums.write_bytes(done.stdout)

    return change


def zero_in_a_name(path):
    path.write_bytes(path.read_bytes() + b"0123  na\0me\n")


def gone(path):
    path.unlink()


DAMAGE = [
    *((damage, "libstep.so") for damage in (half, flip, empty, folder, pipe, link, loose, gone)),
    *((damage, "warnings.json") for damage in (half, flip, empty, folder, pipe, broken, gone)),
    *((resealed(text), "warnings.json") for text in ("{", "null", "[1]", "[" * 10**5)), (zero_in_a_name, "SHA256SUMS"),
    *((damage, "fake_plan.h") for damage in (flip, gone)),
    *((damage, "SHA256SUMS") for damage in (half, flip, empty, folder, pipe, loose, gone)),
    (shutil.rmtree, ""), (lambda entry: (shutil.rmtree(entry), entry.write_text("")), ""), (loose, ""),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "name"), DAMAGE)
def test_a_damaged_entry_is_compiled_again(own, recwarn, damage, name):
    warnings.simplefilter("always")
    entry = build(spec="warn {}").parent
    build(spec="warn {}")
    assert compilations(own) == 1
    damage(entry / name)
    for _ in range(2):
        assert build(spec="warn {}").parent == entry
        assert compilations(own) == 2
    assert len([one for one in recwarn if issubclass(one.category, stepc.CompileWarning)]) == 4
    assert [one.name for one in own.iterdir() if one.name.startswith(_cache._REMOVED)] == []
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=entry, capture_output=True)
    assert done.returncode == 0, done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_entry_of_another_owner_is_compiled_again(own):
    library = build()
    for path in (library, library.parent, library.parent / "SHA256SUMS"):
        before = compilations(own)
        os.chown(path, 4321, -1)
        build()
        assert compilations(own) == before + 1 and library.stat().st_uid == 0


@pytest.mark.parametrize("damage", [half, flip, empty, folder, pipe, loose, gone])
def test_a_received_library_is_compared_with_its_name(own, damage):
    data = build().read_bytes()
    path = Cache().store(data)
    inode = path.stat().st_ino
    assert Cache().store(data) == path and path.stat().st_ino == inode
    damage(path)
    assert Cache().store(data) == path and path.read_bytes() == data
    assert stepc.Library(path).parameters[0].name == "w"
    # The folder itself, too.
    damaged = path.parent
    damaged.chmod(0o777)
    path.unlink()
    assert Cache().store(data) == path and stat.S_IMODE(damaged.stat().st_mode) == 0o700
    shutil.rmtree(damaged)
    damaged.write_text("")
    assert Cache().store(data) == path and path.read_bytes() == data


def test_files_are_on_the_disk_before_they_get_their_names(own, monkeypatch):
    done = []

    def sync(handle):
        done.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))

    def rename(source, target, original=os.rename):
        done.append(("rename", str(target)))
        original(source, target)

    monkeypatch.setattr(_cache.os, "fsync", sync)
    monkeypatch.setattr(_cache.os, "rename", rename)
    entry = build().parent
    at = done.index(("rename", str(entry)))
    synced = {Path(path).name for what, path in done[:at] if what == "sync"}
    assert synced >= {one.name for one in entry.iterdir()} | {"made"}
    assert ("sync", str(own)) in done[at:]
    done.clear()
    path = Cache().store(b"library")
    assert [what for what, _ in done] == ["sync", "rename", "sync"]
    assert done[1:] == [("rename", str(path)), ("sync", str(path.parent))]


def test_a_process_keeps_a_library_that_is_replaced_and_evicted(own, monkeypatch):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)
    optimizer.step()
    held = Path(optimizer.library.path)
    (held.parent / "warnings.json").write_text("{")
    make(model).prepare()  # replaces the entry
    assert held.exists()
    optimizer.step()
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "1")
    age(held.parent, 3600)
    build()
    assert not held.exists()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"] == 3


# Without torch, which takes seconds to import.
OTHER_PROCESS = """
import json, sys, stepc
try:
    for manifest in json.loads(sys.argv[2]):
        stepc.Library(stepc.compile(sys.argv[1], manifest))
except stepc.CacheError as error:
    print(error)
"""


def other_process(*sizes):
    """The command of a process that builds these in turn."""
    return [sys.executable, "-c", OTHER_PROCESS, SPEC, json.dumps([manifest(rows) for rows in sizes])]


def test_processes_mend_and_evict_at_once(own, monkeypatch):
    """Each of them always opens a whole library."""
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "1")
    libraries = [build(4), build(5)]
    for damage in (half, gone, lambda path: shutil.rmtree(path.parent)):
        old = []
        for number in range(20):
            old.append(own / f"{number:040x}")
            shutil.copytree(libraries[0].parent, old[-1])
            age(old[-1], 10000 + number)
        for library in libraries:
            damage(library)
        running = [subprocess.Popen(other_process(4, 5, 4, 5), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True) for _ in range(4)]  # fmt: skip
        for process in running:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0 and out == "", out + err
        assert not any(path.exists() for path in old)
    assert {one.name for one in own.iterdir()} == {".lock", *(library.parent.name for library in libraries)}


# --- whom it belongs to ---


def refused(*texts):
    with pytest.raises(stepc.CacheError) as failed:
        build()
    for text in ("STEPC_CACHE", *texts):
        assert text in str(failed.value), str(failed.value)
    return str(failed.value)


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_refused(own, mode):
    library = build()
    own.chmod(mode)
    refused(f"{own}: expected a cache folder that only its owner may write, found mode {mode:o}")
    with pytest.raises(stepc.CacheError):
        Cache().store(library.read_bytes())
    own.chmod(0o755)
    build()
    assert compilations(own) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_folder_of_another_owner_is_refused(own, monkeypatch, tmp_path):
    build()
    os.chown(own, 4321, -1)
    refused(f"{own}: expected a cache folder of this user (uid 0), found one of uid 4321")
    os.chown(own, 0, -1)
    link = tmp_path / "link"
    link.symlink_to(own)
    os.chown(link, 4321, -1, follow_symlinks=False)
    monkeypatch.setenv("STEPC_CACHE", str(link))
    refused(f"found the link '{link}' of uid 4321")


def test_parents_that_others_may_write_are_refused(own, tmp_path, monkeypatch):
    parent = tmp_path / "parent"
    parent.mkdir()
    monkeypatch.setenv("STEPC_CACHE", str(parent / "cache"))
    build()
    parent.chmod(0o777)
    refused(f"found '{parent}' with mode 777")
    # Also where a link leads there, and where the folder is not there yet.
    link = tmp_path / "link"
    link.symlink_to(parent / "cache")
    monkeypatch.setenv("STEPC_CACHE", str(link))
    refused(f"found '{parent}' with mode 777")
    monkeypatch.setenv("STEPC_CACHE", str(parent / "other" / "cache"))
    refused(f"found '{parent}' with mode 777")
    assert not (parent / "other").exists()
    # With the sticky bit, as /tmp has it, nobody may exchange what is another's.
    parent.chmod(0o1777)
    build()
    monkeypatch.setenv("STEPC_CACHE", str(link))
    build()


def test_a_group_of_one_user_is_no_other_user(own, tmp_path, monkeypatch):
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o775)
    monkeypatch.setenv("STEPC_CACHE", str(parent / "cache"))
    monkeypatch.setattr(_cache, "_is_private", lambda group: True)
    build()
    monkeypatch.setattr(_cache, "_is_private", lambda group: False)
    refused(f"found '{parent}' with mode 775")


def test_folders_are_made_for_this_user_alone(own, monkeypatch):
    monkeypatch.setenv("STEPC_CACHE", str(own / "one" / "two"))
    before = os.umask(0)
    try:
        library = build()
        build()
    finally:
        os.umask(before)
    for path in (own, own / "one", own / "one" / "two"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not library.stat().st_mode & 0o022 and not library.parent.stat().st_mode & 0o022
    assert compilations(own) == 1


# --- where it cannot be ---


def test_what_is_no_folder_is_one_error(own, monkeypatch, tmp_path):
    own.write_text("")
    refused(f"{own}: expected a folder for the cache, found a file")
    monkeypatch.setenv("STEPC_CACHE", str(own / "below"))
    refused(str(own), "Not a directory")
    nowhere = tmp_path / "link"
    nowhere.symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("STEPC_CACHE", str(nowhere))
    refused(str(nowhere), "File exists")
    monkeypatch.setenv("STEPC_CACHE", "/proc/nowhere")
    refused("/proc/nowhere: cannot write the cache of compiled libraries: ")


def test_no_home_is_one_error(own, monkeypatch):
    monkeypatch.delenv("STEPC_CACHE")
    monkeypatch.delenv("HOME", raising=False)

    def nobody(user):
        raise KeyError(user)

    import pwd

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    refused("expected a home folder for the cache of compiled libraries, found none")


# Where a process may mount what others do not see.
INSIDE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


@pytest.mark.parametrize("kind", ["full", "read-only", "read-only with the library"])
def test_a_disk_that_cannot_be_written_is_one_error(own, kind, tmp_path):
    own.mkdir(mode=0o700)
    size = "200k" if kind == "full" else "10m"
    steps = [f"mount -t tmpfs -o mode=700,size={size} cache {own}"]
    run = shlex.join(other_process(4))
    if kind == "full":
        steps.append(f"head -c 190k /dev/zero > {own}/other")
    if kind == "read-only with the library":
        steps.append(run)
    if kind != "full":
        steps.append(f"mount -o remount,ro {own}")
    if subprocess.run([*INSIDE, "mount", "-t", "tmpfs", "x", str(own)], capture_output=True).returncode:
        pytest.skip("this process may not mount")
    done = subprocess.run([*INSIDE, "sh", "-ec", "\n".join([*steps, run])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if kind == "read-only with the library":
        assert done.stdout == ""  # it is only read
        return
    assert ("No space left on device" if kind == "full" else "Read-only file system") in done.stdout, done
    assert "STEPC_CACHE" in done.stdout and str(own) in done.stdout


def test_a_disk_that_a_linker_fills_is_one_error(own, real):
    """A linker that writes through mapped memory is killed by a full disk, and says nothing of it."""
    own.mkdir(mode=0o700)
    if subprocess.run([*INSIDE, "mount", "-t", "tmpfs", "x", str(own)], capture_output=True).returncode:
        pytest.skip("this process may not mount")
    command = other_process(4)
    rule = "optimizer Sgd(lr) { param = param - lr * grad }"
    command[command.index(SPEC)] = rule + "\nroute { Sgd(lr = 1) for rest }"
    script = f"mount -t tmpfs -o mode=700,size=600k cache {own}; exec {shlex.join(command)}"
    done = subprocess.run([*INSIDE, "sh", "-ec", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{own}: cannot write the cache of compiled libraries: No space left on device" in done.stdout
    assert "STEPC_CACHE" in done.stdout
    # An error of the input stays one.
    wrong = shlex.join(command).replace("rest", "nothing")
    script = f"mount -t tmpfs -o mode=700,size=600k cache {own}; exec {wrong}"
    done = subprocess.run([*INSIDE, "sh", "-ec", script], capture_output=True, text=True)
    assert done.returncode == 1 and "stepc.errors.CompileError: <specification>:2:" in done.stderr, done


@pytest.mark.parametrize("kind", ["a file", "under a file", "read-only", "full", "a folder in its place", "a zero byte"])
def test_an_output_that_cannot_be_written_is_one_error(own, kind, tmp_path, monkeypatch):
    output = tmp_path / "new" / "out"
    place, reason = output, "expected a folder, found a file"
    if kind == "a file":
        output = place = tmp_path / "file"
        output.write_text("kept")
    elif kind == "under a file":
        (tmp_path / "new").write_text("kept")
        reason = "Not a directory"
    elif kind == "a zero byte":
        output, place, reason = tmp_path / "a\0b", tmp_path / "a\\0b", "embedded null byte"
    elif kind == "a folder in its place":
        (output / "libstep.so").mkdir(parents=True)
        place, reason = output / "libstep.so", "Is a directory"
    else:
        place = output / "libstep.so"
        code = errno.ENOSPC if kind == "full" else errno.EROFS
        function = "shutil.copyfile" if kind == "full" else "tempfile.mkstemp"
        reason, original = os.strerror(code), tempfile.mkstemp

        def fail(*arguments, **options):
            if kind == "full":
                Path(arguments[1]).write_bytes(b"half")
            elif options["dir"] != output:
                return original(*arguments, **options)
            raise OSError(code, reason)

        monkeypatch.setattr(function, fail)
    before = sorted(tmp_path.rglob("new*/**/*"))
    with pytest.raises(stepc.CompileError) as raised:
        stepc.compile(SPEC, manifest(), output=output)
    assert str(raised.value).splitlines()[0] == f"{place}: cannot write the compiled library: {reason}"
    assert sorted(tmp_path.rglob("new*/**/*")) == before and not (kind == "full" and output.parent.exists())


# --- what goes ---


@pytest.mark.parametrize(("text", "size"), [
    ("", 2 * 2**30), ("0", 0), ("12345", 12345), ("2GiB", 2 * 2**30), ("1.5 GiB", 3 * 2**29), ("64KiB", 2**16),
    ("0.5MiB", 2**19), ("1TiB", 2**40), ("77 B", 77),
])  # fmt: skip
def test_limits(monkeypatch, text, size):
    monkeypatch.setenv("STEPC_CACHE_LIMIT", text)
    assert cache_limit() == size


# The compiler's --workspace-limit refuses these texts, too, with the same words.
WRONG_SIZES = {"-1": "", "many": "", "2 GiBs": "", "1e9": "", "GiB": "", "iB": "", "inf": "", "0x10": "", "1,5GiB": "",
               "1.5": "", "1.5B": "", "64k": ", did you mean '64KiB'?", "64 kib": ", did you mean '64KiB'?",
               "64MB": ", did you mean '64MiB', or 64000000 in units of 1000?",
               "1.5gb": ", did you mean '1.5GiB', or 1500000000 in units of 1000?"}  # fmt: skip


@pytest.mark.parametrize("text", WRONG_SIZES)
def test_a_limit_that_is_no_size_is_an_error(own, monkeypatch, text, quick):
    monkeypatch.setenv("STEPC_CACHE_LIMIT", text)
    expected = (
        "expected a whole number of bytes, or a number of KiB, MiB, GiB or TiB, as 4096, 64KiB or 1.5GiB, "
        f"found '{text}'{WRONG_SIZES[text]}"
    )
    refused(f"STEPC_CACHE_LIMIT: {expected}")
    if quick is None:
        pytest.skip("build/bin/stepc was not built")
    command = [quick, "compile", "x.optim", "-m", "m.json", f"--workspace-limit={text}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and f"--workspace-limit: {expected}\n" in done.stderr, done.stderr


def test_a_limit_of_more_digits_than_python_reads_is_an_error(own, monkeypatch):
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "9" * 900)
    assert cache_limit() == 10**900 - 1
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "9" * 5000)
    refused("STEPC_CACHE_LIMIT: expected a number of bytes, found a text of 5000 characters")


def test_entries_go_by_last_use(own, monkeypatch):
    entries = [build(rows).parent for rows in (4, 5, 6)]
    received = Cache().store(b"x" * 20000)
    for index, path in enumerate([*entries, received]):
        age(path, 10000 - 1000 * index)
    build(4)  # is used now
    size = sum(one.stat().st_size for one in entries[0].iterdir())
    monkeypatch.setenv("STEPC_CACHE_LIMIT", str(3 * size + 30000))
    newest = build(7).parent
    assert [path.exists() for path in (*entries, received, newest)] == [True, False, True, True, True]
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "0")
    received_now = Cache().store(b"y")
    # Nothing that was used or made a moment ago.
    assert [path.exists() for path in (*entries, received, newest)] == [True, False, False, False, True]
    assert received_now.exists()
    build(5)
    assert compilations(own) == 5


def test_others_files_stay(own, monkeypatch):
    build()
    (own / "notes").write_text("mine")
    (own / "folder").mkdir()
    for path in own.iterdir():
        age(path, 10**6)
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "0")
    build(5)
    assert (own / "notes").exists() and (own / "folder").exists()


def test_an_entry_that_is_taken_up_meanwhile_stays(own, monkeypatch):
    entry = build().parent
    age(entry, 10000)
    monkeypatch.setenv("STEPC_CACHE_LIMIT", "0")
    looks = []

    def measure(path, original=_cache._measure):
        found = original(path)
        if path == entry and not looks:
            looks.append(path)
            _cache._use(entry / "libstep.so")
        return found

    monkeypatch.setattr(_cache, "_measure", measure)
    build(5)
    assert entry.exists() and looks


def test_what_killed_processes_left_goes_after_a_while(own):
    build()
    left = []
    for name in (".compile-x", ".remove-y"):
        (own / name / "made").mkdir(parents=True)
        (own / name / "made" / "libstep.so").write_text("half")
        left.append(own / name)
    (own / ".receive-z").write_text("half")
    left.append(own / ".receive-z")
    build(5)
    assert all(path.exists() for path in left)  # another process may be at it
    for path in left:
        age(path, 2 * 24 * 3600)
    build(6)
    assert not any(path.exists() for path in left)


def test_what_moves_while_it_is_looked_at_is_no_leftover(own, monkeypatch):
    """Another process moves its finished entry out of its folder meanwhile, or its clock is ahead."""
    build()
    (own / ".compile-x" / "made").mkdir(parents=True)
    (own / ".compile-ahead").mkdir()
    age(own / ".compile-ahead", -3 * 24 * 3600)
    look = os.lstat

    def gone(path, *arguments, **options):
        if ".compile-x" in os.fspath(path):
            raise FileNotFoundError(path)
        return look(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(_cache.os, "lstat", gone)
        build(5)
    assert (own / ".compile-x" / "made").exists() and (own / ".compile-ahead").exists()


def test_a_failed_compilation_leaves_nothing(own):
    with pytest.raises(stepc.CompileError):
        build(spec="error {}")
    assert {one.name for one in own.iterdir()} <= {".lock"}


def test_the_manifest_of_a_model_compiles_once(own):
    for _ in range(2):
        stepc.compile(SPEC, export_manifest(Model().named_parameters()))
    assert compilations(own) == 1
