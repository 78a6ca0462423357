"""Divided and flattened matrices: each part of a parameter is a matrix of its own, wherever the shards end.

A parameter with blocks, on many ranks, must have the bytes of its parts as parameters of their own on one
rank: the parameter, and states of every kind. A flattened one is a matrix there, too. STEPC_SEED repeats a
run.
"""

import json
import math
import os
import random
import re

import numpy as np
import pytest
from cases import BESIDE, renamed
from compiler import STEPC, CompilerFailed, load, run, save, stepc, tensor
from random_layouts import Mesh, matrix_shape, parts_of, random_blocks, random_layout
from random_rules import random_rule
from tiers import draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
STEPS = 2
SPEC = """
optimizer Muon(lr) {
  state m : f32
  m = 0.95 * m + grad
  let o = orthogonalize(grad + 0.95 * m, steps = 2, precision = bf16)
  param = (1 - lr * 0.1) * param - lr * 0.2 * sqrt(max(rows, cols)) * o / numel
}
optimizer Factored(lr) {
  state r : f32[rows]
  state c : f32[cols]
  state n : f32[]
  master : f32
  r = lerp(r, mean(grad * grad, over = columns), 0.1)
  c = lerp(c, mean(grad * grad, over = rows), 0.1)
  n = 0.9 * n + rms(grad) + step * rows
  param = param - lr * grad / (sqrt(r * c) + n + 1e-3)
}
optimizer Scaled(lr) {
  state v : f32
  v = lerp(v, grad * grad, 0.1)
  param = param - lr * sqrt(rows / cols) * grad / (sqrt(v) + 1e-8)
}
optimizer Plain(lr) {
  state v : f32
  v = lerp(v, grad * grad, 0.1)
  param = param - lr * grad / (sqrt(v) + 1e-8)
}
route {
  Muon(lr = 0.02) for "muon*" if present
  Factored(lr = 0.02) for "factored*" if present
  Scaled(lr = 0.02) for "scaled*" if present
  Plain(lr = 0.02) for rest
}
"""
RULES = {"muon": {"m": "full"}, "factored": {"r": "rows", "c": "cols", "n": "one", "master": "full"},
         "scaled": {"v": "full"}, "plain": {"v": "full"}}  # fmt: skip


def cut(values, kind, blocks, part, index, batch):
    """What one part has of a value; all without blocks."""
    if blocks is None:
        return values
    axis = 0 if blocks["axis"] == "rows" else 1
    dropped = kind == "one" or kind == ("cols" if axis == 0 else "rows")
    if dropped:  # an element per part stands where the divided axis was
        at = batch if kind in ("one", "cols") else batch + 1
        return np.take(values, part, axis=at)
    return np.take(values, index, axis=batch + (axis if kind == "full" else 0))


def numbered(p):
    """Each part's number and what is its own of the divided axis."""
    return list(enumerate(parts_of(p["blocks"]) if p.get("blocks") else [None]))


def as_matrix(values, kind, p):
    """A value of a flattened parameter, with one axis for its rows and one for its columns."""
    batch, flatten, shape = p.get("batch_axes", 0), p.get("flatten", 0), values.shape
    if not flatten:
        return values
    if kind in ("full", "rows"):
        values = values.reshape(*shape[:batch], math.prod(shape[batch:flatten]), *shape[flatten:])
    if kind in ("full", "cols"):
        columns = len(p["shape"]) - flatten
        shape = values.shape[: values.ndim - columns]
        values = values.reshape(*shape, math.prod(p["shape"][flatten:]))
    return values


LISTS = ("placements", "grad_placements", "state_placements")


