"""The strategy slabs, of fast numerics: blocks are computed in slabs where these stand, and Gram matrices
added up over ranks.

Random shapes on random meshes, with replicas, experts, fused matrices and several waves, are stepped in slabs
and whole on one rank. The error of slabs against the float64 reference is at most twice that of whole blocks,
for each spectrum and precision; `stepc run` itself refuses replicas of which the bytes differ. STEPC_SEED
repeats a run, STEPC_SLABS makes it longer.
"""

import json
import os
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from test_bits import SEED, differences
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

CASES = int(os.environ.get("STEPC_SLABS") or draws(12))
TOLERANCE = 2.0  # times the error of whole blocks
SPECTRA = ("flat", 1e-2, 1e-4, 1e-7, 1e-10)
SPEC = """
optimizer Sign(lr) {
  state m : f32
  m = 0.9 * m + grad
  let o = orthogonalize(m, steps = 5, coefficients = COEFFICIENTS, precision = PRECISIONFORM)
  param = param - lr * o
}
route { Sign(lr = 1) for matrix }
"""
IN_SLABS = ("--numerics=fast", "--strategy", "*=slabs")
WHOLE = ".whole"


def spec_of(coefficients, precision, form=""):
    return SPEC.replace("COEFFICIENTS", coefficients).replace("PRECISION", precision).replace("FORM", form)


def matrix(generator, rows, cols, spectrum):
    """With singular values from 1 down to `spectrum`, equally far apart in their logarithms."""
    small = min(rows, cols)
    left = np.linalg.qr(generator.normal(size=(rows, small)))[0]
    right = np.linalg.qr(generator.normal(size=(cols, small)))[0]
    values = np.ones(small) if spectrum == "flat" else np.logspace(0, np.log10(spectrum), small)
    return (left * values) @ right.T


SLABS = ("equal", "uneven", "striped", "empty", "flat", "fused", "uneven", "fused")


