// RUN: stepc-opt %s -split-input-file --optim-assign-waves | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=waves=2 | FileCheck %s --check-prefix TWO
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=target-bytes=1 | FileCheck %s --check-prefix SMALL

// All fits: one wave. Forced to two, each owner's blocks are divided evenly, in order. With no room the waves are as many
// as blocks can be told apart; the text is at the next level.
// CHECK-LABEL: @fits
// CHECK-SAME: stepc.level = "decided"
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 0]
// TWO-LABEL: @fits
// TWO: optim.group @g {{.*}} waves [0, 0, 1, 1]
// SMALL-LABEL: @fits
// SMALL: optim.group @g {{.*}} waves [1, 1, 3, 3]
module @fits {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = 1 : i64} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = array<i64: 2>}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = 0 : i64} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = array<i64: 0>}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a0 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a1 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a2 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a3 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy owner owners [0, 1, 0, 1]
}

// -----

// The module's limit holds, not the option.
// CHECK-LABEL: @limit
// CHECK: optim.group @g {{.*}} waves [1, 1, 3, 3]
// SMALL-LABEL: @limit
// SMALL: optim.group @g {{.*}} waves [1, 1, 3, 3]
module @limit attributes {comm.workspace_limit = 1000 : i64} {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = 1 : i64} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = array<i64: 2>}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = 0 : i64} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = array<i64: 0>}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a0 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a1 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a2 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a3 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy owner owners [0, 1, 0, 1]
}

// -----

// Local blocks are divided per rank that holds them, gathered ones over all; elementwise groups have no waves, and waves
// that are set stay.
// CHECK-LABEL: @strategies
// TWO-LABEL: @strategies
// TWO: optim.group @local {{.*}} waves [0, 1, 0, 1]
// TWO: optim.group @gather {{.*}} waves [0, 1]
// TWO: optim.group @plain {{.*}} reason "r"{{$}}
// TWO: optim.group @set {{.*}} waves [7]
module @strategies {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = 1 : i64} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = array<i64: 2>}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = 0 : i64} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = array<i64: 0>}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @x shape [4, 8, 8] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @y0 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @y1 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @z shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @s shape [6, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @local rule @Matrix parameters [@x] strategy local
optim.group @gather rule @Matrix parameters [@y0, @y1] strategy gather
optim.group @plain rule @Plain parameters [@z] strategy elementwise reason "r"
optim.group @set rule @Matrix parameters [@s] strategy owner owners [0] waves [7]
}
