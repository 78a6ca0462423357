// Level 4 of one 8 x 4 matrix in slabs of rows on two ranks. Faults are planted from it by sed.
module @one attributes {stepc.level = "scheduled", stepc.numerics = "fast"} {
  optim.cluster "cpu" levels [#optim.cluster_level<"network", latency = 2.000000e-05, gap = 2.000000e-05, bandwidth = 1.250000e+10>] device <flops = 1.000000e+12, memory = 1.000000e+11, capacity = 6.400000e+10, launch = 5.000000e-06, threads = 16>
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Sign hyperparameters ["lr"] states [] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = arith.truncf %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
    %1 = optim.orthogonalize %0 coefficients [[3.000000e+00, -4.000000e+00, 2.000000e+00]] eps 9.9999999999999995E-8 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
    %2 = optim.splat %arg2 : tensor<?x?xf32>
    %3 = arith.extf %1 {optim.space = #optim.space<out>} : tensor<?x?xbf16> to tensor<?x?xf32>
    %4 = arith.mulf %2, %3 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %5 = arith.subf %arg0, %4 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %5 : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.route @Sign rule @Sign matrix patterns [] except [] defaults [1.000000e+00] missing_grad error
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sign
  optim.group @group.0 rule @Sign parameters [@a] strategy #optim.gram hops [] slabs <rows, [<0, 1, 2>]> waves [0] reason "a test"
  comm.segment @group.0.w0 group @group.0 wave 0 all
  func.func @step() attributes {comm.arena_bytes = 384 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %0 = comm.buffer offset 256 bytes 4 : memref<1x1xf32, #comm.place<@group.0, scalars>>
    comm.scalars of %hyperparameters, %steps active %active outs(%0 : memref<1x1xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64):
      comm.yield %arg0 : f64
    }
    %1 = comm.shards gradient @group.0 : <@group.0, f32>
    %2 = comm.extent <@group.0.w0, full, blocks>
    %3 = comm.buffer offset 128 bytes 32(%2) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.stage @group.0.w0 over shards active %active ins(%1 : !comm.shards<@group.0, f32>) outs(%3 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {
    ^bb0(%arg0: f32):
      %33 = arith.truncf %arg0 : f32 to bf16
      comm.yield %33 : bf16
    }
    %4 = comm.extent <@group.0.w0, full, blocks>
    %5 = comm.buffer offset 192 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>
    optim.block_reduce norm %3 outs(%5 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) {exponent = -24 : i64} : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %6 = comm.extent <@group.0.w0, one, parts to blocks, sent>
    %7 = comm.buffer offset 320 bytes 4(%6) : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>
    comm.copy ins(%5 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) outs(%7 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>)
    %8 = comm.extent <@group.0.w0, one, parts to blocks, received>
    %9 = comm.buffer offset 0 bytes 68(%8) : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>
    %10 = comm.communicator <@world, [<0, 1, 2>]>
    %11 = comm.start exchange %10 order 0 sends(%7 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>) receives(%9 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>)
    comm.wait %11
    %12 = comm.buffer offset 320 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.sum by 1 ins(%9 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>) outs(%12 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>)
    %13 = comm.buffer offset 0 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>
    comm.stage @group.0.w0 over blocks ins(%5, %12 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%13 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) {
    ^bb0(%arg0: f32, %arg1: f32):
      %cst = arith.constant 5.96046455E-15 : f32
      %33 = arith.maximumf %arg1, %cst : f32
      %34 = arith.divf %arg0, %33 : f32
      %35 = arith.mulf %34, %34 : f32
      comm.yield %35 : f32
    }
    %14 = comm.extent <@group.0.w0, one, parts to blocks, sent>
    %15 = comm.buffer offset 192 bytes 4(%14) : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>
    comm.copy ins(%13 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) outs(%15 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>)
    %16 = comm.extent <@group.0.w0, one, parts to blocks, received>
    %17 = comm.buffer offset 0 bytes 68(%16) : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>
    %18 = comm.start exchange %10 order 1 sends(%15 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, sent>>) receives(%17 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>)
    comm.wait %18
    %19 = comm.buffer offset 192 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.sum by 1 ins(%17 : memref<?xf32, #comm.place<@group.0.w0, one, parts to blocks, received>>) outs(%19 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>)
    %20 = comm.buffer offset 0 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.stage @group.0.w0 over blocks ins(%12, %19 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%20 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) {
    ^bb0(%arg0: f32, %arg1: f32):
      %33 = math.sqrt %arg1 : f32
      %cst = arith.constant 5.96046455E-15 : f32
      %34 = arith.maximumf %arg0, %cst : f32
      %35 = arith.mulf %34, %33 : f32
      comm.yield %35 : f32
    }
    %21 = comm.buffer offset 192 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.stage @group.0.w0 over blocks ins(%3, %20 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%21 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {
    ^bb0(%arg0: bf16, %arg1: f32):
      %cst = arith.constant 5.96046455E-15 : f32
      %33 = arith.maximumf %arg1, %cst : f32
      %34 = arith.extf %arg0 : bf16 to f32
      %35 = arith.divf %34, %33 : f32
      %cst_0 = arith.constant 5.96046448E-8 : f32
      %36 = arith.mulf %35, %cst_0 : f32
      %37 = arith.truncf %36 : f32 to bf16
      comm.yield %37 : bf16
    }
    %22 = comm.buffer offset 0 bytes 64(%4) : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>
    optim.product %21, %21 outs(%22 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %23 = comm.extent <@group.0.w0, gram, parts to blocks, sent>
    %24 = comm.buffer offset 128 bytes 64(%23) : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, sent>>
    comm.copy ins(%22 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>) outs(%24 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, sent>>)
    %25 = comm.extent <@group.0.w0, gram, parts to blocks, received>
    %26 = comm.buffer offset 0 bytes 128(%25) : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, received>>
    %27 = comm.start exchange %10 order 2 sends(%24 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, sent>>) receives(%26 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, received>>)
    comm.wait %27
    %28 = comm.buffer offset 128 bytes 64(%4) : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>
    comm.sum by 1 ins(%26 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to blocks, received>>) outs(%28 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>)
    %29 = comm.buffer offset 0 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>
    comm.stage @group.0.w0 over blocks ins(%28 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>) outs(%29 : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>) {
    ^bb0(%arg0: f32):
      %33 = arith.truncf %arg0 : f32 to bf16
      comm.yield %33 : bf16
    }
    %30 = comm.buffer offset 64 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, partial>>
    optim.product %29, %29 plus %29 outs(%30 : memref<?x4x4xbf16, #comm.place<@group.0.w0, partial>>) {alpha = 2.000000e+00 : f64, beta = -4.000000e+00 : f64, symmetric} : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>
    %31 = comm.buffer offset 0 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    optim.product %21, %30 plus %21 outs(%31 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {alpha = 1.000000e+00 : f64, beta = 3.000000e+00 : f64} : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, partial>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %32 = comm.shards parameter @group.0 : <@group.0, f32>
    comm.stage @group.0.w0 over shards active %active ins(%32, %31 : !comm.shards<@group.0, f32>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) writes(%32 : !comm.shards<@group.0, f32>) scalars(%0 : memref<1x1xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f32, %arg1: bf16, %arg2: f32):
      %33 = arith.extf %arg1 : bf16 to f32
      %34 = arith.mulf %arg2, %33 : f32
      %35 = arith.subf %arg0, %34 : f32
      comm.yield %35 : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

