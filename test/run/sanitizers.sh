#!/usr/bin/env bash
# Compiled steps on in-process ranks under AddressSanitizer and UndefinedBehaviorSanitizer, and under
# ThreadSanitizer: clean as they are, and stopped at a planted overrun and a planted race. STEPC names
# another stepc.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
STEPC=${STEPC:-$ROOT/build/bin/stepc}
LIBRARIES=$(cd "$(dirname "$STEPC")/../lib" && pwd)
export STEPC_RUNTIME_DIR=$LIBRARIES
# Layouts, and orders of a GPU's threads, that are stepped: STEPC_TIER says how many (see test/README.md).
manifests=(two_ranks experts) seeds=("")
[ "${STEPC_TIER:-land}" != all ] || manifests=(two_ranks hsdp experts uneven) seeds=("" 1 2 3)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
stepc_compile() { "$STEPC" compile "$@" 2>"$work/log" || { cat "$work/log" >&2; fail "stepc compile $*"; }; }

# The sanitizers' run-time libraries are those of the compiler that made the archives.
for compiler in clang++-22 clang++; do command -v $compiler >/dev/null && break; done
sources=("$ROOT"/test/unit/library/World.cpp "$ROOT"/test/unit/library/Step.cpp)
build() { # build OUTPUT FLAGS...
  "$compiler" -std=c++20 -O1 -g "${@:2}" -I"$ROOT" -I"$ROOT/runtime/include" "${sources[@]}" -pthread -ldl -o "$1"
}
build "$work/plain"
build "$work/address" -fsanitize=address,undefined -fno-sanitize-recover=all
build "$work/thread" -fsanitize=thread
export UBSAN_OPTIONS=print_stacktrace=1

# caught LOG PATTERN WHAT: a report in a log, in a kernel that the compiler made.
caught() {
  grep -q "$2" "$1" || { cat "$1" >&2; fail "$3: expected '$2'"; }
  grep -m1 -E '#0 (.* in )?(Muon|AdamW|stepc_product|stepc_reduce)_[a-z0-9_]+ ' "$1" ||
    { cat "$1" >&2; fail "$3: expected a kernel on the stack"; }
}

for manifest in "${manifests[@]}"; do
  input=$ROOT/test/inputs/$manifest.json
  stepc_compile "$ROOT/examples/muon.optim" --manifest "$input" -o "$work/$manifest"
  expected=$("$work/plain" "$work/$manifest/libmuon.so")

  echo "$manifest: instrumented code steps without a report, with the same bits, on 1 and 3 threads"
  stepc_compile "$ROOT/examples/muon.optim" --manifest "$input" --sanitize address -o "$work/$manifest-asan"
  for threads in 1 3; do
    found=$(timeout 200 "$work/address" "$work/$manifest-asan/libmuon.so" --threads $threads) ||
      fail "$manifest with $threads threads under AddressSanitizer"
    [ "$found" = "$expected" ] || fail "instrumented code computes something else"
  done
done
nm -D "$work/two_ranks-asan/libmuon.so" >"$work/symbols"
for symbol in __asan_report_load_n __asan_report_store_n; do
  grep -q "$symbol" "$work/symbols" || fail "the code is not instrumented: no $symbol"
done

for manifest in two_ranks experts; do
  echo "$manifest: a parameter bound an element too short is caught in the generated code"
  if timeout 200 "$work/address" "$work/$manifest-asan/libmuon.so" --short >"$work/report" 2>&1; then
    cat "$work/report" >&2
    fail "AddressSanitizer saw nothing"
  fi
  caught "$work/report" "ERROR: AddressSanitizer: heap-buffer-overflow" "a short buffer"
done

