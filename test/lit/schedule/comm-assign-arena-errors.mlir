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
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
comm.segment @s group @g all
// expected-error @below {{expected a workspace within the limit of 127 bytes per rank, found that this schedule, in 1 wave, needs 128: 128, and a bound of 0 on scratch; other waves, which --waves forces, may need less}}
func.func @limit() {
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
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
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
comm.segment @s group @g all
func.func @size(%n: index) {
  // expected-error @below {{expected sizes from comm.extent, found another value}}
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
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
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @missing() {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  %n = comm.extent <@t, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}

// -----

// Shards stand where their placements say.
module {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @step() {
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected shards that stand in state_shards, as the placements of the state say, found '!comm.shards<@g, f32>'}}
  %m = comm.shards state @g "m" : !comm.shards<@g, f32>
  comm.advance_steps %steps active %active
  return
}
}

// -----

// What stands by equal placements has one name.
module {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @step() {
  %steps = comm.steps
  %active = comm.active
  %g = comm.shards gradient @g : !comm.shards<@g, f32>
  %n = comm.extent <@s, full, gradient_shards, kept>
  %k = memref.alloc(%n) : memref<?xf32, #comm.place<@s, full, gradient_shards, kept>>
  // expected-error @below {{expected shards, where the shards of the gradient stand, found gradient_shards}}
  comm.copy active %active ins(%g : !comm.shards<@g, f32>) outs(%k : memref<?xf32, #comm.place<@s, full, gradient_shards, kept>>)
  comm.advance_steps %steps active %active
  return
}
}

// -----

// Who sends what is known of the step alone.
module {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
comm.segment @s group @g all
func.func @other() {
  %active = comm.active
  %w = comm.world
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns = comm.extent <@s, full, shards to blocks, sent>
  %nr = comm.extent <@s, full, shards to blocks, received>
  %n = comm.extent <@s, full, blocks>
  %s = memref.alloc(%ns) : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  %r = memref.alloc(%nr) : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) outs(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  // expected-error @+1 {{expected collectives in @step alone, found one in @other}}
  %t = comm.start exchange %w order 0 sends(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.wait %t
  return
}
}