def random_case(seed, slabs="equal"):
    """A manifest whose shards cut the longer side of matrices into slabs: equal ones, "uneven" ones or some
    "empty" ones, ones of several runs ("striped"), ranges of whole rows ("flat"), or ones of "fused"
    matrices, of which each stands on a few ranks."""
    draw = random.Random(seed)
    axes = draw.choice(([2], [4], [3], [2, 2], [3, 2], [2, 2, 2]))
    cutting = draw.sample(range(len(axes)), draw.randint(1, len(axes)))
    if slabs == "flat":
        cutting = cutting[:1]
    expert = slabs != "fused" and draw.random() < 0.4
    placements, count, experts = [], 1, 1
    tall = slabs == "flat" or draw.random() < 0.5
    dim = int(expert) + (0 if tall else 1)
    free = [axis for axis in range(len(axes)) if axis not in cutting]
    by_expert = draw.choice(free) if expert and free and slabs != "flat" else None
    # As column-wise TP under FSDP2; where that cuts unevenly, some slabs are several runs.
    strided = slabs in ("equal", "uneven") and len(cutting) == 2 and draw.random() < 0.5
    for axis, size in enumerate(axes):
        if axis in cutting:
            count *= size
            placements.append(
                f"_S({dim}, {axes[cutting[1]]})" if strided and axis == min(cutting) else f"S({dim})"
            )
        elif axis == by_expert:
            placements.append("S(0)")
        else:
            placements.append("R")
    if strided:  # the factor of a strided shard is the size of the later axis
        placements[min(cutting)] = f"_S({dim}, {axes[max(cutting)]})"
    experts = draw.randint(3, 5) if expert else 1
    large = count * draw.randint(1, 9)
    if slabs in ("uneven", "flat", "fused"):
        large += draw.randint(1, count - 1)
    if slabs == "striped":
        stripes = draw.randint(2, 3)
        placements[min(cutting)], large = f"IS({dim}, {stripes})", large * stripes
    if (
        slabs == "empty"
    ):  # one axis alone may have more ranks than are left for it; of one row there are no two slabs
        large = draw.randint(max(2, count // axes[max(cutting)]), max(2, count - 1))
    small = draw.randint(1, large)
    shape = ([experts] if expert else []) + ([large, small] if tall else [small, large])
    more = {"batch_axes": 1} if expert else {}
    if slabs == "flat":
        rows = experts * large
        cuts = sorted(
            [0, rows, draw.randint(1, large - 1), *(draw.randint(0, rows) for _ in range(count - 2))]
        )
        placements[cutting[0]] = f"flat({', '.join(str(small * cut) for cut in cuts)})"
    if slabs == "fused":
        parts = draw.choice([parts for parts in (2, 3, 4, 5) if parts % count])  # else each stood on one rank
        shape[dim] *= parts
        more = {"blocks": {"axis": "rows" if tall else "columns", "sizes": [large] * parts}}
    mesh = {"name": "m", "axes": [{"name": f"a{i}", "size": size} for i, size in enumerate(axes)]}
    parameters = [{"name": f"w{i}", "shape": shape, "dtype": "f32", "mesh": "m", "placements": placements}
                  | more for i in range(2 * len(SPECTRA))]  # fmt: skip
    traits = ["tall" if tall else "wide", f"{len(cutting)} axes cut", "experts" if expert else "matrices"]
    traits += ["replicas"] if free else []
    traits += ["strided"] if strided else []
    traits += [slabs]
    return {"version": 1, "meshes": [mesh], "parameters": parameters}, traits, draw


def with_whole(document):
    """Beside each parameter a copy that is whole on one rank: what is compiled is shared."""
    one = {"name": "one", "axes": [{"name": "a", "size": 1}], "ranks": [0]}
    copies = [
        p | {"name": p["name"] + WHOLE, "mesh": "one", "placements": ["R"]} for p in document["parameters"]
    ]
    return document | {"meshes": [*document["meshes"], one], "parameters": document["parameters"] + copies}


def parts_of(parameter, array):
    """The matrices of a parameter, one behind the other: [matrices, rows, columns]."""
    blocks = parameter.get("blocks")
    if not blocks:
        return array.reshape(-1, *array.shape[-2:])
    return np.stack(np.split(array, len(blocks["sizes"]), axis=0 if blocks["axis"] == "rows" else 1))


def inputs(document, seed, copies=("",)):
    generator, tensors = np.random.default_rng(seed), {}
    for p, spectrum in zip(document["parameters"], cycle(SPECTRA), strict=False):
        count, *shape = parts_of(p, np.empty(p["shape"])).shape
        parts = [matrix(generator, *shape, spectrum) for _ in range(count)]
        joined = np.concatenate(parts, axis=int(p["blocks"]["axis"] != "rows")) if "blocks" in p else parts
        for name in (p["name"] + copy for copy in copies):
            tensors[f"param:{name}"] = tensor(np.zeros(p["shape"]), "f32")
            tensors[f"grad:{name}"] = tensor(np.reshape(joined, p["shape"]), "f32")
    return tensors


def errors_of(found, reference, parameter, copy=""):
    """Of each matrix of a parameter, or of its copy; the reference has the whole one."""
    keys = ((reference, WHOLE), (found, copy))
    wanted, got = (np.float64(each[f"param:{parameter['name']}{name}"].array()) for each, name in keys)
    wanted, got = (parts_of(parameter, each) for each in (wanted, got))
    return np.linalg.norm(got - wanted, axis=(1, 2)) / np.linalg.norm(wanted, axis=(1, 2))


def check(index, folder):
    """One drawn case, whose parameters take turns at the spectra: of each matrix its errors in slabs and
    whole.
    """
    document, traits, draw = random_case(f"{SEED}-slabs-{index}", SLABS[index % len(SLABS)])
    precision = ("f32", "bf16", "f16")[index % 3]
    # Rounded to 16 bits, Polar Express leaves its range of convergence, in slabs or not: that error says
    # nothing.
    coefficients = draw.choice(("simple", "polar_express")) if precision == "f32" else "simple"
    folder.mkdir()
    spec, given = folder / "spec.optim", folder / "in.safetensors"
    form = ("", ", form = gram", ", form = auto, restarts = [1, 3]")[index // 3 % 3]
    traits.append(form or "no form")
    spec.write_text(spec_of(coefficients, precision, form))
    both = folder / "both.json"
    both.write_text(json.dumps(with_whole(document)))
    options = [*IN_SLABS, "--strategy", f"*{WHOLE}=local", "--waves", draw.choice((1, 2))]
    save(given, inputs(document, index, ("", WHOLE)))
    found = run(spec, both, given, folder / "found.safetensors", *options)
    reference = run(spec, both, given, folder / "reference.safetensors", "--reference")
    errors = []
    for p, spectrum in zip(document["parameters"], cycle(SPECTRA), strict=False):
        pairs = zip(*(errors_of(found, reference, p, copy) for copy in ("", WHOLE)), strict=True)
        errors += [(precision, spectrum, *pair) for pair in pairs]
    return traits, errors


def test_errors_of_slabs(tmp_path, capsys):
    """The geometric mean over what was drawn: the error of one matrix is a matter of luck, whatever computes
    it, and a few that are much larger would decide any other mean."""
    with ThreadPoolExecutor(2) as pool:
        results = [one.result() for one in [pool.submit(check, i, tmp_path / str(i)) for i in range(CASES)]]
    traits = Counter(trait for each, _ in results for trait in each)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: errors in slabs, and of whole blocks; {dict(traits)}")
        for precision in ("f32", "bf16", "f16"):
            for spectrum in SPECTRA:
                pairs = [
                    (a, b)
                    for _, errors in results
                    for p, s, a, b in errors
                    if (p, s) == (precision, spectrum)
                ]
                slabs, whole = (
                    float(np.exp(np.mean(np.log(np.maximum(side, 1e-12)))))
                    for side in zip(*pairs, strict=True)
                )
                print(f"  {precision:5} {spectrum!s:6} {len(pairs):3} matrices: {slabs:.3g} and {whole:.3g}")
                # The mean of a few matrices is a matter of luck, too.
                allowed = TOLERANCE * (1 + 4 / len(pairs)) * whole
                assert np.isfinite(slabs) and slabs <= allowed, (precision, spectrum, slabs, allowed)
    assert all(traits[each] for each in ("tall", "wide", "experts", "replicas", *SLABS)), traits


def test_other_strategies_stay_exact(tmp_path):
    """Fast numerics give what exact ones give where no strategy rounds otherwise."""
    document = random_case("exact")[0]
    (tmp_path / "spec.optim").write_text(spec_of("simple", "bf16"))
    (tmp_path / "many.json").write_text(json.dumps(document))
    save(tmp_path / "in.safetensors", inputs(document, 1))
    files = [tmp_path / "spec.optim", tmp_path / "many.json", tmp_path / "in.safetensors"]
    exact = run(*files, tmp_path / "exact.safetensors", "--strategy", "*=owner")
    fast = run(*files, tmp_path / "fast.safetensors", "--strategy", "*=owner", "--numerics=fast")
    assert not differences(fast, exact)


@pytest.mark.parametrize("placements, why", [
    (["R", "R"], "placements [R, R] do not cut the blocks"),
    (["S(1)", "R"], "expected shards that cut the longer side of blocks"),
    (["S(0)", "S(1)"], "expected shards that cut blocks by rows alone"),
    (["flat(0, 30, 64)", "R"], "expected ranges of whole rows, found a part of one of block 0 on rank 0"),
])  # fmt: skip
def test_what_cannot_be_computed_in_slabs(tmp_path, placements, why):
    mesh = {"name": "m", "axes": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]}
    parameter = {"name": "w", "shape": [16, 4], "dtype": "f32", "mesh": "m", "placements": placements}
    (tmp_path / "spec.optim").write_text(spec_of("simple", "bf16"))
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": [mesh], "parameters": [parameter]}))
    with pytest.raises(CompilerFailed, match=re.escape(why)):
        stepc("explain", tmp_path / "spec.optim", "-m", tmp_path / "m.json", *IN_SLABS)
