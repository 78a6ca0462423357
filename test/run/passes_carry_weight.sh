#!/usr/bin/env bash
# Shows that every pass of the ladder carries weight: with any one of them left out, some FileCheck test
# fails. STEPC_OPT_SKIP_PASS makes stepc-opt leave a pass out; lit runs the tests as they are: those named like a pass of
# ours (all that the Passes.td files define), and those of the pipelines for the passes that come with MLIR.
#
#   test/run/passes_carry_weight.sh            exit 0 when every pass is missed by a test, 77 without stepc-opt
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="${STEPC_BUILD:-build}"
lit=/usr/lib/llvm-22/bin/lit
[[ -x "$build/bin/stepc-opt" && -e "$build/test/lit/lit.site.cfg.py" && -x $lit ]] || {
  echo "SKIPPED: no stepc-opt in $build/bin"
  exit 77
}
report=$(mktemp)
trap 'rm -f "$report"' EXIT
run() { # PASS FILTER: the tests with the pass left out, until one fails
  STEPC_OPT_SKIP_PASS="$1" "$lit" -q --no-progress-bar --max-failures=1 --filter "$2" "$build/test/lit" >"$report" 2>&1
}
row() { printf '%-36s %s\n' "$@"; }

ours=$(sed -n 's/^def [A-Za-z]* : Pass<"\([^"]*\)".*/\1/p' passes/*/Passes.td)
theirs=$(echo 'module {}' | "$build/bin/stepc-opt" --stepc-decide --stepc-distribute --stepc-schedule --stepc-exec \
  --stepc-llvm --dump-pass-pipeline 2>&1 >/dev/null | sed -n 's/^ *\([a-z][a-z0-9-]*\)\([,{].*\)\{0,1\}$/\1/p' |
  sort -u | grep -vxF "$ours")
filter() { # the tests that should see a pass: its own (errors have a file of their own), or the pipelines'
  if grep -qxF -- "$1" <<<"$ours"; then echo "/$1(-[a-z0-9-]+)?[.]mlir"; else echo 'pipelines[./]'; fi
}

# With nothing left out all of these tests pass; otherwise a failure below would mean nothing.
all=$(for pass in $ours; do filter "$pass"; done | paste -sd'|')
if ! run no-such-pass "pipelines[./]|$all"; then
  cat "$report"
  echo "tests fail although no pass is left out"
  exit 1
fi

light=0
row "pass left out" "a failing test"
for pass in $ours $theirs; do
  run "$pass" "$(filter "$pass")" && failed= || failed=$(sed -n 's/^  stepc :: //p' "$report" | head -n 1)
  if [[ -n $failed ]]; then
    row "$pass" "$failed"
  else
    row "$pass" "NONE"
    light=$((light + 1))
  fi
done
if [[ $light -gt 0 ]]; then
  echo "$light passes can be left out, and no test fails"
  exit 1
fi
echo "every pass carries weight"
