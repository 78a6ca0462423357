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
optim.group @g0 rule @R parameters [@a, @b] strategy owner owners [0, 1]

// Segments: all blocks of a group, some, and none.
// CHECK: comm.segment @g0_all group @g0 all
// CHECK: comm.segment @g0_w1 group @g0 wave 1 blocks [1]
// CHECK: comm.segment @g0_w2 group @g0 blocks []
// GENERIC: "comm.segment"() <{all, group = @g0, sym_name = "g0_all"}>
// GENERIC: "comm.segment"() <{blocks = array<i64: 1>, group = @g0, sym_name = "g0_w1", wave = 1 : i64}>
comm.segment @g0_all group @g0 all
comm.segment @g0_w1 group @g0 wave 1 blocks [1]
comm.segment @g0_w2 group @g0 blocks []

// Symbols and values: the world, the shards of each kind, extents, places in the workspace.
// CHECK-LABEL: func.func @values
// CHECK-SAME: !comm.communicator
// CHECK: comm.world
// CHECK: comm.shards parameter @g0 : <@g0, f32>
// CHECK: comm.shards gradient @g0 : <@g0, f32>
// CHECK: comm.shards state @g0 "m" : <@g0, bf16>
// CHECK: %[[N:.*]] = comm.extent @g0_all to_matrix full send
// CHECK: comm.buffer offset 4096 bytes 1024(%[[N]]) : memref<?xbf16>
// CHECK: comm.buffer offset 0 bytes 64 : memref<2x1xf32>
// GENERIC-LABEL: sym_name = "values"
// GENERIC: "comm.world"()
// GENERIC: "comm.shards"() <{group = @g0, kind = 2 : i64, state = "m"}>
// GENERIC: "comm.extent"() <{direction = 0 : i64, layout = 1 : i64, segment = @g0_all, value = 0 : i64}>
// GENERIC: "comm.buffer"(%{{.*}}) <{bytes = 1024 : i64, offset = 4096 : i64}>
func.func @values() -> !comm.communicator {
  %w = comm.world
  %p = comm.shards parameter @g0 : !comm.shards<@g0, f32>
  %g = comm.shards gradient @g0 : !comm.shards<@g0, f32>
  %m = comm.shards state @g0 "m" : !comm.shards<@g0, bf16>
  %n = comm.extent @g0_all to_matrix full send
  %b = comm.buffer offset 4096 bytes 1024 (%n) : memref<?xbf16>
  %c = comm.buffer offset 0 bytes 64 : memref<2x1xf32>
  return %w : !comm.communicator
}

