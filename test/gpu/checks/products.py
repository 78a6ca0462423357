"""The bits of a matrix depend neither on what is multiplied beside it, nor on waves, nor on the run."""

import random

from checks.machine import HOST, Check, Failed
from checks.steps import expect_equal, stepped

SEED = random.SystemRandom().randrange(10**6)


def of_the_first(values):
    """The matrices that every batch has, without step counts."""
    return {name: one for name, one in values.items() if name.split(":")[1:] and name.split(":")[1].endswith(".0")}


def expect_some(values):
    if not values:
        raise Failed("expected matrices that all batches have, found none")
    return values


def chain(machine, case):
    expected = stepped(machine.library(case, "cpu"), HOST, SEED)
    found = stepped(machine.library(case), machine.place, SEED)
    return f"{expect_equal(found, expected, 'on the CPU')} elements have the CPU's bits"


def alone(machine, first, other):
    expected = expect_some(of_the_first(stepped(machine.library(first), machine.place, SEED)))
    found = of_the_first(stepped(machine.library(other), machine.place, SEED))
    return f"{expect_equal(found, expected, 'alone')} elements have the bits that they have alone"


def repeated(machine, case):
    expected = stepped(machine.library(case), machine.place, SEED)
    for _ in range(4):
        count = expect_equal(stepped(machine.library(case), machine.place, SEED), expected, "in the first run")
    return f"{count} elements are equal in five runs"


def checks(machine):
    first, *others = machine.named("products")
    yield Check(f"products.bits.{first}", 30, lambda: chain(machine, first))
    for other in others:
        yield Check(f"products.alone.{other}", 30, lambda other=other: alone(machine, first, other))
    yield Check("products.repeated", 40, lambda: repeated(machine, others[0]))
