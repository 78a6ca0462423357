// RUN: stepc-opt %s --split-input-file --kernels-expand-numerics -verify-diagnostics

// Nothing tells what the code is for.
// expected-error @+1 {{expected the attribute stepc.chip on the module, found none}}
module {
}

// -----

// A function whose bits a library would decide.
module attributes {stepc.chip = "x86-64-v3;"} {
  llvm.func @wave(%x: f32) -> f32 {
    // expected-error @+1 {{'math.sin' op expected a function of f32 with one sequence for vectors and scalars}}
    %r = math.sin %x : f32
    llvm.return %r : f32
  }
}
