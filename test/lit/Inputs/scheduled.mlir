// Level 4, written by hand: two ranks, an owner group of two 8 x 4 matrices in two waves, and an
// elementwise group. Faults are planted from it by sed.
#t0 = #comm.place<@g0, scalars>
#t1 = #comm.place<@g1, scalars>
#s0 = #comm.place<@g0_w0, full, shards to blocks, sent>
#r0 = #comm.place<@g0_w0, full, shards to blocks, received>
#s1 = #comm.place<@g0_w1, full, shards to blocks, sent>
#r1 = #comm.place<@g0_w1, full, shards to blocks, received>
#x0 = #comm.place<@g0_w0, full, blocks>
#n0 = #comm.place<@g0_w0, one, blocks>
#k0 = #comm.place<@g0_w0, full, blocks to shards, sent>
#o0 = #comm.place<@g0_w0, full, blocks to shards, received>
#x1 = #comm.place<@g0_w1, full, blocks>
#n1 = #comm.place<@g0_w1, one, blocks>
#k1 = #comm.place<@g0_w1, full, blocks to shards, sent>
#o1 = #comm.place<@g0_w1, full, blocks to shards, received>
module @tiny attributes {stepc.level = "scheduled", stepc.numerics = "exact", comm.workspace_limit = 1024 : i64} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %m1 = arith.addf %m, %grad : tensor<?x?xf32>
    %u = arith.truncf %m1 : tensor<?x?xf32> to tensor<?x?xbf16>
    %x = arith.extf %u : tensor<?x?xbf16> to tensor<?x?xf32>
    %n = optim.reduce norm %x : tensor<?x?xf32> to tensor<1x1xf32>
    %f = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
    %y = arith.divf %x, %f : tensor<?x?xf32>
    %r = arith.truncf %y : tensor<?x?xf32> to tensor<?x?xbf16>
    %o = arith.extf %r : tensor<?x?xbf16> to tensor<?x?xf32>
    %l = optim.splat %lr : tensor<?x?xf32>
    %d = arith.mulf %l, %o : tensor<?x?xf32>
    %p = arith.subf %param, %d : tensor<?x?xf32>
    optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %l = optim.splat %lr : tensor<?x?xf32>
    %d = arith.mulf %l, %grad : tensor<?x?xf32>
    %p = arith.subf %param, %d : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32>
  }
  optim.route @matrices rule @Muon matrix patterns [] except [] defaults [2.0e-02] missing_grad error
  optim.route @vectors rule @Sgd rest patterns [] except [] defaults [1.0e-01] missing_grad error
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @matrices
  optim.parameter @b shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @matrices
  optim.parameter @bias shape [7] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @vectors
  optim.group @g0 rule @Muon parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
  optim.group @g1 rule @Sgd parameters [@bias]
  comm.segment @g0_w0 group @g0 blocks [0]
  comm.segment @g0_w1 group @g0 blocks [1]
  comm.segment @g1_w0 group @g1 all

  func.func @step() attributes {comm.arena_bytes = 768 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %world = comm.world
    %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
    %d0 = comm.shards gradient @g0 : !comm.shards<@g0, f32>
    %m0 = comm.shards state @g0 "m" : !comm.shards<@g0, f32>
    %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
    %d1 = comm.shards gradient @g1 : !comm.shards<@g1, f32>
    %t0 = comm.buffer offset 0 bytes 8 : memref<2x1xf32, #t0>
    %t1 = comm.buffer offset 64 bytes 4 : memref<1x1xf32, #t1>
    comm.scalars of %hyperparameters, %steps active %active outs(%t0 : memref<2x1xf32, #t0>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }
    comm.scalars of %hyperparameters, %steps active %active outs(%t1 : memref<1x1xf32, #t1>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }

    // Wave 0 leaves.
    %sn0 = comm.extent <@g0_w0, full, shards to blocks, sent>
    %s0 = comm.buffer offset 128 bytes 64 (%sn0) : memref<?xbf16, #s0>
    comm.stage @g0_w0 over shards active %active ins(%d0, %m0 : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>) writes(%m0 : !comm.shards<@g0, f32>) outs(%s0 : memref<?xbf16, #s0>) {
    ^bb0(%g: f32, %m: f32):
      %m1 = arith.addf %m, %g : f32
      %u = arith.truncf %m1 : f32 to bf16
      comm.yield %m1, %u : f32, bf16
    }
    %rn0 = comm.extent <@g0_w0, full, shards to blocks, received>
    %r0 = comm.buffer offset 192 bytes 128 (%rn0) : memref<?xbf16, #r0>
    %in0 = comm.start exchange %world order 0 sends(%s0 : memref<?xbf16, #s0>) receives(%r0 : memref<?xbf16, #r0>)

    // Wave 1 leaves; elementwise parameters fill the gap.
    %sn1 = comm.extent <@g0_w1, full, shards to blocks, sent>
    %s1 = comm.buffer offset 320 bytes 64 (%sn1) : memref<?xbf16, #s1>
    comm.stage @g0_w1 over shards active %active ins(%d0, %m0 : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>) writes(%m0 : !comm.shards<@g0, f32>) outs(%s1 : memref<?xbf16, #s1>) {
    ^bb0(%g: f32, %m: f32):
      %m1 = arith.addf %m, %g : f32
      %u = arith.truncf %m1 : f32 to bf16
      comm.yield %m1, %u : f32, bf16
    }
    %rn1 = comm.extent <@g0_w1, full, shards to blocks, received>
    %r1 = comm.buffer offset 384 bytes 128 (%rn1) : memref<?xbf16, #r1>
    %in1 = comm.start exchange %world order 1 sends(%s1 : memref<?xbf16, #s1>) receives(%r1 : memref<?xbf16, #r1>)
    comm.stage @g1_w0 over shards active %active ins(%p1, %d1 : !comm.shards<@g1, f32>, !comm.shards<@g1, f32>) writes(%p1 : !comm.shards<@g1, f32>) scalars(%t1 : memref<1x1xf32, #t1>) {
    ^bb0(%p: f32, %g: f32, %lr: f32):
      %d = arith.mulf %lr, %g : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }

    // Wave 0 is computed and returns.
    comm.wait %in0
    %bn0 = comm.extent <@g0_w0, full, blocks>
    %x0 = comm.buffer offset 128 bytes 64 (%bn0) : memref<?x8x4xbf16, #x0>
    comm.copy ins(%r0 : memref<?xbf16, #r0>) outs(%x0 : memref<?x8x4xbf16, #x0>)
    %n0 = comm.buffer offset 512 bytes 4 (%bn0) : memref<?x1x1xf32, #n0>
    optim.apply #optim.block_reduce<norm> %x0 outs(%n0 : memref<?x1x1xf32, #n0>) : memref<?x8x4xbf16, #x0>
    comm.stage @g0_w0 over blocks ins(%x0, %n0 : memref<?x8x4xbf16, #x0>, memref<?x1x1xf32, #n0>) outs(%x0 : memref<?x8x4xbf16, #x0>) {
    ^bb0(%x: bf16, %n: f32):
      %f = arith.extf %x : bf16 to f32
      %d = arith.divf %f, %n : f32
      %o = arith.truncf %d : f32 to bf16
      comm.yield %o : bf16
    }
    %kn0 = comm.extent <@g0_w0, full, blocks to shards, sent>
    %k0 = comm.buffer offset 192 bytes 128 (%kn0) : memref<?xbf16, #k0>
    comm.copy ins(%x0 : memref<?x8x4xbf16, #x0>) outs(%k0 : memref<?xbf16, #k0>)
    %on0 = comm.extent <@g0_w0, full, blocks to shards, received>
    %o0 = comm.buffer offset 576 bytes 64 (%on0) : memref<?xbf16, #o0>
    %out0 = comm.start exchange %world order 2 sends(%k0 : memref<?xbf16, #k0>) receives(%o0 : memref<?xbf16, #o0>)

    // Wave 1 is computed and returns.
    comm.wait %in1
    %bn1 = comm.extent <@g0_w1, full, blocks>
    %x1 = comm.buffer offset 640 bytes 64 (%bn1) : memref<?x8x4xbf16, #x1>
    comm.copy ins(%r1 : memref<?xbf16, #r1>) outs(%x1 : memref<?x8x4xbf16, #x1>)
    %n1 = comm.buffer offset 512 bytes 4 (%bn1) : memref<?x1x1xf32, #n1>
    optim.apply #optim.block_reduce<norm> %x1 outs(%n1 : memref<?x1x1xf32, #n1>) : memref<?x8x4xbf16, #x1>
    comm.stage @g0_w1 over blocks ins(%x1, %n1 : memref<?x8x4xbf16, #x1>, memref<?x1x1xf32, #n1>) outs(%x1 : memref<?x8x4xbf16, #x1>) {
    ^bb0(%x: bf16, %n: f32):
      %f = arith.extf %x : bf16 to f32
      %d = arith.divf %f, %n : f32
      %o = arith.truncf %d : f32 to bf16
      comm.yield %o : bf16
    }
    %kn1 = comm.extent <@g0_w1, full, blocks to shards, sent>
    %k1 = comm.buffer offset 384 bytes 128 (%kn1) : memref<?xbf16, #k1>
    comm.copy ins(%x1 : memref<?x8x4xbf16, #x1>) outs(%k1 : memref<?xbf16, #k1>)
    %on1 = comm.extent <@g0_w1, full, blocks to shards, received>
    %o1 = comm.buffer offset 704 bytes 64 (%on1) : memref<?xbf16, #o1>
    %out1 = comm.start exchange %world order 3 sends(%k1 : memref<?xbf16, #k1>) receives(%o1 : memref<?xbf16, #o1>)

    comm.wait %out0
    comm.stage @g0_w0 over shards active %active ins(%p0, %o0 : !comm.shards<@g0, f32>, memref<?xbf16, #o0>) writes(%p0 : !comm.shards<@g0, f32>) scalars(%t0 : memref<2x1xf32, #t0>) {
    ^bb0(%p: f32, %o: bf16, %lr: f32):
      %f = arith.extf %o : bf16 to f32
      %d = arith.mulf %lr, %f : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }
    comm.wait %out1
    comm.stage @g0_w1 over shards active %active ins(%p0, %o1 : !comm.shards<@g0, f32>, memref<?xbf16, #o1>) writes(%p0 : !comm.shards<@g0, f32>) scalars(%t0 : memref<2x1xf32, #t0>) {
    ^bb0(%p: f32, %o: bf16, %lr: f32):
      %f = arith.extf %o : bf16 to f32
      %d = arith.mulf %lr, %f : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}
