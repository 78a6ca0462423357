#!/bin/sh
# Runs the runtime's tests on four MPI ranks: mpi_runtime.sh [BUILD]. 77: skipped, no MPI here.
build=${1:-build}
if ! command -v mpirun >/dev/null || [ ! -x "$build/bin/unit/runtime-mpi" ]; then
  echo "SKIPPED: MPI was not found when this was built, or mpirun is not installed"
  exit 77
fi
# Containers often lack ptrace, which Open MPI's single-copy path needs; and run as root.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
for test in runtime-mpi runtime-mpi-parts; do
  echo "$test"
  timeout 120 mpirun -np 4 "$build/bin/unit/$test" || exit 1
done
