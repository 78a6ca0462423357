// Every error of a model, of what rules read of it, and of its numbers.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A module has one model.
// expected-note @below {{the other is here}}
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}
// expected-error @below {{expected one per module, found another}}
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// A model stands in a module.
func.func @f() {
  // expected-error @below {{expects parent op 'builtin.module'}}
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  return
}

// -----

// Two hyperparameters do not share a name.
// expected-error @below {{expected distinct names, found 'k' twice}}
optim.model hyperparameters ["k", "k"] defaults [1.0, 2.0] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %k: f64, %l: f64, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// Two values do not share a name.
// expected-error @below {{expected distinct names, found 'total' twice}}
optim.model hyperparameters [] defaults [] values ["total", "total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total, %total : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// Each hyperparameter has a default.
// expected-error @below {{expected a default per hyperparameter, 1, found 2}}
optim.model hyperparameters ["k"] defaults [1.0, 2.0] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %k: f64, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// A model has no rows, cols and numel: all parameters count as one vector.
// expected-error @below {{expected body arguments 'tensor<?x?xf32>', 'tensor<?x?xf32>', 'f64', found 'tensor<?x?xf32>', 'tensor<?x?xf32>', 'f64', 'f64', 'f64', 'f64'}}
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// A model yields the gradient and each value.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected values 'tensor<?x?xf32>', 'tensor<1x1xf32>', found 'tensor<?x?xf32>'}}
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// A model that skips steps yields one value more.
optim.model hyperparameters [] defaults [] values ["total"] skips {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  // expected-error @below {{expected values 'tensor<?x?xf32>', 'tensor<1x1xf32>', 'tensor<1x1xf32>', found 'tensor<?x?xf32>', 'tensor<1x1xf32>'}}
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// So does one with states, for each of them.
optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, one, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected values 'tensor<?x?xf32>', 'tensor<1x1xf32>', found 'tensor<?x?xf32>'}}
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// A state is one number of f32.
// expected-error @below {{expected states of f32 and kind one, and no master, found #optim.state<"a", f32, rows, 0.000000e+00 : f64, false>}}
optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// Names of states are distinct.
// expected-error @below {{expected distinct names, found 'a' twice}}
optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, one, 0.0 : f64, false>, #optim.state<"a", f32, one, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total, %total : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// A model reads its own states.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected a state of the model, found "a"}}
  %a = optim.model_state "a" : tensor<1x1xf32>
  %all = optim.broadcast %a : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %all : tensor<?x?xf32>
}

// -----

// Nothing reads a metric.
optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, one, 0.0 : f64, false, metric = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected a state of the model that is no metric, found "a"}}
  %a = optim.model_state "a" : tensor<1x1xf32>
  optim.yield %grad, %a : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// One value is read.
optim.model hyperparameters [] defaults [] values [] states [#optim.state<"a", f32, one, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected one value, found 'tensor<?x?xf32>'}}
  %a = optim.model_state "a" : tensor<?x?xf32>
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %a, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// A value of the model is one number.
optim.model hyperparameters [] defaults [] values ["all"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected values 'tensor<?x?xf32>', 'tensor<1x1xf32>', found 'tensor<?x?xf32>', 'tensor<?x?xf32>'}}
  optim.yield %grad, %grad : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// All parameters count as one vector, so there are no rows to reduce to.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'optim.reduce' op expected elementwise operations and reductions to one value in a model, found another}}
  %rows = optim.reduce mean %grad : tensor<?x?xf32> to tensor<?x1xf32>
  %all = optim.broadcast %rows : tensor<?x1xf32> to tensor<?x?xf32>
  optim.yield %all : tensor<?x?xf32>
}

// -----

// No operation of a model needs a whole matrix.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'optim.orthogonalize' op expected elementwise operations and reductions to one value in a model, found another}}
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32>
}

// -----

// A model is computed as written, as a rule is.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'arith.addf' op expected no fast-math flags in a rule or model, found #arith.fastmath<reassoc>}}
  %s = arith.addf %grad, %grad fastmath<reassoc> : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}

// -----

// A model sees nothing from outside its body.
%outside = arith.constant 1.0 : f64
// expected-note @below {{required by region isolation constraints}}
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{using value defined outside the region}}
  %s = optim.splat %outside : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}

