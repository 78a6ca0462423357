// Every error of what adds up a rank's parts of a number of the model, and of what skips a step.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Parts are of the whole model.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, line_parts, kept>>, %to: memref<?xi640, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<?xi640, #comm.place<@s, one, line_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi640, #comm.place<@s, one, line_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// Parts are exact sums, which no f32 is.
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
func.func @f(%p: memref<?xf32, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi640, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<?xf32, #comm.place<@s, one, model_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xf32, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@t, one, line_parts, kept>>)
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
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
optim.group @m rule @R parameters [@model]
comm.segment @s group @g all
comm.segment @t group @m all
func.func @f(%p: memref<?xi320, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi640, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<?xi320, #comm.place<@s, one, model_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi320, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// A maximum has fewer bits than a sum.
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
func.func @f(%p: memref<?xi320, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi32, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<?xi320, #comm.place<@s, one, model_parts, kept>>'}}
  comm.collect max active %active ins(%p : memref<?xi320, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi32, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// Each part is one sum.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi320, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<?xi640, #comm.place<@s, one, model_parts, kept>>'}}
  comm.collect sum active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi320, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// Scalars are no parts.
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
func.func @f(%p: memref<1x1xf32, #comm.place<@g, scalars>>, %to: memref<?xi320, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected exact sums or maxima that are kept in model_parts, found 'memref<1x1xf32, #comm.place<@g, scalars>>'}}
  comm.collect sum active %active ins(%p : memref<1x1xf32, #comm.place<@g, scalars>>) outs(%to : memref<?xi320, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// What a rank has of the model is a part of the model's line.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi640, #comm.place<@s, one, model_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected an out that is kept in line_parts, found 'memref<?xi640, #comm.place<@s, one, model_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@s, one, model_parts, kept>>)
  return
}

// -----

// The line is one value, without rows.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi640, #comm.place<@t, rows, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected an out that is kept in line_parts, found 'memref<?xi640, #comm.place<@t, rows, line_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@t, rows, line_parts, kept>>)
  return
}

// -----

// The sum is as wide as its parts.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi320, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected an out that is kept in line_parts, found 'memref<?xi320, #comm.place<@t, one, line_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi320, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// The sum is not rounded before all ranks have added up.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xf32, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.collect' op expected an out that is kept in line_parts, found 'memref<?xf32, #comm.place<@t, one, line_parts, kept>>'}}
  comm.collect norm active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xf32, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// A reduction is one of those that rules have.
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
func.func @f(%p: memref<?xi640, #comm.place<@s, one, model_parts, kept>>, %to: memref<?xi640, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{expected sum, mean, rms, norm or max, found total}}
  comm.collect total active %active ins(%p : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) outs(%to : memref<?xi640, #comm.place<@t, one, line_parts, kept>>)
  return
}

// -----

// What says whether a step is skipped is one value.
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
func.func @f(%p: memref<?xf32, #comm.place<@t, full, shards, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.skip' op expected a value of f32 and kind one that is kept in shards, found 'memref<?xf32, #comm.place<@t, full, shards, kept>>'}}
  %rest = comm.skip active %active when %p : memref<?xf32, #comm.place<@t, full, shards, kept>>
  return
}

// -----

// It is kept where the shards are.
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
func.func @f(%p: memref<?xf32, #comm.place<@t, one, line_parts, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.skip' op expected a value of f32 and kind one that is kept in shards, found 'memref<?xf32, #comm.place<@t, one, line_parts, kept>>'}}
  %rest = comm.skip active %active when %p : memref<?xf32, #comm.place<@t, one, line_parts, kept>>
  return
}

// -----

// It is of f32.
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
func.func @f(%p: memref<?xbf16, #comm.place<@t, one, shards, kept>>) {
  %active = comm.active
  // expected-error @below {{'comm.skip' op expected a value of f32 and kind one that is kept in shards, found 'memref<?xbf16, #comm.place<@t, one, shards, kept>>'}}
  %rest = comm.skip active %active when %p : memref<?xbf16, #comm.place<@t, one, shards, kept>>
  return
}