class Case:
    """Parameters on meshes, the same on one rank, and their parts as parameters there: one library for all of
    these, which share its kernels. `meshes`: sizes by name."""

    def __init__(self, parameters, meshes):
        self.parameters = parameters
        self.many = {"version": 1, "parameters": parameters, "meshes": [
            {"name": name, "axes": [{"name": f"x{i}", "size": size} for i, size in enumerate(sizes)]}
            for name, sizes in meshes.items()]}  # fmt: skip
        one = [{"name": "one", "axes": [{"name": "x", "size": 1}]}]
        self.alone = {"version": 1, "meshes": one, "parameters": []}
        for p in parameters:
            own = {k: v for k, v in p.items() if k not in LISTS} | {"placements": ["R"], "mesh": "one"}
            self.alone["parameters"].append(own | {"name": p["name"] + BESIDE})
            blocks = own.pop("blocks", None)
            flatten = own.pop("flatten", 0)
            for i, index in numbered(p):
                shape = list(matrix_shape(p["shape"], p.get("batch_axes", 0), flatten))
                if blocks:
                    shape[-2 if blocks["axis"] == "rows" else -1] = len(index)
                own |= {"batch_axes": p.get("batch_axes", 0) if len(shape) > 2 else 0}
                self.alone["parameters"].append({**own, "name": f"{p['name']}.{i}", "shape": shape})
        self.all = {
            key: value if key == "version" else value + self.alone[key] for key, value in self.many.items()
        }

    def tensors(self, seed):
        """(of the parameters, of these on one rank and of their parts)."""
        generator = np.random.default_rng(list(str(seed).encode()))
        whole, alone = {}, {}
        for p in self.parameters:
            name, batch = p["name"], p.get("batch_axes", 0)
            for key in (
                f"param:{name}",
                *(f"grad:{name}@{step}" for step in range(1, STEPS + 1)),
            ):
                values = generator.normal(size=p["shape"])
                dtype = p["dtype"] if key[0] == "p" else p.get("grad_dtype", p["dtype"])
                whole[key] = alone[renamed(key)] = tensor(values, dtype)
                for i, index in numbered(p):
                    own = cut(as_matrix(values, "full", p), "full", p.get("blocks"), i, index, batch)
                    alone[key.replace(name, f"{name}.{i}")] = tensor(own, dtype)
        return whole, alone

    def check(self, folder, seed, *options, spec=SPEC, kinds=RULES):
        """All bytes of the run on many ranks; how the reference and one rank agree with the parts."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spec.optim").write_text(spec)
        whole, alone = self.tensors(seed)

        def step(name, document, tensors, *options):
            (folder / f"{name}.json").write_text(json.dumps(document, indent=1))
            save(folder / f"{name}.safetensors", tensors)
            return run(folder / "spec.optim", folder / f"{name}.json", folder / f"{name}.safetensors",
                       folder / "out.safetensors", *options, steps=STEPS)  # fmt: skip

        found = step("all", self.all, whole | alone, *options)
        names = {p["name"] for p in self.parameters}
        many = {key: one for key, one in found.items() if key.split(":")[1] in names}
        wrong = [key for key, one in many.items() if found[renamed(key)] != one]
        assert many and not wrong, wrong
        self.compare(found, kinds)
        self.compare(step("alone", self.alone, alone, "--reference"), kinds)

    def check_statements(self, folder, statements):
        """The bytes that statements of the specification give in the place of what the manifest says of
        blocks.
        """
        spec, manifest, tensors = (folder / name for name in ("spec.optim", "m.json", "in.safetensors"))
        save(tensors, self.tensors(3)[0])

        def step(text, document):
            spec.write_text(text)
            manifest.write_text(json.dumps(document))
            return run(spec, manifest, tensors, folder / "out.safetensors", steps=STEPS)

        bare = [{k: v for k, v in p.items() if k not in ("blocks", "flatten")} for p in self.parameters]
        assert bare != self.parameters
        assert step(SPEC + statements, self.many | {"parameters": bare}) == step(SPEC, self.many)

    def compare(self, found, kinds):
        """Parameters on one rank with their parts."""
        for p in self.parameters:
            name, batch, blocks = p["name"], p.get("batch_axes", 0), p.get("blocks")
            values = {f"param:{name}": "full"}
            values |= {f"state:{name}:{s}": kind for s, kind in kinds[name.split(".")[0]].items()}
            for i, index in numbered(p):
                assert found[f"state:{name}{BESIDE}:step"] == found[f"state:{name}.{i}:step"]
                for key, kind in values.items():
                    if renamed(key) not in found:  # a master of f32
                        assert "master" in key or kind == "full"
                        continue
                    own = found[key.replace(name, f"{name}.{i}")]
                    there = cut(
                        as_matrix(found[renamed(key)].array(), kind, p), kind, blocks, i, index, batch
                    )
                    assert there.shape == own.shape, key
                    assert np.array_equal(there, own.array(), equal_nan=True), (
                        key,
                        i,
                        blocks,
                    )


def parameter(name, shape, placements, blocks=None, **more):
    return {"name": name, "shape": list(shape), "dtype": "f32", "mesh": "m", "placements": placements,
            **({"blocks": blocks} if blocks else {}), **more}  # fmt: skip


FUSED = [
    {
        "axis": "rows",
        "runs": [[[0, 40]], [[40, 50]], [[50, 60]]],
    },  # rows 0-4096, 4096-5120, 5120-6144, smaller
    {"axis": "rows", "sizes": [10, 3, 2], "repeat": 4},  # Megatron's QKV
    {"axis": "columns", "sizes": [7, 9], "repeat": 2},
]


LAYOUTS = [((4,), ["S(0)"]), ((4,), ["S(1)"]), ((7,), ["S(0)"]), ((2, 4), ["_S(0, 4)", "S(0)"]),
           ((2, 4), ["R", "S(0)"]), ((2, 4), ["S(1)", "S(0)"])]  # fmt: skip


@pytest.mark.parametrize("strategy", ["owner", "gather"])
def test_parts_step_as_matrices_of_their_own(tmp_path, strategy):
    parameters = [parameter(f"{rule}.{i}.{mesh}", (60, 32), placements, blocks, mesh=f"m{mesh}")
                  for rule in RULES for i, blocks in enumerate(FUSED)
                  for mesh, (_, placements) in enumerate(LAYOUTS)]  # fmt: skip
    meshes = {f"m{mesh}": sizes for mesh, (sizes, _) in enumerate(LAYOUTS)}
    Case(parameters, meshes).check(tmp_path, 1, "--strategy", f"muon*={strategy}", "--strategy",
                                   f"factored*={strategy}", "--waves", 2)  # fmt: skip


@pytest.mark.parametrize("strategy", ["owner", "gather"])
def test_experts_in_the_rows_of_a_matrix(tmp_path, strategy):
    """Seven experts with gate and up are fourteen equal blocks of one group, on ranks that do not divide
    them; so are columns.
    """
    parameters = [parameter(f"{rule}.{i}.{mesh}", shape, [p.replace("0", str(dim)) if dim else p for p in placements],
                            blocks, mesh=f"m{mesh}")
                  for rule in RULES for i, (dim, shape, blocks) in enumerate([
                      (0, (42, 9), {"axis": "rows", "sizes": [3] * 14}),
                      (1, (9, 42), {"axis": "columns", "sizes": [6] * 7}),
                      (0, (42, 9), {"axis": "rows", "sizes": [1, 2] * 2, "repeat": 7})])
                  for mesh, (_, placements) in enumerate([LAYOUTS[0], LAYOUTS[2], LAYOUTS[4]])]  # fmt: skip
    meshes = {f"m{mesh}": sizes for mesh, (sizes, _) in enumerate([LAYOUTS[0], LAYOUTS[2], LAYOUTS[4]])}
    case = Case(parameters, meshes)
    case.check(
        tmp_path, 5, "--strategy", f"muon*={strategy}", "--strategy", f"factored*={strategy}", "--waves", 2
    )
    decided = stepc(
        "compile", tmp_path / "spec.optim", "-m", tmp_path / "all.json", "--emit", "decided", "-o", "-"
    )
    groups = re.findall(r"parts \[([0-9, ]*)\]", decided)
    assert sorted({len(group.split(",")) for group in groups}) == [2, 7, 14], groups


def test_the_specification_divides_as_the_manifest(tmp_path):
    """Statements instead of the manifest's blocks give the same bytes, wherever shards end."""
    said = ['repeat 4 rows 10, 3, 2', 'columns each 8', 'rows split 3', 'repeat 2 columns 7, 9']
    equal = [{"axis": "rows", "sizes": [10, 3, 2], "repeat": 4}, {"axis": "columns", "sizes": [8] * 4},
             {"axis": "rows", "sizes": [20] * 3}, {"axis": "columns", "sizes": [7, 9], "repeat": 2}]  # fmt: skip
    parameters = [parameter(f"{rule}.{i}.{mesh}", (60, 32), placements, blocks, mesh=f"m{mesh}")
                  for rule in ("muon", "factored") for i, blocks in enumerate(equal)
                  for mesh, (_, placements) in enumerate(LAYOUTS)]  # fmt: skip
    case = Case(parameters, {f"m{mesh}": sizes for mesh, (sizes, _) in enumerate(LAYOUTS)})
    case.check_statements(tmp_path, "".join(f'blocks "*.{i}.?" {text}\n' for i, text in enumerate(said)))


