"""Makes the table of pinned products that `stepc compile --products` reads, on a GPU.

    python3 pin_products.py step/muon.json --library step/libmuon.so -o products.json

For every product in a library's <name>.json (compiled with --target cuda:…, without --products) heuristics of
the cuBLASLt that is there name algorithms. One is written down where its results are the same bits in every
run, at every place of batches of several sizes and at all addresses that a workspace may have; where they are
close to float64; and where it is faster than the library's own kernel.
Needs an NVIDIA driver, cuBLASLt and PyTorch (for numbers on the CPU), and neither a compiler nor a network.
"""

import argparse
import ctypes
import json
import statistics
import struct
import sys
import time
from pathlib import Path

import torch
from cublaslt import CublasLt, Driver, Operation, Product, Refused

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
TOLERANCE = {"f32": 1e-5, "bf16": 1e-2, "f16": 2e-3}  # of the result's norm
ALIGNMENT = 64  # bytes, which the workspace of a compiled library promises
SHIFTS = (0, 64, 192)  # from a multiple of 256
BATCHES = (1, 2, 3, 7)
RUNS = 3
EM_CUDA = 190


def add_products(plan, found):
    """What a library multiplies: each product once, with its kernels and their blocks for a matrix."""
    for command in plan["commands"]:
        if command["kind"] != "product" or command["symmetric"]:
            continue
        lhs, rhs, addend, out = (command.get(name, {}).get("type") for name in ("lhs", "rhs", "addend", "out"))
        if lhs != rhs or addend not in (None, out) or out not in (lhs, "f32"):
            continue
        k = command["lhs"]["rows" if command["transpose_lhs"] else "cols"]
        made = Product(command["out"]["rows"], command["out"]["cols"], k, lhs, rhs, addend, out, command["transpose_lhs"],
                       command["transpose_rhs"], command["alpha"], command["beta"])  # fmt: skip
        # Factors are no part of what an algorithm is pinned for.
        key = (made.m, made.n, made.k, *made.types(), made.transpose_lhs, made.transpose_rhs)
        found.setdefault(key, (made, command["kernels"]))


def images(library):
    """The machine codes in a library, as they lie there."""
    data = Path(library).read_bytes()
    at = data.find(b"\x7fELF", 1)
    while at >= 0:
        if int.from_bytes(data[at + 18 : at + 20], "little") == EM_CUDA:
            yield data[at:]
        at = data.find(b"\x7fELF", at + 1)


class Batch:
    """Operands of so many blocks in the GPU's memory, `shift` bytes behind a multiple of 256, and their
    results.
    """

    def __init__(self, driver, product, blocks, shift, values):
        self.driver, self.product, self.blocks = driver, product, blocks
        self.sizes = [blocks * size for size in product.bytes()]
        self.memory = [driver.memory(size + 256) for size in self.sizes]
        self.addresses = [one + shift for one in self.memory]
        self.staging = driver.staging(max(self.sizes))
        for tensor, address, size in zip(values, self.addresses, self.sizes, strict=False):
            whole = tensor[:blocks].contiguous()
            ctypes.memmove(self.staging, whole.data_ptr(), size)
            driver.upload(address, self.staging, size)
            driver.wait()

    def clear(self):
        """Poisons the results: what is not written is seen."""
        ctypes.memset(self.staging, 0xFF, self.sizes[-1])
        self.driver.upload(self.addresses[-1], self.staging, self.sizes[-1])

    def results(self):
        self.driver.download(self.staging, self.addresses[-1], self.sizes[-1])
        self.driver.wait()
        made = torch.empty((self.blocks, self.product.m, self.product.n), dtype=DTYPES[self.product.out])
        ctypes.memmove(made.data_ptr(), self.staging, self.sizes[-1])
        return made

    def close(self):
        self.driver.release(self.memory, [self.staging])


def draw(product, blocks):
    generator = torch.Generator().manual_seed(product.m * 31 + product.n * 7 + product.k)
    pairs = zip(product.stored()[:-1], product.types()[:-1], strict=True)
    return [torch.randn((blocks, *shape), generator=generator).to(DTYPES[kind]) for shape, kind in pairs]


