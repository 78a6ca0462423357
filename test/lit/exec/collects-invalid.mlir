// Every error of commands that add up a rank's parts of a number of the model.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Each source has a table.
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
  // expected-error @below {{expected a table for each source, 2, found 1}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>, #exec.line<offset = 256, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// Each table has a source.
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
  // expected-error @below {{expected a table for each source, 0, found 1}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [] to <offset = 128, bytes = 80>
}

// -----

// Its rows name sums, which those of a kernel over parts do not.
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
  // expected-error @below {{expected a table of kind collect, found part_model}}
  exec.collect norm of [#exec.table<kind = part_model, from = <@s, full, shards>>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// Sums of squares have 80 bytes.
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
  // expected-error @below {{expected sums of 80 bytes, found 40}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 40>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// A sum of terms has 40 bytes.
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
  // expected-error @below {{expected sums of 40 bytes, found 80}}
  exec.collect sum of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// A maximum has 4 bytes.
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
  // expected-error @below {{expected sums of 4 bytes, found 80}}
  exec.collect max of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// Parts are lines: no row of a batch leads to them.
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
  // expected-error @below {{expected lines as sources, found #exec.workspace<offset = 0, bytes = 80>}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.workspace<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// Parts are in the workspace.
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
  // expected-error @below {{expected lines as sources, found #exec.shards<gradient>}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.shards<gradient>] to <offset = 128, bytes = 80>
}

// -----

// Parts stand at multiples of 64.
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
  // expected-error @below {{expected an offset that is not negative and a multiple of 64, found 4}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 4, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// A table is of a segment.
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
  // expected-error @below {{expected a segment, found no comm.segment named @z}}
  exec.collect norm of [#exec.table<kind = collect, from = <@z, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}

// -----

// A kernel is there.
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
  // expected-error @below {{'exec.collect' op expected a kernel, found no function named @adds}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80> {kernel = @adds}
}

// -----

// A reduction is one of those that rules have.
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
  // expected-error @below {{expected sum, mean, rms, norm or max, found total}}
  exec.collect total of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
}
