// Every error of copies.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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

// A place that is packed is that of a segment.
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

// What is sent is no source of a copy.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, shards to blocks, sent> and #comm.place<@s, full, blocks>}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return
}

// -----

// What is received is no target of a copy.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, blocks> and #comm.place<@s, full, shards to blocks, received>}}
  %0 = comm.copy ins(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) -> tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>
  return
}

// -----

// A copy stays where the value is: what is sent from shards is no copy of blocks.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, blocks> and #comm.place<@s, full, shards to blocks, sent>}}
  %0 = comm.copy ins(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) outs(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  return
}

// -----

// A copy does not change the kind of a value.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, rows, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, rows, shards to blocks, received> and #comm.place<@s, full, blocks>}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, rows, shards to blocks, received>>) outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return
}

// -----

// A copy is of one segment.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@t, full, blocks>>) {
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, shards to blocks, received> and #comm.place<@t, full, blocks>}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) outs(%x : tensor<?x4x6xf32, #comm.place<@t, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@t, full, blocks>>
  return
}

// -----

// What comes back to shards is not copied from where it was sent for.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>) {
  %active = comm.active
  // expected-error @below {{expected places of one value between which a rank can copy, found shards and #comm.place<@s, full, blocks to shards, sent>}}
  %0 = comm.copy active %active ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>) -> tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>
  return
}

// -----

// What is in blocks does not stand in shards without a copy there.
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
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, shards to blocks, received> and shards}}
  comm.copy active %active ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) writes(%p : !comm.shards<@g, f32>)
  return
}

// -----

// Shards are not copied to shards.
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
  // expected-error @below {{expected one side with a place, found shards on both}}
  comm.copy active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>)
  return
}

// -----

// A partial value is not copied.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>) {
  %active = comm.active
  // expected-error @below {{expected places of one value between which a rank can copy, found shards and #comm.place<@s, gram, blocks>}}
  %0 = comm.copy active %active ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>) -> tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>
  return
}

// -----

// A copy goes to one place.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>, %p: !comm.shards<@g, f32>) {
  %active = comm.active
  // expected-error @below {{expected either written shards or an out}}
  %0 = comm.copy active %active ins(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) writes(%p : !comm.shards<@g, f32>) outs(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) -> tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>
  return
}

// -----

// A copy goes somewhere.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) {
  // expected-error @below {{expected either written shards or an out}}
  comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>)
  return
}

// -----

// A copy does not convert.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, %x: tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected equal element types, found 'f32' and 'bf16'}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) outs(%x : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
  return
}

// -----

// A copy of shards knows which parameters are skipped.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) {
  // expected-error @below {{expected active flags, because shards of parameters that a step skips are left out, found none}}
  comm.copy ins(%x : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) writes(%p : !comm.shards<@g, f32>)
  return
}

// -----

// What has arrived is unpacked whatever the step skips.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, %x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  %active = comm.active
  // expected-error @below {{expected no active flags where no shards are visited, found some}}
  %0 = comm.copy active %active ins(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) outs(%x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return
}