// The scalars of a group: hyperparameters, then step, rows, cols and numel come in, columns go out.
// CHECK-LABEL: func.func @scalars
// CHECK: comm.scalars @g0 outs(%{{.*}} : tensor<2x1xf32>) {
// CHECK-NEXT: ^bb0(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: comm.yield %[[LR]] : f64
// CHECK-NEXT: } -> tensor<2x1xf32>
// CHECK: comm.scalars @g0 outs(%{{.*}} : memref<2x0xf32>) {
// CHECK-NOT: ->
// CHECK: return
// GENERIC: "comm.scalars"(%{{.*}}) <{group = @g0}> ({
func.func @scalars(%t: tensor<2x1xf32>, %m: memref<2x0xf32>) {
  %0 = comm.scalars @g0 outs(%t : tensor<2x1xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32>
  comm.scalars @g0 outs(%m : memref<2x0xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield
  }
  return
}

// Stages over shards with every kind of operand, over shards with blocks, over blocks, and of nothing but writes.
// CHECK-LABEL: func.func @stages
// CHECK: %[[U:.*]] = comm.stage @g0_all over shards to_matrix send ins(%{{.*}}, %[[M:.*]] : !comm.shards<@g0, f32>, !comm.shards<@g0, bf16>) writes(%[[M]] : !comm.shards<@g0, bf16>) outs(%{{.*}} : tensor<?xbf16>) scalars(%{{.*}} : tensor<2x1xf32>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: bf16, %{{.*}}: f32):
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[X]] : f32 to bf16
// CHECK-NEXT: comm.yield %[[H]], %[[Y]] : bf16, bf16
// CHECK-NEXT: } -> tensor<?xbf16>
// CHECK: comm.stage @g0_all over shards to_shards blocks ins(%{{.*}} : tensor<?x4x6xf32>) writes(%{{.*}} : !comm.shards<@g0, f32>)
// CHECK: comm.stage @g0_all over blocks to_matrix blocks ins(%{{.*}}, %{{.*}} : tensor<?x4x6xf32>, tensor<?x4x1xf32>) outs(%{{.*}} : tensor<?x4x6xf32>)
// CHECK: comm.stage @g0_all over shards to_matrix none writes(%{{.*}} : !comm.shards<@g0, f32>) {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant
// CHECK-NEXT: comm.yield %[[ZERO]] : f32
// CHECK-NEXT: }
// GENERIC: "comm.stage"({{.*}}) <{direction = 0 : i64, iteration = 0 : i64, layout = 1 : i64, operandSegmentSizes = array<i32: 2, 1, 1, 1>, segment = @g0_all}> ({
func.func @stages(%g: !comm.shards<@g0, f32>, %m: !comm.shards<@g0, bf16>, %e: tensor<?xbf16>, %t: tensor<2x1xf32>,
                  %x: tensor<?x4x6xf32>, %v: tensor<?x4x1xf32>) {
  %u = comm.stage @g0_all over shards to_matrix send ins(%g, %m : !comm.shards<@g0, f32>, !comm.shards<@g0, bf16>)
      writes(%m : !comm.shards<@g0, bf16>) outs(%e : tensor<?xbf16>) scalars(%t : tensor<2x1xf32>) {
  ^bb0(%a: f32, %b: bf16, %lr: f32):
    %h = arith.truncf %a : f32 to bf16
    comm.yield %h, %b : bf16, bf16
  } -> tensor<?xbf16>
  comm.stage @g0_all over shards to_shards blocks ins(%x : tensor<?x4x6xf32>) writes(%g : !comm.shards<@g0, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %y = comm.stage @g0_all over blocks to_matrix blocks ins(%x, %v : tensor<?x4x6xf32>, tensor<?x4x1xf32>) outs(%x : tensor<?x4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    comm.yield %q : f32
  } -> tensor<?x4x6xf32>
  comm.stage @g0_all over shards to_matrix none writes(%g : !comm.shards<@g0, f32>) {
    %zero = arith.constant 0.0 : f32
    comm.yield %zero : f32
  }
  return
}

// Copies between buffers, out of a state and into one, on tensors and memrefs.
// CHECK-LABEL: func.func @copies
// CHECK: comm.copy @g0_all to_matrix full from receive to blocks ins(%{{.*}} : tensor<?xf32>) outs(%{{.*}} : tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
// CHECK: comm.copy @g0_all to_matrix rows from shard to send ins(%{{.*}} : !comm.shards<@g0, f32>) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
// CHECK: comm.copy @g0_all to_shards cols from receive to shard ins(%{{.*}} : tensor<?xf32>) writes(%{{.*}} : !comm.shards<@g0, f32>)
// CHECK: comm.copy @g0_all to_shards one from blocks to send ins(%{{.*}} : memref<?x4x6xf32>) outs(%{{.*}} : memref<?xf32>){{$}}
// GENERIC: "comm.copy"({{.*}}) <{direction = 1 : i64, from = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0>, segment = @g0_all, to = 4 : i64, value = 2 : i64}>
func.func @copies(%r: tensor<?xf32>, %x: tensor<?x4x6xf32>, %s: !comm.shards<@g0, f32>, %b: memref<?x4x6xf32>, %l: memref<?xf32>) {
  %0 = comm.copy @g0_all to_matrix full from receive to blocks ins(%r : tensor<?xf32>) outs(%x : tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
  %1 = comm.copy @g0_all to_matrix rows from shard to send ins(%s : !comm.shards<@g0, f32>) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  comm.copy @g0_all to_shards cols from receive to shard ins(%r : tensor<?xf32>) writes(%s : !comm.shards<@g0, f32>)
  comm.copy @g0_all to_shards one from blocks to send ins(%b : memref<?x4x6xf32>) outs(%l : memref<?xf32>)
  return
}

// Collectives: an exchange of two values, an all-gather, a start of nothing and one of two, and their wait.
// CHECK-LABEL: func.func @collectives
// CHECK-SAME: %[[W:[a-z0-9]*]]: !comm.communicator
// CHECK: comm.exchange %[[W]] to_matrix sends [@g0_all, @g0_w1](%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xbf16>) receives [@g0_all, @g0_w1](%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xbf16>) kinds [0, 1] -> tensor<?xf32>, tensor<?xbf16>
// CHECK: comm.all_gather %[[W]] to_matrix sends [@g0_all](%{{.*}} : tensor<?xf32>) receives [@g0_all](%{{.*}} : tensor<?xf32>) kinds [0] -> tensor<?xf32>
// CHECK: comm.start %[[W]] to_shards order 1 sends [] receives [] kinds []
// CHECK: %[[T:.*]] = comm.start %[[W]] to_matrix order 2 sends [@g0_all, @g0_all](%{{.*}}, %{{.*}} : memref<?xf32>, memref<?xf32>) receives [@g0_all, @g0_all](%{{.*}}, %{{.*}} : memref<?xf32>, memref<?xf32>) kinds [0, 3]
// CHECK: comm.wait %[[T]]
// GENERIC: "comm.exchange"({{.*}}) <{direction = 0 : i64, kinds = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 2, 2>
// GENERIC: "comm.all_gather"
// GENERIC: "comm.start"({{.*}}order = 1 : i64
// GENERIC: "comm.wait"
func.func @collectives(%w: !comm.communicator, %a: tensor<?xf32>, %b: tensor<?xbf16>, %s: memref<?xf32>, %r: memref<?xf32>) {
  %0:2 = comm.exchange %w to_matrix sends [@g0_all, @g0_w1] (%a, %b : tensor<?xf32>, tensor<?xbf16>)
    receives [@g0_all, @g0_w1] (%a, %b : tensor<?xf32>, tensor<?xbf16>) kinds [0, 1] -> tensor<?xf32>, tensor<?xbf16>
  %1 = comm.all_gather %w to_matrix sends [@g0_all] (%a : tensor<?xf32>) receives [@g0_all] (%a : tensor<?xf32>) kinds [0] -> tensor<?xf32>
  %t1 = comm.start %w to_shards order 1 sends [] receives [] kinds []
  %t2 = comm.start %w to_matrix order 2 sends [@g0_all, @g0_all] (%s, %s : memref<?xf32>, memref<?xf32>)
    receives [@g0_all, @g0_all] (%r, %r : memref<?xf32>, memref<?xf32>) kinds [0, 3]
  comm.wait %t2
  return
}
