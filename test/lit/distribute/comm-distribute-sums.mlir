// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s

// Contributions go to the ranks that keep the states, which add them up.
// CHECK-LABEL: module @to_shards
// CHECK: %[[SENT:.*]] = comm.copy active %active ins(%{{.*}} : !comm.shards<@g, bf16, gradient_shards>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, gradient_shards to shards, sent>>)
// CHECK: %[[RECEIVED:.*]] = comm.exchange %{{.*}} sends(%[[SENT]] :
// CHECK: %[[SUM:.*]] = comm.sum by 4 ins(%[[RECEIVED]] : tensor<?xbf16, #comm.place<@g.w0, full, gradient_shards to shards, received>>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, shards, kept>>)
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[SUM]], %{{.*}} :
module @to_shards {
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %grad, %param {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient bf16 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
}

// -----

// Where the shards are replicated each rank adds up a range, and the sums come together.
// CHECK-LABEL: module @to_ranges
// CHECK: comm.copy active %active ins(%{{.*}} : !comm.shards<@g, f32, gradient_shards>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, full, gradient_shards to reduced_shards, sent>>)
// CHECK: %[[SUM:.*]] = comm.sum by 1 ins({{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, full, reduced_shards, kept>>)
// CHECK: %[[SENT:.*]] = comm.copy ins(%[[SUM]] : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, full, reduced_shards to shards, sent>>)
// CHECK: %[[RECEIVED:.*]] = comm.exchange %{{.*}} sends(%[[SENT]] :
// CHECK: %[[KEPT:.*]] = comm.copy ins(%[[RECEIVED]] : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, full, shards, kept>>)
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[KEPT]], %{{.*}} :
module @to_ranges {
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %grad, %param {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.flat]
}
