// RUN: stepc-opt %s --comm-distribute | FileCheck %s

// Each rank has some rows of every column. It adds up what it has, exactly, and one rank adds up these parts. What all ranks get
// is the result. Sums that do not depend on each other travel together.
// CHECK: %[[G:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK: %[[PART:.*]] = comm.stage @g.w0 over shards reduces mean active %active ins(%[[G]] : {{.*}}) outs({{.*}} : tensor<?xi320, #comm.place<@g.w0, cols, line_parts, kept>>) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: comm.yield %[[E]] : f32
// CHECK: %[[SQUARES:.*]] = comm.stage @g.w0 over shards reduces norm active %active ins(%[[G]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@g.w0, cols, line_parts, kept>>)
// CHECK: %[[SENT:.*]] = comm.copy ins(%[[PART]] : {{.*}}) outs({{.*}} : tensor<?xi320, #comm.place<@g.w0, cols, line_parts to line_sums, sent>>)
// CHECK: %[[SENT2:.*]] = comm.copy ins(%[[SQUARES]] : {{.*}})
// CHECK: %[[RANKS:.*]] = comm.communicator <@world, [<0, 1, 2>]>
// CHECK: %[[CAME:.*]]:2 = comm.exchange %[[RANKS]] sends(%[[SENT]], %[[SENT2]] : {{.*}})
// CHECK: %[[MEAN:.*]] = comm.sum by 4 reduces mean ins(%[[CAME]]#0 : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, cols, line_sums, kept>>)
// CHECK: comm.copy ins(%[[MEAN]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, cols, line_sums to shards, sent>>)
// CHECK: comm.sum by 4 reduces norm ins(%[[CAME]]#1 : {{.*}})
// CHECK: %[[BACK:.*]]:2 = comm.exchange %[[RANKS]]
// CHECK: %[[LINE:.*]] = comm.copy ins(%[[BACK]]#0 : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, cols, shards, kept>>)
// CHECK: %[[LINE2:.*]] = comm.copy ins(%[[BACK]]#1 : {{.*}})
// What reads them is reduced after that: the sum of a block, of which each rank has half.
// CHECK: comm.stage @g.w0 over shards reduces sum active %active ins(%[[G]], %[[LINE]], %[[LINE2]] : {{.*}}) outs({{.*}} : tensor<?xi320, #comm.place<@g.w0, one, line_parts, kept>>)
// CHECK: comm.exchange
// CHECK: comm.sum by 24 reduces sum
// CHECK: comm.exchange
// CHECK: comm.stage @g.w0 over shards active %active
optim.rule @Cut hyperparameters ["lr"] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m = optim.reduce mean %grad {optim.cut, optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<1x?xf32>
  %n = optim.reduce norm %grad {optim.cut, optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<1x?xf32>
  %a = arith.addf %m, %n : tensor<1x?xf32>
  %b = optim.broadcast %a : tensor<1x?xf32> to tensor<?x?xf32>
  %d = arith.mulf %grad, %b {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %s = optim.reduce sum %d {optim.cut, optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<1x1xf32>
  %t = optim.broadcast %s : tensor<1x1xf32> to tensor<?x?xf32>
  %p = arith.subf %param, %t {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Cut parameters [@a]
