"""What `stepc explain` says of a step is what the runtime counts, and what it says of the alternatives
is what they cost when they are forced."""

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

pytestmark = pytest.mark.tier("land")

INPUTS = ROOT / "test" / "inputs"
MANIFESTS = sorted(path.stem for path in INPUTS.glob("*.json"))
TYPES = {"f32": "F32", "bf16": "BF16", "f16": "F16"}
# Row statistics in f32, an orthogonalization in bf16: values of several kinds and sizes travel.
SPEC = """
optimizer Stat(lr, beta = 0.9) {
  state m : bf16
  state r : f32[rows]
  m = lerp(m, grad, 1 - beta)
  let o = orthogonalize(m, steps = 2, coefficients = simple, precision = bf16)
  r = lerp(r, mean(o * o, over = columns), 1 - beta)
  param = param - lr * o / (sqrt(r) + 1e-8)
}
optimizer Sgd(lr) {
  param = param - lr * grad
}
route {
  Stat(lr = 0.02) for matrix
  Sgd(lr = 0.1) for rest
}
"""
COUNTERS = re.compile(
    r"rank (\d+): .*; sent (\d+) messages?, (\d+) bytes?; received (\d+) messages?, (\d+) bytes?; as planned"
)


def stepc(*arguments):
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    done = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "stat.optim"
    path.write_text(SPEC)
    return path


def explain(spec, manifest, *options):
    return json.loads(stepc("explain", spec, "--manifest", manifest, "--json", *options))


def matrices(report):
    return [group for group in report["groups"] if group["rule"] == "Stat"]


def force(report, strategy):
    names = [name for group in matrices(report) for name in group["parameters"]]
    return [f"--strategy={name}={strategy}" for name in names]


def write_tensors(path, manifest):
    arguments = []
    for parameter in json.loads(manifest.read_text())["parameters"]:
        shape = ",".join(map(str, parameter["shape"]))
        dtype = parameter["dtype"]
        arguments.append(f"param:{parameter['name']}={TYPES[dtype]}[{shape}]")
        arguments.append(f"grad:{parameter['name']}={TYPES[parameter.get('grad_dtype', dtype)]}[{shape}]")
    script = ROOT / "test" / "lit" / "driver" / "Inputs" / "tensors.py"
    subprocess.run([sys.executable, script, path, *arguments], check=True)


@pytest.mark.parametrize("options", [[], ["--waves=3"], ["gather"]], ids=["plain", "waves", "gather"])
@pytest.mark.parametrize("name", MANIFESTS)
def test_counters(tmp_path, spec, name, options):
    manifest = INPUTS / f"{name}.json"
    if options == ["gather"]:
        options = force(explain(spec, manifest), "gather")
    report = explain(spec, manifest, *options)
    write_tensors(tmp_path / "in", manifest)
    out = stepc("run", spec, "-m", manifest, "--tensors", tmp_path / "in", "-o", tmp_path / "out", *options)
    counted = [tuple(map(int, found)) for found in COUNTERS.findall(out)]
    keys = ("rank", "messages_sent", "bytes_sent", "messages_received", "bytes_received")
    assert counted == [tuple(rank[key] for key in keys) for rank in report["ranks"]]
    assert len(counted) == len(report["world"])


@pytest.mark.parametrize("name", MANIFESTS)
def test_alternatives_cost_what_they_say(spec, name):
    manifest = INPUTS / f"{name}.json"
    report = explain(spec, manifest)
    for strategy in ("gather", "local"):
        legal = all(
            one["legal"]
            for group in matrices(report)
            for one in group["strategies"]
            if one["strategy"] == strategy
        )
        if not legal:
            continue
        forced = explain(spec, manifest, *force(report, strategy))
        for before, after in zip(matrices(report), matrices(forced), strict=True):
            assert after["strategy"] == strategy and after["strategies"][0]["chosen"]
            said = next(one for one in before["strategies"] if one["strategy"] == strategy)
            assert said["cost"] == after["strategies"][0]["cost"], (name, before["parameters"])


