// RUN: stepc-opt %s --optim-cut-spaces --optim-place-states | FileCheck %s
// RUN: stepc-opt %s --optim-cut-spaces --optim-place-states --remark-policy=all --remarks-filter=optim-place-states -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// What is decided already stays as it is.
// RUN: stepc-opt %s --optim-cut-spaces --optim-place-states -o %t && stepc-opt %t --optim-place-states | diff %t -

// The state is read and written between two orthogonalizations. By an owner it would travel there and back as f32, and
// by a gather there. Where all of a block is on its rank, nothing travels.
// REMARK: remark: [Passed] states-placed | Category:optim-place-states | bytes-after=8, bytes-before=16, group=g_owner, rule=Between, states=1
// REMARK: remark: [Passed] states-placed | Category:optim-place-states | bytes-after=4, bytes-before=8, group=g_gather, rule=Between, states=1
// REMARK: remark: [Passed] states-placed {{.*}} group=g_pair, rule=Pair, states=2
// REMARK-NOT: group=

// CHECK-LABEL: optim.rule @Between hyperparameters
// CHECK-LABEL: optim.rule @Between.with_blocks {{.*}} written @Between block_states ["v"] {
// CHECK: arith.addf %arg2, %{{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
optim.rule @Between hyperparameters ["lr"] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %v1 = arith.addf %v, %o : tensor<?x?xf32>
  %q = arith.mulf %o, %v1 : tensor<?x?xf32>
  %w = optim.orthogonalize %q coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %u = arith.mulf %s, %w : tensor<?x?xf32>
  %p = arith.subf %param, %u : tensor<?x?xf32>
  optim.yield %p, %v1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// The state of Muon is an equal number of bytes of what travels without it, so it stays on shards.
// CHECK-LABEL: optim.rule @Momentum hyperparameters
// CHECK-NOT: @Momentum.with_blocks
optim.rule @Momentum hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad : tensor<?x?xf32>
  %o = optim.orthogonalize %m1 coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %u = arith.mulf %s, %o : tensor<?x?xf32>
  %p = arith.subf %param, %u : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// Two states save bytes only together: each is read where the other is.
// CHECK-LABEL: optim.rule @Pair hyperparameters
// CHECK-LABEL: optim.rule @Pair.with_blocks {{.*}} written @Pair block_states ["a", "b"] {
optim.rule @Pair hyperparameters [] states [#optim.state<"a", f32, full, 0.0 : f64, false>, #optim.state<"b", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %ab = arith.mulf %a, %b : tensor<?x?xf32>
  %q = arith.mulf %ab, %o : tensor<?x?xf32>
  %a1 = arith.addf %q, %a : tensor<?x?xf32>
  %b1 = arith.addf %q, %b : tensor<?x?xf32>
  %w = optim.orthogonalize %q coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %w, %a1, %b1 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @d shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @e shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// CHECK: optim.group @g_owner rule @Between.with_blocks parameters [@a]
// CHECK: optim.group @g_gather rule @Between.with_blocks parameters [@b]
// CHECK: optim.group @g_local rule @Between parameters [@c]
// CHECK: optim.group @g_momentum rule @Momentum parameters [@d]
// CHECK: optim.group @g_pair rule @Pair.with_blocks parameters [@e]
optim.group @g_owner rule @Between parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @g_gather rule @Between parameters [@b] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
optim.group @g_local rule @Between parameters [@c] strategy #optim.local hops []
optim.group @g_momentum rule @Momentum parameters [@d] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @g_pair rule @Pair parameters [@e] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
