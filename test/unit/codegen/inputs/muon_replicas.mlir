module @muon attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp", "fsdp"] sizes [2, 2] ranks [0, 1, 2, 3]
  optim.rule @Muon hyperparameters ["lr", "momentum", "weight_decay"] states [#optim.state<"m", f32, full, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x?xf32>, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64, %arg8: f64, %arg9: f64):
    %0 = optim.splat %arg4 : tensor<?x?xf32>
    %1 = arith.mulf %0, %arg2 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %2 = arith.addf %1, %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %3 = arith.mulf %0, %2 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %4 = arith.addf %3, %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %5 = arith.truncf %4 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
    %6 = optim.orthogonalize %5 coefficients [[3.444500e+00, -4.775000e+00, 2.031500e+00], [3.444500e+00, -4.775000e+00, 2.031500e+00]] eps 9.9999999999999995E-8 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
    %7 = arith.extf %6 : tensor<?x?xbf16> to tensor<?x?xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %8 = arith.mulf %arg3, %arg5 : f64
    %9 = arith.subf %cst, %8 : f64
    %10 = optim.splat %9 : tensor<?x?xf32>
    %11 = arith.mulf %10, %arg0 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %12 = optim.splat %arg3 : tensor<?x?xf32>
    %13 = arith.mulf %12, %7 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %14 = arith.subf %11, %13 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %14, %2 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
  }
  optim.route @Muon rule @Muon matrix patterns [] except [] defaults [2.000000e-02, 9.500000e-01, 1.000000e-01] missing_grad error
  optim.parameter @w shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases [] route @Muon
  optim.parameter @w2 shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases [] route @Muon
  optim.parameter @w3 shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases [] route @Muon
  optim.group @group.0 rule @Muon parameters [@w, @w2, @w3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>] base [0, 1, 2]>] waves [0, 0, 0] reason "blocks span ranks: exact routes to a balanced owner"
  comm.segment @group.0.w0 group @group.0 wave 0 all
  func.func @step() attributes {comm.arena_bytes = 20416 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %0 = comm.buffer offset 20352 bytes 36 : memref<3x3xf32, #comm.place<@group.0, scalars>>
    comm.scalars of %hyperparameters, %steps active %active outs(%0 : memref<3x3xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
      %cst = arith.constant 1.000000e+00 : f64
      %33 = arith.mulf %arg0, %arg2 : f64
      %34 = arith.subf %cst, %33 : f64
      comm.yield %arg1, %34, %arg0 : f64, f64, f64
    }
    %1 = comm.shards state @group.0 "m" : <@group.0, f32>
    %2 = comm.shards gradient @group.0 : <@group.0, f32>
    %3 = comm.extent <@group.0.w0, full, shards to blocks, sent>
    %4 = comm.buffer offset 0 bytes 5712(%3) : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, sent>>
    comm.stage @group.0.w0 over shards active %active ins(%1, %2 : !comm.shards<@group.0, f32>, !comm.shards<@group.0, f32>) writes(%1 : !comm.shards<@group.0, f32>) outs(%4 : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, sent>>) scalars(%0 : memref<3x3xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32):
      %33 = arith.mulf %arg2, %arg0 : f32
      %34 = arith.addf %33, %arg1 : f32
      %35 = arith.mulf %arg2, %34 : f32
      %36 = arith.addf %35, %arg1 : f32
      %37 = arith.truncf %36 : f32 to bf16
      comm.yield %34, %37 : f32, bf16
    }
    %5 = comm.world
    %6 = comm.extent <@group.0.w0, full, shards to blocks, received>
    %7 = comm.buffer offset 5760 bytes 5712(%6) : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, received>>
    %8 = comm.start exchange %5 order 0 sends(%4 : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, sent>>) receives(%7 : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, received>>)
    comm.wait %8
    %9 = comm.extent <@group.0.w0, full, blocks>
    %10 = comm.buffer offset 0 bytes 5600(%9) : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.copy ins(%7 : memref<?xbf16, #comm.place<@group.0.w0, full, shards to blocks, received>>) outs(%10 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>)
    %11 = comm.extent <@group.0.w0, full, blocks>
    %12 = comm.buffer offset 11264 bytes 4(%11) : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>
    optim.apply #optim.block_reduce<norm, exponent = -24> %10 outs(%12 : memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    %14 = comm.buffer offset 5632 bytes 5600(%11) : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    comm.stage @group.0.w0 over blocks ins(%10, %12 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x1x1xf32, #comm.place<@group.0.w0, one, blocks>>) outs(%14 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>) {
    ^bb0(%arg0: bf16, %arg1: f32):
      %cst = arith.constant 0x27D6BF95 : f32
      %33 = arith.maximumf %arg1, %cst : f32
      %34 = arith.extf %arg0 : bf16 to f32
      %35 = arith.divf %34, %33 : f32
      %scale = arith.constant 0x33800000 : f32
      %scaled = arith.mulf %35, %scale : f32
      %36 = arith.truncf %scaled : f32 to bf16
      comm.yield %36 : bf16
    }
    %15 = comm.buffer offset 0 bytes 3200(%11) : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    optim.product %14, %14 outs(%15 : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    %17 = comm.buffer offset 11264 bytes 3200(%11) : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    optim.product %15, %15 plus %15 outs(%17 : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>) {alpha = 2.031500e+00 : f64, beta = -4.775000e+00 : f64, symmetric} : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    %19 = comm.buffer offset 0 bytes 5600(%11) : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    optim.product %14, %17 plus %14 outs(%19 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>) {alpha = 1.000000e+00 : f64, beta = 3.444500e+00 : f64} : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    %21 = comm.buffer offset 5632 bytes 3200(%11) : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    optim.product %19, %19 outs(%21 : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    %23 = comm.buffer offset 17152 bytes 3200(%11) : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    optim.product %21, %21 plus %21 outs(%23 : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>) {alpha = 2.031500e+00 : f64, beta = -4.775000e+00 : f64, symmetric} : memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>
    %25 = comm.buffer offset 11520 bytes 5600(%11) : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    optim.product %19, %23 plus %19 outs(%25 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>) {alpha = 1.000000e+00 : f64, beta = 3.444500e+00 : f64} : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>, memref<?x40x40xbf16, #comm.place<@group.0.w0, gram, blocks>>, memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>
    %27 = comm.extent <@group.0.w0, full, blocks to shards, sent>
    %28 = comm.buffer offset 0 bytes 11472(%27) : memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, sent>>
    comm.copy ins(%25 : memref<?x70x40xbf16, #comm.place<@group.0.w0, full, blocks>>) outs(%28 : memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, sent>>)
    %29 = comm.extent <@group.0.w0, full, blocks to shards, received>
    %30 = comm.buffer offset 11520 bytes 8592(%29) : memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, received>>
    %31 = comm.start exchange %5 order 1 sends(%28 : memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, sent>>) receives(%30 : memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, received>>)
    comm.wait %31
    %32 = comm.shards parameter @group.0 : <@group.0, f32>
    comm.stage @group.0.w0 over shards active %active ins(%32, %30 : !comm.shards<@group.0, f32>, memref<?xbf16, #comm.place<@group.0.w0, full, blocks to shards, received>>) writes(%32 : !comm.shards<@group.0, f32>) scalars(%0 : memref<3x3xf32, #comm.place<@group.0, scalars>>) {
    ^bb0(%arg0: f32, %arg1: bf16, %arg2: f32, %arg3: f32, %arg4: f32):
      %33 = arith.mulf %arg3, %arg0 : f32
      %34 = arith.extf %arg1 : bf16 to f32
      %35 = arith.mulf %arg4, %34 : f32
      %36 = arith.subf %33, %35 : f32
      comm.yield %36 : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