def test_fused_attention_of_true_size(tmp_path):
    """Queries, keys and values in 6144 rows, one after the other and interleaved by group of heads;
    shards end elsewhere.
    """
    runs = [[[0, 4096]], [[4096, 5120]], [[5120, 6144]]]
    fused = [{"axis": "rows", "runs": runs}, {"axis": "rows", "sizes": [512, 128, 128], "repeat": 8}]
    parameters = [parameter(f"{rule}.{i}", (6144, 8), ["S(0)"], blocks)
                  for rule in ("muon", "factored") for i, blocks in enumerate(fused)]  # fmt: skip
    Case(parameters, {"m": (7,)}).check(tmp_path, 1, "--strategy", "*=owner")


def test_random_parts(tmp_path, capsys):
    """Random shapes, blocks and placements; lists of their own; stacks; replicas; types."""
    source, counts = random.Random(SEED), {}
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}", end="")
    for number in range(int(os.environ.get("STEPC_BLOCKS") or draws(5))):
        sizes = source.choice([(1,), (3,), (5,), (2, 2), (2, 4), (3, 2)])
        mesh = Mesh("m", sizes, list(range(int(np.prod(sizes)))))
        rules = [random_rule(source, "random", "matrix", forms=True)]
        text = rules[0].text + SPEC.replace("route {", 'route {\n  random() for "random*" if present')
        kinds = {
            **RULES,
            "random": {name: kind for name, (_, kind) in rules[0].states.items()} | {"master": "full"},
        }
        parameters = []
        for i in range(6):
            layout = random_layout(
                source,
                mesh,
                rules[0],
                batched=source.random() < 0.3,
                whole=source.random() < 0.2,
            )
            matrix = layout.matrix
            if len(matrix) < 2 or len(matrix) - layout.batch != 2 or max(matrix[-2:]) < 2:
                continue
            blocks = None if layout.flatten and source.random() < 0.3 else random_blocks(source, matrix)
            name = source.choice(["muon", "factored", "scaled", "plain", "random", "random"])
            lists = {
                "grad_placements": layout.gradient,
                "state_placements": layout.state,
            }
            one = parameter(f"{name}.{i}", layout.shape, layout.placements, blocks,
                            batch_axes=layout.batch, dtype=source.choice(["f32", "bf16"]), grad_dtype="f32",
                            **{k: v for k, v in lists.items() if v},
                            **({"flatten": layout.flatten} if layout.flatten else {}))  # fmt: skip
            parameters.append(one)
            for trait in (name, *([blocks["axis"], "runs" if "runs" in blocks else "sizes"] if blocks else []),
                          *(["lists"] if layout.gradient or layout.state else []),
                          *(["flattened"] if layout.flatten else [])):  # fmt: skip
                counts[trait] = counts.get(trait, 0) + 1
        options = ["--waves", source.randint(1, 3), "--threads", source.randint(1, 3)]
        # A strategy that is forced on rules without a matrix space is an error.
        computes = any(each["name"].startswith(("muon", "factored")) for each in parameters)
        if computes and source.random() < 0.7:
            options += ["--strategy", f"*={source.choice(['owner', 'gather'])}"]
        if parameters:
            Case(parameters, {"m": sizes}).check(
                tmp_path / str(number),
                f"{SEED}-{number}",
                *options,
                spec=text,
                kinds=kinds,
            )
    with capsys.disabled():
        print(f": {counts}", end=" ")


