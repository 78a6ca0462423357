// Every error of segments, shards, buffers and the dialect's attributes of modules and functions.
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
  // expected-error @below {{expected an offset that is a multiple of 64 and not negative, and at least one byte, found 32 and 64}}
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

// Batches of blocks alone share a buffer.
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
  %n = comm.extent <@s, full, blocks>
  // expected-error @below {{expected batches of blocks where several values share a buffer, found 'memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>'}}
  %b:2 = comm.buffer offset 0 bytes 64 (%n, %n) : memref<?x4x6xf32, #comm.place<@s, full, blocks>>, memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
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

// expected-error @below {{expected comm.reduces_again without a value, found 1 : i64}}
module attributes {comm.reduces_again = 1 : i64} {
}

// -----

// expected-error @below {{expected comm.side_by_side without a value, found 1 : i64}}
module attributes {comm.side_by_side = 1 : i64} {
}

// -----

// What makes numbers of the model is marked without a value.
func.func @f() {
  // expected-error @below {{expected comm.of_model without a value, found true}}
  %steps = comm.steps {comm.of_model = true}
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

// -----

// Shards are of something known.
func.func @f() {
  // expected-error @below {{expected parameter, gradient, state, reduced, line_parts, line_sums or state_blocks, found master}}
  %p = comm.shards master @g : !comm.shards<@g, f32>
  return
}

// -----

// The sum of a partial gradient stands in no shards of the trainer.
func.func @f() {
  // expected-error @below {{expected shards that are bound: of the parameter, the gradient or a state, found reduced}}
  %p = comm.shards reduced @g : !comm.shards<@g, f32, reduced_shards>
  return
}