def test_owner_of_one_block(spec):
    """An owner's share is arithmetic: a quarter of 48 × 16 from each of three others, and back."""
    report = explain(spec, INPUTS / "four_ranks.json", "--strategy", "*=owner")
    group = next(g for g in matrices(report) if g["parameters"] == ["layers.0.attn.qkv.weight"])
    cost = group["strategies"][0]["cost"]
    quarter, rows = 48 * 16 // 4, 48 // 4
    # m and o travel in bf16, and r, which divides on shards, in f32.
    assert cost["bytes_sent"] == {"min": 2 * quarter + 4 * rows, "max": 3 * (2 * quarter + 4 * rows)}
    assert report["communicators"] == [
        {"mesh": "fsdp", "factors": [{"axis": "fsdp", "stride": 1, "size": 4}], "ranks": 4, "exchanges": 2}
    ]
    # Both values share a message.
    assert cost["messages_sent"] == {"min": 1, "max": 3}
    assert group["blocks"] == 1 and group["waves"] == 1


@pytest.mark.parametrize("chip", ["h200", "h100"])
@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize(("form", "most"), [("precision = bf16", 20), ("precision = f16, form = auto", 24)])
def test_a_layer_of_llama_has_few_launches_of_products(tmp_path, form, most, ranks, chip):
    """In each form, by default. What explain prints of launches agrees with itself and with simulate."""
    sys.path.insert(0, str(ROOT / "test" / "gpu"))
    from libraries import LLAMA_8B, MUON, manifest, parameter

    placements = ["R"] if ranks == 1 else ["S(0)"]
    layer = [parameter(name, shape, "bf16", placements=placements) for name, shape in LLAMA_8B.items()]
    (tmp_path / "m.json").write_text(json.dumps(manifest(layer, sizes=(ranks,))))
    (tmp_path / "step.optim").write_text(MUON.replace("precision = bf16", form))
    options = (tmp_path / "step.optim", tmp_path / "m.json", "--cluster", chip, "--target", "cuda:sm_90a")
    report = explain(*options)
    launches = report["launches"]
    assert launches["count"] <= most
    each = launches["list"]
    assert launches["count"] == sum(one["times"] for one in each)
    for total, one_key in (("flops", "flops"), ("modelled_seconds", "modelled_seconds")):
        assert launches[total] == pytest.approx(sum(one["times"] * one[one_key] for one in each), rel=1e-9)
    # The rank's operations are those of its products, and two for each element of a norm.
    rank = next(one for one in report["ranks"] if one["global_rank"] == launches["global_rank"])
    assert 0 <= rank["flops"] - launches["flops"] <= 2 * sum(a * b for a, b in LLAMA_8B.values())
    assert launches["clusters"] == 66 and launches["clusters_beside_messages"] == 58
    for one in each:
        assert one["clusters"] == (58 if one["beside_messages"] else 66)
        assert one["even_share"] <= one["longest_list"] * 1.000001
        assert one["tiles"] > 0 and one["modelled_seconds"] > 0
    step = json.loads(stepc("simulate", options[0], "-m", *options[1:], "--json", "-"))
    same = next(one for one in step["ranks"] if one["global_rank"] == launches["global_rank"])
    assert same["product_launches"] == launches["count"]
    assert same["product_seconds"] == pytest.approx(launches["modelled_seconds"], rel=1e-9)


