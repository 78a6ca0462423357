"""The bits of a matrix depend neither on what is multiplied beside it, nor on waves, nor on the run."""

import functools
import os
import random

import torch
from checks.machine import HOST, Check, Failed
from checks.steps import expect_equal, stepped

TOLERANCE = 2e-2
SEED = random.SystemRandom().randrange(10**6)


def of_the_first(values):
    """The matrices that every batch has, without step counts."""
    return {
        name: one for name, one in values.items() if name.split(":")[1:] and name.split(":")[1].endswith(".0")
    }


def expect_some(values):
    if not values:
        raise Failed("expected matrices that all batches have, found none")
    return values


@functools.cache
def first_run(machine, case):
    return stepped(machine.fastest(case), machine.place, SEED)


def chain(machine, case):
    expected = stepped(machine.library(case, "cpu"), HOST, SEED)
    found = stepped(machine.library(case), machine.place, SEED)
    return f"{expect_equal(found, expected, 'on the CPU')} elements have the CPU's bits"


def close(machine, case):
    """Products on tensor cores, in an order of their own, against the CPU's: bf16 rounds some elements
    otherwise.
    """
    expected = stepped(machine.library(case, "cpu"), HOST, SEED, 1)
    found = stepped(machine.fastest(case), machine.place, SEED, 1)
    errors = {}
    for name, one in expected.items():
        if name.startswith("param:"):
            want, got = (bits.view(torch.bfloat16).double() for bits in (one, found[name]))
            errors[name] = float((got - want).norm() / want.norm())
    worst = max(errors, key=errors.get)
    # NaN fails. A product that is wrong in one tile changes far more.
    if not all(error <= TOLERANCE for error in errors.values()):
        raise Failed(f"expected {worst} within {TOLERANCE} of the CPU's, found {errors[worst]:.2e}")
    return f"within {errors[worst]:.1e} of the CPU's ({worst})"


def alone(machine, first, other):
    expected = expect_some(of_the_first(first_run(machine, first)))
    found = of_the_first(first_run(machine, other))
    return f"{expect_equal(found, expected, 'alone')} elements have the bits that they have alone"


def on_clusters(machine, case, clusters):
    """Lists of tiles for fewer clusters than the GPU has."""
    expected = first_run(machine, case)
    os.environ["STEPC_MOST_CLUSTERS"] = str(clusters)
    try:
        found = stepped(machine.fastest(case), machine.place, SEED)
    finally:
        del os.environ["STEPC_MOST_CLUSTERS"]
    return f"{expect_equal(found, expected, 'on all clusters')} elements are equal on {clusters} of the GPU's clusters"


def repeated(machine, case):
    expected = first_run(machine, case)
    runs = 2 if machine.dry else 5
    for _ in range(runs - 1):
        count = expect_equal(
            stepped(machine.fastest(case), machine.place, SEED), expected, "in the first run"
        )
    return f"{count} elements are equal in {runs} runs"


def checks(machine):
    first = "products.1"
    others = [name for name in machine.named("products") if name not in (first, "products.close")]
    for case in (first, "products.close"):
        yield Check(f"products.bits.{case.split('.')[1]}", 30, lambda case=case: chain(machine, case))
    yield Check("products.close", 30, lambda: close(machine, "products.close"))
    for other in others:
        yield Check(
            f"products.alone.{other.split('.')[1]}", 30, lambda other=other: alone(machine, first, other)
        )
    for clusters in (3, 1):
        yield Check(f"products.clusters.{clusters}", 40, lambda clusters=clusters: on_clusters(machine, first, clusters))
    yield Check("products.repeated", 40, lambda: repeated(machine, "products.2"))
