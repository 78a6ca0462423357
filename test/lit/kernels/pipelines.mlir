// Down to level 6, from text between the levels and without: the same text.
// RUN: stepc-opt %repo/test/unit/codegen/inputs/muon_two_ranks.mlir --stepc-exec -o %t.exec
// RUN: FileCheck %s --check-prefix=EXEC < %t.exec
// RUN: stepc-opt %t.exec --stepc-llvm -o %t.llvm
// RUN: FileCheck %s --check-prefix=LLVM < %t.llvm
// RUN: stepc-opt %repo/test/unit/codegen/inputs/muon_two_ranks.mlir --stepc-exec --stepc-llvm -o %t.direct
// RUN: diff %t.llvm %t.direct
// RUN: stepc-opt %t.llvm | diff %t.llvm -
// Products are chains of fused multiply-adds, rounded once each.
// RUN: grep -c 'llvm.intr.fma(' %t.llvm

// EXEC: stepc.level = "exec"
// EXEC: comm.segment
// EXEC: exec.program arena
// EXEC: exec.apply #optim.block_reduce<norm{{.*}}> of
// EXEC: exec.product fused_chain of
// EXEC: exec.advance_steps
// EXEC: func.func private @Muon_in_f32_bf16
// EXEC: linalg.generic
// EXEC: func.func private @Muon_out_f32_bf16
// EXEC-NOT: stepc_product
// EXEC-NOT: llvm.
// EXEC-NOT: vector<

// LLVM: stepc.level = "llvm"
// LLVM-NOT: scf.
// LLVM-NOT: arith.
// LLVM-NOT: fastmath
