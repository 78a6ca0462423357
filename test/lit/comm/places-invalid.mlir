// Every error of places, copies and collectives.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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
  // expected-error @below {{expected places of one value between which a rank can copy, found shards and #comm.place<@s, full, blocks to shards, sent>}}
  %0 = comm.copy ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>) -> tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>
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
  // expected-error @below {{expected places of one value between which a rank can copy, found #comm.place<@s, full, shards to blocks, received> and shards}}
  comm.copy ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) writes(%p : !comm.shards<@g, f32>)
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
  // expected-error @below {{expected one side with a place, found shards on both}}
  comm.copy ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>)
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
func.func @f(%p: !comm.shards<@g, f32>, %x: tensor<?x4x4xf32, #comm.place<@s, partial>>) {
  // expected-error @below {{expected values of blocks, found #comm.place<@s, partial>}}
  %0 = comm.copy ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?x4x4xf32, #comm.place<@s, partial>>) -> tensor<?x4x4xf32, #comm.place<@s, partial>>
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
  // expected-error @below {{expected either written shards or an out}}
  %0 = comm.copy ins(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) writes(%p : !comm.shards<@g, f32>) outs(%r : tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) -> tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>
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
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@t, full, shards to blocks, sent>}}
  %0 = comm.stage @s over shards ins(%p : !comm.shards<@g, f32>) outs(%x : tensor<?xf32, #comm.place<@t, full, shards to blocks, sent>>) {
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
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@s, full, shards to blocks, received>}}
  comm.stage @s over shards ins(%x : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>) writes(%p : !comm.shards<@g, f32>) {
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
  // expected-error @below {{expected values of segment @s that shards lead to, found one in #comm.place<@s, rows, shards to blocks, sent>}}
  comm.stage @s over shards ins(%x : tensor<?xf32, #comm.place<@s, rows, shards to blocks, sent>>) writes(%p : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// A stage over blocks has values of blocks, not Gram matrices.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%x: tensor<?x4x4xf32, #comm.place<@s, partial>>, %y: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
  // expected-error @below {{expected values of segment @s that blocks lead to, found one in #comm.place<@s, partial>}}
  %0 = comm.stage @s over blocks ins(%x : tensor<?x4x4xf32, #comm.place<@s, partial>>) outs(%y : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) {
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
  // expected-error @below {{expected a place of scalars, found #comm.place<@s, one, blocks>}}
  comm.stage @s over shards ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) scalars(%x : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
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
  // expected-error @below {{expected the scalars of group @g, found those of @h}}
  comm.stage @s over shards ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) scalars(%x : tensor<2x1xf32, #comm.place<@h, scalars>>) {
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
  // expected-error @below {{expected a place of scalars, found #comm.place<@s, one, blocks>}}
  comm.scalars outs(%x : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) {
  ^bb0(%lr: f64):
    comm.yield %lr : f64
  } -> tensor<?x1x1xf32, #comm.place<@s, one, blocks>>
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

// A collective is one way.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@a, @b]
comm.segment @s group @g all
func.func @f(%w: !comm.communicator, %s: tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, %r: tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, %k: tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>, %b: tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) {
  // expected-error @below {{expected moves between the same distributions, found #comm.place<@s, full, shards to blocks, sent> and #comm.place<@s, full, blocks to shards, sent>}}
  %0:2 = comm.exchange %w sends(%s, %k : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, tensor<?xf32, #comm.place<@s, full, blocks to shards, sent>>) receives(%r, %b : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>) -> tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>, tensor<?xf32, #comm.place<@s, full, blocks to shards, received>>
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
  // expected-error @below {{operand #1 must be variadic of memref of 32-bit float or bfloat16 type or 16-bit float values, but got 'tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>'}}
  %0 = comm.start exchange %w order 0 sends(%s : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : tensor<?xf32, #comm.place<@s, full, shards to blocks, received>>)
  return
}

// -----

// A collective is of a known kind.
func.func @f(%w: !comm.communicator) {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'kind' [exchange, all_gather]}}
  %t = comm.start scatter %w order 0 sends() receives()
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
// expected-error @below {{expected full, rows, cols, one, partial or scalars, found half}}
func.func private @f(tensor<?xf32, #comm.place<@s, half, blocks>>)

// -----

// A distribution is known.
// expected-error @below {{expected shards or blocks, found to_matrix}}
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
