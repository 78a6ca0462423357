// Every operation of the dialect in its custom form, and through the generic form and bytecode and back.
// RUN: stepc-opt %s | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --emit-bytecode | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix GENERIC

optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", bf16, full, 0.0 : f64, false>, #optim.state<"v", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %v: tensor<?x1xf32>, %lr: f64,
     %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m, %v : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g0 rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]

// Segments: all blocks of a group, some, and none.
// CHECK: comm.segment @g0_all group @g0 all
// CHECK: comm.segment @g0_w1 group @g0 wave 1 blocks [1]
// CHECK: comm.segment @g0_w2 group @g0 blocks []
// GENERIC: "comm.segment"() <{all, group = @g0, sym_name = "g0_all"}>
// GENERIC: "comm.segment"() <{blocks = array<i64: 1>, group = @g0, sym_name = "g0_w1", wave = 1 : i64}>
comm.segment @g0_all group @g0 all
comm.segment @g0_w1 group @g0 wave 1 blocks [1]
comm.segment @g0_w2 group @g0 blocks []

// Symbols and values: the world, ranks of a mesh, the shards of each kind, extents, places in the workspace.
// CHECK-LABEL: func.func @values
// CHECK-SAME: !comm.communicator
// CHECK: comm.world
// CHECK: comm.communicator <@world, [<0, 1, 2>]>
// CHECK: comm.shards parameter @g0 : <@g0, f32>
// CHECK: comm.shards gradient @g0 : <@g0, f32>
// CHECK: comm.shards state @g0 "m" : <@g0, bf16>
// CHECK: %[[N:.*]] = comm.extent <@g0_all, full, shards to blocks, sent>
// CHECK: comm.buffer offset 4096 bytes 1024(%[[N]]) : memref<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>
// CHECK: comm.buffer offset 0 bytes 64 : memref<2x1xf32, #comm.place<@g0, scalars>>
// CHECK: comm.buffer offset 5120 bytes 384(%{{.*}}, %{{.*}}) : memref<?x4x6xf32, #comm.place<@g0_all, full, blocks>>, memref<?x4x1xf32, #comm.place<@g0_w1, rows, blocks>>
// GENERIC-LABEL: sym_name = "values"
// GENERIC: "comm.world"()
// GENERIC: "comm.communicator"() <{ranks = #comm.communicator<@world, [<0, 1, 2>]>}>
// GENERIC: "comm.shards"() <{group = @g0, kind = #comm.shards_kind<state>, state = "m"}>
// GENERIC: "comm.extent"() <{place = #comm.place<@g0_all, full, shards to blocks, sent>}>
// GENERIC: "comm.buffer"(%{{.*}}) <{bytes = 1024 : i64, offset = 4096 : i64}>
func.func @values() -> !comm.communicator {
  %w = comm.world
  %v = comm.communicator <@world, [<0, 1, 2>]>
  %p = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %g = comm.shards gradient @g0 : !comm.shards<@g0, f32>
  %m = comm.shards state @g0 "m" : !comm.shards<@g0, bf16>
  %n = comm.extent <@g0_all, full, shards to blocks, sent>
  %b = comm.buffer offset 4096 bytes 1024 (%n) : memref<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>
  %c = comm.buffer offset 0 bytes 64 : memref<2x1xf32, #comm.place<@g0, scalars>>
  %n0 = comm.extent <@g0_all, full, blocks>
  %n1 = comm.extent <@g0_w1, full, blocks>
  %pool:2 = comm.buffer offset 5120 bytes 384 (%n0, %n1) : memref<?x4x6xf32, #comm.place<@g0_all, full, blocks>>, memref<?x4x1xf32, #comm.place<@g0_w1, rows, blocks>>
  return %w : !comm.communicator
}

