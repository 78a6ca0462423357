// Every error of the verifiers of the program, its copies and collectives.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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
exec.program arena 8192 {
  // expected-error @below {{expected a table of kind copy, found message}}
  exec.copy <kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4> from #exec.workspace<offset = 0, bytes = 64> to #exec.workspace<offset = 64, bytes = 64>
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-note @below {{the collective is here}}
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
  // expected-error @below {{expected one exec.await of its collective, found another}}
  exec.await %t
  exec.await %t
}

// -----

// Who puts seals on messages also compares them.
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
exec.program arena 8192 {
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64> {kernel = @k}
  // expected-error @below {{'exec.await' op expected a kernel exactly where the exec.start has one, found none here}}
  exec.await %t
}

// -----

// And who compares them has put some.
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
exec.program arena 8192 {
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
  // expected-error @below {{'exec.await' op expected a kernel exactly where the exec.start has one, found one here alone}}
  exec.await %t {kernel = @k}
}

// -----

// Kernels of messages exist.
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
exec.program arena 8192 {
  // expected-error @below {{'exec.start' op expected a kernel, found no function named @seals}}
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64> {kernel = @seals}
  exec.await %t {kernel = @k}
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
exec.program arena 8192 {
  // expected-error @below {{expected to be the last command, so that no failure follows it}}
  exec.advance_steps
  // expected-note @below {{this command follows}}
  exec.dispatch_parameters @k of [@g] []
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
exec.program arena 8192 {
  // expected-error @below {{'arith.constant' op expected commands in a program, found an operation that is none}}
  %c = arith.constant 1 : i64
}

// -----

// A kernel that counts exists.
exec.program arena 0 {
  // expected-error @below {{'exec.advance_steps' op expected a kernel, found no function named @counts}}
  exec.advance_steps {kernel = @counts}
}

// -----

// A workspace has a size.
// expected-error @below {{attribute 'arena' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
exec.program arena -1 {
  exec.advance_steps
}

// -----

// Scratch has a size.
// expected-error @below {{attribute 'scratch' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
exec.program arena 0 scratch -64 {
  exec.advance_steps
}

// -----

// So has a chunk.
// expected-error @below {{attribute 'chunk' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
exec.program arena 0 chunk 0 {
  exec.advance_steps
}

// -----

// A sum has rows of its own.
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
exec.program arena 8192 {
  // expected-error @below {{expected a table of kind sum, found copy}}
  exec.sum f32 by 1 <kind = copy, from = <@s, full, gradient_shards to shards, received>, to = <@s, full, shards, kept>, element_bytes = 4> from <offset = 0, bytes = 64> to <offset = 64, bytes = 64>
}

// -----

// Of elements of its type.
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
exec.program arena 8192 {
  // expected-error @below {{expected a table of elements of 2 bytes, found 4}}
  exec.sum bf16 by 1 <kind = sum, from = <@s, full, gradient_shards to shards, received>, to = <@s, full, shards, kept>, element_bytes = 4> from <offset = 0, bytes = 64> to <offset = 64, bytes = 64>
}

// -----

// An average is of one rank at least.
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
exec.program arena 8192 {
  // expected-error @below {{expected a divisor of 1 or more, found 0}}
  exec.sum f32 by 0 <kind = sum, from = <@s, full, gradient_shards to shards, received>, to = <@s, full, shards, kept>, element_bytes = 4> from <offset = 0, bytes = 64> to <offset = 64, bytes = 64>
}

// -----

// Parts of lines are added up by a reduction.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected a reduction where parts of lines are added up, and there alone}}
  exec.sum f32 by 8 <kind = sum, from = <@s, cols, line_parts to line_sums, received>, to = <@s, cols, line_sums, kept>, element_bytes = 40> from <offset = 0, bytes = 640> to <offset = 640, bytes = 64>
}

// -----

// A norm is made of sums of squares.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected sums of 80 bytes that become f32, found 40 bytes and 'f32'}}
  exec.sum f32 by 8 reduces norm <kind = sum, from = <@s, cols, line_parts to line_sums, received>, to = <@s, cols, line_sums, kept>, element_bytes = 40> from <offset = 0, bytes = 640> to <offset = 640, bytes = 64>
}

// -----

// The result is f32.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected sums of 40 bytes that become f32, found 40 bytes and 'bf16'}}
  exec.sum bf16 by 8 reduces mean <kind = sum, from = <@s, cols, line_parts to line_sums, received>, to = <@s, cols, line_sums, kept>, element_bytes = 40> from <offset = 0, bytes = 640> to <offset = 640, bytes = 64>
}
