// RUN: stepc-opt %s --split-input-file --kernels-verify-level -verify-diagnostics
// RUN: not stepc-opt %s --split-input-file --kernels-verify-level=level=llvm 2>&1 | FileCheck %s
// RUN: not stepc-opt %s --split-input-file --kernels-verify-level=level=cuda 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: expected level exec or llvm, found 'cuda'

// A computation that no kernel took.
module {
  // expected-error @+1 {{'func.func' op expected to be lowered before level exec, but is still here}}
  func.func @step() {
    return
  }
}

// -----

module {
  func.func private @kernel() {
    // expected-error @+1 {{'comm.world' op expected to be lowered before level exec, but is still here}}
    %w = comm.world
    return
  }
}

// -----

// What a target makes of kernels. Not all of it is legal in llvm.
// CHECK: error: 'arith.addi' op expected to be lowered before level llvm, but is still here
module {
  // expected-error @+1 {{'llvm.func' op expected to be lowered before level exec, but is still here}}
  llvm.func @kernel(%a: i64) -> i64 {
    %b = arith.addi %a, %a : i64
    llvm.return %b : i64
  }
}

// -----

// Fused or not, as the chip likes.
module {
  func.func private @kernel(%a: vector<4xf32>) -> vector<4xf32> {
    // expected-error @+1 {{'vector.fma' op expected math.fma, or a product and a sum, at level exec, found an operation that rounds once or twice as the chip likes}}
    %b = vector.fma %a, %a, %a : vector<4xf32>
    return %b : vector<4xf32>
  }
}

// -----

// CHECK: error: 'llvm.intr.fmuladd' op expected math.fma, or a product and a sum, at level llvm
module {
  // expected-error @+1 {{'llvm.func' op expected to be lowered before level exec}}
  llvm.func @kernel(%a: vector<4xf32>) -> vector<4xf32> {
    %b = llvm.intr.fmuladd(%a, %a, %a) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
    llvm.return %b : vector<4xf32>
  }
}

// -----

// Flags let a compiler round otherwise.
// CHECK: error: 'llvm.fadd' op expected no fast-math flags at level llvm
module {
  // expected-error @+1 {{'llvm.func' op expected to be lowered before level exec}}
  llvm.func @kernel(%a: vector<4xf32>) -> vector<4xf32> {
    %b = llvm.fadd %a, %a {fastmathFlags = #llvm.fastmath<contract>} : vector<4xf32>
    llvm.return %b : vector<4xf32>
  }
}

// -----

module {
  func.func private @kernel(%a: f32) -> f32 {
    // expected-error @+1 {{'arith.addf' op expected no fast-math flags at level exec, found}}
    %b = arith.addf %a, %a fastmath<reassoc> : f32
    return %b : f32
  }
}

// -----

// Entries of a table that no product was given: the pass that does it was left out.
// CHECK: error: expected no exec.products at level llvm, which exec-pin-products takes
// expected-error @+1 {{expected no exec.products at level exec, which exec-pin-products takes}}
module attributes {exec.products = []} {
}
