// RUN: env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt %s --split-input-file --gpu-assemble=chips=sm_87 -verify-diagnostics

// Of several chips each that fails is told, whoever is done first.
// RUN: not env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt %s --split-input-file --mlir-print-op-on-diagnostic=false --gpu-assemble=chips=sm_87,sm_90,sm_87 2>&1 | grep -c '[a]/ptxas failed: no such chip' | grep -x 2

// Nothing to assemble.
// expected-error @+1 {{expected one gpu.binary of one object, found 0}}
module {
}

// -----

// expected-error @+1 {{ptxas failed: no such chip}}
module {
  gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "// text">]
}
