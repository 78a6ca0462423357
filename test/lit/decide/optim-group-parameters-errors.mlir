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
