"""Saved programs compute the bits that they have always computed: test/saved_bits.json holds digests of them.

Bits that change by intention are saved anew with `test/saved_bits.py digest`, in the commit that changes them.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from compiler import ROOT, STEPC
from tiers import includes

sys.path.insert(0, str(ROOT / "test"))
import saved_bits

pytestmark = pytest.mark.skipif(not STEPC.is_file(), reason="build/bin/stepc was not built")

INTERPRETED = saved_bits.PORTABLE.replace("cpu", "interpret")


@pytest.mark.parametrize("target", [saved_bits.PORTABLE, pytest.param(INTERPRETED, marks=pytest.mark.tier("all"))])
def test_bits_are_those_that_were_saved(tmp_path, target):
    """All of them in the widest tier, which also interprets them; when landing every sixteenth."""
    expected = json.loads(saved_bits.DIGESTS.read_text())
    assert list(expected) == list(saved_bits.saved_programs()), "expected the programs that are drawn now"
    names = list(expected)[:: 1 if includes("all") else 16]
    with ThreadPoolExecutor(2) as pool:
        digests = pool.map(lambda name: saved_bits.digest(name, tmp_path, target), names)
        found = dict(zip(names, digests, strict=True))
    others = [name for name in names if found[name]["given"] != expected[name]["given"]]
    assert not others, f"other programs are drawn or other tensors given: {others}"
    wrong = [name for name in names if found[name]["bits"] != expected[name]["bits"]]
    assert not wrong, f"other bits: {wrong}"
