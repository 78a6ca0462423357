// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s

// Hop by hop: what one hop brought is copied to what the next one sends, there and back.
// CHECK-LABEL: module @two_hops
// CHECK: %[[S:.*]] = comm.stage @g.w0 over shards {{.*}} outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, shards to hop 0, sent>>)
// CHECK: %[[R0:.*]] = comm.exchange %{{.*}} sends(%[[S]] :
// CHECK: %[[RELAY:.*]] = comm.copy ins(%[[R0]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to hop 0, received>>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to blocks, sent>>)
// CHECK: %[[R1:.*]] = comm.exchange %{{.*}} sends(%[[RELAY]] :
// CHECK: %[[X:.*]] = comm.copy ins(%[[R1]] : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to blocks, received>>) outs(%{{.*}} : tensor<?x8x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK: %[[O:.*]] = optim.orthogonalize %[[X]]
// CHECK: %[[K:.*]] = comm.copy ins(%[[O]] : {{.*}}) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, blocks to hop 0, sent>>)
// CHECK: %[[B1:.*]] = comm.exchange %{{.*}} sends(%[[K]] :
// CHECK: %[[BACK:.*]] = comm.copy ins(%[[B1]] : tensor<?xbf16, #comm.place<@g.w0, full, blocks to hop 0, received>>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to shards, sent>>)
// CHECK: %[[B0:.*]] = comm.exchange %{{.*}} sends(%[[BACK]] :
// CHECK: comm.stage @g.w0 over shards ins(%{{.*}}, %[[B0]] : {{.*}}) writes
module @two_hops {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o {optim.space = #optim.space<out>} : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [5]>, #optim.hop<owned [<0, 4, 2>] base [5]>]
}

// -----

// A hop that replicates is an all-gather. One way back leads through it: from the owners to where it started.
// CHECK-LABEL: module @gathered_first
// CHECK: comm.all_gather %{{.*}} : {{.*}}<@g.w0, full, shards to hop 0, sent>
// CHECK: comm.exchange %{{.*}} : {{.*}}<@g.w0, full, hop 0 to blocks, sent>
// CHECK: optim.orthogonalize
// CHECK: %[[B:.*]] = comm.exchange %{{.*}} : {{.*}}<@g.w0, full, blocks to shards, sent>
// CHECK-NOT: comm.exchange
// CHECK-NOT: comm.copy
// CHECK: comm.stage @g.w0 over shards ins(%{{.*}}, %[[B]] : {{.*}}) writes
module @gathered_first {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o {optim.space = #optim.space<out>} : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<replicated [<0, 1, 4>]>, #optim.hop<owned [<0, 4, 2>] base [4]>]
}

// -----

// Owners may share what comes to them: the last hop's results need no way back.
// CHECK-LABEL: module @gathered_last
// CHECK: comm.exchange %{{.*}} : {{.*}}<@g.w0, full, shards to hop 0, sent>
// CHECK: comm.all_gather %{{.*}} : {{.*}}<@g.w0, full, hop 0 to blocks, sent>
// CHECK: optim.orthogonalize
// CHECK: comm.exchange %{{.*}} : {{.*}}<@g.w0, full, blocks to shards, sent>
// CHECK-NOT: comm.exchange
module @gathered_last {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o {optim.space = #optim.space<out>} : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [1]>, #optim.hop<replicated [<0, 4, 2>]>]
}
