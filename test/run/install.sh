#!/usr/bin/env bash
# `cmake --install` into an empty folder that is then moved: its compiler makes a library, and pkg-config tells
# a C compiler all that examples/c_trainer.c needs to build and to run on two MPI ranks. 77: skipped, no MPI or
# no pkg-config here.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null || ! command -v pkg-config >/dev/null ||
  [ ! -e "$ROOT/build/lib/libstepc_mpi.so" ]; then
  echo "SKIPPED: mpicc, mpirun, pkg-config or libstepc_mpi.so is not here"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

echo "an installation has each file once, and may be moved"
cmake --install "$ROOT/build" --prefix "$work/first" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "cmake --install"; }
mv "$work/first" "$work/prefix"
(cd "$work/prefix" && find . -type f | sort) >"$work/files"
diff "$work/files" - <<EOF || fail "the installed files differ"
./bin/stepc
$(cd "$ROOT/runtime" && find ./include/stepc -type f | sort)
./lib/libstepc_mpi.so
./lib/libstepc_nccl.so
./lib/libstepc_runtime.a
./lib/libstepc_runtime_cxx.a
./lib/pkgconfig/stepc-mpi.pc
./lib/pkgconfig/stepc-nccl.pc
./lib/pkgconfig/stepc.pc
EOF
! grep -r "$ROOT" "$work/prefix/lib/pkgconfig" || fail "a file for pkg-config names the source tree"

export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
stepc=$(pkg-config --variable=compiler stepc)
"$stepc" --version | grep -q "^stepc $(pkg-config --modversion stepc) (" ||
  fail "pkg-config tells another version"

echo "the C trainer builds with what pkg-config says, and trains on two ranks"
# Containers often lack ptrace, which Open MPI's single-copy path needs.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
sed 's/"size": 4/"size": 2/' "$ROOT/examples/c_trainer_manifest.json" >"$work/manifest.json"
# Neither the folder of the build nor a toolchain is on the way of the compiler.
mkdir "$work/none"
PATH=$work/none "$stepc" compile "$ROOT/examples/c_trainer.optim" -m "$work/manifest.json" -o "$work/made"
includes=$(mpicc --showme:compile | sed 's/-I/-isystem /g')
# shellcheck disable=SC2046,SC2086 # flags are lists
cc -std=c11 -Wall -Wextra -pedantic -Werror -O2 $includes -I"$work/made" "$ROOT/examples/c_trainer.c" \
  -L"$work/made" -lc_trainer $(pkg-config --cflags --libs stepc stepc-mpi) $(mpicc --showme:link) -lm \
  -o "$work/trainer"
texts=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
LD_LIBRARY_PATH=$work/made:$(pkg-config --variable=libdir stepc) timeout 120 \
  mpirun --allow-run-as-root --oversubscribe -np 2 "$work/trainer" --steps 150 "$texts"/[a-d]*.py
echo "install passed"
