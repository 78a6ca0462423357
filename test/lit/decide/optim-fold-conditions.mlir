// RUN: stepc-opt %s --optim-cut-spaces --optim-fold-conditions | FileCheck %s
// RUN: stepc-opt %s --optim-cut-spaces --optim-fold-conditions --remark-policy=all --remarks-filter=optim-fold-conditions -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Passed] conditions-folded | Category:optim-fold-conditions | group=g0, operations=1, rule=Choice
// REMARK: remark: [Passed] conditions-folded | Category:optim-fold-conditions | group=g4, operations=2, rule=Logic
// REMARK-NOT: group=g6
// What is decided already stays as it is.
// RUN: stepc-opt %s --optim-cut-spaces --optim-fold-conditions -o %t && stepc-opt %t --optim-fold-conditions | diff %t -

// A matrix with more rows than columns is orthogonalized, another takes the root mean square of its rows. No copy
// has both, and none compares sizes. Scalars are left to the step.
// CHECK-LABEL: optim.rule @Choice hyperparameters
// CHECK-LABEL: optim.rule @Choice.folded_0 {{.*}} written @Choice {
// CHECK-NOT: {{optim.orthogonalize|arith.cmpf}}
// CHECK: optim.reduce rms %{{.*}} {optim.space = #optim.space<matrix>}
// CHECK: arith.maximumf %{{.*}}, %{{.*}} : f64
// CHECK-NOT: arith.select
// CHECK-LABEL: optim.rule @Choice.folded {{.*}} written @Choice {
// CHECK-NOT: {{optim.reduce|arith.cmpf}}
// CHECK: optim.orthogonalize %{{.*}} {optim.space = #optim.space<matrix>}
// CHECK: arith.maximumf %{{.*}}, %{{.*}} : f64
// CHECK-NOT: arith.select
optim.rule @Choice hyperparameters ["lr"] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %tall = arith.cmpf ogt, %rows, %cols : f64
  %number = arith.select %tall, %one, %zero : f64
  %all = optim.splat %number : tensor<?x?xf32>
  %none = optim.splat %zero : tensor<?x?xf32>
  %isTall = arith.cmpf one, %all, %none : tensor<?x?xf32>
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-7 : tensor<?x?xf32>
  %r = optim.reduce rms %grad : tensor<?x?xf32> to tensor<?x1xf32>
  %b = optim.broadcast %r : tensor<?x1xf32> to tensor<?x?xf32>
  %u = arith.select %isTall, %o, %b : tensor<?x?xi1>, tensor<?x?xf32>
  %most = arith.maximumf %rows, %cols : f64
  %scale = optim.splat %most : tensor<?x?xf32>
  %s = arith.mulf %u, %scale : tensor<?x?xf32>
  %p = arith.subf %param, %s : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// With 100 elements or more, what is always true leaves `and` to the other operand, and decides `or` alone. With fewer
// it is the other way round.
// CHECK-LABEL: optim.rule @Logic hyperparameters
// CHECK-LABEL: optim.rule @Logic.folded_1 {{.*}} written @Logic {
// CHECK-NEXT: ^bb0(%[[PARAM:[a-z0-9]+]]: tensor<?x?xf32>, %[[GRAD:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK-NEXT: %[[POSITIVE:.*]] = arith.cmpf ogt, %[[GRAD]], %[[PARAM]]
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %[[POSITIVE]], %[[PARAM]], %[[GRAD]]
// CHECK-NEXT: optim.yield %[[CHOSEN]]
// CHECK-LABEL: optim.rule @Logic.folded {{.*}} written @Logic {
// CHECK-NEXT: ^bb0(%[[PARAM:[a-z0-9]+]]: tensor<?x?xf32>, %[[GRAD:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK-NEXT: %[[POSITIVE:.*]] = arith.cmpf ogt, %[[GRAD]], %[[PARAM]]
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %[[POSITIVE]], %[[GRAD]], %[[PARAM]]
// CHECK-NEXT: optim.yield %[[CHOSEN]]
optim.rule @Logic hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %hundred = arith.constant 100.0 : f64
  %many = arith.cmpf oge, %numel, %hundred : f64
  %number = arith.select %many, %one, %zero : f64
  %all = optim.splat %number : tensor<?x?xf32>
  %none = optim.splat %zero : tensor<?x?xf32>
  %isMany = arith.cmpf one, %all, %none : tensor<?x?xf32>
  %positive = arith.cmpf ogt, %grad, %param : tensor<?x?xf32>
  %both = arith.andi %isMany, %positive : tensor<?x?xi1>
  %either = arith.ori %positive, %isMany : tensor<?x?xi1>
  %x = arith.select %both, %grad, %param : tensor<?x?xi1>, tensor<?x?xf32>
  %y = arith.select %either, %x, %grad : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %y : tensor<?x?xf32>
}

