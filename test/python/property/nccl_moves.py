"""Ranks that are threads, each with two instances and their transports of NCCL.

    python nccl_moves.py BEFORE AFTER STUB TIMEOUT [RANK]

moves states that the library BEFORE has to where AFTER has them, and prints each rank's error, or null. Every element of a state is its
number in the whole. If a RANK is given, it does not come.
"""

import ctypes
import sys
from pathlib import Path

import nccl_ranks  # which says where the package is
import numpy as np
import stub_driver
from stepc import Instance, Library, StepcError
from stepc.nccl import nccl_transport

DRIVER = stub_driver.StubDriver()


def bound(instance):
    """Memory for each state, and what it has to be, by the names of parameter and state."""
    memory, numbers = {}, {}
    for p in instance.parameters:
        for number, state in enumerate(p.states):
            runs = [np.arange(begin, begin + length) for begin, _, length in instance.shard_runs(p.index, number)]
            key = p.name, state.name
            numbers[key] = np.concatenate(runs or [np.zeros(0, int)]).astype(np.float32)
            array = memory[key] = DRIVER.own(np.full_like(numbers[key], -1), stub_driver.GPUS)
            instance.bind_state(p.index, number, array.ctypes.data if array.size else 0, array.nbytes)
    return memory, numbers


def run(rank, libraries, stub, timeout, stores, absent, found):
    try:
        instances = []
        for library, store in zip(libraries, stores, strict=True):
            transport = nccl_transport(rank, len(library.world_ranks), 0, store=store, timeout=2 * timeout,
                                       library=stub / "libstepc_nccl.so")  # fmt: skip
            instances.append(Instance(library, transport, threads=1, timeout=timeout))
        before, after = instances
        memory, numbers = bound(before)
        for key, array in memory.items():
            array[:] = numbers[key]
        moved, expected = bound(after)
        if rank != absent:
            after.move_states(before)
            wrong = [key for key, array in moved.items() if not np.array_equal(array, expected[key])]
            found[rank] = f"wrong: {wrong}" if wrong or not moved else None
        for instance in instances:
            instance.close()
    except StepcError as error:
        found[rank] = str(error)


def main():
    *paths, stub, timeout = sys.argv[1:5]
    absent = int(sys.argv[5]) if len(sys.argv) > 5 else None
    ctypes.CDLL(str(Path(stub) / "libnccl.so.2"))
    libraries = [Library(path) for path in paths]
    stores = [nccl_ranks.MemoryStore(), nccl_ranks.MemoryStore()]
    size = len(libraries[1].world_ranks)
    nccl_ranks.on_threads(size, run, libraries, Path(stub), float(timeout), stores, absent)


if __name__ == "__main__":
    main()
