"""Saves what random programs and the examples compute, and compares a build with what another one computed.

    .venv/bin/python test/saved_bits.py save FOLDER [--programs 100] [--stepc build/bin/stepc]
    .venv/bin/python test/saved_bits.py compare FOLDER [--f64-functions leave-out] [--stepc build/bin/stepc]
    .venv/bin/python test/saved_bits.py digest

A folder holds a subfolder per program: spec.optim, m.json, in.safetensors, out.safetensors (what `stepc run`
wrote) and program.json (its options, and what its parameters are). `compare` runs each program again and
compares every parameter, state and step count byte by byte. It needs nothing but `stepc run`, so builds whose
C interfaces differ can be compared. The chip decides bits, so a folder is of one chip.

Rules that take a power, exp or log of scalars do so in f64. Where those functions changed by intention,
`--f64-functions` tells what is expected of such rules: `equal` (the default), `leave-out`, or a number of
units in the last place of the stored type by which elements may differ.

`digest` writes test/saved_bits.json: digests of what 200 random programs and the examples compute on a chip that every
machine can be. test/python/property/test_saved_bits.py compares with it. It is written anew only where bits, or the
programs that are drawn, change by intention.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "python" / "property"))

import compiler  # noqa: E402
from cases import STEPS, random_batch  # noqa: E402

PER_PROGRAM = 9
F64_FUNCTION = re.compile(r"math\.(powf|fpowi|exp\w*|log\w*) .*: f64")
BITS = {"F64": np.uint64, "F32": np.uint32, "F16": np.uint16, "BF16": np.uint16, "I64": np.uint64}


def random_program(seed: str, folder: Path) -> dict:
    batch = random_batch(seed, PER_PROGRAM, forms=False)
    batch.write(folder)
    for name in ("one.json", "both.json", "both.safetensors"):
        (folder / name).unlink()
    (folder / "many.json").rename(folder / "m.json")
    traits = {case.name: sorted(case.traits()) for case in batch.cases}
    return {"options": [*map(str, batch.options())], "threads": batch.threads, "steps": STEPS, "traits": traits}


def examples() -> list[tuple[Path, Path, list[str]]]:
    """(specification, manifest, options) of everything in examples/, and of the manifests that tests
    share.
    """
    folder = ROOT / "examples"
    manifests = [folder / "four_ranks.json", *sorted((ROOT / "test" / "inputs").glob("*.json"))]
    pairs = [(folder / "muon.optim", manifest) for manifest in manifests]
    pairs += [(folder / "train_gpt.optim", folder / "four_ranks.json"),
              (folder / "c_trainer.optim", folder / "c_trainer_manifest.json")]  # fmt: skip
    options = [[], ["--strategy", "*=gather"], ["--strategy", "*=owner", "--waves", "2"]]
    return [(*pair, chosen) for pair in pairs for chosen in options]


def example_program(spec: Path, manifest: Path, options: list[str], folder: Path) -> dict:
    folder.mkdir(parents=True)
    (folder / "spec.optim").write_bytes(spec.read_bytes())
    (folder / "m.json").write_bytes(manifest.read_bytes())
    generator = np.random.default_rng(list(folder.name.encode()))
    tensors, traits = {}, {}
    for parameter in json.loads(manifest.read_text())["parameters"]:
        name, shape, dtype = parameter["name"], parameter["shape"], parameter["dtype"]
        tensors[f"param:{name}"] = compiler.tensor(generator.normal(size=shape) * 0.02, dtype)
        for step in range(1, STEPS + 1):
            values = generator.normal(size=shape) * 1e-3
            tensors[f"grad:{name}@{step}"] = compiler.tensor(values, parameter.get("grad_dtype", dtype))
        traits[name] = [f"example {spec.name}", f"dtype {dtype}"]
    compiler.save(folder / "in.safetensors", tensors)
    # A pattern of the specification may match nothing in a manifest of the tests.
    patterns = sorted(
        {p for line in re.findall(r" for .*", spec.read_text()) for p in re.findall(r'"(.+?)"', line)}
    )
    present = [word for pattern in patterns for word in ("--if-present", pattern)]
    return {"options": [*options, *present], "threads": 2, "steps": STEPS, "traits": traits}


def run(folder: Path, program: dict, output: Path) -> dict:
    files = folder / "spec.optim", folder / "m.json", folder / "in.safetensors"
    options = [*program["options"], "--threads", program["threads"]]
    return compiler.run(*files, output, *options, steps=program["steps"])


# The digests are of this target, whose bits are the same on every machine.
PORTABLE = "cpu:x86-64-v3"
DIGESTS = ROOT / "test" / "saved_bits.json"


def all_programs(seed: str, count: int) -> list[tuple[str, Callable[[Path], dict]]]:
    """Names of random programs and of the examples, each with the function that writes it into a folder."""
    jobs = [(f"random-{index:03}", lambda to, seed=f"{seed}-{index}": random_program(seed, to))
            for index in range(count)]  # fmt: skip
    for index, (spec, manifest, chosen) in enumerate(examples()):
        name = f"example-{index:02}-{spec.stem}-{manifest.stem}"
        jobs.append((name, lambda to, one=(spec, manifest, chosen): example_program(*one, to)))
    return jobs


def saved_programs() -> dict[str, Callable[[Path], dict]]:
    """The programs of the digests."""
    return dict(all_programs("saved", 200))


def digest(name: str, folder: Path, target: str = PORTABLE) -> dict[str, str]:
    """Digests of a saved program (`given`: its text, manifest, options and tensors) and of what it computes (`bits`)."""
    at = folder / name
    program = saved_programs()[name](at)
    given = hashlib.sha256(json.dumps([*program["options"], program["steps"]]).encode())
    for file in ("spec.optim", "m.json", "in.safetensors"):
        given.update((at / file).read_bytes())
    program["options"] = [*program["options"], "--target", target]
    bits = hashlib.sha256()
    for key, one in sorted(run(at, program, at / "out.safetensors").items()):
        bits.update(f"{key} {one.dtype} {one.shape}".encode() + one.data)
    return {"given": given.hexdigest()[:16], "bits": bits.hexdigest()[:16]}


def write_digests(options) -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        names = list(saved_programs())
        found = dict(zip(names, pool.map(lambda name: digest(name, Path(folder)), names), strict=True))
    lines = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in found.items()]
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} digests in {DIGESTS.relative_to(ROOT)}")
    return 0


def f64_parameters(folder: Path, program: dict) -> list[str]:
    """The parameters whose rule takes a power, exp or log in f64: the text of level 2 tells."""
    files = folder / "spec.optim", "-m", folder / "m.json"
    text = compiler.stepc("compile", *files, *program["options"], "--emit", "decided", "-o", "-")
    rules = {name for name, body in re.findall(r"optim\.rule @(\S+) (.*?)optim\.yield", text, re.DOTALL)
             if F64_FUNCTION.search(body)}  # fmt: skip
    routes = {route for route, rule in re.findall(r"optim\.route @(\S+) rule @(\S+) ", text) if rule in rules}
    found = re.findall(r'optim\.parameter @("[^"]+"|\S+) .* route @(\S+)', text)
    return sorted(name.strip('"') for name, route in found if route in routes)


def chip(folder: Path) -> str:
    """As the compiler names this machine's, in the description of a library."""
    options = json.loads((folder / "program.json").read_text())["options"]
    with tempfile.TemporaryDirectory() as to:
        compiler.stepc("compile", folder / "spec.optim", "-m", folder / "m.json", *options, "-o", to)
        return json.loads((Path(to) / "spec.json").read_text())["chip"]


