"""States that stay with the ranks that compute their blocks: a step on a random mesh has the bits of a step on one rank,
on every target, and states come out whole. A limit of their bytes is obeyed or refused. STEPC_SEED repeats a run."""

import json
import os
import random
from collections import Counter

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, run, save, stepc, tensor
from random_layouts import random_meshes, random_placements
from tiers import cases, draws, tier

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
CASES = draws(8)
TARGETS = ("cpu", "interpret", "emulated:sm_80")
STRATEGIES = ("", "owner", "gather", "agrs", "hierarchical", "subgroup-gather")
# Ranks in nodes of two, so that blocks may come together in two hops.
CLUSTER = {
    "levels": [{"name": "node", "ranks": 2, "gb_per_s": 100, "latency_us": 1},
               {"name": "network", "gb_per_s": 10, "latency_us": 10}],
}  # fmt: skip

POLAR = "coefficients = [(1.5, -0.5, 0)], precision = f32"
# Each reads and writes `v` between two operations on whole matrices.
RULES = {
    "between": f"""
      state m : f32
      state v : f32
      m = lerp(m, grad, 0.1)
      let o = orthogonalize(m, {POLAR})
      v = lerp(v, o ^ 2, 0.05)
      param = param - lr * orthogonalize(o / (sqrt(v) + 1e-8), {POLAR})""",
    # The state is of bf16, starts at one, and is read by a reduction.
    "narrow": f"""
      state v : bf16 = 1
      let o = orthogonalize(grad, {POLAR})
      v = lerp(v, abs(o), 0.5)
      param = param - lr * orthogonalize(o / (v + mean(v * o)), {POLAR})""",
    # Two states, of which one is a function of the other, and one on shards.
    "two": f"""
      state m : f32
      state a : f32
      state b : f32
      m = m + grad
      let o = orthogonalize(m, {POLAR})
      a = lerp(a, o, 0.25)
      b = max(b, abs(a))
      param = 0.99 * param - lr * orthogonalize(o + a / (b + 1e-3), {POLAR}) * (1 + abs(m))""",
    # The parameter has a master, which lies as the parameter does.
    "master": f"""
      master : f32
      state v : f32
      let o = orthogonalize(grad, {POLAR})
      v = lerp(v, o ^ 2, 0.05)
      param = param - lr * orthogonalize(o / (sqrt(v) + 1e-8), {POLAR})""",
    # Two rules have states of their own sizes. The second also has a state that could be on shards.
    "square": """
      state L : f32[rows, rows] = identity
      state R : bf16[cols, cols]
      state v : f32
      L = lerp(L, grad @ transpose(grad), 0.25)
      R = lerp(R, transpose(grad) @ grad, 0.25)
      let u = transpose(L) @ grad @ cast(R, f32)
      v = lerp(v, u ^ 2, 0.25)
      param = param - lr * L @ (u / (1 + sqrt(v))) * (1 + max(abs(L - transpose(L))))""",
    # The rule computes the size of its state, and starts some elements at random.
    "low rank": """
      let r = max(1, floor(0.5 * min(rows, cols)))
      state Q : f32[cols, r] = normal
      state w : f16[r, 4] = 0.5
      let P = grad @ Q
      w = 0.5 * w + 0.01 * norm(transpose(P), over = columns)
      Q = Q + 0.125 * (cast(transpose(grad), bf16) @ cast(P, bf16)) * transpose(sum(cast(w, f32), over = columns))
      param = param - lr * P @ transpose(Q)""",
    # No value that travels depends on the state, and the rule multiplies no matrices.
    "apart": """
      state S : f32[cols, cols]
      S = 0.5 * S + identity(cols) * sum(grad, over = rows)
      param = param - lr * grad * max(abs(S))""",
}
STAYING = {"between": ["v"], "narrow": ["v"], "two": ["a", "b"], "master": ["v"], "square": ["L", "R", "v"],
           "low rank": ["Q", "w"], "apart": ["S"]}  # fmt: skip


