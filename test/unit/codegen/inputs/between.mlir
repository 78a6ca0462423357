module @between attributes {stepc.level = "optim", stepc.numerics = "exact"} {
  optim.mesh @mesh axes ["x"] sizes [4] ranks [0, 1, 2, 3]
  optim.rule @Between hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.000000e+00 : f64, false>, #optim.state<"v", f32, full, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x?xf32>, %arg3: tensor<?x?xf32>, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64, %arg8: f64):
    %cst = arith.constant 1.000000e-01 : f64
    %0 = optim.splat %cst : tensor<?x?xf32>
    %1 = optim.lerp %arg2, %arg1, %0 : tensor<?x?xf32>
    %2 = optim.orthogonalize %1 coefficients [[1.500000e+00, -5.000000e-01, 0.000000e+00]] eps 9.9999999999999995E-8 : tensor<?x?xf32>
    %3 = arith.mulf %2, %2 : tensor<?x?xf32>
    %cst_0 = arith.constant 5.000000e-02 : f64
    %4 = optim.splat %cst_0 : tensor<?x?xf32>
    %5 = optim.lerp %arg3, %3, %4 : tensor<?x?xf32>
    %6 = optim.splat %arg4 : tensor<?x?xf32>
    %7 = math.sqrt %5 : tensor<?x?xf32>
    %cst_1 = arith.constant 1.000000e-08 : f64
    %8 = optim.splat %cst_1 : tensor<?x?xf32>
    %9 = arith.addf %7, %8 : tensor<?x?xf32>
    %10 = arith.divf %2, %9 : tensor<?x?xf32>
    %11 = optim.orthogonalize %10 coefficients [[1.500000e+00, -5.000000e-01, 0.000000e+00]] eps 9.9999999999999995E-8 : tensor<?x?xf32>
    %12 = arith.mulf %6, %11 : tensor<?x?xf32>
    %13 = arith.subf %arg0, %12 : tensor<?x?xf32>
    optim.yield %13, %1, %5 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @Between rule @Between rest patterns [] except [] defaults [5.000000e-01] missing_grad error
  optim.parameter @a shape [18, 12] batch 0 type f32 gradient f32 mesh @mesh placements [#optim.shard<0>] aliases []
}

