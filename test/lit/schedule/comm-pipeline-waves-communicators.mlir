// RUN: stepc-opt %s -split-input-file --comm-pipeline-waves | FileCheck %s

// A start of collectives on one communicator is on that.
// CHECK-LABEL: func.func @same_ranks
// CHECK: %[[RANKS:.*]] = comm.communicator <@one, [<0, 1, 2>]>
// CHECK: comm.start exchange %[[RANKS]] order 0 sends(%{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @p0 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g0 rule @R parameters [@p0] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s0 group @g0 all
optim.parameter @p1 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g1 rule @R parameters [@p1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s1 group @g1 all
func.func @same_ranks() {
  %active = comm.active
  %c0 = comm.communicator <@one, [<0, 1, 2>]>
  %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %n0 = comm.extent <@s0, full, shards to blocks, sent>
  %a0 = memref.alloc(%n0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>
  comm.copy active %active ins(%p0 : !comm.shards<@g0, f32>) outs(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>)
  %m0 = comm.extent <@s0, full, shards to blocks, received>
  %b0 = memref.alloc(%m0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>
  comm.exchange %c0 sends(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>) receives(%b0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>)
  %c1 = comm.communicator <@one, [<0, 1, 2>]>
  %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %n1 = comm.extent <@s1, full, shards to blocks, sent>
  %a1 = memref.alloc(%n1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>
  comm.copy active %active ins(%p1 : !comm.shards<@g1, f32>) outs(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>)
  %m1 = comm.extent <@s1, full, shards to blocks, received>
  %b1 = memref.alloc(%m1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>
  comm.exchange %c1 sends(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>) receives(%b1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>)
  return
}

// -----

// Of several it is on all axes of their mesh along which any of them goes: here not along the first.
// CHECK-LABEL: func.func @more_ranks
// CHECK: %[[RANKS:.*]] = comm.communicator <@one, [<1, 1, 4>, <2, 1, 2>]>
// CHECK: comm.start exchange %[[RANKS]] order 0 sends(%{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["x", "y", "z"] sizes [2, 4, 2] ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @p0 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.replicate, #optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g0 rule @R parameters [@p0] strategy #optim.owner hops [#optim.hop<owned [<1, 1, 4>] base [0]>]
comm.segment @s0 group @g0 all
optim.parameter @p1 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.replicate, #optim.shard<0>, #optim.shard<1>] aliases [] route @R
optim.group @g1 rule @R parameters [@p1] strategy #optim.owner hops [#optim.hop<owned [<1, 1, 4>, <2, 1, 2>] base [0]>]
comm.segment @s1 group @g1 all
optim.parameter @p2 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.replicate, #optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g2 rule @R parameters [@p2] strategy #optim.owner hops [#optim.hop<owned [<1, 1, 4>] base [0]>]
comm.segment @s2 group @g2 all
func.func @more_ranks() {
  %active = comm.active
  %c0 = comm.communicator <@one, [<1, 1, 4>]>
  %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %n0 = comm.extent <@s0, full, shards to blocks, sent>
  %a0 = memref.alloc(%n0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>
  comm.copy active %active ins(%p0 : !comm.shards<@g0, f32>) outs(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>)
  %m0 = comm.extent <@s0, full, shards to blocks, received>
  %b0 = memref.alloc(%m0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>
  comm.exchange %c0 sends(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>) receives(%b0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>)
  %c1 = comm.communicator <@one, [<1, 2, 2>, <2, 1, 2>, <1, 1, 2>]>
  %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %n1 = comm.extent <@s1, full, shards to blocks, sent>
  %a1 = memref.alloc(%n1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>
  comm.copy active %active ins(%p1 : !comm.shards<@g1, f32>) outs(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>)
  %m1 = comm.extent <@s1, full, shards to blocks, received>
  %b1 = memref.alloc(%m1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>
  comm.exchange %c1 sends(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>) receives(%b1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>)
  %c2 = comm.communicator <@one, [<1, 1, 4>]>
  %p2 = comm.shards parameter @g2 : !comm.shards<@g2, f32>
  %n2 = comm.extent <@s2, full, shards to blocks, sent>
  %a2 = memref.alloc(%n2) : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>
  comm.copy active %active ins(%p2 : !comm.shards<@g2, f32>) outs(%a2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>)
  %m2 = comm.extent <@s2, full, shards to blocks, received>
  %b2 = memref.alloc(%m2) : memref<?xf32, #comm.place<@s2, full, shards to blocks, received>>
  comm.exchange %c2 sends(%a2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>) receives(%b2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, received>>)
  return
}

// -----

// Of several meshes it is on the world.
// CHECK-LABEL: func.func @several_meshes
// CHECK: %[[RANKS:.*]] = comm.world
// CHECK: comm.start exchange %[[RANKS]] order 0 sends(%{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.mesh @other axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @p0 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g0 rule @R parameters [@p0] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s0 group @g0 all
optim.parameter @p1 shape [8, 6] batch 0 type f32 gradient f32 mesh @other placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g1 rule @R parameters [@p1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s1 group @g1 all
func.func @several_meshes() {
  %active = comm.active
  %c0 = comm.communicator <@one, [<0, 1, 2>]>
  %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %n0 = comm.extent <@s0, full, shards to blocks, sent>
  %a0 = memref.alloc(%n0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>
  comm.copy active %active ins(%p0 : !comm.shards<@g0, f32>) outs(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>)
  %m0 = comm.extent <@s0, full, shards to blocks, received>
  %b0 = memref.alloc(%m0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>
  comm.exchange %c0 sends(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>) receives(%b0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>)
  %c1 = comm.communicator <@other, [<0, 1, 2>]>
  %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %n1 = comm.extent <@s1, full, shards to blocks, sent>
  %a1 = memref.alloc(%n1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>
  comm.copy active %active ins(%p1 : !comm.shards<@g1, f32>) outs(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>)
  %m1 = comm.extent <@s1, full, shards to blocks, received>
  %b1 = memref.alloc(%m1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>
  comm.exchange %c1 sends(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>) receives(%b1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>)
  return
}

// -----

// The first two share no pair of ranks. The third has one with the second alone, but together they are
// on the world, so that the first shares one, too.
// CHECK-LABEL: func.func @bridge
// CHECK: %[[RANKS:.*]] = comm.world
// CHECK: comm.start exchange %[[RANKS]] order 0 sends(%{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.mesh @other axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @p0 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g0 rule @R parameters [@p0] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s0 group @g0 all
optim.parameter @p1 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.replicate, #optim.shard<0>] aliases [] route @R
optim.group @g1 rule @R parameters [@p1] strategy #optim.owner hops [#optim.hop<owned [<1, 1, 2>] base [0]>]
comm.segment @s1 group @g1 all
optim.parameter @p2 shape [8, 6] batch 0 type f32 gradient f32 mesh @other placements [#optim.replicate, #optim.shard<0>] aliases [] route @R
optim.group @g2 rule @R parameters [@p2] strategy #optim.owner hops [#optim.hop<owned [<1, 1, 2>] base [0]>]
comm.segment @s2 group @g2 all
func.func @bridge() {
  %active = comm.active
  %c0 = comm.communicator <@one, [<0, 1, 2>]>
  %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %n0 = comm.extent <@s0, full, shards to blocks, sent>
  %a0 = memref.alloc(%n0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>
  comm.copy active %active ins(%p0 : !comm.shards<@g0, f32>) outs(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>)
  %m0 = comm.extent <@s0, full, shards to blocks, received>
  %b0 = memref.alloc(%m0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>
  comm.exchange %c0 sends(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>) receives(%b0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>)
  %c1 = comm.communicator <@one, [<1, 1, 2>]>
  %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %n1 = comm.extent <@s1, full, shards to blocks, sent>
  %a1 = memref.alloc(%n1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>
  comm.copy active %active ins(%p1 : !comm.shards<@g1, f32>) outs(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>)
  %m1 = comm.extent <@s1, full, shards to blocks, received>
  %b1 = memref.alloc(%m1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>
  comm.exchange %c1 sends(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>) receives(%b1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>)
  %c2 = comm.communicator <@other, [<1, 1, 2>]>
  %p2 = comm.shards parameter @g2 : !comm.shards<@g2, f32>
  %n2 = comm.extent <@s2, full, shards to blocks, sent>
  %a2 = memref.alloc(%n2) : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>
  comm.copy active %active ins(%p2 : !comm.shards<@g2, f32>) outs(%a2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>)
  %m2 = comm.extent <@s2, full, shards to blocks, received>
  %b2 = memref.alloc(%m2) : memref<?xf32, #comm.place<@s2, full, shards to blocks, received>>
  comm.exchange %c2 sends(%a2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, sent>>) receives(%b2 : memref<?xf32, #comm.place<@s2, full, shards to blocks, received>>)
  return
}

// -----

// The world stays the world.
// CHECK-LABEL: func.func @world
// CHECK: %[[RANKS:.*]] = comm.world
// CHECK: comm.start exchange %[[RANKS]] order 0 sends(%{{[^ ]*}}, %{{[^ ]*}} :
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["x", "y"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @p0 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g0 rule @R parameters [@p0] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s0 group @g0 all
optim.parameter @p1 shape [8, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.shard<0>, #optim.replicate] aliases [] route @R
optim.group @g1 rule @R parameters [@p1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s1 group @g1 all
func.func @world() {
  %active = comm.active
  %c0 = comm.communicator <@one, [<0, 1, 2>]>
  %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %n0 = comm.extent <@s0, full, shards to blocks, sent>
  %a0 = memref.alloc(%n0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>
  comm.copy active %active ins(%p0 : !comm.shards<@g0, f32>) outs(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>)
  %m0 = comm.extent <@s0, full, shards to blocks, received>
  %b0 = memref.alloc(%m0) : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>
  comm.exchange %c0 sends(%a0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, sent>>) receives(%b0 : memref<?xf32, #comm.place<@s0, full, shards to blocks, received>>)
  %c1 = comm.world
  %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %n1 = comm.extent <@s1, full, shards to blocks, sent>
  %a1 = memref.alloc(%n1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>
  comm.copy active %active ins(%p1 : !comm.shards<@g1, f32>) outs(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>)
  %m1 = comm.extent <@s1, full, shards to blocks, received>
  %b1 = memref.alloc(%m1) : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>
  comm.exchange %c1 sends(%a1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, sent>>) receives(%b1 : memref<?xf32, #comm.place<@s1, full, shards to blocks, received>>)
  return
}
