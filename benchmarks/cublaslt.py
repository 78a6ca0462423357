"""NVIDIA's driver and cuBLASLt by ctypes: memory, a stream, kernels of a cubin, and products at one
algorithm.

Matrices are rows one after another, which cuBLASLt takes for columns, as
runtime/devices/gpu/LibraryProducts.cpp says.
"""

import ctypes as c
from dataclasses import dataclass

POINTER, SIZE, INT = c.c_void_p, c.c_size_t, c.c_int
TYPES = {"f32": 0, "f16": 2, "bf16": 14}  # cudaDataType
COMPUTE_32F, TRANSPOSED = 68, 1
CONFIG = {"tile": (1, 4), "split_k": (2, 4), "reduction_scheme": (3, 4), "swizzling": (4, 4), "custom_option": (5, 4), "stages": (6, 4),
          "inner_shape": (7, 2), "cluster_shape": (8, 2)}  # fmt: skip
WORKSPACE, REDUCTIONS, ALIGNMENTS = 1, 3, (5, 6, 7, 8)  # CUBLASLT_MATMUL_PREF_…


class Refused(Exception):
    """A call gave a status other than success."""


class Algorithm(c.Structure):
    _fields_ = [("data", c.c_uint64 * 8)]


class Result(c.Structure):
    _fields_ = [("algorithm", Algorithm), ("workspace", SIZE), ("state", INT), ("waves", c.c_float), ("reserved", INT * 4)]


@dataclass(frozen=True)
class Product:
    """What one is, as a library's <name>.json says it: out = alpha · (lhs · rhs) + beta · addend."""

    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    addend: str | None
    out: str
    transpose_lhs: bool
    transpose_rhs: bool
    alpha: float
    beta: float

    def stored(self):
        """Rows and columns of the operands in memory: left, right, addend where there is one, out."""
        lhs = (self.k, self.m) if self.transpose_lhs else (self.m, self.k)
        rhs = (self.n, self.k) if self.transpose_rhs else (self.k, self.n)
        return [lhs, rhs] + [(self.m, self.n)] * (2 if self.addend else 1)

    def types(self):
        return [self.lhs, self.rhs] + [self.addend] * bool(self.addend) + [self.out]

    def bytes(self):
        """Of a block of each operand."""
        return [
            rows * cols * (4 if kind == "f32" else 2)
            for (rows, cols), kind in zip(self.stored(), self.types(), strict=True)
        ]


class Driver:
    """A GPU's primary context, which is current, and one stream."""

    def __init__(self, ordinal=0):
        self.library = c.CDLL("libcuda.so.1")
        self.call("cuInit", c.c_uint(0))
        self.device = INT()
        self.call("cuDeviceGet", c.byref(self.device), INT(ordinal))
        self.context = self.made("cuDevicePrimaryCtxRetain", self.device)
        self.call("cuCtxSetCurrent", self.context)
        self.stream = self.made("cuStreamCreate", c.c_uint(1))

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise Refused(f"{name}: the driver says {status}")

    def made(self, name, *arguments):
        out = POINTER()
        self.call(name, c.byref(out), *arguments)
        return out

    def attribute(self, number):
        value = INT()
        self.call("cuDeviceGetAttribute", c.byref(value), INT(number), self.device)
        return value.value

    def chip(self):
        return 10 * self.attribute(75) + self.attribute(76)

    def multiprocessors(self):
        return self.attribute(16)

    def memory(self, size):
        return self.made("cuMemAlloc_v2", SIZE(max(size, 1))).value

    def staging(self, size):
        return self.made("cuMemAllocHost_v2", SIZE(max(size, 1))).value

    def release(self, memory, staging):
        for one in memory:
            self.call("cuMemFree_v2", POINTER(one))
        for one in staging:
            self.call("cuMemFreeHost", POINTER(one))

    def upload(self, to, staging, size):
        self.call("cuMemcpyHtoDAsync_v2", POINTER(to), POINTER(staging), SIZE(size), self.stream)

    def download(self, staging, at, size):
        self.call("cuMemcpyDtoHAsync_v2", POINTER(staging), POINTER(at), SIZE(size), self.stream)

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def kernel(self, image, name):
        """A function of a cubin."""
        module = self.made("cuModuleLoadData", c.c_char_p(image))
        return self.made("cuModuleGetFunction", module, c.c_char_p(name.encode()))

    def launch(self, kernel, blocks, arguments):
        values = [POINTER(one) for one in arguments]
        pointers = (POINTER * (len(values) + 1))(*[c.addressof(one) for one in values], None)
        one = c.c_uint(1)
        self.call("cuLaunchKernel", kernel, c.c_uint(blocks), one, one, c.c_uint(256), one, one, c.c_uint(0), self.stream, pointers, None)


class CublasLt:
    """The library that the process has loaded, else that of CUDA 13 or 12."""

    def __init__(self):
        self.library = self.load()
        self.library.cublasLtGetVersion.restype = SIZE
        self.library.cublasLtGetStatusName.restype = c.c_char_p
        self.handle = POINTER()
        self.call("cublasLtCreate", c.byref(self.handle))

    @staticmethod
    def load():
        problems = []
        for name in ("libcublasLt.so.13", "libcublasLt.so.12"):
            try:
                return c.CDLL(name)
            except OSError as error:
                problems.append(str(error))
        raise Refused(f"expected cuBLASLt, found none ({'; '.join(problems)})")

    def version(self):
        return self.library.cublasLtGetVersion()

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise Refused(f"{name}: {self.library.cublasLtGetStatusName(status).decode()}")

    def made(self, name, *arguments):
        out = POINTER()
        self.call(name, c.byref(out), *arguments)
        return out


