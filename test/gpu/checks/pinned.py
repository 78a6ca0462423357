"""A table of pinned products, made as benchmarks/pin_products.py makes it; its entries asked for again, by
other numbers.

Libraries are compiled where there is no GPU, so none here has a table: what a compiled library makes of one
is tested there, on a stand-in for cuBLASLt.
"""

import json
import subprocess
import sys

import torch
from checks.machine import Check, Failed, Skipped

SECONDS = 100
BLOCKS = 5  # of a batch, other than those that made the table


def make(machine):
    if machine.dry:
        raise Skipped("no GPU")
    library = machine.path("pinned", "cores")
    output = machine.folder / "products.json"
    command = [sys.executable, "pin_products.py", library.with_name("step.json"), "--library", library, "-o", output]
    command += ["--candidates", "8", "--rounds", "3", "--blocks", "4"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, cwd=machine.folder
    )
    if done.returncode:
        raise Failed(f"exit {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
    table = json.loads(output.read_text())
    lines = done.stdout.strip().splitlines()
    for entry in table["entries"]:
        verify(entry)
    return f"{lines[-1]}; {'; '.join(lines[:-1])}", {"table": table}


def verify(entry):
    """A product by an entry alone, as a library makes it, and in a batch: equal bits, near to float64."""
    import pin_products as pin
    from cublaslt import CublasLt, Driver, Operation, Product

    driver, lt = Driver(), CublasLt()
    found = (lt.version(), f"sm_{driver.chip()}", driver.multiprocessors())
    if found != (entry["cublaslt"], entry["chip"], entry["multiprocessors"]):
        raise Failed(f"expected an entry for {found}, found one for {entry}")
    types = entry["types"]
    beta = 0.75 if types["addend"] else 0
    product = Product(*(entry[name] for name in "mnk"), types["lhs"], types["rhs"], types["addend"], types["out"], entry["transpose_lhs"],
                      entry["transpose_rhs"], 1.5, beta)  # fmt: skip
    pairs = zip(product.stored()[:-1], product.types()[:-1], strict=True)
    values = [torch.randn((BLOCKS, *shape)).to(pin.DTYPES[kind]) for shape, kind in pairs]
    workspace = pin.Workspace(driver, entry["workspace"])
    for numbers in (values, pin.cancelling(product, values)):
        operation, batch = Operation(lt, product, BLOCKS), pin.Batch(driver, product, BLOCKS, 64, numbers)
        algorithm, needed = operation.algorithm(entry)
        if needed > entry["workspace"]:
            raise Failed(f"expected {entry['workspace']} bytes of workspace of {entry}, found {needed}")
        batch.clear()
        operation.multiply(algorithm, batch.addresses, workspace.address, workspace.size, driver.stream)
        results = batch.results()
        batch.close()
        operation.close()
        for i in range(BLOCKS):
            alone = pin.alone(driver, lt, product, entry, [one[i : i + 1] for one in numbers], workspace)
            if not torch.equal(pin.bits(alone[0]), pin.bits(results[i])):
                raise Failed(
                    f"expected the same bits alone and at place {i} of {BLOCKS}, found others by {entry}"
                )
        if numbers is values:
            wanted = pin.exact(product, values)
            error = float((results.double() - wanted).norm() / wanted.norm())
            if not error <= pin.TOLERANCE[product.out]:
                raise Failed(f"expected results near float64, found {error:.1e} by {entry}")
    driver.release([workspace.address], [])


def checks(machine):
    yield Check("pinned.table", SECONDS, lambda: make(machine))
