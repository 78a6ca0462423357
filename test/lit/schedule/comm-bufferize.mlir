// RUN: stepc-opt %s --comm-bufferize | FileCheck %s --implicit-check-not=memref.copy --implicit-check-not=bufferization. --implicit-check-not=tensor.empty

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

// Destinations become allocations, and every operation of a chain writes to its own: no copy is made. A stage
// whose destination is also read gets one of its own.
// CHECK-LABEL: func.func @step
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<2x1xf32, #comm.place<{{.*}}>>
// CHECK: comm.scalars of %hyperparameters, %steps active %active outs(%[[T]] : memref<2x1xf32, #comm.place<@g, scalars>>) {
// CHECK: comm.yield
// CHECK-NEXT: }
// CHECK-NOT: ->
// CHECK: %[[S:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xbf16, #comm.place<{{.*}}>>
// CHECK: comm.stage @s over shards active %active ins(%{{.*}} : !comm.shards<@g, f32>) writes({{.*}}) outs(%[[S]] : memref<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) scalars(%[[T]] : memref<2x1xf32, #comm.place<@g, scalars>>)
// CHECK: %[[R:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xbf16, #comm.place<{{.*}}>>
// CHECK: comm.exchange %{{.*}} sends(%[[S]] : memref<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) receives(%[[R]] : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>){{$}}
// CHECK: %[[X:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x6xbf16, #comm.place<{{.*}}>>
// CHECK: comm.copy ins(%[[R]] : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>) outs(%[[X]] : memref<?x4x6xbf16, #comm.place<@s, full, blocks>>){{$}}
// CHECK: %[[N:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x1xf32, #comm.place<{{.*}}>>
// CHECK: optim.apply #optim.block_reduce<norm> %[[X]] outs(%[[N]] : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>) : memref<?x4x6xbf16, #comm.place<@s, full, blocks>>{{$}}
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x4xbf16, #comm.place<{{.*}}>>
// CHECK: optim.product %[[X]], %[[X]] outs(%[[A]] : memref<?x4x4xbf16, #comm.place<@s, full, blocks>>) {{.*}} : memref<?x4x6xbf16, #comm.place<@s, full, blocks>>, memref<?x4x6xbf16, #comm.place<@s, full, blocks>>{{$}}
// CHECK: %[[Y:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x4x4xbf16, #comm.place<{{.*}}>>
// CHECK: comm.stage @s over blocks ins(%[[A]], %[[N]] : memref<?x4x4xbf16, #comm.place<@s, full, blocks>>, memref<?x4x1xf32, #comm.place<@s, rows, blocks>>) outs(%[[Y]] : memref<?x4x4xbf16, #comm.place<@s, full, blocks>>)
// CHECK: return
func.func @step() {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %w = comm.world
  %te = tensor.empty() : tensor<2x1xf32, #comm.place<@g, scalars>>
  %t = comm.scalars of %hyperparameters, %steps active %active outs(%te : tensor<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32, #comm.place<@g, scalars>>
  %m = comm.shards state @g "m" : !comm.shards<@g, f32>
  %ns = comm.extent <@s, full, shards to blocks, sent>
  %se = tensor.empty(%ns) : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>
  %s = comm.stage @s over shards active %active ins(%m : !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32>)
      outs(%se : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) scalars(%t : tensor<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%a: f32, %lr: f32):
    %h = arith.truncf %a : f32 to bf16
    comm.yield %a, %h : f32, bf16
  } -> tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>
  %nr = comm.extent <@s, full, shards to blocks, received>
  %re = tensor.empty(%nr) : tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>
  %r = comm.exchange %w sends(%s : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) receives(%re : tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>) -> tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>
  %nb = comm.extent <@s, full, blocks>
  %xe = tensor.empty(%nb) : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
  %x = comm.copy ins(%r : tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>) outs(%xe : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
  %ne = tensor.empty(%nb) : tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
  %n = optim.apply #optim.block_reduce<norm> %x outs(%ne : tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>) : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>> -> tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
  %ae = tensor.empty(%nb) : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
  %p = optim.product %x, %x outs(%ae : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs} : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>, tensor<?x4x6xbf16, #comm.place<@s, full, blocks>> -> tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
  %y = comm.stage @s over blocks ins(%p, %n : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>, tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>) outs(%p : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>) {
  ^bb0(%a: bf16, %b: f32):
    comm.yield %a : bf16
  } -> tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
  comm.advance_steps %steps active %active
  return
}
