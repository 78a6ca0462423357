#!/usr/bin/env bash
# Tests and times libraries for NVIDIA's GPUs, in two phases:
#   run.sh build [--dry] [--small] [--only CASES] [OUT]  where stepc is built: everything that the second phase needs, into OUT
#   run.sh [--dry] [OUT]                  where a GPU is: all checks, then timings, and a table
# OUT is build/gpu without a word; a copy of this script that stands in such a folder means that folder. --dry builds, and
# runs, libraries of `emulated` in place of a GPU's. README.md says more.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
phase=run
if [ "${1:-}" = build ]; then
  phase=build
  shift
fi
options=()
out=
while [ $# -gt 0 ]; do
  case $1 in
    --results | --only) options+=("$1" "${2:?--results: expected a value}"); shift ;;
    --*) options+=("$1") ;;
    *) [ -z "$out" ] || { echo "run.sh: expected one folder, found '$out' and '$1'" >&2; exit 2; }; out=$1 ;;
  esac
  shift
done
if [ -z "$out" ]; then
  [ -f "$here/cases.json" ] && out=$here || out=$here/../../build/gpu
fi
if [ "$phase" = build ]; then
  python=$here/../../.venv/bin/python
  [ -x "$python" ] || { echo "run.sh: expected $python, which scripts/setup.sh makes, found none" >&2; exit 2; }
  exec "$python" "$here/build.py" "${options[@]}" "$out"
fi
[ -f "$out/cases.json" ] || { echo "run.sh: expected a folder that 'run.sh build' made, found '$out'" >&2; exit 2; }
exec "${PYTHON:-python3}" "$out/suite.py" "${options[@]}"
