// Every error of the verifiers of dispatches over chunks and parameters.
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{expected a table of kind shard_chunks or line_chunks or rectangle_chunks or whole_rows or whole_columns or part_rows or part_columns or part_blocks or part_model or block_chunks, found message}}
  exec.dispatch_chunks @k of [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] []
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
exec.program arena 8192 {
  // expected-error @below {{expected a group, found no optim.group named @z}}
  exec.dispatch_parameters @k of [@z] [#exec.scalars<offset = 0, columns = 1>]
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{expected scalars, and numbers of the model behind them, found #exec.workspace<offset = 0, bytes = 4>}}
  exec.dispatch_parameters @k of [@g] [#exec.workspace<offset = 0, bytes = 4>]
}

// -----

// A kernel over parameters writes scalars, and reads lines behind them.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program arena 8192 {
  // expected-error @below {{expected scalars, and numbers of the model behind them, found #exec.line<offset = 0, bytes = 4>}}
  exec.dispatch_parameters @k of [@g] [#exec.line<offset = 0, bytes = 4>, #exec.scalars<offset = 64, columns = 1>]
}

// -----

// Numbers of the model are no shards.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program arena 8192 {
  // expected-error @below {{expected scalars, and numbers of the model behind them, found #exec.shards<gradient>}}
  exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 1>, #exec.shards<gradient>]
}

// -----

// A kernel finds numbers of one kind at each of its operands.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program arena 8192 {
  // expected-error @below {{expected operands of the same kinds for each group, found #exec.line<offset = 64, bytes = 4> and #exec.scalars<offset = 64, columns = 1>}}
  exec.dispatch_parameters @k of [@g, @g] [#exec.scalars<offset = 0, columns = 1>, #exec.line<offset = 64, bytes = 4>, #exec.scalars<offset = 128, columns = 1>, #exec.scalars<offset = 64, columns = 1>]
}

// -----

// Each group has as many numbers.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program arena 8192 {
  // expected-error @below {{expected as many operands for each of 2 groups, found 3 in all}}
  exec.dispatch_parameters @k of [@g, @g] [#exec.scalars<offset = 0, columns = 1>, #exec.line<offset = 64, bytes = 4>, #exec.scalars<offset = 128, columns = 1>]
}

// -----


// Each group has a table that the kernel writes.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a]
comm.segment @s group @g all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
exec.program arena 8192 {
  // expected-error @below {{expected a table of scalars for each group, found no operands}}
  exec.dispatch_parameters @k of [@g] []
}
