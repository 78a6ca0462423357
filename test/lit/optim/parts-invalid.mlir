// Every error of parts of groups, and of flattened axes.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Parts of a group are each there once, in their order, and of one size, whatever their runs.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 3, 4, 5], [3, 4, 5, 6]> aliases []
optim.group @g rule @R parameters [@w] parts [0, 1, 2]

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 3, 4, 5], [3, 4, 5, 6]> aliases []
// expected-error @below {{expected parts in their order, found 1 behind 2}}
optim.group @g rule @R parameters [@w] parts [2, 1]

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 3, 4, 5], [3, 4, 5, 6]> aliases []
// expected-error @below {{expected parts in their order, found 1 behind 1}}
optim.group @g rule @R parameters [@w] parts [1, 1]

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 6]> aliases []
// expected-error @below {{expected parts of equal size, found one of 4 behind those of 2}}
optim.group @g rule @R parameters [@w] parts [0, 1]

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 6]> aliases []
// expected-error @below {{expected at least one part of the parameters, found none}}
optim.group @g rule @R parameters [@w] parts []

// -----

// Axes that cannot be flattened to a matrix.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected three axes or more to flatten, found 2}}
optim.parameter @w shape [6, 4] batch 0 flatten 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected three axes or more to flatten, found 2}}
optim.parameter @w shape [6, 4, 2] batch 1 flatten 2 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected columns from axis 1 to 2 on, found 3}}
optim.parameter @w shape [6, 4, 2] batch 0 flatten 3 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected columns from axis 1 to 2 on, found 0}}
optim.parameter @w shape [6, 4, 2] batch 0 flatten 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected batch axes that leave axes to flatten, found 4 of 3}}
optim.parameter @w shape [6, 4, 2] batch 4 flatten 5 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected axes to flatten that are specified, found none}}
optim.parameter @w shape [6, 4] batch 0 specified type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected specified axes to flatten over others, found some that are not}}
optim.parameter @w shape [6, 4, 2] batch 0 flatten 1 over 2 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected each row in one part, found row 6 in none}}
optim.parameter @w shape [2, 4, 2] batch 0 flatten 2 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 6]> aliases []

// -----

// A statement says something, and of an axis that can be.
// expected-error @below {{expected axes to flatten or blocks, found neither}}
optim.divide patterns ["w"] except []

// -----

// expected-error @below {{expected columns from axis 1 or a later one on, found 0}}
optim.divide patterns ["w"] except [] flatten 0
