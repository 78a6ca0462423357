"""The GoogleTest binaries of build/bin/unit. Those that take longest run in parts."""

import json
import os

import pytest
from binaries import BUILD, report, run

PARTS = {"codegen-tests": 3, "library-tests": 3, "plan-tests": 2, "products-tests": 4, "ptx-tests": 3}


def parts():
    """Binary, part and number of parts. What does not end in -tests (or a sanitizer's name after it) belongs to a run
    test.
    """
    for binary in sorted((BUILD / "bin" / "unit").glob("*-tests*")):
        if os.access(binary, os.X_OK) and binary.is_file():
            count = PARTS.get(binary.name, 1)
            # Those with a sanitizer's name behind it run when landing.
            marks = pytest.mark.tier("quick" if binary.name.endswith("-tests") else "land")
            for part in range(count):
                yield pytest.param(binary, part, count, id=f"{binary.name}-{part + 1}-of-{count}", marks=marks)


@pytest.mark.parametrize("binary, part, count", list(parts()))
def test_binary(binary, part, count, tmp_path, record_property):
    output = tmp_path / "report.json"
    status, _ = run(
        [binary, "--gtest_brief=1", f"--gtest_output=json:{output}"],
        GTEST_TOTAL_SHARDS=count, GTEST_SHARD_INDEX=part,
    )  # fmt: skip
    assert output.exists(), f"{binary.name} ended before it could report"
    outcomes = []
    for suite in json.loads(output.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                outcomes.append("failed")
            elif case.get("result") == "SKIPPED":
                outcomes.append("skipped")
            elif case.get("status") == "RUN":
                outcomes.append("passed")
    report(record_property, outcomes, status)
