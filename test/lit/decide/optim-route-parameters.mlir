// RUN: stepc-opt %s -split-input-file --optim-route-parameters | FileCheck %s --implicit-check-not=optim.frozen
// RUN: stepc-opt %s -split-input-file --optim-route-parameters --remark-policy=all --remarks-filter=optim-route-parameters -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// One optional pattern is unmatched, and said to be.
// REMARK: remark: [Missed] optional-pattern-unmatched | Category:optim-route-parameters | Reason="no parameter has such a name", pattern=lm_head*, route=head
// REMARK-NOT: [Missed]

// A matrix route claims matrices and declared stacks of them; the rest goes to the other.
// CHECK-LABEL: @matrix_and_rest
// CHECK: optim.parameter @w {{.*}} route @Matrix
// CHECK: optim.parameter @experts {{.*}} route @Matrix
// CHECK: optim.parameter @bias {{.*}} route @Plain
// CHECK: optim.parameter @scalar {{.*}} route @Plain
module @matrix_and_rest {
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
optim.route @Matrix rule @Matrix matrix patterns [] except [] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @experts shape [2, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @bias shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @scalar shape [] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// Patterns match whole names, in characters and not in bytes, and know no other negation than `!`; what a pattern does not name is not claimed.
// CHECK-LABEL: @patterns
// CHECK: optim.parameter @h.0.w {{.*}} route @Layers
// CHECK: optim.parameter @h.11.w {{.*}} route @Layers
// CHECK: optim.parameter @wte {{.*}} route @Others
// CHECK: optim.parameter @xh.0.w {{.*}} route @Others
// CHECK: optim.parameter @"{{.*}}" {{.*}} route @Others
module @patterns {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Layers rule @Plain patterns ["h.*.w"] except [] defaults [] missing_grad error
optim.route @Others rule @Plain patterns ["wt[!^a]", "x?.[0-9].w", "[\CE\B1-\CF\89]?"] except [] defaults [] missing_grad error
optim.parameter @h.0.w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @h.11.w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @wte shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @xh.0.w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// The Greek letters beta and gamma.
optim.parameter @"\CE\B2\CE\B3" shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// What a route excepts goes to the rest.
// CHECK-LABEL: @except
// CHECK: optim.parameter @w {{.*}} route @Matrix
// CHECK: optim.parameter @embed.w {{.*}} route @Plain
// CHECK: optim.parameter @lm_head {{.*}} route @Plain
module @except {
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
optim.route @Matrix rule @Matrix matrix patterns [] except ["*embed*", "lm_head"] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @embed.w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @lm_head shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// A tied parameter is known by all its names, to patterns and to except.
// CHECK-LABEL: @aliases
// CHECK: optim.parameter @a {{.*}} route @Named
// CHECK: optim.parameter @b {{.*}} route @Others
module @aliases {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Named rule @Plain patterns ["tied", "b"] except ["head"] defaults [] missing_grad error
optim.route @Others rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases ["tied"]
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases ["head", "other"]
}

// -----

// Three axes that a matrix route does not name, because it excepts them, go to the rest.
// CHECK-LABEL: @convolution
// CHECK: optim.parameter @conv {{.*}} route @Plain
module @convolution {
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
optim.route @Matrix rule @Matrix matrix patterns [] except ["conv"] defaults [] missing_grad error
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @conv shape [4, 6, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// A route that is set stays.
// CHECK-LABEL: @kept
// CHECK: optim.parameter @a {{.*}} route @Second
// CHECK: optim.parameter @b {{.*}} route @First
module @kept {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @First rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.route @Second rule @Plain patterns ["b"] except ["b"] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Second
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// Frozen parameters match patterns of either kind, by an alias too, and leave with the pass; what is optional may
// match nothing.
// CHECK-LABEL: @frozen
// CHECK: optim.route @head {{.*}} optional ["lm_head*"]
// CHECK: optim.parameter @a {{.*}} route @Rest
module @frozen {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @head rule @Plain patterns ["lm_head*", "embed*"] optional ["lm_head*"] except [] defaults [] missing_grad error
optim.route @Matrix rule @Plain matrix patterns ["tied.*"] except ["bias"] defaults [] missing_grad error
optim.route @Rest rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.frozen @embed.weight aliases ["tied.weight"]
optim.frozen @bias aliases []
}

// -----

// A condition on sizes takes matrices whose blocks it holds for: of a parameter of four blocks, of each of them. A
// vector has no matrix's sizes.
// CHECK-LABEL: @sizes
// CHECK: optim.route @Small {{.*}} missing_grad error where {
// CHECK-NEXT: ^bb0(%[[ROWS:.*]]: f64, %{{.*}}: f64, %[[NUMEL:.*]]: f64):
// CHECK: optim.yield %{{.*}} : i1
// CHECK: optim.parameter @w {{.*}} route @Small
// CHECK: optim.parameter @wide {{.*}} route @Plain
// CHECK: optim.parameter @long {{.*}} route @Plain
// CHECK: optim.parameter @divided {{.*}} route @Small
// CHECK: optim.parameter @stack {{.*}} route @Small
// CHECK: optim.parameter @bias {{.*}} route @Plain
module @sizes {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @Small rule @Plain matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  %four = arith.constant 4.0 : f64
  %short = arith.cmpf ole, %rows, %four : f64
  %most = arith.constant 24.0 : f64
  %few = arith.cmpf ole, %numel, %most : f64
  %both = arith.andi %short, %few : i1
  optim.yield %both : i1
}
optim.route @Plain rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @wide shape [4, 7] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @long shape [5, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @divided shape [12, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 4], [4, 8], [8, 10], [10, 12]> aliases []
optim.parameter @stack shape [9, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @bias shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// A rule of tall matrices stays if a parameter takes it.
// CHECK-LABEL: @tall
// CHECK: optim.rule @T.tall
// CHECK: optim.rule @T {{.*}} tall @T.tall {
module @tall {
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
optim.parameter @wide shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @tall shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// Otherwise nothing is left of it. A square matrix is not tall.
// CHECK-LABEL: @square
// CHECK-NOT: T.tall
// CHECK: optim.rule @T hyperparameters
// CHECK-NOT: T.tall
module @square {
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
optim.parameter @square shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}
