// RUN: stepc-opt %s --optim-cut-spaces --optim-reduce-on-shards | FileCheck %s

// The sum of each block is cut between two ranks. Four numbers of a rank are fewer bytes than what the rank adds up to, which is
// an exact sum of 40 bytes and a result of 4. Forty are not.
// CHECK-LABEL: optim.rule @Sum hyperparameters
// CHECK: optim.reduce sum %{{.*}} {optim.space = #optim.space<matrix>}
// CHECK-LABEL: optim.rule @Sum.on_shards {{.*}} written @Sum {
// CHECK: optim.reduce sum %{{.*}} {optim.cut, optim.space = #optim.space<in>}
// CHECK-NOT: optim.rule @Sum
// CHECK: optim.group @few rule @Sum parameters
// CHECK: optim.group @many rule @Sum.on_shards parameters
// CHECK: optim.group @most rule @Max.on_shards parameters
// A matrix of which one rank has all, and fused ones, too.
// CHECK: optim.group @owned rule @Sum parameters
// CHECK: optim.group @divided rule @Sum parameters
optim.rule @Sum hyperparameters ["lr"] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.reduce sum %grad : tensor<?x?xf32> to tensor<1x1xf32>
  %b = optim.broadcast %s : tensor<1x1xf32> to tensor<?x?xf32>
  %p = arith.subf %param, %b : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}
optim.rule @Max hyperparameters ["lr"] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.reduce max %grad : tensor<?x?xf32> to tensor<1x1xf32>
  %b = optim.broadcast %s : tensor<1x1xf32> to tensor<?x?xf32>
  %p = arith.subf %param, %b : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [2, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [10, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [10, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [10, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @e shape [10, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 5], [5, 10]> aliases []
optim.group @few rule @Sum parameters [@a]
optim.group @many rule @Sum parameters [@b]
optim.group @most rule @Max parameters [@c]
optim.group @owned rule @Sum parameters [@d]
optim.group @divided rule @Sum parameters [@e] parts [0, 1]