@pytest.mark.parametrize("target", ["cuda:sm_90a", "interpret:sm_90a,tensorcore"])
def test_launches_of_thin_products_take_their_memory_traffic(tmp_path, target):
    """Products of thin matrices wait for memory. explain and simulate say the same seconds of them."""
    sys.path.insert(0, str(ROOT / "test" / "gpu"))
    from libraries import MUON, manifest, parameter

    shapes = {"wide": (128, 16384), "tall": (8192, 96), "small": (64, 4096), "odd": (100, 5001)}
    model = [parameter(name, shape, "bf16", placements=["R"]) for name, shape in shapes.items()]
    (tmp_path / "m.json").write_text(json.dumps(manifest(model, sizes=(1,))))
    (tmp_path / "step.optim").write_text(MUON)
    options = ("--cluster", "h200", "--target", target)
    report = explain(tmp_path / "step.optim", tmp_path / "m.json", *options)
    launches, memory = report["launches"], report["cluster"]["device"]["memory_gb_per_s"] * 1e9
    arithmetic = 0
    for launch in launches["list"]:
        least = 0
        for one in launch["products"]:
            rates = [p["tflop_per_s"] for p in report["products"] if all(p[key] == one[key] for key in ("m", "n", "k"))]
            m, n, k = one["m"], one["n"], one["k"]
            seconds = one["blocks"] * 2 * m * n * k / (min(rates) * 1e12)
            arithmetic += launch["times"] * seconds
            least += one["blocks"] * 2 * (m * k + k * n + m * n) / memory
        assert launch["modelled_seconds"] >= least
    assert launches["modelled_seconds"] > 2 * arithmetic
    step = json.loads(stepc("simulate", tmp_path / "step.optim", "-m", tmp_path / "m.json", *options, "--json", "-"))
    (rank,) = step["ranks"]
    assert rank["product_launches"] == launches["count"]
    assert rank["product_seconds"] == pytest.approx(launches["modelled_seconds"], rel=1e-9)


def test_launches_of_square_matrices_differ_by_their_addend(tmp_path):
    """X Xᵀ and the polynomial of it have one shape. The polynomial has an addend, and takes more time."""
    sys.path.insert(0, str(ROOT / "test" / "gpu"))
    from libraries import MUON, manifest, parameter

    square = parameter("w", (4096, 4096), "bf16", placements=["R"])
    (tmp_path / "m.json").write_text(json.dumps(manifest([square], sizes=(1,))))
    (tmp_path / "step.optim").write_text(MUON)
    options = (tmp_path / "step.optim", tmp_path / "m.json", "--cluster", "h200", "--target", "cuda:sm_90a")
    gram, polynomial, last = explain(*options)["launches"]["list"]
    assert gram["times"] == polynomial["times"] == last["times"] == 5
    assert gram["products"] == polynomial["products"] != last["products"]
    assert gram["modelled_seconds"] < polynomial["modelled_seconds"]


ROWS = """
optimizer Muon(lr) {
  state m : f32
  m = 0.95 * m + grad
  param = param - lr * orthogonalize(m, precision = bf16)
}
optimizer NorMuon(lr) {
  state m : f32
  state v : f32[rows]
  m = 0.95 * m + grad
  let o = orthogonalize(m, precision = bf16)
  v = lerp(v, mean(o ^ 2, over = columns), 0.05)
  param = param - lr * o / (sqrt(v) + 1e-8)
}
route { RULE(lr = 0.02) for "*" }
"""


def test_a_value_per_row_travels_in_place_of_what_it_multiplies(tmp_path):
    """Two bytes an element go each way, and a few bytes a row."""
    mesh = {"name": "dp", "axes": [{"name": "dp", "size": 8}]}
    common = {"dtype": "bf16", "mesh": "dp", "placements": ["S(0)"]}
    shapes = {"attention": [4096, 4096], "mlp": [11008, 4096]}
    manifest = tmp_path / "m.json"
    manifest.write_text(
        json.dumps({"version": 1, "meshes": [mesh],
                    "parameters": [{"name": name, "shape": shape} | common for name, shape in shapes.items()]})
    )  # fmt: skip
    sent = {}
    for rule in ("Muon", "NorMuon"):
        path = tmp_path / f"{rule}.optim"
        path.write_text(ROWS.replace("RULE", rule))
        sent[rule] = explain(path, manifest, "--strategy", "*=owner")["total"]["bytes_sent"]["max"]
    assert sent["Muon"] < sent["NorMuon"] < 1.02 * sent["Muon"]


ROW_ADAM = """
optimizer RowAdam(lr, beta1 = 0.9, beta2 = 0.95, eps = 1e-8) {
  state m : f32
  state v : f32[rows]
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, mean(grad ^ 2, over = columns), 1 - beta2)
  param = param - lr * (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + eps)
}
route { RowAdam(lr = 0.02) for matrix }
"""


