// Every type, and every case of every enumeration, in text, in generic form and in bytecode.
// RUN: stepc-opt %s | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --emit-bytecode | stepc-opt | FileCheck %s

// The types: shards name their group, communicators and tokens have no parameters.
// CHECK-LABEL: func.func private @types(!comm.shards<@group.0, f32>, !comm.shards<@g, bf16>, !comm.communicator, !comm.token)
func.func private @types(!comm.shards<@group.0, f32>, !comm.shards<@g, bf16>, !comm.communicator, !comm.token)

// Places: at rest, at both ends of a move, of scalars; every kind of value.
// CHECK-LABEL: func.func private @places
// CHECK-SAME: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
// CHECK-SAME: tensor<?xf32, #comm.place<@s, rows, shards to blocks, sent>>
// CHECK-SAME: memref<?xf32, #comm.place<@s, cols, blocks to shards, received>>
// CHECK-SAME: tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>
// CHECK-SAME: tensor<1x3xf32, #comm.place<@g, scalars>>
// CHECK-SAME: tensor<?x4x4xf32, #comm.place<@s, gram, parts>>
// CHECK-SAME: tensor<?xf32, #comm.place<@s, gram, parts to ranges, sent>>
// CHECK-SAME: tensor<?xf32, #comm.place<@s, one, ranges, kept>>
// CHECK-SAME: tensor<?xf32, #comm.place<@s, gram, ranges to blocks, received>>
// CHECK-SAME: tensor<?x6x8xf32, #comm.place<@s, [cols, 8], blocks>>
// CHECK-SAME: tensor<?x4x4xf32, #comm.place<@s, [smaller, rows], blocks>>
// CHECK-SAME: tensor<?xi640, #comm.place<@s, one, model_parts, kept>>
// CHECK-SAME: place = #comm.place<@s, one, shards>
func.func private @places(tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, tensor<?xf32, #comm.place<@s, rows, shards to blocks, sent>>,
                          memref<?xf32, #comm.place<@s, cols, blocks to shards, received>>,
                          tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>, tensor<1x3xf32, #comm.place<@g, scalars>>,
                          tensor<?x4x4xf32, #comm.place<@s, gram, parts>>, tensor<?xf32, #comm.place<@s, gram, parts to ranges, sent>>,
                          tensor<?xf32, #comm.place<@s, one, ranges, kept>>, tensor<?xf32, #comm.place<@s, gram, ranges to blocks, received>>,
                          tensor<?x6x8xf32, #comm.place<@s, [cols, 8], blocks>>, tensor<?x4x4xf32, #comm.place<@s, [smaller, rows], blocks>>,
                          tensor<?xi640, #comm.place<@s, one, model_parts, kept>>)
  attributes {place = #comm.place<@s, one, shards>}

// Extents of what is packed and of batches.
// CHECK-LABEL: func.func @extents
// CHECK: comm.extent <@s, rows, shards to blocks, sent>
// CHECK: comm.extent <@s, one, blocks>
// CHECK: comm.extent <@s, gram, blocks>
func.func @extents() {
  %1 = comm.extent <@s, rows, shards to blocks, sent>
  %2 = comm.extent <@s, one, blocks>
  %3 = comm.extent <@s, gram, blocks>
  return
}

// Every kind of shards.
// CHECK-LABEL: func.func @kinds
// CHECK: comm.shards parameter @g
// CHECK: comm.shards gradient @g
// CHECK: comm.shards state @g "m"
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @kinds() {
  %0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %1 = comm.shards gradient @g : !comm.shards<@g, f32>
  %2 = comm.shards state @g "m" : !comm.shards<@g, f32>
  return
}

// Ranks that differ along several factors, and each alone.
// CHECK-LABEL: func.func private @communicators
// CHECK-SAME: alone = #comm.communicator<@world, []>
// CHECK-SAME: ranks = #comm.communicator<@world, [<0, 1, 2>, <1, 2, 4>]>
func.func private @communicators()
  attributes {ranks = #comm.communicator<@world, [<0, 1, 2>, <1, 2, 4>]>, alone = #comm.communicator<@world, []>}

// States that stay with blocks, as tables name them.
// CHECK: func.func private @state_blocks() attributes {place = #comm.place<@s, full, state_blocks>}
func.func private @state_blocks() attributes {place = #comm.place<@s, full, state_blocks>}
