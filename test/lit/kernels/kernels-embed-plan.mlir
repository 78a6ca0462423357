// RUN: stepc-opt %s --kernels-embed-plan | FileCheck %s
// The same twice: nothing of the process or the locations is in it.
// RUN: stepc-opt %s --kernels-embed-plan -o %t.first
// RUN: sed -e 's/  */ /g' %s | stepc-opt --kernels-embed-plan -o %t.second
// RUN: diff %t.first %t.second

// CHECK: module @my.net
module @my.net attributes {stepc.chip = "x86-64-v3;", stepc.level = "kernels"} {
  // CHECK: llvm.func hidden @stepc_rt_library() -> !llvm.ptr
  // CHECK: llvm.mlir.global external hidden constant @stepc_program_abi_version(2 : i64)
  // CHECK: llvm.mlir.global external hidden constant @stepc_program_plan_bytes({{[0-9]+}} : i64)
  // CHECK: llvm.mlir.global external hidden constant @stepc_program_plan("STEPCPLN
  // CHECK-NOT: optim.
  // CHECK-NOT: comm.
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w] strategy elementwise
  comm.segment @s group @g all
  // CHECK: llvm.func hidden @stepc_program_step(%{{.*}}: !llvm.ptr) {
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {comm.arena_bytes = 64 : i64, stepc.scratch_bytes = 0 : i64, stepc.exchanges = [],
      stepc.launches = [{index = 0 : i64, kind = "chunks"}], stepc.tables = [{kind = "shard_chunks", segment = @s}]} {
    llvm.return
  }
  // CHECK: llvm.func @my_net_library() -> !llvm.ptr
  // CHECK: %[[TABLE:.*]] = llvm.call @stepc_rt_library()
  // CHECK: llvm.return %[[TABLE]]
}
