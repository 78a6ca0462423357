// Every operation and attribute of the dialect in its custom form, and through the generic form and bytecode and back.
// RUN: stepc-opt %s | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --emit-bytecode | stepc-opt | FileCheck %s

optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
optim.group @h rule @R parameters [@b] reduced [#optim.shard<0>] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @p group @h all
llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
  llvm.return
}

// CHECK: exec.program arena 8192 scratch 512 chunk 1000 {
exec.program arena 8192 scratch 512 chunk 1000 {
  // CHECK-NEXT: exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 3>]
  exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 3>]
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>>] [#exec.scalars<offset = 0, columns = 3>, #exec.shards<parameter>, #exec.shards<gradient>, #exec.shards<state, "m">, #exec.workspace<offset = 64, bytes = 96>]
  exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>>]
    [#exec.scalars<offset = 0, columns = 3>, #exec.shards<parameter>, #exec.shards<gradient>, #exec.shards<state, "m">,
     #exec.workspace<offset = 64, bytes = 96>]
  // CHECK-NEXT: %[[T:.*]] = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 64, bytes = 96> to <offset = 192, bytes = 96>
  %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>]
    from <offset = 64, bytes = 96> to <offset = 192, bytes = 96>
  // CHECK-NEXT: exec.await %[[T]]
  exec.await %t
  // CHECK-NEXT: %[[ON:.*]] = exec.start all_gather on <@world, [<0, 1, 2>]> [#exec.table<kind = message, {{.*}}>] from
  %on = exec.start all_gather on <@world, [<0, 1, 2>]> [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 64, bytes = 64> to <offset = 192, bytes = 64>
  // CHECK-SAME: {kernel = @k}
  {kernel = @k}
  // CHECK-NEXT: exec.await %[[ON]] {kernel = @k}
  exec.await %on {kernel = @k}
  // CHECK-NEXT: exec.copy <kind = copy, from = <@s, full, shards to blocks, received>, to = <@s, full, blocks>, element_bytes = 4> from #exec.workspace<offset = 192, bytes = 96> to #exec.workspace<offset = 320, bytes = 96>
  exec.copy <kind = copy, from = <@s, full, shards to blocks, received>, to = <@s, full, blocks>, element_bytes = 4>
    from #exec.workspace<offset = 192, bytes = 96> to #exec.workspace<offset = 320, bytes = 96>
  // CHECK-NEXT: exec.sum f32 by 2 <kind = sum, from = <@p, full, gradient_shards to shards, received>, to = <@p, full, shards, kept>, element_bytes = 4> from <offset = 192, bytes = 96, start = 0> to <offset = 320, bytes = 96>
  exec.sum f32 by 2 <kind = sum, from = <@p, full, gradient_shards to shards, received>, to = <@p, full, shards, kept>, element_bytes = 4>
    from <offset = 192, bytes = 96, start = 0> to <offset = 320, bytes = 96>
  // CHECK-NEXT: exec.sum f32 by 4 reduces mean <kind = sum, from = <@p, cols, line_parts to line_sums, received>, to = <@p, cols, line_sums, kept>, element_bytes = 40> from <offset = 192, bytes = 96, start = 0> to <offset = 320, bytes = 96>
  exec.sum f32 by 4 reduces mean <kind = sum, from = <@p, cols, line_parts to line_sums, received>, to = <@p, cols, line_sums, kept>, element_bytes = 40>
    from <offset = 192, bytes = 96, start = 0> to <offset = 320, bytes = 96>
  // CHECK-NEXT: exec.copy <kind = copy, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>, element_bytes = 4> from #exec.shards<state, "m"> to #exec.workspace<offset = 64, bytes = 96>
  exec.copy <kind = copy, from = <@s, full, shards>, to = <@s, full, shards to blocks, sent>, element_bytes = 4>
    from #exec.shards<state, "m"> to #exec.workspace<offset = 64, bytes = 96>
  // CHECK-NEXT: exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 96, block = tensor<4x6xf32>> by <offset = 320, bytes = 96, block = tensor<4x6xf32>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 96, block = tensor<4x6xf32>>
    by <offset = 320, bytes = 96, block = tensor<4x6xf32>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
  // CHECK-NEXT: exec.product fused_chain of {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, shift = 1.500000e+00 : f64, symmetric, transpose_rhs}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 96, block = tensor<4x6xf32>>
    by <offset = 320, bytes = 96, block = tensor<4x6xf32>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, shift = 1.5 : f64, symmetric, transpose_rhs}
  // CHECK-NEXT: exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>> by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, transpose_rhs}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  // CHECK-NEXT: exec.product rounded_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 448, bytes = 64, block = tensor<4x4xf32>> by <offset = 320, bytes = 96, block = tensor<4x6xf32>> plus <offset = 320, bytes = 96, block = tensor<4x6xf32>> to <offset = 512, bytes = 48, block = tensor<4x6xbf16>> scratch 512 kernels [#exec.kernel<@k, items = 3>, #exec.kernel<@k, items = 1>] {alpha = 1.000000e+00 : f64, beta = 2.500000e+00 : f64}
  exec.product rounded_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    by <offset = 320, bytes = 96, block = tensor<4x6xf32>> plus <offset = 320, bytes = 96, block = tensor<4x6xf32>>
    to <offset = 512, bytes = 48, block = tensor<4x6xbf16>> scratch 512 kernels [#exec.kernel<@k, items = 3>, #exec.kernel<@k, items = 1>]
    {alpha = 1.0 : f64, beta = 2.5 : f64}
  // CHECK-NEXT: exec.product tensorcore of {{.*}} pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 64, algorithm = 66, tile = 20, stages = 35, swizzling = 1, custom_option = 2, inner_shape = 3, cluster_shape = 4, workspace = 512>, #exec.pinned_algorithm<cublaslt = 120805, chip = 80, multiprocessors = 108, alignment = 16, algorithm = 6>] {alpha
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 64, algorithm = 66, tile = 20, stages = 35,
        swizzling = 1, custom_option = 2, inner_shape = 3, cluster_shape = 4, workspace = 512>,
      #exec.pinned_algorithm<cublaslt = 120805, chip = 80, multiprocessors = 108, alignment = 16, algorithm = 6, workspace = 0>]
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  // CHECK-NEXT: exec.apply #optim.block_reduce<norm, exponent = -24> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 512, bytes = 48, block = tensor<4x6xbf16>> to <offset = 576, bytes = 4, block = tensor<1x1xf32>>
  exec.apply #optim.block_reduce<norm, exponent = -24> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 512, bytes = 48, block = tensor<4x6xbf16>>
    to <offset = 576, bytes = 4, block = tensor<1x1xf32>>
  // Numbers of the model: a kernel over a rank's parts of one, what adds up the parts of all segments, and scalars that read numbers.
  // CHECK-NEXT: exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 640, bytes = 160>]
  exec.dispatch_chunks @k of [#exec.table<kind = part_model, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 640, bytes = 160>]
  // CHECK-NEXT: exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>, #exec.table<kind = collect, from = <@p, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 640, bytes = 160>, #exec.line<offset = 832, bytes = 80>] to <offset = 960, bytes = 80>{{$}}
  exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>, #exec.table<kind = collect, from = <@p, one, model_parts, kept>, element_bytes = 80>]
    from [#exec.line<offset = 640, bytes = 160>, #exec.line<offset = 832, bytes = 80>] to <offset = 960, bytes = 80>
  // CHECK-NEXT: exec.collect max of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 4>] from [#exec.line<offset = 640, bytes = 8>] to <offset = 960, bytes = 4> {kernel = @k}
  exec.collect max of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 4>]
    from [#exec.line<offset = 640, bytes = 8>] to <offset = 960, bytes = 4> {kernel = @k}
  // CHECK-NEXT: exec.dispatch_parameters @k of [@g, @h] [#exec.scalars<offset = 0, columns = 3>, #exec.scalars<offset = 1088, columns = 2>, #exec.line<offset = 1152, bytes = 4>, #exec.scalars<offset = 64, columns = 3>, #exec.scalars<offset = 1088, columns = 2>, #exec.line<offset = 1152, bytes = 4>]
  exec.dispatch_parameters @k of [@g, @h]
    [#exec.scalars<offset = 0, columns = 3>, #exec.scalars<offset = 1088, columns = 2>, #exec.line<offset = 1152, bytes = 4>,
     #exec.scalars<offset = 64, columns = 3>, #exec.scalars<offset = 1088, columns = 2>, #exec.line<offset = 1152, bytes = 4>]
  // CHECK-NEXT: exec.skip when <offset = 1152, bytes = 4>{{$}}
  exec.skip when <offset = 1152, bytes = 4>
  // CHECK-NEXT: exec.skip when <offset = 1152, bytes = 4> {kernel = @k}
  exec.skip when <offset = 1152, bytes = 4> {kernel = @k}
  // CHECK-NEXT: exec.advance_steps
  exec.advance_steps
}

// CHECK: exec.program arena 0 {
exec.program arena 0 {
  // CHECK-NEXT: exec.advance_steps {kernel = @k}
  exec.advance_steps {kernel = @k}
}

// A table of pinned products, as a module has it up to level scheduled.
// CHECK: module attributes {exec.products = [#exec.product_entry<m = 48, n = 16, k = 32, lhs = bf16, rhs = bf16, addend = bf16, out = bf16, transpose_rhs = true, leading = [32, 32, 16, 16], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>>,
// CHECK-SAME: #exec.product_entry<m = 4, n = 5, k = 6, lhs = f32, rhs = f32, out = f32, leading = [6, 5, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 256, algorithm = 0>>]}
module attributes {exec.products = [
  #exec.product_entry<m = 48, n = 16, k = 32, lhs = bf16, rhs = bf16, addend = bf16, out = bf16, transpose_lhs = false, transpose_rhs = true,
    leading = [32, 32, 16, 16], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>>,
  #exec.product_entry<m = 4, n = 5, k = 6, lhs = f32, rhs = f32, out = f32, leading = [6, 5, 5],
    algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 256, algorithm = 0>>]} {
}
