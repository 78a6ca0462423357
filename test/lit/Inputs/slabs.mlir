// Level 4 of one 8 x 4 matrix in slabs of rows on two ranks. Faults are planted from it by sed.
module @one attributes {stepc.level = "scheduled", stepc.numerics = "fast"} {
  optim.cluster "cpu" levels [#optim.cluster_level<"network", latency = 2.000000e-05, gap = 2.000000e-05, bandwidth = 1.250000e+10>] device <flops = 1.000000e+12, memory = 1.000000e+11, capacity = 6.400000e+10, launch = 5.000000e-06, threads = 16>
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Sign hyperparameters ["lr"] states [] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = arith.truncf %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
    %1 = optim.orthogonalize %0 coefficients [[3.000000e+00, -4.000000e+00, 2.000000e+00]] eps 9.9999999999999995E-8 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
    %2 = optim.splat %arg2 : tensor<?x?xf32>
    %3 = arith.extf %1 : tensor<?x?xbf16> to tensor<?x?xf32>
    %4 = arith.mulf %2, %3 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %5 = arith.subf %arg0, %4 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %5 : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.route @Sign rule @Sign matrix patterns [] except [] defaults [1.000000e+00] missing_grad error
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sign
  optim.group @group.0 rule @Sign parameters [@a] strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 4 to 4> waves [0] reason "a test"
  comm.segment @group.0.w0 group @group.0 wave 0 all
  func.func @step() attributes {comm.arena_bytes = 384 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %0 = comm.buffer offset 320 bytes 4 : memref<1x1xf32, #comm.place<@group.0, scalars>>
    comm.scalars of %hyperparameters, %steps active %active outs(%0 : memref<1x1xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64):
      comm.yield %arg0 : f64
    }
    %1 = comm.shards gradient @group.0 : <@group.0, f32>
    %2 = comm.extent <@group.0.w0, full, blocks>
    %3 = comm.buffer offset 128 bytes 32(%2) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.stage @group.0.w0 over shards active %active ins(%1 : !comm.shards<@group.0, f32>) outs(%3 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {
    ^bb0(%arg0: f32):
      %54 = arith.truncf %arg0 : f32 to bf16
      comm.yield %54 : bf16
    }
    %4 = comm.extent <@group.0.w0, full, blocks>
    %5 = comm.buffer offset 192 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>
    optim.apply #optim.block_reduce<norm, exponent = -24> %3 outs(%5 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %6 = comm.extent <@group.0.w0, one, parts to ranges, sent>
    %7 = comm.buffer offset 256 bytes 36(%6) : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>
    comm.copy ins(%5 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) outs(%7 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>)
    %8 = comm.extent <@group.0.w0, one, parts to ranges, received>
    %9 = comm.buffer offset 0 bytes 100(%8) : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>
    %10 = comm.communicator <@world, [<0, 1, 2>]>
    %11 = comm.start exchange %10 order 0 sends(%7 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>) receives(%9 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>)
    comm.wait %11
    %12 = comm.extent <@group.0.w0, one, ranges, kept>
    %13 = comm.buffer offset 256 bytes 4(%12) : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>
    comm.sum by 1 ins(%9 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>) outs(%13 : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>)
    %14 = comm.extent <@group.0.w0, one, ranges to blocks, sent>
    %15 = comm.buffer offset 0 bytes 36(%14) : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>
    comm.copy ins(%13 : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>) outs(%15 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>)
    %16 = comm.extent <@group.0.w0, one, ranges to blocks, received>
    %17 = comm.buffer offset 64 bytes 36(%16) : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>
    %18 = comm.start all_gather %10 order 1 sends(%15 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>) receives(%17 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>)
    comm.wait %18
    %19 = comm.buffer offset 256 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.copy ins(%17 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>) outs(%19 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>)
    %20 = comm.buffer offset 0 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>
    comm.stage @group.0.w0 over blocks ins(%5, %19 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%20 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) {
    ^bb0(%arg0: f32, %arg1: f32):
      %cst = arith.constant 5.96046455E-15 : f32
      %54 = arith.maximumf %arg1, %cst : f32
      %55 = arith.divf %arg0, %54 : f32
      %56 = arith.mulf %55, %55 : f32
      comm.yield %56 : f32
    }
    %21 = comm.extent <@group.0.w0, one, parts to ranges, sent>
    %22 = comm.buffer offset 192 bytes 36(%21) : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>
    comm.copy ins(%20 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, parts>>) outs(%22 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>)
    %23 = comm.extent <@group.0.w0, one, parts to ranges, received>
    %24 = comm.buffer offset 0 bytes 100(%23) : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>
    %25 = comm.start exchange %10 order 2 sends(%22 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, sent>>) receives(%24 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>)
    comm.wait %25
    %26 = comm.extent <@group.0.w0, one, ranges, kept>
    %27 = comm.buffer offset 192 bytes 4(%26) : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>
    comm.sum by 1 ins(%24 : memref<?xf32, #comm.place<@group.0.w0, one, parts to ranges, received>>) outs(%27 : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>)
    %28 = comm.extent <@group.0.w0, one, ranges to blocks, sent>
    %29 = comm.buffer offset 0 bytes 36(%28) : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>
    comm.copy ins(%27 : memref<?xf32, #comm.place<@group.0.w0, one, ranges, kept>>) outs(%29 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>)
    %30 = comm.extent <@group.0.w0, one, ranges to blocks, received>
    %31 = comm.buffer offset 64 bytes 36(%30) : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>
    %32 = comm.start all_gather %10 order 3 sends(%29 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, sent>>) receives(%31 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>)
    comm.wait %32
    %33 = comm.buffer offset 0 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.copy ins(%31 : memref<?xf32, #comm.place<@group.0.w0, one, ranges to blocks, received>>) outs(%33 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>)
    %34 = comm.buffer offset 64 bytes 4(%4) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    comm.stage @group.0.w0 over blocks ins(%19, %33 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%34 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) {
    ^bb0(%arg0: f32, %arg1: f32):
      %54 = math.sqrt %arg1 : f32
      %cst = arith.constant 5.96046455E-15 : f32
      %55 = arith.maximumf %arg0, %cst : f32
      %56 = arith.mulf %55, %54 : f32
      comm.yield %56 : f32
    }
    %35 = comm.buffer offset 256 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.stage @group.0.w0 over blocks ins(%3, %34 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%35 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {
    ^bb0(%arg0: bf16, %arg1: f32):
      %cst = arith.constant 5.96046455E-15 : f32
      %54 = arith.maximumf %arg1, %cst : f32
      %55 = arith.extf %arg0 : bf16 to f32
      %56 = arith.divf %55, %54 : f32
      %cst_0 = arith.constant 5.96046448E-8 : f32
      %57 = arith.mulf %56, %cst_0 : f32
      %58 = arith.truncf %57 : f32 to bf16
      comm.yield %58 : bf16
    }
    %36 = comm.buffer offset 128 bytes 64(%4) : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>
    optim.product %35, %35 outs(%36 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %37 = comm.extent <@group.0.w0, gram, parts to ranges, sent>
    %38 = comm.buffer offset 0 bytes 128(%37) : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, sent>>
    comm.copy ins(%36 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>) outs(%38 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, sent>>)
    %39 = comm.extent <@group.0.w0, gram, parts to ranges, received>
    %40 = comm.buffer offset 128 bytes 128(%39) : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, received>>
    %41 = comm.start exchange %10 order 4 sends(%38 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, sent>>) receives(%40 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, received>>)
    comm.wait %41
    %42 = comm.extent <@group.0.w0, gram, ranges, kept>
    %43 = comm.buffer offset 0 bytes 32(%42) : memref<?xf32, #comm.place<@group.0.w0, gram, ranges, kept>>
    comm.sum by 1 ins(%40 : memref<?xf32, #comm.place<@group.0.w0, gram, parts to ranges, received>>) outs(%43 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges, kept>>)
    %44 = comm.extent <@group.0.w0, gram, ranges to blocks, sent>
    %45 = comm.buffer offset 128 bytes 64(%44) : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, sent>>
    comm.copy ins(%43 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges, kept>>) outs(%45 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, sent>>)
    %46 = comm.extent <@group.0.w0, gram, ranges to blocks, received>
    %47 = comm.buffer offset 0 bytes 128(%46) : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, received>>
    %48 = comm.start all_gather %10 order 5 sends(%45 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, sent>>) receives(%47 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, received>>)
    comm.wait %48
    %49 = comm.buffer offset 128 bytes 64(%4) : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>
    comm.copy ins(%47 : memref<?xf32, #comm.place<@group.0.w0, gram, ranges to blocks, received>>) outs(%49 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>)
    %50 = comm.buffer offset 0 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>
    comm.stage @group.0.w0 over blocks ins(%49 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>) outs(%50 : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>) {
    ^bb0(%arg0: f32):
      %54 = arith.truncf %arg0 : f32 to bf16
      comm.yield %54 : bf16
    }
    %51 = comm.buffer offset 64 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>
    optim.product %50, %50 plus %50 outs(%51 : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>) {alpha = 2.000000e+00 : f64, beta = -4.000000e+00 : f64, symmetric} : memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>
    %52 = comm.buffer offset 0 bytes 32(%4) : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    optim.product %35, %51 plus %35 outs(%52 : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) {alpha = 1.000000e+00 : f64, beta = 3.000000e+00 : f64} : memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>
    %53 = comm.shards parameter @group.0 : <@group.0, f32>
    comm.stage @group.0.w0 over shards active %active ins(%53, %52 : !comm.shards<@group.0, f32>, memref<?x4x4xbf16, #comm.place<@group.0.w0, full, blocks>>) writes(%53 : !comm.shards<@group.0, f32>) scalars(%0 : memref<1x1xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f32, %arg1: bf16, %arg2: f32):
      %54 = arith.extf %arg1 : bf16 to f32
      %55 = arith.mulf %arg2, %54 : f32
      %56 = arith.subf %arg0, %55 : f32
      comm.yield %56 : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

