#!/usr/bin/env bash
# Every parser of ours under libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, from the examples and
# test inputs on; then with a planted fault, which must be found.
#
#   test/run/fuzzers.sh            STEPC_FUZZ_SECONDS (60) for each parser, STEPC_SEED (1)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="${STEPC_BUILD:-build}"
seconds=${STEPC_FUZZ_SECONDS:-60} seed=${STEPC_SEED:-1}
[[ -x "$build/bin/fuzz/fuzz-language" ]] || {
  echo "SKIPPED: no fuzzers in $build/bin/fuzz: cmake --build $build --target fuzzers"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

mkdir -p "$work"/{language,manifest,safetensors,plan}
cp examples/*.optim examples/models/models.optim frontends/language/library/*.optim "$work/language"
printf 'blocks "*.qkv" if present except "*.bias" repeat 8 rows 512, 128, 128\nblocks "a" columns each 64\n' \
  >"$work/language/blocks.optim"
cp test/inputs/*.json "$work/manifest"
.venv/bin/python - "$build" "$work" <<'PYTHON'
import ctypes, json, pathlib, struct, subprocess, sys
from stepc._library import Library
build, work = sys.argv[1], pathlib.Path(sys.argv[2])
header = json.dumps({"param:w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                     "state:w:m": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}}).encode()
(work / "safetensors" / "index").write_text(json.dumps({"metadata": {}, "weight_map": {"w": "1.st", "v": "a/2.st"}}))
(work / "safetensors" / "two").write_bytes(struct.pack("<Q", len(header)) + header + bytes(26))
for manifest in sorted(pathlib.Path("test/inputs").glob("*.json")):
    subprocess.run([f"{build}/bin/stepc", "compile", "examples/muon.optim", "--manifest", manifest, "-o", work / "out"],
                   check=True, stderr=subprocess.DEVNULL)
    table = Library(work / "out" / "libmuon.so").table
    (work / "plan" / manifest.stem).write_bytes(ctypes.string_at(table.plan, table.plan_bytes))
    (work / "out" / "libmuon.so").unlink()  # the next one is another file
PYTHON

for parser in language manifest safetensors plan; do
  mkdir "$work/new"
  fuzz() { # runs with the options given; output in $work/log
    timeout 300 "$build/bin/fuzz/fuzz-$parser" -seed="$seed" -max_len=4096 -timeout=20 -rss_limit_mb=3000 \
      -artifact_prefix="$work/" "$@" >"$work/log" 2>&1
  }
  if ! fuzz -max_total_time="$seconds" -print_final_stats=1 "$work/new" "$work/$parser"; then
    tail -n 40 "$work/log"
    mkdir -p "$build/fuzz"
    cp "$work"/{crash,leak,timeout,oom}-* "$build/fuzz" 2>/dev/null || true
    echo "FAILED: fuzz-$parser -seed=$seed; its input is in $build/fuzz" && exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
  echo "fuzz-$parser: $runs inputs from seed $seed, no report"
  [[ ${runs:-0} -gt 100 ]] || { echo "FAILED: fuzz-$parser ran next to nothing"; exit 1; }
  if STEPC_FUZZ_FAULT=1 fuzz -runs=10000 "$work/new" "$work/$parser"; then
    echo "FAILED: fuzz-$parser did not see the planted fault" && exit 1
  fi
  grep -q "ERROR: AddressSanitizer: heap-buffer-overflow" "$work/log" || { cat "$work/log"; exit 1; }
  rm -rf "$work/new"
done
echo "fuzzers passed"
