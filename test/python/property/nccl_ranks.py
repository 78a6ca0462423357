"""Ranks that are threads, each with an instance and a transport of NCCL; one or more misbehave.

    python nccl_ranks.py LIBRARY STUB '{"1": "absent"}' TIMEOUT [FILE]

steps twice and prints, as JSON, what each rank came to: its error or null, and how long its last step took. A rank that is "absent"
does not step the second time; "late" steps 3 seconds after the others; "polls" enqueues, and polls until a step is done; "ahead" enqueues
20 steps the second time, more than its staging memory holds, before it polls; "replays" captures the second step in a graph of its own, and
replays it; "graph" replays all by the library's graph; one that "parts" begins after five steps of others. Before the second step one with
another "rate" doubles the first route's learning rate, one with another "last rate" the last one's, and one with other "counts" adds 3
to the first step count; "device" has these numbers in the device's memory. Ways of one rank are joined by a plus sign.
"""

import ctypes
import json
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [
    str(Path(__file__).resolve().parents[3] / "frontends" / "python"),
    str(Path(__file__).resolve().parents[1]),
]

from stepc import Instance, Library, StepcError  # noqa: E402
from stepc._device import CPU, Device  # noqa: E402
from stepc.nccl import nccl_transport  # noqa: E402
import stub_driver  # noqa: E402

DTYPES = {"f32": np.float32, "bf16": np.uint16, "f16": np.uint16}


class MemoryStore:
    """As torch's, in one process."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def wait(self, keys, timeout):
        with self.changed:
            if not self.changed.wait_for(
                lambda: all(key in self.values for key in keys), timeout.total_seconds()
            ):
                raise TimeoutError(f"no {keys}")

    def get(self, key):
        return self.values[key]


def bind(instance, memory=0):
    """Ones for everything; what has to stay alive."""
    kept = []

    def ones(shape, dtype):
        array = np.ones(shape, DTYPES[dtype])
        kept.append(array)
        return array.ctypes.data if array.size else 0, array.nbytes

    for p in instance.parameters:
        if not p.member:
            continue
        instance.bind_parameter(p.index, *ones(p.local_shape, p.dtype))
        instance.bind_gradient(p.index, *ones(p.gradient_local_shape, p.gradient_dtype))
        for number, state in enumerate(p.states):
            instance.bind_state(p.index, number, *ones(state.local_shape, state.dtype))
    steps = np.zeros(len(instance.parameters), np.int64)
    instance.bind_steps(steps.ctypes.data, memory)
    routes = instance.library.routes
    values = np.zeros((len(routes), max(len(route.defaults) for route in routes)))
    for row, route in enumerate(routes):
        values[row, : len(route.defaults)] = list(route.defaults.values())
    groups = [[route.name for route in routes].index(p.route) for p in instance.parameters]
    instance.bind_hyperparameters(values.ctypes.data, *values.shape, groups, memory)
    return [*kept, values, steps]


def enqueue_and_poll(instance, steps=1):
    table, done, status = instance.library.table, ctypes.c_int32(), 0
    for _ in range(steps):
        status = status or table.enqueue(instance._handle)
    while not status and not done.value:
        status = table.poll(instance._handle, ctypes.byref(done))
        time.sleep(0.001)
    if status:
        raise StepcError(table.last_error(instance._handle).decode())


def capture_and_replay(instance, driver, stream):
    # Of this thread alone: other ranks wait, which a capture may forbid to all.
    graph = driver.capture(stream, instance.enqueue, stub_driver.THREAD_LOCAL)
    try:
        driver.replay(graph, stream)
        while not instance.poll():
            time.sleep(0.001)
    finally:
        driver.call("cuGraphExecDestroy", graph)


def run(rank, size, library, stub, ways, timeout, meeting, found):
    begin = time.monotonic()
    way = set(ways.get(str(rank), "").split("+"))
    try:
        transport = nccl_transport(rank, size, 0, **meeting, timeout=2 * timeout, library=stub / "libstepc_nccl.so")
        replays = "replays" in way
        driver = stub_driver.StubDriver() if replays else None
        device = Device(stream=driver.stream()) if replays else CPU
        instance = Instance(library, transport, threads=1, timeout=timeout, device=device, graph="graph" in way)
        kept = bind(instance, int(replays or "device" in way))
        if "parts" in way:
            kept[-1][:] = 5
        for step in range(2):
            begin = time.monotonic()
            if step == 1 and "rate" in way:
                kept[-2][0, list(library.routes[0].defaults).index("lr")] *= 2
            if step == 1 and "last rate" in way:
                kept[-2][-1, list(library.routes[-1].defaults).index("lr")] *= 2
            if step == 1 and "counts" in way:
                kept[-1][0] += 3
            if step == 1 and "absent" in way:
                time.sleep(2 * timeout)
                break
            if step == 1 and "late" in way:
                time.sleep(3)
            if way & {"polls", "ahead"}:
                enqueue_and_poll(instance, 20 if step == 1 and "ahead" in way else 1)
            elif replays and step == 1:
                capture_and_replay(instance, driver, device.stream)
            else:
                instance.step()
        found[rank] = {"error": None}
    except (StepcError, AssertionError) as error:
        found[rank] = {"error": str(error)}
    found[rank]["seconds"] = time.monotonic() - begin
    found[rank]["counts"] = kept[-1].tolist() if "kept" in locals() else None
    begin = time.monotonic()
    if "instance" in locals():
        instance.close()
    found[rank]["closing"] = time.monotonic() - begin


def on_threads(size, function, *arguments):
    """Calls function(rank, *arguments, found) in a thread per rank. Each call sets its element of the list `found`,
    which is printed."""
    found = ["a thread that ended early"] * size
    threads = [threading.Thread(target=function, args=(rank, *arguments, found)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


def main():
    path, stub, ways, timeout, *file = sys.argv[1:]
    stub = Path(stub)
    ctypes.CDLL(str(stub / "libnccl.so.2"))
    library = Library(path)
    size = len(library.world_ranks)
    meeting = {"file": file[0]} if file else {"store": MemoryStore()}
    on_threads(size, run, size, library, stub, json.loads(ways), float(timeout), meeting)


if __name__ == "__main__":
    main()
