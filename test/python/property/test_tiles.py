"""Products by lists of tiles, as GPUs of sm_90a have them, give the bits that mma.sync gives.

`emulated:sm_90a,tensorcore` works off the lists of tiles that a GPU's clusters would work off, with the
tensor cores' arithmetic. `emulated:sm_80,tensorcore` has kernels of mma.sync. Their bits are compared: on
one rank and on several, in waves, by both strategies, and for lists of one to eight clusters, which a seed
draws. STEPC_SEED repeats a run, STEPC_TILES_PROGRAMS makes it longer.
"""

import json
import os
import random
import re

import pytest
from compiler import ROOT, STEPC, run, save, stepc
from stub_driver import STUB
from test_accuracy import tensors
from test_bits import SEED, differences
from tiers import draws

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

PROGRAMS = int(os.environ.get("STEPC_TILES_PROGRAMS") or draws(1))
INTERPRETED = int(os.environ.get("STEPC_TILES_INTERPRETED") or draws(8))
TILES, PLAIN = ("--target", "emulated:sm_90a,tensorcore"), ("--target", "emulated:sm_80,tensorcore")
LISTS, FRAGMENTS = ("--target", "interpret:sm_90a,tensorcore"), ("--target", "interpret:sm_80,tensorcore")
EXAMPLE = ROOT / "examples" / "muon.optim"


def side(generator):
    """Mostly a multiple of eight elements, whose rows are whole accesses of 16 bytes."""
    return generator.choice([generator.randrange(9, 40) * 8, generator.randrange(66, 200), 64, 72, 128, 256, 264])


def shapes_of(generator):
    shapes = {f"m{i}": (side(generator), side(generator)) for i in range(generator.randrange(1, 4))}
    shapes["stack"] = (generator.randrange(2, 5), 8 * generator.randrange(9, 18), 8 * generator.randrange(9, 18))
    return shapes


def manifest(shapes, ranks):
    mesh = {"name": "dp", "axes": [{"name": "dp", "size": ranks}]}
    parameters = [{"name": name, "shape": list(shape), "dtype": "f32", "mesh": "dp", "placements": ["S(0)" if ranks > 1 else "R"],
                   "batch_axes": len(shape) - 2} for name, shape in shapes.items()]  # fmt: skip
    return {"version": 1, "meshes": [mesh], "parameters": parameters}


def kernels(folder, document, target, spec=EXAMPLE):
    stepc("compile", spec, "-m", document, *target, "--emit", "llvm", "-o", folder)
    return set(re.findall(r"@(stepc_tiles_\w+|stepc_product_\w+)\(", (folder / f"{spec.stem}.mlir").read_text()))


@pytest.mark.parametrize("index", range(PROGRAMS))
def test_random_programs(tmp_path, index, capsys):
    generator = random.Random(f"{SEED}-tiles-{index}")
    shapes = shapes_of(generator)
    ranks = generator.choice([2, 3, 4])
    one, many, inputs = tmp_path / "one.json", tmp_path / "many.json", tmp_path / "in.safetensors"
    one.write_text(json.dumps(manifest(shapes, 1)))
    many.write_text(json.dumps(manifest(shapes, ranks)))
    save(inputs, tensors(shapes, 1, seed=index))
    expected = run(EXAMPLE, one, inputs, tmp_path / "plain.safetensors", *PLAIN)
    made = kernels(tmp_path, one, TILES)
    # On a GPU's cluster the chains of a wave stand side by side, and products of several chains share launches.
    ways = {
        "alone": [one],
        "side by side": [one, "--cluster", "h100", "--waves", 1],
        "owner": [many, "--strategy", "*=owner", "--waves", 2, "--cluster", "h100"],
        "gather": [many, "--strategy", "*=gather"],
    }
    stepc("compile", EXAMPLE, "-m", one, *TILES, *ways["side by side"][1:], "--emit", "exec", "-o", tmp_path)
    joined = (tmp_path / "muon.mlir").read_text().count("joins")
    for number, (way, (where, *options)) in enumerate(ways.items()):
        found = run(EXAMPLE, where, inputs, tmp_path / f"{way}.safetensors", *TILES, *options,
                    STEPC_EMULATED_SEED=4 * index + number)  # fmt: skip
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, program {index}, {way}:\n" + "\n".join(wrong)
    assert any(name.startswith("stepc_tiles") for name in made), made
    with capsys.disabled():
        print(f"\n  STEPC_SEED={SEED}, program {index}: {shapes}, {len(made)} kernels, {joined} products joined", end="")


