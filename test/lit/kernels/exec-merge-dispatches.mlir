// RUN: stepc-opt %s --split-input-file --exec-merge-dispatches | FileCheck %s

optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g0 rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
optim.group @g1 rule @R parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s0 group @g0 all
comm.segment @s1 group @g1 all
llvm.func @scalars(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
// Scalars of all groups, then the stages of all groups: a dispatch goes before another kernel's that it does not touch.
// Values of one start share its buffer and no byte of it.
// CHECK-LABEL: exec.program arena 1024
// CHECK-NEXT: exec.dispatch_parameters @scalars of [@g0, @g1] [#exec.scalars<offset = 0, columns = 1>, #exec.scalars<offset = 64, columns = 1>]
// CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>, to = <@s0, full, shards to blocks, sent>>, #exec.table<kind = shard_chunks, from = <@s1, full, shards>, to = <@s1, full, shards to blocks, sent>>]
// CHECK-SAME: [#exec.scalars<offset = 0, columns = 1>, #exec.shards<gradient>, #exec.workspace<offset = 128, bytes = 128, start = 0>,
// CHECK-SAME: #exec.scalars<offset = 64, columns = 1>, #exec.shards<gradient>, #exec.workspace<offset = 128, bytes = 128, start = 0, traveller = 1>]
// CHECK-NEXT: exec.start
exec.program arena 1024 pools [#exec.pool<offset = 256, bytes = 128, members = [<@s0, bytes = 96>, <@s1, bytes = 96>]>, #exec.pool<offset = 256, bytes = 128, members = [<@s0, bytes = 96>]>] {
  exec.dispatch_parameters @scalars of [@g0] [#exec.scalars<offset = 0, columns = 1>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>, to = <@s0, full, shards to blocks, sent>>]
    [#exec.scalars<offset = 0, columns = 1>, #exec.shards<gradient>, #exec.workspace<offset = 128, bytes = 128, start = 0>]
  exec.dispatch_parameters @scalars of [@g1] [#exec.scalars<offset = 64, columns = 1>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s1, full, shards>, to = <@s1, full, shards to blocks, sent>>]
    [#exec.scalars<offset = 64, columns = 1>, #exec.shards<gradient>, #exec.workspace<offset = 128, bytes = 128, start = 0, traveller = 1>]
  %t = exec.start exchange [#exec.table<kind = message, from = <@s0, full, shards to blocks, sent>, to = <@s0, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
  // A collective is not passed.
  // CHECK: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<parameter>]
  // CHECK-NEXT: exec.await
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s1, full, shards>>] [#exec.shards<parameter>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<parameter>]
  exec.await %t
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s1, full, shards>>] [#exec.shards<parameter>]
  // Other shards, another kernel: two lists of pointers.
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<gradient>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<gradient>]
  // The same group twice: what the first wrote is read.
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<gradient>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s0, full, shards>>] [#exec.shards<gradient>]
  // The same bytes: of the first row of scalars, and behind it.
  // CHECK-NEXT: exec.dispatch_parameters @scalars of [@g0] [#exec.scalars<offset = 512, columns = 20>]
  // CHECK-NEXT: exec.dispatch_parameters @scalars of [@g1] [#exec.scalars<offset = 576, columns = 4>]
  exec.dispatch_parameters @scalars of [@g0] [#exec.scalars<offset = 512, columns = 20>]
  exec.dispatch_parameters @scalars of [@g1] [#exec.scalars<offset = 576, columns = 4>]
  // Members of a pool share no byte: one dispatch. Another pool there, or the same member, does.
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s0, full, blocks>>, #exec.table<kind = block_chunks, from = <@s1, full, blocks>>]
  // CHECK-SAME: [#exec.workspace<offset = 256, bytes = 128, pool = 0>, #exec.workspace<offset = 256, bytes = 128, pool = 0, member = 1>]
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s1, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 0, member = 1>]
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s0, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 1>]
  exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s0, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 0>]
  exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s1, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 0, member = 1>]
  exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s1, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 0, member = 1>]
  exec.dispatch_chunks @k of [#exec.table<kind = block_chunks, from = <@s0, full, blocks>>] [#exec.workspace<offset = 256, bytes = 128, pool = 1>]
  // CHECK-NEXT: exec.advance_steps
  exec.advance_steps
}

// -----

// Dispatches over parameters that read the same numbers of the model are one. One that writes what another reads stays behind it.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g0 rule @R parameters [@a, @b]
optim.group @g1 rule @R parameters [@c]
comm.segment @s0 group @g0 all
comm.segment @s1 group @g1 all
llvm.func @scalars(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
llvm.func @wide(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
llvm.func @narrow(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}
// CHECK-LABEL: exec.program arena 2048
exec.program arena 2048 {
  // CHECK-NEXT: exec.dispatch_parameters @scalars of [@g0, @g1] [#exec.scalars<offset = 0, columns = 2>, #exec.scalars<offset = 128, columns = 1>, #exec.line<offset = 192, bytes = 4>,
  // CHECK-SAME: #exec.scalars<offset = 64, columns = 2>, #exec.scalars<offset = 128, columns = 1>, #exec.line<offset = 192, bytes = 4>]
  exec.dispatch_parameters @scalars of [@g0] [#exec.scalars<offset = 0, columns = 2>, #exec.scalars<offset = 128, columns = 1>, #exec.line<offset = 192, bytes = 4>]
  exec.dispatch_parameters @scalars of [@g1] [#exec.scalars<offset = 64, columns = 2>, #exec.scalars<offset = 128, columns = 1>, #exec.line<offset = 192, bytes = 4>]
  // A table of the model has one row, however many parameters the group of the dispatch has: the next byte is another's.
  // CHECK-NEXT: exec.dispatch_parameters @wide of [@g0, @g1] [#exec.scalars<offset = 256, columns = 1>, #exec.scalars<offset = 320, columns = 16>, #exec.scalars<offset = 384, columns = 1>, #exec.scalars<offset = 320, columns = 16>]
  exec.dispatch_parameters @wide of [@g0] [#exec.scalars<offset = 256, columns = 1>, #exec.scalars<offset = 320, columns = 16>]
  exec.dispatch_parameters @wide of [@g1] [#exec.scalars<offset = 384, columns = 1>, #exec.scalars<offset = 320, columns = 16>]
  // The second writes a number that the first reads.
  // CHECK-NEXT: exec.dispatch_parameters @narrow of [@g0] [#exec.scalars<offset = 512, columns = 1>, #exec.scalars<offset = 576, columns = 1>]
  // CHECK-NEXT: exec.dispatch_parameters @narrow of [@g1] [#exec.scalars<offset = 576, columns = 1>, #exec.scalars<offset = 640, columns = 1>]
  exec.dispatch_parameters @narrow of [@g0] [#exec.scalars<offset = 512, columns = 1>, #exec.scalars<offset = 576, columns = 1>]
  exec.dispatch_parameters @narrow of [@g1] [#exec.scalars<offset = 576, columns = 1>, #exec.scalars<offset = 640, columns = 1>]
  // Nothing passes what adds up parts. Kernels over parts are one where their parts are apart.
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s0, full, shards>>, #exec.table<kind = part_model, from = <@s1, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 704, bytes = 80>, #exec.shards<gradient>, #exec.line<offset = 832, bytes = 80>]
  // CHECK-NEXT: exec.collect
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 704, bytes = 80>]
  exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 704, bytes = 80>]
  exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s1, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 832, bytes = 80>]
  exec.collect norm of [#exec.table<kind = collect, from = <@s0, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 704, bytes = 80>] to <offset = 960, bytes = 80>
  exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 704, bytes = 80>]
  exec.advance_steps
}
