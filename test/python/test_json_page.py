"""docs/json.md has the keys of the JSON that stepc writes, with their types, and no others."""

import json
import re
import subprocess

import pytest
from conftest import ROOT, real_compiler

SPEC = ROOT / "examples" / "muon.optim"
MANIFEST = ROOT / "examples" / "four_ranks.json"
NAMED = ("routes[].defaults", "model", "model_states")  # objects whose keys the specification gives
# What no example asks for here: the other tests of products and of copies of NCCL do.
PINNED = "pinned"

DEFINITION = """
optimizer Muon(lr, mu = 0.95) wide {
  state m : f32
  m = momentum(m, grad, mu)
  param = param - lr * orthogonalize(m)
}
model(max_norm = 1) {
  state most : f32
  let total = norm(grad)
  skip when not finite(total)
  most = max(most, total)
  grad = min(1, max_norm / total) * grad
}
optimizer Sgd(lr) {
  param = param - lr * grad
}
blocks "*.qkv" rows 16, 8, 8
blocks "*.conv" flatten 1
route {
  Muon(lr = 0.02) for matrix
  Sgd(lr = 0.1) for rest
}
"""


def documented(title):
    """Types by key of one section."""
    page = (ROOT / "docs" / "json.md").read_text()
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)[1]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, re.M)
    assert len(rows) == len({key for key, _ in rows}) > 0
    return dict(rows)


def kinds(value, path=""):
    """The keys of a JSON value, each with what it holds: [("groups[].shape", "list of integers"), …]."""
    if isinstance(value, dict):
        if path:
            yield path, "object"
        for key, one in value.items():
            name = f"{path}.*" if path in NAMED else f"{path}.{key}".lstrip(".")
            yield from kinds(one, name)
    elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for one in value:
            yield f"{path}[]", "list of objects"
            for key, under in one.items():
                yield from kinds(under, f"{path}[].{key}")
    else:
        yield path, kind(value)


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, list):
        inner = {kind(one) for one in value}
        if len(inner) != 1:
            return f"list of {inner}" if inner else "list"
        one = inner.pop()
        return "list of " + (one.replace("list", "lists", 1) if one.startswith("list") else one + "s")
    return {int: "integer", float: "number", str: "text"}[type(value)]


def shared(key):
    """The key that the page has in place of one of an object that stands in several places."""
    operand = r"commands\[\]\.(lhs|rhs|addend|out|source|sources\[\]|target|value|sent|received|runs\[\]\.operands\[\]|runs\[\]\.source)\."
    for pattern, name in (
        (operand, "operand."),
        (r"tables\[\]\.to\.", "tables[].from."),
        (r"commands\[\]\.communicator\.", "exchanges[].communicator."),
    ):
        key = re.sub(f"^{pattern}", name, key)
    return key


def fits(found, written):
    """Whether a value is of a kind that the page says; an empty list fits any list."""
    return any(
        found == one
        or (found == "integer" and one == "number")
        or (found == "list" and one.startswith("list of"))
        for one in written.split(" or ")
    )


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Outputs of each command: of models, targets and options that have all keys between them."""
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    folder = tmp_path_factory.mktemp("json")

    def run(*command):
        done = subprocess.run([compiler, *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def parameter(name, shape, placements, **rest):
        return {
            "name": name,
            "shape": shape,
            "dtype": "bf16",
            "mesh": "grid",
            "placements": placements,
        } | rest

    (folder / "blocks.optim").write_text(DEFINITION)
    (folder / "blocks.json").write_text(json.dumps({
        "version": 1,
        "meshes": [{"name": "grid", "axes": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]}],
        "cluster": {"levels": [{"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 2},
                               {"name": "network", "gb_per_s": 10, "latency_us": 20}]},
        "parameters": [
            parameter("a.qkv", [32, 16], ["R", "S(0)"], blocks={"axis": "rows", "sizes": [16, 16]}),
            parameter("a.conv", [8, 4, 3, 3], ["S(0)", "R"]),
            parameter("a.w", [24, 16], ["S(0)", "S(1)"], grad_placements=["P(avg)", "S(1)"], state_placements=["S(0)", "S(1)"]),
            parameter("a.bias", [16], ["R", "R"]),
        ],
    }))  # fmt: skip
    example, blocks = (SPEC, "-m", MANIFEST), (folder / "blocks.optim", "-m", folder / "blocks.json")
    made = {"explain": [], "simulate": [], "check": [], "plan": []}
    for options in (
        [*example],
        [*example, "--workspace-limit", "64MiB"],
        [*example, "--state-limit", "64MiB"],
        [*example, "--target", "cuda:sm_90,ptx"],
        [*example, "--target", "cuda:sm_90a"],
        [*blocks],
    ):
        made["explain"].append(json.loads(run("explain", *options, "--json")))
    for options in ([*example], [*example, "--target", "cuda:sm_90a"], [*blocks]):
        made["simulate"].append(json.loads(run("simulate", *options, "--json", "-")))
    for options in ([*example], [*blocks]):
        made["check"].append(json.loads(run("check", *options, "--json")))
    emulated = [*example, "--target", "emulated"]  # starts kernels as a GPU does
    for index, options in enumerate(([*example], [*example, "--strategy", "*=gather"], [*blocks], emulated)):
        run("compile", *options, "-O0", "-o", folder / str(index))
        made["plan"].append(json.loads(next((folder / str(index)).glob("*.json")).read_text()))
    return made


@pytest.mark.parametrize(("title", "what"), [
    ("stepc explain --json", "explain"), ("stepc simulate --json", "simulate"),
    ("stepc check --json", "check"), ("The library's description", "plan"),
])  # fmt: skip
def test_page_and_outputs_agree(outputs, title, what):
    page, found = documented(title), {}
    for output in outputs[what]:
        for key, one in kinds(output):
            key = shared(key)
            # An empty list says nothing of its entries.
            entries = one == "list" and f"{key}[]" in page
            found.setdefault(f"{key}[]" if entries else key, set()).add("list of objects" if entries else one)
    # A table of products needs a GPU to be made; test_pinned_products.py has its keys.
    apart = {key for key in page if PINNED in key}
    assert set(found) == set(page) - apart
    for key, ones in found.items():
        for one in ones:
            assert fits(one, page[key]), (key, one, page[key])


def test_pinned_keys_are_those_of_the_writers(outputs):
    """The keys that need a table are compared with the sources that write them."""
    for title, path, begin, end in (
        ("stepc explain --json", "passes/explain/Json.cpp", "PinnedAlgorithm &each", "});\n"),
        ("The library's description", "runtime/plan/commands/Matrix.h", "struct PinnedAlgorithm", "};\n"),
    ):
        text = (ROOT / path).read_text()
        block = text[text.index(begin) :]
        block = block[: block.index(end)]
        written = set(re.findall(r'(?:visit\(|\{)"(\w+)",', block))
        page = {key.split(".")[-1] for key in documented(title) if re.search(r"\bpinned\[\]\.", key)}
        assert page == written


def test_kinds_of_commands_are_those_of_the_plan():
    """A program of every kind is hard to make, so the names are compared with the structs."""
    structs = (ROOT / "runtime" / "plan" / "commands").glob("*.h")
    names = {name for path in structs for name in re.findall(r'std::string_view kName = "(\w+)"', path.read_text())}
    page = (ROOT / "docs" / "json.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `commands[].kind` |"))
    assert set(re.findall(r"`(\w+)`", row)) == names
