// Level 5 is a language too: a kernel may be the target's code already, and whatever someone writes into it is lowered, not
// only what our own kernels use today. Vectors of two axes become arrays of LLVM's, poison and indices its own.
// RUN: stepc-opt %s --stepc-llvm | FileCheck %s

module @written attributes {stepc.chip = "x86-64-v3;", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all

  // CHECK-LABEL: llvm.func internal @kernel(
  // CHECK-NOT: unrealized_conversion_cast
  // CHECK: llvm.mlir.poison : f32
  // CHECK: llvm.fadd %{{.*}}, %{{.*}} : vector<4xf32>
  // CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr
  llvm.func internal @kernel(%arguments: !llvm.ptr, %first: i64, %last: i64) {
    %poison = ub.poison : f32
    %base = llvm.load %arguments : !llvm.ptr -> !llvm.ptr
    %from = arith.index_cast %first : i64 to index
    %to = arith.index_cast %last : i64 to index
    %one = arith.constant 1 : index
    scf.for %i = %from to %to step %one {
      %at = arith.index_cast %i : index to i64
      %place = llvm.getelementptr %base[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %row = llvm.load %place {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %both = vector.broadcast %row : vector<4xf32> to vector<2x4xf32>
      %sum = arith.addf %both, %both : vector<2x4xf32>
      %second = vector.extract %sum[1] : vector<4xf32> from vector<2x4xf32>
      llvm.store %second, %place {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      llvm.store %poison, %place {alignment = 4 : i64} : f32, !llvm.ptr
    }
    llvm.return
  }
  exec.program workspace 64 {
    exec.dispatch_chunks @kernel of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<parameter>]
    exec.advance_steps
  }
}
