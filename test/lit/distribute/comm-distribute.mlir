// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s

// Owner: a stage packs what crosses and stores the momentum; routes bring it to owners, which unpack, compute and pack; routes
// bring it back, and a stage stores the parameter. The scalars of a step are a table. Extents are asked once.
// CHECK-LABEL: module @owner
// CHECK-SAME: stepc.level = "comm"
// CHECK: comm.segment @g.w0 group @g wave 0 all
// CHECK: func.func @step() {
// CHECK-NEXT: %hyperparameters = comm.hyperparameters
// CHECK-NEXT: %steps = comm.steps
// CHECK-NEXT: %active = comm.active
// CHECK-NEXT: %[[TABLE:.*]] = tensor.empty() : tensor<2x1xf32, #comm.place<{{.*}}>>
// CHECK-NEXT: %[[SCALARS:.*]] = comm.scalars of %hyperparameters, %steps active %active outs(%[[TABLE]]
// CHECK-NEXT: ^bb0(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: comm.yield %[[LR]] : f64
// CHECK: %[[P:.*]] = comm.shards parameter @g : <@g, f32>
// CHECK-NEXT: %[[G:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK-NEXT: %[[M:.*]] = comm.shards state @g "m" : <@g, f32>
// CHECK-NEXT: %[[NS:.*]] = comm.extent <@g.w0, full, shards to blocks, sent>
// CHECK-NEXT: %[[ES:.*]] = tensor.empty(%[[NS]]) : tensor<?xbf16, #comm.place<{{.*}}>>
// CHECK-NEXT: %[[S:.*]] = comm.stage @g.w0 over shards active %active ins(%[[M]], %[[G]] : {{.*}}) writes(%[[M]] : {{.*}}) outs(%[[ES]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to blocks, sent>>) {
// CHECK-NEXT: ^bb0(%[[ME:.*]]: f32, %[[GE:.*]]: f32):
// CHECK-NEXT: %[[M1:.*]] = arith.addf %[[ME]], %[[GE]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.truncf %[[M1]] : f32 to bf16
// CHECK-NEXT: comm.yield %[[M1]], %[[C]] : f32, bf16
// CHECK: %[[ER:.*]] = tensor.empty(%{{.*}}) : tensor<?xbf16, #comm.place<{{.*}}>>
// CHECK-NEXT: %[[RANKS:.*]] = comm.communicator <@world, [<0, 1, 2>]>
// CHECK-NEXT: %[[R:.*]] = comm.exchange %[[RANKS]] sends(%[[S]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to blocks, sent>>) receives(%[[ER]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to blocks, received>>)
// CHECK-NEXT: %[[NB:.*]] = comm.extent <@g.w0, full, blocks>
// CHECK-NEXT: %[[EB:.*]] = tensor.empty(%[[NB]]) : tensor<?x4x6xbf16, #comm.place<{{.*}}>>
// CHECK-NEXT: %[[X:.*]] = comm.copy ins(%[[R]] : tensor<?xbf16, #comm.place<@g.w0, full, shards to blocks, received>>) outs(%[[EB]] : tensor<?x4x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK-NEXT: %[[O:.*]] = optim.orthogonalize %[[X]] {{.*}} : tensor<?x4x6xbf16, #comm.place<@g.w0, full, blocks>>
// CHECK: %[[K:.*]] = comm.copy ins(%[[O]] : tensor<?x4x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK: %[[B:.*]] = comm.exchange %[[RANKS]] sends(%[[K]] : tensor<?xbf16, #comm.place<@g.w0, full, blocks to shards, sent>>)
// CHECK-NEXT: comm.stage @g.w0 over shards active %active ins(%[[P]], %[[B]] : {{.*}}) writes(%[[P]] : {{.*}}) scalars(%[[SCALARS]] : tensor<2x1xf32, #comm.place<@g, scalars>>) {
// CHECK-NEXT: ^bb0(%[[PE:.*]]: f32, %[[BE:.*]]: bf16, %[[LRE:.*]]: f32):
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[BE]] : bf16 to f32
// CHECK-NEXT: %[[U:.*]] = arith.mulf %[[LRE]], %[[F]] : f32
// CHECK-NEXT: %[[P1:.*]] = arith.subf %[[PE]], %[[U]] : f32
// CHECK-NEXT: comm.yield %[[P1]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: comm.advance_steps %steps active %active
// CHECK-NEXT: return
module @owner {
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
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
}

