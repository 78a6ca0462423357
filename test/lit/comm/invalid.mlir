// Every error of the dialect's verifiers and constraints.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A segment's group exists.
// expected-error @below {{expected a group, found no optim.group named @g}}
comm.segment @s group @g all

// -----

// A segment is all blocks or some, not both.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
// expected-error @below {{expected either all or blocks}}
comm.segment @s group @g all blocks [0]

// -----

// A segment says which blocks.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
// expected-error @below {{expected either all or blocks}}
comm.segment @s group @g

// -----

// A segment's blocks exist: two parameters of one block.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
// expected-error @below {{expected blocks below 2, found 2}}
comm.segment @s group @g blocks [0, 2]

// -----

// Blocks are counted from 0.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
// expected-error @below {{expected blocks below 2, found -1}}
comm.segment @s group @g blocks [-1]

// -----

// A segment stands in a module.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
func.func @f() {
  // expected-error @below {{expects parent op 'builtin.module'}}
  comm.segment @t group @g all
  return
}

// -----

// The shards of a group name one that exists.
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
  // expected-error @below {{expected a group, found no optim.group named @h}}
  %p = comm.shards parameter @h : !comm.shards<@h, f32>
  return
}

// -----

// A state is named.
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
  // expected-error @below {{expected a state name for states only}}
  %p = comm.shards state @g : !comm.shards<@g, f32>
  return
}

// -----

// Only a state is named.
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
  // expected-error @below {{expected a state name for states only}}
  %p = comm.shards gradient @g "m" : !comm.shards<@g, f32>
  return
}

// -----

// The state is one of the group's rule.
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
  // expected-error @below {{expected a state of group @g, found "v"}}
  %p = comm.shards state @g "v" : !comm.shards<@g, f32>
  return
}

// -----

// Shards are typed by their own group.
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
  // expected-error @below {{expected shards of group @g, found '!comm.shards<@h, f32>'}}
  %p = comm.shards parameter @g : !comm.shards<@h, f32>
  return
}

// -----

// A buffer is aligned.
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
  // expected-error @below {{expected an offset that is a multiple of 64, and bytes that are not negative, found 32 and 64}}
  %b = comm.buffer offset 32 bytes 64 : memref<2x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// A buffer lies in the workspace.
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
  // expected-error @below {{found -64 and 64}}
  %b = comm.buffer offset -64 bytes 64 : memref<2x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// A buffer has no negative size.
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
  // expected-error @below {{found 0 and -1}}
  %b = comm.buffer offset 0 bytes -1 : memref<2x1xf32, #comm.place<@g, scalars>>
  return
}

// -----

// A buffer has an extent per dynamic dimension.
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
  // expected-error @below {{expected one extent per dynamic dimension, 1, found 0}}
  %b = comm.buffer offset 0 bytes 64 : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

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
  // expected-error @below {{expected a group, found no optim.group named @h}}
  %0 = comm.scalars outs(%t : tensor<2x1xf32, #comm.place<@h, scalars>>) {
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
  // expected-error @below {{expected a table with one row per parameter, 2, found 'tensor<3x1xf32, #comm.place<@g, scalars>>'}}
  %0 = comm.scalars outs(%t : tensor<3x1xf32, #comm.place<@g, scalars>>) {
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
  // expected-error @below {{expected 5 arguments of f64, found 'f64'}}
  %0 = comm.scalars outs(%t : tensor<2x1xf32, #comm.place<@g, scalars>>) {
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
  // expected-error @below {{expected 5 arguments of f64, found 'f64', 'f64', 'f64', 'f64', 'f32'}}
  %0 = comm.scalars outs(%t : tensor<2x1xf32, #comm.place<@g, scalars>>) {
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
  // expected-error @below {{expected one f64 per column, 2, found 'f64'}}
  %0 = comm.scalars outs(%t : tensor<2x2xf32, #comm.place<@g, scalars>>) {
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

// A stage works on a segment.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>) {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  comm.stage @t over shards writes(%p : !comm.shards<@g, f32>) {
    %0 = arith.constant 0.0 : f32
    comm.yield %0 : f32
  }
  return
}

// -----

// A stage over blocks sees no shards.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>) {
  // expected-error @below {{expected no shards over blocks, found '!comm.shards<@g, f32>'}}
  comm.stage @s over blocks writes(%p : !comm.shards<@g, f32>) {
    %0 = arith.constant 0.0 : f32
    comm.yield %0 : f32
  }
  return
}

// -----

// Over blocks, operands are batches.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected values of segment @s that blocks lead to, found one in #comm.place<@s, full, shards to blocks, sent>}}
  %0 = comm.stage @s over blocks outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    %c = arith.constant 0.0 : f32
    comm.yield %c : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// What is packed is one-dimensional.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected rank 1 of what stands in #comm.place<@s, full, shards to blocks, sent>, found 'tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>'}}
  %0 = comm.stage @s over shards outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    %c = arith.constant 0.0 : f32
    comm.yield %c : f32
  } -> tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// Staged operands have a place.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xf32>) {
  // expected-error @below {{expected a place in the type of each staged value, found 'tensor<?xf32>'}}
  %0 = comm.stage @s over shards outs(%x : tensor<?xf32>) {
    %c = arith.constant 0.0 : f32
    comm.yield %c : f32
  } -> tensor<?xf32>
  return
}