// `and` of what is always true and always false stays where another operation needs it: it is never its second operand.
// CHECK-LABEL: optim.rule @Both hyperparameters
// CHECK-LABEL: optim.rule @Both.folded {{.*}} written @Both {
// CHECK: %[[AND:.*]] = arith.andi
// CHECK: arith.xori %[[AND]], %
// CHECK-NOT: arith.select
// CHECK: optim.yield
optim.rule @Both hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %far = arith.subf %rows, %cols : f64
  %distance = math.absf %far : f64
  %all = optim.splat %distance : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f64
  %none = optim.splat %zero : tensor<?x?xf32>
  %differ = arith.cmpf one, %all, %none : tensor<?x?xf32>
  %agree = arith.cmpf oeq, %all, %none : tensor<?x?xf32>
  %positive = arith.cmpf ogt, %grad, %param : tensor<?x?xf32>
  %both = arith.andi %differ, %agree : tensor<?x?xi1>
  %x = arith.xori %both, %positive : tensor<?x?xi1>
  %one = arith.uitofp %x : tensor<?x?xi1> to tensor<?x?xf32>
  %y = arith.select %differ, %one, %param : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %y : tensor<?x?xf32>
}

// States that keep their values are not stored, whatever their types: a value of bf16 is rounded to bf16 already.
// CHECK-LABEL: optim.rule @Kept hyperparameters
// CHECK-LABEL: optim.rule @Kept.folded {{.*}} written @Kept {
// CHECK-NEXT: ^bb0(%[[PARAM:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %[[C:.*]]: tensor<1x?xf32>, %[[K:.*]]: tensor<?x?xf32>, %{{.*}}: f64, %
// CHECK-NEXT: optim.yield %[[PARAM]], %[[C]], %[[K]] : {{.*}} {optim.writes = [unit, unit, unit]}
optim.rule @Kept hyperparameters [] states [#optim.state<"c", bf16, cols, 0.0 : f64, false>, #optim.state<"k", f16, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %c: tensor<1x?xf32>, %k: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %allRows = optim.splat %rows : tensor<?x?xf32>
  %allCols = optim.splat %cols : tensor<?x?xf32>
  %tall = arith.cmpf ogt, %allRows, %allCols : tensor<?x?xf32>
  %theseRows = optim.splat %rows : tensor<1x?xf32>
  %theseCols = optim.splat %cols : tensor<1x?xf32>
  %tallToo = arith.cmpf ogt, %theseRows, %theseCols : tensor<1x?xf32>
  %c1 = arith.select %tallToo, %c, %theseRows : tensor<1x?xi1>, tensor<1x?xf32>
  %c2 = arith.truncf %c1 : tensor<1x?xf32> to tensor<1x?xbf16>
  %c3 = arith.extf %c2 : tensor<1x?xbf16> to tensor<1x?xf32>
  %k1 = arith.select %tall, %k, %grad : tensor<?x?xi1>, tensor<?x?xf32>
  %k2 = arith.truncf %k1 : tensor<?x?xf32> to tensor<?x?xf16>
  %k3 = arith.extf %k2 : tensor<?x?xf16> to tensor<?x?xf32>
  optim.yield %param, %c3, %k3 : tensor<?x?xf32>, tensor<1x?xf32>, tensor<?x?xf32>
}

// 192.064 and 192 are one number of bf16, so nothing is known of such a tensor.
// CHECK-LABEL: optim.rule @Rounded hyperparameters
// CHECK-NOT: optim.rule @Rounded.folded
optim.rule @Rounded hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %more = arith.constant 192.064 : f64
  %less = arith.constant 192.0 : f64
  %a = optim.splat %more : tensor<?x?xbf16>
  %b = optim.splat %less : tensor<?x?xbf16>
  %same = arith.cmpf oeq, %a, %b : tensor<?x?xbf16>
  %x = arith.select %same, %grad, %param : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %x : tensor<?x?xf32>
}