// -----

// Gather: every rank gets every block, so nothing travels back and the last stage reads blocks.
// CHECK-LABEL: module @gather
// CHECK: comm.stage @g.w0 over shards active %active
// CHECK: comm.all_gather %{{.*}} sends(%{{.*}} : {{.*}}<@g.w0, full, {{.*}}
// CHECK: comm.copy
// CHECK: %[[O:.*]] = optim.orthogonalize
// CHECK-NOT: comm.exchange
// CHECK-NOT: comm.all_gather
// CHECK-NOT: comm.copy
// CHECK: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %[[O]] : !comm.shards<@g, f32>, tensor<?x4x6xbf16, #comm.place<@g.w0, full, blocks>>) writes
module @gather {
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
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
}

// -----

// Local: stages write and read whole blocks; nothing is packed and nothing travels.
// CHECK-LABEL: module @local
// CHECK: %[[X:.*]] = comm.stage @g.w0 over shards active %active {{.*}} outs(%{{.*}} : tensor<?x4x6xbf16, #comm.place<@g.w0, full, blocks>>)
// CHECK-NOT: comm.copy
// CHECK-NOT: comm.exchange
// CHECK: %[[O:.*]] = optim.orthogonalize %[[X]]
// CHECK-NEXT: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %[[O]] :
// CHECK-NOT: comm.exchange
module @local {
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
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.local hops []
}

// -----