def random_spec(generator):
    """Two rules, each with an orthogonalization in some form, and a claim for each half of the parameters."""
    rules = ""
    for name in ("A", "B"):
        steps = generator.randrange(1, 5)
        options = f"steps = {steps}, precision = {generator.choice(['bf16', 'f16'])}"
        form = generator.choice(["standard", "gram", "auto"])
        options += f", form = {form}"
        if form != "standard":
            restarts = [each for each in range(1, steps) if each == 2 or generator.random() < 0.4]
            options += f", restarts = {restarts}"
        eps = generator.choice(["1e-7", "1e-3", "0.5"])
        rules += (
            f"optimizer {name}(lr = 0.1) {{\n  state m : f32\n  m = 0.9 * m + grad\n"
            f"  let o = orthogonalize(grad + 0.9 * m, {options}, eps = {eps})\n  param = 0.99 * param - lr * o\n}}\n"
        )
    return rules + 'route {\n  A() for "m0", "m1" if present\n  B() for rest\n}\n'


def spread(generator, document, ranks):
    """The manifest on a mesh of so many ranks, with drawn placements."""
    sizes = generator.choice([[ranks], [ranks // 2, 2]]) if ranks % 2 == 0 else [ranks]
    axes = [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]
    parameters = []
    for one in document["parameters"]:
        batch = one["batch_axes"]
        ways = ["R", f"S({batch})", f"S({batch + 1})"] + ["S(0)"] * batch
        parameters.append(one | {"placements": [generator.choice(ways) for _ in sizes]})
    return {"version": 1, "meshes": [{"name": "dp", "axes": axes}], "parameters": parameters}


@pytest.mark.parametrize("index", range(INTERPRETED))
def test_interpreted_programs(tmp_path, index):
    """Drawn rules on drawn meshes: the bits of one rank, whose products are added up fragment by fragment, hold for
    every number of ranks, waves, strategies and lists."""
    generator = random.Random(f"{SEED}-interpreted-{index}")
    spec, one, many, inputs = (tmp_path / name for name in ("spec.optim", "one.json", "many.json", "in.safetensors"))
    shapes = shapes_of(generator)
    # A tile per matrix, so that lists are long.
    shapes["stack"] = (generator.randrange(2, 17), 8 * generator.randrange(9, 13), 8 * generator.randrange(9, 13))
    spec.write_text(random_spec(generator))
    document = manifest(shapes, 1)
    one.write_text(json.dumps(document))
    many.write_text(json.dumps(spread(generator, document, generator.choice([2, 3, 4, 6]))))
    save(inputs, tensors(shapes, 1, seed=index))
    expected = run(spec, one, inputs, tmp_path / "plain.safetensors", *FRAGMENTS)
    cluster, strategy = ["--cluster", "h100"], generator.choice(["owner", "gather"])
    ways = {
        "side by side": [one, *LISTS, *cluster, "--waves", generator.randrange(1, 4)],
        "several ranks": [many, *LISTS, *generator.choice([cluster, []]), "--threads", generator.randrange(1, 4)],
        strategy: [many, *LISTS, "--strategy", f"*={strategy}", "--waves", generator.randrange(1, 4), *cluster],
    }
    if index % 8 == 0:
        ways["compiled"] = [many, *TILES, *cluster]
    for number, (way, (where, *options)) in enumerate(ways.items()):
        found = run(spec, where, inputs, tmp_path / "out.safetensors", *options, STEPC_EMULATED_SEED=4 * index + number)
        wrong = differences(found, expected)
        assert not wrong, f"STEPC_SEED={SEED}, program {index}, {way}, {options}:\n" + "\n".join(wrong)


def test_interpreted_lists(tmp_path):
    """The plan of a GPU of sm_90a, whose lists are interpreted. A seed draws their number; of others it is an error."""
    shapes = {"wide": (72, 136), "square": (128, 128), "small": (40, 64)}
    files = [EXAMPLE, tmp_path / "m.json", tmp_path / "in.safetensors"]
    files[1].write_text(json.dumps(manifest(shapes, 1)))
    save(files[2], tensors(shapes, 1))
    texts = []
    for target in (TILES, LISTS):
        stepc("compile", *files[:1], "-m", files[1], *target, "--cluster", "h100", "--emit", "exec", "-o", tmp_path)
        text = (tmp_path / "muon.mlir").read_text()
        texts.append(re.findall(r"exec\.product .*", re.sub(r" kernels \[.*?\]", "", text)))
    assert texts[0] == texts[1] and any("joins" in one for one in texts[1])
    expected = run(*files, tmp_path / "out.safetensors", *FRAGMENTS)
    assert differences(run(*files, tmp_path / "out.safetensors", "--target", "interpret:sm_90a"), expected)
    with pytest.raises(AssertionError, match="expected STEPC_EMULATED_SEED to be a whole number .* found 'x'"):
        run(*files, tmp_path / "out.safetensors", *LISTS, STEPC_EMULATED_SEED="x")


def test_products_of_several_chains_share_launches(tmp_path):
    """Each of five steps has one launch for three Gram matrices, one for their polynomials and one for the rest."""
    document = tmp_path / "m.json"
    shapes = {"a": (72, 136), "b": (128, 256), "c": (96, 200)}
    document.write_text(json.dumps(manifest(shapes, 1)))
    options = ["--cluster", "h100", "--waves", 1, *TILES]
    stepc("compile", EXAMPLE, "-m", document, *options, "--emit", "exec", "-o", tmp_path)
    products = re.findall(r"exec\.product .*", (tmp_path / "muon.mlir").read_text())
    assert len(products) == 45 and sum("joins" in one for one in products) == 30
    # A limit that leaves no memory for it lets chains take turns.
    stepc("compile", EXAMPLE, "-m", document, *options, "--workspace-limit", "900KiB", "--emit", "exec", "-o", tmp_path)
    assert "joins" not in (tmp_path / "muon.mlir").read_text()


def test_shapes_choose_their_kernels(tmp_path):
    """One kernel of a form serves all shapes. Rows of no whole accesses and small matrices keep mma.sync."""
    def of(**shapes):
        document = tmp_path / "m.json"
        document.write_text(json.dumps(manifest(shapes, 1)))
        return kernels(tmp_path, document, TILES)

    # The polynomial of a Gram matrix has the kernel of X Xᵀ.
    wide = {"stepc_tiles_bf16_rt_symmetric", "stepc_tiles_bf16"}
    assert of(w=(72, 136)) == wide
    assert of(w=(72, 136), v=(128, 128), u=(2, 96, 200)) == wide
    assert of(w=(136, 72)) == wide | {"stepc_tiles_bf16_lt_symmetric"}
    # Rows of 72 elements are whole accesses, however many there are.
    assert of(w=(201, 72)) == wide | {"stepc_tiles_bf16_lt_symmetric"}
    assert not any("tiles" in name for name in of(w=(64, 136), v=(75, 75)))
    of(w=(72, 136))
    text = stepc("explain", EXAMPLE, "-m", tmp_path / "m.json", *TILES)
    assert "256×256×64" in text and "128×128" not in text, text


@pytest.mark.parametrize("form", [
    "precision = bf16, form = gram", pytest.param("precision = f16, form = gram", marks=pytest.mark.tier("all")),
    "precision = f16, form = auto",
])
def test_forms_of_orthogonalize(tmp_path, form):
    """The Gram form mirrors products of two matrices, whose halves would round otherwise on the diagonal's tiles."""
    spec, document, inputs = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors"
    spec.write_text(EXAMPLE.read_text().replace("precision = bf16", form))
    shapes = {"wide": (136, 264), "tall": (200, 128), "square": (96, 96), "odd": (201, 72)}
    document.write_text(json.dumps(manifest(shapes, 1)))
    save(inputs, tensors(shapes, 2))
    expected = run(spec, document, inputs, tmp_path / "plain.safetensors", *FRAGMENTS, steps=2)
    found = run(spec, document, inputs, tmp_path / "tiles.safetensors", *TILES, "--cluster", "h100", steps=2)
    wrong = differences(found, expected)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("precision", "form"), [
    ("bf16", "standard"), ("f16", "gram"), pytest.param("bf16", "gram", marks=pytest.mark.tier("all")),
    pytest.param("f16", "standard", marks=pytest.mark.tier("all")),
])
def test_results_of_f32(tmp_path, precision, form):
    """Slabs of a matrix give parts of its Gram matrix in f32, which ranks add up."""
    spec, document, inputs = tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / "in.safetensors"
    spec.write_text(EXAMPLE.read_text().replace("precision = bf16", f"precision = {precision}, form = {form}"))
    shapes = {"tall": (272, 136), "taller": (464, 72), "small": (128, 40)}
    document.write_text(json.dumps(manifest(shapes, 2)))
    save(inputs, tensors(shapes, 2))
    options = ["--numerics=fast", "--strategy", "*=slabs"]
    assert any("_to_f32" in name for name in kernels(tmp_path, document, [*TILES, *options], spec))
    expected = run(spec, document, inputs, tmp_path / "plain.safetensors", *FRAGMENTS, *options, steps=2)
    for target in (TILES, LISTS):
        found = run(spec, document, inputs, tmp_path / "tiles.safetensors", *target, *options, steps=2)
        wrong = differences(found, expected)
        assert not wrong, "\n".join([*target, *wrong])


@pytest.mark.skipif(not STUB.is_dir(), reason="build/lib/stub was not built")
def test_the_code_that_drives_a_gpu(tmp_path):
    """A driver that is the host gets maps, lists and clusters as NVIDIA's gets them, and says what it refuses."""
    shapes = {"wide": (72, 136), "tall": (264, 96), "stack": (3, 80, 88)}
    files = [EXAMPLE, tmp_path / "m.json", tmp_path / "in.safetensors"]
    files[1].write_text(json.dumps(manifest(shapes, 2)))
    save(files[2], tensors(shapes, 2))
    expected = run(*files, tmp_path / "out.safetensors", *PLAIN, steps=2)
    launches = tmp_path / "launches"

    def on_stub(document, folder, **variables):
        stepc("compile", EXAMPLE, "-m", document, *TILES, "--waves", 2, "-o", folder, STEPC_RUNTIME_DIR=STUB)
        return run(EXAMPLE, document, files[2], tmp_path / "gpu.safetensors", "--library", folder / "libmuon.so", steps=2,
                   STEPC_STUB_CHIP=90, **variables)  # fmt: skip

    wrong = differences(on_stub(files[1], tmp_path / "two", STEPC_STUB_LAUNCHES=launches), expected)
    assert not wrong, "\n".join(wrong)
    assert "108 blocks, 384 threads, cluster 2, 230464 bytes, dependent\n" in launches.read_text()
    one = tmp_path / "one.json"
    one.write_text(json.dumps(manifest(shapes, 1)))
    # One cluster works off all tiles; messages have multiprocessors of their own.
    wrong = differences(on_stub(files[1], tmp_path / "two", STEPC_STUB_LAUNCHES=launches, STEPC_MOST_CLUSTERS=1), expected)
    assert not wrong, "\n".join(wrong)
    assert "\n2 blocks, 384 threads, cluster 2, 230464 bytes" in launches.read_text()
    with pytest.raises(AssertionError, match="expected a whole number of at least 1 in STEPC_MOST_CLUSTERS, found 'all'"):
        on_stub(one, tmp_path / "one", STEPC_MOST_CLUSTERS="all")
    for call, doing in (("cuTensorMapEncodeTiled", "describing matrices"),
                        ("cuOccupancyMaxActiveClusters", "asking how many clusters are resident")):  # fmt: skip
        with pytest.raises(AssertionError, match=f"{doing} failed: CUDA_ERROR_OUT_OF_MEMORY"):
            on_stub(one, tmp_path / "one", STEPC_STUB_FAILS=f"{call}:0")
