"""The FileCheck tests of test/lit, in parts."""

import json

import pytest
from binaries import BUILD, report, run

LIT = "/usr/lib/llvm-22/bin/lit"
PARTS = 6


@pytest.mark.tier("quick")
@pytest.mark.parametrize("part", range(1, PARTS + 1), ids=lambda part: f"{part}-of-{PARTS}")
def test_lit(part, tmp_path, record_property):
    output = tmp_path / "report.json"
    status, _ = run(
        [LIT, "-sv", "-j1", f"--num-shards={PARTS}", f"--run-shard={part}", "--output", output, BUILD / "test" / "lit"]
    )
    assert output.exists(), "lit ended before it could report"
    outcomes = {"PASS": "passed", "XFAIL": "passed", "FLAKYPASS": "passed"}
    outcomes |= {"UNSUPPORTED": "skipped", "SKIPPED": "skipped"}
    found = [test["code"] for test in json.loads(output.read_text())["tests"]]
    report(record_property, [outcomes.get(code, "failed") for code in found if code != "EXCLUDED"], status)
