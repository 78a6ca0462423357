// RUN: stepc-opt %s --optim-cut-spaces | FileCheck %s
// RUN: stepc-opt %s --optim-cut-spaces --remark-policy=all --remarks-filter=optim-cut-spaces -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// How many operations of a rule run where.
// REMARK: remark: [Passed] spaces-assigned | Category:optim-cut-spaces | in=3, matrix=1, out=2, rule=Muon
// REMARK: remark: [Passed] spaces-assigned | Category:optim-cut-spaces | in=2, matrix=0, out=0, rule=Elementwise

// Muon crosses at its casts to bf16, two bytes per element each way; the momentum is stored on the way in.
// CHECK-LABEL: optim.rule @Muon
// CHECK: arith.mulf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: arith.truncf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.extf %{{[a-z0-9]+}} : tensor
// CHECK-NEXT: arith.mulf {{.*}} {optim.space = #optim.space<out>}
// CHECK-NEXT: arith.subf {{.*}} {optim.space = #optim.space<out>}
// CHECK-NEXT: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<in>]}
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %t = arith.mulf %s, %m : tensor<?x?xf32>
  %m1 = arith.addf %t, %grad : tensor<?x?xf32>
  %c = arith.truncf %m1 : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %d = arith.mulf %s, %f : tensor<?x?xf32>
  %p = arith.subf %param, %d : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// Without an operation that needs whole blocks all is on shards, and there is one place to store.
// CHECK-LABEL: optim.rule @Elementwise
// CHECK: arith.subf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: optim.yield {{.*}} {optim.writes = [#optim.space<in>, #optim.space<in>]}
optim.rule @Elementwise hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m1 = arith.subf %m, %grad : tensor<?x?xf32>
  %p = arith.addf %param, %m1 : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// Row statistics are made of whole rows: squares and their mean are in matrix space. What is computed from a value per row
// alone, and its broadcast, have no space. So the division is on shards, and a number per row crosses.
// CHECK-LABEL: optim.rule @NorMuon
// CHECK: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.mulf {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: optim.reduce {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<?x1xf32>
// CHECK-NEXT: optim.broadcast %{{[a-z0-9]+}} : tensor<?x1xf32>
// CHECK-NEXT: arith.divf {{.*}} {optim.space = #optim.space<out>}
// CHECK-NEXT: arith.subf {{.*}} {optim.space = #optim.space<out>}
// CHECK-NEXT: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
optim.rule @NorMuon hyperparameters ["lr"] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %q = arith.mulf %o, %o : tensor<?x?xf32>
  %r = optim.reduce mean %q : tensor<?x?xf32> to tensor<?x1xf32>
  %v1 = arith.addf %v, %r : tensor<?x1xf32>
  %b = optim.broadcast %v1 : tensor<?x1xf32> to tensor<?x?xf32>
  %n = arith.divf %o, %b : tensor<?x?xf32>
  %p = arith.subf %param, %n : tensor<?x?xf32>
  optim.yield %p, %v1 : tensor<?x?xf32>, tensor<?x1xf32>
}

// The parameter's update reads the old momentum after the exchange, so the new one is stored there too.
// CHECK-LABEL: optim.rule @OldState
// CHECK: arith.addf {{.*}} {optim.space = #optim.space<in>}
// CHECK: arith.subf {{.*}} {optim.space = #optim.space<out>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<out>]}
optim.rule @OldState hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %m1 = arith.addf %m, %grad : tensor<?x?xf32>
  %o = optim.orthogonalize %m1 coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %p = arith.subf %o, %m : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// The gradient itself crosses when nothing comes before.
// CHECK-LABEL: optim.rule @GradientOnly
// CHECK: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: optim.yield {{.*}} {optim.writes = [#optim.space<out>]}
optim.rule @GradientOnly hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}

// What lies between two orthogonalizes stays in matrix space.
// CHECK-LABEL: optim.rule @Twice
// CHECK: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.negf {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<out>}
optim.rule @Twice hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %n = arith.negf %o : tensor<?x?xf32>
  %o2 = optim.orthogonalize %n coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %p = arith.addf %param, %o2 : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// A parameter or state that is yielded as it came is not written anywhere.
