// Every error of scalars and their region.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Scalars belong to a group.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%t: tensor<2x1xf32, #comm.place<@h, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected a group, found no optim.group named @h}}
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<2x1xf32, #comm.place<@h, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32, #comm.place<@h, scalars>>
  return
}

// -----

// The scalar table has a row per parameter.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%t: tensor<3x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected a table with one row per parameter, 2, found 'tensor<3x1xf32, #comm.place<@g, scalars>>'}}
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<3x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<3x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// Scalars take the hyperparameters, and step, rows, cols and numel.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%t: tensor<2x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected 5 arguments of f64, found 'f64'}}
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64):
    comm.yield %lr : f64
  } -> tensor<2x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// Scalars are f64.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%t: tensor<2x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected 5 arguments of f64, found 'f64', 'f64', 'f64', 'f64', 'f32'}}
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<2x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f32):
    comm.yield %lr : f64
  } -> tensor<2x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// Scalars yield the table's columns.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%t: tensor<2x2xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected one f64 per column, 2, found 'f64'}}
  %0 = comm.scalars of %hyperparameters, %steps active %active outs(%t : tensor<2x2xf32, #comm.place<@g, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  } -> tensor<2x2xf32, #comm.place<@g, scalars>>
  return
}

// -----

// A yield of elements ends a stage or scalars.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f() {
  // expected-error @below {{expects parent op to be one of 'comm.stage, comm.scalars'}}
  comm.yield
  return
}
