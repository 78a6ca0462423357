// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-pipeline-waves

// An operation with effects that works on no segment has no wave.
func.func @step(%m: memref<4xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected an operation on a segment, found none: it has no place in a wave}}
  memref.store %x, %m[%i] : memref<4xf32>
  return
}

// -----

// Which ranks meet is known.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @step(%w: !comm.communicator, %a: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %b: memref<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{expected a communicator of comm.communicator or comm.world, found <block argument> of type '!comm.communicator' at index: 0}}
  comm.exchange %w sends(%a : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%b : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// A step counts once all of it is done: an operation behind would belong to the next one.
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.route @R rule @R rest patterns [] except [] defaults [1.0] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @step() {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %t = memref.alloc() : memref<1x1xf32, #comm.place<@g, scalars>>
  // expected-error @below {{expected nothing behind it, because what fails before it does not count as a step, found 'comm.scalars'}}
  comm.advance_steps %steps active %active
  comm.scalars of %hyperparameters, %steps active %active outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  return
}

// -----

// All ranks of a move meet, also where its start would be on a communicator of more ranks.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.mesh @other axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [0]>]
comm.segment @s group @g all
func.func @step(%a: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %b: memref<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  %c = comm.communicator <@world, []>
  // expected-error @below {{expected a communicator on which all ranks of its moves meet, #comm.communicator<@world, [<0, 1, 4>]>, found #comm.communicator<@world, []>}}
  comm.exchange %c sends(%a : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%b : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// Half of the ranks are not all.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.mesh @other axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [0]>]
comm.segment @s group @g all
func.func @step(%a: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %b: memref<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  %c = comm.communicator <@world, [<0, 2, 2>]>
  // expected-error @below {{expected a communicator on which all ranks of its moves meet, #comm.communicator<@world, [<0, 1, 4>]>, found #comm.communicator<@world, [<0, 2, 2>]>}}
  comm.exchange %c sends(%a : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%b : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// The ranks are those of the group's mesh.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.mesh @other axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>] base [0]>]
comm.segment @s group @g all
func.func @step(%a: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %b: memref<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  %c = comm.communicator <@other, [<0, 1, 4>]>
  // expected-error @below {{expected a communicator on which all ranks of its moves meet, #comm.communicator<@world, [<0, 1, 4>]>, found #comm.communicator<@other, [<0, 1, 4>]>}}
  comm.exchange %c sends(%a : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%b : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}
