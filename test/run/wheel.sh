#!/usr/bin/env bash
# Makes the wheel and installs it into an empty folder. With a PATH of no program, its compiler compiles and
# proves examples/muon.optim, and four gloo ranks step it as one rank does, bit for bit. Torch and numpy come
# from .venv.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PYTHON=$ROOT/.venv/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

echo "one command makes the wheel"
bash "$ROOT/scripts/wheel.sh" "$work/dist"
wheel=$(echo "$work"/dist/*)
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$ROOT/frontends/python/stepc/__init__.py")
name="^stepc-$version-py3-none-manylinux_2_([0-9]+)_x86_64\\.whl$"
[[ $(basename "$wheel") =~ $name ]] || fail "its name: $wheel"
glibc=${BASH_REMATCH[1]}
[ "$(stat -c %s "$wheel")" -lt 40000000 ] || fail "it has $(stat -c %s "$wheel") bytes"

site=$work/site
"$PYTHON" -m pip install -q --no-deps --no-index --target "$site" "$wheel"
(cd "$site/stepc" && find bin lib -type f | grep -v mpi | sort) >"$work/files"
printf '%s\n' bin/stepc lib/libstepc_nccl.so lib/libstepc_runtime.a lib/libstepc_runtime_cxx.a \
  lib/pkgconfig/stepc-nccl.pc lib/pkgconfig/stepc.pc |
  diff "$work/files" - || fail "the programs of the wheel differ"
diff -r "$ROOT/runtime/include/stepc" "$site/stepc/include/stepc" || fail "the headers differ"
diff -r {"$ROOT/frontends/python","$site"}/stepc/torch/native || fail "the extension's sources differ"
licenses=$site/stepc-$version.dist-info/licenses
cmp "$ROOT/LICENSE" "$licenses/LICENSE"
for library in llvm gcc-runtime zlib zstd cli11; do
  [ -s "$licenses/LICENSE.$library" ] || fail "no license of $library"
done
grep -qi "gcc runtime library exception" "$licenses/LICENSE.gcc-runtime" || fail "no exception of GCC's"

echo "its programs need C's libraries alone, of the version in its name or older"
ldd "$site/stepc/bin/stepc" | awk '{print $1}' | sed 's/.*\///' | sort >"$work/needed"
! grep -vxE 'linux-vdso\.so\.1|lib(c|m|dl|pthread)\.so\.[0-9]+|ld-linux-x86-64\.so\.2' "$work/needed" ||
  fail "the compiler needs more"
newest() { objdump -T "$@" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n1; }
[ "$(newest "$site"/stepc/bin/stepc "$site"/stepc/lib/*.so)" = "GLIBC_2.$glibc" ] ||
  fail "its tag names glibc 2.$glibc"
! strings -a "$site/stepc/bin/stepc" | grep -F "$ROOT" || fail "the compiler names folders of the build"

echo "with an empty PATH it compiles, proves and steps on four ranks"
mkdir "$work/none" "$work/home"
cat >"$work/train.py" <<'PYTHON'
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import stepc
from stepc.torch import Optimizer

folder, definition = sys.argv[1:]
SHAPES = {"layers.0.weight": (24, 16), "layers.1.weight": (10, 24), "lm_head.weight": (12, 16),
          "embed.weight": (12, 16), "norm.weight": (16,)}


def train(rank, size, store):
    """Three steps on given gradients; the whole parameters."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    draw = torch.Generator().manual_seed(1)
    place = lambda: [torch.randn(shape, generator=draw) for shape in SHAPES.values()]
    shard = lambda whole: distribute_tensor(whole, mesh, [Shard(0)])
    parameters = [torch.nn.Parameter(shard(whole)) for whole in place()]
    optimizer = Optimizer(dict(zip(SHAPES, parameters, strict=True)).items(), definition)
    for _ in range(3):
        for parameter, whole in zip(parameters, place(), strict=True):
            parameter.grad = shard(whole)
        optimizer.step()
    whole = [parameter.detach().full_tensor() for parameter in parameters]
    if rank == 0:
        torch.save(whole, f"{folder}/{size}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    compiler = stepc.find_compiler()
    assert compiler == __import__("pathlib").Path(stepc.__file__).resolve().parent / "bin" / "stepc", compiler
    for size in (4, 1):
        with tempfile.TemporaryDirectory() as store:
            mp.start_processes(train, (size, f"{store}/store"), size, start_method="fork")
    four, one = (torch.load(f"{folder}/{size}.pt") for size in (4, 1))
    assert all(torch.equal(a, b) for a, b in zip(four, one, strict=True))
    assert not os.environ["PATH"] or not os.listdir(os.environ["PATH"])
    print(f"four ranks and one agree, with {compiler}")
PYTHON
bare=(env -i "PATH=$work/none" "HOME=$work/home" "PYTHONPATH=$site" "STEPC_CACHE=$work/cache")
(cd "$work" && timeout 300 "${bare[@]}" "$PYTHON" train.py "$work" "$ROOT/examples/muon.optim") |
  tee "$work/out"
grep -qF "$site/stepc/bin/stepc" "$work/out" || fail "another compiler was used"

echo "the command of the package is the compiler; without one it says in a line what to do"
command=("${bare[@]}" "$PYTHON" "$site/bin/stepc")
"${command[@]}" --version | grep -E "^stepc $version \(LLVM 22\.[0-9.]+, commit ([0-9a-f]{12}|unknown)\)$"
"${command[@]}" compile "$ROOT/examples/muon.optim" -m "$ROOT/examples/four_ranks.json" -o "$work/made"
"$ROOT/build/bin/stepc" compile "$ROOT/examples/muon.optim" -m "$ROOT/examples/four_ranks.json" \
  -o "$work/built"
printf '%s\n' "$(newest "$work/made/libmuon.so")" "GLIBC_2.$glibc" | sort -cV ||
  fail "a library needs a newer C library"
diff -r "$work/made" "$work/built" || fail "the compiler of the build folder makes another library"
rm -r "$site/stepc/bin"
if "${command[@]}" --version 2>"$work/refused"; then fail "no compiler, and no error"; fi
[ "$(wc -l <"$work/refused")" = 1 ] &&
  grep -q "^stepc: error: expected the stepc compiler .*scripts/wheel.sh" "$work/refused" ||
  { cat "$work/refused"; fail "expected one line that says what to do"; }
echo "wheel passed"
