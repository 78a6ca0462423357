// Every error of collectives and waits.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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

// An exchange receives as often as it sends.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %r: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  // expected-error @below {{expected as many sends as receives, found 1 and 0}}
  comm.exchange %w sends(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives()
  return
}

// -----

// What arrives was sent by the same move.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) {
  // expected-error @below {{expected what is sent and what is received by one move, found #comm.place<@s, full, shards to blocks, sent> and #comm.place<@s, full, blocks to shards, received>}}
  %0 = comm.exchange %w sends(%s : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) -> tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>
  return
}

// -----

// It is of the same kind.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: tensor<?xf32, #comm.place<@s, rows, shards to blocks, received>>) {
  // expected-error @below {{expected what is sent and what is received by one move, found #comm.place<@s, full, shards to blocks, sent> and #comm.place<@s, rows, shards to blocks, received>}}
  %0 = comm.all_gather %w sends(%s : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : tensor<?xf32, #comm.place<@s, rows, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@s, rows, shards to blocks, received>>
  return
}

// -----

// What travels is packed.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, %r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{expected what is sent and what is received by one move, found #comm.place<@s, full, blocks> and #comm.place<@s, full, shards to blocks, received>}}
  %0 = comm.exchange %w sends(%s : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) receives(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>
  return
}

// -----

// What is sent is of a segment.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>, %r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  %0 = comm.exchange %w sends(%s : tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>) receives(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>
  return
}

// -----

// What travels arrives in its type.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{expected equal element types, found 'f32' and 'bf16'}}
  %0 = comm.all_gather %w sends(%s : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>) -> tensor<?xbf16, #comm.place<@s, full, shards to blocks, received>>
  return
}

// -----

// A started collective obeys the same.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{expected equal element types, found 'f32' and 'bf16'}}
  %0 = comm.start all_gather %w order 0 sends(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : memref<?xbf16, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// A started collective is in memory.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  // expected-error @below {{operand #1 must be variadic of memref of 32-bit float or bfloat16 type or 16-bit float or integers of 32, 320 or 640 bits each values, but got 'tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>'}}
  %0 = comm.start exchange %w order 0 sends(%s : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// A collective is of a known kind.
func.func @f(%w: !comm.communicator) {
  // expected-error @below {{expected exchange or all_gather, found scatter}}
  %t = comm.start scatter %w order 0 sends() receives()
  return
}

// -----

// A collective moves something.
func.func @f(%w: !comm.communicator) {
  // expected-error @below {{expected at least one value to send, found none}}
  %t = comm.start exchange %w order 0 sends() receives()
  return
}

// -----

// The ranks of a communicator are those of a mesh.
func.func @f() {
  // expected-error @below {{expected a mesh, found no optim.mesh named @nowhere}}
  %c = comm.communicator <@nowhere, []>
  return
}

// -----

// Factors divide the axes of that mesh.
optim.mesh @mesh axes ["dp", "tp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
func.func @f() {
  // expected-error @below {{expected factors that divide axis 1 of mesh mesh, found 3 ranks that are 1 apart}}
  %c = comm.communicator <@mesh, [<1, 1, 3>]>
  return
}

// -----

// No two of them are of the same ranks.
optim.mesh @mesh axes ["dp", "tp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
func.func @f() {
  // expected-error @below {{expected factors of axis 1 of mesh mesh that do not overlap, found 2 ranks that are 2 apart beside 4 that are 1 apart}}
  %c = comm.communicator <@mesh, [<1, 1, 4>, <1, 2, 2>]>
  return
}
