// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-balance-owners

// Two states of 256 bytes and two of 64 are 320 bytes on each of two ranks, and no owners make it less.
// expected-error @below {{expected at most 319 bytes of states on a rank (--state-limit), found no less than 320 on rank 0, with the most even choice of owners for blocks whose states stay with them}}
module @limit attributes {optim.state_limit = 319 : i64} {
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
optim.parameter @l0 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l1 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s0 shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s1 shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @large rule @Matrix parameters [@l0, @l1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @small rule @Matrix parameters [@s0, @s1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}
