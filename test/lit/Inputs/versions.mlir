// Level 4, written by hand: one rank, two matrices in two waves, and a rule whose parts depend on
// each other through shards: the matrix space reads the new `m` and the old `w`, the way out the new
// `m`. Each operation has its stage, so that tests can reorder them by the marks around them.
module @versions attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>, #optim.state<"w", f32, full, 0.0 : f64, false>] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %w: tensor<?x?xf32>,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %m1 = arith.addf %m, %grad : tensor<?x?xf32>
    %u = arith.subf %m1, %w : tensor<?x?xf32>
    %n = optim.reduce norm %u : tensor<?x?xf32> to tensor<1x1xf32>
    %f = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
    %o = arith.divf %u, %f : tensor<?x?xf32>
    %q = arith.subf %param, %o : tensor<?x?xf32>
    %p1 = arith.mulf %q, %m1 : tensor<?x?xf32>
    %w1 = arith.addf %w, %grad : tensor<?x?xf32>
    optim.yield %p1, %m1, %w1 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @route rule @R matrix patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [3, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.parameter @b shape [3, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a, @b] strategy #optim.local hops []
  comm.segment @s0 group @g blocks [0]
  comm.segment @s1 group @g blocks [1]

  func.func @step() attributes {comm.arena_bytes = 256 : i64} {
    %steps = comm.steps
    %active = comm.active
    %p = comm.shards parameter @g : !comm.shards<@g, f32>
    %d = comm.shards gradient @g : !comm.shards<@g, f32>
    %m = comm.shards state @g "m" : !comm.shards<@g, f32>
    %w = comm.shards state @g "w" : !comm.shards<@g, f32>
    %k0 = comm.extent <@s0, full, blocks>
    %x0 = comm.buffer offset 0 bytes 48 (%k0) : memref<?x3x4xf32, #comm.place<@s0, full, blocks>>
    %n0 = comm.buffer offset 64 bytes 4 (%k0) : memref<?x1x1xf32, #comm.place<@s0, one, blocks>>
    %k1 = comm.extent <@s1, full, blocks>
    %x1 = comm.buffer offset 128 bytes 48 (%k1) : memref<?x3x4xf32, #comm.place<@s1, full, blocks>>
    %n1 = comm.buffer offset 192 bytes 4 (%k1) : memref<?x1x1xf32, #comm.place<@s1, one, blocks>>

    // new m 0
    comm.stage @s0 over shards active %active ins(%m, %d : !comm.shards<@g, f32>, !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      comm.yield %c : f32
    }
    // end of new m 0
    // into 0
    comm.stage @s0 over shards active %active ins(%m, %w : !comm.shards<@g, f32>, !comm.shards<@g, f32>) outs(%x0 : memref<?x3x4xf32, #comm.place<@s0, full, blocks>>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      comm.yield %c : f32
    }
    // end of into 0
    // new w 0
    comm.stage @s0 over shards active %active ins(%w, %d : !comm.shards<@g, f32>, !comm.shards<@g, f32>) writes(%w : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      comm.yield %c : f32
    }
    // end of new w 0
    optim.apply #optim.block_reduce<norm> %x0 outs(%n0 : memref<?x1x1xf32, #comm.place<@s0, one, blocks>>) : memref<?x3x4xf32, #comm.place<@s0, full, blocks>>
    comm.stage @s0 over blocks ins(%x0, %n0 : memref<?x3x4xf32, #comm.place<@s0, full, blocks>>, memref<?x1x1xf32, #comm.place<@s0, one, blocks>>) outs(%x0 : memref<?x3x4xf32, #comm.place<@s0, full, blocks>>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.divf %a, %b : f32
      comm.yield %c : f32
    }
    // out 0
    comm.stage @s0 over shards active %active ins(%p, %x0, %m : !comm.shards<@g, f32>, memref<?x3x4xf32, #comm.place<@s0, full, blocks>>, !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32, %e: f32):
      %c = arith.subf %a, %b : f32
      %f = arith.mulf %c, %e : f32
      comm.yield %f : f32
    }
    // end of out 0

    comm.stage @s1 over shards active %active ins(%m, %d : !comm.shards<@g, f32>, !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      comm.yield %c : f32
    }
    comm.stage @s1 over shards active %active ins(%m, %w : !comm.shards<@g, f32>, !comm.shards<@g, f32>) outs(%x1 : memref<?x3x4xf32, #comm.place<@s1, full, blocks>>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      comm.yield %c : f32
    }
    comm.stage @s1 over shards active %active ins(%w, %d : !comm.shards<@g, f32>, !comm.shards<@g, f32>) writes(%w : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      comm.yield %c : f32
    }
    optim.apply #optim.block_reduce<norm> %x1 outs(%n1 : memref<?x1x1xf32, #comm.place<@s1, one, blocks>>) : memref<?x3x4xf32, #comm.place<@s1, full, blocks>>
    comm.stage @s1 over blocks ins(%x1, %n1 : memref<?x3x4xf32, #comm.place<@s1, full, blocks>>, memref<?x1x1xf32, #comm.place<@s1, one, blocks>>) outs(%x1 : memref<?x3x4xf32, #comm.place<@s1, full, blocks>>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.divf %a, %b : f32
      comm.yield %c : f32
    }
    comm.stage @s1 over shards active %active ins(%p, %x1, %m : !comm.shards<@g, f32>, memref<?x3x4xf32, #comm.place<@s1, full, blocks>>, !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) {
    ^bb0(%a: f32, %b: f32, %e: f32):
      %c = arith.subf %a, %b : f32
      %f = arith.mulf %c, %e : f32
      comm.yield %f : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}