# Address randomization with many bits is more than ThreadSanitizer's memory map takes.
steady=()
setarch "$(uname -m)" -R true 2>/dev/null && steady=(setarch "$(uname -m)" -R)
for manifest in "${manifests[@]}"; do
  echo "$manifest: threads and ranks have no data race, on 1 and 3 threads"
  stepc_compile "$ROOT/examples/muon.optim" --manifest "$ROOT/test/inputs/$manifest.json" --sanitize thread \
    -o "$work/$manifest-tsan"
  for threads in 1 3; do
    found=$(TSAN_OPTIONS=halt_on_error=1 timeout 200 "${steady[@]}" "$work/thread" \
      "$work/$manifest-tsan/libmuon.so" --threads $threads) || fail "$manifest with $threads threads under ThreadSanitizer"
    [ "$found" = "$("$work/plain" "$work/$manifest/libmuon.so")" ] || fail "instrumented code computes something else"
  done
done
nm -D "$work/two_ranks-tsan/libmuon.so" >"$work/symbols"
grep -q __tsan_write4 "$work/symbols" || fail "the code is not instrumented"

echo "interpreted kernels: the same bits, and no report"
for sanitizer in address thread; do
  stepc_compile "$ROOT/examples/muon.optim" --manifest "$ROOT/test/inputs/two_ranks.json" --target interpret \
    --sanitize $sanitizer -o "$work/interpret-$sanitizer"
  found=$(TSAN_OPTIONS=halt_on_error=1 timeout 200 "${steady[@]}" "$work/$sanitizer" \
    "$work/interpret-$sanitizer/libmuon.so" --threads 3) || fail "interpreted kernels under the $sanitizer sanitizer"
  [ "$found" = "$("$work/plain" "$work/two_ranks/libmuon.so")" ] || fail "interpreted kernels compute something else"
done

echo "a GPU's kernels on this machine: the same bits, no report of their threads, and a short parameter is caught"
for sanitizer in address thread; do
  stepc_compile "$ROOT/examples/muon.optim" --manifest "$ROOT/test/inputs/two_ranks.json" --target emulated \
    --sanitize $sanitizer -o "$work/emulated-$sanitizer"
  for seed in "${seeds[@]}"; do
    found=$(env TSAN_OPTIONS=halt_on_error=1 ${seed:+STEPC_EMULATED_SEED=$seed} timeout 200 "${steady[@]}" "$work/$sanitizer" \
      "$work/emulated-$sanitizer/libmuon.so" --threads 3) || fail "a GPU's kernels under the $sanitizer sanitizer"
    [ "$found" = "$("$work/plain" "$work/two_ranks/libmuon.so")" ] || fail "a GPU's kernels compute something else"
  done
done
if timeout 200 "$work/address" "$work/emulated-address/libmuon.so" --short >"$work/report" 2>&1; then
  cat "$work/report" >&2
  fail "AddressSanitizer saw nothing"
fi
caught "$work/report" "ERROR: AddressSanitizer: heap-buffer-overflow" "a short buffer of a GPU's kernel"

echo "a parameter that two ranks were given in one place is caught in the generated code"
# Without an exchange: its locks would order what the ranks do.
cat >"$work/adamw.optim" <<'OPTIM'
optimizer AdamW(lr) {
  state m : f32
  m = lerp(m, grad, 0.1)
  param = param - lr * m
}
route { AdamW(lr = 0.1) for rest }
OPTIM
cat >"$work/replicated.json" <<'JSON'
{"version": 1, "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": 2}]}],
 "parameters": [{"name": "bias", "shape": [7], "dtype": "f32", "mesh": "dp", "placements": ["R"]}]}
JSON
stepc_compile "$work/adamw.optim" --manifest "$work/replicated.json" --sanitize thread -o "$work/replicated"
if TSAN_OPTIONS=halt_on_error=1 timeout 200 "${steady[@]}" "$work/thread" "$work/replicated/libadamw.so" --shared \
  --steps 100 >"$work/report" 2>&1; then
  cat "$work/report" >&2
  fail "ThreadSanitizer saw nothing"
fi
caught "$work/report" "WARNING: ThreadSanitizer: data race" "shared memory"
echo "sanitizers passed"
