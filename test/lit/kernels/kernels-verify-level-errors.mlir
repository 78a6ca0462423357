// RUN: stepc-opt %s --split-input-file --kernels-verify-level -verify-diagnostics
// RUN: not stepc-opt %s --split-input-file --kernels-verify-level=level=llvm 2>&1 | FileCheck %s
// RUN: not stepc-opt %s --split-input-file --kernels-verify-level=level=cuda 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: expected level kernels or llvm, found 'cuda'

// A computation that no kernel took.
module {
  // expected-error @+1 {{'func.func' op expected to be lowered before level kernels, but is still here}}
  func.func @step() {
    return
  }
}

// -----

module {
  llvm.func @stepc_program_step(%context: !llvm.ptr) {
    // expected-error @+1 {{'comm.world' op expected to be lowered before level kernels, but is still here}}
    %w = comm.world
    llvm.return
  }
}

// -----

// Legal in kernels, not in llvm.
// CHECK: error: 'arith.addi' op expected to be lowered before level llvm, but is still here
module {
  llvm.func @kernel(%a: i64) -> i64 {
    %b = arith.addi %a, %a : i64
    llvm.return %b : i64
  }
}
