#!/usr/bin/env bash
# Trains examples/c_trainer.c on 4, 2 and 1 MPI ranks: the loss falls, and all end with the same
# weights, bit for bit. STEPC names another stepc. 77: skipped, no MPI here.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
STEPC=${STEPC:-$ROOT/build/bin/stepc}
LIBRARIES=$(cd "$(dirname "$STEPC")/../lib" && pwd)
if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null || [ ! -e "$LIBRARIES/libstepc_mpi.so" ]; then
  echo "SKIPPED: mpicc, mpirun or libstepc_mpi.so is not here"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# Containers often lack ptrace, which Open MPI's single-copy path needs.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
text=$(python3 -c 'import glob, os
print(*sorted(glob.glob(os.path.dirname(os.__file__) + "/[a-d]*.py")))')

echo "the C compiler takes the trainer and the generated header without a warning"
for ranks in 4 2 1; do
  sed "s/\"size\": 4/\"size\": $ranks/" "$ROOT/examples/c_trainer_manifest.json" >"$work/manifest.json"
  "$STEPC" compile "$ROOT/examples/c_trainer.optim" --manifest "$work/manifest.json" -o "$work/$ranks" 2>"$work/log" ||
    { cat "$work/log"; fail "stepc compile for $ranks ranks"; }
done
# As system headers: MPI's own are not pedantic.
includes=$(mpicc --showme:compile | sed 's/-I/-isystem /g')
# shellcheck disable=SC2046,SC2086 # flags are lists
cc -std=c11 -Wall -Wextra -pedantic -Werror -O3 $includes -I"$work/4" -I"$ROOT/runtime/include" \
  "$ROOT/examples/c_trainer.c" -L"$work/4" -lc_trainer -L"$LIBRARIES" -lstepc_mpi \
  $(mpicc --showme:link) -lm -o "$work/trainer"

for ranks in 4 2 1; do
  echo "trains on $ranks ranks, and the loss falls"
  # One program for all worlds: they differ in the library.
  # shellcheck disable=SC2086
  LD_LIBRARY_PATH=$work/$ranks:$LIBRARIES timeout 120 \
    mpirun --allow-run-as-root --oversubscribe -np "$ranks" "$work/trainer" --steps 150 $text |
    tee "$work/$ranks.out"
done
for ranks in 2 1; do
  echo "losses and weights on $ranks ranks are those on 4"
  diff <(tail -n +2 "$work/4.out") <(tail -n +2 "$work/$ranks.out") || fail "4 ranks and $ranks differ"
done

echo "a library for another number of ranks is refused"
# shellcheck disable=SC2086
if LD_LIBRARY_PATH=$work/2:$LIBRARIES timeout 120 mpirun --allow-run-as-root --oversubscribe -np 4 \
  "$work/trainer" $text >"$work/refused" 2>&1; then
  fail "4 ranks ran the library of 2"
fi
grep -m1 'c_trainer: rank .*: create: ' "$work/refused" || { cat "$work/refused"; fail "expected create's message"; }
echo "c_trainer passed"
