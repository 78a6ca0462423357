// RUN: stepc-opt %s -split-input-file --comm-assign-arena | FileCheck %s
// RUN: stepc-opt %s -split-input-file --comm-assign-arena --remark-policy=all --remarks-filter=comm-assign-arena -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// What the workspace needs, and what the buffers would side by side.
// REMARK: remark: [Passed] workspace-assigned | Category:comm-assign-arena | arena-bytes=256, buffer-bytes=288, buffers=3, scratch-bytes-at-most=0
// REMARK: remark: [Passed] workspace-assigned | Category:comm-assign-arena | arena-bytes=448, buffer-bytes=392, buffers=3, scratch-bytes-at-most=0

// One block of 96 bytes per rank: what is no longer used gives its place away, and places are multiples of 64.
// CHECK-LABEL: func.func @reuse() attributes {comm.arena_bytes = 256 : i64}
// CHECK: %[[N:.*]] = comm.extent @s to_matrix full blocks
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32>
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 128 : i64} : memref<?x4x6xf32>
// CHECK-NEXT: memref.alloc(%[[N]]) {comm.bytes = 96 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32>
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
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
comm.segment @s group @g all
func.func @reuse() {
  %n = comm.extent @s to_matrix full blocks
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  %b = memref.alloc(%n) : memref<?x4x6xf32>
  %c = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks to_matrix blocks ins(%a : memref<?x4x6xf32>) outs(%b : memref<?x4x6xf32>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  comm.stage @s over blocks to_matrix blocks ins(%b : memref<?x4x6xf32>) outs(%c : memref<?x4x6xf32>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  return
}
}

// -----

// The size is that of the rank that needs most: both blocks are rank 1's. The largest buffer is placed first, wherever it stands.
// CHECK-LABEL: func.func @largest() attributes {comm.arena_bytes = 448 : i64}
// CHECK: memref.alloc({{.*}}) {comm.bytes = 192 : i64, comm.offset = 192 : i64} : memref<?x4x6xf32>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 192 : i64, comm.offset = 0 : i64} : memref<?x4x6xf32>
// CHECK: memref.alloc() {comm.bytes = 8 : i64, comm.offset = 384 : i64} : memref<2x1xf32>
module {
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [1, 1]
comm.segment @s group @g all
func.func @largest() {
  %n = comm.extent @s to_matrix full blocks
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  %b = memref.alloc(%n) : memref<?x4x6xf32>
  %t = memref.alloc() : memref<2x1xf32>
  comm.scalars @g outs(%t : memref<2x1xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @s over blocks to_matrix blocks outs(%b : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.stage @s over blocks to_matrix blocks ins(%b : memref<?x4x6xf32>) outs(%a : memref<?x4x6xf32>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  comm.stage @s over blocks to_matrix blocks ins(%a : memref<?x4x6xf32>) outs(%b : memref<?x4x6xf32>) scalars(%t : memref<2x1xf32>) {
  ^bb0(%x: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}
}

// -----

// What is sent and received lives until the wait, so the buffer that is used between has a place of its own.
// CHECK-LABEL: func.func @in_flight() attributes {comm.arena_bytes = 384 : i64}
// CHECK: %[[SEND:.*]] = memref.alloc({{.*}}) {comm.bytes = 96 : i64, comm.offset = [[S:[0-9]+]] : i64} : memref<?xf32>
// CHECK: %[[RECEIVE:.*]] = memref.alloc({{.*}}) {comm.bytes = 96 : i64, comm.offset = [[R:[0-9]+]] : i64} : memref<?xf32>
// CHECK-NOT: comm.offset = [[S]] : i64
// CHECK-NOT: comm.offset = [[R]] : i64
// CHECK: comm.start %{{.*}} to_matrix order 0 sends [@s](%[[SEND]] : memref<?xf32>) receives [@s](%[[RECEIVE]] : memref<?xf32>)
module {
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
func.func @in_flight() {
  %w = comm.world
  %p = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns = comm.extent @s to_matrix full send
  %nr = comm.extent @s to_matrix full receive
  %n = comm.extent @s to_matrix full blocks
  %s = memref.alloc(%ns) : memref<?xf32>
  %r = memref.alloc(%nr) : memref<?xf32>
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over shards to_matrix send ins(%p : !comm.shards<@g, f32>) outs(%s : memref<?xf32>) {
  ^bb0(%x: f32):
    comm.yield %x : f32
  }
  %t = comm.start %w to_matrix order 0 sends [@s] (%s : memref<?xf32>) receives [@s] (%r : memref<?xf32>) kinds [0]
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  comm.wait %t
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
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
comm.segment @s group @g all
func.func @limit() {
  %n = comm.extent @s to_matrix full blocks
  %a = memref.alloc(%n) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%a : memref<?x4x6xf32>) {
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
// CHECK: memref.alloc({{.*}}) {comm.bytes = 16 : i64, {{.*}}} : memref<?x4x1xf32>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 24 : i64, {{.*}}} : memref<?x1x6xf32>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 4 : i64, {{.*}}} : memref<?x1x1xf32>
// CHECK: memref.alloc({{.*}}) {comm.bytes = 4 : i64, {{.*}}} : memref<?x1x1xf32>
// An unused buffer has its place, too.
// CHECK: memref.alloc({{.*}}) {comm.bytes = 96 : i64, {{.*}}} : memref<?x4x6xf32>
module {
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
optim.parameter @c shape [0, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @empty rule @R parameters [@c] strategy owner owners [1]
comm.segment @e group @empty all
func.func @kinds() {
  %nr = comm.extent @s to_matrix rows blocks
  %nc = comm.extent @s to_matrix cols blocks
  %no = comm.extent @s to_shards one blocks
  %ne = comm.extent @e to_matrix full blocks
  %r = memref.alloc(%nr) : memref<?x4x1xf32>
  %c = memref.alloc(%nc) : memref<?x1x6xf32>
  %o = memref.alloc(%no) : memref<?x1x1xf32>
  %e = memref.alloc(%ne) : memref<?x1x1xf32>
  %unused = memref.alloc(%no) : memref<?x4x6xf32>
  comm.stage @s over blocks to_matrix blocks outs(%r, %c, %o : memref<?x4x1xf32>, memref<?x1x6xf32>, memref<?x1x1xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z, %z, %z : f32, f32, f32
  }
  comm.stage @e over blocks to_matrix blocks outs(%e : memref<?x1x1xf32>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  }
  return
}
}
