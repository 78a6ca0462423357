#!/usr/bin/env bash
# Makes dist/stepc-<version>-py3-none-manylinux_<glibc>_x86_64.whl: the compiler linked with LLVM's archives,
# what it links libraries with, the transports, the headers and the Python package. Where it is installed,
# nothing of a toolchain is needed.
#
#   scripts/wheel.sh [FOLDER]     another folder for the wheel than dist/
#
# On a fresh machine it calls scripts/setup.sh first.
set -euo pipefail
dist=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../dist}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fail() { echo "wheel: $*" >&2; exit 1; }
llvm=/usr/lib/llvm-22/bin
python=.venv/bin/python
limit=$((40 * 1000 * 1000)) # bytes that the wheel may have

for needed in $python build/build.ninja $llvm/llvm-readelf $llvm/../lib/liblldELF.a; do
  if [ ! -e "$needed" ]; then
    bash scripts/setup.sh
    break
  fi
done
cmake --build build --target stepc stepc_nccl

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A copy of the package without what was made in it, and everything else in its folder.
tar -C frontends/python -c --exclude=__pycache__ --exclude='_extension*' --exclude='.building-*' \
  README.md pyproject.toml stepc | tar -C "$work" -x
cmake --install build --prefix "$work/stepc" --strip >"$work/log" ||
  { cat "$work/log"; fail "cmake --install"; }

# The licenses of what is linked into the compiler and the archives, as the packages that have it tell them.
cp LICENSE "$work/LICENSE"
license() { # license NAME FILE: that of the package with the file
  local package
  package=$(dpkg-query -S "$(realpath "$2")" | head -n1 | cut -d: -f1)
  local text=/usr/share/doc/$package/copyright
  [ -f "$text" ] || fail "expected the license of $package as $text, found none"
  cp "$text" "$work/LICENSE.$1"
}
value() { sed -n "s/^$1:[A-Z]*=//p" build/CMakeCache.txt; }
license llvm /usr/lib/llvm-22/lib/libLLVMCore.a
license gcc-runtime "$(clang++-22 -print-file-name=libstdc++.a)"
license zlib "$(value STEPC_ZLIB_ARCHIVE)"
license zstd "$(value STEPC_ZSTD_ARCHIVE)"
license cli11 "$(value CLI11_DIR)/CLI11Config.cmake"

# The oldest C library that has what the programs ask for.
glibc=$($llvm/llvm-readelf --version-info "$work/stepc/bin/stepc" "$work"/stepc/lib/*.so |
  grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -uV | tail -n1)
platform=manylinux_${glibc#GLIBC_}
platform=${platform/./_}_$(uname -m)

# The same sources give the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
export SOURCE_DATE_EPOCH
$python -m pip wheel -q --no-deps --no-build-isolation --no-index --wheel-dir "$work/made" \
  --config-settings=--build-option=--plat-name="$platform" "$work"
wheel=$(echo "$work"/made/*.whl)
size=$(stat -c %s "$wheel")
[ "$size" -lt $limit ] || fail "expected a wheel of less than $limit bytes, found $size"
mkdir -p "$dist"
mv "$wheel" "$dist"
echo "wheel: $dist/$(basename "$wheel"), $((size / 1000000)) MB"
