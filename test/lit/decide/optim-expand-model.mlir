// RUN: stepc-opt %s -split-input-file --optim-expand-model | FileCheck %s --implicit-check-not=optim.model_value
// RUN: stepc-opt %s -split-input-file --optim-expand-model --remark-policy=all --remarks-filter=optim-expand-model -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK
// REMARK: remark: [Passed] model-expanded | Category:optim-expand-model | numbers=2
// REMARK: remark: [Passed] model-expanded | Category:optim-expand-model | numbers=1
// REMARK: remark: [Passed] model-expanded | Category:optim-expand-model | numbers=0
// REMARK: remark: [Passed] model-expanded | Category:optim-expand-model | numbers=3
// REMARK: model-expanded | Category:optim-expand-model | numbers=3
// REMARK-NOT: remark

// The reduction and the scalar that is no literal get numbers, in the order of the text. What nothing reads gets none, and is gone.
// CHECK-LABEL: module @clip
// CHECK: optim.model hyperparameters ["max_norm"] defaults [1.000000e+00] values ["total"] {
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %[[GRAD:.*]]: tensor<?x?xf32>, %[[MAX:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT: %[[TOTAL:.*]] = optim.reduce norm %[[GRAD]] {optim.number = 0 : i64}
// CHECK-NEXT: %[[MOST:.*]] = optim.splat %[[MAX]] {optim.number = 1 : i64}
// CHECK-NEXT: %[[QUOTIENT:.*]] = arith.divf %[[MOST]], %[[TOTAL]]
// CHECK-NEXT: %[[LITERAL:.*]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: optim.splat %[[LITERAL]] : tensor<1x1xf32>
// CHECK-NOT: optim.reduce

// A rule computes the rest from the numbers. It reads the new gradient for the old one, and the value that it names.
// CHECK-LABEL: optim.rule @Sgd
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %[[GRAD:.*]]: tensor<?x?xf32>, %[[LR:[^ ]*]]: f64,
// CHECK-NEXT: %[[N0:.*]] = optim.model_number 0 : f64
// CHECK-NEXT: %[[TOTAL:.*]] = optim.splat %[[N0]] : tensor<1x1xf32>
// CHECK-NEXT: %[[N1:.*]] = optim.model_number 1 : f64
// CHECK-NEXT: %[[MOST:.*]] = optim.splat %[[N1]] : tensor<1x1xf32>
// CHECK-NEXT: %[[QUOTIENT:.*]] = arith.divf %[[MOST]], %[[TOTAL]]
// CHECK: %[[LEAST:.*]] = arith.minimumf %{{.*}}, %[[QUOTIENT]]
// CHECK-NEXT: %[[FACTORS:.*]] = optim.broadcast %[[LEAST]]
// CHECK-NEXT: %[[NEW:.*]] = arith.mulf %[[FACTORS]], %[[GRAD]]
// CHECK-NEXT: %[[ALL:.*]] = optim.broadcast %[[TOTAL]]
// CHECK-NEXT: %[[P:.*]] = arith.divf %[[NEW]], %[[ALL]]
// CHECK-NEXT: optim.yield %[[P]]

// Values that a rule reads twice, and what it computes of them, are one. A rule that reads the parameter alone keeps nothing of the model.
// CHECK-LABEL: optim.rule @Same
// CHECK-NEXT: ^bb0
// CHECK-NEXT: optim.model_number 0
// CHECK-COUNT-1: arith.divf
// CHECK-NOT: arith.divf
// CHECK-LABEL: optim.rule @Decay
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %{{.*}}: f64,
// CHECK-NEXT: %[[DOUBLE:.*]] = arith.addf %[[PARAM]], %[[PARAM]]
// CHECK-NEXT: optim.yield %[[DOUBLE]]

// A parameter stands for the model, behind all others: an element on each rank of all meshes, the model's hyperparameters, a rule
// that changes nothing, and a route by name.
// CHECK: optim.parameter @b
// CHECK-NEXT: optim.mesh @model axes ["ranks"] sizes [3] ranks [0, 1, 5]
// CHECK-NEXT: optim.rule @model hyperparameters ["max_norm"] states [] {
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: optim.yield %[[PARAM]] : tensor<?x?xf32>
// CHECK-NEXT: }
// CHECK-NEXT: optim.route @model rule @model patterns ["model"] except [] defaults [1.000000e+00] missing_grad zero
// CHECK-NEXT: optim.parameter @model shape [3] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
module @clip {
  optim.mesh @world axes ["dp"] sizes [2] ranks [1, 0]
  optim.mesh @other axes ["dp"] sizes [2] ranks [5, 1]
  optim.model hyperparameters ["max_norm"] defaults [1.0] values ["total"] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %max_norm: f64, %step: f64):
    %idle = optim.reduce max %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %most = optim.splat %max_norm : tensor<1x1xf32>
    %factor = arith.divf %most, %total : tensor<1x1xf32>
    %c1 = arith.constant 1.0 : f64
    %one = optim.splat %c1 : tensor<1x1xf32>
    %least = arith.minimumf %one, %factor : tensor<1x1xf32>
    %factors = optim.broadcast %least : tensor<1x1xf32> to tensor<?x?xf32>
    %scaled = arith.mulf %factors, %grad : tensor<?x?xf32>
    optim.yield %scaled, %total : tensor<?x?xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %total = optim.model_value "total" : tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %p = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32>
  }
  optim.rule @Same hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %total = optim.model_value "total" : tensor<1x1xf32>
    %again = optim.model_value "total" : tensor<1x1xf32>
    %quotient = arith.divf %total, %again : tensor<1x1xf32>
    %other = arith.divf %again, %total : tensor<1x1xf32>
    %difference = arith.subf %quotient, %other : tensor<1x1xf32>
    %all = optim.broadcast %difference : tensor<1x1xf32> to tensor<?x?xf32>
    %p = arith.mulf %param, %all : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32>
  }
  optim.rule @Decay hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %p = arith.addf %param, %param : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [0.1] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
  optim.parameter @b shape [6] batch 0 type bf16 gradient bf16 mesh @other placements [#optim.replicate] aliases [] route @Sgd
}

