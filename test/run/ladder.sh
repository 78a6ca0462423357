#!/usr/bin/env bash
# The ladder carries weight: every level's text is all that the levels below get, and code grows with
# shapes and rules alone. STEPC names another stepc.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
STEPC=${STEPC:-$ROOT/build/bin/stepc}
ARCHIVE=$(cd "$(dirname "$STEPC")/../lib" && pwd)/libstepc_runtime.a
SPEC=$ROOT/examples/muon.optim
LEVELS="optim decided comm scheduled exec llvm"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
stepc_compile() { "$STEPC" compile "$@" 2>"$work/log" || { cat "$work/log" >&2; fail "stepc compile $*"; }; }

# Steps a library on in-process ranks and prints a hash of what came out.
for compiler in clang++-22 clang++ c++; do command -v $compiler >/dev/null && break; done
$compiler -std=c++20 -O1 -I"$ROOT" -I"$ROOT/runtime/include" "$ROOT"/test/unit/library/{World,Step}.cpp \
  -pthread -ldl -o "$work/step"
hash_of() { timeout 120 "$work/step" "$1/libmuon.so" || fail "stepping $1"; }

manifests=(two_ranks) # and more of them in the widest tier (see test/README.md)
[ "${STEPC_TIER:-land}" != all ] || manifests=(two_ranks hsdp experts)
for manifest in "${manifests[@]}"; do
  echo "compiling on from each level of $manifest gives the same library, byte for byte"
  stepc_compile "$SPEC" --manifest "$ROOT/test/inputs/$manifest.json" -o "$work/$manifest"
  for level in $LEVELS; do
    text=$work/text/$manifest/$level
    stepc_compile "$SPEC" --manifest "$ROOT/test/inputs/$manifest.json" --emit "$level" -o "$text"
    stepc_compile "$text/muon.mlir" -o "$work/again"
    for file in libmuon.so muon.h muon.json; do
      cmp "$work/$manifest/$file" "$work/again/$file" || fail "$file from level $level differs"
    done
  done
done

# edit LEVEL [AFTER FROM TO]...: the text of a level with the first FROM behind each AFTER replaced. A
# number is found by its value, however it is printed. With "every AFTER" all of them are.
edit() {
  mkdir -p "$work/edited"
  python3 - "$work/text/two_ranks/$1/muon.mlir" "$work/edited/muon.mlir" "${@:2}" <<'PYTHON'
import re, sys
source, target, *edits = sys.argv[1:]
text = open(source).read()
while edits:
    after, old, new, *edits = edits
    every = after.startswith("every ")
    start = text.index(after.removeprefix("every "))
    places = [found.span() for found in re.compile(r"\d+\.\d+(?:[eE][+-]\d+)?|" + re.escape(old)).finditer(text, start)
              if found[0] == old or (re.match(r"[\d.]+", old) and float(found[0]) == float(old))]
    if not places:
        sys.exit(f"{source}: expected {old} behind {after}")
    for first, last in reversed(places if every else places[:1]):
        text = text[:first] + new + text[last:]
open(target, "w").write(text)
PYTHON
}
sound=$(hash_of "$work/two_ranks")
# changed WHAT LEVEL [AFTER FROM TO]...: the edits change what a step computes.
changed() {
  edit "${@:2}"
  stepc_compile "$work/edited/muon.mlir" -o "$work/edited"
  local now
  now=$(hash_of "$work/edited")
  ! cmp -s "$work/two_ranks/libmuon.so" "$work/edited/libmuon.so" || fail "level $2 ignores an edit: $1"
  [ "$now" != "$sound" ] || fail "level $2: a step is the same after an edit: $1"
  echo "  $2: $1"
}
# refused WHAT LEVEL AFTER FROM TO: the proof finds that the program is not its rule's.
refused() {
  edit "${@:2}"
  ! "$STEPC" compile "$work/edited/muon.mlir" -o "$work/refused" 2>"$work/log" || fail "level $2 compiles: $1"
  grep -q "expected what rule @Muon makes of" "$work/log" || { cat "$work/log" >&2; fail "level $2: $1"; }
  echo "  $2: $1, but not in the rule: refused"
}
echo "an edit in a level's text changes the library and what it computes"
changed "the default of momentum" optim "optim.route @Muon" 0.95 0.9
changed "a coefficient" optim "optim.orthogonalize" 3.4445 3.0
changed "the default of momentum" decided "optim.route @Muon" 0.95 0.9
changed "a factor of the update" decided "optim.rule @Muon" 0.2 0.3
for level in comm scheduled; do
  # The proof compares numbers, so who edits the program edits its rule, too. 2^-24 of eps is in the stage.
  refused "a scalar of the update" $level "func.func @step" 0.2 0.3
  changed "a scalar of the update" $level "optim.rule @Muon" 0.2 0.3 "every func.func @step" 0.2 0.3
  refused "the smallest norm" $level "over blocks" 5.96046455e-15 5.36441803e-07
  changed "the smallest norm" $level "optim.orthogonalize" 9.9999999999999995e-08 9.0 "every over blocks" 5.96046455e-15 5.36441803e-07