// CHECK-LABEL: optim.rule @Kept
// CHECK: optim.yield {{.*}} {optim.writes = [unit, unit]}
optim.rule @Kept hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

// Of two operands the sum crosses, once, and not both: the cut takes the fewest bytes.
// CHECK-LABEL: optim.rule @FewestBytes
// CHECK: arith.mulf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: optim.reduce {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: optim.broadcast %{{[a-z0-9]+}} : tensor<?x1xf32>
// CHECK-NEXT: arith.mulf {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: optim.orthogonalize
optim.rule @FewestBytes hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %a = arith.mulf %m, %grad : tensor<?x?xf32>
  %b = arith.addf %a, %grad : tensor<?x?xf32>
  %r = optim.reduce sum %b : tensor<?x?xf32> to tensor<?x1xf32>
  %f = optim.broadcast %r : tensor<?x1xf32> to tensor<?x?xf32>
  %c = arith.mulf %b, %f : tensor<?x?xf32>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

// A cast that widens happens where it is cheap: the bf16 value crosses, the f32 one is made there.
// CHECK-LABEL: optim.rule @WidenAfter
// CHECK: arith.truncf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: arith.extf %{{[a-z0-9]+}} : tensor
// CHECK-NEXT: optim.reduce {{.*}} {optim.space = #optim.space<matrix>}
optim.rule @WidenAfter hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %h = arith.truncf %grad : tensor<?x?xf32> to tensor<?x?xbf16>
  %w = arith.extf %h : tensor<?x?xbf16> to tensor<?x?xf32>
  %r = optim.reduce sum %w : tensor<?x?xf32> to tensor<?x1xf32>
  %f = optim.broadcast %r : tensor<?x1xf32> to tensor<?x?xf32>
  %p = arith.mulf %param, %f : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// Where bytes tie, work stays on the shards, which are many.
// CHECK-LABEL: optim.rule @Tie
// CHECK: arith.negf {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.negf {{.*}} {optim.space = #optim.space<out>}
optim.rule @Tie hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = arith.negf %grad : tensor<?x?xf32>
  %o = optim.orthogonalize %n coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %p = arith.negf %o : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// A condition has no space: it is computed where the selection is.
// CHECK-LABEL: optim.rule @Condition
// CHECK: arith.cmpf ogt, %{{.*}}, %{{[a-z0-9]+}} : tensor
// CHECK-NEXT: arith.select {{.*}} {optim.space = #optim.space<out>}
optim.rule @Condition hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %k = arith.cmpf ogt, %o, %grad : tensor<?x?xf32>
  %p = arith.select %k, %o, %grad : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// What a condition is made of counts as read where it is used: one that comes of a one value, through a broadcast and an
// `and`, has the selection follow the reduction.
// CHECK-LABEL: optim.rule @ConditionOfReduction
// CHECK: arith.cmpf ogt, %{{.*}}, %{{[a-z0-9]+}} : tensor<?x?xf32>
// CHECK-NEXT: optim.reduce {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.cmpf olt, %{{.*}}, %{{[a-z0-9]+}} : tensor<1x1xf32>
// CHECK-NEXT: optim.broadcast %{{[a-z0-9]+}} : tensor<1x1xi1>
// CHECK-NEXT: arith.andi %{{.*}}, %{{[a-z0-9]+}} : tensor<?x?xi1>
// CHECK-NEXT: arith.select {{.*}} {optim.space = #optim.space<out>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<out>}
optim.rule @ConditionOfReduction hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %t = optim.splat %lr : tensor<1x1xf32>
  %a = arith.cmpf ogt, %grad, %s : tensor<?x?xf32>
  %r = optim.reduce rms %grad : tensor<?x?xf32> to tensor<1x1xf32>
  %b = arith.cmpf olt, %r, %t : tensor<1x1xf32>
  %f = optim.broadcast %b : tensor<1x1xi1> to tensor<?x?xi1>
  %k = arith.andi %a, %f : tensor<?x?xi1>
  %u = arith.select %k, %grad, %s : tensor<?x?xi1>, tensor<?x?xf32>
  %p = arith.addf %param, %u : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// One condition used on both sides of the exchange belongs to neither.