MOMENTS = """  state m : f32
  state v : f32
  m = lerp(m, grad, 1 - beta1)
  v = lerp(v, grad ^ 2, 1 - beta2)
"""
# Rules that reduce what ranks have parts of.
CUT = {
    "CAdamW": f"""optimizer CAdamW(lr, beta1 = 0.9, beta2 = 0.95) {{
{MOMENTS}  let u = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + 1e-8)
  let keep = select(u * grad > 0, 1, 0)
  param = param - lr * u * keep / max(mean(keep), 1e-3)
}}
route {{ CAdamW(lr = 0.02) for matrix }}
""",
    "Lamb": f"""optimizer Lamb(lr, beta1 = 0.9, beta2 = 0.95) {{
{MOMENTS}  let u = (m / (1 - beta1 ^ step)) / (sqrt(v / (1 - beta2 ^ step)) + 1e-8) + 0.01 * param
  param = param - lr * u * norm(param) / (norm(u) + 1e-6)
}}
route {{ Lamb(lr = 0.02) for matrix }}
""",
    "Adafactor": """optimizer Adafactor(lr, beta2 = 0.95) {
  state r : f32[rows]
  state c : f32[cols]
  let squares = grad ^ 2 + 1e-30
  r = lerp(r, mean(squares, over = columns), 1 - beta2)
  c = lerp(c, mean(squares, over = rows), 1 - beta2)
  let u = grad / sqrt(r * c / mean(r))
  param = param - lr * u / max(1, rms(u))
}
route { Adafactor(lr = 0.02) for matrix }
""",
    "Muon": """optimizer Muon(lr, mu = 0.95) {
  state m : f32
  m = mu * m + grad
  param = param - lr * orthogonalize(m)
}
route { Muon(lr = 0.02) for matrix }
""",
    "NorMuon": """optimizer NorMuon(lr, mu = 0.95, beta2 = 0.95) {
  state m : f32
  state v : f32[rows]
  m = mu * m + grad
  let o = orthogonalize(m)
  v = lerp(v, mean(o ^ 2, over = columns), 1 - beta2)
  let u = o / (sqrt(v) + 1e-8)
  param = param - lr * 0.2 * sqrt(numel) * u / norm(u)
}
route { NorMuon(lr = 0.02) for matrix }
""",
    "MuonH": """optimizer MuonH(lr, mu = 0.95) {
  state m : f32
  m = mu * m + grad
  let w = param - lr * orthogonalize(m) * norm(param)
  param = w * norm(param) / (norm(w) + 1e-6)
}
route { MuonH(lr = 0.02) for matrix }
""",
}


def qwen3(folder, ranks, placement):
    """The matrices of Qwen3-8B, without the embedding."""
    shapes = {"q": [4096, 4096], "k": [1024, 4096], "gate": [12288, 4096], "down": [4096, 12288],
              "o": [4096, 4096], "v": [1024, 4096], "up": [12288, 4096]}  # fmt: skip
    parameters = [{"name": f"{layer}.{name}", "shape": shape, "dtype": "bf16", "mesh": "dp", "placements": [placement]}
                  for layer in range(36) for name, shape in shapes.items()]  # fmt: skip
    manifest = folder / f"{ranks}.{placement}.json"
    meshes = [{"name": "dp", "axes": [{"name": "dp", "size": ranks}]}]
    manifest.write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": parameters}))
    return manifest


@pytest.mark.parametrize("ranks", [8, 64])
def test_sums_of_rows_that_are_whole_send_nothing(tmp_path, ranks):
    """By rows a number per row is all that the workspace has. By columns the parts of rows travel."""
    (tmp_path / "rows.optim").write_text(ROW_ADAM)
    report = explain(tmp_path / "rows.optim", qwen3(tmp_path, ranks, "S(0)"))
    assert report["total"]["bytes_sent"]["max"] == 0
    assert report["workspace_bytes_at_most"] < 1 << 20
    assert {group["rule"] for group in report["groups"]} == {"RowAdam"}
    rows = 36 * (3 * 4096 + 2 * 1024 + 2 * 12288)
    sent = explain(tmp_path / "rows.optim", qwen3(tmp_path, ranks, "S(1)"))["total"]["bytes_sent"]["max"]
    assert 40 * rows * (ranks - 1) / ranks < sent < 1.02 * 44 * rows


