// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-distribute

// A group without a strategy is not decided.
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// expected-error @below {{expected a decided group, found no hops}}
optim.group @g rule @Muon parameters [@a]

// -----

// Hops that own something, without bases, are not decided.
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// expected-error @below {{expected a decided group, found no bases}}
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]

// -----

// A decided rule says where its values are stored.
module @no_writes {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @+1 {{expected optim.writes with one entry per value, 1, found 0}}
  optim.yield %grad : tensor<?x?xf32>
}
}

// -----

// Every operation has a space, but splats and conditions.
module @missing_space {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @+1 {{expected an optim.space, found none}}
  %p = arith.subf %param, %grad : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
}

// -----

// A condition has none: it is computed where it is used.
module @space_of_condition {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @+1 {{expected no optim.space on what runs wherever it is used, found in}}
  %c = arith.cmpf ogt, %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %p = arith.select %c, %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
}

// -----

// What a condition is made of comes before what it decides for.
module @back_through_condition {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %c = arith.cmpf ogt, %o, %grad : tensor<?x?xf32>
  // expected-error @+1 {{expected spaces that do not decrease, found in after matrix}}
  %p = arith.select %c, %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
}

// -----

// A value is not stored before it is made.
module @early_write {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  // expected-error @+1 {{expected value 0 to be stored no earlier than it is made, found optim.writes of in}}
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
}

// -----

// A widening runs wherever it is used, but not before what it widens is made.
module @early_widening {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %c = arith.truncf %grad {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  // expected-error @+1 {{expected value 0 to be stored no earlier than it is made, found optim.writes of in}}
  optim.yield %f : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
}

// -----

// A model has a parameter of its own.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected a group of the parameter that stands for the model alone, found none}}
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
  %new = arith.divf %grad, %all : tensor<?x?xf32>
  optim.yield %new : tensor<?x?xf32>
}
optim.rule @Sgd hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = optim.model_number 0 : f64
  %count = optim.splat %n : tensor<?x?xf32>
  %p = arith.divf %grad, %count {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Sgd parameters [@w]
