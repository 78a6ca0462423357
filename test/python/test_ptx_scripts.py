"""The scripts of test/ptx: what sass.py says of a good loop and of the same loop with faults, and what kernels.py takes out of a
module.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ptx"))

import kernels
import sass

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


def test_kernels_of_a_module():
    text = r'gpu.binary @k [#gpu.object<#t, assembly = ".version 8\0A.shared x;\0A.visible .entry one(\09\22\5C\22)\0A.entry two()\00">]'
    found = kernels.parted(kernels.assembly(text))
    head = ".version 8\n.shared x;\n"
    assert found == {"one": head + '.visible .entry one(\t"\\")\n', "two": head + ".entry two()"}
    lines = "# both\nentry=one shared=8\nentry=two shared=16\n"
    assert kernels.described(list(found), lines) == (
        "name=one file=one.ptx entry=one shared=8\nname=two file=two.ptx entry=two shared=16\n"
    )
    with pytest.raises(ValueError, match=r"found none of \['two'\] and others of \['three'\]"):
        kernels.described(list(found), "entry=one\nentry=three")
    with pytest.raises(ValueError, match="expected a gpu.binary with PTX"):
        kernels.assembly("")
