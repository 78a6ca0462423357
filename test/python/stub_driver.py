"""The driver that is the host (test/devices/StubDriver.cpp), as a trainer in this process calls it."""

import ctypes as c
import re
import sys

from compiler import ROOT, STEPC

STUB = STEPC.parents[1] / "lib" / "stub"
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
UNKNOWN, HOSTS, GPUS = range(3)  # what cuPointerGetAttributes says of memory


class StubDriver:
    """Its functions by name. What fails is an assertion."""

    def __init__(self):
        header = (ROOT / "runtime" / "devices" / "gpu" / "CudaDriver.h").read_text()
        names = re.findall(r"^  Result \(\*(\w+)\)\(", header, flags=re.MULTILINE)
        library = self.library = c.CDLL(str(STUB / "libstub_driver.so"))
        library.stepc_stub_calls.restype = c.c_int64
        library.stepc_stub_stream.restype = c.c_void_p
        library.stepc_stub_driver.restype = c.POINTER(c.POINTER(c.c_void_p))
        table = library.stepc_stub_driver()[0]
        self.functions = {
            name: c.CFUNCTYPE(c.c_int, *[c.c_void_p] * 4)(table[index]) for index, name in enumerate(names)
        }

    def try_(self, name, *arguments):
        return self.functions[name](*arguments, *[None] * (4 - len(arguments)))

    def call(self, name, *arguments):
        result = self.try_(name, *arguments)
        assert result == 0, (name, result)

    def made(self, name, *arguments):
        """What a call gives by its first argument."""
        out = c.c_void_p()
        self.call(name, c.addressof(out), *arguments)
        return out.value

    def out(self):
        """Where a handle may be written that nobody needs."""
        self.unused = c.c_void_p()
        return c.addressof(self.unused)

    def own(self, array, kind, gpu=0):
        """Says whose memory an array is."""
        self.library.stepc_stub_own(c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes), kind, gpu)
        return array

    def stream(self):
        self.call("cuCtxPushCurrent_v2", None)
        return self.made("cuStreamCreate", 0)

    def capture(self, stream, work, mode=GLOBAL):
        """A graph of what `work` enqueues, ready to be replayed."""
        self.call("cuStreamBeginCapture_v2", stream, mode)
        graph = c.c_void_p()
        made = None
        try:
            work()
        finally:
            self.call("cuStreamEndCapture", stream, c.addressof(graph))
            if sys.exc_info()[0] is None:
                made = self.made("cuGraphInstantiateWithFlags", graph.value, None)
            self.call("cuGraphDestroy", graph.value)
        return made

    def replay(self, graph, stream):
        self.call("cuGraphLaunch", graph, stream)
        self.call("cuStreamSynchronize", stream)
