"""The scripts of test/run, over whole programs. Exit status 0 is passed, 77 skipped."""

import pytest
from binaries import ROOT, run

LAST = ("fuzzers.sh", "passes_carry_weight.sh", "wheel.sh")  # of the widest tier alone
SCRIPTS = sorted((ROOT / "test" / "run").glob("*.sh"))


@pytest.mark.parametrize("script", [
    pytest.param(script, id=script.name, marks=pytest.mark.tier("all" if script.name in LAST else "land"))
    for script in SCRIPTS
])  # fmt: skip
def test_script(script):
    status, output = run(["bash", script])
    if status == 77:
        pytest.skip(output.strip().splitlines()[-1] if output.strip() else script.name)
    if status:
        pytest.fail(f"{script.name}: exit status {status}", pytrace=False)