@pytest.mark.parametrize("ranks", [8, 64])
@pytest.mark.parametrize("name, sent, workspace", [
    ("CAdamW", 1 << 20, 1 << 24), ("Lamb", 2 << 20, 1 << 25), ("Adafactor", 1 << 26, 1 << 28)])  # fmt: skip
def test_sums_of_blocks_that_are_cut_send_no_elements(tmp_path, name, sent, workspace, ranks):
    (tmp_path / "s.optim").write_text(CUT[name])
    report = explain(tmp_path / "s.optim", qwen3(tmp_path, ranks, "S(0)"))
    assert 0 < report["total"]["bytes_sent"]["max"] <= sent
    assert report["workspace_bytes_at_most"] <= workspace


def test_norms_beside_orthogonalization_send_numbers(tmp_path):
    """On top of what Muon sends."""
    shapes = {"a": [4096, 4096], "b": [11008, 4096]}
    parameters = [{"name": name, "shape": shape, "dtype": "bf16", "mesh": "dp", "placements": ["S(0)"]}
                  for name, shape in shapes.items()]  # fmt: skip
    meshes = [{"name": "dp", "axes": [{"name": "dp", "size": 8}]}]
    (tmp_path / "m.json").write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": parameters}))
    sent = {}
    for name in ("Muon", "NorMuon", "MuonH"):
        (tmp_path / f"{name}.optim").write_text(CUT[name])
        report = explain(tmp_path / f"{name}.optim", tmp_path / "m.json", "--strategy", "*=owner")
        sent[name] = report["total"]["bytes_sent"]["max"]
    assert sent["Muon"] < sent["NorMuon"] <= 1.02 * sent["Muon"]
    assert sent["Muon"] < sent["MuonH"] <= 1.02 * sent["Muon"]


def test_what_ranks_hold_between_steps(tmp_path):
    """Shards of unequal length, a state per row, a master, fused matrices, and a parameter of some ranks."""
    spec, manifest = tmp_path / "held.optim", tmp_path / "held.json"
    spec.write_text("""
optimizer Held(lr) {
  master : f32
  state m : bf16
  state r : f32[rows]
  m = grad
  r = lerp(r, mean(grad * grad, over = columns), 0.5)
  param = param - lr * m / (sqrt(r) + 1e-8)
}
blocks "fused" rows 3, 4
route { Held(lr = 0.02) for matrix }
""")
    mesh = {"name": "all", "axes": [{"name": "dp", "size": 3}]}
    pair = {"name": "two", "axes": [{"name": "tp", "size": 2}], "ranks": [1, 2]}
    parameters = [
        {"name": "uneven", "shape": [7, 5], "dtype": "bf16", "grad_dtype": "f32", "mesh": "all", "placements": ["S(0)"]},
        {"name": "columns", "shape": [4, 6], "dtype": "f32", "mesh": "two", "placements": ["S(1)"]},
        {"name": "fused", "shape": [7, 2], "dtype": "f32", "mesh": "two", "placements": ["R"]},
    ]
    manifest.write_text(json.dumps({"version": 1, "meshes": [mesh, pair], "parameters": parameters}))
    report = explain(spec, manifest)
    rows = [3, 3, 1]  # of the first parameter
    expected = [
        {
            "parameter_bytes": rows[rank] * 5 * 2 + (rank > 0) * (4 * 3 * 4 + 7 * 2 * 4),
            "gradient_bytes": rows[rank] * 5 * 4 + (rank > 0) * (4 * 3 * 4 + 7 * 2 * 4),
            # A master of 4 bytes only of bf16, and a number per row: of all rows, where columns are cut.
            "state_bytes": rows[rank] * (5 * (2 + 4) + 4) + (rank > 0) * (4 * (3 * 2 + 4) + 7 * (2 * 2 + 4)),
        }
        for rank in range(3)
    ]
    assert [{key: rank[key] for key in expected[0]} for rank in report["ranks"]] == expected
    assert [group["state_bytes"] for group in report["groups"]] == [
        {"min": 34, "max": 102}, {"min": 40, "max": 40}, {"min": 56, "max": 56}, {"min": 0, "max": 0}]  # fmt: skip
