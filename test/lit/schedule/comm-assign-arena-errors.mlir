// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-assign-arena

// A schedule that needs more than the limit is refused, with what it needs.
module attributes {comm.workspace_limit = 127 : i64} {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
comm.segment @s group @g all
// expected-error @below {{expected a workspace within the limit of 127 bytes per rank, found that this schedule needs 128, and up to 0 of scratch}}
func.func @limit() {
  %n = comm.extent @s to_matrix full blocks
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}

// -----

// The size of a buffer must be known for every rank.
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
comm.segment @s group @g all
func.func @size(%n: index) {
  // expected-error @below {{expected sizes from comm.extent, found another value}}
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}

// -----

// A size of a segment that is not there.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy owner owners [0]
comm.segment @s group @g all
func.func @missing() {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  %n = comm.extent @t to_matrix full blocks
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
