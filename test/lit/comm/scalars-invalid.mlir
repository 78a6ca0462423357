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

// -----

// A number of the model has an argument behind those of every rule.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xf32, #comm.place<@t, one, shards, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected 5 arguments of f64, found 'f64', 'f64', 'f64', 'f64'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xf32, #comm.place<@t, one, shards, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A table has an argument for each of its columns.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<1x3xf32, #comm.place<@m, scalars>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected 7 arguments of f64, found 'f64', 'f64', 'f64', 'f64', 'f64'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<1x3xf32, #comm.place<@m, scalars>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// Numbers are widened before the region reads them.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xf32, #comm.place<@t, one, shards, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected 5 arguments of f64, found 'f64', 'f64', 'f64', 'f64', 'f32'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xf32, #comm.place<@t, one, shards, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f32):
    comm.yield %step : f64
  }
  return
}

// -----

// The model is one parameter: its table has one row.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<2x1xf32, #comm.place<@m, scalars>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<2x1xf32, #comm.place<@m, scalars>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<2x1xf32, #comm.place<@m, scalars>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A number is one value.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xf32, #comm.place<@t, rows, shards, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<?xf32, #comm.place<@t, rows, shards, kept>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xf32, #comm.place<@t, rows, shards, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A number is added up and finished.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xi640, #comm.place<@t, one, line_parts, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<?xi640, #comm.place<@t, one, line_parts, kept>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xi640, #comm.place<@t, one, line_parts, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A number that was received is copied before it is read.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xf32, #comm.place<@t, one, line_sums to shards, received>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<?xf32, #comm.place<@t, one, line_sums to shards, received>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xf32, #comm.place<@t, one, line_sums to shards, received>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A number is an f32.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xbf16, #comm.place<@t, one, shards, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<?xbf16, #comm.place<@t, one, shards, kept>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xbf16, #comm.place<@t, one, shards, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}

// -----

// A number is added up and finished.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%n: memref<?xf32, #comm.place<@t, one, line_sums, kept>>, %t: memref<1x1xf32, #comm.place<@g, scalars>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected numbers of the model, a table of one row or a line of one value, found 'memref<?xf32, #comm.place<@t, one, line_sums, kept>>'}}
  comm.scalars of %hyperparameters, %steps active %active numbers(%n : memref<?xf32, #comm.place<@t, one, line_sums, kept>>) outs(%t : memref<1x1xf32, #comm.place<@g, scalars>>) {
  ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64, %n0: f64):
    comm.yield %step : f64
  }
  return
}