// What the instance keeps of all parameters, under names that are printed; the step counts advance by one operation.
// CHECK-LABEL: func.func @bound
// CHECK-NEXT: %hyperparameters = comm.hyperparameters
// CHECK-NEXT: %steps = comm.steps
// CHECK-NEXT: %active = comm.active
// CHECK-NEXT: comm.advance_steps %steps active %active
// CHECK-NEXT: return %hyperparameters : !comm.hyperparameters
func.func @bound() -> !comm.hyperparameters {
  %0 = comm.hyperparameters
  %1 = comm.steps
  %2 = comm.active
  comm.advance_steps %1 active %2
  return %0 : !comm.hyperparameters
}

// The scalars of a group: hyperparameters, then step, rows, cols and numel come in, columns go out.
// CHECK-LABEL: func.func @scalars
// CHECK: comm.scalars of %hyperparameters, %steps active %active outs(%{{.*}} : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
// CHECK-NEXT: ^bb0(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: comm.yield %[[LR]] : f64
// CHECK-NEXT: } -> tensor<2x1xf32, #comm.place<@g0, scalars>>
// CHECK: comm.scalars of %hyperparameters, %steps active %active outs(%{{.*}} : memref<2x0xf32, #comm.place<@g0, scalars>>) {
// CHECK-NOT: ->
// CHECK: return
// GENERIC: "comm.scalars"(%{{.*}}) ({
func.func @scalars(%t: tensor<2x1xf32, #comm.place<@g0, scalars>>, %m: memref<2x0xf32, #comm.place<@g0, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32, #comm.place<@g0, scalars>>
  comm.scalars of %hyperparameters, %steps active %active outs(%m : memref<2x0xf32, #comm.place<@g0, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield
  }
  return
}

