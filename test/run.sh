#!/usr/bin/env bash
# Sets up and runs all tests: unit, lit, Python and run tests. Ends with
# 'N passed, N failed, N skipped'.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
# A browser, 100 MB, for the page of `stepc simulate`. Where no package has one, its tests are skipped.
if ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null; then
  sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  echo "run: installing chromium-headless-shell"
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -yq --no-install-recommends chromium-headless-shell >/dev/null ||
    echo "run: no chromium-headless-shell by apt: tests of the simulator's page will be skipped"
fi
cmake --build build
exec .venv/bin/python test/run_all.py "$@"
