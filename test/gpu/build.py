"""Builds in one folder what the checks need where a GPU is: libraries, the Python package and the checks.

.venv/bin/python test/gpu/build.py [--dry] [--small] [--only CASES] OUT
"""

import argparse
import concurrent.futures
import fnmatch
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from libraries import HERE, ROOT, all_cases, orthogonalized

STEPC = Path(os.environ.get("STEPC") or ROOT / "build" / "bin" / "stepc")
CHIPS = "sm_80,sm_90a"  # each library has a step for both, and takes the GPU's
# Of the machine with the GPU: any x86-64 since Haswell and Zen. This machine's own chip would not do.
PORTABLE = "cpu:x86-64-v3"
GLIBC = (2, 36)
LIMIT = 64 << 20
SCRIPTS = ("run.sh", "suite.py", "worker.py", "rank.py", "checks")
BENCHMARKS = ("cublaslt.py", "pin_products.py", "orthogonalize.py", "triton_symmetric.py")


def compiled(folder, case, target, kind):
    """The library's path in `folder`, of a case for one target. Of a benchmark that the compiler refuses, an
    Exception with the reason."""
    made = folder / "libraries" / case.name / kind
    made.mkdir()
    files = [made.parent / "step.optim", "-m", made.parent / "manifest.json"]
    command = [STEPC, "compile", *files, *case.options, "--target", target, "-o", made]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode and case.benchmark:
        errors = [line.split("error: ", 1)[1] for line in done.stderr.splitlines() if "error: " in line]
        return RuntimeError((errors or ["no reason"])[0])
    if done.returncode:
        sys.exit(f"build: exit {done.returncode}: {' '.join(map(str, command))}\n{done.stderr}")
    (made / "step.h").unlink(missing_ok=True)
    if not case.plan:
        (made / "step.json").unlink(missing_ok=True)
    library = made / "libstep.so"
    expect_old_glibc(library)
    # A quarter of the size. The checks unpack what they open.
    packed = library.with_suffix(".so.xz")
    packed.write_bytes(lzma.compress(library.read_bytes(), preset=1))
    library.unlink()
    return packed