done
refused "a constant of a kernel" exec "@Muon_scalars(%" 0.2 0.3
changed "a constant of a kernel" exec "optim.rule @Muon" 0.2 0.3 "@Muon_scalars(%" 0.2 0.3
# The kernel computes several parameters at once and what is left one by one.
changed "a constant of a kernel" llvm "every @Muon_scalars(%" 0.2 0.3
# A decision changes who computes, and never what.
edit decided "optim.group" "base [0]" "base [1]"
stepc_compile "$work/edited/muon.mlir" -o "$work/edited"
! cmp -s "$work/two_ranks/libmuon.so" "$work/edited/libmuon.so" || fail "level decided ignores an owner"
[ "$(hash_of "$work/edited")" = "$sound" ] || fail "an owner changed the numbers"
echo "  decided: an owner changes the library, and no number"

# Which ranks meet is in the text: those of the mesh are all here, so the world is another library of equal numbers.
communicator="comm.communicator <@$(sed -n 's/.*comm.communicator <@\(.*\), \[.*/\1/p' "$work/text/two_ranks/comm/muon.mlir" | head -1), [<0, 1, 2>]>"
for level in comm scheduled; do
  edit $level "every func.func @step" "$communicator" "comm.world"
  stepc_compile "$work/edited/muon.mlir" -o "$work/edited"
  ! cmp -s "$work/two_ranks/libmuon.so" "$work/edited/libmuon.so" || fail "level $level ignores a communicator"
  [ "$(hash_of "$work/edited")" = "$sound" ] || fail "level $level: a communicator changed the numbers"
  edit $level "every func.func @step" "$communicator" "${communicator/<0, 1, 2>/}"
  ! "$STEPC" compile "$work/edited/muon.mlir" -o "$work/refused" 2>"$work/log" || fail "level $level: each rank alone"
  # Before starts are merged each move says on which ranks it meets, behind them the messages do.
  grep -qE "expected (a communicator on which all ranks of its moves meet|messages between ranks of the communicator)" "$work/log" || fail "level $level: each rank alone: $(cat "$work/log")"
  echo "  $level: other communicators change the library, and no number, or are refused"
done

# How work is cut is the target's choice, and in the text.
edit exec "exec.program arena" " pools" " chunk 5 pools"
stepc_compile "$work/edited/muon.mlir" -o "$work/edited"
! cmp -s "$work/two_ranks/libmuon.so" "$work/edited/libmuon.so" || fail "level exec ignores the size of chunks"
[ "$(hash_of "$work/edited")" = "$sound" ] || fail "the size of chunks changed the numbers"
echo "  exec: the size of chunks changes the library, and no number"

echo "the order of groups in a level's text means nothing, or is refused"
# By name, because the order of groups is that of parameters in the library.
python3 - "$work/in.safetensors" <<'PYTHON'
import json, random, struct, sys
random.seed(3)
shapes, header, data = {"w1": [8, 4], "w2": [4, 8]}, {}, b""
for name in [f"{what}:{name}" for what in ("param", "grad") for name in shapes]:
    header[name] = {"dtype": "F32", "shape": shapes[name.split(":")[1]], "data_offsets": [len(data), len(data) + 128]}
    data += struct.pack("<32f", *(random.gauss(0, 1) for _ in range(32)))
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
# results FOLDER: what its library makes of these tensors, in FOLDER/results, by name.
results() {
  "$STEPC" run "$SPEC" -m "$ROOT/test/inputs/two_ranks.json" --tensors "$work/in.safetensors" --steps 3 \
    --library "$1/libmuon.so" -o "$1/out.safetensors" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "running $1"; }
  python3 - "$1/out.safetensors" >"$1/results" <<'PYTHON'
import json, struct, sys
file = open(sys.argv[1], "rb").read()
size, = struct.unpack("<Q", file[:8])
for name, tensor in sorted(json.loads(file[8 : 8 + size]).items()):
    if name != "__metadata__":
        first, last = tensor["data_offsets"]
        print(name, file[8 + size + first : 8 + size + last].hex())
PYTHON
}
results "$work/two_ranks"
for level in decided comm scheduled exec; do
  python3 - "$work/text/two_ranks/$level/muon.mlir" "$work/edited/muon.mlir" <<'PYTHON'
