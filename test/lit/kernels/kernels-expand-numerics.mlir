// RUN: stepc-opt %s --split-input-file --kernels-expand-numerics | FileCheck %s

// bf16 is rounded and extended by integer operations, whatever the chip; f16 by the chip that can.
module attributes {stepc.chip = "x86-64-v3;"} {
  // CHECK-LABEL: llvm.func @conversions
  // CHECK-NOT: extf {{.*}}bf16
  // CHECK-NOT: truncf {{.*}} to vector<16xbf16>
  // CHECK: arith.shli
  // CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
  llvm.func @conversions(%x: vector<16xf32>, %y: vector<16xbf16>) -> vector<16xf16> {
    %a = arith.truncf %x : vector<16xf32> to vector<16xbf16>
    %b = arith.extf %a : vector<16xbf16> to vector<16xf32>
    %c = arith.extf %y : vector<16xbf16> to vector<16xf32>
    %d = arith.addf %b, %c : vector<16xf32>
    %e = arith.truncf %d : vector<16xf32> to vector<16xf16>
    llvm.return %e : vector<16xf16>
  }

  // A reciprocal square root has two roundings.
  // CHECK-LABEL: llvm.func @reciprocal
  // CHECK: %[[ROOT:.*]] = math.sqrt %{{.*}} : vector<16xf32>
  // CHECK: arith.divf %{{.*}}, %[[ROOT]]
  llvm.func @reciprocal(%x: vector<16xf32>) -> vector<16xf32> {
    %r = math.rsqrt %x : vector<16xf32>
    llvm.return %r : vector<16xf32>
  }

  // Small whole exponents are products.
  // CHECK-LABEL: llvm.func @cube
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[X:.*]], %[[X]] : vector<16xf32>
  // CHECK: arith.mulf %[[SQUARE]], %[[X]]
  // CHECK-NOT: pow
  // CHECK: llvm.return
  llvm.func @cube(%x: vector<16xf32>) -> vector<16xf32> {
    %c = arith.constant dense<3.0> : vector<16xf32>
    %r = math.powf %x, %c : vector<16xf32>
    llvm.return %r : vector<16xf32>
  }

  // Other powers are those of f64, rounded once.
  // CHECK-LABEL: llvm.func @power
  // CHECK-COUNT-2: arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
  // CHECK-NOT: pow
  // CHECK: arith.truncf %{{.*}} : vector<4xf64> to vector<4xf32>
  llvm.func @power(%x: vector<4xf32>, %y: vector<4xf32>) -> vector<4xf32> {
    %r = math.powf %x, %y : vector<4xf32>
    llvm.return %r : vector<4xf32>
  }

  // exp and log are polynomials of fused multiply-adds.
  // CHECK-LABEL: llvm.func @transcendental
  // CHECK-NOT: math.exp
  // CHECK-NOT: math.log
  // CHECK: math.fma
  llvm.func @transcendental(%x: f32) -> f32 {
    %e = math.exp %x : f32
    %l = math.log %e : f32
    llvm.return %l : f32
  }

  // Scalar stages are f64: series, in which a fused multiply-add gives the error of a product.
  // CHECK-LABEL: llvm.func @scalars
  // CHECK: %[[NEGATIVE:.*]] = arith.negf %{{.*}} : f64
  // CHECK: math.fma %{{.*}}, %{{.*}}, %[[NEGATIVE]] : f64
  // CHECK-NOT: math.{{exp|log|powf}}
  // CHECK: llvm.return
  llvm.func @scalars(%x: f64) -> f64 {
    %p = math.powf %x, %x : f64
    %l = math.log %p : f64
    %e = math.exp %l : f64
    llvm.return %e : f64
  }
}

// -----

// A chip without conversions gets them in integers.
module attributes {stepc.chip = "nehalem;"} {
  // Without fused multiply-adds those of f32 are worked out in f64, and the error of a product of f64 by splitting.
  // CHECK-LABEL: llvm.func @unfused
  // CHECK-NOT: math.fma
  // CHECK: llvm.return
  llvm.func @unfused(%x: f32, %y: f64) -> f64 {
    %e = math.exp %x : f32
    %w = arith.extf %e : f32 to f64
    %p = math.powf %w, %y : f64
    llvm.return %p : f64
  }

  // CHECK-LABEL: llvm.func @half
  // CHECK-NOT: arith.truncf
  // CHECK-NOT: arith.extf
  llvm.func @half(%x: f32) -> f32 {
    %h = arith.truncf %x : f32 to f16
    %r = arith.extf %h : f16 to f32
    llvm.return %r : f32
  }
}