def save(options) -> int:
    folder = options.folder
    if folder.exists():
        print(f"saved_bits.py: expected {folder} not to exist", file=sys.stderr)
        return 2
    folder.mkdir(parents=True)
    jobs = all_programs(options.seed, options.programs or 100)

    def job(name, write):
        at = folder / name
        program = write(at)
        run(at, program, at / "out.safetensors")
        program["f64"] = f64_parameters(at, program)
        (at / "program.json").write_text(json.dumps(program, indent=1) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda one: job(*one), jobs))
    index = {"chip": chip(folder / jobs[-1][0]), "seed": options.seed, "stepc": str(compiler.STEPC)}
    (folder / "saved.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(jobs)} programs in {folder} (seed {options.seed})")
    return 0


def ordered(one: compiler.Tensor) -> np.ndarray:
    """Integers in the order of the float values, so that neighbours differ by one."""
    bits = np.frombuffer(one.data, BITS[one.dtype]).astype(
        object if one.dtype in ("F64", "I64") else np.int64
    )
    sign = 1 << (8 * BITS[one.dtype]().itemsize - 1)
    return np.where(bits >= sign, sign - bits, bits)


def difference(found: compiler.Tensor | None, expected: compiler.Tensor) -> tuple[float, str]:
    """(largest difference in units in the last place, what differs); (0, "") of equal bytes."""
    if found == expected:
        return 0, ""
    if found is None or (found.dtype, found.shape) != (expected.dtype, expected.shape):
        what = f"{found.dtype} {found.shape}" if found else "none"
        return float("inf"), f"expected {expected.dtype} {expected.shape}, found {what}"
    apart = np.abs(ordered(found) - ordered(expected))
    at = np.flatnonzero(apart)
    if not len(at):
        return 0, f"{len(apart)} elements of equal value, zeros of other signs"
    first, largest = at[0], max(apart[at])
    want, got = expected.array().reshape(-1)[first], found.array().reshape(-1)[first]
    return (
        largest,
        f"{len(at)} of {len(apart)} elements differ, by at most {largest} ulp; [{first}] is {got}, was {want}",
    )


