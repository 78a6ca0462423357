// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-expand-model

// The name of the model's step count and numbers is taken.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected no parameter named 'model' beside a model, whose step count and numbers have this name}}
optim.parameter @model shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// How many elements a mean counts would depend on the step.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected no mean of the whole model beside missing_grad = skip, which changes the number of its elements, found one}}
  %mean = optim.reduce mean %grad : tensor<?x?xf32> to tensor<1x1xf32>
  %all = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
  optim.yield %all : tensor<?x?xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.route @First rule @R patterns ["a"] except [] defaults [] missing_grad zero
// expected-note @below {{this route may leave parameters out}}
optim.route @Second rule @R rest patterns [] except [] defaults [] missing_grad skip

// -----

// A root of a mean counts them too.
optim.model hyperparameters [] defaults [] values ["rms"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  // expected-error @below {{expected no rms of the whole model beside missing_grad = skip, which changes the number of its elements, found one}}
  %rms = optim.reduce rms %param : tensor<?x?xf32> to tensor<1x1xf32>
  optim.yield %grad, %rms : tensor<?x?xf32>, tensor<1x1xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
// expected-note @below {{this route may leave parameters out}}
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad skip

// -----

// So are the names of what steps the model's own parameter.
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}
// expected-error @below {{expected no rule named 'model' beside a model, whose step count and numbers have this name}}
optim.rule @model hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  optim.yield %grad : tensor<?x?xf32>
}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}
// expected-error @below {{expected no route named 'model' beside a model, whose step count and numbers have this name}}
optim.route @model rule @R rest patterns [] except [] defaults [] missing_grad zero
