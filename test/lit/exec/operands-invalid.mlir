// Every error of what commands name: operands, and parts of the workspace.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{expected at least one byte, found -4}}
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
exec.program arena 8192 {
  // expected-error @below {{expected at least one column, found -1}}
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{attribute 'args' failed to satisfy constraint}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [4]
}

// -----

// A start is on ranks of a mesh.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
exec.program arena 8192 {
  // expected-error @below {{expected a mesh, found no optim.mesh named @nowhere}}
  %t = exec.start exchange on <@nowhere, []> [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
  exec.await %t
}

// -----

// Its factors divide that.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
exec.program arena 8192 {
  // expected-error @below {{expected factors that divide axis 0 of mesh world, found 2 ranks that are 2 apart}}
  %t = exec.start exchange on <@world, [<0, 2, 2>]> [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
  exec.await %t
}

// -----

// A pool is a part of the workspace.
// expected-error @below {{expected an offset that is not negative and a multiple of 64, found 4}}
exec.program arena 8192 pools [#exec.pool<offset = 4, bytes = 64, members = [<@s, bytes = 8>]>] {
}

// -----

// Blocks of a pool have a size.
// expected-error @below {{expected at least one byte per block, found -8}}
// expected-error @below {{failed to parse Exec_Pool parameter 'members'}}
exec.program arena 8192 pools [#exec.pool<offset = 0, bytes = 64, members = [<@s, bytes = -8>]>] {
}

// -----

// A copy moves elements of some bytes.
exec.program arena 8192 {
  // expected-error @below {{expected 1, 2, 4 or 8 bytes per element of copy, found 0}}
  exec.copy <kind = copy, from = <@s, full, shards>> from #exec.workspace<offset = 0, bytes = 64> to #exec.workspace<offset = 64, bytes = 64>
}

// -----

// Elements of messages are whole.
exec.program arena 8192 {
  // expected-error @below {{expected 1, 2, 4 or 8 bytes per element of message, found 3}}
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 3>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
}

// -----

// Kernels know their types, and chunks none.
exec.program arena 8192 {
  // expected-error @below {{expected no bytes per element of shard_chunks, found 4}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>, element_bytes = 4>] []
}

// -----

// Something travels with a start.
exec.program arena 8192 {
  // expected-error @below {{expected at least one table of what travels, found none}}
  %t = exec.start exchange [] from <offset = 0, bytes = 64> to <offset = 64, bytes = 64>
}

// -----

// A part of the workspace is not empty.
exec.program arena 8192 {
  // expected-error @below {{expected at least one byte, found 0}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 0, bytes = 0>]
}

// -----

// Nor is a table of scalars.
exec.program arena 8192 {
  // expected-error @below {{expected at least one column, found 0}}
  exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 0>]
}

// -----

// Nor a block.
exec.program arena 8192 {
  // expected-error @below {{expected a block of two static axes that are not empty, of f32, bf16 or f16, found 'tensor<0x4xf32>'}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<0x4xf32>> to <offset = 128, bytes = 4, block = tensor<1x1xf32>>
}

// -----

// Starts have numbers.
exec.program arena 8192 {
  // expected-error @below {{expected numbers of 0 or more, found -1}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 0, bytes = 64, start = -1>]
}

// -----

// What travels stands in no pool.
exec.program arena 8192 {
  // expected-error @below {{expected a start or a pool, found both}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 0, bytes = 64, start = 0, pool = 0>]
}

// -----

// Shards are of something known.
exec.program arena 8192 {
  // expected-error @below {{expected parameter, gradient, state, reduced, line_parts, line_sums or state_blocks, found master}}
  // expected-error @below {{failed to parse Exec_Shards parameter 'kind'}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<master>]
}

// -----

// The sum of a partial gradient stands in no shards of the trainer.
exec.program arena 8192 {
  // expected-error @below {{expected shards that are bound, found reduced}}
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<reduced>]
}

// -----

// A table of scalars has few enough columns for their bytes to be counted.
exec.program arena 8192 {
  // expected-error @below {{expected at most 1048576 columns, found 4611686018427387911}}
  exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 4611686018427387911>]
}
