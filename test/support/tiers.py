"""How much the tests do: one of three tiers, in the variable STEPC_TIER.

``quick`` runs before each commit, ``land`` is what lands (the default), ``all`` runs before a release. ``test/run.sh`` sets
the variable. Tests of a later tier are left out, and random tests draw as many cases as their tier has time for.
"""

import os

TIERS = ("quick", "land", "all")


def tier() -> str:
    """The tier of this run."""
    found = os.environ.get("STEPC_TIER", "land")
    if found not in TIERS:
        raise ValueError(f"STEPC_TIER: expected one of {', '.join(TIERS)}, found '{found}'")
    return found


def includes(one: str) -> bool:
    """Whether this run has the tests of tier ``one``."""
    return TIERS.index(one) <= TIERS.index(tier())


def draws(landing: int) -> int:
    """The number of cases of a random test: ``landing`` in the tier ``land``, a quarter in ``quick``, eight times as many
    in ``all``. At least one. (``test/support/Tier.h`` says the same to unit tests.)
    """
    return max(1, {"quick": landing // 4, "land": landing, "all": 8 * landing}[tier()])


def cases(least: int, enough, times: int):
    """Numbers of cases: ``least``, and then more until ``enough()`` says that rare kinds were drawn, but not more than
    ``times`` as many."""
    for number in range(times * least):
        if number >= least and enough():
            return
        yield number