def test_text_of_every_level_is_the_program(tmp_path):
    """And a library says how its parameters are divided: a manifest with other blocks is another one."""
    case = Case([parameter(f"{rule}.0", (60, 32), ["S(0)"], FUSED[1]) for rule in RULES], {"m": (4,)})
    case.check(tmp_path, 2)
    spec, many, whole = (tmp_path / name for name in ("spec.optim", "many.json", "whole.safetensors"))
    many.write_text(json.dumps(case.many))
    save(whole, case.tensors(2)[0])
    expected = run(spec, many, whole, tmp_path / "out.safetensors", steps=STEPS)
    last = stepc("compile", spec, "-m", many, "--emit", "llvm", "-o", "-")
    for level in ("optim", "decided", "comm", "scheduled", "exec"):
        text = tmp_path / f"{level}.mlir"
        text.write_text(stepc("compile", spec, "-m", many, "--emit", level, "-o", "-"))
        assert stepc("compile", text, "--emit", "llvm", "-o", "-") == last
    # Groups may stand in any order.
    text = (tmp_path / "decided.mlir").read_text()
    groups = re.findall(r"  optim\.group .*\n", text)
    assert sum(" parts " in group for group in groups) == 9
    (tmp_path / "turned.mlir").write_text(text.replace("".join(groups), "".join(reversed(groups))))
    stepc("compile", tmp_path / "turned.mlir", "-o", tmp_path / "turned")
    (library,) = (tmp_path / "turned").glob("*.so")
    arguments = (
        "--tensors",
        whole,
        "--steps",
        STEPS,
        "--library",
        library,
        "-o",
        tmp_path / "again.safetensors",
    )
    stepc("run", spec, "-m", many, *arguments)
    assert load(tmp_path / "again.safetensors") == expected
    # All parts of a parameter have a group.
    (tmp_path / "less.mlir").write_text(text.replace(groups[1], ""))
    with pytest.raises(CompilerFailed, match="expected groups of all 3 parts, found 2"):
        stepc("compile", tmp_path / "less.mlir", "-o", tmp_path / "less")
    case.many["parameters"][0]["blocks"] = FUSED[0]
    (tmp_path / "other.json").write_text(json.dumps(case.many))
    with pytest.raises(
        CompilerFailed,
        match="expected the manifest's blocks of parameter 'muon.0', found another",
    ):
        stepc("run", spec, "-m", tmp_path / "other.json", *arguments)


def test_a_skipped_step_is_one_for_all_parts(tmp_path):
    """Without a gradient in the second step: no part of it steps, and the count says so once."""
    parameters = [parameter(f"{rule}.0", (60, 32), ["S(0)"], FUSED[1]) for rule in RULES]
    case = Case(parameters, {"m": (4,)})
    whole, _ = case.tensors(3)
    first = {k: v for k, v in whole.items() if k[-2:] != "@2"}
    save(tmp_path / "one.safetensors", first)
    save(tmp_path / "two.safetensors", first | {k: v for k, v in whole.items() if "plain" in k})
    (tmp_path / "spec.optim").write_text(SPEC.replace("lr = 0.02", "lr = 0.02, missing_grad = skip"))
    (tmp_path / "m.json").write_text(json.dumps(case.many))
    once, twice = (
        run(tmp_path / "spec.optim", tmp_path / "m.json", tmp_path / f"{name}.safetensors", tmp_path / "out", steps=steps)
        for name, steps in (("one", 1), ("two", 2))
    )
    changed = {key for key in once if once[key] != twice[key]}
    assert changed == {"param:plain.0", "state:plain.0:v", "state:plain.0:step"}
    assert all(once[f"state:{rule}.0:step"].array() == 1 for rule in RULES)
