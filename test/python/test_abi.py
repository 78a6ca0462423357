"""The ctypes mirrors have the layout that the compiler gives the headers."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from models import SGD

import stepc
from stepc import _abi
from stepc.nccl import NcclTransport

INCLUDE = Path(__file__).resolve().parents[2] / "runtime" / "include"
MANIFEST = {
    "version": 1,
    "meshes": [{"name": "world", "axes": [{"name": "world", "size": 1}], "ranks": [0]}],
    "parameters": [
        {"name": "w", "shape": [2, 3], "dtype": "f32", "grad_dtype": "f32", "mesh": "world",
         "placements": ["R"]},
        {"name": "b", "shape": [], "dtype": "bf16", "grad_dtype": "f32", "mesh": "world",
         "placements": ["R"]},
    ],
}  # fmt: skip


def test_sizes_and_offsets_match_the_headers(tmp_path):
    lines = []
    for name, (cls, _) in _abi.SIZES.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        for field, _ in cls._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
    source = tmp_path / "sizes.c"
    source.write_text(
        '#include "stepc/stepc.h"\n#include <stddef.h>\n#include <stdio.h>\n'
        f"int main(void) {{ {' '.join(lines)} }}\n"
    )
    program = tmp_path / "sizes"
    subprocess.run(["cc", "-I", str(INCLUDE), str(source), "-o", str(program)], check=True)
    found = [int(line) for line in subprocess.check_output([program]).split()]
    expected = []
    for cls, size in _abi.SIZES.values():
        expected.append(size)
        expected += [getattr(cls, field).offset for field, _ in cls._fields_]
    assert found == expected


def test_library_describes_itself(fake, tmp_path):
    made = stepc.compile("a master rule {}", MANIFEST, output=tmp_path / "out")
    assert made.library.parent == tmp_path / "out"
    library = stepc.Library(made)
    assert library.world_ranks == (0,)
    w, b = library.parameters
    assert (w.name, w.route, w.global_shape, w.local_shape) == ("w", "Momentum", (2, 3), None)
    assert [state.name for state in w.states] == ["m"]
    assert [state.master for state in b.states] == [True]
    assert library.routes[0].defaults == {"lr": 0.1, "momentum": 0.9}
    assert library.routes[1].defaults == {"lr": None}
    instance = stepc.Instance(library)
    assert instance.parameters[0].local_shape == (2, 3)
    with pytest.raises(stepc.UnboundError, match="rank 0: parameter 'w': it was never bound"):
        instance.step()
    with pytest.raises(stepc.ArgumentError, match="a shard of another size"):
        instance.bind_parameter(0, 64, 8)
    instance.close()
    with pytest.raises(stepc.StepcError, match="was closed"):
        instance.step()


def test_an_instance_is_of_the_librarys_kind_of_device(fake):
    """The stand-in for a library for GPUs wants a stream and an allocator, which nobody gave."""
    library = stepc.Library(stepc.compile("a gpu rule {}", MANIFEST))
    assert library.device == stepc.Device(library.device).kind != stepc.Device().kind
    for device, found in ((None, 1), (stepc.Device(), 0)):
        with pytest.raises(
            stepc.StepcError, match=f"expected device 1 with a stream and an allocator, found {found}"
        ):
            stepc.Instance(library, device=device)


def test_a_library_of_the_current_folder_needs_no_path(fake, tmp_path, monkeypatch):
    """A name without a folder means a file here, not one of the loader's folders."""
    library = stepc.compile("rule {}", MANIFEST)
    shutil.copy(library.library, tmp_path / "libmine.so")
    monkeypatch.chdir(tmp_path)
    assert stepc.Library("libmine.so").parameters


def test_libraries_that_are_none_or_old_are_refused(fake, tmp_path):
    with pytest.raises(stepc.StepcError, match="cannot open the library"):
        stepc.Library(tmp_path / "nothing.so")
    source = tmp_path / "empty.c"
    source.write_text("int empty;\n")
    subprocess.run(["cc", "-shared", source, "-o", tmp_path / "empty.so"], check=True)
    with pytest.raises(stepc.AbiError, match="expected the symbol stepc_library_table"):
        stepc.Library(tmp_path / "empty.so")
    with pytest.raises(stepc.AbiError, match="expected ABI version 3, found 1; compile it again"):
        stepc.Library(stepc.compile("old_abi {}", MANIFEST))


