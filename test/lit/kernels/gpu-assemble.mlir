// PTX becomes machine code of the chip, in constants of the types in kernel_abi.h. (The assembler here is the test's own.)
// RUN: env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt %s --gpu-assemble=chip=sm_90a | FileCheck %s
// CHECK-NOT: gpu.binary
// CHECK: llvm.mlir.global internal constant @stepc_image_sm_90a("sm_90a of 14 bytes") {{.*}}alignment = 16
// CHECK: llvm.mlir.global internal constant @stepc_chip_sm_90a("sm_90a\00")
// The last of the images is zeros.
// CHECK: llvm.mlir.global internal constant @stepc_program_images()
// CHECK-SAME: !llvm.array<2 x struct<(ptr, i64, i64, i64, ptr, i64, i64, i64)>>
// CHECK: llvm.mlir.zero : !llvm.array<2 x
// CHECK-DAG: llvm.mlir.constant(9 : i64)
// CHECK-DAG: llvm.mlir.addressof @stepc_image_sm_90a

// The PTX itself stands behind them, with a zero at its end, where it is asked for.
// RUN: env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt %s --gpu-assemble="chip=sm_90 ptx" | FileCheck %s --check-prefix PTX
// PTX: llvm.mlir.global internal constant @stepc_image_sm_90("sm_90 of 14 bytes")
// PTX: llvm.mlir.global internal constant @stepc_image_ptx("// fourteen at\00") {{.*}}alignment = 16
// PTX: llvm.mlir.global internal constant @stepc_chip_ptx("sm_80\00")
// PTX: !llvm.array<3 x struct<(ptr, i64, i64, i64, ptr, i64, i64, i64)>>
// PTX: %[[KIND:.*]] = llvm.mlir.constant(2 : i64)
// PTX-NEXT: llvm.mlir.addressof @stepc_image_ptx

// Much of it is assembled by four threads.
// RUN: sh %S/Inputs/much_ptx.sh | env STEPC_CUDA_BIN=%S/Inputs/cuda stepc-opt --gpu-assemble=chip=sm_80 | FileCheck %s --check-prefix MUCH
// MUCH: llvm.mlir.global internal constant @stepc_image_sm_80("sm_80 of 530000 bytes by -split-compile=4")
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "// fourteen at">]