import sys
source, target = sys.argv[1:]
lines = open(source).read().split("\n")
groups = [i for i, line in enumerate(lines) if line.lstrip().startswith("optim.group ")]
assert len(groups) > 1, source
lines[groups[0]], lines[groups[1]] = lines[groups[1]], lines[groups[0]]
open(target, "w").write("\n".join(lines))
PYTHON
  if "$STEPC" compile "$work/edited/muon.mlir" -o "$work/edited" 2>"$work/log"; then
    results "$work/edited"
    cmp "$work/two_ranks/results" "$work/edited/results" || fail "level $level: swapped groups"
    echo "  $level: the same results"
  else
    grep -q "error: " "$work/log" || fail "level $level: swapped groups fail without an error"
    echo "  $level: refused"
  fi
done

echo "a library steps without its plan in JSON"
mkdir "$work/alone"
cp "$work/two_ranks/libmuon.so" "$work/alone/"
rm -r "$work/two_ranks" "$work/again" "$work/edited"
[ "$(hash_of "$work/alone")" = "$sound" ] || fail "it steps otherwise"

echo "no symbol of the runtime names an optimizer or arithmetic"
names='muon|adam|orthogonal|newton|momentum|lerp|gemm|matmul|sqrt'
nm -C "$ARCHIVE" >"$work/symbols" 2>/dev/null
[ "$(grep -c stepc::runtime "$work/symbols")" -gt 50 ] || fail "nm read no symbols of $ARCHIVE"
! grep -iE "$names" "$work/symbols" || fail "the runtime knows optimizers"
exported=$(nm -D --defined-only "$work/alone/libmuon.so" | awk '{print $3}' | sort | xargs)
[ "$exported" = "muon_library stepc_library_table" ] || fail "the library exports $exported"

# manifest COUNT RANKS SHAPES: parameters p0 ... of these shapes in turn, split by rows.
manifest() {
  python3 - "$@" <<'PYTHON'
import json, sys
count, ranks, shapes = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
print(json.dumps({
    "version": 1,
    "meshes": [{"name": "dp", "axes": [{"name": "dp", "size": ranks}]}],
    "parameters": [{"name": f"p{i}", "shape": shapes[i % len(shapes)], "dtype": "f32", "mesh": "dp",
                    "placements": ["S(0)"]} for i in range(count)]}))
PYTHON
}
size_tool=$(command -v llvm-size-22 || echo size)
text_of() { $size_tool -A "$1/libmuon.so" | awk '$1 == ".text" {print $2}'; }

echo "1,000 parameters need no more code than 8 of the same shapes"
for count in 8 1000; do
  manifest $count 8 '[[64, 64], [128, 64], [64, 128], [64]]' >"$work/small.json"
  stepc_compile "$SPEC" --manifest "$work/small.json" -o "$work/small$count"
  echo "  $count small ones: $(text_of "$work/small$count") bytes of .text"
done
[ "$(text_of "$work/small8")" = "$(text_of "$work/small1000")" ] || fail "code grows with parameters"
# Large ones are cut into waves by their memory: more data, and no more code.
for count in 8 1000; do
  manifest $count 8 '[[768, 768], [3072, 768], [768, 3072], [768]]' >"$work/large.json"
  stepc_compile "$SPEC" --manifest "$work/large.json" -o "$work/large$count"
  stepc_compile "$SPEC" --manifest "$work/large.json" --emit scheduled -o "$work/large$count"
  echo "  $count large ones in $(grep -c 'comm.start' "$work/large$count/muon.mlir") exchanges:" \
    "$(text_of "$work/large$count") bytes of .text"
done
[ "$(grep -c 'comm.start' "$work/large1000/muon.mlir")" -gt "$(grep -c 'comm.start' "$work/large8/muon.mlir")" ] ||
  fail "1,000 large parameters take no more waves than 8"
[ "$(text_of "$work/large8")" = "$(text_of "$work/large1000")" ] || fail "code grows with waves"

# Printed, not asserted: machines differ. The goals are 5 s and 1 GiB.
manifest 1000 64 '[[768, 768], [3072, 768], [768, 3072], [768]]' >"$work/many.json"
python3 - "$STEPC" "$SPEC" "$work" <<'PYTHON'
import resource, subprocess, sys, time
stepc, spec, work = sys.argv[1:]
start = time.monotonic()
subprocess.run([stepc, "compile", spec, "--manifest", work + "/many.json", "-o", work + "/many"],
               check=True, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"1,000 parameters on 64 ranks: {time.monotonic() - start:.1f} s "
      f"({used.ru_utime + used.ru_stime:.1f} s of processor), {used.ru_maxrss / 1024:.0f} MiB")
PYTHON
echo "ladder passed"
