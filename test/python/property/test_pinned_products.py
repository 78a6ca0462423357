"""Products by cuBLASLt at pinned algorithms, on a stand-in for it (test/devices/StubCublasLt.cpp).

One of its algorithms adds up as the kernels do, so whole programs must have the CPU's bits; another adds up
the other way round, so that a test can tell which was called. STEPC_SEED repeats a run.
"""

import json
import re
import struct
import subprocess
import sys
from collections import Counter

import pytest
from cases import STEPS, random_batch
from compiler import ROOT, CompilerFailed, run, save, stepc
from pinned import BACKWARD, FORWARD, FOUND, IN_TURNS, STUB, VERSION, compiled, entry, environment, products, takes
from test_accuracy import document, tensors
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")

SHAPES = {"wide": (40, 136), "tall": (72, 24), "square": (64, 64), "odd": (35, 61)}
SPEC = ROOT / "examples" / "muon.optim"


def manifest(ranks):
    made = document(SHAPES)
    made["meshes"][0]["axes"][0]["size"] = ranks
    return made


@pytest.fixture(scope="module")
def muon(tmp_path_factory):
    """Muon on one rank: its files, what it multiplies, and its bits by kernels alone."""
    folder = tmp_path_factory.mktemp("muon")
    save(folder / "in.safetensors", tensors(SHAPES, STEPS))
    (folder / "m.json").write_text(json.dumps(manifest(1)))
    files = [SPEC, folder / "m.json", folder / "in.safetensors"]
    all_products = products(*files[:2])
    assert any(takes(one) for one in all_products) and not all(takes(one) for one in all_products)
    expected = run(*files, folder / "cpu.safetensors", steps=STEPS)
    return files, all_products, expected


def library_of(folder, muon, algorithm, **more):
    files, all_products, _ = muon
    return compiled(folder, *files[:2], [entry(one, algorithm, **more) for one in all_products if takes(one)])


@pytest.mark.parametrize("index", range(draws(1)))
def test_random_programs_have_the_bits_of_the_cpu(tmp_path, index, capsys):
    """By an algorithm that adds up as the kernels do: operands, transposes, batches and addends are where
    they belong.
    """
    calls = 0
    for attempt in range(8):
        batch = random_batch(f"{SEED}-pinned-{index}-{attempt}", 12)
        batch.waves = 1 + index
        folder = tmp_path / str(attempt)
        folder.mkdir()
        batch.write(folder)
        files = [folder / "spec.optim", folder / "many.json", folder / "in.safetensors"]
        fitting = [one for one in products(*files[:2], *batch.options()) if takes(one)]
        if not fitting:
            continue
        library, pinned = compiled(
            folder, *files[:2], [entry(one, FORWARD) for one in fitting], *batch.options()
        )
        assert pinned > 0
        expected = run(*files, folder / "cpu.safetensors", *batch.options(), steps=STEPS)
        for streams in ({}, {"STEPC_STUB_ASYNC": index + 1}):
            log = folder / f"log{len(streams)}"
            found = run(*files, folder / "gpu.safetensors", "--library", library, steps=STEPS, STEPC_STUB_LOG=log, **FOUND, **streams)
            wrong = differences(found, expected)
            assert not wrong, f"STEPC_SEED={SEED}, batch {index}.{attempt}, {streams}:\n" + "\n".join(wrong)
            calls += log.read_text().split().count("cublasLtMatmul")
        if calls:
            break
    assert calls > 0
    with capsys.disabled():
        print(f"\n  STEPC_SEED={SEED}, batch {index}: {calls} products by the library", end="")


def test_bits_are_the_algorithms_on_any_ranks(tmp_path, muon):
    files, all_products, kernels = muon
    library, pinned = library_of(
        tmp_path / "one", muon, BACKWARD, more=", custom_option = 2, workspace = 512"
    )
    assert pinned > 0
    expected = run(*files, tmp_path / "one.safetensors", "--library", library, steps=STEPS, **FOUND)
    assert differences(expected, kernels), "the algorithm adds up in another order than the kernels"
    for name, options in {"owner": ["--waves", 2], "gather": ["--strategy", "*=gather"]}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "m.json").write_text(json.dumps(manifest(2)))
        entries = [entry(one, BACKWARD, more=", custom_option = 2, workspace = 512") for one in all_products if takes(one)]
        library, _ = compiled(folder, SPEC, folder / "m.json", entries, *options)
        found = run(SPEC, folder / "m.json", files[2], tmp_path / "out.safetensors", "--library", library, steps=STEPS, **FOUND)
        wrong = differences(found, expected)
        assert not wrong, f"{name}:\n" + "\n".join(wrong)


