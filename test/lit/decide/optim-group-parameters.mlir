// RUN: stepc-opt %s -split-input-file --optim-group-parameters | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-group-parameters --remark-policy=all --remarks-filter=optim-group-parameters -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// REMARK: remark: [Passed] parameters-grouped | Category:optim-group-parameters | groups=10, parameters=12

// Groups are equal in rule, shape, batch, types, mesh and placements, whatever the route; they are numbered as their
// first parameters stand.
// CHECK-LABEL: @differences
// CHECK: optim.group @group.0 rule @Plain parameters [@a, @e, @tied]
// CHECK-NEXT: optim.group @group.1 rule @Other parameters [@rule]
// CHECK-NEXT: optim.group @group.2 rule @Plain parameters [@shape]
// CHECK-NEXT: optim.group @group.3 rule @Plain parameters [@type]
// CHECK-NEXT: optim.group @group.4 rule @Plain parameters [@gradient]
// CHECK-NEXT: optim.group @group.5 rule @Plain parameters [@mesh]
// CHECK-NEXT: optim.group @group.6 rule @Plain parameters [@placement]
// CHECK-NEXT: optim.group @group.7 rule @Plain parameters [@states]
// CHECK-NEXT: optim.group @group.8 rule @Plain parameters [@stack]
// CHECK-NEXT: optim.group @group.9 rule @Plain parameters [@batch]
// CHECK-NOT: optim.group
module @differences {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.rule @Other hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.mesh @second axes ["dp"] sizes [2] ranks [0, 1]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.route @Q rule @Plain patterns ["e"] except [] defaults [] missing_grad error
optim.route @O rule @Other patterns ["rule"] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @rule shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @O
optim.parameter @shape shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @e shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Q
optim.parameter @type shape [4, 6] batch 0 type bf16 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @gradient shape [4, 6] batch 0 type f32 gradient bf16 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @mesh shape [4, 6] batch 0 type f32 gradient f32 mesh @second placements [#optim.replicate] aliases [] route @P
optim.parameter @placement shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @P
optim.parameter @states shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases [] route @P
optim.parameter @tied shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases ["x"] route @P
optim.parameter @stack shape [2, 4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @batch shape [2, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
}

// -----

// Contributions to a partial gradient are added up where the states are, each element once: of what is replicated there
// along the axis that the gradient is partial on, every rank adds up a range.
// CHECK-LABEL: @partial
// CHECK: optim.group @group.0 rule @Plain parameters [@replicated] reduced [#optim.flat, #optim.replicate]
// CHECK-NEXT: optim.group @group.1 rule @Plain parameters [@sharded] reduced [#optim.shard<0>, #optim.flat]
// CHECK-NEXT: optim.group @group.2 rule @States parameters [@states] reduced [#optim.owned<1>, #optim.replicate]
// CHECK-NEXT: optim.group @group.3 rule @Plain parameters [@range] reduced [#optim.flat, #optim.flat<0, 5, 24>]
// CHECK-NEXT: optim.group @group.4 rule @Plain parameters [@ranges] reduced [#optim.flat<0, 5, 10, 15, 24>, #optim.flat, #optim.replicate]
// CHECK-NOT: optim.group
module @partial {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.rule @States hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @two axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.mesh @three axes ["a", "b", "c"] sizes [2, 2, 2] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.route @S rule @States patterns ["states"] except [] defaults [] missing_grad error
optim.parameter @replicated shape [4, 6] batch 0 type f32 gradient f32 mesh @two placements [#optim.replicate, #optim.replicate] gradient_placements [#optim.partial_sum, #optim.replicate] aliases [] route @P
optim.parameter @sharded shape [4, 6] batch 0 type f32 gradient f32 mesh @two placements [#optim.shard<0>, #optim.replicate] gradient_placements [#optim.partial_average, #optim.partial_sum] aliases [] route @P
optim.parameter @states shape [4, 6] batch 0 type f32 gradient f32 mesh @two placements [#optim.replicate, #optim.replicate] gradient_placements [#optim.partial_sum, #optim.replicate] state_placements [#optim.owned<1>, #optim.replicate] aliases [] route @S
optim.parameter @range shape [4, 6] batch 0 type f32 gradient f32 mesh @two placements [#optim.replicate, #optim.flat<0, 5, 24>] gradient_placements [#optim.partial_sum, #optim.partial_sum] aliases [] route @P
optim.parameter @ranges shape [4, 6] batch 0 type f32 gradient f32 mesh @three placements [#optim.flat<0, 5, 10, 15, 24>, #optim.flat, #optim.replicate] gradient_placements [#optim.partial_sum, #optim.partial_sum, #optim.partial_sum] aliases [] route @P
}

// -----

// A group has all parts of one size of divided parameters, where the rule sees blocks.
// CHECK-LABEL: @divided
// CHECK: optim.group @group.0 rule @Sees parameters [@a, @b] parts [0]
// CHECK-NEXT: optim.group @group.1 rule @Sees parameters [@a, @b] parts [1]
// CHECK-NEXT: optim.group @group.2 rule @Sees parameters [@other] parts [0]
// CHECK-NEXT: optim.group @group.3 rule @Sees parameters [@other] parts [1]
// Experts and their projections are equal, and so are runs apart from each other.
// CHECK-NEXT: optim.group @group.4 rule @Sees parameters [@experts, @more] parts [0, 1, 2, 3]
// CHECK-NEXT: optim.group @group.5 rule @Sees parameters [@mixed] parts [0, 2]
// CHECK-NEXT: optim.group @group.6 rule @Sees parameters [@mixed] parts [1, 3]
// CHECK-NEXT: optim.group @group.7 rule @Sees parameters [@conv]{{$}}
// Axes that are flattened otherwise are another matrix.
// CHECK-NEXT: optim.group @group.8 rule @Sees parameters [@tall]{{$}}
// CHECK-NEXT: optim.group @group.9 rule @Plain parameters [@plain]{{$}}
// CHECK-NOT: optim.group
module @divided {
optim.rule @Sees hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %cols : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @S rule @Sees rest patterns [] except [] defaults [] missing_grad error
optim.route @P rule @Plain patterns ["plain"] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 3], [3, 4]> aliases [] route @S
optim.parameter @other shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 1], [1, 4]> aliases [] route @S
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 3], [3, 4]> aliases [] route @S
optim.parameter @experts shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 2], [2, 4], [4, 6], [6, 8]> aliases [] route @S
optim.parameter @more shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 2], [2, 4], [4, 6], [6, 8]> aliases [] route @S
optim.parameter @mixed shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 3], [3, 4], [4, 5, 6, 8], [5, 6]> aliases [] route @S
optim.parameter @conv shape [4, 3, 2] batch 0 flatten 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @S
optim.parameter @tall shape [4, 3, 2] batch 0 flatten 2 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @S
optim.parameter @plain shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] blocks <rows, [0, 3], [3, 4]> aliases [] route @P
}

// -----

// What is grouped stays so.
// CHECK-LABEL: @grouped
// CHECK: optim.group @mine rule @Plain parameters [@b, @a]
// CHECK-NOT: optim.group
module @grouped {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.parameter @b shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @P
optim.group @mine rule @Plain parameters [@b, @a]
}

// -----

// An elementwise rule sees no matrices, so that each parameter is one, whose columns begin where shards are cut.
// Where lists differ, few matrices stay apart, because each may be moved in a wave of its own.
// CHECK-LABEL: @joins
// CHECK: optim.group @group.0 rule @Plain parameters [@conv] joined 1{{$}}
// CHECK-NEXT: optim.group @group.1 rule @Plain parameters [@experts] joined 2{{$}}
// CHECK-NEXT: optim.group @group.2 rule @Plain parameters [@matrix]{{$}}
// CHECK-NEXT: optim.group @group.3 rule @Plain parameters [@apart]{{$}}
// CHECK-NEXT: optim.group @group.4 rule @Plain parameters [@many] joined 1{{$}}
// CHECK-NEXT: optim.group @group.5 rule @Row parameters [@state]{{$}}
// CHECK-NEXT: optim.group @group.6 rule @Matrix parameters [@whole]{{$}}
// CHECK-NOT: optim.group
module @joins {
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.rule @Row hyperparameters [] states [#optim.state<"r", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %r: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %r : tensor<?x?xf32>, tensor<?x1xf32>
}
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @P rule @Plain rest patterns [] except [] defaults [] missing_grad error
optim.route @R rule @Row patterns ["state"] except [] defaults [] missing_grad error
optim.route @M rule @Matrix patterns ["whole"] except [] defaults [] missing_grad error
optim.parameter @conv shape [8, 6, 3, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @P
optim.parameter @experts shape [8, 6, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<2>] aliases [] route @P
optim.parameter @matrix shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases [] route @P
optim.parameter @apart shape [8, 6, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases [] route @P
optim.parameter @many shape [524288, 6, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases [] route @P
optim.parameter @state shape [8, 6, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @whole shape [8, 6, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @M
}

// -----

// Tall matrices are groups of the rule that is for them, whatever the route.
// CHECK-LABEL: @orientations
// CHECK: optim.group @group.0 rule @T parameters [@wide]
// CHECK-NEXT: optim.group @group.1 rule @T.tall parameters [@tall]
module @orientations {
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
optim.parameter @wide shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @T
optim.parameter @tall shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @T
}