class Operation:
    """A product of so many blocks, described to cuBLASLt."""

    def __init__(self, lt, product, blocks):
        self.lt, self.product = lt, product
        self.operation = lt.made("cublasLtMatmulDescCreate", INT(COMPUTE_32F), INT(TYPES["f32"]))
        for attribute, transposed in ((3, product.transpose_rhs), (4, product.transpose_lhs)):
            if transposed:
                lt.call("cublasLtMatmulDescSetAttribute", self.operation, INT(attribute), c.byref(INT(TRANSPOSED)), SIZE(4))
        layouts = [
            self.layout(shape, kind, blocks)
            for shape, kind in zip(product.stored(), product.types(), strict=True)
        ]
        # Their A is our right operand, their B the left one; C is the addend, or out where there is none.
        self.layouts = [layouts[1], layouts[0], layouts[-2 if product.addend else -1], layouts[-1]]
        self.alpha, self.beta = c.c_float(product.alpha), c.c_float(product.beta if product.addend else 0)

    def layout(self, shape, kind, blocks):
        rows, cols = shape
        made = self.lt.made("cublasLtMatrixLayoutCreate", INT(TYPES[kind]), c.c_uint64(cols), c.c_uint64(rows), c.c_int64(cols))
        self.lt.call("cublasLtMatrixLayoutSetAttribute", made, INT(5), c.byref(c.c_int32(blocks)), SIZE(4))
        self.lt.call(
            "cublasLtMatrixLayoutSetAttribute", made, INT(6), c.byref(c.c_int64(rows * cols)), SIZE(8)
        )
        return made

    def candidates(self, count, alignment, workspace):
        """What heuristics name: configurations without split-K and reductions."""
        preference = self.lt.made("cublasLtMatmulPreferenceCreate")
        values = {WORKSPACE: c.c_uint64(workspace), REDUCTIONS: c.c_uint32(0)} | {
            one: c.c_uint32(alignment) for one in ALIGNMENTS
        }
        for attribute, value in values.items():
            self.lt.call("cublasLtMatmulPreferenceSetAttribute", preference, INT(attribute), c.byref(value), SIZE(c.sizeof(value)))
        results, found = (Result * count)(), INT()
        try:
            self.lt.call("cublasLtMatmulAlgoGetHeuristic", self.lt.handle, self.operation, *self.layouts, preference, INT(count), results,
                         c.byref(found))  # fmt: skip
        finally:
            self.lt.call("cublasLtMatmulPreferenceDestroy", preference)
        made = [self.configuration(one.algorithm) for one in results[: found.value] if one.state == 0]
        return [one for one in made if one["split_k"] == 1 and one["reduction_scheme"] == 0]

    def configuration(self, algorithm):
        def read(attribute, size):
            value, written = c.c_uint64(0), SIZE()
            self.lt.call("cublasLtMatmulAlgoConfigGetAttribute", c.byref(algorithm), INT(attribute), c.byref(value), SIZE(size),
                         c.byref(written))  # fmt: skip
            return value.value

        return {"algorithm": read(0, 4)} | {name: read(*one) for name, one in CONFIG.items()}

    def algorithm(self, configuration):
        """As a compiled library makes it, and what it needs of workspace."""
        types = [
            INT(TYPES[kind])
            for kind in (self.product.rhs, self.product.lhs, self.product.out, self.product.out)
        ]
        made, result = Algorithm(), Result()
        self.lt.call("cublasLtMatmulAlgoInit", self.lt.handle, INT(COMPUTE_32F), INT(TYPES["f32"]), *types,
                     INT(configuration["algorithm"]), c.byref(made))  # fmt: skip
        for name, (attribute, size) in CONFIG.items():
            value = c.c_uint64(configuration[name])
            self.lt.call("cublasLtMatmulAlgoConfigSetAttribute", c.byref(made), INT(attribute), c.byref(value), SIZE(size))
        self.lt.call("cublasLtMatmulAlgoCheck", self.lt.handle, self.operation, *self.layouts, c.byref(made), c.byref(result))
        return made, result.workspace

    def multiply(self, algorithm, addresses, workspace, workspace_bytes, stream):
        """`addresses`: of left, right, addend where there is one, out."""
        a, b, out = addresses[1], addresses[0], addresses[-1]
        addend = addresses[-2] if self.product.addend else out
        at = [POINTER(one) for one in (a, b, addend, out)]
        self.lt.call("cublasLtMatmul", self.lt.handle, self.operation, c.byref(self.alpha), at[0], self.layouts[0], at[1], self.layouts[1],
                     c.byref(self.beta), at[2], self.layouts[2], at[3], self.layouts[3], c.byref(algorithm), POINTER(workspace),
                     SIZE(workspace_bytes), stream)  # fmt: skip

    def close(self):
        for layout in {one.value for one in self.layouts} | {0}:
            if layout:
                self.lt.call("cublasLtMatrixLayoutDestroy", POINTER(layout))
        self.lt.call("cublasLtMatmulDescDestroy", self.operation)