def test_kernels_stand_where_no_entry_fits(tmp_path, muon):
    files, _, kernels = muon
    others = [{"version": 130100}, {"chip": 80, "multiprocessors": 64}]
    for number, other in enumerate(others):
        library, pinned = library_of(tmp_path / str(number), muon, BACKWARD, **other)
        assert pinned > 0
        found = run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, **FOUND)
        assert not differences(found, kernels), other
    library, _ = library_of(tmp_path / "right", muon, BACKWARD)
    assert differences(
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, **FOUND), kernels
    )
    # Another version than the entries', another chip, and no library at all.
    for variables in (FOUND | {"STEPC_STUB_CUBLASLT_VERSION": 130001}, FOUND | {"STEPC_STUB_CHIP": 86}, {}):
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        found = run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, STEPC_STUB_LOG=log, **variables)
        assert not differences(found, kernels), variables
        assert "cublasLtMatmul" not in log.read_text()


def two_ranks(folder, muon):
    files, all_products, _ = muon
    folder.mkdir()
    (folder / "m.json").write_text(json.dumps(manifest(2)))
    library, _ = compiled(folder, SPEC, folder / "m.json", [entry(one) for one in all_products if takes(one)])
    return [SPEC, folder / "m.json", files[2]], library


def test_ranks_with_other_libraries_are_refused(tmp_path, muon):
    files, library = two_ranks(tmp_path / "two", muon)
    with pytest.raises(CompilerFailed) as failed:
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, STEPC_STUB_CUBLASLT_VERSION=f"{VERSION},130100",
            **FOUND)  # fmt: skip
    text = str(failed.value)
    found = [rf"rank {rank} has cuBLASLt 13\.\d\.\d on sm_80 of 108 multiprocessors.*" for rank in (0, 1)]
    message = rf"expected the same algorithms of products on all ranks, found {found[0]}, and {found[1]}: results would depend on the rank"
    assert re.search(message, text), text
    assert "cuBLASLt 13.0.2" in text and "cuBLASLt 13.1.0" in text
    # Both have nothing for it: they agree.
    run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, STEPC_STUB_CUBLASLT_VERSION="130001,130100", **FOUND)


FAULTS = [
    ("cublasLtCreate:0", "opening cuBLASLt 13.0.2 failed: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatrixLayoutCreate:1", "a product of .* by algorithm 8 of cuBLASLt 13.0.2 is refused: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmulDescCreate:0", "is refused: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmulAlgoInit:0", "is refused: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmulAlgoConfigSetAttribute:3", "is refused: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmulAlgoCheck:0", "is refused: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmul:0", "a product of .* by algorithm 8 of cuBLASLt 13.0.2 failed: CUBLAS_STATUS_INTERNAL_ERROR"),
    ("cublasLtMatmul:%d", "rank 0: step .*: a product of .* failed: CUBLAS_STATUS_INTERNAL_ERROR|failed: CUBLAS_STATUS_INTERNAL_ERROR"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=[fault for fault, message in FAULTS])
def test_what_the_library_refuses_is_an_error(tmp_path, muon, fault, message):
    files, _, _ = muon
    library, pinned = library_of(tmp_path / "gpu", muon, BACKWARD)
    # At create each product is made once; the next is of the first step.
    fault = fault % pinned if "%" in fault else fault
    with pytest.raises(CompilerFailed) as failed:
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, STEPC_STUB_FAILS=fault, **FOUND)
    assert re.search(message, str(failed.value)), failed.value
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"algorithm": 6}, "by algorithm 6 of cuBLASLt 13.0.2 is refused: CUBLAS_STATUS_NOT_SUPPORTED"),
        ({"tile": 21}, "is refused: CUBLAS_STATUS_NOT_SUPPORTED"),
        (
            {"more": ", custom_option = 2, workspace = 256"},
            "to need at most 256 bytes of workspace, found 512",
        ),
    ],
)
def test_an_algorithm_that_does_not_stand_fails_create(tmp_path, muon, more, message):
    files, _, _ = muon
    library, _ = library_of(tmp_path / "gpu", muon, **{"algorithm": BACKWARD} | more)
    with pytest.raises(CompilerFailed, match=message):
        run(*files, tmp_path / "out.safetensors", "--library", library, steps=STEPS, **FOUND)


