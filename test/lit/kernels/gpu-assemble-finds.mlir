// ptxas is found when it is needed: the first that is new enough, also where an older one stands before it.
// RUN: rm -rf %t && mkdir -p %t/home/bin %t/packages/stepc/bin %t/packages/nvidia/cu13 %t/tree/build/bin %t/tree/.venv/lib/python3.11/site-packages/nvidia/cu13
// RUN: cp %S/Inputs/cuda/ptxas %t/home/bin
// RUN: env PATH=%S/Inputs/cuda_old:/usr/bin:/bin CUDA_HOME=%t/home %build/bin/stepc-opt %s --gpu-assemble=chip=sm_80 | FileCheck %s
// RUN: env PATH=%S/Inputs/cuda_old:/usr/bin:/bin CUDA_HOME=%t/nowhere CUDA_PATH=%t/home %build/bin/stepc-opt %s --gpu-assemble=chip=sm_80 | FileCheck %s
// CHECK: @stepc_image_sm_80("sm_80 of 14 bytes")

// On the path, which comes first.
// RUN: env PATH=%t/home/bin:/usr/bin:/bin CUDA_HOME=%S/Inputs/none %build/bin/stepc-opt %s --gpu-assemble=chip=sm_80 | FileCheck %s

// Among pip's packages beside stepc's.
// RUN: cp -r %t/home/bin %t/packages/nvidia/cu13/bin
// RUN: cp %build/bin/stepc-opt %t/packages/stepc/bin
// RUN: env PATH=%S/Inputs/cuda_old:/usr/bin:/bin %t/packages/stepc/bin/stepc-opt %s --gpu-assemble=chip=sm_80 | FileCheck %s

// In the environment of a source tree.
// RUN: cp -r %t/home/bin %t/tree/.venv/lib/python3.11/site-packages/nvidia/cu13/bin
// RUN: mv %t/packages/stepc/bin/stepc-opt %t/tree/build/bin
// RUN: env PATH=%S/Inputs/cuda_old:/usr/bin:/bin %t/tree/build/bin/stepc-opt %s --gpu-assemble=chip=sm_80 | FileCheck %s

// The folder that is named is the only one.
// RUN: not env STEPC_CUDA_BIN=%S/Inputs/cuda_old CUDA_HOME=%t/home stepc-opt %s --gpu-assemble=chip=sm_80 2>&1 | FileCheck %s --check-prefix OLD
// OLD: error: expected ptxas of CUDA 13.1 or later, found 12.4 as {{.*}}cuda_old/ptxas (`pip install
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "// fourteen at">]
