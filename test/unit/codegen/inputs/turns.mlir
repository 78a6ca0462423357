module @turns attributes {stepc.level = "optim", stepc.numerics = "exact"} {
  optim.mesh @mesh axes ["x"] sizes [4] ranks [0, 1, 2, 3]
  optim.rule @Turns hyperparameters ["lr", "momentum", "decay"] states [#optim.state<"m", f32, full, 0.000000e+00 : f64, false>, #optim.state<"v", f32, rows, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x?xf32>, %arg3: tensor<?x1xf32>, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64, %arg8: f64, %arg9: f64, %arg10: f64):
    %0 = optim.splat %arg5 : tensor<?x?xf32>
    %1 = arith.mulf %0, %arg2 : tensor<?x?xf32>
    %2 = arith.addf %1, %arg1 : tensor<?x?xf32>
    %3 = optim.splat %arg5 : tensor<?x?xf32>
    %4 = arith.mulf %3, %2 : tensor<?x?xf32>
    %5 = arith.addf %arg1, %4 : tensor<?x?xf32>
    %6 = arith.truncf %5 : tensor<?x?xf32> to tensor<?x?xbf16>
    %7 = optim.orthogonalize %6 coefficients [[3.444500e+00, -4.775000e+00, 2.031500e+00], [3.444500e+00, -4.775000e+00, 2.031500e+00]] eps 9.9999999999999995E-8 : tensor<?x?xbf16>
    %8 = arith.extf %7 : tensor<?x?xbf16> to tensor<?x?xf32>
    %9 = arith.extf %7 : tensor<?x?xbf16> to tensor<?x?xf32>
    %10 = arith.mulf %8, %9 : tensor<?x?xf32>
    %11 = optim.reduce mean %10 : tensor<?x?xf32> to tensor<?x1xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %12 = arith.subf %cst, %arg6 : f64
    %13 = optim.splat %12 : tensor<?x1xf32>
    %14 = optim.lerp %arg3, %11, %13 : tensor<?x1xf32>
    %15 = optim.splat %arg4 : tensor<?x?xf32>
    %16 = arith.extf %7 : tensor<?x?xbf16> to tensor<?x?xf32>
    %17 = arith.mulf %15, %16 : tensor<?x?xf32>
    %cst_0 = arith.constant 1.000000e-08 : f64
    %18 = optim.splat %cst_0 : tensor<?x1xf32>
    %19 = arith.addf %14, %18 : tensor<?x1xf32>
    %cst_1 = arith.constant 1.000000e+00 : f64
    %20 = optim.splat %cst_1 : tensor<?x1xf32>
    %21 = math.sqrt %19 : tensor<?x1xf32>
    %22 = arith.divf %20, %21 : tensor<?x1xf32>
    %23 = optim.broadcast %22 : tensor<?x1xf32> to tensor<?x?xf32>
    %24 = arith.mulf %17, %23 : tensor<?x?xf32>
    %25 = arith.subf %arg0, %24 : tensor<?x?xf32>
    optim.yield %25, %2, %14 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @Turns rule @Turns rest patterns [] except [] defaults [2.000000e-02, 0.94999999999999996, 9.000000e-01] missing_grad error
  optim.parameter @a shape [18, 12] batch 0 type f32 gradient f32 mesh @mesh placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [18, 12] batch 0 type f32 gradient f32 mesh @mesh placements [#optim.shard<0>] aliases []
  optim.parameter @c shape [18, 12] batch 0 type f32 gradient f32 mesh @mesh placements [#optim.shard<0>] aliases []
  optim.parameter @d shape [3, 5, 7] batch 1 type f32 gradient f32 mesh @mesh placements [#optim.shard<2>] aliases []
}

