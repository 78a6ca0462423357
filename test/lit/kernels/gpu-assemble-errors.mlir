// RUN: env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt %s --split-input-file --gpu-assemble=chip=sm_87 -verify-diagnostics

// Nothing to assemble.
// expected-error @+1 {{expected one gpu.binary of one object, found 0}}
module {
}

// -----

// expected-error @+1 {{ptxas failed: no such chip}}
module {
  gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "// text">]
}
