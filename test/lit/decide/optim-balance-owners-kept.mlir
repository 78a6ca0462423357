// RUN: stepc-opt %s -split-input-file --optim-balance-owners | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-balance-owners --remark-policy=all --remarks-filter=optim-balance-owners -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// Blocks stay with the owners of the previous plan. New ones, and those of a rank that is gone, go to the others.
// REMARK: remark: [Passed] owners-kept | Category:optim-balance-owners | blocks=2, percent=100
// CHECK: module @stay {
// CHECK: optim.group @states {{.*}} base [1, 2, 0, 3]>]
module @stay attributes {optim.kept_owners = {a = array<i64: 11>, b = array<i64: 12>, c = array<i64: 9>, gone = array<i64: 10>}} {
optim.rule @State hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %v : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [unit, unit]}
}
optim.rule @Matrix hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix written @State block_states ["v"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %u = arith.mulf %v, %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %o = optim.orthogonalize %u coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o, %u : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [4] ranks [10, 11, 12, 13]
optim.parameter @a shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @states rule @Matrix parameters [@a, @b, @c, @d] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>]>]
}

// -----

// All on one rank would make it twice as busy, so the owners are new.
// REMARK: remark: [Missed] owners-changed | Category:optim-balance-owners | Reason="with the previous owners the busiest rank would be more than 5 % busier", blocks=2, percent=200
// CHECK-LABEL: @change
// CHECK: optim.group @states {{.*}} base [0, 1]>]
module @change attributes {optim.kept_owners = {x = array<i64: 1, 1>}} {
optim.rule @State hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %v : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [unit, unit]}
}
optim.rule @Matrix hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix written @State block_states ["v"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %u = arith.mulf %v, %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %o = optim.orthogonalize %u coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o, %u : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @x shape [2, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @states rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}

// -----

// A rank may not have the states of three blocks.
// REMARK: remark: [Missed] owners-changed | Category:optim-balance-owners | Reason="with the previous owners a rank would have more states than the limit", blocks=3, percent=97
// CHECK-LABEL: @limit
// CHECK: optim.group @states {{.*}} base [1, 1, 0, 0]>]
module @limit attributes {optim.state_limit = 400 : i64, optim.kept_owners = {x = array<i64: 1, 1, 1>}} {
optim.rule @State hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %v : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [unit, unit]}
}
optim.rule @Matrix hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix written @State block_states ["v"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %u = arith.mulf %v, %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %o = optim.orthogonalize %u coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o, %u : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @x shape [4, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @states rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
// A slow block that rank 0 alone computes, so that time lets rank 1 have three of the others.
optim.rule @Large hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.parameter @slow shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @slow rule @Large parameters [@slow] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
}

// -----

// Blocks without such states are dealt out anew.
// REMARK-NOT: ] owners-kept
// REMARK-NOT: ] owners-changed
// CHECK-LABEL: @stateless
// CHECK: optim.group @states {{.*}} base [0, 1]>]
module @stateless attributes {optim.kept_owners = {x = array<i64: 1, 0>}} {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @x shape [2, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @states rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}
