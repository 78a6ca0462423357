"""The GPU's kernels of the examples as PTX and as machine code, without a GPU.

PTX is read: no function is called, nothing is flushed or contracted, aligned streams move 16 bytes, and
operands of products move in vectors, or by themselves to tensor cores. Where ptxas is there (scripts/setup.sh
installs it by pip) every kernel is assembled for chips from sm_80 to sm_120: without spills and stack, and
with as many products and sums in the machine code as in the PTX.
"""

import json
import os
import re
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from compiler import ROOT, STEPC, stepc

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

TOOLS = Path(
    os.environ.get("STEPC_CUDA_BIN") or Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin"
)
CHIPS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
FIRST = ("sm_80", "sm_90a")  # are assembled for in each tier
EXAMPLES = {"muon": "four_ranks", "train_gpt": "four_ranks", "c_trainer": "c_trainer_manifest"}
# Of the largest tiles, whole and ragged, and of a smaller one; operands of train_gpt's products are f32.
LARGE = {"w": [1024, 640], "odd": [601, 513], "middle": [128, 72], "gain": [640]}
# Instructions of tensor cores, of their operands, and of copies that run by themselves: in PTX, and in
# machine code.
TENSOR = {
    r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16": "HMMA",
    r"ldmatrix\.sync": "LDSM",
    r"cp\.async\.cg": "LDGSTS",
}


# Programs whose kernels are nearly all among those of the others.
LATER = ("train_gpt", "large muon")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.tier("all" if name in LATER else "land"))
        for name in (*EXAMPLES, "large muon", "large train_gpt", "large muon,chain")
    ],
)
def ptx(request, tmp_path_factory):
    """The file with all of an example's kernels."""
    folder = tmp_path_factory.mktemp("ptx")
    example, *products = request.param.split(",")
    size, name = ["", *example.split()][-2:]
    manifest = ROOT / "examples" / f"{EXAMPLES[name]}.json"
    if size:
        mesh = {"name": "dp", "axes": [{"name": "dp", "size": 1}]}
        common = {"dtype": "f32", "mesh": "dp", "placements": ["R"]}
        manifest = folder / "large.json"
        parameters = [{"name": key, "shape": shape} | common for key, shape in LARGE.items()]
        manifest.write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": parameters}))
    stepc("compile", ROOT / "examples" / f"{name}.optim", "-m", manifest, "--emit", "exec", "-o", folder,
          "--target", ",".join(["cuda:sm_80", *products]))  # fmt: skip
    file = made_of(folder / f"{name}.mlir")
    on_tensor_cores = [name for name in entries(file) if name.endswith("_tensorcore")]
    assert bool(on_tensor_cores) == (name != "train_gpt" and not products), list(entries(file))
    return file


def made_of(program):
    """The PTX file of a program of level exec."""
    command = [STEPC.parent / "stepc-opt", program, "--exec-kernels-to-gpu", "--stepc-ptx"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (assembly,) = re.findall(r'assembly = "((?:[^"\\]|\\.)*)"', text)
    file = program.with_suffix(".ptx")
    file.write_text(re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), assembly).rstrip("\0"))
    return file


