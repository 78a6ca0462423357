#!/usr/bin/env bash
# Sets up and runs all tests: unit, lit, Python and run tests. Ends with
# 'N passed, N failed, N skipped'.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
cmake --build build
exec .venv/bin/python test/run_all.py "$@"
