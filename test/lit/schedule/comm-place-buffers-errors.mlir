// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-place-buffers

// The decision comes first.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
// expected-error @below {{expected comm.arena_bytes, which comm-assign-arena sets, found none}}
func.func @step() {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.advance_steps %steps active %active
  return
}

// -----

// An allocation without a place has none in the workspace.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  // expected-error @below {{expected comm.offset, which comm-assign-arena sets, found none}}
  %a = memref.alloc(%n) {comm.bytes = 96 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.advance_steps %steps active %active
  return
}

// -----

// Nor has one without a size.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  // expected-error @below {{expected comm.bytes, which comm-assign-arena sets, found none}}
  %a = memref.alloc(%n) {comm.offset = 0 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.advance_steps %steps active %active
  return
}

// -----

// A place ends inside of the workspace.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
// expected-note @below {{the workspace is set here}}
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  // expected-error @below {{expected a place inside of the workspace of 128 bytes, found 96 bytes from byte 64}}
  %a = memref.alloc(%n) {comm.bytes = 96 : i64, comm.offset = 64 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.advance_steps %steps active %active
  return
}

// -----

// It starts there, too.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
// expected-note @below {{the workspace is set here}}
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  // expected-error @below {{expected a place inside of the workspace of 128 bytes, found 0 bytes from byte 192}}
  %a = memref.alloc(%n) {comm.bytes = 0 : i64, comm.offset = 192 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.advance_steps %steps active %active
  return
}

// -----

// All of a pool has one place.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 512 : i64} {
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  // expected-note @below {{the first of the pool is here}}
  %a = memref.alloc(%n) {comm.bytes = 128 : i64, comm.offset = 0 : i64, comm.pool = 3 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  // expected-error @below {{expected comm.offset to be one for all of pool 3, found another}}
  %b = memref.alloc(%n) {comm.bytes = 128 : i64, comm.offset = 128 : i64, comm.pool = 3 : i64} : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>
  comm.advance_steps %steps active %active
  return
}

// -----

// Places belong to programs: at an earlier level there are none, at a later one they are taken.
// expected-error @below {{expected level comm or scheduled, found optim: only a program that comm-assign-arena has seen has places}}
module attributes {stepc.level = "optim"} {
}

// -----

// expected-error @below {{expected level comm or scheduled, found exec}}
module attributes {stepc.level = "exec"} {
}
