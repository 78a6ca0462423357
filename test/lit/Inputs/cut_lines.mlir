#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> ()>
module @m attributes {stepc.level = "exec", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @Cut hyperparameters ["lr"] states [] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = optim.splat %arg2 : tensor<?x?xf32>
    %1 = optim.reduce mean %arg1 {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x?xf32>
    %2 = optim.broadcast %1 : tensor<1x?xf32> to tensor<?x?xf32>
    %3 = arith.mulf %arg1, %2 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %4 = optim.reduce norm %arg1 {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
    %5 = optim.broadcast %4 : tensor<1x1xf32> to tensor<?x?xf32>
    %6 = arith.mulf %3, %5 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %7 = arith.mulf %0, %6 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    %8 = arith.subf %arg0, %7 {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %8 : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.rule @Cut.on_shards hyperparameters ["lr"] states [] needs_matrix written @Cut {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = optim.splat %arg2 : tensor<?x?xf32>
    %1 = optim.reduce mean %arg1 {optim.cut, optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<1x?xf32>
    %2 = optim.broadcast %1 : tensor<1x?xf32> to tensor<?x?xf32>
    %3 = arith.mulf %arg1, %2 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %4 = optim.reduce norm %arg1 {optim.cut, optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<1x1xf32>
    %5 = optim.broadcast %4 : tensor<1x1xf32> to tensor<?x?xf32>
    %6 = arith.mulf %3, %5 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %7 = arith.mulf %0, %6 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %8 = arith.subf %arg0, %7 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %8 : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.route @Cut rule @Cut matrix patterns [] except [] defaults [1.000000e-01] missing_grad error
  optim.parameter @a shape [40, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Cut
  optim.group @g rule @Cut.on_shards parameters [@a] reason "no operation needs a whole matrix"
  comm.segment @g.w0 group @g wave 0 all
  exec.program arena 1024 {
    exec.dispatch_parameters @Cut_scalars of [@g] [#exec.scalars<offset = 960, columns = 1>]
    exec.dispatch_chunks @Cut_mean_f32_i320 of [#exec.table<kind = part_columns, from = <@g.w0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 0, bytes = 240>]
    exec.dispatch_chunks @Cut_norm_f32_i640 of [#exec.table<kind = part_blocks, from = <@g.w0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 256, bytes = 80>]
    exec.copy <kind = copy, from = <@g.w0, cols, line_parts, kept>, to = <@g.w0, cols, line_parts to line_sums, sent>, element_bytes = 40> from #exec.workspace<offset = 0, bytes = 240> to #exec.workspace<offset = 512, bytes = 408, start = 0>
    exec.copy <kind = copy, from = <@g.w0, one, line_parts, kept>, to = <@g.w0, one, line_parts to line_sums, sent>, element_bytes = 80> from #exec.workspace<offset = 256, bytes = 80> to #exec.workspace<offset = 512, bytes = 408, start = 0, traveller = 1>
    %0 = exec.start exchange on <@world, [<0, 1, 2>]> [#exec.table<kind = message, from = <@g.w0, cols, line_parts to line_sums, sent>, to = <@g.w0, cols, line_parts to line_sums, received>, element_bytes = 40>, #exec.table<kind = message, from = <@g.w0, one, line_parts to line_sums, sent>, to = <@g.w0, one, line_parts to line_sums, received>, element_bytes = 80>] from <offset = 512, bytes = 408> to <offset = 0, bytes = 488>
    exec.await %0
    exec.sum f32 by 40 reduces mean <kind = sum, from = <@g.w0, cols, line_parts to line_sums, received>, to = <@g.w0, cols, line_sums, kept>, element_bytes = 40> from <offset = 0, bytes = 488, start = 0> to <offset = 576, bytes = 12>
    exec.copy <kind = copy, from = <@g.w0, cols, line_sums, kept>, to = <@g.w0, cols, line_sums to shards, sent>, element_bytes = 4> from #exec.workspace<offset = 576, bytes = 12> to #exec.workspace<offset = 512, bytes = 48, start = 1>
    exec.sum f32 by 240 reduces norm <kind = sum, from = <@g.w0, one, line_parts to line_sums, received>, to = <@g.w0, one, line_sums, kept>, element_bytes = 80> from <offset = 0, bytes = 488, start = 0, traveller = 1> to <offset = 576, bytes = 4>
    exec.copy <kind = copy, from = <@g.w0, one, line_sums, kept>, to = <@g.w0, one, line_sums to shards, sent>, element_bytes = 4> from #exec.workspace<offset = 576, bytes = 4> to #exec.workspace<offset = 512, bytes = 48, start = 1, traveller = 1>
    %1 = exec.start exchange on <@world, [<0, 1, 2>]> [#exec.table<kind = message, from = <@g.w0, cols, line_sums to shards, sent>, to = <@g.w0, cols, line_sums to shards, received>, element_bytes = 4>, #exec.table<kind = message, from = <@g.w0, one, line_sums to shards, sent>, to = <@g.w0, one, line_sums to shards, received>, element_bytes = 4>] from <offset = 512, bytes = 48> to <offset = 0, bytes = 108>
    exec.await %1
    exec.copy <kind = copy, from = <@g.w0, cols, line_sums to shards, received>, to = <@g.w0, cols, shards, kept>, element_bytes = 4> from #exec.workspace<offset = 0, bytes = 108, start = 1> to #exec.workspace<offset = 128, bytes = 24>
    exec.copy <kind = copy, from = <@g.w0, one, line_sums to shards, received>, to = <@g.w0, one, shards, kept>, element_bytes = 4> from #exec.workspace<offset = 0, bytes = 108, start = 1, traveller = 1> to #exec.workspace<offset = 192, bytes = 4>
    exec.dispatch_chunks @Cut_elementwise_f32 of [#exec.table<kind = line_chunks, from = <@g.w0, full, shards>>] [#exec.scalars<offset = 960, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>, #exec.line<offset = 128, bytes = 24>, #exec.line<offset = 192, bytes = 4>]
    exec.advance_steps
  }
  func.func private @Cut_scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64) -> f32 {
    %0 = arith.truncf %arg0 : f64 to f32
    return %0 : f32
  }
  func.func private @Cut_mean_f32_i320(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<?xf32>) attributes {exec.reduction = #comm.reduction<mean>, exec.sums = 1 : i64} {
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg1 : memref<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    return
  }
  func.func private @Cut_norm_f32_i640(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<f32>) attributes {exec.reduction = #comm.reduction<norm>, exec.sums = 1 : i64} {
    linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "reduction"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg1 : memref<f32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    return
  }
  func.func private @Cut_elementwise_f32(%arg0: memref<1xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?x?xf32, strided<[?, 1]>>, %arg3: memref<?xf32>, %arg4: memref<f32>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<1xf32>
    linalg.generic {indexing_maps = [#map, #map, #map1, #map2, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %arg3, %arg4, %0 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, memref<?xf32>, memref<f32>, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %in_3: f32, %out: f32):
      %1 = arith.mulf %in_0, %in_1 : f32
      %2 = arith.mulf %1, %in_2 : f32
      %3 = arith.mulf %in_3, %2 : f32
      %4 = arith.subf %in, %3 : f32
      linalg.yield %4 : f32
    }
    return
  }
}

