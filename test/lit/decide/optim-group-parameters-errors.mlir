// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-group-parameters

// A parameter without a route has no rule to be grouped by.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
// expected-error @below {{expected a route, found none: run optim-route-parameters first}}
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Each matrix has an owner and a wave of its own where the rule needs it whole: there is a bound.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @M rule @Matrix rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{parameter 'many': expected at most 1048576 matrices of parameters that are stepped alike, found 4194304 in 2 parameters}}
optim.parameter @many shape [2097152, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @M
optim.parameter @more shape [2097152, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @M

// -----

// A shard may have many pieces of one matrix, too.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @M rule @Matrix rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{parameter 'w': expected at most 1048576 pieces of matrices that stand apart in a shard by placements [S(3)], found 4194304}}
optim.parameter @w shape [2, 2048, 2048, 4] batch 0 flatten 1 type f32 gradient f32 mesh @world placements [#optim.shard<3>] aliases [] route @M

// -----

// A move between shards that cut columns has a row for each of the matrix's.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{parameter 'long': expected at most 16777216 rows where lists of placements differ and cut columns, found 33554432}}
optim.parameter @long shape [33554432, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<1>] aliases [] route @P
