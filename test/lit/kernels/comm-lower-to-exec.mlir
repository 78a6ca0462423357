// RUN: stepc-opt %s --split-input-file --comm-lower-to-exec=target=cpu:x86-64-v3 | FileCheck %s
// RUN: stepc-opt %s --split-input-file --comm-lower-to-exec=target=cpu:x86-64-v3 --exec-lower-to-target | FileCheck %s --check-prefix=TARGET

// Stages become kernels, one per computation, and commands that name them: both groups share theirs.

// CHECK: module @sgd attributes {stepc.chip = "x86-64-v3;{{.*}}+avx2{{.*}}"}
module @sgd {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [1.0e-02] missing_grad error
  optim.parameter @a shape [5] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Sgd
  optim.parameter @b shape [5] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Sgd
  optim.parameter @c shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Sgd
  optim.group @g0 rule @Sgd parameters [@a, @b]
  optim.group @g1 rule @Sgd parameters [@c]
  comm.segment @s0 group @g0 all
  comm.segment @s1 group @g1 all

  // CHECK-NOT: @step
  func.func @step() attributes {comm.arena_bytes = 128 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %t0 = comm.buffer offset 0 bytes 8 : memref<2x1xf32, #comm.place<@g0, scalars>>
    %t1 = comm.buffer offset 64 bytes 4 : memref<1x1xf32, #comm.place<@g1, scalars>>
    %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
    %q0 = comm.shards gradient @g0 : !comm.shards<@g0, f32>
    %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
    %q1 = comm.shards gradient @g1 : !comm.shards<@g1, f32>
    comm.scalars of %hyperparameters, %steps active %active outs(%t0 : memref<2x1xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }
    comm.stage @s0 over shards active %active ins(%p0, %q0 : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>)
        writes(%p0 : !comm.shards<@g0, f32>) scalars(%t0 : memref<2x1xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%p: f32, %q: f32, %lr: f32):
      %d = arith.mulf %lr, %q : f32
      %n = arith.subf %p, %d : f32
      comm.yield %n : f32
    }
    comm.scalars of %hyperparameters, %steps active %active outs(%t1 : memref<1x1xf32, #comm.place<@g1, scalars>>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }
    comm.stage @s1 over shards active %active ins(%p1, %q1 : !comm.shards<@g1, f32>, !comm.shards<@g1, f32>)
        writes(%p1 : !comm.shards<@g1, f32>) scalars(%t1 : memref<1x1xf32, #comm.place<@g1, scalars>>) {
    ^bb0(%p: f32, %q: f32, %lr: f32):
      %d = arith.mulf %lr, %q : f32
      %n = arith.subf %p, %d : f32
      comm.yield %n : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

// The program lists them in order, and counts the step last.
// CHECK: exec.program arena 128 {
// CHECK-NEXT: exec.dispatch_parameters @Sgd_scalars of [@g0] [#exec.scalars<offset = 0, columns = 1>]
// CHECK-NEXT: exec.dispatch_chunks @Sgd_elementwise_f32 of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>]
// CHECK-SAME: [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>]
// CHECK-NEXT: exec.dispatch_parameters @Sgd_scalars of [@g1] [#exec.scalars<offset = 64, columns = 1>]
// CHECK-NEXT: exec.dispatch_chunks @Sgd_elementwise_f32 of [#exec.table<kind = shard_chunks, from = <@s1, full, shards>>]
// CHECK-SAME: [#exec.scalars<offset = 64, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>]
// CHECK-NEXT: exec.advance_steps
// CHECK-NEXT: }

// The scalars are f64 and rounded once, at the end.
// CHECK: func.func private @Sgd_scalars(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f32
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[LR]] : f64 to f32
// CHECK: return %[[ROUNDED]] : f32

// A stage is a function of what one chunk sees, and one operation on all of it.
// CHECK: func.func private @Sgd_elementwise_f32(%[[ROW:.*]]: memref<1xf32>, %[[P:.*]]: memref<?x?xf32, strided<[?, 1]>>, %[[Q:.*]]: memref<?x?xf32, strided<[?, 1]>>)
// CHECK: %[[LR:.*]] = memref.load %[[ROW]][%{{.*}}] : memref<1xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ALL:.*]], #[[ALL]], #{{.*}}, #[[ALL]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[P]], %[[Q]], %[[LR]] : {{.*}}) outs(%[[P]] : {{.*}})
// CHECK-NOT: @Sgd_elementwise_f32_1

// The CPU computes those of eight parameters at once, and then one by one.
// TARGET: module @sgd
// TARGET: llvm.func internal @Sgd_scalars(
// TARGET: scf.for
// TARGET: %[[LR:.*]] = vector.from_elements %{{.*}} : vector<8xf64>
// TARGET: %[[ROUNDED:.*]] = arith.truncf %[[LR]] : vector<8xf64> to vector<8xf32>
// TARGET-COUNT-8: vector.extract %[[ROUNDED]]
// TARGET: scf.for
// TARGET: %[[LR:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f64
// TARGET: %[[ROUNDED:.*]] = arith.truncf %[[LR]] : f64 to f32
// TARGET: llvm.store %[[ROUNDED]], %{{.*}} : f32, !llvm.ptr

// A row of a chunk: 16 at a time, then one by one; all loads before the store.
// TARGET: llvm.func internal @Sgd_elementwise_f32(
// TARGET: scf.for
// TARGET: %[[COLUMN:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// TARGET: %[[WHOLE:.*]] = arith.andi
// TARGET: scf.for
// TARGET: scf.for %{{.*}} = %{{.*}} to %[[WHOLE]] {{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (vector<16xf32>)
// TARGET: %[[P:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// TARGET: %[[Q:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// TARGET: %[[SPLAT:.*]] = vector.broadcast %[[COLUMN]]
// TARGET: %[[D:.*]] = arith.mulf %[[SPLAT]], %[[Q]]
// TARGET: %[[N:.*]] = arith.subf %[[P]], %[[D]]
// For each NaN one is stored: in vectors afterwards, if their sum is a NaN, and in the tail at once.
// TARGET: llvm.store %[[N]], %{{.*}} {alignment = 4 : i64} : vector<16xf32>
// TARGET: %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[N]]
// TARGET: scf.yield %[[AFTER]]
// TARGET: scf.for %{{.*}} = %[[WHOLE]] to
// TARGET: %[[PRODUCT:.*]] = arith.mulf %[[COLUMN]], %{{.*}} : f32
// TARGET: %[[ONE:.*]] = arith.subf %{{.*}}, %[[PRODUCT]]
// TARGET: %[[WRONG:.*]] = arith.cmpf uno, %[[ONE]], %[[ONE]]
// TARGET-DAG: %[[NAN:.*]] = arith.constant 2143289344 : i32
// TARGET-DAG: %[[BITS:.*]] = arith.bitcast %[[ONE]] : f32 to i32
// TARGET: %[[STORED:.*]] = arith.select %[[WRONG]], %[[NAN]], %[[BITS]]
// TARGET: llvm.store %[[STORED]]
// TARGET: %[[LANES:.*]] = arith.cmpf uno, %[[SUM:.*]], %[[SUM]] : vector<16xf32>
// TARGET: %[[ANY:.*]] = "llvm.intr.vector.reduce.or"(%[[LANES]])
// TARGET: scf.if %[[ANY]]
// TARGET-NEXT: llvm.call @stepc_replace_nans_f32
// TARGET: llvm.func internal @stepc_replace_nans_f32
// TARGET: arith.cmpf uno
// TARGET: arith.select
// TARGET-NOT: @Sgd_elementwise_f32_1

// -----

// What is staged is seen as what it is packed from. In matrix space an operand may be one value per block, row or column.

// CHECK: module @staged
module @staged {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
  optim.group @g rule @R parameters [@w] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func @step() attributes {comm.arena_bytes = 384 : i64} {
    %steps = comm.steps
    %active = comm.active
    %m = comm.shards state @g "m" : !comm.shards<@g, f32>
    %n = comm.extent <@s, full, shards to blocks, sent>
    %b = comm.buffer offset 0 bytes 64 (%n) : memref<?xbf16, #comm.place<@s, full, shards to blocks, sent>>
    %nr = comm.extent <@s, full, shards to blocks, received>
    %r = comm.buffer offset 64 bytes 64 (%nr) : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>
    %nb = comm.extent <@s, full, blocks>
    %x = comm.buffer offset 128 bytes 64 (%nb) : memref<?x4x8xbf16, #comm.place<@s, full, blocks>>
    %one = comm.buffer offset 192 bytes 4 (%nb) : memref<?x1x1xf32, #comm.place<@s, one, blocks>>
    %row = comm.buffer offset 256 bytes 16 (%nb) : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>
    %col = comm.buffer offset 320 bytes 32 (%nb) : memref<?x1x8xf32, #comm.place<@s, cols, blocks>>
    comm.stage @s over shards active %active ins(%m : !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32>) outs(%b : memref<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
    ^bb0(%a: f32):
      %t = arith.truncf %a : f32 to bf16
      comm.yield %a, %t : f32, bf16
    }
    %w = comm.world
    %token = comm.start exchange %w order 0 sends(%b : memref<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>)
    comm.wait %token
    comm.copy ins(%r : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>) outs(%x : memref<?x4x8xbf16, #comm.place<@s, full, blocks>>)
    comm.stage @s over blocks ins(%x, %one, %row, %col : memref<?x4x8xbf16, #comm.place<@s, full, blocks>>, memref<?x1x1xf32, #comm.place<@s, one, blocks>>, memref<?x4x1xf32, #comm.place<@s, rows, blocks>>, memref<?x1x8xf32, #comm.place<@s, cols, blocks>>)
        outs(%x : memref<?x4x8xbf16, #comm.place<@s, full, blocks>>) {
    ^bb0(%a: bf16, %o: f32, %p: f32, %q: f32):
      %e = arith.extf %a : bf16 to f32
      %f = arith.mulf %o, %e : f32
      %g = arith.mulf %p, %f : f32
      %h = arith.mulf %q, %g : f32
      %t = arith.truncf %h : f32 to bf16
      comm.yield %t : bf16
    }
    comm.advance_steps %steps active %active
    return
  }
}

// A start gives its token to the await; its tables say what travels, its operands where; an operand that is packed
// says which of a start's values it is.
// CHECK: exec.program arena 384 {
// CHECK-NEXT: exec.dispatch_chunks @R_in_f32_bf16 of [#exec.table<kind = shard_chunks, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>>]
// CHECK-SAME: [#exec.shards<state, "m">, #exec.workspace<offset = 0, bytes = 64, start = 0>]
// CHECK-NEXT: %[[TOKEN:.*]] = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 2>]
// CHECK-SAME: from <offset = 0, bytes = 64> to <offset = 64, bytes = 64>
// CHECK-NEXT: exec.await %[[TOKEN]]
// CHECK-NEXT: exec.copy <kind = copy, from = <@s, full, shards to blocks, received>, to = <@s, full, blocks>, element_bytes = 2>
// CHECK-SAME: from #exec.workspace<offset = 64, bytes = 64, start = 0> to #exec.workspace<offset = 128, bytes = 64>
// CHECK-NEXT: exec.dispatch_chunks @R_blocks_bf16_f32 of [#exec.table<kind = block_chunks, from = <@s, full, blocks>>]
// CHECK-SAME: [#exec.workspace<offset = 128, bytes = 64>, #exec.workspace<offset = 192, bytes = 4>, #exec.workspace<offset = 256, bytes = 16>, #exec.workspace<offset = 320, bytes = 32>]
// CHECK-NEXT: exec.advance_steps

// CHECK: func.func private @R_in_f32_bf16(%[[M:.*]]: memref<?x?xf32, strided<[?, 1]>>, %[[B:.*]]: memref<?x?xbf16, strided<[?, 1]>>)
// CHECK: linalg.generic {{.*}} ins(%[[M]] : {{.*}}) outs(%[[M]], %[[B]] : {{.*}})
// CHECK: func.func private @R_blocks_bf16_f32(%{{.*}}: memref<?x?xbf16, strided<[?, 1]>>, %{{.*}}: memref<f32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>)

// TARGET: module @staged

// A stage with an out has two forms: a replica that does not send (staged < 0) stores no out. 16-bit floats
// travel as integers.
// TARGET: llvm.func internal @R_in_f32_bf16(
// TARGET: %[[ABSENT:.*]] = arith.cmpi slt
// TARGET: scf.if %[[ABSENT]] {
// TARGET: llvm.store %{{.*}} : vector<16xf32>
// TARGET-NOT: i16
// TARGET: } else {
// TARGET: %[[BITS:.*]] = arith.bitcast %{{.*}} : vector<16xbf16> to vector<16xi16>
// TARGET: llvm.store %[[BITS]], %{{.*}} {alignment = 2 : i64} : vector<16xi16>
