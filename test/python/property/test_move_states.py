"""`move_states` of the C interface: states of one library go to where another library has them. Random libraries, worlds
and placements: the bits of the whole stay, or all ranks say what is missing. STEPC_SEED repeats a run."""

import ctypes
import json
import math
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compiler import STEPC, CompilerFailed, stepc
from random_layouts import random_meshes, random_placements
from stepc import Instance, Library, StepcError, _abi
from tiers import cases, draws

pytestmark = [
    pytest.mark.plans,
    pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built"),
]

SEED = os.environ.get("STEPC_SEED") or str(random.SystemRandom().randrange(10**9))
CASES = draws(12)
BYTES = {"f32": 4, "bf16": 2}
# `v` may stay with matrices, `m` and `r` lie on shards, `r` has one number per row, and `count` one in all.
SPEC = """
model() {
  state count : f32
  count = count + 1
}
optimizer Between(lr) {
  state m : f32
  state v : bf16
  state r : f32[rows]
  m = lerp(m, grad, 0.1)
  r = lerp(r, mean(m ^ 2, over = columns), 0.5)
  let o = orthogonalize(m, coefficients = [(1.5, -0.5, 0)], precision = f32)
  v = lerp(v, o ^ 2, 0.05)
  param = param - lr * orthogonalize(o / (sqrt(v) + 1e-8), coefficients = [(1.5, -0.5, 0)], precision = f32) / (1 + r)
}
optimizer Momentum(lr) {
  state m : f32
  m = lerp(m, grad, 0.1)
  param = param - lr * m
}
route {
  Between(lr = 0.5) for matrix
  Momentum(lr = 0.5) for rest
}
"""


class Transport:
    def __init__(self, table):
        self.table = table


def world_of(library):
    size = len(library.world_ranks)
    if size == 1:
        return [None]
    tables = (_abi.Transport * size)()
    for table in tables:
        table.struct_size = ctypes.sizeof(_abi.Transport)
    assert library.table.in_process_world(size, tables) == _abi.OK
    return [Transport(table) for table in tables]


def on_ranks(function, *lists):
    """What the function returns or raises, by rank."""

    def of(arguments):
        try:
            return function(*arguments)
        except StepcError as error:
            return error

    with ThreadPoolExecutor(len(lists[0])) as pool:
        return list(pool.map(of, zip(*lists, strict=True)))


class Rank:
    """A rank's instance, with memory for its states by parameter and state."""

    def __init__(self, library, transport, timeout=60.0):
        self.instance = Instance(library, transport, threads=1, timeout=timeout)
        self.memory, self.runs, self.numbers = {}, {}, {}
        for p in self.instance.parameters:
            for number, state in enumerate(p.states):
                key = p.name, state.name
                self.runs[key], self.numbers[key] = self.instance.shard_runs(p.index, number), (p.index, number)
                self.memory[key] = np.zeros(sum(run[2] for run in self.runs[key]) * BYTES[state.dtype], np.uint8)
                self.bind(key)

    def bind(self, key, memory=None):
        memory = self.memory[key] = self.memory[key] if memory is None else memory
        self.instance.bind_state(*self.numbers[key], memory.ctypes.data if memory.size else 0, memory.size)

    def elements(self, key):
        """The numbers of the elements of the whole that this rank has, in the order of its shard."""
        runs = [np.arange(begin, begin + length) for begin, _, length in self.runs[key]]
        return np.concatenate(runs or [np.zeros(0, int)])

    def bound(self, key):
        pointer, size = ctypes.c_void_p(), ctypes.c_int64()
        self.instance._call("bound_state", *self.numbers[key], ctypes.byref(pointer), ctypes.byref(size))
        return pointer.value, size.value


def compiled(folder, meshes, parameters, *options, spec=SPEC):
    folder.mkdir(parents=True)
    (folder / "r.optim").write_text(spec)
    (folder / "m.json").write_text(json.dumps({"version": 1, "meshes": meshes, "parameters": parameters}))
    stepc("compile", folder / "r.optim", "-m", folder / "m.json", "-o", folder / "out", *options)
    return Library(folder / "out" / "libr.so")