def cancelling(product, values):
    """Of sums whose second half takes back the first: what is left is what was rounded, in which the order of
    adding shows. In results of 16 bits of other sums it mostly does not."""
    lhs, rhs, *addend = (one.clone() for one in values)
    left, right = (lhs.mT if product.transpose_lhs else lhs), (rhs.mT if product.transpose_rhs else rhs)
    half = product.k // 2
    left[:, :, 2 * half :] = 0  # a product that nothing takes back would hide it
    left[:, :, half : 2 * half] = left[:, :, :half]
    right[:, half : 2 * half, :] = -right[:, :half, :]
    return [lhs, rhs] + [torch.zeros_like(one) for one in addend]


def exact(product, values):
    lhs, rhs, *addend = (one.double() for one in values)
    lhs = lhs.mT if product.transpose_lhs else lhs
    rhs = rhs.mT if product.transpose_rhs else rhs
    return product.alpha * (lhs @ rhs) + (product.beta * addend[0] if addend else 0)


def bits(tensor):
    return tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int16)


def why_not(driver, lt, product, configuration, values, workspace):
    """Why an algorithm may not be pinned; the bytes of workspace that it needs where it may."""
    needed = 0
    try:
        for numbers in (values, cancelling(product, values)):
            # Each matrix alone: it must have the same bits at any place of any batch.
            expected = torch.cat([alone(driver, lt, product, configuration, [one[i : i + 1] for one in numbers], workspace)
                                  for i in range(max(BATCHES))])  # fmt: skip
            if numbers is values:
                wanted = exact(product, values)
                error = float((expected.double() - wanted).norm() / wanted.norm())
                if not error <= TOLERANCE[product.out]:
                    return f"is {error:.1e} from float64", 0
            for blocks in BATCHES:
                wrong, bytes_ = compared(
                    driver, lt, product, configuration, numbers, expected[:blocks], workspace
                )
                needed = max(needed, bytes_)
                if wrong:
                    return wrong, 0
    except Refused as refused:
        return str(refused), 0
    return "", needed


def compared(driver, lt, product, configuration, values, expected, workspace):
    """Why a batch has not the bits that are expected; the workspace that it needs."""
    blocks = expected.shape[0]
    operation = Operation(lt, product, blocks)
    algorithm, needed = operation.algorithm(configuration)
    try:
        if needed > workspace.size:
            return f"needs {needed} bytes of workspace", 0
        for shift in SHIFTS:
            batch = Batch(driver, product, blocks, shift, values)
            for _ in range(RUNS):
                batch.clear()
                operation.multiply(
                    algorithm, batch.addresses, workspace.address, workspace.size, driver.stream
                )
                different = (
                    (bits(batch.results()) != bits(expected)).flatten(1).any(1).nonzero().flatten().tolist()
                )
                if different:
                    return f"has other bits at places {different} of {blocks}, {shift} bytes further", 0
            batch.close()
    finally:
        operation.close()
    return "", needed


def alone(driver, lt, product, configuration, values, workspace):
    operation, batch = Operation(lt, product, 1), Batch(driver, product, 1, 0, values)
    algorithm, _ = operation.algorithm(configuration)
    batch.clear()
    operation.multiply(algorithm, batch.addresses, workspace.address, workspace.size, driver.stream)
    found = batch.results()
    batch.close()
    operation.close()
    return found


class Workspace:
    def __init__(self, driver, size):
        self.size, self.address = size, driver.memory(size)


def timed(driver, work, rounds):
    """Microseconds of one of many that stand behind each other, the median of some rounds."""
    times, repeats = [], 20
    for _ in range(rounds + 1):
        driver.wait()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        driver.wait()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return statistics.median(times[1:])


def arguments_of_kernel(product, scratch, addresses):
    """What a library's kernel for a product takes (kernel_abi.h): the address of the scratch, which tensor cores do not use,
    those of the operands, and both factors as f32 in one word."""
    return [scratch, *addresses, *struct.unpack("<Q", struct.pack("<ff", product.alpha, product.beta))]


def time_of_kernel(driver, library, product, kernels, batch, rounds):
    """Microseconds that a batch takes by the library's own kernels."""
    arguments = arguments_of_kernel(product, batch.memory[0], batch.addresses)
    for image in images(library):
        try:
            found = [(driver.kernel(image, one["kernel"]), one["items_per_block"]) for one in kernels]
        except Refused:
            continue  # of another chip

        def work(found=found):
            for kernel, items in found:
                driver.launch(kernel, items * batch.blocks, arguments)

        return timed(driver, work, rounds)
    raise Refused(f"expected machine code of {kernels[0]['kernel']} for this GPU in {library}, found none")