// What also depends on the step, or on a power, is not decided.
// CHECK-LABEL: optim.rule @Open hyperparameters
// CHECK-NOT: optim.rule
optim.rule @Open hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %power = math.powf %rows, %cols : f64
  %large = arith.cmpf ogt, %power, %step : f64
  %number = arith.select %large, %one, %zero : f64
  %all = optim.splat %number : tensor<?x?xf32>
  %none = optim.splat %zero : tensor<?x?xf32>
  %isLarge = arith.cmpf one, %all, %none : tensor<?x?xf32>
  %x = arith.select %isLarge, %grad, %param : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %x : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @tall shape [20, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @high shape [30, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @wide shape [8, 20] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @few shape [3, 20] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @many shape [10, 10] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// A stack of matrices is counted matrix by matrix.
optim.parameter @stack shape [4, 5, 5] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @open shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// A parameter of f32 is not rounded by chance. A state of bf16 is, and so is a parameter of bf16.
// CHECK-LABEL: optim.rule @Chance hyperparameters
// CHECK: optim.stochastic %{{.*}}, %{{.*}} of parameter
// CHECK-LABEL: optim.rule @Chance.folded {{.*}} written @Chance {
// CHECK: optim.stochastic %{{[a-z0-9]*}}, %{{[a-z0-9]*}} {
// CHECK-NOT: optim.stochastic
// CHECK: optim.yield
optim.rule @Chance hyperparameters ["seed"] states [#optim.state<"m", bf16, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %seed: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %seed : tensor<1x1xf32>
  %t = optim.splat %step : tensor<1x1xf32>
  %u = optim.random uniform16 seed %s, %s step %t, %t call 0 : tensor<1x1xf32> to tensor<?x?xf32>
  %v = optim.random uniform16 seed %s, %s step %t, %t call 1 : tensor<1x1xf32> to tensor<?x?xf32>
  %sum = arith.addf %m, %grad : tensor<?x?xf32>
  %narrow = optim.stochastic %sum, %u : tensor<?x?xf32> to tensor<?x?xbf16>
  %new = arith.extf %narrow : tensor<?x?xbf16> to tensor<?x?xf32>
  %moved = arith.subf %param, %new : tensor<?x?xf32>
  %rounded = optim.stochastic %moved, %v of parameter : tensor<?x?xf32> to tensor<?x?xbf16>
  %result = arith.extf %rounded : tensor<?x?xbf16> to tensor<?x?xf32>
  optim.yield %result, %new : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.route @Chance rule @Chance patterns ["chance*"] except [] defaults [0.0] missing_grad error
optim.parameter @chance32 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @chance16 shape [8, 8] batch 0 type bf16 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// CHECK: optim.group @chances32 rule @Chance.folded parameters
// CHECK: optim.group @chances16 rule @Chance parameters
optim.group @chances32 rule @Chance parameters [@chance32]
optim.group @chances16 rule @Chance parameters [@chance16]
// CHECK: optim.group @g0 rule @Choice.folded parameters
// CHECK: optim.group @g1 rule @Choice.folded parameters
// CHECK: optim.group @g2 rule @Choice.folded_0 parameters
// CHECK: optim.group @g3 rule @Choice.folded_0 parameters
// CHECK: optim.group @g4 rule @Logic.folded parameters
// CHECK: optim.group @g5 rule @Logic.folded_1 parameters
// CHECK: optim.group @g6 rule @Open parameters
// CHECK: optim.group @g7 rule @Both.folded parameters
// CHECK: optim.group @g8 rule @Kept.folded parameters
// CHECK: optim.group @g9 rule @Rounded parameters
optim.group @g0 rule @Choice parameters [@tall]
optim.group @g1 rule @Choice parameters [@high]
optim.group @g2 rule @Choice parameters [@wide]
optim.group @g3 rule @Choice parameters [@few]
optim.group @g4 rule @Logic parameters [@many]
optim.group @g5 rule @Logic parameters [@stack]
optim.group @g6 rule @Open parameters [@open]
optim.group @g7 rule @Both parameters [@tall]
optim.group @g8 rule @Kept parameters [@high]
optim.group @g9 rule @Rounded parameters [@wide]
