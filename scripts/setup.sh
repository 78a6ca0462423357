#!/usr/bin/env bash
# Sets up stepc on a fresh Debian or Ubuntu machine: system packages, a Python environment in
# .venv, and a build in build/. Installs only what is missing; safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(cmake ninja-build g++ clang-22 lld-22 liblld-22-dev libclang-rt-22-dev libmlir-22-dev mlir-22-tools
  llvm-22-dev llvm-22-tools libcli11-dev libgtest-dev libgmock-dev openmpi-bin libopenmpi-dev
  pkg-config python3 python3-dev python3-venv zlib1g-dev libzstd-dev)

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)

have() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

missing=()
for package in "${packages[@]}"; do
  have "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -q
  if ! apt-cache show libmlir-22-dev >/dev/null 2>&1; then
    # Ubuntu releases without LLVM 22: LLVM's own archive, as apt.llvm.org describes it.
    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
    "${sudo[@]}" apt-get install -yq --no-install-recommends ca-certificates wget gnupg
    wget -qO- https://apt.llvm.org/llvm-snapshot.gpg.key |
      "${sudo[@]}" tee /etc/apt/trusted.gpg.d/apt.llvm.org.asc >/dev/null
    echo "deb http://apt.llvm.org/$codename/ llvm-toolchain-$codename-22 main" |
      "${sudo[@]}" tee /etc/apt/sources.list.d/llvm-22.list >/dev/null
    "${sudo[@]}" apt-get update -q
  fi
  "${sudo[@]}" apt-get install -yq --no-install-recommends "${missing[@]}"
fi

if [ ! -x .venv/bin/python ]; then
  python3 -m venv .venv
fi
stamp=.venv/requirements.sha256
wanted=$(cat frontends/python/requirements.txt frontends/python/requirements-gpu.txt frontends/python/pyproject.toml | sha256sum)
hasGpuPackages=true
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "setup: installing Python packages into .venv"
  # ptxas, a disassembler and CUDA's headers: tests assemble the GPU's code and compile a trainer with them, and
  # nothing else needs them.
  .venv/bin/pip install -q --no-deps -r frontends/python/requirements-gpu.txt || hasGpuPackages=false
fi

install_python_packages() {
  # PyTorch's own index has small CPU builds; without it the pinned version comes from wherever pip looks.
  local cpu_wheels=https://download.pytorch.org/whl/cpu index=()
  if .venv/bin/python -c "import urllib.request; urllib.request.urlopen('$cpu_wheels/', timeout=5)" 2>/dev/null; then
    index=(--extra-index-url "$cpu_wheels")
  fi
  .venv/bin/pip install -q "${index[@]}" -r frontends/python/requirements.txt &&
    .venv/bin/pip install -q -e frontends/python || return 1
  if $hasGpuPackages; then
    echo "$wanted" >"$stamp"
  else
    echo "setup: no ptxas by pip: tests will not assemble the GPU's code; the next setup tries again"
  fi
}

# PyTorch is a large download, and its extension one large file: both are made while the compiler is built, which
# needs neither of them.
prepare_python() {
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    install_python_packages || return 1
  fi
  echo "setup: building the PyTorch extension"
  # Steps do without it, with more time in Python.
  .venv/bin/python -m stepc.torch.build_extension || echo "setup: going on without the PyTorch extension"
}
set -m # in a process group of its own, so that what it started ends with this script
prepare_python </dev/null &
set +m
python=$!
trap 'kill -- "-$python" 2>/dev/null || true' EXIT

echo "setup: building"
cmake --preset default >build.log 2>&1 || { cat build.log; exit 1; }
rm -f build.log
# What users need; test/run.sh builds the tests.
cmake --build build --target stepc stepc-opt stepc_mpi stepc_nccl

if ! wait "$python"; then
  echo "setup: installing the Python packages failed" >&2
  exit 1
fi
trap - EXIT
