// IEEE functions become intrinsics that PTX has instructions for, of vectors and scalars; nothing calls libdevice.
// RUN: stepc-opt %s --pass-pipeline='builtin.module(gpu.module(gpu-math-to-intrinsics))' | FileCheck %s
// RUN: stepc-opt %s --stepc-ptx | sed 's/\\0A/\n/g;s/\\09/ /g' | FileCheck %s --check-prefix PTX
gpu.module @kernels [#nvvm.target<chip = "sm_80", features = "+ptx80">] {
  // CHECK-LABEL: gpu.func @f
  // PTX-LABEL: .entry f(
  gpu.func @f(%p: !llvm.ptr<1>) kernel {
    %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %d = arith.extf %x : f32 to f64
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f32) -> f32
    // PTX: sqrt.rn.f32
    %0 = math.sqrt %x : f32
    // CHECK: llvm.call_intrinsic "llvm.fma"(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, f32, f32) -> f32
    // PTX: fma.rn.f32
    %1 = math.fma %0, %x, %x : f32
    // CHECK: llvm.call_intrinsic "llvm.fabs"
    // PTX: abs.f32
    %2 = math.absf %1 : f32
    // CHECK: llvm.call_intrinsic "llvm.maximum"
    // PTX: max.NaN.f32
    %3 = arith.maximumf %2, %x : f32
    // CHECK: llvm.call_intrinsic "llvm.minimum"
    // PTX: min.NaN.f32
    %4 = arith.minimumf %3, %0 : f32
    // CHECK: llvm.call_intrinsic "llvm.copysign"
    // PTX: copysign.f32
    %5 = math.copysign %4, %x : f32
    // CHECK: llvm.call_intrinsic "llvm.floor"
    // PTX: cvt.rmi.f32.f32
    %whole = math.floor %5 : f32
    // A product and a sum stay two roundings.
    // PTX: mul.rn.f32
    // PTX: add.rn.f32
    %6 = arith.mulf %whole, %x : f32
    %7 = arith.addf %6, %x : f32
    // PTX: div.rn.f32
    %8 = arith.divf %7, %0 : f32
    // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (f64) -> f64
    // PTX: sqrt.rn.f64
    %9 = math.sqrt %d : f64
    // CHECK: "llvm.intr.ctlz"(%{{.*}}) <{is_zero_poison = false}>
    // PTX: clz.b64
    %bits = arith.bitcast %9 : f64 to i64
    %10 = math.ctlz %bits : i64
    llvm.store %8, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>
    %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
    llvm.store %10, %q {alignment = 8 : i64} : i64, !llvm.ptr<1>
    gpu.return
  }
}
// PTX-NOT: call