// -----

// What runs inside of an operation is no part of a vector's arithmetic.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %yes = arith.constant true
  // expected-error @below {{'scf.if' op expected elementwise operations and reductions to one value in a model, found another}}
  %s = scf.if %yes -> tensor<?x?xf32> {
    scf.yield %grad : tensor<?x?xf32>
  } else {
    scf.yield %param : tensor<?x?xf32>
  }
  optim.yield %s : tensor<?x?xf32>
}

// -----

// A model reads no value of itself.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  // expected-error @below {{'optim.model_value' op expected elementwise operations and reductions to one value in a model, found another}}
  %again = optim.model_value "total" : tensor<1x1xf32>
  %all = optim.broadcast %again : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %all, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// A rule is computed as written also where an operation has regions.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %yes = arith.constant true
  %s = scf.if %yes -> tensor<?x?xf32> {
    // expected-error @below {{'arith.addf' op expected no fast-math flags in a rule or model, found #arith.fastmath<reassoc>}}
    %t = arith.addf %grad, %param fastmath<reassoc> : tensor<?x?xf32>
    scf.yield %t : tensor<?x?xf32>
  } else {
    scf.yield %param : tensor<?x?xf32>
  }
  optim.yield %s : tensor<?x?xf32>
}

// -----

// Numbers are small, also those that a hash table could not hold.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'optim.reduce' op expected numbers of i64 below 1, found 9223372036854775807 : i64}}
  %total = optim.reduce norm %grad {optim.number = 9223372036854775807 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = optim.model_number 0 : f64
  %p = optim.splat %n : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// Numbers are of one type.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'optim.reduce' op expected numbers of i64 below 1, found 0 : ui64}}
  %total = optim.reduce norm %grad {optim.number = 0 : ui64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// Two operations do not share a number.
optim.model hyperparameters [] defaults [] values ["total", "most"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  // expected-error @below {{'optim.reduce' op expected distinct numbers, found 0 twice}}
  %most = optim.reduce max %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total, %most : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// Numbers leave no gap.
optim.model hyperparameters [] defaults [] values ["total", "most"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  // expected-error @below {{'optim.reduce' op expected numbers of i64 below 2, found 2 : i64}}
  %most = optim.reduce max %grad {optim.number = 2 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total, %most : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// Numbers begin with 0.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected optim.number of 0 or more, on a splat, a reduction or a state of a model, found -1 : i64}}
  %total = optim.reduce norm %grad {optim.number = -1 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// A number is an integer.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected optim.number of 0 or more, on a splat, a reduction or a state of a model, found unit}}
  %total = optim.reduce norm %grad {optim.number} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// What rules compute again has no number.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{'arith.addf' op expected optim.number of 0 or more, on a splat, a reduction or a state of a model, found 0 : i64}}
  %s = arith.addf %grad, %grad {optim.number = 0 : i64} : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}

// -----

// Reductions of a rule have no numbers.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.reduce' op expected optim.number of 0 or more, on a splat, a reduction or a state of a model, found 0 : i64}}
  %n = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  %p = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// A rule reads no value of a model that is not there.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_value' op expected a value of the module's optim.model, found "total"}}
  %n = optim.model_value "total" : tensor<1x1xf32>
  %p = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// A rule reads values that the model has.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_value' op expected a value of the module's optim.model, found "norm"}}
  %n = optim.model_value "norm" : tensor<1x1xf32>
  %p = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// What a rule reads is one value.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_value' op expected one value, found 'tensor<?x?xf32>'}}
  %p = optim.model_value "total" : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// A rule reads no number of a model that is not there.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_number' op expected an optim.model in the module, found none}}
  %n = optim.model_number 0 : f64
  %p = optim.splat %n : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// A rule reads numbers that the model has: none is negative, and all are below their count.
optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_number' op expected a number below 1, as the module's optim.model has, found -1}}
  %n = optim.model_number -1 : f64
  %p = optim.splat %n : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

optim.model hyperparameters [] defaults [] values ["total"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %total : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.model_number' op expected a number below 1, as the module's optim.model has, found 1}}
  %n = optim.model_number 1 : f64
  %p = optim.splat %n : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}