def ranks_of(library, **options):
    made = on_ranks(lambda transport: Rank(library, transport, **options), world_of(library))
    failed = [one for one in made if isinstance(one, StepcError)]
    assert not failed, failed
    return made


def placed(chosen, mesh, shape, may_be_other):
    """A parameter's place on the mesh, and now and then another for its states."""
    dims = list(range(len(shape)))
    found = {"mesh": mesh.name, "placements": random_placements(chosen, mesh, shape, dims)}
    if may_be_other and chosen.random() < 0.3:
        own = random_placements(chosen, mesh, shape, dims)
        found |= {} if own == found["placements"] else {"state_placements": own}
    return found


def random_library(folder, chosen, shapes):
    """A library of some of the parameters on a world of its own."""
    mesh = chosen.choice(random_meshes(chosen, chosen.choice((1, 2, 3, 4, 6))))
    parameters = [{"name": name, "shape": list(shape), "dtype": "f32", **placed(chosen, mesh, shape, True)}
                  for name, shape in shapes.items() if chosen.random() < 0.8]  # fmt: skip
    if not parameters:
        return random_library(folder, chosen, shapes)
    options = ["--target", "emulated:sm_80"] if chosen.random() < 0.1 else []
    try:
        strategy = ["--strategy", "*=" + chosen.choice(("owner", "gather"))]
        return compiled(folder / "forced", [mesh.json()], parameters, *options, *strategy)
    except CompilerFailed:  # no matrix is there, or the strategy is not legal
        return compiled(folder / "free", [mesh.json()], parameters, *options)


def check(folder, chosen, draw):
    """Fills states by one library, moves them to another, and compares. Returns what it was."""
    folder.mkdir()
    shapes = {f"p{i}": tuple(chosen.randint(1, 9) for _ in range(chosen.choice((1, 2, 2)))) for i in range(chosen.randint(1, 4))}
    libraries = [random_library(folder / name, chosen, shapes) for name in ("old", "new")]
    old, new = map(ranks_of, libraries)
    whole = {}
    for rank in old:
        for key, memory in rank.memory.items():
            parameter = rank.instance.parameters[rank.numbers[key][0]]
            state = parameter.states[rank.numbers[key][1]]
            if key not in whole:
                whole[key] = draw.integers(0, 256, (max(math.prod(state.global_shape), 1), BYTES[state.dtype]), np.uint8)
            memory[:] = whole[key][rank.elements(key)].reshape(-1)
    # The ranks of the new world were in the old one in another order, or not at all.
    before = chosen.sample(old, min(len(old), len(new)))
    before += [None] * (len(new) - len(before))
    chosen.shuffle(before)
    kept = {key: np.zeros(len(values), bool) for key, values in whole.items()}
    for rank in before:
        for key in rank.memory if rank else ():
            kept[key][rank.elements(key)] = True
    for rank, mine in zip(new, before, strict=True):
        for key, memory in rank.memory.items():
            memory[:] = draw.integers(0, 256, memory.shape, np.uint8)
            if mine and rank.runs[key] == mine.runs.get(key) and chosen.random() < 0.5:
                rank.bind(key, mine.memory[key])  # it keeps its place
    begun = [{key: memory.copy() for key, memory in rank.memory.items()} for rank in new]
    known = {key for rank in before if rank for key in rank.memory}
    missing = any(not kept[key][rank.elements(key)].all() for rank in new for key in known & set(rank.memory))
    results = on_ranks(lambda rank, mine: rank.instance.move_states(mine and mine.instance), new, before)
    found = Counter({f"{len(old)} to {len(new)} ranks": 1})
    if missing:
        texts = {str(error).partition(": ")[2] for error in results}
        assert len(texts) == 1 and "expected all elements that " in texts.pop(), results
        assert all(np.array_equal(rank.memory[key], one) for rank, mine in zip(new, begun, strict=True) for key, one in mine.items())
        found["missing"] += 1
    else:
        assert results == [None] * len(new), results
        for rank, mine in zip(new, begun, strict=True):
            for key, memory in rank.memory.items():
                expected = whole[key][rank.elements(key)].reshape(-1) if key in known else mine[key]
                assert np.array_equal(memory, expected), (key, rank.runs[key])
                assert rank.bound(key) == ((memory.ctypes.data, memory.size) if memory.size else (None, 0))
        found["moved"] += 1
        found["begins anew"] += any(key not in known for key in new[0].memory)
        found["from nowhere"] += None in before
        found["stays with blocks"] += any("blocks" in s.placements for p in new[0].instance.parameters for s in p.states)
    for rank in (*old, *new):
        rank.instance.close()
    return found