def test_compile_caches_by_content(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("STEPC_CACHE", str(tmp_path / "cache"))
    spec = tmp_path / "sgd.optim"
    spec.write_text("rule {}\n")
    first = stepc.compile(spec, MANIFEST)
    assert first.library.name == "libsgd.so"
    changed = first.library.stat().st_mtime_ns
    assert stepc.compile(spec, MANIFEST).library.stat().st_mtime_ns == changed
    spec.write_text("rule { }\n")
    assert stepc.compile(spec, MANIFEST) != first
    other = stepc.compile(spec, MANIFEST, target="cpu:znver3")
    assert other.library.parent not in (first.library.parent,)
    assert not list((tmp_path / "cache").glob(".compile-*"))


def test_diagnostics_come_verbatim(fake, tmp_path):
    spec = tmp_path / "bad.optim"
    spec.write_text("error\n")
    with pytest.raises(stepc.CompileError) as raised:
        stepc.compile(spec, MANIFEST)
    assert str(raised.value) == f"{spec}:1:1: error: expected a rule, found 'error'"
    assert raised.value.exit_code == 1
    for function in (stepc.compile, stepc.check):
        with pytest.raises(stepc.CompileError, match="^<specification>:1:1: error: expected a rule"):
            function("error {}", MANIFEST)


def test_diagnostics_name_the_users_manifest(real, tmp_path):
    """At its own lines, and one that is no file by what it is."""
    manifest = copy.deepcopy(MANIFEST)
    manifest["parameters"][1]["placements"] = ["R", "R"]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(manifest))
    column = path.read_text().index('["R", "R"]') + 1
    for function in (stepc.compile, stepc.check, stepc.explain):
        for given, place in ((path, f"{path}:1:{column}"), (manifest, "<manifest>:37:18")):
            with pytest.raises(stepc.CompileError) as raised:
                function(SGD, given)
            text = str(raised.value)
            assert text.startswith(f"{place}: error: /parameters/1/placements: expected one")
            assert "/tmp" not in text.replace(str(path), "")
    path.write_text('{"version": 1,,}')
    with pytest.raises(stepc.CompileError, match=f"^{path}:1:15: error: expected JSON text"):
        stepc.check(SGD, path)
    path.write_bytes(b"\xff")
    with pytest.raises(stepc.CompileError, match=f"^{path}: expected a manifest in UTF-8"):
        stepc.check(SGD, path)


@pytest.mark.parametrize(("path", "shown"), [("no\udc80ne.so", r"no\udc80ne.so"), ("\ud800.so", r"\ud800.so"), ("a\0.so", r"a\0.so")])
def test_paths_that_are_no_text_are_one_error(fake, path, shown):
    with pytest.raises(stepc.StepcError, match=f"^cannot open the library '{re.escape(shown)}': "):
        stepc.Library(path)
    with pytest.raises(stepc.CompileError, match=f"^{re.escape(shown)}: "):
        stepc.compile(path, MANIFEST)


def test_a_library_whose_names_are_damaged_is_one_error(fake, tmp_path):
    """The loader quotes the bytes that it found."""
    path = stepc.compile("rule {}", MANIFEST, output=tmp_path / "out").library
    data, name = path.read_bytes(), b"\0calloc\0"
    assert name in data
    path.write_bytes(data.replace(name, b"\0call\xff\xfe\0"))
    with pytest.raises(stepc.StepcError, match=r"^cannot open the library .*call\\xff\\xfe"):
        stepc.Library(path)


def test_options_and_dicts_that_cannot_be_written_are_named(fake):
    for options in ({"target": "a\0b"}, {"arguments": ["--x\ud800"]}):
        with pytest.raises(stepc.CompileError, match="expected options in UTF-8 without zero bytes, found "):
            stepc.compile("rule {}", MANIFEST, **options)
    for call, what in ((lambda: stepc.check("rule {}", {"a": {1}}), "manifest"),
                       (lambda: stepc.compile("rule {}", MANIFEST, cluster={"a": {1}}), "cluster")):  # fmt: skip
        with pytest.raises(TypeError, match=f"{what}: expected a dict of lists, dicts, texts and numbers: "):
            call()


def test_a_library_is_shown_without_features_of_its_chip(real):
    library = stepc.Library(stepc.compile(SGD, MANIFEST, target="cpu:x86-64-v3"))
    assert repr(library) == f"Library({library.path!r}, chip='x86-64-v3', ranks=(0,))" and library.chip.startswith("x86-64-v3")


def test_a_missing_compiler_says_what_to_do(monkeypatch):
    monkeypatch.setenv("STEPC", "/nowhere/stepc")
    with pytest.raises(stepc.CompilerNotFound, match="STEPC=/nowhere/stepc"):
        stepc.compile("rule {}", MANIFEST)


def test_a_transport_of_a_table_ends_it_once():
    """Though another function stands in the table's place then, which the library calls."""
    ended = []
    end = _abi.DestroyFunction(ended.append)  # as a library's, it stays
    table = _abi.Transport(destroy=end)
    transport = NcclTransport(None, table, 0)
    transport.table.destroy(None)
    transport.close()
    assert len(ended) == 1
