// A kernel of 384 threads in clusters of two blocks, with dynamic shared memory, becomes PTX.
// RUN: stepc-opt %s --stepc-ptx | FileCheck %s
// CHECK: .extern .shared .align 1024 .b8 memory[]
// CHECK: .visible .entry wide(
// CHECK: .maxntid 384
// CHECK: .reqnctapercluster 2
module {
  gpu.module @kernels [#nvvm.target<chip = "sm_90a", features = "+ptx80", O = 3>] {
    llvm.mlir.global external @memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    gpu.func @wide(%to: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 384, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, nvvm.minctasm = 1 : i32} {
      %memory = llvm.mlir.addressof @memory : !llvm.ptr<3>
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %mine = llvm.getelementptr %memory[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %byte = llvm.mlir.constant(7 : i8) : i8
      llvm.store %byte, %mine : i8, !llvm.ptr<3>
      gpu.barrier
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %other = llvm.getelementptr %memory[%block] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %found = llvm.load %other : !llvm.ptr<3> -> i8
      llvm.store %found, %to : i8, !llvm.ptr<1>
      gpu.return
    }
  }
}