def test_bits_arrive_or_all_ranks_say_what_is_missing(tmp_path, capsys):
    chosen, draw = random.Random(f"move {SEED}"), np.random.default_rng(int(SEED))
    found = Counter()
    wanted = ("moved", "missing", "begins anew") if CASES >= 20 else ()

    def has_all():
        return all(found[kind] for kind in wanted)

    for number in cases(CASES, has_all, times=4):
        try:
            found += check(tmp_path / str(number), chosen, draw)
        except AssertionError as error:
            raise AssertionError(f"STEPC_SEED={SEED}, case {number}: {error}") from error
    with capsys.disabled():
        print(f"\nSTEPC_SEED={SEED}: {dict(found)}")
    assert has_all(), found


MESH = [{"name": "dp", "axes": [{"name": "dp", "size": 3}]}]


def sharded(*names, placement="S(0)", shape=(6, 4)):
    return [{"name": name, "shape": list(shape), "dtype": "f32", "mesh": "dp", "placements": [placement]} for name in names]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moves")
    spec = SPEC.replace("v : bf16", "v : f32")
    return {
        "rows": compiled(folder / "rows", MESH, sharded("w")),
        "columns": compiled(folder / "columns", MESH, sharded("w", placement="S(1)")),
        "longer": compiled(folder / "longer", MESH, sharded("w", shape=(7, 4))),
        "wider": compiled(folder / "wider", MESH, sharded("w"), spec=spec),
    }


def moved(old, new):
    return on_ranks(lambda rank, mine: rank.instance.move_states(mine and mine.instance), new, old)


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ("longer", "state 'm' of parameter 'w': expected [7, 4] of f32 as in this library, found [6, 4] of f32 in the one before"),
        ("wider", "state 'v' of parameter 'w': expected [6, 4] of f32 as in this library, found [6, 4] of bf16 in the one before"),
    ],
)  # fmt: skip
def test_other_states_are_refused(libraries, after, text):
    for rank, error in enumerate(moved(ranks_of(libraries["rows"]), ranks_of(libraries[after]))):
        assert str(error).endswith(text) and str(error).startswith(f"rank {rank}: "), error


def test_a_problem_of_one_rank_is_all_ranks_error_and_changes_nothing(libraries):
    old, new = ranks_of(libraries["rows"]), ranks_of(libraries["columns"])
    for rank in old:
        for memory in rank.memory.values():
            memory[:] = 7
    key = ("w", "m")
    good = new[1].memory[key]
    larger = np.full(64, 7, np.uint8)
    old[1].bind(key, larger[:32])
    new[1].bind(key, larger[16:])
    problem = "state 'm' of parameter 'w': expected memory of its own, found that it shares memory with state 'm' of parameter 'w'"
    for rank, error in enumerate(moved(old, new)):
        assert str(error).startswith(f"rank {rank}: " + ("" if rank == 1 else "rank 1: ") + problem), error
    assert not any(memory.any() for rank in new for one, memory in rank.memory.items() if (rank, one) != (new[1], key))
    new[1].bind(key, good)
    assert moved(old, new) == [None] * 3  # once it is mended
    assert all((memory == 7).all() for rank in new for memory in rank.memory.values())


