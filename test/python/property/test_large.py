"""One parameter of more than 2^31 elements is stepped on two in-process ranks, the shard of the first longer than 2^31 and
that of the second beginning beyond it, within a row. Left out where memory is short."""

import ctypes
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from compiler import STEPC, stepc
from stepc import Instance, Library, _abi

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

COLUMNS, ROWS = 2**12, 2**19 + 2**10  # 2^31 + 2^22 elements: 4 GiB of bf16
BORDER = 2**31 + 12345
NEEDED = 10 * 2**30
SPEC = """
optimizer Sgd(lr) {
  param = param - lr * grad
}
route { Sgd(lr = 0.5) for rest }
"""


class Transport:
    def __init__(self, table):
        self.table = table


def free_memory():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def step(library, transport, rank):
    """What the rank's shard holds, and where it differs from zero after a step: all gradients are zero but a few."""
    instance = Instance(library, transport, threads=1, timeout=120.0)
    ((start, at, length),) = instance.shard_runs(0)
    # Not read before they are written, or never written: the gradient takes no memory.
    shard, gradient = np.zeros(length, np.uint16), np.zeros(length, np.uint16)
    places = (0, 1, COLUMNS, 2**30, 2**31 - 1, 2**31, 2**31 + 12344, 2**22 - 12346)
    marked = sorted({place for place in places if place < length})
    gradient[marked] = 0x4000  # 2.0
    instance.bind_parameter(0, shard.ctypes.data, shard.nbytes)
    counts, rate = np.zeros(1, np.int64), np.full((1, 1), 0.5)
    instance.bind_steps(counts.ctypes.data)
    instance.bind_hyperparameters(rate.ctypes.data, 1, 1, [0])
    instance.bind_gradients((ctypes.c_uint64 * 1)(gradient.ctypes.data), 1)
    instance.step()
    chunk = 2**26
    changed = [begin + int(i) for begin in range(0, length, chunk) for i in np.flatnonzero(shard[begin : begin + chunk])]
    assert changed == marked and (shard[marked] == 0xBF80).all(), (rank, changed, marked)  # -1.0
    instance.close()
    return start, at, length


def test_more_than_two_to_the_31_elements(tmp_path):
    if free_memory() < NEEDED:
        pytest.skip(f"expected {NEEDED >> 30} GiB of free memory, found {free_memory() >> 30} GiB")
    total = ROWS * COLUMNS
    manifest = {"version": 1, "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": 2}]}],
                "parameters": [{"name": "w", "shape": [ROWS, COLUMNS], "dtype": "bf16", "mesh": "dp",
                                "placements": [f"flat(0, {BORDER}, {total})"]}]}  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    (tmp_path / "large.optim").write_text(SPEC)
    stepc("compile", tmp_path / "large.optim", "-m", tmp_path / "m.json", "-o", tmp_path / "out")
    library = Library(tmp_path / "out" / "liblarge.so")
    tables = (_abi.Transport * 2)()
    for table in tables:
        table.struct_size = ctypes.sizeof(_abi.Transport)
    assert library.table.in_process_world(2, tables) == _abi.OK
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda rank: step(library, Transport(tables[rank]), rank), range(2)))
    assert found == [(0, 0, BORDER), (BORDER, 0, total - BORDER)] and total > BORDER > 2**31
