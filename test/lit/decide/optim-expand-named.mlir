// RUN: stepc-opt %s --optim-expand-named | FileCheck %s --implicit-check-not=optim.lerp --implicit-check-not=optim.momentum --implicit-check-not=optim.decay

// Interpolation rounds as a difference, a product and a sum.
// CHECK-LABEL: optim.rule @Lerp
// CHECK-NEXT: ^bb0(%[[FROM:.*]]: tensor<?x?xf32>, %[[TO:.*]]: tensor<?x?xf32>, %[[LR:[a-z0-9]*]]: f64
// CHECK-NEXT: %[[WEIGHT:.*]] = optim.splat %[[LR]]
// CHECK-NEXT: %[[DIFFERENCE:.*]] = arith.subf %[[TO]], %[[FROM]] : tensor<?x?xf32>
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[WEIGHT]], %[[DIFFERENCE]] : tensor<?x?xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[FROM]], %[[SCALED]] : tensor<?x?xf32>
// CHECK-NEXT: optim.yield %[[SUM]]
optim.rule @Lerp hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %w = optim.splat %lr : tensor<?x?xf32>
  %p = optim.lerp %param, %grad, %w : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// Momentum rounds as a product and a sum, the decayed state first.
// CHECK-LABEL: optim.rule @Momentum
// CHECK-NEXT: ^bb0(%[[STATE:.*]]: tensor<?x?xf32>, %[[GRADIENT:.*]]: tensor<?x?xf32>, %[[LR:[a-z0-9]*]]: f64
// CHECK-NEXT: %[[DECAY:.*]] = optim.splat %[[LR]]
// CHECK-NEXT: %[[DECAYED:.*]] = arith.mulf %[[DECAY]], %[[STATE]] : tensor<?x?xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[DECAYED]], %[[GRADIENT]] : tensor<?x?xf32>
// CHECK-NEXT: optim.yield %[[SUM]]
optim.rule @Momentum hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %d = optim.splat %lr : tensor<?x?xf32>
  %p = optim.momentum %param, %grad, %d : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// The factor of weight decay is computed in f64 and rounded once.
// CHECK-LABEL: optim.rule @Decay
// CHECK-NEXT: ^bb0(%[[PARAMETER:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %[[LR:.*]]: f64, %[[WD:[a-z0-9]*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[LR]], %[[WD]] : f64
// CHECK-NEXT: %[[FACTOR:.*]] = arith.subf %[[ONE]], %[[PRODUCT]] : f64
// CHECK-NEXT: %[[SPLAT:.*]] = optim.splat %[[FACTOR]] : tensor<?x?xf32>
// CHECK-NEXT: %[[RESULT:.*]] = arith.mulf %[[SPLAT]], %[[PARAMETER]] : tensor<?x?xf32>
// CHECK-NEXT: optim.yield %[[RESULT]]
optim.rule @Decay hyperparameters ["lr", "wd"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %wd: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = optim.decay %param, %lr, %wd : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// Row values expand in their own shape.
// CHECK-LABEL: optim.rule @Rows
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<?x1xf32>
// CHECK-NEXT: arith.addf %{{.*}}, %{{.*}} : tensor<?x1xf32>
optim.rule @Rows hyperparameters ["lr"] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %d = optim.splat %lr : tensor<?x1xf32>
  %r = optim.reduce sum %grad : tensor<?x?xf32> to tensor<?x1xf32>
  %v1 = optim.momentum %v, %r, %d : tensor<?x1xf32>
  optim.yield %param, %v1 : tensor<?x?xf32>, tensor<?x1xf32>
}
