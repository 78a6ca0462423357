// Of the largest parameters that are legal: costs and bytes stay in range, so that owners are balanced and waves legal.
// RUN: stepc-opt %s --optim-balance-owners --optim-assign-waves | FileCheck %s

// CHECK: optim.group @g {{.*}} owners [0, 1, 0, 1] waves [0, 0, 1, 1]
module @fits {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Matrix rule @Matrix rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [1048576, 1048576] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.parameter @b shape [1048576, 1048576] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.parameter @c shape [1048576, 1048576] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.parameter @d shape [1048576, 1048576] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.group @g rule @Matrix parameters [@a, @b, @c, @d] strategy owner
}
