"""One MPI rank of a compiled library, stepped on its shards of tensors in a file.

    mpirun -np N python mpi_ranks.py LIBSTEPC_MPI LIBRARY MANIFEST IN.safetensors STEPS THREADS FOLDER

What the rank has in the end, with the runs that say which elements those are, goes to FOLDER/RANK.npz."""

import ctypes
import json
import math
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [
    str(Path(__file__).resolve().parents[3] / "frontends" / "python"),
    str(Path(__file__).resolve().parent),
]

from compiler import load  # noqa: E402
from stepc import Instance, Library, _abi  # noqa: E402
from stepc.nccl import NcclTransport as TransportOfTable  # noqa: E402 - holds a C library's table

BYTES = {"f32": 4, "bf16": 2, "f16": 2}
PARTIAL = ("P(sum)", "P(avg)")


def transport(path):
    # Global: Open MPI's own plugins look for its symbols.
    library, table, error = ctypes.CDLL(path, ctypes.RTLD_GLOBAL), _abi.Transport(), ctypes.create_string_buffer(1024)
    table.struct_size = ctypes.sizeof(_abi.Transport)
    if library.stepc_mpi_world(ctypes.byref(table), error, ctypes.c_int64(len(error))):
        raise SystemExit(error.value.decode())
    return TransportOfTable(library, table, 0)


def elements(tensor):
    size = len(tensor.data) // max(1, math.prod(tensor.shape))
    return np.frombuffer(tensor.data, np.uint8).reshape(-1, size)


def cut(whole, runs):
    """A shard's elements, as rows of bytes."""
    shard = np.zeros((sum(length for _, _, length in runs), whole.shape[1]), np.uint8)
    for start, at, length in runs:
        shard[at : at + length] = whole[start : start + length]
    return shard


def contribution(tensor, entry, mesh, rank):
    """Of a gradient that several ranks contribute to, this rank's part, row-major over the axes along
    which they do.
    """
    shape, index = tuple(entry["shape"]), 0
    if tensor.shape == shape:
        return elements(tensor)
    position, places = mesh["ranks"].index(rank), []
    for axis in reversed(mesh["axes"]):
        places.insert(0, position % axis["size"])
        position //= axis["size"]
    for text, axis, place in zip(entry["grad_placements"], mesh["axes"], places, strict=True):
        if text in PARTIAL:
            index = index * axis["size"] + place
    return elements(tensor).reshape(tensor.shape[0], math.prod(shape), -1)[index]


def main(mpi, library, manifest, tensors, steps, threads, folder):
    manifest, tensors = json.loads(Path(manifest).read_text()), load(tensors)
    entries = {one["name"]: one for one in manifest["parameters"]}
    meshes = {one["name"]: one for one in manifest["meshes"]}
    instance = Instance(Library(library), transport(mpi), threads=int(threads), timeout=60.0)
    me = instance.transport.rank
    rank = instance.library.world_ranks[me]
    held, result = {}, {}

    def bind(call, key, data, runs):
        held[key] = result[key] = data
        result[f"runs {key}"] = np.asarray(runs, np.int64).reshape(-1, 3)
        call(data.ctypes.data if data.size else 0, data.nbytes)

    mine = [p for p in instance.parameters if p.member]
    for p in mine:
        runs, whole = instance.shard_runs(p.index), elements(tensors[f"param:{p.name}"])
        bind(
            lambda *to, p=p: instance.bind_parameter(p.index, *to), f"param:{p.name}", cut(whole, runs), runs
        )
        for number, state in enumerate(p.states):
            key, runs = f"state:{p.name}:{state.name}", instance.shard_runs(p.index, number)
            if key in tensors:
                start = elements(tensors[key])
            elif state.master:
                start = values(tensors[f"param:{p.name}"], "f32")
            else:
                start = np.tile(scalar(state.init, state.dtype), (math.prod(state.global_shape), 1))
            bind(lambda *to, p=p, number=number: instance.bind_state(p.index, number, *to), key, cut(start, runs), runs)
    counts = np.zeros(max(1, len(instance.parameters)), np.int64)
    instance.bind_steps(counts.ctypes.data)
    routes = [route.name for route in instance.library.routes]
    rates = np.zeros((len(routes), 64))
    for row, route in enumerate(instance.library.routes):
        rates[row, : len(route.defaults)] = list(route.defaults.values())
    instance.bind_hyperparameters(
        rates.ctypes.data, len(routes), 64, [routes.index(p.route) for p in instance.parameters]
    )
    for step in range(1, int(steps) + 1):
        pointers, kept = (ctypes.c_uint64 * max(1, len(instance.parameters)))(), []
        for p in mine:
            entry = entries[p.name]
            whole = contribution(tensors[f"grad:{p.name}@{step}"], entry, meshes[entry["mesh"]], rank)
            kept.append(cut(whole, instance.shard_runs(p.index, _abi.GRADIENT)))
            pointers[p.index] = kept[-1].ctypes.data if kept[-1].size else 0
        instance.bind_gradients(pointers, len(instance.parameters))
        instance.step()
    for p in mine:
        for number, metric in enumerate(p.metrics):
            key = f"metric:{p.name}:{metric.name}"
            result[key] = np.array(instance.metrics(p.index, number), np.float32).view(np.uint8).reshape(-1, 4)
            runs = instance.shard_runs(p.index, _abi.METRIC - number)
            result[f"runs {key}"] = np.asarray(runs, np.int64).reshape(-1, 3)
    executed, planned = instance.counters()
    assert executed == planned, (executed, planned)
    np.savez(Path(folder) / f"{me}.npz", **result)
    instance.close()


def scalar(value, dtype):
    from compiler import tensor

    return elements(tensor(np.asarray([value]), dtype))


def values(one, dtype):
    from compiler import tensor

    return elements(tensor(one.array(), dtype))


if __name__ == "__main__":
    main(*sys.argv[1:])
