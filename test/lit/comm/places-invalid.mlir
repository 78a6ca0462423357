// Every error of places: those of a stage's operands, and the attribute's own.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A stage reads what its own segment packs.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>) {
  %active = comm.active
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@t, full, shards to blocks, sent>}}
  %0 = comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>
  return
}

// -----

// Shards lead to what stands with them: what was received for blocks does not.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) {
  %active = comm.active
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@s, full, shards to blocks, received>}}
  comm.stage @s over shards active %active ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A stage over shards has full values.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xf32, #comm.place<@s, rows, shards to blocks, sent>>) {
  %active = comm.active
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@s, rows, shards to blocks, sent>}}
  comm.stage @s over shards active %active ins(%x : tensor<?xf32, #comm.place<@s, rows, shards to blocks, sent>>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A stage over blocks has values of the extents that it runs over, and no Gram matrices.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>, %y: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected operands of 4 or 1 along axis 2, because that is what the stage runs over, found 'tensor<?x4x6xf32, #comm.place<@s, full, blocks>>'}}
  %0 = comm.stage @s over blocks ins(%x : tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>) outs(%y : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return
}

// -----

// Of an out each element is written once.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, %y: tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  // expected-error @below {{expected outs of 4 along axis 1, because that is what the stage runs over, found 'tensor<?x1x1xf32, #comm.place<@s, one, blocks>>'}}
  %0 = comm.stage @s over blocks ins(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%y : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?x1x1xf32, #comm.place<@s, one, blocks>>
  return
}

// -----

// Operands of a stage over blocks are broadcast or agree.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, %y: tensor<?x3x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected operands of 4 or 1 along axis 1, because that is what the stage runs over, found 'tensor<?x3x6xf32, #comm.place<@s, full, blocks>>'}}
  %0 = comm.stage @s over blocks ins(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%y : tensor<?x3x6xf32, #comm.place<@s, full, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?x3x6xf32, #comm.place<@s, full, blocks>>
  return
}

// -----

// The scalars of a stage are scalars.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  %active = comm.active
  // expected-error @below {{expected a place of scalars, found #comm.place<@s, one, blocks>}}
  comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) scalars(%x : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// They are those of the segment's group.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<2x1xf32, #comm.place<@h, scalars>>) {
  %active = comm.active
  // expected-error @below {{expected the scalars of group @g, found those of @h}}
  comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) scalars(%x : tensor<2x1xf32, #comm.place<@h, scalars>>) {
  ^bb0(%a: f32, %b: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A table of scalars stands in a place of scalars.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  // expected-error @below {{expected a place of scalars, found #comm.place<@s, one, blocks>}}
  comm.scalars of %hyperparameters, %steps active %active outs(%x : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  ^bb0(%lr: f64):
    comm.yield %lr : f64
  } -> tensor<?x1x1xf32, #comm.place<@s, one, blocks>>
  return
}

// -----

// A size that does not differ between ranks is no extent.
func.func @f() {
  // expected-error @below {{expected a place whose size differs between ranks, found #comm.place<@g, scalars>}}
  %n = comm.extent <@g, scalars>
  return
}

// -----

// A value has a known kind.
// expected-error @below {{expected full, rows, cols, one, gram or scalars, found half}}
func.func private @f(tensor<?xf32, #comm.place<@s, half, blocks>>)

// -----

// A distribution is known.
// expected-error @below {{expected shards, blocks, hop, gradient_shards, state_shards, reduced_shards, parts, ranges, line_parts, line_sums, state_blocks or model_parts, found to_matrix}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, to_matrix>>)

// -----

// A move has two ends.
// expected-error @below {{expected sent or received, found lost}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, shards to blocks, lost>>)

// -----

// What moves is not at rest.
// expected-error @below {{expected sent or received, found rest}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, shards to blocks, rest>>)

// -----

// A move leads elsewhere.
// expected-error @below {{expected a move between two distributions, found blocks twice}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, blocks to blocks, sent>>)

// -----

// Shards at rest have a type of their own.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards>>) {
  // expected-error @below {{expected shards at rest to be a !comm.shards, found 'tensor<?xf32, #comm.place<@s, full, shards>>'}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, shards>>) outs(%r : tensor<?xf32, #comm.place<@s, full, shards>>) -> tensor<?xf32, #comm.place<@s, full, shards>>
  return
}

// -----

// Copies are kept of shards alone.
// expected-error @below {{expected values of shards to be kept, found full in blocks}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, blocks, kept>>)

// -----

// What does not move is at rest or kept.
// expected-error @below {{expected 'kept'}}
func.func private @f(tensor<?xf32, #comm.place<@s, full, shards, received>>)

// -----

// Shards stand in shards.
// expected-error @below {{expected shards to stand in shards, found blocks}}
func.func private @f(!comm.shards<@g, f32, blocks>)

// -----

// A stage reads shards where it visits them: others are brought there.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %m: !comm.shards<@g, f32, state_shards>) {
  %active = comm.active
  // expected-error @below {{expected shards that stand in state_shards, found '!comm.shards<@g, f32>'}}
  comm.stage @s over state_shards active %active ins(%p : !comm.shards<@g, f32>) writes(%m : !comm.shards<@g, f32, state_shards>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// What was received for other shards is not found from those of the states.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, state_shards to shards, received>>, %m: !comm.shards<@g, f32, state_shards>) {
  %active = comm.active
  // expected-error @below {{expected values of segment @s that state_shards lead to, found one in #comm.place<@s, full, state_shards to shards, received>}}
  comm.stage @s over state_shards active %active ins(%r : tensor<?xf32, #comm.place<@s, full, state_shards to shards, received>>) writes(%m : !comm.shards<@g, f32, state_shards>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Ranks add up what they have of values of whole blocks.
// expected-error @below {{expected parts of one or gram values, which are added up in ranges that are kept and gathered in blocks, found full in parts and parts}}
func.func private @f(tensor<?x4x6xf32, #comm.place<@s, full, parts>>)

// -----

// Ranges alone lead to blocks.
// expected-error @below {{expected parts of one or gram values, which are added up in ranges that are kept and gathered in blocks, found gram in parts and blocks}}
func.func private @f(tensor<?xf32, #comm.place<@s, gram, parts to blocks, sent>>)

// -----

// A range is kept.
// expected-error @below {{expected parts of one or gram values, which are added up in ranges that are kept and gathered in blocks, found gram in ranges and ranges}}
func.func private @f(tensor<?x4x4xf32, #comm.place<@s, gram, ranges>>)

// -----

// Parts are not.
// expected-error @below {{expected values of shards to be kept, found one in parts}}
func.func private @f(tensor<?xf32, #comm.place<@s, one, parts, kept>>)

// -----

// Their sum stands in blocks.
// expected-error @below {{expected parts of one or gram values, which are added up in ranges that are kept and gathered in blocks, found one in parts and shards}}
func.func private @f(tensor<?xf32, #comm.place<@s, one, parts to shards, sent>>)

// -----

// No rule has Gram matrices.
// expected-error @below {{expected gram values in parts, ranges or blocks, found some in shards}}
func.func private @f(tensor<?xf32, #comm.place<@s, gram, shards to blocks, sent>>)

// -----

// What travels has a place.
func.func @step(%s: tensor<?xbf16>, %r: tensor<?xbf16>) {
  %w = comm.world
  // expected-error @below {{expected a place in the type of each staged value, found 'tensor<?xbf16>'}}
  %x = comm.exchange %w sends(%s : tensor<?xbf16>) receives(%r : tensor<?xbf16>) -> tensor<?xbf16>
  return
}

// -----

// Full values are no lines.
// expected-error @below {{expected rows, cols or one values, which are added up from line_parts to line_sums and move on to shards, found full in line_parts and line_parts}}
func.func private @f(tensor<?xi320, #comm.place<@s, full, line_parts, kept>>)

// -----

// Parts of lines are added up before they go on.
// expected-error @below {{expected rows, cols or one values, which are added up from line_parts to line_sums and move on to shards, found cols in line_parts and shards}}
func.func private @f(tensor<?xi320, #comm.place<@s, cols, line_parts to shards, sent>>)

// -----

// What shards hold is no part of a sum.
// expected-error @below {{expected rows, cols or one values, which are added up from line_parts to line_sums and move on to shards, found cols in shards and line_sums}}
func.func private @f(tensor<?xi320, #comm.place<@s, cols, shards to line_sums, sent>>)

// -----

// Sums move to shards.
// expected-error @below {{expected rows, cols or one values, which are added up from line_parts to line_sums and move on to shards, found cols in line_sums and blocks}}
func.func private @f(tensor<?xi320, #comm.place<@s, cols, line_sums to blocks, sent>>)

// -----

// Parts of a number of the model stay where they are made.
// expected-error @below {{expected parts of a model's number to be kept, found one in model_parts and shards}}
func.func private @f(tensor<?xi640, #comm.place<@s, one, model_parts to shards, sent>>)

// -----

// No move leads to them.
// expected-error @below {{expected parts of a model's number to be kept, found one in shards and model_parts}}
func.func private @f(tensor<?xi640, #comm.place<@s, one, shards to model_parts, received>>)

// -----

// They are no batch of blocks.
// expected-error @below {{expected parts of a model's number to be kept, found one in model_parts and model_parts}}
func.func private @f(tensor<?x1x1xf32, #comm.place<@s, one, model_parts>>)

// -----

// Each is one value.
// expected-error @below {{expected parts of a model's number to be kept, found rows in model_parts and model_parts}}
func.func private @f(tensor<?xi640, #comm.place<@s, rows, model_parts, kept>>)
