// Every error of sums.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// What is added up has arrived.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, sent>>, %k: tensor<?xf32, #comm.place<@s, full, shards, kept>>) {
  // expected-error @below {{expected full values of one segment that were received, and where they are kept, or parts that were received, and a range of sums, found}}
  %0 = comm.sum by 1 ins(%r : tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, sent>>) outs(%k : tensor<?xf32, #comm.place<@s, full, shards, kept>>) -> tensor<?xf32, #comm.place<@s, full, shards, kept>>
  return
}

// -----

// It is kept where it arrived.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>, %k: tensor<?xf32, #comm.place<@s, full, gradient_shards, kept>>) {
  // expected-error @below {{expected full values of one segment that were received, and where they are kept, or parts that were received, and a range of sums, found}}
  %0 = comm.sum by 1 ins(%r : tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>) outs(%k : tensor<?xf32, #comm.place<@s, full, gradient_shards, kept>>) -> tensor<?xf32, #comm.place<@s, full, gradient_shards, kept>>
  return
}

// -----

// Elements have one type.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>, %k: tensor<?xbf16, #comm.place<@s, full, shards, kept>>) {
  // expected-error @below {{expected equal element types, found 'f32' and 'bf16'}}
  %0 = comm.sum by 1 ins(%r : tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>) outs(%k : tensor<?xbf16, #comm.place<@s, full, shards, kept>>) -> tensor<?xbf16, #comm.place<@s, full, shards, kept>>
  return
}

// -----

// An average is of one rank at least.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>, %k: tensor<?xf32, #comm.place<@s, full, shards, kept>>) {
  // expected-error @below {{expected a divisor of 1 or more, found 0}}
  %0 = comm.sum by 0 ins(%r : tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>) outs(%k : tensor<?xf32, #comm.place<@s, full, shards, kept>>) -> tensor<?xf32, #comm.place<@s, full, shards, kept>>
  return
}

// -----

// Of a segment that there is.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
optim.group @g rule @R parameters [@a] reduced [#optim.shard<0>]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@t, full, gradient_shards to shards, received>>, %k: tensor<?xf32, #comm.place<@t, full, shards, kept>>) {
  // expected-error @below {{expected a segment, found no comm.segment named @t}}
  %0 = comm.sum by 1 ins(%r : tensor<?xf32, #comm.place<@t, full, gradient_shards to shards, received>>) outs(%k : tensor<?xf32, #comm.place<@t, full, shards, kept>>) -> tensor<?xf32, #comm.place<@t, full, shards, kept>>
  return
}

// -----

// A sum of parts is a value of the same kind.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, gram, parts to ranges, received>>, %k: tensor<?xf32, #comm.place<@s, one, ranges, kept>>) {
  // expected-error @below {{expected full values of one segment that were received, and where they are kept, or parts that were received, and a range of sums, found}}
  %0 = comm.sum by 1 ins(%r : tensor<?xf32, #comm.place<@s, gram, parts to ranges, received>>) outs(%k : tensor<?xf32, #comm.place<@s, one, ranges, kept>>) -> tensor<?xf32, #comm.place<@s, one, ranges, kept>>
  return
}

// -----

// What is made of the parts of lines must be said.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>, %k: tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) {
  // expected-error @below {{expected a reduction where parts of lines are added up, and there alone}}
  %0 = comm.sum by 8 ins(%r : tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>) outs(%k : tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) -> tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>
  return
}

// -----

// Contributions to a gradient are added up, and nothing else.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>, %k: tensor<?xf32, #comm.place<@s, full, shards, kept>>) {
  // expected-error @below {{expected a reduction where parts of lines are added up, and there alone}}
  %0 = comm.sum by 8 reduces mean ins(%r : tensor<?xf32, #comm.place<@s, full, gradient_shards to shards, received>>) outs(%k : tensor<?xf32, #comm.place<@s, full, shards, kept>>) -> tensor<?xf32, #comm.place<@s, full, shards, kept>>
  return
}

// -----

// The sums of squares have twice the bits.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>, %k: tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) {
  // expected-error @below {{expected exact sums or maxima to become f32, found 'i320' and 'f32'}}
  %0 = comm.sum by 8 reduces norm ins(%r : tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>) outs(%k : tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) -> tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>
  return
}

// -----

// A result is f32.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
func.func @f(%r: tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>, %k: tensor<?xbf16, #comm.place<@s, cols, line_sums, kept>>) {
  // expected-error @below {{expected exact sums or maxima to become f32, found 'i320' and 'bf16'}}
  %0 = comm.sum by 8 reduces mean ins(%r : tensor<?xi320, #comm.place<@s, cols, line_parts to line_sums, received>>) outs(%k : tensor<?xbf16, #comm.place<@s, cols, line_sums, kept>>) -> tensor<?xbf16, #comm.place<@s, cols, line_sums, kept>>
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
func.func @f(%r: tensor<?xi32, #comm.place<@s, cols, line_parts to line_sums, received>>, %k: tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) {
  // expected-error @below {{expected exact sums or maxima to become f32, found 'i32' and 'f32'}}
  %0 = comm.sum by 8 reduces mean ins(%r : tensor<?xi32, #comm.place<@s, cols, line_parts to line_sums, received>>) outs(%k : tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>) -> tensor<?xf32, #comm.place<@s, cols, line_sums, kept>>
  return
}