def test_elements_that_no_rank_has_are_missed_on_all_ranks(libraries):
    old, new = ranks_of(libraries["rows"]), ranks_of(libraries["columns"])
    for rank, error in enumerate(moved([old[0], None, old[2]], new)):
        assert str(error) == (
            f"rank {rank}: state 'm' of parameter 'w': expected all elements that rank 0 needs on some rank of this library, "
            "found 4 of them on none"
        )
    assert moved(old, new) == [None] * 3


def test_states_that_only_the_library_before_has_stay(libraries, tmp_path):
    """Memory of a state is not reused for another, even if this library does not have that state."""
    more = compiled(tmp_path / "more", MESH, sharded("w", "x"))
    old, new = ranks_of(more), ranks_of(libraries["rows"])
    new[1].bind(("w", "m"), old[1].memory["x", "m"])
    problem = "state 'm' of parameter 'w': expected memory of its own, found that it shares memory with state 'm' of parameter 'x'"
    assert all(problem in str(error) for error in moved(old, new))
    new[1].bind(("w", "m"), new[0].memory["w", "m"].copy())
    new[1].bind(("w", "r"), new[1].memory["w", "m"][:8])
    assert all("state 'm' of parameter 'w'" in str(error) and "share 8 bytes" in str(error) for error in moved(old, new))
    # What keeps its place on all ranks may keep its memory.
    for rank, mine in zip(new, old, strict=True):
        for key in rank.memory:
            rank.bind(key, mine.memory[key])
    old[2].memory["w", "v"][:] = 3
    assert moved(old, new) == [None] * 3 and (new[2].memory["w", "v"] == 3).all()


def test_unbound_memory_is_refused(libraries):
    old, new = ranks_of(libraries["rows"]), ranks_of(libraries["columns"])
    fresh = on_ranks(lambda transport: Instance(libraries["columns"], transport, threads=1), world_of(libraries["columns"]))
    results = on_ranks(lambda instance, mine: instance.move_states(mine.instance), fresh, old)
    assert all("state 'm' of parameter 'w': expected memory that is bound, found none" in str(one) for one in results), results
    results = on_ranks(
        lambda rank, instance: rank.instance.move_states(instance), new,
        on_ranks(lambda transport: Instance(libraries["rows"], transport, threads=1), world_of(libraries["rows"])),
    )  # fmt: skip
    assert all("expected memory that is bound in the library before, found none" in str(one) for one in results), results


def test_what_cannot_be_taken_from_is_refused(libraries):
    old, new = ranks_of(libraries["rows"]), ranks_of(libraries["columns"])
    for error in on_ranks(lambda rank: rank.instance.move_states(rank.instance), new):
        assert "move_states: expected the table and the instance of another library, or null for both" in str(error)
    table = _abi.LibraryTable.from_buffer_copy(old[0].instance.library.table)
    table.struct_size = _abi.LibraryTable.move_states.offset - 8
    results = on_ranks(lambda rank, mine: rank.instance._call("move_states", ctypes.addressof(table), mine.instance._handle), new, old)
    assert all("expected a library that says where its states are bound, found one of an earlier version" in str(one) for one in results)
    table.struct_size, table.device = ctypes.sizeof(table), _abi.DEVICE_CUDA
    results = on_ranks(lambda rank, mine: rank.instance._call("move_states", ctypes.addressof(table), mine.instance._handle), new, old)
    assert all("move_states: expected states on a device of kind 0, found 1" in str(one) for one in results), results
    with pytest.raises(StepcError, match="bound_state: parameter 'w': state 9 does not exist, there are 3"):
        places = ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_int64())
        new[0].instance._call("bound_state", new[0].numbers["w", "m"][0], 9, *places)
    with pytest.raises(StepcError, match="bound_state: expected places for a pointer and bytes"):
        new[0].instance._call("bound_state", *new[0].numbers["w", "m"], None, None)


def test_a_rank_that_does_not_come_fails_the_others(libraries):
    old, new = ranks_of(libraries["rows"]), ranks_of(libraries["columns"], timeout=1.0)
    first, second = moved(old[:2], new[:2])
    for error in (first, second):
        assert "telling where states are" in str(error), error
    for rank in new[:2]:
        with pytest.raises(StepcError, match="poisoned"):
            rank.instance.move_states(None)