// Elementwise: one stage without a layout. Constants stand in it; what depends on hyperparameters comes from the table. The
// master of an f32 parameter does not exist.
// CHECK-LABEL: module @elementwise
// CHECK: comm.scalars
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK: %[[P:.*]] = comm.shards parameter @g : <@g, f32>
// CHECK-NEXT: %[[G:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK-NOT: state
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[P]], %[[G]] : {{.*}}) writes(%[[P]] : !comm.shards<@g, f32>) scalars
// CHECK-NEXT: ^bb0(%[[PE:.*]]: f32, %[[GE:.*]]: f32, %[[S:.*]]: f32):
// CHECK-DAG: %[[W:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[U:.*]] = arith.mulf %[[S]], %[[GE]] : f32
// CHECK: %[[V:.*]] = arith.mulf %[[W]], %[[U]] : f32
// CHECK-NEXT: %[[P1:.*]] = arith.subf %[[PE]], %[[V]] : f32
// CHECK-NEXT: comm.yield %[[P1]] : f32
// CHECK-NOT: comm.stage
module @elementwise {
optim.rule @Sgd hyperparameters ["lr"] states [#optim.state<"master", f32, full, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %master: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %two = arith.constant 2.0 : f64
  %h = arith.mulf %lr, %two : f64
  %s = optim.splat %h : tensor<?x?xf32>
  %w = optim.splat %two : tensor<?x?xf32>
  %u = arith.mulf %s, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %v = arith.mulf %w, %u {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %p = arith.subf %param, %v {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p, %master : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<in>, unit]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Sgd parameters [@a]
}

// -----

// A bf16 parameter with a master: the master is read and written in f32, the parameter only written, rounded; a gradient
// in bf16 is widened as it is read.
// CHECK-LABEL: module @master
// CHECK: %[[MASTER:.*]] = comm.shards state @g "master" : <@g, f32>
// CHECK-NEXT: %[[G:.*]] = comm.shards gradient @g : <@g, bf16>
// CHECK-NEXT: %[[P:.*]] = comm.shards parameter @g : <@g, bf16>
// CHECK-NEXT: comm.stage @g.w0 over shards active %active ins(%[[MASTER]], %[[G]] : {{.*}}) writes(%[[P]], %[[MASTER]] : !comm.shards<@g, bf16>, !comm.shards<@g, f32>)
// CHECK-NEXT: ^bb0(%[[ME:.*]]: f32, %[[GE:.*]]: bf16, %{{.*}}: f32):
// CHECK: arith.extf %[[GE]] : bf16 to f32
// CHECK: %[[P1:.*]] = arith.subf %[[ME]], %{{.*}} : f32
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[P1]] : f32 to bf16
// CHECK-NEXT: comm.yield %[[H]], %[[P1]] : bf16, f32
module @master {
optim.rule @Sgd hyperparameters ["lr"] states [#optim.state<"master", f32, full, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %master: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %two = arith.constant 2.0 : f64
  %h = arith.mulf %lr, %two : f64
  %s = optim.splat %h : tensor<?x?xf32>
  %w = optim.splat %two : tensor<?x?xf32>
  %u = arith.mulf %s, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %v = arith.mulf %w, %u {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %p = arith.subf %param, %v {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p, %master : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<in>, unit]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type bf16 gradient bf16 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Sgd parameters [@a]
}

// -----

// A state with one value per row travels beside the block as its own value, in its storage type, and back; reductions and
// fused stages over blocks are between.
// CHECK-LABEL: module @rows
// CHECK: %[[VS:.*]] = comm.shards state @g "v" : <@g, bf16>
// CHECK: %[[SEND:.*]] = comm.copy active %active ins(%[[VS]] : !comm.shards<@g, bf16>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g.w0, rows, shards to blocks, sent>>)
// CHECK: %[[R:.*]]:2 = comm.exchange %{{.*}} sends(%{{.*}}, %[[SEND]] : tensor<?xf32, #comm.place<@g.w0, full, shards to blocks, sent>>, tensor<?xbf16, #comm.place<@g.w0, rows, shards to blocks, sent>>)
// CHECK: %[[X:.*]] = comm.copy ins(%[[R]]#0 : tensor<?xf32, #comm.place<@g.w0, full, shards to blocks, received>>)
// CHECK: %[[V:.*]] = comm.copy ins(%[[R]]#1 : tensor<?xbf16, #comm.place<@g.w0, rows, shards to blocks, received>>) outs(%{{.*}} : tensor<?x4x1xbf16, #comm.place<@g.w0, rows, blocks>>)
// CHECK: %[[Q:.*]] = comm.stage @g.w0 over blocks ins(%[[X]] : tensor<?x4x6xf32, #comm.place<@g.w0, full, blocks>>) outs(%{{.*}} : tensor<?x4x6xf32, #comm.place<@g.w0, full, blocks>>) {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: arith.mulf %[[E]], %[[E]] : f32
// CHECK: %[[MEAN:.*]] = optim.reduce mean %[[Q]] : tensor<?x4x6xf32, #comm.place<@g.w0, full, blocks>> to tensor<?x4x1xf32, #comm.place<@g.w0, rows, blocks>>
// CHECK: %[[NORM:.*]] = optim.reduce norm %[[Q]] : {{.*}} to tensor<?x1x1xf32, #comm.place<@g.w0, one, blocks>>
// CHECK: %[[NEW:.*]] = comm.stage @g.w0 over blocks ins(%[[V]], %[[MEAN]], %[[NORM]] : tensor<?x4x1xbf16, #comm.place<@g.w0, rows, blocks>>, tensor<?x4x1xf32, #comm.place<@g.w0, rows, blocks>>, tensor<?x1x1xf32, #comm.place<@g.w0, one, blocks>>) outs(%{{.*}} : tensor<?x4x1xbf16, #comm.place<@g.w0, rows, blocks>>)
// CHECK: comm.stage @g.w0 over blocks ins({{.*}}) outs(%{{.*}} : tensor<?x4x6xf32, #comm.place<@g.w0, full, blocks>>)
// CHECK-DAG: %[[KX:.*]] = comm.copy
// CHECK-DAG: %[[KV:.*]] = comm.copy ins(%[[NEW]] : tensor<?x4x1xbf16, #comm.place<@g.w0, rows, blocks>>)
// CHECK: %[[B:.*]]:2 = comm.exchange %{{.*}} sends(%[[KX]], %[[KV]] : tensor<?xf32, #comm.place<@g.w0, full, blocks to shards, sent>>, tensor<?xbf16, #comm.place<@g.w0, rows, blocks to shards, sent>>)
// CHECK-NEXT: comm.copy active %active ins(%[[B]]#1 : tensor<?xbf16, #comm.place<@g.w0, rows, blocks to shards, received>>) writes(%[[VS]] : !comm.shards<@g, bf16>)
// CHECK-NEXT: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %[[B]]#0
module @rows {
optim.rule @NorMuon hyperparameters [] states [#optim.state<"v", bf16, rows, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %q = arith.mulf %grad, %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %r = optim.reduce mean %q {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<?x1xf32>
  %t = optim.reduce norm %q {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
  %tb = optim.broadcast %t : tensor<1x1xf32> to tensor<?x1xf32>
  %r1 = arith.divf %r, %tb : tensor<?x1xf32>
  %v1 = arith.addf %v, %r1 : tensor<?x1xf32>
  %b = optim.broadcast %v1 : tensor<?x1xf32> to tensor<?x?xf32>
  %n = arith.divf %grad, %b {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %p = arith.subf %param, %n {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %v1 : tensor<?x?xf32>, tensor<?x1xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @NorMuon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
}

// -----

// A stage over shards reads lines: an old state, copied before anything is stored, a value that matrix space makes, and a new
// f32 state, which comes back once for its shards and for the copy.
// CHECK-LABEL: module @lines
// CHECK: %[[US:.*]] = comm.shards state @g "u" : <@g, f32>
// CHECK: %[[OLD:.*]] = comm.copy active %active ins(%[[US]] : !comm.shards<@g, f32>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, cols, shards, kept>>)
// CHECK: %[[B:.*]]:2 = comm.exchange %{{.*}} sends(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, rows, blocks to shards, sent>>, tensor<?xf32, #comm.place<@g.w0, one, blocks to shards, sent>>)
// CHECK: %[[NEW:.*]] = comm.copy ins(%[[B]]#0 : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, rows, shards, kept>>)
// CHECK-NEXT: comm.copy active %active ins(%[[B]]#0 : {{.*}}) writes(%{{.*}} : !comm.shards<@g, f32>)
// CHECK: %[[NORM:.*]] = comm.copy ins(%[[B]]#1 : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, one, shards, kept>>)
// CHECK: comm.stage @g.w0 over shards active %active ins(%{{.*}}, %{{.*}}, %[[NEW]], %[[NORM]], %[[OLD]] : !comm.shards<@g, f32>, !comm.shards<@g, f32>, tensor<?xf32, #comm.place<@g.w0, rows, shards, kept>>, tensor<?xf32, #comm.place<@g.w0, one, shards, kept>>, tensor<?xf32, #comm.place<@g.w0, cols, shards, kept>>) writes(%{{.*}} : !comm.shards<@g, f32>) {
module @lines {
optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>, #optim.state<"u", f32, cols, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %u: tensor<1x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %r = optim.reduce mean %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<?x1xf32>
  %t = optim.reduce norm %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
  %v1 = arith.addf %v, %r : tensor<?x1xf32>
  %b = optim.broadcast %v1 : tensor<?x1xf32> to tensor<?x?xf32>
  %n = arith.divf %grad, %b {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %tb = optim.broadcast %t : tensor<1x1xf32> to tensor<?x?xf32>
  %k = arith.divf %n, %tb {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %ub = optim.broadcast %u : tensor<1x?xf32> to tensor<?x?xf32>
  %l = arith.mulf %k, %ub {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %l {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %v1, %u : tensor<?x?xf32>, tensor<?x1xf32>, tensor<1x?xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>, unit]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
}

// -----

// Two waves are two segments and two chains, in order; they share the table of scalars and the shards. A group without a
// block in a wave has no segment there.
// CHECK-LABEL: module @waves
// CHECK: comm.segment @g.w0 group @g wave 0 blocks [0]
// CHECK-NEXT: comm.segment @g.w1 group @g wave 1 blocks [1]
// CHECK-NEXT: comm.segment @h.w1 group @h wave 1 blocks [0]
// CHECK-NOT: comm.segment
// CHECK: %[[TABLE:.*]] = comm.scalars
// CHECK: comm.shards parameter @g
// CHECK: comm.exchange %{{.*}} sends(%{{.*}} : {{.*}}<@g.w0, full, {{.*}}
// CHECK: comm.stage @g.w0 over shards active %active {{.*}} scalars(%[[TABLE]]
// CHECK-NOT: comm.shards parameter @g
// CHECK: comm.exchange %{{.*}} sends(%{{.*}} : {{.*}}<@g.w1, full, {{.*}}
// CHECK: comm.stage @g.w1 over shards active %active {{.*}} scalars(%[[TABLE]]
// CHECK: comm.exchange %{{.*}} sends(%{{.*}} : {{.*}}<@h.w1, full, {{.*}}
module @waves {
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
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [6, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>] waves [0, 1]
optim.group @h rule @Muon parameters [@c] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>] waves [1]
}

// -----

// f16 is widened where it is read and rounded where it is written, as bf16 is: parameter, gradient and state.
// CHECK-LABEL: module @half
// CHECK: %[[M:.*]] = comm.shards state @g "m" : <@g, f16>
// CHECK: comm.stage @g.w0 over shards active %active ins({{.*}} : {{.*}}!comm.shards<@g, f16>{{.*}}) writes(%[[M]] : !comm.shards<@g, f16>) outs(%{{.*}} : tensor<?xf16, #comm.place<@g.w0, full, shards to blocks, sent>>)
// CHECK-NEXT: ^bb0(%[[A:[a-z0-9]+]]: f16, %[[B:[a-z0-9]+]]: f16
// CHECK-DAG: arith.extf %[[A]] : f16 to f32
// CHECK-DAG: arith.extf %[[B]] : f16 to f32
// CHECK: %[[M1:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-DAG: arith.truncf %[[M1]] : f32 to f16
// CHECK: comm.yield %{{.*}}, %{{.*}} : f16, f16
// CHECK: comm.exchange %{{.*}} sends(%{{.*}} : tensor<?xf16, #comm.place<@g.w0, full, shards to blocks, sent>>)
// CHECK: optim.orthogonalize %{{.*}} : tensor<?x4x6xf16, #comm.place<@g.w0, full, blocks>>
// CHECK: %[[BACK:.*]] = comm.exchange %{{.*}} sends(%{{.*}} : tensor<?xf16, #comm.place<@g.w0, full, blocks to shards, sent>>)
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[P:[a-z0-9]+]], %[[BACK]] : !comm.shards<@g, f16>, tensor<?xf16, #comm.place<@g.w0, full, blocks to shards, received>>) writes(%[[P]] : !comm.shards<@g, f16>)
// CHECK: %[[P1:.*]] = arith.subf
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[P1]] : f32 to f16
// CHECK-NEXT: comm.yield %[[H]] : f16
module @half {
optim.rule @Muon hyperparameters [] states [#optim.state<"m", f16, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf16>
  %f = arith.extf %o : tensor<?x?xf16> to tensor<?x?xf32>
  %p = arith.subf %param, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f16 gradient f16 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
}

// -----

// States with one value per column, and with one per block, travel as their own kinds (2 and 3) and are batches of their own
// shapes between; what is in another storage type travels in it.
// CHECK-LABEL: module @cols_and_one
// CHECK-DAG: %[[CS:.*]] = comm.shards state @g "c" : <@g, f16>
// CHECK-DAG: %[[OS:.*]] = comm.shards state @g "o" : <@g, f32>
// CHECK-DAG: %[[CSEND:.*]] = comm.copy active %active ins(%[[CS]] : !comm.shards<@g, f16>) outs(%{{.*}} : tensor<?xf16, #comm.place<@g.w0, cols, shards to blocks, sent>>)
// CHECK-DAG: %[[OSEND:.*]] = comm.copy active %active ins(%[[OS]] : !comm.shards<@g, f32>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g.w0, one, shards to blocks, sent>>)
// CHECK: %[[R:.*]]:3 = comm.exchange %{{.*}} sends(%{{.*}}, %[[CSEND]], %[[OSEND]] : tensor<?xf32, #comm.place<@g.w0, full, shards to blocks, sent>>, tensor<?xf16, #comm.place<@g.w0, cols, shards to blocks, sent>>, tensor<?xf32, #comm.place<@g.w0, one, shards to blocks, sent>>)
// CHECK-DAG: comm.copy ins(%[[R]]#1 : tensor<?xf16, #comm.place<@g.w0, cols, shards to blocks, received>>) outs(%{{.*}} : tensor<?x1x6xf16, #comm.place<@g.w0, cols, blocks>>)
// CHECK-DAG: comm.copy ins(%[[R]]#2 : tensor<?xf32, #comm.place<@g.w0, one, shards to blocks, received>>) outs(%{{.*}} : tensor<?x1x1xf32, #comm.place<@g.w0, one, blocks>>)
// CHECK-DAG: optim.reduce mean %{{.*}} : tensor<?x4x6xf32, #comm.place<@g.w0, full, blocks>> to tensor<?x1x6xf32, #comm.place<@g.w0, cols, blocks>>
// CHECK-DAG: optim.reduce max %{{.*}} : {{.*}} to tensor<?x1x1xf32, #comm.place<@g.w0, one, blocks>>
// CHECK-DAG: %[[KC:.*]] = comm.copy ins(%{{.*}} : tensor<?x1x6xf16, #comm.place<@g.w0, cols, blocks>>)
// CHECK-DAG: %[[KO:.*]] = comm.copy ins(%{{.*}} : tensor<?x1x1xf32, #comm.place<@g.w0, one, blocks>>)
// CHECK: %[[B:.*]]:3 = comm.exchange %{{.*}} sends(%{{.*}}, %[[KC]], %[[KO]] : tensor<?xf32, #comm.place<@g.w0, full, blocks to shards, sent>>, tensor<?xf16, #comm.place<@g.w0, cols, blocks to shards, sent>>, tensor<?xf32, #comm.place<@g.w0, one, blocks to shards, sent>>)
// CHECK-DAG: comm.copy active %active ins(%[[B]]#1 : tensor<?xf16, #comm.place<@g.w0, cols, blocks to shards, received>>) writes(%[[CS]] : !comm.shards<@g, f16>)
// CHECK-DAG: comm.copy active %active ins(%[[B]]#2 : tensor<?xf32, #comm.place<@g.w0, one, blocks to shards, received>>) writes(%[[OS]] : !comm.shards<@g, f32>)
module @cols_and_one {
optim.rule @Scaled hyperparameters [] states [#optim.state<"c", f16, cols, 0.0 : f64, false>, #optim.state<"o", f32, one, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %c: tensor<1x?xf32>, %o: tensor<1x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m = optim.reduce mean %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x?xf32>
  %c1 = arith.addf %c, %m : tensor<1x?xf32>
  %x = optim.reduce max %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
  %o1 = arith.addf %o, %x : tensor<1x1xf32>
  %ob = optim.broadcast %o1 : tensor<1x1xf32> to tensor<1x?xf32>
  %s = arith.mulf %c1, %ob : tensor<1x?xf32>
  %b = optim.broadcast %s : tensor<1x?xf32> to tensor<?x?xf32>
  %n = arith.divf %grad, %b {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %p = arith.subf %param, %n {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %c1, %o1 : tensor<?x?xf32>, tensor<1x?xf32>, tensor<1x1xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @g rule @Scaled parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
}
