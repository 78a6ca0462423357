"""Whole steps of all rules give the bits of the CPU's library, whatever addresses shards have."""

import random

from checks.machine import HOST, Check
from checks.steps import expect_equal, stepped


def compare(machine, case, misaligned):
    seed = random.SystemRandom().randrange(10**6)
    expected = stepped(machine.library(case, "cpu"), HOST, seed)
    found = stepped(machine.library(case), machine.place, seed, misaligned=misaligned)
    count = expect_equal(found, expected, f"on the CPU, with seed {seed},")
    return f"{count} elements of 3 steps have the CPU's bits (seed {seed})"


def checks(machine):
    for case in ("example", "odd", "draws", "places", "matrices", "rules"):
        for name in machine.named(case):
            for misaligned in (False, True):
                kind = "misaligned" if misaligned else "aligned"
                yield Check(
                    f"bits.{name}.{kind}", 40, lambda name=name, off=misaligned: compare(machine, name, off)
                )