def spec(name, missing=""):
    return f"optimizer R(lr) {{{RULES[name]}\n}}\nroute {{ R(lr = 0.5{missing}) for matrix }}\n"


def values(draw, shape, dtype):
    numbers = draw.standard_normal(shape).astype(np.float32)
    if dtype == "bf16":
        numbers = (numbers.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return tensor(numbers, dtype)


def bytes_of(tensors):
    return {name: (one.dtype, one.shape, bytes(one.data)) for name, one in tensors.items()}


def expect_equal(found, expected, where):
    found, expected = bytes_of(found), bytes_of(expected)
    different = [key for key in expected if found.get(key) != expected[key]]
    assert not different and found.keys() == expected.keys(), f"{where}\n{different}"


def random_parameters(chosen, mesh):
    """Parameters of up to three shapes, some of them several, on the mesh."""
    parameters = []
    for kind in range(chosen.randint(1, 3)):
        batch, flatten = chosen.randint(0, 1), chosen.random() < 0.2
        shape = [chosen.randint(1, 5)] * batch + [chosen.randint(1, 20), chosen.randint(1, 20)]
        shape += [chosen.randint(1, 3)] * flatten
        one = {"shape": shape, "dtype": chosen.choice(("f32", "bf16")), "batch_axes": batch,
               **({"flatten": batch + 1} if flatten else {}),
               "placements": random_placements(chosen, mesh, tuple(shape), list(range(len(shape))))}  # fmt: skip
        one["grad_dtype"] = chosen.choice((one["dtype"], "f32"))
        if chosen.random() < 0.3:
            own = random_placements(chosen, mesh, tuple(shape), list(range(len(shape))))
            one |= {} if own == one["placements"] else {"state_placements": own}
        for number in range(chosen.randint(1, 3)):
            parameters.append({"name": f"p{kind}.{number}", "mesh": mesh.name, **one})
    return parameters


def manifest_of(meshes, parameters):
    return json.dumps({"version": 1, "meshes": meshes, "parameters": parameters, "cluster": CLUSTER})


def alone(parameters):
    gone = ("placements", "state_placements", "mesh")
    return [{key: value for key, value in one.items() if key not in gone} | {"mesh": "one", "placements": ["R"]}
            for one in parameters]  # fmt: skip


def check(folder, chosen, draw):
    """Steps a random case on its mesh and on one rank. Returns what it was."""
    folder.mkdir()
    name, target, strategy = chosen.choice(list(RULES)), chosen.choice(TARGETS), chosen.choice(STRATEGIES)
    mesh = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4, 6))))
    parameters = random_parameters(chosen, mesh)
    skipped = chosen.random() < 0.3
    (folder / "r.optim").write_text(spec(name, ", missing_grad = skip" if skipped else ""))
    (folder / "many.json").write_text(manifest_of([mesh.json()], parameters))
    one = {"name": "one", "axes": [{"name": "dp", "size": 1}]}
    (folder / "one.json").write_text(manifest_of([one], alone(parameters)))
    tensors = {}
    for each in parameters:
        tensors["param:" + each["name"]] = values(draw, each["shape"], each["dtype"])
        for step in (1, 2):
            if not (skipped and chosen.random() < 0.4):
                tensors[f"grad:{each['name']}@{step}"] = values(draw, each["shape"], each["grad_dtype"])
    save(folder / "in", tensors)
    options = ["--target", target, "--waves", str(chosen.randint(1, 3))]
    options += ["--strategy", f"*={strategy}"] if strategy else []
    where = f"STEPC_SEED={SEED} {folder.name}: {name} on {target}, {options}, {mesh}, {parameters}"
    files = (folder / "r.optim", folder / "many.json", folder / "in", folder / "many")
    found = Counter({name: 1, target: 1})
    try:
        many = run(*files, *options, steps=2)
    except CompilerFailed as failed:  # strategies are not legal everywhere
        assert strategy and "legal to force" in str(failed), f"{where}\n{failed}"
        found["refused"] += 1
        options = options[:-2]
        many = run(*files, *options, steps=2)
    single = run(folder / "r.optim", folder / "one.json", folder / "in", folder / "one", "--target", target, steps=2)
    expect_equal(many, single, where)
    # What comes out goes on upon another mesh, by another strategy.
    other = chosen.choice(random_meshes(chosen, chosen.choice((2, 3, 4, 6))))
    for each in parameters:
        dims = list(range(len(each["shape"])))
        each |= {"mesh": other.name, "placements": random_placements(chosen, other, tuple(each["shape"]), dims)}
        each.pop("state_placements", None)
    (folder / "other.json").write_text(manifest_of([other.json()], parameters))
    gradients = {key: value for key, value in tensors.items() if key.startswith("grad:")}
    for each in parameters:  # no step has made the initial values of a parameter that took none
        if not single[f"state:{each['name']}:step"].array():
            states = [key for key in single if key.startswith(f"state:{each['name']}:")]
            for key in states:
                del many[key], single[key]
    save(folder / "many.in", many | gradients)
    save(folder / "one.in", single | gradients)
    many = run(folder / "r.optim", folder / "other.json", folder / "many.in", folder / "many.out",
               "--target", target, "--strategy", "*=" + chosen.choice(("owner", "gather")), steps=2)  # fmt: skip
    single = run(folder / "r.optim", folder / "one.json", folder / "one.in", folder / "one.out", "--target", target, steps=2)
    expect_equal(many, single, f"{where}, then {other}, {parameters}")
    report = json.loads(stepc("explain", "--json", folder / "r.optim", "-m", folder / "many.json", *options[2:]))
    for group in report["groups"]:
        if group["block_states"]:
            assert set(group["block_states"]) <= set(STAYING[name]), where
            found.update(["stays", "by " + group["strategy"]])
            found["some ranks have none"] += group["block_state_bytes"]["min"] == 0
    return found


