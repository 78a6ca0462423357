// RUN: stepc-opt %s --comm-bufferize | FileCheck %s --implicit-check-not=memref.copy --implicit-check-not=bufferization. --implicit-check-not=tensor.empty

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

// Destinations become allocations, and every operation of a chain writes to its own: no copy is made. A stage
// whose destination is also read gets one of its own.
// CHECK-LABEL: func.func @step
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<2x1xf32>
// CHECK: comm.scalars @g outs(%[[T]] : memref<2x1xf32>) {
// CHECK: comm.yield
// CHECK-NEXT: }
// CHECK-NOT: ->
// CHECK: %[[S:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xbf16>
// CHECK: comm.stage @s over shards to_matrix send ins(%{{.*}} : !comm.shards<@g, f32>) writes(%{{.*}}) outs(%[[S]] : memref<?xbf16>) scalars(%[[T]] : memref<2x1xf32>)
// CHECK: %[[R:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xbf16>
// CHECK: comm.exchange %{{.*}} to_matrix sends [@s](%[[S]] : memref<?xbf16>) receives [@s](%[[R]] : memref<?xbf16>) kinds [0]{{$}}
// CHECK: %[[X:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x6xbf16>
// CHECK: comm.copy @s to_matrix full from receive to blocks ins(%[[R]] : memref<?xbf16>) outs(%[[X]] : memref<?x4x6xbf16>){{$}}
// CHECK: %[[N:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x1xf32>
// CHECK: optim.block_reduce norm @s %[[X]] outs(%[[N]] : memref<?x4x1xf32>) : memref<?x4x6xbf16>{{$}}
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x4xbf16>
// CHECK: optim.product @s %[[X]], %[[X]] outs(%[[A]] : memref<?x4x4xbf16>) {{.*}} : memref<?x4x6xbf16>, memref<?x4x6xbf16>{{$}}
// CHECK: %[[Y:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x4xbf16>
// CHECK: comm.stage @s over blocks to_matrix blocks ins(%[[A]], %[[N]] : memref<?x4x4xbf16>, memref<?x4x1xf32>) outs(%[[Y]] : memref<?x4x4xbf16>)
// CHECK: return
func.func @step() {
  %w = comm.world
  %te = tensor.empty() : tensor<2x1xf32>
  %t = comm.scalars @g outs(%te : tensor<2x1xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32>
  %m = comm.shards state @g "m" : !comm.shards<@g, f32>
  %ns = comm.extent @s to_matrix full send
  %se = tensor.empty(%ns) : tensor<?xbf16>
  %s = comm.stage @s over shards to_matrix send ins(%m : !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32>)
      outs(%se : tensor<?xbf16>) scalars(%t : tensor<2x1xf32>) {
  ^bb0(%a: f32, %lr: f32):
    %h = arith.truncf %a : f32 to bf16
    comm.yield %a, %h : f32, bf16
  } -> tensor<?xbf16>
  %nr = comm.extent @s to_matrix full receive
  %re = tensor.empty(%nr) : tensor<?xbf16>
  %r = comm.exchange %w to_matrix sends [@s] (%s : tensor<?xbf16>) receives [@s] (%re : tensor<?xbf16>) kinds [0] -> tensor<?xbf16>
  %nb = comm.extent @s to_matrix full blocks
  %xe = tensor.empty(%nb) : tensor<?x4x6xbf16>
  %x = comm.copy @s to_matrix full from receive to blocks ins(%r : tensor<?xbf16>) outs(%xe : tensor<?x4x6xbf16>) -> tensor<?x4x6xbf16>
  %ne = tensor.empty(%nb) : tensor<?x4x1xf32>
  %n = optim.block_reduce norm @s %x outs(%ne : tensor<?x4x1xf32>) : tensor<?x4x6xbf16> -> tensor<?x4x1xf32>
  %ae = tensor.empty(%nb) : tensor<?x4x4xbf16>
  %p = optim.product @s %x, %x outs(%ae : tensor<?x4x4xbf16>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs} : tensor<?x4x6xbf16>, tensor<?x4x6xbf16> -> tensor<?x4x4xbf16>
  %y = comm.stage @s over blocks to_matrix blocks ins(%p, %n : tensor<?x4x4xbf16>, tensor<?x4x1xf32>) outs(%p : tensor<?x4x4xbf16>) {
  ^bb0(%a: bf16, %b: f32):
    comm.yield %a : bf16
  } -> tensor<?x4x4xbf16>
  return
}