// -----

// A mesh of the user may have the name that the model's mesh would have.
// CHECK-LABEL: module @named
// CHECK: optim.mesh @model axes ["dp"] sizes [2] ranks [0, 1]
// CHECK: optim.parameter @w
// CHECK-NEXT: optim.mesh @model. axes ["ranks"] sizes [2] ranks [0, 1]
// CHECK: optim.parameter @model shape [2] {{.*}} mesh @model. placements
module @named {
  optim.mesh @model axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %unit = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %unit : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad skip
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @Sgd
}

// -----

// A module without a model is not changed.
// CHECK-LABEL: module @none
// CHECK-NOT: @model
// CHECK: optim.rule @Sgd
// CHECK: optim.reduce norm %{{.*}} : tensor<?x?xf32> to tensor<1x1xf32>
// CHECK-NOT: @model
module @none {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %idle = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
}

// -----

// A model that computes with elements and literals alone has no number. Without a parameter none stands for the model.
// CHECK-LABEL: module @elementwise
// CHECK-NOT: optim.number
// CHECK: optim.rule @Sgd
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<?x?xf32>, %[[GRAD:.*]]: tensor<?x?xf32>, %{{.*}}: f64,
// CHECK-NEXT: %[[LITERAL:.*]] = arith.constant 2.000000e+00 : f64
// CHECK-NEXT: %[[TWO:.*]] = optim.splat %[[LITERAL]] : tensor<?x?xf32>
// CHECK-NEXT: %[[NEW:.*]] = arith.mulf %[[TWO]], %[[GRAD]]
// CHECK-NEXT: optim.yield %[[NEW]]
// CHECK-NOT: @model
module @elementwise {
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %c2 = arith.constant 2.0 : f64
    %two = optim.splat %c2 : tensor<?x?xf32>
    %new = arith.mulf %two, %grad : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
}

// -----

// Scalars are computed once, and only the results have numbers. A mean counts all elements where no step leaves parameters out.
// CHECK-LABEL: module @scalars
// CHECK: %[[WARM:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK-NEXT: optim.splat %[[WARM]] {optim.number = 0 : i64}
// CHECK-NEXT: %[[MEAN:.*]] = optim.reduce mean %{{.*}} {optim.number = 1 : i64}
// CHECK-NEXT: %[[ALL:.*]] = optim.broadcast %[[MEAN]]
// CHECK-NEXT: %[[OFF:.*]] = arith.subf %{{.*}}, %[[ALL]]
// CHECK-NEXT: optim.reduce rms %[[OFF]] {optim.number = 2 : i64}
// CHECK-LABEL: optim.rule @Sgd
// CHECK-NOT: arith.mulf {{.*}} : f64
// CHECK-DAG: optim.model_number 0 : f64
// CHECK-DAG: optim.model_number 1 : f64
// CHECK-DAG: optim.model_number 2 : f64
// CHECK: optim.yield
module @scalars {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["lr"] defaults [1.0] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64):
    %w = arith.mulf %lr, %step : f64
    %warm = optim.splat %w : tensor<1x1xf32>
    %mean = optim.reduce mean %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
    %off = arith.subf %grad, %all : tensor<?x?xf32>
    %rms = optim.reduce rms %off : tensor<?x?xf32> to tensor<1x1xf32>
    %factor = arith.divf %warm, %rms : tensor<1x1xf32>
    %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.mulf %off, %factors : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad zero
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
}

// -----

// Each state is a number. The rule that stands for the model computes the new values, and no other rule does. A state
// that keeps its value is not stored.
// CHECK-LABEL: module @states
// CHECK: optim.model_state "a" {optim.number = 0 : i64}
// CHECK: optim.model_state "b" {optim.number = 1 : i64}
// CHECK: optim.reduce norm %{{.*}} {optim.number = 2 : i64}
// CHECK: optim.rule @Sgd
// CHECK-NOT: arith.addf
// CHECK: optim.yield
// CHECK: optim.rule @model hyperparameters [] states [#optim.state<"a", f32, one, 2.000000e+00 : f64, false>, #optim.state<"b", f32, one, 0.000000e+00 : f64, false>] {
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %{{.*}}: tensor<1x1xf32>, %[[B:.*]]: tensor<1x1xf32>, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK: %[[N0:.*]] = optim.model_number 0 : f64
// CHECK: %[[OLD:.*]] = optim.splat %[[N0]] : tensor<1x1xf32>
// CHECK: %[[N2:.*]] = optim.model_number 2 : f64
// CHECK: %[[TOTAL:.*]] = optim.splat %[[N2]] : tensor<1x1xf32>
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[TOTAL]]
// CHECK: optim.yield %[[PARAM]], %[[NEW]], %[[B]] : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
module @states {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, one, 2.0 : f64, false>, #optim.state<"b", f32, one, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %a = optim.model_state "a" : tensor<1x1xf32>
    %b = optim.model_state "b" : tensor<1x1xf32>
    %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %new = arith.addf %a, %total : tensor<1x1xf32>
    optim.yield %grad, %new, %b : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %s = optim.splat %lr : tensor<?x?xf32>
    %d = arith.mulf %s, %grad : tensor<?x?xf32>
    optim.yield %d : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [0.1] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
}
