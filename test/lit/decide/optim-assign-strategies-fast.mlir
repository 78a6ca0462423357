// Fast numerics may pick what rounds otherwise: slabs, of which Gram matrices are added up.
// RUN: stepc-opt %s --optim-assign-strategies='force=w*=slabs,d=slabs' | FileCheck %s
// RUN: stepc-opt %s --optim-assign-strategies --remark-policy=all --remarks-filter=optim-assign-strategies -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// Along all axes that cut the longer side, replicas beside each other.
// CHECK-LABEL: @fast
// CHECK: optim.group @tall {{.*}} strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 32768 to 32768> reason "forced by 'w*=slabs'"
// CHECK: optim.group @wide {{.*}} strategy #optim.slabs hops [] slabs <columns, [<0, 1, 2>, <1, 1, 2>], 32 to 32>
// Slabs may differ in length.
// CHECK: optim.group @uneven {{.*}} strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 4 to 5>
// What cuts the shorter side, no side or both comes together as before, and says why.
// REMARK: Reason="each rank computes its slab, and Gram matrices are added up", first-parameter=w1, group=tall, modelled-ns={{[0-9]+}}, strategy=slabs
// REMARK: Reason="expected shards that cut the longer side of blocks, found rows of 4 x 64", group=short, strategy=slabs
// REMARK: Reason="placements [R, R] do not cut the blocks", group=whole, strategy=slabs
// REMARK: Reason="expected shards that cut blocks by columns alone, found placements [S(0), S(1)]", group=both, strategy=slabs
// REMARK: Reason="rule Twice has orthogonalize of what it makes of blocks, which needs slabs of equal length, found 5 rows on rank 0 and 4 rows on rank 2", group=twice, strategy=slabs
// REMARK: Reason="rule Rows takes the norm of values where blocks have to be whole", group=rows, strategy=slabs
// REMARK: Reason="rule Multiply has matmul of blocks, which have to be whole", group=multiply, strategy=slabs
module @fast attributes {stepc.numerics = "fast"} {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Twice hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %s = arith.addf %o, %o {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %t = optim.orthogonalize %s coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %t : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Rows hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = optim.reduce norm %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<?x1xf32>
  %b = optim.broadcast %n {optim.space = #optim.space<matrix>} : tensor<?x1xf32> to tensor<?x?xf32>
  optim.yield %b : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Multiply hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %g = optim.matmul %grad, %grad {optim.space = #optim.space<matrix>, transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.parameter @w1 shape [65536, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @w2 shape [64, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<1, 2>, #optim.shard<1>] aliases []
optim.parameter @a shape [4, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @b shape [4, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
optim.parameter @c shape [4, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.parameter @d shape [9, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @f shape [9, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @e shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @h shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.group @tall rule @Matrix parameters [@w1]
optim.group @wide rule @Matrix parameters [@w2]
optim.group @short rule @Matrix parameters [@a]
optim.group @whole rule @Matrix parameters [@b]
optim.group @both rule @Matrix parameters [@c]
optim.group @uneven rule @Matrix parameters [@d]
optim.group @twice rule @Twice parameters [@f]
optim.group @rows rule @Rows parameters [@e]
optim.group @multiply rule @Multiply parameters [@h]
}
