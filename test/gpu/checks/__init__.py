"""The checks, in the order in which they run: what takes seconds first, timings last."""

from checks import bits, errors, pinned, products, ranks, sanitizer, streams, timings, trainer

MODULES = (bits, products, errors, streams, trainer, ranks, sanitizer, pinned, timings)


def all_checks(machine):
    return [check for module in MODULES for check in module.checks(machine)]
