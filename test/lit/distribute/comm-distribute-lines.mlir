// RUN: stepc-opt %s --comm-distribute | FileCheck %s

// A reduction of rows that are whole on their ranks: nothing travels. A stage over shards reduces the terms to a line. A stage
// over the state's own shards stores the new state, and keeps it as a line, which the stage that steps reads.
// CHECK: %[[P:.*]] = comm.shards parameter @g : <@g, f32>
// CHECK: %[[G:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK: %[[LINE:.*]] = comm.stage @g.w0 over shards reduces mean active %active ins(%[[G]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, rows, shards, kept>>) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[E]], %[[E]] : f32
// CHECK-NEXT: comm.yield %[[Q]] : f32
// CHECK: %[[V:.*]] = comm.shards state @g "v" : <@g, bf16>
// CHECK: %[[KEPT:.*]] = comm.stage @g.w0 over shards of rows active %active ins(%[[V]], %[[LINE]] : {{.*}}) writes(%[[V]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, rows, shards, kept>>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: f32):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT: %[[NEW:.*]] = arith.addf %[[WIDE]], %[[B]] : f32
// CHECK-NEXT: %[[NARROW:.*]] = arith.truncf %[[NEW]] : f32 to bf16
// CHECK-NEXT: comm.yield %[[NARROW]], %[[NEW]] : bf16, f32
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[P]], %[[G]], %[[KEPT]] : {{.*}}) writes(%[[P]] : {{.*}}) {
// CHECK-NOT: comm.exchange
// CHECK: comm.advance_steps
optim.rule @Rows hyperparameters ["lr"] states [#optim.state<"v", bf16, rows, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %q = arith.mulf %grad, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %m = optim.reduce mean %q {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x1xf32>
  %v1 = arith.addf %v, %m : tensor<?x1xf32>
  %b = optim.broadcast %v1 : tensor<?x1xf32> to tensor<?x?xf32>
  %d = arith.divf %grad, %b {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %p = arith.subf %param, %d {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p, %v1 : tensor<?x?xf32>, tensor<?x1xf32> {optim.writes = [#optim.space<in>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Rows parameters [@a]
