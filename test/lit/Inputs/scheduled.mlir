// Level 4, written by hand: two ranks, an owner group of two 8 x 4 matrices in two waves, and an
// elementwise group. Faults are planted from it by sed.
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
  optim.group @g0 rule @Muon parameters [@a, @b] strategy owner owners [0, 1]
  optim.group @g1 rule @Sgd parameters [@bias] strategy elementwise
  comm.segment @g0_w0 group @g0 blocks [0]
  comm.segment @g0_w1 group @g0 blocks [1]
  comm.segment @g1_w0 group @g1 all

  func.func @step() attributes {comm.arena_bytes = 640 : i64} {
    %world = comm.world
    %p0 = comm.shards parameter @g0 : !comm.shards<@g0, f32>
    %d0 = comm.shards gradient @g0 : !comm.shards<@g0, f32>
    %m0 = comm.shards state @g0 "m" : !comm.shards<@g0, f32>
    %p1 = comm.shards parameter @g1 : !comm.shards<@g1, f32>
    %d1 = comm.shards gradient @g1 : !comm.shards<@g1, f32>
    %t0 = comm.buffer offset 0 bytes 8 : memref<2x1xf32>
    %t1 = comm.buffer offset 64 bytes 4 : memref<1x1xf32>
    comm.scalars @g0 outs(%t0 : memref<2x1xf32>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }
    comm.scalars @g1 outs(%t1 : memref<1x1xf32>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    }

    // Wave 0 leaves.
    %sn0 = comm.extent @g0_w0 to_matrix full send
    %s0 = comm.buffer offset 128 bytes 32 (%sn0) : memref<?xbf16>
    comm.stage @g0_w0 over shards to_matrix send ins(%d0, %m0 : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>) writes(%m0 : !comm.shards<@g0, f32>) outs(%s0 : memref<?xbf16>) {
    ^bb0(%g: f32, %m: f32):
      %m1 = arith.addf %m, %g : f32
      %u = arith.truncf %m1 : f32 to bf16
      comm.yield %m1, %u : f32, bf16
    }
    %rn0 = comm.extent @g0_w0 to_matrix full receive
    %r0 = comm.buffer offset 192 bytes 64 (%rn0) : memref<?xbf16>
    %in0 = comm.start %world to_matrix order 0 sends [@g0_w0] (%s0 : memref<?xbf16>) receives [@g0_w0] (%r0 : memref<?xbf16>) kinds [0]

    // Wave 1 leaves; elementwise parameters fill the gap.
    %sn1 = comm.extent @g0_w1 to_matrix full send
    %s1 = comm.buffer offset 256 bytes 32 (%sn1) : memref<?xbf16>
    comm.stage @g0_w1 over shards to_matrix send ins(%d0, %m0 : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>) writes(%m0 : !comm.shards<@g0, f32>) outs(%s1 : memref<?xbf16>) {
    ^bb0(%g: f32, %m: f32):
      %m1 = arith.addf %m, %g : f32
      %u = arith.truncf %m1 : f32 to bf16
      comm.yield %m1, %u : f32, bf16
    }
    %rn1 = comm.extent @g0_w1 to_matrix full receive
    %r1 = comm.buffer offset 320 bytes 64 (%rn1) : memref<?xbf16>
    %in1 = comm.start %world to_matrix order 1 sends [@g0_w1] (%s1 : memref<?xbf16>) receives [@g0_w1] (%r1 : memref<?xbf16>) kinds [0]
    comm.stage @g1_w0 over shards to_matrix none ins(%p1, %d1 : !comm.shards<@g1, f32>, !comm.shards<@g1, f32>) writes(%p1 : !comm.shards<@g1, f32>) scalars(%t1 : memref<1x1xf32>) {
    ^bb0(%p: f32, %g: f32, %lr: f32):
      %d = arith.mulf %lr, %g : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }

    // Wave 0 is computed and returns.
    comm.wait %in0
    %bn0 = comm.extent @g0_w0 to_matrix full blocks
    %x0 = comm.buffer offset 128 bytes 64 (%bn0) : memref<?x8x4xbf16>
    comm.copy @g0_w0 to_matrix full from receive to blocks ins(%r0 : memref<?xbf16>) outs(%x0 : memref<?x8x4xbf16>)
    %n0 = comm.buffer offset 384 bytes 4 (%bn0) : memref<?x1x1xf32>
    optim.block_reduce norm @g0_w0 %x0 outs(%n0 : memref<?x1x1xf32>) : memref<?x8x4xbf16>
    comm.stage @g0_w0 over blocks to_matrix blocks ins(%x0, %n0 : memref<?x8x4xbf16>, memref<?x1x1xf32>) outs(%x0 : memref<?x8x4xbf16>) {
    ^bb0(%x: bf16, %n: f32):
      %f = arith.extf %x : bf16 to f32
      %d = arith.divf %f, %n : f32
      %o = arith.truncf %d : f32 to bf16
      comm.yield %o : bf16
    }
    %kn0 = comm.extent @g0_w0 to_shards full send
    %k0 = comm.buffer offset 192 bytes 64 (%kn0) : memref<?xbf16>
    comm.copy @g0_w0 to_shards full from blocks to send ins(%x0 : memref<?x8x4xbf16>) outs(%k0 : memref<?xbf16>)
    %on0 = comm.extent @g0_w0 to_shards full receive
    %o0 = comm.buffer offset 448 bytes 32 (%on0) : memref<?xbf16>
    %out0 = comm.start %world to_shards order 2 sends [@g0_w0] (%k0 : memref<?xbf16>) receives [@g0_w0] (%o0 : memref<?xbf16>) kinds [0]

    // Wave 1 is computed and returns.
    comm.wait %in1
    %bn1 = comm.extent @g0_w1 to_matrix full blocks
    %x1 = comm.buffer offset 512 bytes 64 (%bn1) : memref<?x8x4xbf16>
    comm.copy @g0_w1 to_matrix full from receive to blocks ins(%r1 : memref<?xbf16>) outs(%x1 : memref<?x8x4xbf16>)
    %n1 = comm.buffer offset 384 bytes 4 (%bn1) : memref<?x1x1xf32>
    optim.block_reduce norm @g0_w1 %x1 outs(%n1 : memref<?x1x1xf32>) : memref<?x8x4xbf16>
    comm.stage @g0_w1 over blocks to_matrix blocks ins(%x1, %n1 : memref<?x8x4xbf16>, memref<?x1x1xf32>) outs(%x1 : memref<?x8x4xbf16>) {
    ^bb0(%x: bf16, %n: f32):
      %f = arith.extf %x : bf16 to f32
      %d = arith.divf %f, %n : f32
      %o = arith.truncf %d : f32 to bf16
      comm.yield %o : bf16
    }
    %kn1 = comm.extent @g0_w1 to_shards full send
    %k1 = comm.buffer offset 320 bytes 64 (%kn1) : memref<?xbf16>
    comm.copy @g0_w1 to_shards full from blocks to send ins(%x1 : memref<?x8x4xbf16>) outs(%k1 : memref<?xbf16>)
    %on1 = comm.extent @g0_w1 to_shards full receive
    %o1 = comm.buffer offset 576 bytes 32 (%on1) : memref<?xbf16>
    %out1 = comm.start %world to_shards order 3 sends [@g0_w1] (%k1 : memref<?xbf16>) receives [@g0_w1] (%o1 : memref<?xbf16>) kinds [0]

    comm.wait %out0
    comm.stage @g0_w0 over shards to_shards receive ins(%p0, %o0 : !comm.shards<@g0, f32>, memref<?xbf16>) writes(%p0 : !comm.shards<@g0, f32>) scalars(%t0 : memref<2x1xf32>) {
    ^bb0(%p: f32, %o: bf16, %lr: f32):
      %f = arith.extf %o : bf16 to f32
      %d = arith.mulf %lr, %f : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }
    comm.wait %out1
    comm.stage @g0_w1 over shards to_shards receive ins(%p0, %o1 : !comm.shards<@g0, f32>, memref<?xbf16>) writes(%p0 : !comm.shards<@g0, f32>) scalars(%t0 : memref<2x1xf32>) {
    ^bb0(%p: f32, %o: bf16, %lr: f32):
      %f = arith.extf %o : bf16 to f32
      %d = arith.mulf %lr, %f : f32
      %q = arith.subf %p, %d : f32
      comm.yield %q : f32
    }
    return
  }
}