def entry_of(driver, lt, product, kernels, options, workspace):
    """The fastest algorithm that may be pinned, as an entry; why there is none."""
    values = draw(product, max(BATCHES))
    candidates = []
    for blocks in (options.blocks, *BATCHES):
        operation = Operation(lt, product, blocks)
        try:
            found = operation.candidates(options.candidates, ALIGNMENT, workspace.size)
        except Refused:
            found = []
        operation.close()
        candidates += [one for one in found if one not in candidates]
    many = [one.repeat(-(-options.blocks // one.shape[0]), 1, 1) for one in values]
    batch = Batch(driver, product, options.blocks, 0, many)
    best, refusals = None, []
    for configuration in candidates:
        wrong, needed = why_not(driver, lt, product, configuration, values, workspace)
        if wrong:
            refusals.append(f"{configuration['algorithm']} {wrong}")
            continue
        operation = Operation(lt, product, options.blocks)
        algorithm, more = operation.algorithm(configuration)

        def work(operation=operation, algorithm=algorithm):
            operation.multiply(algorithm, batch.addresses, workspace.address, workspace.size, driver.stream)

        took = timed(driver, work, options.rounds)
        operation.close()
        if best is None or took < best[0]:
            best = (took, configuration, max(needed, more))
    own = None
    if best and options.library:
        own = time_of_kernel(driver, options.library, product, kernels, batch, options.rounds)
    batch.close()
    if best is None:
        return None, f"none of {len(candidates)} algorithms: {'; '.join(refusals)}"
    if own is not None and own <= best[0]:
        return None, f"the kernel is as fast: {own:.1f} us, algorithm {best[1]['algorithm']} {best[0]:.1f} us"
    names = ["lhs", "rhs", *["addend"] * bool(product.addend), "out"]
    types = {"addend": None} | dict(zip(names, product.types(), strict=True))
    entry = {"cublaslt": lt.version(), "chip": f"sm_{driver.chip()}", "multiprocessors": driver.multiprocessors(),
             "m": product.m, "n": product.n, "k": product.k, "types": types, "transpose_lhs": product.transpose_lhs,
             "transpose_rhs": product.transpose_rhs, "leading": [cols for _, cols in product.stored()], "alignment": ALIGNMENT,
             **best[1], "workspace": best[2], "microseconds": round(best[0], 3)}  # fmt: skip
    if own is not None:
        entry["kernel_microseconds"] = round(own, 3)
    return entry, f"algorithm {best[1]['algorithm']}, {best[0]:.1f} us" + (
        f", the kernel {own:.1f} us" if own is not None else ""
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plans", nargs="+", type=Path, help="<name>.json of libraries")
    parser.add_argument("-o", "--output", type=Path, required=True)
    compared = parser.add_mutually_exclusive_group(required=True)
    compared.add_argument(
        "--library", type=Path, help="lib<name>.so, whose kernels are what an algorithm must be faster than"
    )
    compared.add_argument(
        "--any-speed", action="store_true", help="write algorithms down however fast they are: for tests"
    )
    parser.add_argument("--blocks", type=int, default=8, help="matrices of a batch that is timed")
    parser.add_argument("--candidates", type=int, default=32, help="of heuristics, for each size of a batch")
    parser.add_argument(
        "--most-workspace", type=int, default=32 << 20, help="bytes that an algorithm may use"
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    driver, lt = Driver(), CublasLt()
    workspace = Workspace(driver, options.most_workspace)
    products = {}
    for path in options.plans:
        add_products(json.loads(path.read_text()), products)
    entries = []
    for product, kernels in products.values():
        entry, text = entry_of(driver, lt, product, kernels, options, workspace)
        print(f"{product.m} x {product.n} x {product.k} of {product.lhs}: {text}", flush=True)
        if entry:
            entries.append(entry)
    table = {"format": "stepc-products", "version": 1, "entries": entries}
    options.output.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(entries)} of {len(products)} products in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
