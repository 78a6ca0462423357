#!/usr/bin/env bash
# Sets up and runs tests: unit, lit, Python and run tests. Ends with 'N passed, N failed, N skipped'.
#
#   test/run.sh [quick|land|all] [KIND]...   a tier of tests (land by default), and kinds of them: see test/README.md
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
# Trainers that test_trainers.py trains with, 0.3 GB, while the tests are built. Where pip has not got them, their tests
# are skipped.
trainers=frontends/python/requirements-trainers.txt
stamp=.venv/trainers.sha256
wanted=$(sha256sum <"$trainers")
installing=
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "run: installing trainers into .venv"
  (.venv/bin/pip install -q --no-deps -r "$trainers" </dev/null && echo "$wanted" >"$stamp") &
  installing=$!
fi
targets=(all)
case " $* " in *" all "*) targets+=(fuzzers) ;; esac
cmake --build build --target "${targets[@]}"
if [ -n "$installing" ]; then
  wait "$installing" || echo "run: no trainers by pip: tests that train with them will be skipped"
fi
exec .venv/bin/python test/run_all.py "$@"