def compare_one(folder: Path, output: Path) -> tuple[dict, list]:
    """(the program, (parameter, largest ulp, text) of every tensor that was saved)."""
    program = json.loads((folder / "program.json").read_text())
    expected = compiler.load(folder / "out.safetensors")
    try:
        found = run(folder, program, output)
    except compiler.CompilerFailed as failed:
        return program, [("", float("inf"), f"{folder.name}: {str(failed)[:2000]}")]
    output.unlink()
    result = [
        ("", float("inf"), f"{folder.name}: unexpected {name}") for name in found.keys() - expected.keys()
    ]
    for name, one in expected.items():
        kind, rest = name.split(":", 1)
        ulps, text = difference(found.get(name), one)
        parameter = rest if kind == "param" else rest.rsplit(":", 1)[0]
        result.append((parameter, ulps, text and f"{folder.name}: {name}: {text}"))
    return program, result


def compare(options) -> int:
    folder, expect = options.folder, options.f64_functions
    index = json.loads((folder / "saved.json").read_text())
    programs = sorted(path.parent for path in folder.glob("*/program.json"))
    step = max(1, len(programs) // options.programs) if options.programs else 1
    programs = programs[::step]
    if chip(programs[0]) != index["chip"]:
        print(
            f"saved_bits.py: expected the chip of {folder}, {index['chip']}, found another", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        results = list(
            pool.map(lambda at: compare_one(at, Path(scratch) / f"{at.name}.safetensors"), programs)
        )
    histogram, tensors, wrong, tolerated, left_out = Counter(), 0, [], [], 0
    for program, found in results:
        for traits in program["traits"].values():
            histogram.update(traits)
        for parameter, ulps, text in found:
            tensors += 1
            f64 = parameter in program["f64"]
            if f64 and expect == "leave-out":
                left_out += 1
            elif text and f64 and expect != "equal" and ulps <= float(expect):
                tolerated.append(ulps)
            elif text:
                wrong.append(text)
    for name in sorted(histogram):
        print(f"  {name:28} {histogram[name]:4} {'#' * min(60, histogram[name] // 8)}")
    for text in wrong:
        print(text)
    note = f", {left_out} of rules with f64 functions left out" if left_out else ""
    if tolerated:
        note += f", {len(tolerated)} of rules with f64 functions differ by at most {max(tolerated)} ulp"
    print(f"{len(programs)} programs, {tensors} tensors: {len(wrong)} differ{note}")
    return 1 if wrong else 0


def expectation(text: str) -> str:
    if text not in ("equal", "leave-out") and not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected equal, leave-out or a number of ulp, found {text}")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["save", "compare", "digest"])
    parser.add_argument("folder", type=Path, nargs="?", help="of save and compare")
    parser.add_argument(
        "--stepc", type=Path, default=compiler.STEPC, help="the compiler (default: this build's)"
    )
    parser.add_argument(
        "--programs", type=int, help="random ones to save (default 100); how many to compare (default all)"
    )
    parser.add_argument(
        "--seed", default=str(random.SystemRandom().randrange(10**9)), help="of random programs"
    )
    parser.add_argument("--f64-functions", type=expectation, default="equal", help="equal, leave-out or ULPS")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time (default 2)")
    options = parser.parse_args()
    if (options.folder is None) != (options.what == "digest"):
        parser.error(f"{options.what}: expected {'no folder' if options.what == 'digest' else 'a folder'}")
    compiler.STEPC = options.stepc
    return {"save": save, "compare": compare, "digest": write_digests}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
