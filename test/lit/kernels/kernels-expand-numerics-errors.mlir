// RUN: stepc-opt %s --split-input-file --kernels-expand-numerics -verify-diagnostics

// Nothing tells what the code is for.
// expected-error @+1 {{expected the attribute stepc.chip on the module, found none}}
module {
}

// -----

// A function whose bits a library would decide.
module attributes {stepc.chip = "x86-64-v3;"} {
  llvm.func @wave(%x: f32) -> f32 {
    // expected-error @+1 {{'math.sin' op expected a function with one sequence for vectors and scalars}}
    %r = math.sin %x : f32
    llvm.return %r : f32
  }
}

// -----

// A remainder is a call of the math library.
module attributes {stepc.chip = "x86-64-v3;"} {
  llvm.func @remainder(%x: f64) -> f64 {
    // expected-error @+1 {{'arith.remf' op expected a function with one sequence for vectors and scalars}}
    %r = arith.remf %x, %x : f64
    llvm.return %r : f64
  }
}

// -----

// And so is a fused multiply-add of f64 on a chip that has none.
module attributes {stepc.chip = "nehalem;"} {
  llvm.func @fused(%x: f64) -> f64 {
    // expected-error @+1 {{'math.fma' op expected a function with one sequence for vectors and scalars}}
    %r = math.fma %x, %x, %x : f64
    llvm.return %r : f64
  }
}

// -----

// Arithmetic that a chip would do in bf16.
module attributes {stepc.chip = "x86-64-v3;"} {
  llvm.func @sum(%x: vector<16xbf16>) -> vector<16xbf16> {
    // expected-error @+1 {{'arith.addf' op expected arithmetic in f32 or f64, found 'vector<16xbf16>'}}
    %r = arith.addf %x, %x : vector<16xbf16>
    llvm.return %r : vector<16xbf16>
  }
}

// -----

// Two roundings at once.
module attributes {stepc.chip = "x86-64-v3;"} {
  llvm.func @narrow(%x: f64) -> bf16 {
    // expected-error @+1 {{'arith.truncf' op expected arithmetic in f32 or f64, found 'f64'}}
    %r = arith.truncf %x : f64 to bf16
    llvm.return %r : bf16
  }
}
