// RUN: stepc-opt %s --optim-group-parameters='force=b=gather,p*=owner' | FileCheck %s
// An alias is a name, too.
// RUN: stepc-opt %s --optim-group-parameters='force=ti[!^]d=gather,p*=owner' | FileCheck %s

// A forced parameter leaves the group of its equals; rules without matrix operations take no notice.
// CHECK: optim.group @group.0 rule @Matrix parameters [@a, @c]
// CHECK-NEXT: optim.group @group.1 rule @Matrix parameters [@b]
// CHECK-NEXT: optim.group @group.2 rule @Plain parameters [@p, @q]
// CHECK-NOT: optim.group
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Matrix rule @Matrix patterns ["[abc]"] except [] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.parameter @b shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases ["tied"] route @Matrix
optim.parameter @c shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Matrix
optim.parameter @p shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Plain
optim.parameter @q shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Plain
