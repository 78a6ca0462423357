// Every error of stages and their regions.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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
  %active = comm.active
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  comm.stage @t over shards active %active writes(%p : !comm.shards<@g, f32>) {
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
  %active = comm.active
  // expected-error @below {{expected rank 1 of what stands in #comm.place<@s, full, shards to blocks, sent>, found 'tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>'}}
  %0 = comm.stage @s over shards active %active outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, shards to blocks, sent>>) {
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
  %active = comm.active
  // expected-error @below {{expected a place in the type of each staged value, found 'tensor<?xf32>'}}
  %0 = comm.stage @s over shards active %active outs(%x : tensor<?xf32>) {
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
  %active = comm.active
  // expected-error @below {{expected one result per out tensor, 1, found 0}}
  comm.stage @s over shards active %active ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
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
  %active = comm.active
  // expected-error @below {{expected one result per out tensor, 0, found 1}}
  %0 = comm.stage @s over shards active %active outs(%x : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
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
  %active = comm.active
  // expected-error @below {{expected region arguments 'bf16', found 'f32'}}
  %0 = comm.stage @s over shards active %active ins(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
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
  %active = comm.active
  // expected-error @below {{expected region arguments 'f32', 'f32', 'f32', found 'f32'}}
  %0 = comm.stage @s over shards active %active ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) scalars(%t : tensor<2x2xf32, #comm.place<@g, scalars>>) {
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
  %active = comm.active
  // expected-error @below {{expected yields 'f32', 'bf16', found 'bf16'}}
  %0 = comm.stage @s over shards active %active ins(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) writes(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xbf16, #comm.place<@s, full, shards to blocks, sent>>) {
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
  %active = comm.active
  // expected-note @below {{required by region isolation constraints}}
  %0 = comm.stage @s over shards active %active outs(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    // expected-error @below {{using value defined outside the region}}
    comm.yield %c : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// What visits shards knows which parameters are skipped.
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
  // expected-error @below {{expected active flags, because shards of parameters that a step skips are left out, found none}}
  comm.stage @s over shards ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Blocks are computed whatever the step skips.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  %active = comm.active
  // expected-error @below {{expected no active flags where no shards are visited, found some}}
  %0 = comm.stage @s over blocks active %active ins(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return
}

// -----

// A stage visits something known.
func.func @f() {
  // expected-error @below {{expected shards, blocks, hop, gradient_shards, state_shards, reduced_shards, parts, ranges, line_parts, line_sums, state_blocks or model_parts, found rows}}
  comm.stage @s over rows {
  }
  return
}

// -----

// Pieces between hops are only on their way.
func.func @f() {
  // expected-error @below {{expected to run over shards or blocks, found hop}}
  comm.stage @s over hop {
  }
  return
}

// -----

// Ranges are summed up by no stage.
func.func @f() {
  // expected-error @below {{expected to run over shards or blocks, found ranges}}
  comm.stage @s over ranges {
  }
  return
}

// -----

// What reduces writes a line, and nothing else.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %line: memref<?xf32, #comm.place<@s, rows, shards, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to write no shards, found '!comm.shards<@g, f32>'}}
  comm.stage @s over shards reduces mean active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) outs(%line : memref<?xf32, #comm.place<@s, rows, shards, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a, %a : f32, f32
  }
  return
}

// -----

// A value per block is made by other means.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %line: memref<?xf32, #comm.place<@s, one, shards, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have one out, of f32, with a number per row or column, found 'memref<?xf32, #comm.place<@s, one, shards, kept>>'}}
  comm.stage @s over shards reduces norm active %active ins(%p : !comm.shards<@g, f32>) outs(%line : memref<?xf32, #comm.place<@s, one, shards, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Blocks are reduced by functions of blocks.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %line: memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to run over shards, found blocks}}
  comm.stage @s over blocks reduces sum outs(%line : memref<?x4x6xf32, #comm.place<@s, full, blocks>>) {
    %0 = arith.constant 0.0 : f32
    comm.yield %0 : f32
  }
  return
}

// -----

// A stage reduces full values alone.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %line: memref<?xf32, #comm.place<@s, cols, shards, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to visit full values, found rows}}
  comm.stage @s over shards of rows reduces sum active %active ins(%p : !comm.shards<@g, f32>) outs(%line : memref<?xf32, #comm.place<@s, cols, shards, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Values of other kinds are never in shards.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>) {
  %active = comm.active
  // expected-error @below {{expected to visit rows, cols or one values of shards, found gram values of shards}}
  comm.stage @s over shards of gram active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Parts of lines are exact sums.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %line: memref<?xf32, #comm.place<@s, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have exact sums or maxima as the parts of lines, found 'memref<?xf32, #comm.place<@s, one, line_parts, kept>>'}}
  comm.stage @s over shards reduces mean active %active ins(%g : !comm.shards<@g, f32>) outs(%line : memref<?xf32, #comm.place<@s, one, line_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Sums of squares have 640 bits.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %line: memref<?xi320, #comm.place<@s, cols, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have exact sums or maxima as the parts of lines, found 'memref<?xi320, #comm.place<@s, cols, line_parts, kept>>'}}
  comm.stage @s over shards reduces norm active %active ins(%g : !comm.shards<@g, f32>) outs(%line : memref<?xi320, #comm.place<@s, cols, line_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A part of a maximum has fewer bits than one of a sum.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %line: memref<?xi32, #comm.place<@s, cols, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have exact sums or maxima as the parts of lines, found 'memref<?xi32, #comm.place<@s, cols, line_parts, kept>>'}}
  comm.stage @s over shards reduces mean active %active ins(%g : !comm.shards<@g, f32>) outs(%line : memref<?xi32, #comm.place<@s, cols, line_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Parts are added up before a stage reads them.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %line: memref<?xi320, #comm.place<@s, cols, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected lines of segment @s that stand in shards, found one in #comm.place<@s, cols, line_parts, kept>}}
  comm.stage @s over shards active %active ins(%g, %line : !comm.shards<@g, f32>, memref<?xi320, #comm.place<@s, cols, line_parts, kept>>) writes(%g : !comm.shards<@g, f32>) {
  ^bb0(%a: f32, %b: i320):
    comm.yield %a : f32
  }
  return
}

// -----

// Lines do not say how many terms there are.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%line: memref<?xf32, #comm.place<@s, rows, shards, kept>>, %out: memref<?xi32, #comm.place<@s, cols, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to read full values, found none}}
  comm.stage @s over shards reduces max active %active ins(%line : memref<?xf32, #comm.place<@s, rows, shards, kept>>) outs(%out : memref<?xi32, #comm.place<@s, cols, line_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Parts of a number of the model are exact sums.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %part: memref<?xf32, #comm.place<@s, one, model_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have an exact sum or maximum as each part of the model's number, found 'memref<?xf32, #comm.place<@s, one, model_parts, kept>>'}}
  comm.stage @s over shards reduces norm active %active ins(%g : !comm.shards<@g, f32>) outs(%part : memref<?xf32, #comm.place<@s, one, model_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Each part is one sum: a block has several parts, and none has several sums.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %part: memref<?xi1280, #comm.place<@s, one, model_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have an exact sum or maximum as each part of the model's number, found 'memref<?xi1280, #comm.place<@s, one, model_parts, kept>>'}}
  comm.stage @s over shards reduces norm active %active ins(%g : !comm.shards<@g, f32>) outs(%part : memref<?xi1280, #comm.place<@s, one, model_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A part of a maximum has fewer bits.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %part: memref<?xi320, #comm.place<@s, one, model_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected a stage that reduces to have an exact sum or maximum as each part of the model's number, found 'memref<?xi320, #comm.place<@s, one, model_parts, kept>>'}}
  comm.stage @s over shards reduces max active %active ins(%g : !comm.shards<@g, f32>) outs(%part : memref<?xi320, #comm.place<@s, one, model_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Parts of a number of the model come of a reduction.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%g: !comm.shards<@g, f32>, %part: memref<?xf32, #comm.place<@s, one, model_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@s, one, model_parts, kept>}}
  comm.stage @s over shards active %active ins(%g : !comm.shards<@g, f32>) outs(%part : memref<?xf32, #comm.place<@s, one, model_parts, kept>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}
