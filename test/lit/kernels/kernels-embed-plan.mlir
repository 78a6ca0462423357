// RUN: stepc-opt %s --kernels-embed-plan | FileCheck %s
// The same twice: nothing of the process or the locations is in it.
// RUN: stepc-opt %s --kernels-embed-plan -o %t.first
// RUN: sed -e 's/  */ /g' %s | stepc-opt --kernels-embed-plan -o %t.second
// RUN: diff %t.first %t.second

// CHECK: module @my.net
module @my.net attributes {stepc.chip = "x86-64-v3;", stepc.level = "exec"} {
  // CHECK: llvm.mlir.global internal constant @stepc_program_plan("STEPCPLN
  // CHECK: llvm.mlir.global internal constant @stepc_program_target("cpu\00")
  // CHECK: llvm.mlir.global external hidden constant @stepc_device_cpu() {{.*}} : !llvm.array<0 x i8>
  // The kernels that commands name, in the order in which they are first named.
  // CHECK: llvm.mlir.global internal constant @stepc_program_kernels() {{.*}} : !llvm.array<2 x ptr> {
  // CHECK: llvm.mlir.addressof @second
  // CHECK: llvm.mlir.addressof @first
  // What others see of it, named after the kind of target: the version of kernel_abi.h first.
  // CHECK: llvm.mlir.global external hidden constant @stepc_program_cpu() {{.*}} : !llvm.struct<(i64, ptr, ptr, i64, i64, i64, ptr, ptr, ptr)> {
  // CHECK: llvm.mlir.constant(22 : i64)
  // CHECK: llvm.mlir.addressof @stepc_program_target
  // CHECK: llvm.mlir.addressof @stepc_program_plan
  // The plan's length, the hash of its bytes, and that of these two numbers.
  // CHECK-COUNT-3: llvm.mlir.constant({{-?[0-9]+}} : i64)
  // CHECK: llvm.mlir.addressof @stepc_program_kernels
  // CHECK: llvm.mlir.zero : !llvm.ptr
  // CHECK: llvm.mlir.addressof @stepc_device_cpu
  // CHECK-NOT: optim.
  // CHECK-NOT: comm.
  // CHECK-NOT: exec.
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  llvm.func internal @first(%arguments: !llvm.ptr, %from: i64, %to: i64) {
    llvm.return
  }
  llvm.func internal @second(%arguments: !llvm.ptr, %from: i64, %to: i64) {
    llvm.return
  }
  exec.program arena 64 {
    exec.dispatch_parameters @second of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.dispatch_chunks @first of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>]
    exec.advance_steps
  }
  // The library's entry is made where it is linked.
  // CHECK-NOT: my_net_library
}
