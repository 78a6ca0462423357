// RUN: stepc-opt %s -split-input-file --comm-assign-arena | FileCheck %s
// RUN: stepc-opt %s -split-input-file --comm-assign-arena --remark-policy=all --remarks-filter=comm-assign-arena -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// What the workspace needs, and what the buffers would side by side.
// REMARK: remark: [Passed] workspace-assigned | Category:comm-assign-arena | arena-bytes=256, buffer-bytes=288, buffers=3, scratch-bytes-at-most=0
// REMARK: remark: [Passed] workspace-assigned | Category:comm-assign-arena | arena-bytes=448, buffer-bytes=392, buffers=3, scratch-bytes-at-most=0

// One block of 96 bytes per rank: what is no longer used gives its place away, and places are multiples of 64.
// CHECK-LABEL: func.func @reuse() attributes {comm.arena_bytes = 256 : i64}
// CHECK: %[[N:.*]] = comm.extent <@s, full, blocks>
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 128 : i64} : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK-NOT: comm.buffer
module {
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
func.func @reuse() {
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  %b = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  %c = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks ins(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%b : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  comm.stage @s over blocks ins(%b : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%c : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  return
}
}

// -----

// The size is that of the rank that needs most: both blocks are rank 1's. The largest buffer is placed first, wherever it stands.
// CHECK-LABEL: func.func @largest() attributes {comm.arena_bytes = 448 : i64}
// CHECK: memref.alloc({{.*}}) {comm.bytes = 192 : i64, comm.offset = 192 : i64} : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 192 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32, #comm.place<{{.*}}>>
// CHECK: memref.alloc() {comm.bytes = 8 : i64, comm.offset = 384 : i64} : memref<2x1xf32, #comm.place<{{.*}}>>
module {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1, 1]>]
comm.segment @s group @g all
func.func @largest() {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  %b = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  %t = memref.alloc() : memref<2x1xf32, #comm.place<@g, scalars>>
  comm.scalars of %hyperparameters, %steps active %active outs(%t : memref<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @s over blocks outs(%b : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks ins(%b : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  comm.stage @s over blocks ins(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%b : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) scalars(%t : memref<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%x: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}
}

// -----

// What is sent and received lives until the wait, so the buffer that is used between has a place of its own.
// CHECK-LABEL: func.func @step() attributes {comm.arena_bytes = 640 : i64}
// CHECK: %[[SEND:.*]] = memref.alloc({{.*}}) {comm.bytes = 208 : i64, comm.offset = [[S:[0-9]+]] : i64} : memref<?xf32, #comm.place<{{.*}}>>
// CHECK: %[[RECEIVE:.*]] = memref.alloc({{.*}}) {comm.bytes = 208 : i64, comm.offset = [[R:[0-9]+]] : i64} : memref<?xf32, #comm.place<{{.*}}>>
// CHECK-NOT: comm.offset = [[S]] : i64
// CHECK-NOT: comm.offset = [[R]] : i64
// CHECK: comm.start exchange %{{.*}} order 0 sends(%[[SEND]] : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%[[RECEIVE]] : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
module {
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
func.func @step() {
  %steps = comm.steps
  %active = comm.active
  %w = comm.world
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns = comm.extent <@s, full, shards to blocks, sent>
  %nr = comm.extent <@s, full, shards to blocks, received>
  %n = comm.extent <@s, full, blocks>
  %s = memref.alloc(%ns) : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  %r = memref.alloc(%nr) : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) outs(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  %t = comm.start exchange %w order 0 sends(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.wait %t
  comm.advance_steps %steps active %active
  return
}
}

// -----

// The limit is kept when it is just enough.
// CHECK-LABEL: func.func @limit() attributes {comm.arena_bytes = 128 : i64}
module attributes {comm.workspace_limit = 128 : i64} {
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
func.func @limit() {
  %n = comm.extent <@s, full, blocks>
  %a = memref.alloc(%n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%a : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}

// -----

// Blocks are counted, whatever the value: one block per rank has 4 rows, 6 columns, 1 norm. Of empty matrices there are as
// many: the norm of each has its place.
// CHECK-LABEL: func.func @kinds()
// CHECK: memref.alloc({{.*}}) {comm.bytes = 16 : i64, {{.*}}} : memref<?x4x1xf32, #comm.place<{{.*}}>>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 24 : i64, {{.*}}} : memref<?x1x6xf32, #comm.place<{{.*}}>>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 4 : i64, {{.*}}} : memref<?x1x1xf32, #comm.place<{{.*}}>>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 4 : i64, {{.*}}} : memref<?x1x1xf32, #comm.place<{{.*}}>>
// An unused buffer has its place, too.
// CHECK: memref.alloc({{.*}}) {comm.bytes = 96 : i64, {{.*}}} : memref<?x4x6xf32, #comm.place<{{.*}}>>
module {
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
optim.parameter @c shape [2, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @empty rule @R parameters [@c] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
comm.segment @e group @empty all
func.func @kinds() {
  %nr = comm.extent <@s, full, blocks>
  %nc = comm.extent <@s, full, blocks>
  %no = comm.extent <@s, full, blocks>
  %ne = comm.extent <@e, full, blocks>
  %r = memref.alloc(%nr) : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>
  %c = memref.alloc(%nc) : memref<?x1x6xf32, #comm.place<@s, cols, blocks>>
  %o = memref.alloc(%no) : memref<?x1x1xf32, #comm.place<@s, one, blocks>>
  %e = memref.alloc(%ne) : memref<?x1x1xf32, #comm.place<@e, one, blocks>>
  %unused = memref.alloc(%no) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>
  comm.stage @s over blocks outs(%r : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks outs(%c : memref<?x1x6xf32, #comm.place<@s, cols, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks outs(%o : memref<?x1x1xf32, #comm.place<@s, one, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @e over blocks outs(%e : memref<?x1x1xf32, #comm.place<@e, one, blocks>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}
