// Every error of the verifiers of products and functions of blocks.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

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
exec.program arena 8192 {
  // expected-error @below {{expected a table of kind block_chunks, found shard_chunks}}
  exec.apply #optim.block_reduce<sum> of <kind = shard_chunks, from = <@s, full, shards>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>
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
exec.program arena 8192 {
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>
    // expected-error @below {{expected at least one item per block, found 0}}
    to <offset = 128, bytes = 4, block = tensor<1x1xf32>> kernels [#exec.kernel<@k, items = 0>]
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
exec.program arena 8192 {
  // expected-error @below {{expected a kernel, found no function named @nobody}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<1x1xf32>> kernels [#exec.kernel<@nobody, items = 1>]
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{expected an addend of 4 x 4, found 'tensor<4x6xf32>'}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> by <offset = 0, bytes = 96, block = tensor<6x4xf32>> plus <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<4x4xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64}
}

// -----

// Tensor cores have no products of f32.
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
  // expected-error @below {{expected operands that are both bf16 or both f16 of the accumulation tensorcore, found 'bf16' and 'f16'}}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 48, block = tensor<4x6xbf16>> by <offset = 0, bytes = 48, block = tensor<6x4xf16>> to <offset = 0, bytes = 64, block = tensor<4x4xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64}
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
exec.program arena 8192 {
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
exec.program arena 8192 {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<4x6xf32>' of 'tensor<4x6xf32>'}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<4x6xf32>>
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
exec.program arena 8192 {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<4x1xbf16>' of 'tensor<4x6xf32>'}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<4x1xbf16>>
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
exec.program arena 8192 {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found 3}}
  exec.apply #optim.block_reduce<sum, exponent = 3> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<1x1xf32>>
}

// -----

// A reduction has one source.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected one source of a reduction, found 2}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>, <offset = 128, bytes = 96, block = tensor<4x6xf32>> to <offset = 256, bytes = 96, block = tensor<4x1xf32>>
}

// -----

// Only functions of blocks are applied.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{invalid kind of attribute specified}}
  exec.apply #optim.replicate of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 256, bytes = 96, block = tensor<4x1xf32>>
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
exec.program arena 8192 {
  // expected-error @below {{expected a block of two static axes that are not empty, of f32, bf16 or f16, found 'tensor<4x6x2xf32>'}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6x2xf32>> to <offset = 128, bytes = 96, block = tensor<1x1xf32>>
}

// -----

// A product adds up in a known order.
exec.program arena 8192 {
  // expected-error @below {{expected fused_chain, rounded_chain or tensorcore, found tree}}
  exec.product tree of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> by <offset = 0, bytes = 96, block = tensor<6x4xf32>> to <offset = 0, bytes = 96, block = tensor<4x4xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64}
}

// -----

// A table has rows of a known kind.
exec.program arena 8192 {
  // expected-error @below {{expected shard_chunks, block_chunks, copy, message, sum, line_chunks, whole_rows, whole_columns, part_rows, part_columns, part_blocks, part_model, collect or rectangle_chunks, found chunks}}
  // expected-error @below {{failed to parse Exec_Table parameter 'kind'}}
  exec.apply #optim.block_reduce<sum> of <kind = chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 128, bytes = 96, block = tensor<4x1xf32>>
}

// -----

// Only a symmetric product has a shift.
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
  // expected-error @below {{expected a shift of symmetric products alone, found 1.500000e+00}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x4xf32>> by <offset = 0, bytes = 96, block = tensor<4x6xf32>> to <offset = 0, bytes = 96, block = tensor<4x6xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64, shift = 1.5 : f64}
}

// -----

// Only products join, and an attribute that nothing reads is an error.
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
  // expected-error @below {{expected attributes that the command has, found 'joins'}}
  exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 96, block = tensor<4x6xf32>>
    to <offset = 128, bytes = 4, block = tensor<1x1xf32>> {joins}
}
