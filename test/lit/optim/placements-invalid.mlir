// Every error of owners, stripes, ranges and partial gradients, and of where these are added up.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// What no rank at a coordinate of the mesh can own.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{placement 0: expected an owner from 0 to 1, found 'owned(2)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<2>] aliases []

// -----

// Stripes are equal.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{placement 0: expected stripes that divide the 4 indices of dimension 0 that earlier axes leave on a rank, found 'IS(0, 3)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.interleaved_shard<0, 3>] aliases []

// -----

// Flat ranges have every element.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{placement 0: expected ranges that begin at 0 and end at 16, the elements of the largest shard, found 'flat(0, 5, 15)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.flat<0, 5, 15>] aliases []

// -----

// Where a gradient is partial, it is added up somewhere.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.partial_sum] aliases []
// expected-error @below {{expected reduced placements exactly where the gradient is partial, found [P(sum)] and none}}
optim.group @g rule @R parameters [@a]

// -----

// Elsewhere there is nothing to add up.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected reduced placements exactly where the gradient is partial, found [R] and [R]}}
optim.group @g rule @R parameters [@a] reduced [#optim.replicate]

// -----

// Along every axis.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.partial_sum] aliases []
// expected-error @below {{expected 1 reduced placements, one per mesh axis, found 2}}
optim.group @g rule @R parameters [@a] reduced [#optim.flat, #optim.replicate]

// -----

// Where it can be.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.partial_sum] aliases []
// expected-error @below {{reduced placement 0: expected an owner from 0 to 3, found 'owned(4)'}}
optim.group @g rule @R parameters [@a] reduced [#optim.owned<4>]

// -----

// No other values are partial.
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
// expected-error @below {{placement 0: expected no partial sum but of a gradient, found 'P(sum)'}}
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.partial_sum] aliases []

// -----

// What one rank contributes is all.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{gradient's placement 0: expected R along an axis of one rank, found 'P(avg)'}}
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] gradient_placements [#optim.partial_average] aliases []