// CHECK-LABEL: optim.rule @ConditionTwice
// CHECK: arith.cmpf ogt, %{{.*}}, %{{[a-z0-9]+}} : tensor
// CHECK-NEXT: arith.select {{.*}} {optim.space = #optim.space<in>}
// CHECK-NEXT: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.select {{.*}} {optim.space = #optim.space<out>}
optim.rule @ConditionTwice hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %k = arith.cmpf ogt, %param, %grad : tensor<?x?xf32>
  %c = arith.select %k, %param, %grad : tensor<?x?xi1>, tensor<?x?xf32>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %p = arith.select %k, %o, %param : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// A state that `out` reads only through a condition is stored after that.
// CHECK-LABEL: optim.rule @ConditionOfOldState
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<out>]}
optim.rule @ConditionOfOldState hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %k = arith.cmpf ogt, %m, %grad : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad : tensor<?x?xf32>
  %o = optim.orthogonalize %m1 coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %p = arith.select %k, %o, %param : tensor<?x?xi1>, tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// What neither leads to matrix space nor follows from it stands behind what it reads, and before what reads it: operations that
// it reads from have moved into matrix space, and so have those that read one of its results.
// CHECK-LABEL: optim.rule @MovedBetween
// CHECK: math.exp {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: math.sqrt {{.*}} {optim.space = #optim.space<matrix>}
// CHECK-NEXT: arith.addf {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: math.rsqrt {{.*}} {optim.space = #optim.space<out>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<out>]}
optim.rule @MovedBetween hyperparameters [] states [#optim.state<"s", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %s: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %a = math.absf %grad : tensor<?x?xf32>
  %b = math.exp %a : tensor<?x?xf32>
  %x = optim.reduce rms %a : tensor<?x?xf32> to tensor<1x1xf32>
  %y = optim.reduce rms %b : tensor<?x?xf32> to tensor<1x1xf32>
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %xs = optim.broadcast %x : tensor<1x1xf32> to tensor<?x?xf32>
  %free = math.sqrt %b : tensor<?x?xf32>
  %u1 = arith.addf %o, %free : tensor<?x?xf32>
  %u2 = arith.addf %u1, %xs : tensor<?x?xf32>
  %w = optim.reduce sum %u1 : tensor<?x?xf32> to tensor<1x1xf32>
  %yw = arith.addf %y, %w : tensor<1x1xf32>
  %ys = optim.broadcast %yw : tensor<1x1xf32> to tensor<?x?xf32>
  %u3 = arith.addf %u2, %ys : tensor<?x?xf32>
  %stored = math.rsqrt %b : tensor<?x?xf32>
  %p = arith.subf %param, %u3 : tensor<?x?xf32>
  optim.yield %p, %stored : tensor<?x?xf32>, tensor<?x?xf32>
}

// States of lines that follow from scalars and other states alone are stored on the way in, although operations need whole matrices. What
// is computed on the way out reads a copy of the old value.
// CHECK-LABEL: optim.rule @Counts
// CHECK: optim.orthogonalize {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<in>, #optim.space<in>]}
optim.rule @Counts hyperparameters ["lr"] states [#optim.state<"n", f32, one, 0.0 : f64, false>, #optim.state<"w", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %n: tensor<1x1xf32>, %w: tensor<?x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<1x1xf32>
  %n1 = arith.addf %n, %s : tensor<1x1xf32>
  %b = optim.broadcast %n1 : tensor<1x1xf32> to tensor<?x1xf32>
  %w1 = arith.addf %w, %b : tensor<?x1xf32>
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  %old = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
  %d = arith.mulf %old, %o : tensor<?x?xf32>
  %p = arith.subf %param, %d : tensor<?x?xf32>
  optim.yield %p, %n1, %w1 : tensor<?x?xf32>, tensor<1x1xf32>, tensor<?x1xf32>
}
