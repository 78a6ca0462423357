// RUN: stepc-opt %s --comm-distribute | FileCheck %s

// What a reduction reads is computed before states are stored: from the old state, of which a copy is kept, and from the first
// reduction. The stage that steps reads the new state.
// CHECK: %[[V:.*]] = comm.shards state @g "v" : <@g, bf16>
// CHECK: %[[OLD:.*]] = comm.copy active %active ins(%[[V]] : {{.*}})
// CHECK: %[[G:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK: %[[LINE:.*]] = comm.stage @g.w0 over shards reduces mean active %active ins(%[[G]] : {{.*}})
// CHECK: %[[MOST:.*]] = comm.stage @g.w0 over shards reduces max active %active ins(%[[G]], %[[OLD]], %[[LINE]] : {{.*}})
// CHECK: %[[KEPT:.*]] = comm.stage @g.w0 over shards of rows active %active ins(%[[V]], %[[LINE]] : {{.*}}) writes(%[[V]] : {{.*}})
// CHECK: comm.stage @g.w0 over shards active %active ins({{.*}}, %[[G]], %[[KEPT]], %[[MOST]] : {{.*}})
optim.rule @Rows hyperparameters ["lr"] states [#optim.state<"v", bf16, rows, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m = optim.reduce mean %grad {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x1xf32>
  %v1 = arith.addf %v, %m : tensor<?x1xf32>
  %b = optim.broadcast %v1 : tensor<?x1xf32> to tensor<?x?xf32>
  %d = arith.divf %grad, %b {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %x = optim.reduce max %d {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x1xf32>
  %y = optim.broadcast %x : tensor<?x1xf32> to tensor<?x?xf32>
  %e = arith.mulf %d, %y {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %p = arith.subf %param, %e {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p, %v1 : tensor<?x?xf32>, tensor<?x1xf32> {optim.writes = [#optim.space<in>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Rows parameters [@a]
