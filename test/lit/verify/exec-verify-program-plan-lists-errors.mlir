// RUN: stepc-opt %s -split-input-file -verify-diagnostics --stepc-exec=target=cpu:x86-64-v3

// A copy on the rank brings what the rank has, and no more: a gradient in shards is not all of it.
module attributes {stepc.level = "scheduled"} {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = arith.subf %param, %grad : tensor<?x?xf32>
  optim.yield %n : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.shard<0>] aliases [] route @Plain
optim.group @g rule @Plain parameters [@a]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %d = comm.shards gradient @g : !comm.shards<@g, f32, gradient_shards>
  %n = comm.extent <@s, full, shards, kept>
  %k = comm.buffer offset 0 bytes 96 (%n) : memref<?xf32, #comm.place<@s, full, shards, kept>>
  // expected-error @below {{expected every element of the rank's shards once, found 12 of 24 elements of parameter 'a' on rank 0}}
  comm.copy active %active ins(%d : !comm.shards<@g, f32, gradient_shards>) outs(%k : memref<?xf32, #comm.place<@s, full, shards, kept>>)
  comm.stage @s over shards active %active ins(%p, %k : !comm.shards<@g, f32>, memref<?xf32, #comm.place<@s, full, shards, kept>>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    comm.yield %c : f32
  }
  comm.advance_steps %steps active %active
  return
}
}

// -----

// Each element is sent to where it is wanted: without the exchange nothing arrived.
module attributes {stepc.level = "scheduled"} {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = arith.subf %param, %grad : tensor<?x?xf32>
  optim.yield %n : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.shard<0>] aliases [] route @Plain
optim.group @g rule @Plain parameters [@a]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 256 : i64} {
  %steps = comm.steps
  %active = comm.active
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %d = comm.shards gradient @g : !comm.shards<@g, f32, gradient_shards>
  %n = comm.extent <@s, full, shards, kept>
  %k = comm.buffer offset 0 bytes 96 (%n) : memref<?xf32, #comm.place<@s, full, shards, kept>>
  %m = comm.extent <@s, full, gradient_shards to shards, received>
  %r = comm.buffer offset 128 bytes 96 (%m) : memref<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>
  // expected-error @below {{expected a comm.start that takes what is packed along, found none for #comm.place<@s, full, gradient_shards to shards, received>}}
  comm.copy ins(%r : memref<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>) outs(%k : memref<?xf32, #comm.place<@s, full, shards, kept>>)
  comm.stage @s over shards active %active ins(%p, %k : !comm.shards<@g, f32>, memref<?xf32, #comm.place<@s, full, shards, kept>>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    comm.yield %c : f32
  }
  comm.advance_steps %steps active %active
  return
}
}

// -----

// An all-gather has copies on the same ranks: here of the one value on all ranks, of the other on those of a row.
// expected-error @below {{expected a consistent plan: command 0: expected an all-gather of values of which the same ranks share copies}}
module attributes {stepc.level = "scheduled"} {
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["row", "column"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases [] route @R
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases [] route @R
optim.group @f rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 2>]>]
optim.group @h rule @R parameters [@c] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 2>]>]
comm.segment @f_all group @f all
comm.segment @h_all group @h all
func.func @step() attributes {comm.arena_bytes = 384 : i64} {
  %steps = comm.steps
  %active = comm.active
  %w = comm.world
  %na = comm.extent <@f_all, full, shards to blocks, sent>
  %a = comm.buffer offset 0 bytes 192 (%na) : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>
  %nb = comm.extent <@h_all, full, shards to blocks, sent>
  %b = comm.buffer offset 0 bytes 192 (%nb) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>
  %nc = comm.extent <@f_all, full, shards to blocks, received>
  %c = comm.buffer offset 192 bytes 192 (%nc) : memref<?xf32, #comm.place<@f_all, full, shards to blocks, received>>
  %nd = comm.extent <@h_all, full, shards to blocks, received>
  %d = comm.buffer offset 192 bytes 192 (%nd) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>
  %t = comm.start all_gather %w order 0 sends(%a, %b : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>)
    receives(%c, %d : memref<?xf32, #comm.place<@f_all, full, shards to blocks, received>>, memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>)
  comm.wait %t
  comm.advance_steps %steps active %active
  return
}
}

// -----

// Hops start where the states are.
module attributes {stepc.level = "scheduled"} {
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
comm.segment @s group @g all
func.func @step() attributes {comm.arena_bytes = 128 : i64} {
  %steps = comm.steps
  %active = comm.active
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %n = comm.extent <@s, full, shards to blocks, sent>
  %k = comm.buffer offset 0 bytes 96 (%n) : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  // expected-error @below {{expected state_shards, where the hops of the group start, found shards}}
  comm.copy active %active ins(%p : !comm.shards<@g, f32>) outs(%k : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>)
  comm.advance_steps %steps active %active
  return
}
}
