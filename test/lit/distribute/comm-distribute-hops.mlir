// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s

// -----

// Hop by hop: what one hop brought is copied to what the next one sends, there and back.
// CHECK-LABEL: module @two_hops
// CHECK: %[[S:.*]] = comm.stage @g.w0 over shards active %active {{.*}} outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, shards to hop 0, sent>>)
// CHECK: %[[FIRST:.*]] = comm.communicator <@world, [<0, 1, 4>]>
// CHECK-NEXT: %[[R0:.*]] = comm.exchange %[[FIRST]] sends(%[[S]] :
// CHECK: %[[RELAY:.*]] = comm.copy ins(%[[R0]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to hop 0, received>>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to blocks, sent>>)
// CHECK: %[[SECOND:.*]] = comm.communicator <@world, [<0, 4, 2>]>
// CHECK-NEXT: %[[R1:.*]] = comm.exchange %[[SECOND]] sends(%[[RELAY]] :
// CHECK: %[[X:.*]] = comm.copy ins(%[[R1]] : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to blocks, received>>) outs(%{{.*}} : tensor<?x8x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK: %[[O:.*]] = optim.orthogonalize %[[X]]
// CHECK: %[[K:.*]] = comm.copy ins(%[[O]] : {{.*}}) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, blocks to hop 0, sent>>)
// CHECK: %[[B1:.*]] = comm.exchange %[[SECOND]] sends(%[[K]] :
// CHECK: %[[BACK:.*]] = comm.copy ins(%[[B1]] : tensor<?xbf16, #comm.place<@g.w0, full, blocks to hop 0, received>>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, full, hop 0 to shards, sent>>)
// CHECK: %[[B0:.*]] = comm.exchange %[[FIRST]] sends(%[[BACK]] :
// CHECK: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %[[B0]] : {{.*}}) writes
module @two_hops {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [5]>, #optim.hop<owned [<0, 4, 2>] base [5]>]
}

// -----

// A hop that chooses brings nothing: of what all were given, each rank copies what it computes. Results go back to where it came from.
// CHECK-LABEL: module @chosen
// CHECK: %[[ALL:.*]] = comm.communicator <@world, [<0, 1, 8>]>
// CHECK-NEXT: %[[R:.*]] = comm.all_gather %[[ALL]] {{.*}}<@g.w0, full, shards to hop 0, sent>
// CHECK-NOT: comm.exchange
// CHECK: comm.copy ins(%[[R]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to hop 0, received>>) outs(%{{.*}} : tensor<?x8x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK: optim.orthogonalize
// CHECK: comm.exchange %[[ALL]] sends{{.*}} : {{.*}}<@g.w0, full, blocks to shards, sent>
// CHECK-NOT: comm.exchange
module @chosen {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<replicated [<0, 1, 8>]>, #optim.hop<owned [<0, 1, 8>] base [3]>]
}

// -----

// A hop that replicates is an all-gather. One way back leads through it: from the owners to where it started.
// CHECK-LABEL: module @gathered_first
// CHECK: %[[FIRST:.*]] = comm.communicator <@world, [<0, 1, 4>]>
// CHECK-NEXT: comm.all_gather %[[FIRST]] {{.*}}<@g.w0, full, shards to hop 0, sent>
// CHECK: %[[SECOND:.*]] = comm.communicator <@world, [<0, 4, 2>]>
// CHECK-NEXT: comm.exchange %[[SECOND]] {{.*}}<@g.w0, full, hop 0 to blocks, sent>
// CHECK: optim.orthogonalize
// CHECK: %[[B:.*]] = comm.exchange %[[SECOND]] sends{{.*}} : {{.*}}<@g.w0, full, blocks to shards, sent>
// CHECK-NOT: comm.exchange
// CHECK-NOT: comm.copy
// CHECK: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %[[B]] : {{.*}}) writes
module @gathered_first {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
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
// CHECK: %[[FIRST:.*]] = comm.communicator <@world, [<0, 1, 4>]>
// CHECK-NEXT: comm.exchange %[[FIRST]] {{.*}}<@g.w0, full, shards to hop 0, sent>
// CHECK: %[[SECOND:.*]] = comm.communicator <@world, [<0, 4, 2>]>
// CHECK-NEXT: comm.all_gather %[[SECOND]] {{.*}}<@g.w0, full, hop 0 to blocks, sent>
// CHECK: optim.orthogonalize
// CHECK: comm.exchange %[[FIRST]] sends{{.*}} : {{.*}}<@g.w0, full, blocks to shards, sent>
// CHECK-NOT: comm.exchange
module @gathered_last {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [1]>, #optim.hop<replicated [<0, 4, 2>]>]
}

// -----

// Who meets: replicas of shards have all that a gather brings already, and get the results of owners; factors that follow each
// other are one.
// CHECK-LABEL: module @replicas
// CHECK: %[[SHARDS:.*]] = comm.communicator <@world, [<1, 1, 4>]>
// CHECK-NEXT: comm.all_gather %[[SHARDS]] {{.*}}<@g.w0, full, shards to blocks, sent>
// CHECK: comm.exchange %[[SHARDS]] {{.*}}<@h.w0, full, shards to blocks, sent>
// CHECK: %[[ALL:.*]] = comm.communicator <@world, [<0, 1, 2>, <1, 1, 4>]>
// CHECK-NEXT: comm.exchange %[[ALL]] {{.*}}<@h.w0, full, blocks to shards, sent>
module @replicas {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp", "fsdp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases []
optim.parameter @b shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 4>]>]
optim.group @h rule @Muon parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>, <1, 2, 2>] base [5]>]
}

// -----

// Between shards the ranks meet that have other parts at the other end: along the first axis both lists split alike.
// CHECK-LABEL: module @lists
// CHECK: %[[RANKS:.*]] = comm.communicator <@world, [<1, 1, 4>]>
// CHECK-NEXT: comm.exchange %[[RANKS]] {{.*}}<@g.w0, full, gradient_shards to shards, sent>
module @lists {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %n : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp", "tp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<0>] gradient_placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.group @g rule @Plain parameters [@a]
}
