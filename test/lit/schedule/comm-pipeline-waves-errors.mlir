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