// Stages over shards with every kind of operand, over shards with blocks, over blocks, and of nothing but writes.
// CHECK-LABEL: func.func @stages
// CHECK: %[[U:.*]] = comm.stage @g0_all over shards active %active ins(%{{.*}}, %[[M:.*]] : !comm.shards<@g0, f32>, !comm.shards<@g0, bf16>) writes(%[[M]] : !comm.shards<@g0, bf16>) outs(%{{.*}} : tensor<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>) scalars(%{{.*}} : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: bf16, %{{.*}}: f32):
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT: comm.yield %[[H]], %[[Y]] : bf16, bf16
// CHECK-NEXT: } -> tensor<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>
// CHECK: comm.stage @g0_all over shards active %active ins(%{{.*}} : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>) writes(%{{.*}} : !comm.shards<@g0, f32>)
// CHECK: comm.stage @g0_all over blocks ins(%{{.*}}, %{{.*}} : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>, tensor<?x4x1xf32, #comm.place<@g0_all, rows, blocks>>) outs(%{{.*}} : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>)
// CHECK: comm.stage @g0_all over shards active %active writes(%{{.*}} : !comm.shards<@g0, f32>) {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant
// CHECK-NEXT: comm.yield %[[ZERO]] : f32
// CHECK-NEXT: }
// GENERIC: "comm.stage"({{.*}}) <{iteration = #comm.iteration<shards>, operandSegmentSizes = array<i32: 2, 1, 1, 1, 1>, segment = @g0_all}> ({
func.func @stages(%g: !comm.shards<@g0, f32>, %m: !comm.shards<@g0, bf16>, %e: tensor<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>, %t: tensor<2x1xf32, #comm.place<@g0, scalars>>,
                  %x: tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>, %v: tensor<?x4x1xf32, #comm.place<@g0_all, rows, blocks>>) {
  %active = comm.active
  %u = comm.stage @g0_all over shards active %active ins(%g, %m : !comm.shards<@g0, f32>, !comm.shards<@g0, bf16>)
      writes(%m : !comm.shards<@g0, bf16>) outs(%e : tensor<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>) scalars(%t : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
  ^bb0(%a: f32, %b: bf16, %lr: f32):
    %h = arith.truncf %a : f32 to bf16
    comm.yield %h, %b : bf16, bf16
  } -> tensor<?xbf16, #comm.place<@g0_all, full, shards to blocks, sent>>
  comm.stage @g0_all over shards active %active ins(%x : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>) writes(%g : !comm.shards<@g0, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %y = comm.stage @g0_all over blocks ins(%x, %v : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>, tensor<?x4x1xf32, #comm.place<@g0_all, rows, blocks>>) outs(%x : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    comm.yield %q : f32
  } -> tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>
  comm.stage @g0_all over shards active %active writes(%g : !comm.shards<@g0, f32>) {
    %zero = arith.constant 0.0 : f32
    comm.yield %zero : f32
  }
  return
}

// Copies between buffers, out of a state and into one, on tensors and memrefs.
// CHECK-LABEL: func.func @copies
// CHECK: comm.copy ins(%{{.*}} : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>) outs(%{{.*}} : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>
// CHECK: comm.copy active %active ins(%{{.*}} : !comm.shards<@g0, f32>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g0_all, rows, shards to blocks, sent>>) -> tensor<?xf32, #comm.place<@g0_all, rows, shards to blocks, sent>>
// CHECK: comm.copy active %active ins(%{{.*}} : tensor<?xf32, #comm.place<@g0_all, cols, blocks to shards, received>>) writes(%{{.*}} : !comm.shards<@g0, f32>)
// CHECK: comm.copy ins(%{{.*}} : memref<?x1x1xf32, #comm.place<@g0_all, one, blocks>>) outs(%{{.*}} : memref<?xf32, #comm.place<@g0_all, one, blocks to shards, sent>>){{$}}
// GENERIC: "comm.copy"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}>
func.func @copies(%r: tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>,
                  %v: tensor<?xf32, #comm.place<@g0_all, rows, shards to blocks, sent>>, %c: tensor<?xf32, #comm.place<@g0_all, cols, blocks to shards, received>>,
                  %o: memref<?x1x1xf32, #comm.place<@g0_all, one, blocks>>, %l: memref<?xf32, #comm.place<@g0_all, one, blocks to shards, sent>>, %s: !comm.shards<@g0, f32>) {
  %active = comm.active
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>) outs(%x : tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@g0_all, full, blocks>>
  %1 = comm.copy active %active ins(%s : !comm.shards<@g0, f32>) outs(%v : tensor<?xf32, #comm.place<@g0_all, rows, shards to blocks, sent>>) -> tensor<?xf32, #comm.place<@g0_all, rows, shards to blocks, sent>>
  comm.copy active %active ins(%c : tensor<?xf32, #comm.place<@g0_all, cols, blocks to shards, received>>) writes(%s : !comm.shards<@g0, f32>)
  comm.copy ins(%o : memref<?x1x1xf32, #comm.place<@g0_all, one, blocks>>) outs(%l : memref<?xf32, #comm.place<@g0_all, one, blocks to shards, sent>>)
  return
}

// Collectives: an exchange of two values, an all-gather, a start of one and one of two, and their wait.
// CHECK-LABEL: func.func @collectives
// CHECK-SAME: %[[W:[a-z0-9]*]]: !comm.communicator
// CHECK: comm.exchange %[[W]] sends(%{{.*}}, %{{.*}} : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, sent>>) receives(%{{.*}}, %{{.*}} : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, received>>
// CHECK: comm.all_gather %[[W]] sends(%{{.*}} : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>) receives(%{{.*}} : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>
// CHECK: comm.start all_gather %[[W]] order 1 sends(%{{.*}} : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>) receives(%{{.*}} : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>)
// CHECK: %[[T:.*]] = comm.start exchange %[[W]] order 2 sends(%{{.*}}, %{{.*}} : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@g0_all, one, shards to blocks, sent>>) receives(%{{.*}}, %{{.*}} : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, memref<?xf32, #comm.place<@g0_all, one, shards to blocks, received>>)
// CHECK: comm.wait %[[T]]
// GENERIC: "comm.exchange"({{.*}}) <{operandSegmentSizes = array<i32: 1, 2, 2>
// GENERIC: "comm.all_gather"
// GENERIC: "comm.start"({{.*}}kind = #comm.collective_kind<all_gather>, {{.*}}order = 1 : i64
// GENERIC: "comm.wait"
func.func @collectives(%w: !comm.communicator, %a: tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, %ar: tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>,
                       %b: tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, sent>>, %br: tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, received>>,
                       %s: memref<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, %r: memref<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, %o: memref<?xf32, #comm.place<@g0_all, one, shards to blocks, sent>>, %or: memref<?xf32, #comm.place<@g0_all, one, shards to blocks, received>>) {
  %0:2 = comm.exchange %w sends(%a, %b : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, sent>>)
    receives(%ar, %br : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, tensor<?xbf16, #comm.place<@g0_w1, rows, shards to blocks, received>>
  %1 = comm.all_gather %w sends(%a : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>) receives(%ar : tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>
  %t1 = comm.start all_gather %w order 1 sends(%s : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>) receives(%r : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>)
  %t2 = comm.start exchange %w order 2 sends(%s, %o : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@g0_all, one, shards to blocks, sent>>)
    receives(%r, %or : memref<?xf32, #comm.place<@g0_all, full, shards to blocks, received>>, memref<?xf32, #comm.place<@g0_all, one, shards to blocks, received>>)
  comm.wait %t1
  comm.wait %t2
  return
}

// Shards of states that stand apart: what is read there is copied there, or moved.
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases []
optim.group @g1 rule @R parameters [@c]
comm.segment @g1_all group @g1 all
// CHECK-LABEL: func.func @apart
// CHECK: comm.shards state @g1 "m" : <@g1, bf16, state_shards>
// CHECK: comm.extent <@g1_all, full, state_shards, kept>
// CHECK: %[[K:.*]] = comm.copy active %active ins(%{{.*}} : !comm.shards<@g1, f32>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>) -> tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>
// CHECK: comm.stage @g1_all over state_shards active %active ins(%[[K]], %{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>, !comm.shards<@g1, bf16, state_shards>) writes(%{{.*}} : !comm.shards<@g1, bf16, state_shards>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>)
// CHECK: comm.copy ins(%{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>) outs(%{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, sent>>)
// CHECK: comm.copy active %active ins(%{{.*}} : tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, received>>) writes(%{{.*}} : !comm.shards<@g1, f32>)
func.func @apart(%k: tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>, %o: tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>,
                 %s: tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, sent>>, %r: tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, received>>) {
  %active = comm.active
  %p = comm.shards parameter @g1 : !comm.shards<@g1, f32>
  %m = comm.shards state @g1 "m" : !comm.shards<@g1, bf16, state_shards>
  %n = comm.extent <@g1_all, full, state_shards, kept>
  %0 = comm.copy active %active ins(%p : !comm.shards<@g1, f32>) outs(%k : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>) -> tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>
  %1 = comm.stage @g1_all over state_shards active %active ins(%0, %m : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>, !comm.shards<@g1, bf16, state_shards>)
      writes(%m : !comm.shards<@g1, bf16, state_shards>) outs(%o : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>) {
  ^bb0(%a: f32, %b: bf16):
    comm.yield %b, %a : bf16, f32
  } -> tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>
  %2 = comm.copy ins(%1 : tensor<?xf32, #comm.place<@g1_all, full, state_shards, kept>>) outs(%s : tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, sent>>) -> tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, sent>>
  comm.copy active %active ins(%r : tensor<?xf32, #comm.place<@g1_all, full, state_shards to shards, received>>) writes(%p : !comm.shards<@g1, f32>)
  return
}

// Numbers of the model: parts that stages make, and their sum on a rank; scalars that read a table of numbers and a line of one.
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @m rule @R parameters [@model]
comm.segment @m_all group @m all
// CHECK-LABEL: func.func @model_numbers
// CHECK: comm.extent <@g0_all, one, model_parts, kept>
// CHECK: %[[A:.*]] = comm.stage @g0_all over shards reduces norm active %active ins(%{{.*}} : !comm.shards<@g0, f32>) outs(%{{.*}} : tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>) attributes {comm.of_model} {
// CHECK: } -> tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>
// CHECK: %[[LINE:.*]] = comm.collect norm active %active ins(%[[A]], %{{.*}} : tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>, tensor<?xi640, #comm.place<@g1_all, one, model_parts, kept>>) outs(%{{.*}} : tensor<?xi640, #comm.place<@m_all, one, line_parts, kept>>) {comm.of_model} -> tensor<?xi640, #comm.place<@m_all, one, line_parts, kept>>
// CHECK: comm.collect max active %active ins(%{{.*}} : memref<?xi32, #comm.place<@g0_all, one, model_parts, kept>>) outs(%{{.*}} : memref<?xi32, #comm.place<@m_all, one, line_parts, kept>>){{$}}
// CHECK: comm.scalars of %hyperparameters, %steps active %active numbers(%{{.*}}, %{{.*}} : tensor<1x2xf32, #comm.place<@m, scalars>>, tensor<?xf32, #comm.place<@m_all, one, shards, kept>>) outs(%{{.*}} : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
// CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[LAST:.*]]: f64):
// CHECK-NEXT: comm.yield %[[LAST]] : f64
// GENERIC: "comm.stage"({{.*}}) <{iteration = #comm.iteration<shards>, {{.*}}reduction = #comm.reduction<norm>
// GENERIC: "comm.collect"({{.*}}) <{reduction = #comm.reduction<norm>}> {comm.of_model}
func.func @model_numbers(%g: !comm.shards<@g0, f32>, %pe: tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>, %q: tensor<?xi640, #comm.place<@g1_all, one, model_parts, kept>>,
                         %le: tensor<?xi640, #comm.place<@m_all, one, line_parts, kept>>, %pm: memref<?xi32, #comm.place<@g0_all, one, model_parts, kept>>, %lm: memref<?xi32, #comm.place<@m_all, one, line_parts, kept>>,
                         %table: tensor<1x2xf32, #comm.place<@m, scalars>>, %n: tensor<?xf32, #comm.place<@m_all, one, shards, kept>>, %t: tensor<2x1xf32, #comm.place<@g0, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %x = comm.extent <@g0_all, one, model_parts, kept>
  %p = comm.stage @g0_all over shards reduces norm active %active ins(%g : !comm.shards<@g0, f32>) outs(%pe : tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>) attributes {comm.of_model} {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>
  %l = comm.collect norm active %active ins(%p, %q : tensor<?xi640, #comm.place<@g0_all, one, model_parts, kept>>, tensor<?xi640, #comm.place<@g1_all, one, model_parts, kept>>)
      outs(%le : tensor<?xi640, #comm.place<@m_all, one, line_parts, kept>>) {comm.of_model} -> tensor<?xi640, #comm.place<@m_all, one, line_parts, kept>>
  comm.collect max active %active ins(%pm : memref<?xi32, #comm.place<@g0_all, one, model_parts, kept>>) outs(%lm : memref<?xi32, #comm.place<@m_all, one, line_parts, kept>>)
  %0 = comm.scalars of %hyperparameters, %steps active %active numbers(%table, %n : tensor<1x2xf32, #comm.place<@m, scalars>>, tensor<?xf32, #comm.place<@m_all, one, shards, kept>>)
      outs(%t : tensor<2x1xf32, #comm.place<@g0, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64, %n1: f64, %n2: f64):
    comm.yield %n2 : f64
  } -> tensor<2x1xf32, #comm.place<@g0, scalars>>
  return
}

// The flags of a step that may be skipped.
// CHECK-LABEL: func.func @skips
// CHECK: %[[REST:.*]] = comm.skip active %active when %{{.*}} : tensor<?xf32, #comm.place<@m_all, one, shards, kept>> {comm.of_model}
// CHECK: comm.skip active %[[REST]] when %{{.*}} : memref<?xf32, #comm.place<@m_all, one, shards, kept>>{{$}}
func.func @skips(%n: tensor<?xf32, #comm.place<@m_all, one, shards, kept>>, %m: memref<?xf32, #comm.place<@m_all, one, shards, kept>>) {
  %active = comm.active
  %rest = comm.skip active %active when %n : tensor<?xf32, #comm.place<@m_all, one, shards, kept>> {comm.of_model}
  %less = comm.skip active %rest when %m : memref<?xf32, #comm.place<@m_all, one, shards, kept>>
  return
}