SCRIPT = """
import hashlib, sys
sys.path[:0] = {path!r}
from bound import *
made = Bound(Library({library!r}), graph={graph})
found = traced(made, {steps})
executed, planned = made.instance.counters()
assert executed == planned and executed["launches"] > 0, (executed, planned)
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""


def test_replays_of_a_graph_are_the_same_steps(tmp_path, muon):
    files, _, _ = muon
    library, pinned = library_of(tmp_path / "gpu", muon, BACKWARD)
    found, calls = {}, {}
    for graph in (False, True):
        for streams in ({}, {"STEPC_STUB_ASYNC": 3}):
            for steps in (2, 4):
                log = tmp_path / "log"
                log.unlink(missing_ok=True)
                script = SCRIPT.format(path=sys.path, library=str(library), graph=graph, steps=steps)
                done = subprocess.run([sys.executable, "-c", script], env=environment(STEPC_STUB_LOG=log, **FOUND, **streams),
                                      capture_output=True, text=True, check=False)  # fmt: skip
                assert done.returncode == 0, done.stderr
                found.setdefault(steps, set()).add(done.stdout)
                calls[graph, steps] = Counter(log.read_text().split())["cublasLtMatmul"]
    assert all(len(one) == 1 for one in found.values()), found
    # One each at create, and of steps; a graph holds them from create on.
    assert calls[False, 2] == 3 * pinned and calls[False, 4] == 5 * pinned, calls
    assert calls[True, 2] == calls[True, 4] == 2 * pinned, calls


def test_a_trainers_graph_holds_them(tmp_path, muon):
    """In a process of its own, whose trainer captures its stream."""
    library, _ = library_of(tmp_path / "gpu", muon, BACKWARD)
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from bound import *
from stepc._device import Device
from stub_driver import StubDriver
driver = StubDriver()
expected = traced(Bound(Library({str(library)!r})), 1)
stream = driver.stream()
bound = Bound(Library({str(library)!r}), DEVICE, device=Device(stream=stream))
bound.new_gradients()
for name in bound.names:
    bound.hyperparameter(name, "lr", 0.02)
graph = driver.capture(stream, lambda: bound.instance.enqueue())
bound.instance.refresh()
driver.replay(graph, stream)
assert [bound.everything()] == expected
driver.call("cuGraphExecDestroy", graph)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(**FOUND), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.tier("all")
def test_the_benchmark_makes_a_table_that_compiles(tmp_path, muon):
    """pin_products.py asks heuristics, and refuses split-K and an algorithm whose bits depend on the
    place in a batch.
    """
    files, all_products, _ = muon
    library, _ = library_of(tmp_path / "gpu", muon, FORWARD)
    command = [sys.executable, ROOT / "benchmarks" / "pin_products.py", library.with_name("muon.json"), "--any-speed",
               "-o", tmp_path / "t.json", "--rounds", "1", "--blocks", "2", "--most-workspace", "4096"]  # fmt: skip
    done = subprocess.run(
        list(map(str, command)), env=environment(**FOUND), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "t.json").read_text())
    assert table["format"] == "stepc-products" and len(table["entries"]) == sum(map(takes, all_products)), (
        done.stdout
    )
    for one in table["entries"]:
        assert (one["cublaslt"], one["chip"], one["multiprocessors"], one["split_k"]) == (VERSION, "sm_80", 108, 1)
        assert one["algorithm"] in (FORWARD, BACKWARD) and one["workspace"] == (
            512 if one["algorithm"] == BACKWARD else 0
        )
    # The check of test/gpu asks for the entries again, and finds one that is wrong.
    script = f"""
