// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-route-parameters

// No route claims the parameter.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Plain rule @Plain patterns ["a"] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected a route for parameter 'b' of shape [4, 2], found none that claims it}}
// expected-note @below {{a claim for 'rest' takes every parameter that no other takes}}
optim.parameter @b shape [4, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// The rest excepts the parameter, and no other route claims it.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Plain for the rest excepts it}}
optim.route @Plain rule @Plain rest patterns [] except ["b"] defaults [] missing_grad error
// expected-error @below {{expected a route for parameter 'b' of shape [4], found none that claims it}}
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Two routes claim the parameter; both are pointed at.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route First claims it}}
optim.route @First rule @Plain patterns ["*"] except [] defaults [] missing_grad error
// expected-note @below {{route Second claims it}}
optim.route @Second rule @Plain patterns ["b"] except [] defaults [] missing_grad error
// expected-error @below {{expected one route for parameter 'b' of shape [4], found 2}}
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Two routes for the rest claim it twice.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route First claims it}}
optim.route @First rule @Plain rest patterns [] except [] defaults [] missing_grad error
// expected-note @below {{route Second claims it}}
optim.route @Second rule @Plain rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{expected one route for parameter 'b' of shape [4], found 2}}
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Three axes that nobody declares are a stack of matrices or a convolution: the ways out are named.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{if its axes are the rows and columns of one matrix (a convolution, say), 'flatten' says so, in the manifest or in a blocks statement; else except it from route Matrix}}
optim.route @Matrix rule @Matrix matrix patterns [] except [] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{expected two axes, or declared batch axes, for parameter 'conv' of shape [4, 6, 3] that a matrix route names, found 3 axes that nothing declares}}
// expected-note @below {{if it is a stack of matrices, declare its leading axes as batch axes in the manifest}}
optim.parameter @conv shape [4, 6, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A pattern that matches nothing is a typing error.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected pattern "layer.*" of route Plain to match a parameter, found none}}
// expected-note @below {{patterns followed by 'if present', or given with --if-present, may match nothing}}
optim.route @Plain rule @Plain patterns ["layer.*", "layers.*"] except [] defaults [] missing_grad error
optim.parameter @layers.0 shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// An except pattern that matches nothing may wait for another model: a warning.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-warning @below {{except pattern "*embed*" of route Plain matches no parameter}}
optim.route @Plain rule @Plain rest patterns [] except ["*embed*"] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A rule that needs a matrix gets a vector by name.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Matrix claims it}}
optim.route @Matrix rule @Matrix patterns ["a", "bias"] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected a matrix for rule Matrix, found parameter 'bias' of shape [6]}}
optim.parameter @bias shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A rule that needs a matrix gets the rest, a scalar among it.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Matrix claims it}}
optim.route @Matrix rule @Matrix rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{expected a matrix for rule Matrix, found parameter 'scale' of shape []}}
optim.parameter @scale shape [] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Three axes may be a stack of matrices, or one matrix.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Matrix claims it}}
optim.route @Matrix rule @Matrix rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{expected a matrix for rule Matrix, found parameter 'w' of shape [2, 12, 3]}}
// expected-note @below {{leading axes that count matrices are its batch_axes, and axes that are one row or column together are named by flatten}}
optim.parameter @w shape [2, 12, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A rule that only multiplies is not elementwise.
optim.rule @Multiply hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %g = optim.matmul %grad, %grad {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
  %p = optim.matmul %g, %grad : tensor<?x?xf32, #optim.kind<[rows, rows]>>, tensor<?x?xf32> -> tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Multiply claims it}}
optim.route @Multiply rule @Multiply rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{expected a matrix, a vector or a declared stack of matrices for rule Multiply, which has a value per tensor (a reduction, a state or a metric), found parameter 'w' of shape [2, 12, 3]}}
// expected-note @below {{leading axes that count matrices are its batch_axes, and axes that are one row or column together are named by flatten}}
optim.parameter @w shape [2, 12, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Of an optional and another pattern only the other must match.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected pattern "tail" of route Plain to match a parameter, found none}}
// expected-note @below {{patterns followed by 'if present', or given with --if-present, may match nothing}}
optim.route @Plain rule @Plain patterns ["a", "head", "tail"] optional ["head"] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Frozen parameters are no other pattern's match, and what is optional warns of except patterns all the same.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected pattern "frozen.?" of route Named to match a parameter, found none}}
// expected-note @below {{patterns followed by 'if present', or given with --if-present, may match nothing}}
// expected-warning @below {{except pattern "tail" of route Named matches no parameter}}
optim.route @Named rule @Plain patterns ["frozen.?", "head"] optional ["head"] except ["tail"] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.frozen @frozen aliases ["tied"]

