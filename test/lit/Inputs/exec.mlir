// What the passes make of an optimizer with one step of orthogonalize, for two groups on two ranks, at level 5.
#all = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>
module @small attributes {stepc.level = "exec", stepc.numerics = "exact"} {
  optim.mesh @dp axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Small hyperparameters ["lr", "momentum"] states [#optim.state<"m", f32, full, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x?xf32>, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64, %arg8: f64):
    %0 = optim.splat %arg4 : tensor<?x?xf32>
    %1 = arith.mulf %0, %arg2 : tensor<?x?xf32>
    %2 = arith.addf %1, %arg1 : tensor<?x?xf32>
    %3 = arith.truncf %2 : tensor<?x?xf32> to tensor<?x?xbf16>
    %4 = optim.orthogonalize %3 coefficients [[3.000000e+00, -4.000000e+00, 2.000000e+00]] eps 9.9999999999999995E-8 : tensor<?x?xbf16>
    %5 = optim.splat %arg3 : tensor<?x?xf32>
    %6 = arith.extf %4 : tensor<?x?xbf16> to tensor<?x?xf32>
    %7 = arith.mulf %5, %6 : tensor<?x?xf32>
    %8 = arith.subf %arg0, %7 : tensor<?x?xf32>
    optim.yield %8, %2 : tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @Small rule @Small matrix patterns [] except [] defaults [2.000000e-02, 9.000000e-01] missing_grad error
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @dp placements [#optim.shard<0>] aliases [] route @Small
  optim.parameter @b shape [8, 8] batch 0 type f32 gradient f32 mesh @dp placements [#optim.shard<0>] aliases [] route @Small
  optim.group @ga rule @Small parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
  optim.group @gb rule @Small parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @sa group @ga all
  comm.segment @sb group @gb all
  exec.program arena 1280 scratch 1536 {
    exec.dispatch_parameters @scalars of [@ga, @gb]
      [#exec.scalars<offset = 512, columns = 2>,
       #exec.scalars<offset = 576, columns = 2>]
    exec.dispatch_chunks @in of [#exec.table<kind = shard_chunks, from = <@sa, full, shards>, to = <@sa, full, shards to blocks, sent>>,
      #exec.table<kind = shard_chunks, from = <@sb, full, shards>, to = <@sb, full, shards to blocks, sent>>]
      [#exec.scalars<offset = 512, columns = 2>, #exec.shards<state, "m">, #exec.shards<gradient>, #exec.workspace<offset = 640, bytes = 192, start = 0>,
       #exec.scalars<offset = 576, columns = 2>, #exec.shards<state, "m">, #exec.shards<gradient>, #exec.workspace<offset = 640, bytes = 192, start = 0, traveller = 1>]
    %0 = exec.start exchange [#exec.table<kind = message, from = <@sa, full, shards to blocks, sent>, to = <@sa, full, shards to blocks, received>, element_bytes = 2>,
      #exec.table<kind = message, from = <@sb, full, shards to blocks, sent>, to = <@sb, full, shards to blocks, received>, element_bytes = 2>] from <offset = 640, bytes = 192> to <offset = 1024, bytes = 256>
    exec.await %0
    exec.copy <kind = copy, from = <@sa, full, shards to blocks, received>, to = <@sa, full, blocks>, element_bytes = 2> from #exec.workspace<offset = 1024, bytes = 256, start = 0> to #exec.workspace<offset = 128, bytes = 64>
    exec.apply #optim.block_reduce<norm, exponent = -24> of <kind = block_chunks, from = <@sa, full, blocks>> <offset = 128, bytes = 64, block = tensor<8x4xbf16>> to <offset = 256, bytes = 4, block = tensor<1x1xf32>>
    exec.dispatch_chunks @blocks of [#exec.table<kind = block_chunks, from = <@sa, full, blocks>>]
      [#exec.workspace<offset = 128, bytes = 64>, #exec.workspace<offset = 256, bytes = 4>, #exec.workspace<offset = 192, bytes = 64>]
    exec.product fused_chain of <kind = block_chunks, from = <@sa, full, blocks>> <offset = 192, bytes = 64, block = tensor<8x4xbf16>> by <offset = 192, bytes = 64, block = tensor<8x4xbf16>> to <offset = 128, bytes = 32, block = tensor<4x4xbf16>> scratch 1536 {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs}
    exec.product fused_chain of <kind = block_chunks, from = <@sa, full, blocks>> <offset = 128, bytes = 32, block = tensor<4x4xbf16>> by <offset = 128, bytes = 32, block = tensor<4x4xbf16>> plus <offset = 128, bytes = 32, block = tensor<4x4xbf16>> to <offset = 320, bytes = 32, block = tensor<4x4xbf16>> scratch 768 {alpha = 2.000000e+00 : f64, beta = -4.000000e+00 : f64, symmetric}
    exec.product fused_chain of <kind = block_chunks, from = <@sa, full, blocks>> <offset = 192, bytes = 64, block = tensor<8x4xbf16>> by <offset = 320, bytes = 32, block = tensor<4x4xbf16>> plus <offset = 192, bytes = 64, block = tensor<8x4xbf16>> to <offset = 256, bytes = 64, block = tensor<8x4xbf16>> scratch 768 {alpha = 1.000000e+00 : f64, beta = 3.000000e+00 : f64}
    exec.copy <kind = copy, from = <@sa, full, blocks>, to = <@sa, full, blocks to shards, sent>, element_bytes = 2> from #exec.workspace<offset = 256, bytes = 64> to #exec.workspace<offset = 640, bytes = 224, start = 1>
    exec.copy <kind = copy, from = <@sb, full, shards to blocks, received>, to = <@sb, full, blocks>, element_bytes = 2> from #exec.workspace<offset = 1024, bytes = 256, start = 0, traveller = 1> to #exec.workspace<offset = 256, bytes = 128>
    exec.apply #optim.block_reduce<norm, exponent = -24> of <kind = block_chunks, from = <@sb, full, blocks>> <offset = 256, bytes = 128, block = tensor<8x8xbf16>> to <offset = 384, bytes = 4, block = tensor<1x1xf32>>
    exec.dispatch_chunks @blocks of [#exec.table<kind = block_chunks, from = <@sb, full, blocks>>]
      [#exec.workspace<offset = 256, bytes = 128>, #exec.workspace<offset = 384, bytes = 4>, #exec.workspace<offset = 0, bytes = 128>]
    exec.product fused_chain of <kind = block_chunks, from = <@sb, full, blocks>> <offset = 0, bytes = 128, block = tensor<8x8xbf16>> by <offset = 0, bytes = 128, block = tensor<8x8xbf16>> to <offset = 256, bytes = 128, block = tensor<8x8xbf16>> scratch 1536 {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
    exec.product fused_chain of <kind = block_chunks, from = <@sb, full, blocks>> <offset = 256, bytes = 128, block = tensor<8x8xbf16>> by <offset = 256, bytes = 128, block = tensor<8x8xbf16>> plus <offset = 256, bytes = 128, block = tensor<8x8xbf16>> to <offset = 384, bytes = 128, block = tensor<8x8xbf16>> scratch 1536 {alpha = 2.000000e+00 : f64, beta = -4.000000e+00 : f64, symmetric}
    exec.product fused_chain of <kind = block_chunks, from = <@sb, full, blocks>> <offset = 384, bytes = 128, block = tensor<8x8xbf16>> by <offset = 0, bytes = 128, block = tensor<8x8xbf16>> plus <offset = 0, bytes = 128, block = tensor<8x8xbf16>> to <offset = 256, bytes = 128, block = tensor<8x8xbf16>> scratch 1536 {alpha = 1.000000e+00 : f64, beta = 3.000000e+00 : f64}
    exec.copy <kind = copy, from = <@sb, full, blocks>, to = <@sb, full, blocks to shards, sent>, element_bytes = 2> from #exec.workspace<offset = 256, bytes = 128> to #exec.workspace<offset = 640, bytes = 224, start = 1, traveller = 1>
    %1 = exec.start exchange [#exec.table<kind = message, from = <@sa, full, blocks to shards, sent>, to = <@sa, full, blocks to shards, received>, element_bytes = 2>,
      #exec.table<kind = message, from = <@sb, full, blocks to shards, sent>, to = <@sb, full, blocks to shards, received>, element_bytes = 2>] from <offset = 640, bytes = 224> to <offset = 1024, bytes = 192>
    exec.await %1
    exec.dispatch_chunks @out of [#exec.table<kind = shard_chunks, from = <@sa, full, shards>, to = <@sa, full, blocks to shards, received>>,
      #exec.table<kind = shard_chunks, from = <@sb, full, shards>, to = <@sb, full, blocks to shards, received>>]
      [#exec.scalars<offset = 512, columns = 2>, #exec.shards<parameter>, #exec.workspace<offset = 1024, bytes = 192, start = 1>,
       #exec.scalars<offset = 576, columns = 2>, #exec.shards<parameter>, #exec.workspace<offset = 1024, bytes = 192, start = 1, traveller = 1>]
    exec.advance_steps
  }
  func.func private @scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64) -> (f32, f32) {
    %0 = arith.truncf %arg1 : f64 to f32
    %1 = arith.truncf %arg0 : f64 to f32
    return %0, %1 : f32, f32
  }
  func.func private @in(%arg0: memref<2xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?x?xf32, strided<[?, 1]>>, %arg3: memref<?x?xbf16, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<2xf32>
    %c1 = arith.constant 1 : index
    %1 = memref.load %arg0[%c1] : memref<2xf32>
    linalg.generic {indexing_maps = [#all, #all, #one, #one, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %0, %1 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, f32, f32) outs(%arg1, %arg3 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xbf16, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %out: f32, %out_3: bf16):
      %2 = arith.mulf %in_1, %in : f32
      %3 = arith.addf %2, %in_0 : f32
      %4 = arith.truncf %3 : f32 to bf16
      linalg.yield %3, %4 : f32, bf16
    }
    return
  }
  func.func private @blocks(%arg0: memref<?x?xbf16, strided<[?, 1]>>, %arg1: memref<f32>, %arg2: memref<?x?xbf16, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : memref<?x?xbf16, strided<[?, 1]>>, memref<f32>) outs(%arg2 : memref<?x?xbf16, strided<[?, 1]>>) {
    ^bb0(%in: bf16, %in_0: f32, %out: bf16):
      %cst = arith.constant 5.96046455E-15 : f32
      %0 = arith.maximumf %in_0, %cst : f32
      %1 = arith.extf %in : bf16 to f32
      %2 = arith.divf %1, %0 : f32
      %cst_1 = arith.constant 5.96046448E-8 : f32
      %3 = arith.mulf %2, %cst_1 : f32
      %4 = arith.truncf %3 : f32 to bf16
      linalg.yield %4 : bf16
    }
    return
  }
  func.func private @out(%arg0: memref<2xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?x?xbf16, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<2xf32>
    %c1 = arith.constant 1 : index
    %1 = memref.load %arg0[%c1] : memref<2xf32>
    linalg.generic {indexing_maps = [#all, #all, #one, #one, #all], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %0, %1 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xbf16, strided<[?, 1]>>, f32, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: bf16, %in_1: f32, %in_2: f32, %out: f32):
      %2 = arith.extf %in_0 : bf16 to f32
      %3 = arith.mulf %in_2, %2 : f32
      %4 = arith.subf %in, %3 : f32
      linalg.yield %4 : f32
    }
    return
  }
}