// -----

// A stage has a result per out that is a tensor.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected one result per out tensor, 1, found 0}}
  comm.stage @s over shards ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A memref out has no result.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %y: tensor<?xf32>) {
  // expected-error @below {{expected one result per out tensor, 0, found 1}}
  %0 = comm.stage @s over shards outs(%x : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    %z = arith.constant 0.0 : f32
    comm.yield %z : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// The region takes one element of each input.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected region arguments 'bf16', found 'f32'}}
  %0 = comm.stage @s over shards ins(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    %h = arith.truncf %a : f32 to bf16
    comm.yield %h : bf16
  } -> tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// The region takes all columns of the scalar table.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %t: tensor<2x2xf32, #comm.place<@g, scalars>>) {
  // expected-error @below {{expected region arguments 'f32', 'f32', 'f32', found 'f32'}}
  %0 = comm.stage @s over shards ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) scalars(%t : tensor<2x2xf32, #comm.place<@g, scalars>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// The region yields what is written, then the outs.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected yields 'f32', 'bf16', found 'bf16'}}
  %0 = comm.stage @s over shards ins(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) writes(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%a: bf16):
    comm.yield %a : bf16
  } -> tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// A stage sees nothing from outside but its operands.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %c: f32) {
  // expected-note @below {{required by region isolation constraints}}
  %0 = comm.stage @s over shards outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    // expected-error @below {{using value defined outside the region}}
    comm.yield %c : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// A copy works on a segment.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@t, full, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@t, full, blocks>>) {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@t, full, shards to blocks, received>>) outs(%x : tensor<?x4x6xf32, #comm.place<@t, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@t, full, blocks>>
  return
}

// -----

// Only a token is waited for.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator) {
  // expected-note @above {{prior use here}}
  // expected-error @below {{expects different type than prior uses: '!comm.token' vs '!comm.communicator'}}
  comm.wait %w
  return
}

// -----

// An extent's segment exists.
func.func @f() {
  // expected-error @below {{expected a segment, found no comm.segment named @s}}
  %n = comm.extent <@s, full, shards to blocks, sent>
  return
}

// -----

// A place is a multiple of 64 bytes.
func.func @f() {
  // expected-error @below {{expected comm.offset to be an i64 that is not negative and a multiple of 64, found 32 : i64}}
  %a = memref.alloc() {comm.offset = 32 : i64} : memref<4xf32>
  return
}

// -----

// A size is not negative.
func.func @f() {
  // expected-error @below {{expected comm.bytes to be an i64 that is not negative, found -1 : i64}}
  %a = memref.alloc() {comm.bytes = -1 : i64} : memref<4xf32>
  return
}

// -----

// A size is a number of 64 bits.
func.func @f() {
  // expected-error @below {{expected comm.bytes to be an i64 that is not negative, found 1 : i32}}
  %a = memref.alloc() {comm.bytes = 1 : i32} : memref<4xf32>
  return
}

// -----

// A misspelt attribute is none of the dialect's.
func.func @f() {
  // expected-error @below {{expected an attribute of the dialect comm, found comm.byte}}
  %a = memref.alloc() {comm.byte = 1 : i64} : memref<4xf32>
  return
}

// -----

// The workspace of a step is counted in bytes.
// expected-error @below {{expected comm.arena_bytes to be an i64 that is not negative, found "4KiB"}}
func.func @f() attributes {comm.arena_bytes = "4KiB"} {
  return
}

// -----

// A limit is a number, too.
// expected-error @below {{expected comm.workspace_limit to be an i64 that is not negative, found -1 : i64}}
module attributes {comm.workspace_limit = -1 : i64} {
}

// -----

// A segment's wave has a number from 0.
// expected-error @below {{expected a wave between 0 and 1048575, found -1}}
comm.segment @s group @g wave -1 all

// -----

// Waves are not as many as a program could never hold.
// expected-error @below {{expected a wave between 0 and 1048575, found 1048576}}
comm.segment @s group @g wave 1048576 all
