module @muon attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Muon hyperparameters ["lr", "momentum", "weight_decay"] states [#optim.state<"m", f32, full, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x?xf32>, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64, %arg8: f64, %arg9: f64):
    %0 = optim.splat %arg4 : tensor<?x?xf32>
    %1 = arith.mulf %0, %arg2 {optim.space = 0 : i64} : tensor<?x?xf32>
    %2 = arith.addf %1, %arg1 {optim.space = 0 : i64} : tensor<?x?xf32>
    %3 = arith.mulf %0, %2 {optim.space = 0 : i64} : tensor<?x?xf32>
    %4 = arith.addf %3, %arg1 {optim.space = 0 : i64} : tensor<?x?xf32>
    %5 = arith.truncf %4 {optim.space = 0 : i64} : tensor<?x?xf32> to tensor<?x?xbf16>
    %6 = optim.orthogonalize %5 coefficients [[3.444500e+00, -4.775000e+00, 2.031500e+00], [3.444500e+00, -4.775000e+00, 2.031500e+00]] eps 9.9999999999999995E-8 {optim.space = 1 : i64} : tensor<?x?xbf16>
    %7 = arith.extf %6 {optim.space = 2 : i64} : tensor<?x?xbf16> to tensor<?x?xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %8 = arith.mulf %arg3, %arg5 : f64
    %9 = arith.subf %cst, %8 : f64
    %10 = optim.splat %9 : tensor<?x?xf32>
    %11 = arith.mulf %10, %arg0 {optim.space = 2 : i64} : tensor<?x?xf32>
    %12 = optim.splat %arg3 : tensor<?x?xf32>
    %13 = arith.mulf %12, %7 {optim.space = 2 : i64} : tensor<?x?xf32>
    %14 = arith.subf %11, %13 {optim.space = 2 : i64} : tensor<?x?xf32>
    optim.yield %14, %2 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = array<i64: 2, 0>}
  }
  optim.route @Muon rule @Muon matrix patterns [] except [] defaults [2.000000e-02, 9.500000e-01, 1.000000e-01] missing_grad error
  optim.parameter @w shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Muon
  optim.parameter @w2 shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Muon
  optim.parameter @w3 shape [70, 40] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Muon
  optim.group @group.0 rule @Muon parameters [@w, @w2, @w3] strategy owner owners [0, 1, 0] waves [0, 0, 0] reason "blocks span ranks: exact routes to a balanced owner"
  comm.segment @group.0.w0 group @group.0 wave 0 all
  func.func @step() attributes {comm.arena_bytes = 87104 : i64} {
    %0 = comm.buffer offset 87040 bytes 36 : memref<3x3xf32>
    comm.scalars @group.0 outs(%0 : memref<3x3xf32>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
      %cst = arith.constant 1.000000e+00 : f64
      %33 = arith.mulf %arg0, %arg2 : f64
      %34 = arith.subf %cst, %33 : f64
      comm.yield %arg1, %34, %arg0 : f64, f64, f64
    }
    %1 = comm.shards state @group.0 "m" : <@group.0, f32>
    %2 = comm.shards gradient @group.0 : <@group.0, f32>
    %3 = comm.extent @group.0.w0 to_matrix full send
    %4 = comm.buffer offset 11200 bytes 8400(%3) : memref<?xbf16>
    comm.stage @group.0.w0 over shards to_matrix send ins(%1, %2 : !comm.shards<@group.0, f32>, !comm.shards<@group.0, f32>) writes(%1 : !comm.shards<@group.0, f32>) outs(%4 : memref<?xbf16>) scalars(%0 : memref<3x3xf32>) {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32):
      %33 = arith.mulf %arg2, %arg0 : f32
      %34 = arith.addf %33, %arg1 : f32
      %35 = arith.mulf %arg2, %34 : f32
      %36 = arith.addf %35, %arg1 : f32
      %37 = arith.truncf %36 : f32 to bf16
      comm.yield %34, %37 : f32, bf16
    }
    %5 = comm.world
    %6 = comm.extent @group.0.w0 to_matrix full receive
    %7 = comm.buffer offset 0 bytes 11200(%6) : memref<?xbf16>
    %8 = comm.start %5 to_matrix order 0 sends [@group.0.w0](%4 : memref<?xbf16>) receives [@group.0.w0](%7 : memref<?xbf16>) kinds [0]
    comm.wait %8
    %9 = comm.extent @group.0.w0 to_matrix full blocks
    %10 = comm.buffer offset 11200 bytes 11200(%9) : memref<?x70x40xbf16>
    comm.copy @group.0.w0 to_matrix full from receive to blocks ins(%7 : memref<?xbf16>) outs(%10 : memref<?x70x40xbf16>)
    %11 = comm.extent @group.0.w0 to_matrix full blocks
    %12 = comm.buffer offset 576 bytes 8(%11) : memref<?x1x1xf32>
    optim.block_reduce norm @group.0.w0 %10 outs(%12 : memref<?x1x1xf32>) {exponent = -24 : i64} : memref<?x70x40xbf16>
    %14 = comm.buffer offset 58240 bytes 11200(%11) : memref<?x70x40xbf16>
    comm.stage @group.0.w0 over blocks to_matrix blocks ins(%10, %12 : memref<?x70x40xbf16>, memref<?x1x1xf32>) outs(%14 : memref<?x70x40xbf16>) {
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
    %15 = comm.buffer offset 69440 bytes 6400(%11) : memref<?x40x40xbf16>
    optim.product @group.0.w0 %14, %14 outs(%15 : memref<?x40x40xbf16>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x70x40xbf16>, memref<?x70x40xbf16>
    %17 = comm.buffer offset 46080 bytes 6400(%11) : memref<?x40x40xbf16>
    optim.product @group.0.w0 %15, %15 plus %15 outs(%17 : memref<?x40x40xbf16>) {alpha = 2.031500e+00 : f64, beta = -4.775000e+00 : f64, symmetric} : memref<?x40x40xbf16>, memref<?x40x40xbf16>, memref<?x40x40xbf16>
    %19 = comm.buffer offset 69440 bytes 11200(%11) : memref<?x70x40xbf16>
    optim.product @group.0.w0 %14, %17 plus %14 outs(%19 : memref<?x70x40xbf16>) {alpha = 1.000000e+00 : f64, beta = 3.444500e+00 : f64} : memref<?x70x40xbf16>, memref<?x40x40xbf16>, memref<?x70x40xbf16>
    %21 = comm.buffer offset 58240 bytes 6400(%11) : memref<?x40x40xbf16>
    optim.product @group.0.w0 %19, %19 outs(%21 : memref<?x40x40xbf16>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs} : memref<?x70x40xbf16>, memref<?x70x40xbf16>
    %23 = comm.buffer offset 80640 bytes 6400(%11) : memref<?x40x40xbf16>
    optim.product @group.0.w0 %21, %21 plus %21 outs(%23 : memref<?x40x40xbf16>) {alpha = 2.031500e+00 : f64, beta = -4.775000e+00 : f64, symmetric} : memref<?x40x40xbf16>, memref<?x40x40xbf16>, memref<?x40x40xbf16>
    %25 = comm.buffer offset 46080 bytes 11200(%11) : memref<?x70x40xbf16>
    optim.product @group.0.w0 %19, %23 plus %19 outs(%25 : memref<?x70x40xbf16>) {alpha = 1.000000e+00 : f64, beta = 3.444500e+00 : f64} : memref<?x70x40xbf16>, memref<?x40x40xbf16>, memref<?x70x40xbf16>
    %27 = comm.extent @group.0.w0 to_shards full send
    %28 = comm.buffer offset 0 bytes 11200(%27) : memref<?xbf16>
    comm.copy @group.0.w0 to_shards full from blocks to send ins(%25 : memref<?x70x40xbf16>) outs(%28 : memref<?xbf16>)
    %29 = comm.extent @group.0.w0 to_shards full receive
    %30 = comm.buffer offset 11200 bytes 8400(%29) : memref<?xbf16>
    %31 = comm.start %5 to_shards order 1 sends [@group.0.w0](%28 : memref<?xbf16>) receives [@group.0.w0](%30 : memref<?xbf16>) kinds [0]
    comm.wait %31
    %32 = comm.shards parameter @group.0 : <@group.0, f32>
    comm.stage @group.0.w0 over shards to_shards receive ins(%32, %30 : !comm.shards<@group.0, f32>, memref<?xbf16>) writes(%32 : !comm.shards<@group.0, f32>) scalars(%0 : memref<3x3xf32>) {
    ^bb0(%arg0: f32, %arg1: bf16, %arg2: f32, %arg3: f32, %arg4: f32):
      %33 = arith.mulf %arg3, %arg0 : f32
      %34 = arith.extf %arg1 : bf16 to f32
      %35 = arith.mulf %arg4, %34 : f32
      %36 = arith.subf %33, %35 : f32
      comm.yield %36 : f32
    }
    return
  }
}