def kernels(text, begin):
    """Name → text of each kernel, whose heads `begin` matches."""
    parts = re.split(begin, text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(ptx):
    return kernels(ptx.read_text(), r"^\.visible \.entry (\w+)\(")


def test_text(ptx):
    found = entries(ptx)
    assert len(found) >= 4 and any("scalars" in name for name in found), list(found)
    assert any(name.startswith("stepc_reduce") for name in found), list(found)
    for name, text in found.items():
        assert not re.search(r"\bcall\b|\.ftz|\.approx|f32x2", text), name
        on_tensor_cores = name.endswith("_tensorcore")
        fuses = name.startswith("stepc_product") and not on_tensor_cores
        assert ("fma.rn.f32" in text) == fuses, "nothing else fuses by intention"
        assert ("mma.sync" in text) == on_tensor_cores, name
        if name.startswith("stepc_reduce"):
            assert "shfl.sync.bfly" in text and re.search(r"\bld\.global\.(b32|b16)\b", text), name
        elif name.startswith("stepc_product"):
            m, n, k, left, right = re.match(
                r"stepc_product_(\d+)x(\d+)x(\d+)_[a-z]+\d+(t?)_[a-z]+\d+(t?)_", name
            ).groups()
            whole = [int(m if left else k) % 8 == 0, int(k if right else n) % 8 == 0]
            if on_tensor_cores:
                assert (
                    "ldmatrix.sync" in text
                    and "cp.async.wait_group" in text
                    and ("cp.async.cg" in text) == any(whole)
                ), name
                continue
            assert re.search(r"\bld\.shared\.v[24]\.b32", text), name
            if all(whole):
                assert re.search(r"\bld\.global\.v[24]\.b(16|32)", text), name
        elif "scalars" not in name and name not in (
            "stepc_advance_steps",
            "stepc_seal_messages",
            "stepc_check_seals",
        ):
            assert "ld.global.v4" in text and "st.global.v4" in text, name
            assert not re.search(r"(ld|st)\.global\.(v2\.)?b64\b.*\[%rd\d+\+(4|12)\]", text), name


def tool(name):
    if not (TOOLS / name).is_file():
        pytest.skip(
            f"{name} is not installed: pip install --no-deps -r frontends/python/requirements-gpu.txt"
        )
    return TOOLS / name


def check_tensor_cores(name, text, code):
    """Nothing is taken apart, and between the operands' loads and the last product of a slab stands no
    other access.
    """
    counts = {word: len(re.findall(rf"\b{word}\b", code)) for word in TENSOR.values()}
    said = {word: len(re.findall(pattern, text)) for pattern, word in TENSOR.items()}
    times = counts["HMMA"] // said["HMMA"]  # that ptxas unrolls a short loop
    assert times > 0 and all(counts[word] == times * said[word] for word in ("HMMA", "LDSM")), (
        name,
        counts,
        said,
    )
    assert counts["LDGSTS"] >= said["LDGSTS"], (name, counts, said)
    assert not re.search(r"\b(LDL|STL)\b", code), name
    # Of a tile of 128 a warp takes 4 and 2 times 16 lines for 4 × 4 products, of one of 64 then 2 and 1 for 2
    # × 2.
    least = min(int(extent) for extent in re.match(r"stepc_product_(\d+)x(\d+)x", name).groups())
    assert counts["LDSM"] == counts["HMMA"] * (6 / 16 if least >= 512 else 3 / 4 if least >= 64 else 2), (
        name,
        counts,
    )
    for block in re.split(r"^\.L_\w+:|\bBRA\b.*$", code, flags=re.MULTILINE):
        # before copies ptxas has loads of no effect
        order = re.findall(r"(?<!@!PT )\b(HMMA|LDSM|LDG|LDS|STS|STG)\b", block)
        if "HMMA" in order:
            within = set(order[order.index("LDSM") : len(order) - order[::-1].index("HMMA")])
            assert within == {"HMMA", "LDSM"}, (name, order)


def test_clusters_are_assembled():
    """A kernel of 384 threads in clusters of two, with dynamic shared memory: for sm_90a, and not for sm_80."""
    tool("ptxas")
    for chip in FIRST:
        command = [STEPC.parent / "stepc-opt", ROOT / "test" / "lit" / "kernels" / "gpu-clusters.mlir", "--stepc-ptx",
                   f"--gpu-assemble=chip={chip}"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (chip == "sm_90a"), done.stderr
        assert ("SM version" if done.returncode else "stepc_image_sm_90a") in done.stderr + done.stdout


@pytest.mark.parametrize(
    "chip", [pytest.param(chip, marks=pytest.mark.tier("land" if chip in FIRST else "all")) for chip in CHIPS]
)
def test_machine_code(ptx, chip):
    cubin = ptx.with_suffix(f".{chip}.cubin")
    done = subprocess.run(
        [tool("ptxas"), "-v", f"-arch={chip}", ptx, "-o", cubin], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    usage = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr
    )
    assert len(usage) >= len(entries(ptx)) and set(usage) == {("0", "0", "0")}, done.stderr
    registers = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", done.stderr, flags=re.DOTALL)
    assert len(registers) == len(entries(ptx))
    for name, count in registers:
        assert int(count) <= 128 or name.startswith("stepc_product"), (
            "two blocks of 256 threads fit on a multiprocessor"
        )
    code = subprocess.run([tool("nvdisasm"), "-c", cubin], capture_output=True, text=True, check=True).stdout
    made = kernels(code, r"^\s*\.section\s+\.text\.(\w+),")
    for name, text in entries(ptx).items():
        if re.search(r"\b(div|sqrt)\.rn", text):
            continue  # sequences of their own, with fused operations inside
        if name.endswith("_tensorcore"):
            check_tensor_cores(name, text, made[name])
        said = Counter(re.findall(r"\b(mul|add|sub)\.rn\.f32", text))
        machine = Counter(re.findall(r"\b(FMUL2?|FADD2?|FFMA2?)\b", made[name]))
        products, sums = (machine[op] + 2 * machine[f"{op}2"] for op in ("FMUL", "FADD"))
        if name.startswith("stepc_product") and not name.endswith("_tensorcore"):
            fused = len(re.findall(r"\bfma\.rn\.f32", text))
            assert machine["FFMA"] + 2 * machine["FFMA2"] >= fused > 0, (name, machine)
            assert (products, sums) == (said["mul"], said["add"] + said["sub"]), (name, said, machine)
            continue
        assert machine["FFMA"] == machine["FFMA2"] == 0, (name, machine)
        if name.startswith("stepc_reduce"):  # integers, and f64 where all is exact
            assert "_combine_" in name or re.search(r"\badd\.rn\.f64", text), name
            assert not re.search(r"\bfma\.rn\.f64", text) and sums == products == 0, (name, machine)
            continue
        assert (products, sums) == (said["mul"], said["add"] + said["sub"]), (name, said, machine)


DRAWS = """optimizer Narrow(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8) {
  state m : bf16
  state v : bf16
  m = stochastic(lerp(m, grad, 1 - beta1))
  v = stochastic(lerp(v, grad * grad, 1 - beta2))
  param = stochastic(param - lr * (m / (sqrt(v) + eps)) * (0.5 + uniform()))
}
route {
  Narrow(lr = 1e-3) for rest
}
"""


@pytest.mark.parametrize("chip", FIRST)
def test_two_blocks_that_draw_share_a_multiprocessor(tmp_path, chip):
    (tmp_path / "draws.optim").write_text(DRAWS)
    one = {"name": "w", "shape": [64, 64], "dtype": "bf16", "mesh": "one", "placements": ["R"]}
    meshes = [{"name": "one", "axes": [{"name": "x", "size": 1}]}]
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": [one]}))
    stepc("compile", tmp_path / "draws.optim", "-m", tmp_path / "m.json", "--emit", "exec", "-o", tmp_path,
          "--target", f"cuda:{chip}")  # fmt: skip
    file = made_of(tmp_path / "draws.mlir")
    (kernel,) = (text for name, text in entries(file).items() if "elementwise" in name)
    # Eight aligned elements share three counters of roundings and have two of uniform(). Others have four
    # each. A counter takes 20 products.
    assert 0 < len(re.findall(r"mul\.hi\.u32", kernel)) <= 20 * (3 + 2 + 4)
    done = subprocess.run(
        [tool("ptxas"), "-v", f"-arch={chip}", file, "-o", tmp_path / "cubin"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    usage = re.search(
        r"entry function 'Narrow_elementwise_bf16'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
        r".*?Used (\d+) registers",
        done.stderr, flags=re.DOTALL,
    )  # fmt: skip
    assert usage[1] == usage[2] == "0" and int(usage[3]) <= 128, done.stderr