def executed_flops(folder, case, target):
    """Operations that a step of a case executes, as the compiler says."""
    made = folder / "libraries" / case.name
    files = [made / "step.optim", "-m", made / "manifest.json"]
    command = [STEPC, "explain", *files, *case.options, "--target", target.split(",")[0], "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["total"]["flops"]["max"]


def targets(dry):
    """What cases are compiled for by kind: bits as a CPU's, and the way that is fastest on a GPU."""
    if dry:
        return {"device": "emulated:sm_80,chain", "cores": "emulated:sm_90a,tensorcore"}
    return {"device": f"cuda:{CHIPS},chain", "cores": f"cuda:{CHIPS},tensorcore"}


def expect_old_glibc(path):
    """What the other machine loads asks for no newer glibc than it has."""
    text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
    newest = max(
        (tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", text)), default=(0, 0)
    )
    if newest > GLIBC:
        sys.exit(f"build: {path}: expected a file for glibc {GLIBC} or older, found one for {newest}")


def compiled_trainer(folder):
    """examples/gpu_trainer.cpp, and its libraries for one and two ranks; says what is missing for it."""
    headers = [
        Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "include",
        Path("/usr/local/cuda/include"),
    ]
    header = next((one for one in headers if (one / "cuda.h").is_file()), None)
    lib = STEPC.resolve().parents[1] / "lib"
    # Of the driver the linker needs the names alone.
    driver = lib / "stub" / "libcuda.so"
    if header is None or not driver.exists():
        return "no cuda.h" if header is None else f"no {driver}, which cmake --build build makes"
    text = (ROOT / "examples" / "gpu_trainer_manifest.json").read_text()
    for ranks in (1, 2):
        made = folder / "gpu_trainer" / str(ranks)
        made.mkdir(parents=True)
        (made / "m.json").write_text(text.replace('"size": 2', f'"size": {ranks}'))
        files = [ROOT / "examples" / "gpu_trainer.optim", "-m", made / "m.json"]
        subprocess.run([STEPC, "compile", *files, "--target", f"cuda:{CHIPS}", "-o", made], check=True)
        expect_old_glibc(made / "libgpu_trainer.so")
    program = folder / "gpu_trainer" / "gpu_trainer"
    command = ["c++", "-std=c++20", "-O2", "-static-libstdc++", "-static-libgcc", f"-I{made}", f"-I{ROOT / 'runtime' / 'include'}"]
    command += ["-isystem", header, ROOT / "examples" / "gpu_trainer.cpp", f"-L{made}", "-lgpu_trainer", f"-L{lib}", "-lstepc_nccl"]
    subprocess.run([*command, driver, "-pthread", "-o", program], check=True)
    expect_old_glibc(program)
    return ""


def commit():
    done = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def build(finished, dry, small, only):
    nccl = STEPC.resolve().parents[1] / "lib" / "libstepc_nccl.so"
    if not dry and not nccl.is_file():
        sys.exit(f"build: expected {nccl}, found none: cmake --build build --target stepc_nccl makes it")
    if finished.exists() and any(finished.iterdir()) and not (finished / "cases.json").is_file():
        sys.exit(f"build: expected an empty folder, or one that was built before, found '{finished}'")
    out = finished.with_name(finished.name + ".partial")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cases = [case for case in all_cases(small, dry) if fnmatch.fnmatch(case.name, only)]
    if not cases:
        sys.exit(f"build: expected the name of a case, found '{only}'")
    device = targets(dry)
    jobs = []
    for case in cases:
        if case.chips and dry:
            continue
        made = out / "libraries" / case.name
        made.mkdir(parents=True)
        (made / "step.optim").write_text(case.text)
        (made / "manifest.json").write_text(json.dumps(case.manifest, indent=1))
        is_timed = case.benchmark or case.name.startswith("time.")
        first = device["cores"] if is_timed else device["device"]
        jobs.append((case, f"cuda:{case.chips}" if case.chips else first, "device"))
        if case.cores:
            # Checks end with an error where a kernel waits for ever. What is timed has no such code.
            jobs.append((case, device["cores"] + ("" if dry or is_timed else ",bounded"), "cores"))
        if case.reference:
            jobs.append((case, PORTABLE, "cpu"))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        libraries = list(pool.map(lambda job: compiled(out, *job), jobs))
    found, flops, missing = {}, {}, {}
    for (case, target, kind), path in zip(jobs, libraries, strict=True):
        if isinstance(path, Exception):
            missing[case.name] = str(path)
            continue
        found.setdefault(case.name, {})[kind] = str(path.relative_to(out))
        if case.benchmark:
            flops[case.name] = executed_flops(out, case, target)
    for name in SCRIPTS:
        copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy2
        copy(HERE / name, out / name)
    for name in BENCHMARKS:
        shutil.copy2(ROOT / "benchmarks" / name, out / name)
    without_trainer = "a dry run"
    if not dry:
        expect_old_glibc(nccl)
        shutil.copy2(nccl, out / nccl.name)
        without_trainer = compiled_trainer(out)
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", "_extension*.so")
    shutil.copytree(ROOT / "frontends" / "python" / "stepc", out / "python" / "stepc", ignore=ignored)
    shutil.copytree(ROOT / "examples", out / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    text = {"commit": commit(), "dry": dry, "targets": device, "cases": found, "without_trainer": without_trainer,
            "sets": orthogonalized(small), "flops": flops, "missing": missing}  # fmt: skip
    (out / "cases.json").write_text(json.dumps(text, indent=1))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if size > LIMIT:
        sys.exit(
            f"build: expected at most {LIMIT >> 20} MiB to be carried, found {size / 2**20:.1f} MiB in {out}"
        )
    shutil.rmtree(finished, ignore_errors=True)
    out.rename(finished)
    print(f"build: {len(libraries)} libraries, {size / 2**20:.1f} MiB in {finished}")
    for name, why in missing.items():
        print(f"build: without {name}: {why}")
    if without_trainer and not dry:
        print(f"build: without examples/gpu_trainer.cpp: {without_trainer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="libraries of emulated in place of a GPU's")
    parser.add_argument("--small", action="store_true", help="few and small cases")
    parser.add_argument("--only", default="*", help="a pattern of the cases' names: checks of others are skipped")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    if not STEPC.is_file():
        sys.exit(f"build: expected the compiler, found no {STEPC}")
    build(options.out.resolve(), options.dry, options.small, options.only)


if __name__ == "__main__":
    main()
