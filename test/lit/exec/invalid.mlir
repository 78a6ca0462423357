// Every error of the dialect's verifiers and constraints.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A kernel that is not there.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a kernel, found no function named @q}}
  exec.dispatch_chunks @q of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] []
}

// -----

// A segment that is not there.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a segment, found no comm.segment named @z}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@z, full, shards>>] []
}

// -----

// Rows of messages are no chunks.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a table of kind shard_chunks or block_chunks, found message}}
  exec.dispatch_chunks @k of [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>>] []
}

// -----

// Blocks are those that a rank computes.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a table of kind block_chunks, found shard_chunks}}
  exec.reduce sum of <kind = shard_chunks, from = <@s, full, shards>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>
    to <offset = 128, bytes = 4, block = tensor<1x1xf32>>
}

// -----

// Blocks have items.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>
    // expected-error @below {{expected at least one item per block, found 0}}
    to <offset = 128, bytes = 4, block = tensor<1x1xf32>> kernels [#exec.kernel<@k, items = 0>]
}

// -----

// A group that is not there.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a group, found no optim.group named @z}}
  exec.dispatch_parameters @k of [@z] []
}

// -----

// A copy has rows of its own.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a table of kind copy, found message}}
  exec.copy <kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>> from #exec.workspace<offset = 0, bytes = 64> to #exec.workspace<offset = 64, bytes = 64>
}

// -----

// A layout other than shard is in the workspace.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a part of the workspace for #comm.place<@s, full, shards to blocks, received>, found #exec.shards<state, "m">}}
  exec.copy <kind = copy, from = <@s, full, shards to blocks, received>, to = <@s, full, blocks>, element_bytes = 4> from #exec.shards<state, "m"> to #exec.workspace<offset = 64, bytes = 64>
}

// -----

// Where the table has shards, shards are copied.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected shards for #comm.place<@s, full, shards>, found #exec.workspace<offset = 0, bytes = 64>}}
  exec.copy <kind = copy, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>, element_bytes = 4> from #exec.workspace<offset = 0, bytes = 64> to #exec.workspace<offset = 64, bytes = 64>
}

// -----

// A collective moves messages.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a table of kind message, found copy}}
  %t = exec.start exchange [#exec.table<kind = copy, from = <@s, full, shards>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
}

// -----

// The segment of what is received.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a segment, found no comm.segment named @z}}
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@z, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
}

// -----

// A collective is awaited once.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-note @below {{the collective is here}}
  %t = exec.start exchange [] from <offset = 0, bytes = 0> to <offset = 0, bytes = 0>
  // expected-error @below {{expected one exec.await of its collective, found another}}
  exec.await %t
  exec.await %t
}

// -----

// What follows the last command could fail.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected to be the last command, so that no failure follows it}}
  exec.advance_steps
  // expected-note @below {{this command follows}}
  exec.dispatch_parameters @k of [@g] []
}

// -----

// Operands stand at multiples of 64.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected an offset that is not negative and a multiple of 64, found 4}}
  exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 4, columns = 3>]
}

// -----

// Parts of the workspace have a size.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected bytes of 0 or more, found -4}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 0, bytes = -4>]
}

// -----

// Columns are counted.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected columns of 0 or more, found -1}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.scalars<offset = 0, columns = -1>]
}

// -----

// A state has a name.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected the name of a state for the shards of a state, and for these only}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<state>]
}

// -----

// Only a state has a name.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected the name of a state for the shards of a state, and for these only}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient, "m">]
}

// -----

// An operand is memory.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{attribute 'args' failed to satisfy constraint}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [4]
}

// -----

// A program holds commands.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
// expected-note @below {{the program is here}}
exec.program workspace 8192 {
  // expected-error @below {{'arith.constant' op expected commands in a program, found an operation that is none}}
  %c = arith.constant 1 : i64
}

// -----

// A workspace has a size.
// expected-error @below {{attribute 'workspace' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
exec.program workspace -1 {
  exec.advance_steps
}

// -----

// A dispatch is of something.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected at least one table}}
  exec.dispatch_chunks @k of [] []
}

// -----

// A dispatch is of something.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected at least one group}}
  exec.dispatch_parameters @k of [] []
}

// -----

// Each table has its operands.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected as many operands for each of 2 tables, found 1 in all}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>, #exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>]
}

// -----

// One kernel reads rows of one kind.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected tables of one kind, found shard_chunks and block_chunks}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>, #exec.table<kind = block_chunks, from = <@s, full, blocks>>] []
}

// -----

// One kernel has one list of shards.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected operands of the same kinds for each table, found #exec.shards<gradient> and #exec.shards<parameter>}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>, #exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.shards<parameter>]
}

// -----

// Each group has its operands.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected as many operands for each of 2 groups, found 1 in all}}
  exec.dispatch_parameters @k of [@g, @g] [#exec.scalars<offset = 0, columns = 1>]
}

// -----

// Kernels over parameters write scalars.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{attribute 'args' failed to satisfy constraint: tables of scalars}}
  exec.dispatch_parameters @k of [@g] [#exec.workspace<offset = 0, bytes = 4>]
}

// -----

// So has its scratch.
// expected-error @below {{attribute 'scratch' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
exec.program workspace 0 scratch -64 {
  exec.advance_steps
}

// -----

// A kernel of a product that is not there.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a kernel, found no function named @nobody}}
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<1x1xf32>> kernels [#exec.kernel<@nobody, items = 1>]
}

// -----

// Extents of a product that do not agree.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a right operand of 6 x 4, found 'tensor<4x6xf32>'}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> by <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<4x4xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64}
}

// -----

// An addend of another shape.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected an addend of 4 x 4, found 'tensor<4x6xf32>'}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> by <offset = 0, bytes = 96, block = tensor<6x4xf32>> plus <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<4x4xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64}
}

// -----

// Only what is square is symmetric.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a square out of a symmetric product, found 'tensor<4x6xf32>'}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x4xf32>> by <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<4x6xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric}
}

// -----

// A reduction to what is as large.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<4x6xf32>' of 'tensor<4x6xf32>'}}
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<4x6xf32>>
}

// -----

// A reduction to 16 bits.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<4x1xbf16>' of 'tensor<4x6xf32>'}}
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<4x1xbf16>>
}

// -----

// A sum is not scaled.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found 3}}
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<1x1xf32>> {exponent = 3 : i64}
}

// -----

// A block of three axes.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program workspace 8192 {
  // expected-error @below {{expected a block of two static axes, of f32, bf16 or f16, found 'tensor<4x6x2xf32>'}}
  exec.reduce sum of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6x2xf32>> to <offset = 128, bytes = 96, block = tensor<1x1xf32>>
}