def test_steps_have_the_bits_of_one_rank(tmp_path, capsys):
    chosen, draw = random.Random(f"stay {SEED}"), np.random.default_rng(int(SEED))
    found = Counter()

    def has_strategies():
        return tier() == "quick" or len([name for name in found if name.startswith("by ")]) >= 3

    for number in cases(CASES, has_strategies, times=6):
        found += check(tmp_path / str(number), chosen, draw)
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(found)}")
    assert found["stays"] >= CASES // 3, found
    assert has_strategies(), found


def explained(folder, *options):
    return json.loads(stepc("explain", "--json", folder / "r.optim", "-m", folder / "m.json", *options))


def test_a_limit_of_states_is_obeyed_or_refused(tmp_path):
    """Blocks of drawn sizes on 4 ranks: the mean and the largest block is a limit that owners obey, and one below the
    mean is refused."""
    chosen = random.Random(f"limit {SEED}")
    mesh = {"name": "mesh", "axes": [{"name": "dp", "size": 4}]}
    (tmp_path / "r.optim").write_text(spec("between"))
    for _ in range(6):
        shapes = [[4 * chosen.randint(1, 60), chosen.randint(8, 60)] for _ in range(16)]
        parameters = [{"name": f"p{i}", "shape": shape, "dtype": "f32", "mesh": "mesh", "placements": ["S(0)"]}
                      for i, shape in enumerate(shapes)]  # fmt: skip
        (tmp_path / "m.json").write_text(manifest_of([mesh], parameters))
        free = explained(tmp_path, "--strategy", "*=owner")
        held = [rank["state_bytes"] for rank in free["ranks"]]
        mean, largest = sum(held) // 4, max(4 * rows * cols for rows, cols in shapes)
        limit = mean + largest
        bounded = explained(tmp_path, "--strategy", "*=owner", "--state-limit", str(limit))
        found = [rank["state_bytes"] for rank in bounded["ranks"]]
        assert max(found) <= limit and sum(found) == sum(held), (SEED, shapes, found, limit)
        with pytest.raises(CompilerFailed, match=rf"at most {mean - 1} bytes of states on a rank .*found no less than"):
            explained(tmp_path, "--strategy", "*=owner", "--state-limit", str(mean - 1))
