"""Machine code of products on warpgroups: what test/ptx/sass.py says of a good loop and of the same loop with faults, and of
the compiler's kernels. Their PTX is what ptx-tests runs.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ptx"))

import sass

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted((ROOT / "build" / "test" / "ptx" / "kernels").glob("*.ptx"))

LOOP = [
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR17], R4", "@!P2 BRA `(.L_x_9)", "WARPGROUP.ARRIVE", "UMOV UR23, 0x40000040",
    "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR20], R24", "UIADD3 UR20, UP0, UR18, 0x10002, URZ",
    "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR20], R24", "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR24], R24",
    "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR20], R24, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x1",
    "@!P1 SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R4+URZ], RZ", "@P2 BRA `(.L_x_1)",
]  # fmt: skip
OUTSIDE = "LDG.E.128.CONSTANT R8, desc[UR46][R6.64]"


def code(loop):
    """nvdisasm's output: a load, products, a tensor store, the loop, a loop around all of it, and a slow wait
    that goes back to where it was left.
    """
    body = [".L_x_0:", OUTSIDE, LOOP[4], "@!P3 UTMASTG.3D [UR16], [UR20]", ".L_x_1:", *loop, "@P5 BRA `(.L_x_0)", "EXIT",
            ".L_x_9:", "@!P2 BRA `(.L_x_9)", "BRA `(.L_x_1)"]  # fmt: skip
    lines, address = ["\t.section\t.text.kernel,\"ax\",@progbits", "kernel:"], 0
    for one in body:
        if one.endswith(":"):
            lines.append(one)
        else:
            lines.append(f"        /*{address:04x}*/                   {one} ;")
            address += 16
    return "\n".join(lines)


def faults(loop):
    return sass.faults(sass.functions(code(loop))["kernel"])


def test_a_good_loop():
    function = sass.functions(code(LOOP))["kernel"]
    assert sass.loops(function) == [(3, 14)]
    assert sass.faults(function) == []
    assert sass.stores_between_products(function) == 1
    assert sass.global_accesses(function) == {("LDG", 16): 1}


@pytest.mark.parametrize(
    "loop, message",
    [
        (["MEMBAR.ALL.GPU", *LOOP], "found MEMBAR"),
        (["@P1 LDG.E.CONSTANT R4, desc[UR46][R4.64]", "ERRBAR", *LOOP], "found ERRBAR, LDG"),
        (["NOP"] * 49 + LOOP, "expected at most 60 instructions in the loop at instruction 3, found 61"),
        (LOOP[:4] + LOOP[5:], "expected 4 HGMMA in the loop at instruction 3, found 3"),
        (LOOP[:5] + ["WARPGROUP.DEPBAR.LE gsb0, 0x0"] + LOOP[5:], "expected HGMMA in a row in the loop at instruction 3, found WARPGROUP"),
    ],
)  # fmt: skip
def test_faults_of_a_loop(loop, message):
    (found,) = faults(loop)
    assert message in found


def test_no_loop():
    function = sass.functions(code(["NOP"]).replace("`(.L_x_0)", "`(.L_x_9)"))["kernel"]
    assert sass.faults(function) == ["expected a loop with HGMMA, found none"]


def test_report():
    report = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 16 barriers
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
    56 bytes stack frame, 52 bytes spill stores, 100 bytes spill loads
ptxas info    : Used 240 registers, used 16 barriers, 56 bytes cumulative stack size
"""
    assert sass.usages(report) == {"first": sass.Usage(168, 0, 0, 0), "second": sass.Usage(240, 56, 52, 100)}
    assert len(sass.warnings(report)) == 1 and sass.warnings("") == []


def test_the_release_of_an_addend():
    function = sass.functions(code(LOOP))["kernel"]
    read, fence, release = "LDS R4, [R5]", "FENCE.VIEW.ASYNC.S", LOOP[-2]
    good = [*[read] * 32, fence, release]

    def found(body):
        return sass.addend_faults(sass.Function("kernel", body))

    assert sass.addend_faults(function) == [] and found(good + good) == []
    assert found([read] * 32 + [release]) == [
        "expected 32 reads and a fence before the release at instruction 32, found 32 and no fence"
    ]
    assert "found 31 and a fence" in found([*good[1:], fence, release])[0]
    assert found([*good, read]) == ["expected a release behind the last 1 reads, found none"]


# Kernels of f16 differ from those of bf16 in their products' type alone.
@pytest.mark.parametrize(
    "ptx", [pytest.param(path, id=path.stem, marks=pytest.mark.tier("all" if "_f16" in path.stem else "land")) for path in KERNELS]
)
def test_a_kernel(ptx, tmp_path):
    """No spills, no stack, no serialized products. Each loop over k has its four products in a row, and the results of a tile
    are stored between products of the next.
    """
    if not (sass.TOOLS / "ptxas").is_file() or not (sass.TOOLS / "nvdisasm").is_file():
        pytest.skip("ptxas or nvdisasm is not installed: pip install --no-deps -r frontends/python/requirements-gpu.txt")
    report = sass.assemble(ptx, tmp_path / "kernel.cubin")
    assert sass.warnings(report) == []
    assert sass.usages(report) == {ptx.stem: sass.Usage(registers=168, stack=0, spilled_stores=0, spilled_loads=0)}
    function = sass.disassemble(tmp_path / "kernel.cubin")[ptx.stem]
    # All accesses of the GPU's memory stand behind the wait for the kernels before.
    codes = function.opcodes()
    assert codes.count("ACQBULK") == 1 and codes.count("PREEXIT") == 1
    before = set(codes[: codes.index("ACQBULK")])
    assert not before & {"LDG", "STG", "LD", "ST", "UTMALDG", "UTMASTG", "UTMAPF", "UTMACCTL"}, before
    is_bounded = ptx.stem.endswith("_bounded")
    # Product kernels have no instruction of a bounded wait: no trap, no clock, no store of a thread.
    assert ("BPT" in function.opcodes()) == is_bounded
    if is_bounded:
        return
    assert sass.faults(function) == [] and sass.addend_faults(function) == []
    assert len(sass.loops(function)) == 2, "of whole tiles and of half ones"
    # Results of f32 are stored before the next tile. The others are stored beside it: four chunks of 64 columns, for both
    # widths of the tile that is multiplied.
    if "_to_f32" not in ptx.stem:
        copies = 2 if "symmetric" in ptx.stem else 1
        assert sass.stores_between_products(function) == 2 * 4 * copies
    # Threads read a list's bounds, tiles' entries and factors. All matrices move by tensor copies.
    assert {opcode for opcode, _ in sass.global_accesses(function)} == {"LDG"}
    # A list's bounds are the first access, and one of 16 bytes. The first tile's entry follows.
    loads = [one.split()[0] for one in function.instructions if sass.opcode(one) == "LDG"]
    assert all(one.startswith("LDG.E.128") for one in loads[:2]), loads


@pytest.mark.tier("land")
def test_kernels_are_there():
    if not (ROOT / "build" / "bin" / "unit" / "ptx-tests").is_file():
        pytest.skip("ptx-tests was not built")
    assert len(KERNELS) >= 19