// -----

// An except pattern that some claim says may be absent, as its own or as another's, is no misspelling. (An error, to see
// that there is no warning beside it.)
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @head rule @Plain patterns ["head"] optional ["head"] except [] defaults [] missing_grad error
optim.route @Plain rule @Plain patterns ["a"] optional ["tail"] except ["head", "tail"] defaults [] missing_grad error
// expected-error @below {{expected a route for parameter 'b' of shape [4], found none that claims it}}
// expected-note @below {{a claim for 'rest' takes every parameter that no other takes}}
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Every parameter with an error is reported in one run.
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Matrix claims it}}
optim.route @Matrix rule @Matrix rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{found parameter 'a' of shape [1]}}
optim.parameter @a shape [1] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{found parameter 'b' of shape [2]}}
optim.parameter @b shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A condition on sizes holds for all blocks of a parameter, or for none. Two that hold for one matrix are two claims.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{the condition is here}}
// expected-note @below {{route Short claims it}}
optim.route @Short rule @Plain matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  %four = arith.constant 4.0 : f64
  %short = arith.cmpf ole, %rows, %four : f64
  optim.yield %short : i1
}
// expected-note @below {{route Narrow claims it}}
optim.route @Narrow rule @Plain matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  %four = arith.constant 4.0 : f64
  %narrow = arith.cmpf ole, %cols, %four : f64
  optim.yield %narrow : i1
}
// expected-error @below {{expected one route for parameter 'small' of shape [4, 4], found 2}}
optim.parameter @small shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected a route for parameter 'large' of shape [5, 5], found none that claims it}}
// expected-note @below {{a claim for 'rest' takes every parameter that no other takes}}
optim.parameter @large shape [5, 5] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected route Short to take all blocks of parameter 'divided' or none, found a condition that takes blocks of 4 x 6 and not of 8 x 6}}
optim.parameter @divided shape [12, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 4], [4, 12]> aliases []

// -----

// A power of two sizes is left to the step, so no route can ask for it.
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected a condition that follows from rows, cols and numel}}
optim.route @Plain rule @Plain matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  %power = math.powf %rows, %cols : f64
  %small = arith.cmpf ole, %power, %numel : f64
  optim.yield %small : i1
}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// All blocks of a parameter take one rule.
optim.rule @T.tall hyperparameters [] states [#optim.state<"L", f32, [cols, cols], 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %L: tensor<?x?xf32, #optim.kind<[cols, cols]>>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %L : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[cols, cols]>>
}
optim.rule @T hyperparameters [] states [#optim.state<"L", f32, [rows, rows], 0.0 : f64, false>] needs_matrix tall @T.tall {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %L: tensor<?x?xf32, #optim.kind<[rows, rows]>>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %L : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[rows, rows]>>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @T rule @T rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{parameter 'w': expected blocks that all have at most as many rows as columns, or all more, because optimizer T is wide, found 2 x 4 and 6 x 4}}
optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 8]> aliases []

// -----

// Numbers of f16 are not rounded by chance.
optim.rule @Chance hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %t = optim.splat %step : tensor<1x1xf32>
  %u = optim.random uniform16 seed %t, %t step %t, %t call 0 : tensor<1x1xf32> to tensor<?x?xf32>
  // expected-note @below {{it is rounded here}}
  %rounded = optim.stochastic %grad, %u of parameter : tensor<?x?xf32> to tensor<?x?xbf16>
  %result = arith.extf %rounded : tensor<?x?xbf16> to tensor<?x?xf32>
  optim.yield %result : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-note @below {{route Chance claims it}}
optim.route @Chance rule @Chance rest patterns [] except [] defaults [] missing_grad error
// expected-error @below {{parameter 'b': expected a bf16 or f32 parameter, because optimizer Chance rounds it by chance, found f16}}
optim.parameter @b shape [4] batch 0 type f16 gradient f32 mesh @world placements [#optim.replicate] aliases []