import json, re, sys
sys.path[:0] = [{str(ROOT / "test" / "gpu")!r}, {str(ROOT / "benchmarks")!r}]
from checks.machine import Failed
from checks.pinned import verify
for entry in json.load(open({str(tmp_path / "t.json")!r}))["entries"]:
    verify(entry)
try:
    verify(entry | {{"algorithm": {IN_TURNS}}})
except Failed as failed:
    assert re.search("expected the same bits alone and at place [13] of 5", str(failed)), failed
else:
    sys.exit("expected a failure, found none")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(**FOUND), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = stepc("explain", SPEC, "-m", files[1], "--target", "cuda:sm_80", "--products", tmp_path / "t.json")
    assert text.count("13.0.2 on sm_80 of 108 multiprocessors, algorithm ") == len(table["entries"]), text


def test_a_library_opens_again(tmp_path, muon):
    """Descriptors go with their instance."""
    library, _ = library_of(tmp_path / "gpu", muon, BACKWARD)
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from bound import *
first = traced(Bound(Library({str(library)!r})), 2)
assert traced(Bound(Library({str(library)!r})), 2) == first
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(**FOUND), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def parameters(code, kernel):
    """How many parameters a kernel has by a cubin: records of the kind KPARAM_INFO in its section .nv.info."""
    sections = struct.unpack_from("<Q", code, 40)[0]
    size, count, names = struct.unpack_from("<HHH", code, 58)
    headers = [struct.unpack_from("<II16xQQ", code, sections + i * size) for i in range(count)]

    def name(header):
        at = headers[names][2] + header[0]
        return code[at : code.index(b"\0", at)].decode()

    ((_, _, at, length),) = (one for one in headers if name(one) == f".nv.info.{kernel}")
    end, found = at + length, 0
    while at < end:
        form, kind, value = struct.unpack_from("<BBH", code, at)
        found += kind == 0x17
        at += 4 + (value if form == 4 else 0)  # form 4: so many bytes follow
    return found


def test_kernels_are_found_in_a_library(tmp_path, muon):
    """What pin_products.py compares algorithms with: machine code of each chip, and in it the kernels
    that the JSON names.
    """
    files, _, _ = muon
    stepc("compile", *files[:1], "-m", files[1], "--target", "cuda:sm_80,sm_90", "-o", tmp_path)
    sys.path.append(str(ROOT / "benchmarks"))  # behind: its models.py is another one
    from pin_products import add_products, arguments_of_kernel, images

    found, codes = {}, list(images(tmp_path / "libmuon.so"))
    add_products(json.loads((tmp_path / "muon.json").read_text()), found)
    assert len(codes) == 2 and len(found) == sum(map(takes, products(*files[:2])))
    for product, kernels in found.values():
        assert len(kernels) == 1 and kernels[0]["items_per_block"] >= 1
        arguments = arguments_of_kernel(product, 0, [0] * len(product.types()))
        assert [parameters(code, kernels[0]["kernel"]) for code in codes] == [len(arguments)] * 2


@pytest.mark.tier("all")
def test_another_table_is_another_library_of_the_cache(tmp_path, muon, monkeypatch):
    """Python's cache of libraries is asked by what the table says, and not by its path."""
    import stepc as package

    files, _, _ = muon
    monkeypatch.setenv("STEPC_CACHE", str(tmp_path / "cache"))
    table, found = tmp_path / "t.json", []
    text = (ROOT / "test" / "lit" / "driver" / "Inputs" / "products.json").read_text()
    for entries in (
        [],
        [json.loads(text)["entries"][0] | {"chip": "sm_80", "m": 72, "n": 24, "k": 24, "leading": [24] * 4}],
    ):
        table.write_text(json.dumps({"format": "stepc-products", "version": 1, "entries": entries}))
        for arguments in (["--products", str(table)], [f"--products={table}"]):
            made = package.compile(
                SPEC, files[1], target="cuda:sm_80", arguments=arguments, if_present=["*embed*", "lm_head*"]
            )
            found.append("\"pinned\"" in made.plan.read_text())
    assert found == [False, False, True, True]
