// RUN: stepc-opt %s -split-input-file --comm-place-buffers | FileCheck %s

// Each allocation becomes the place that was decided, whatever it is, and the program is scheduled then.
// CHECK: stepc.level = "scheduled"
// CHECK-LABEL: func.func @places() attributes {comm.arena_bytes = 4096 : i64}
// CHECK: %[[N:.*]] = comm.extent <@s, full, blocks>
// CHECK-NEXT: %[[A:.*]] = comm.buffer offset 1024 bytes 96(%[[N]]) : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK-NEXT: %[[T:.*]] = comm.buffer offset 4032 bytes 64 : memref<1x1xf32, #comm.place<{{.*}}>>
// CHECK-NOT: comm.offset
// CHECK: comm.scalars of %hyperparameters, %steps active %active outs(%[[T]] : memref<1x1xf32, #comm.place<@g, scalars>>)
// CHECK: comm.stage {{.*}} outs(%[[A]] : memref<?x4x6xf32, #comm.place<@s, full, blocks>>)
// CHECK-NOT: memref.alloc
module {
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @places() attributes {comm.arena_bytes = 4096 : i64} {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) {comm.bytes = 96 : i64, comm.offset = 1024 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  %t = memref.alloc() {comm.bytes = 64 : i64, comm.offset = 4032 : i64} : memref<1x1xf32, #comm.place<@g, scalars>>
  comm.scalars of %hyperparameters, %steps active %active outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}

// -----

// What stands in one pool is one buffer, where the first of it is allocated; sizes go before it.
// CHECK-LABEL: func.func @pool() attributes {comm.arena_bytes = 4096 : i64}
// CHECK: %[[N:.*]] = comm.extent <@s, full, blocks>
// CHECK-NEXT: %[[M:.*]] = comm.extent <@s, full, blocks>
// CHECK-NEXT: %[[P:.*]]:2 = comm.buffer offset 1024 bytes 128(%[[N]], %[[M]]) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>, memref<?x4x1xf32, #comm.place<@s, rows, blocks>>
// CHECK: comm.stage {{.*}} outs(%[[P]]#0 :
// CHECK: comm.stage {{.*}} outs(%[[P]]#1 :
// CHECK-NOT: memref.alloc
module {
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
func.func @pool() attributes {comm.arena_bytes = 4096 : i64} {
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) {comm.bytes = 128 : i64, comm.offset = 1024 : i64, comm.pool = 0 : i64} : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  %m = comm.extent <@s, full, blocks>
  %b = memref.alloc(%m) {comm.bytes = 128 : i64, comm.offset = 1024 : i64, comm.pool = 0 : i64} : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>
  comm.stage @s over blocks outs(%b : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}
