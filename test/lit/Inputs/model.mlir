// What the passes make of a model whose second reduction needs the first, for two groups on two ranks, at level 5. The third number is a
// scalar of the model.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module @normalize attributes {stepc.level = "exec", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["k"] defaults [1.000000e+00] values ["spread"] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64):
    %0 = optim.reduce mean %arg1 {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %1 = optim.broadcast %0 : tensor<1x1xf32> to tensor<?x?xf32>
    %2 = arith.subf %arg1, %1 : tensor<?x?xf32>
    %3 = optim.reduce rms %2 {optim.number = 1 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %4 = optim.splat %arg2 {optim.number = 2 : i64} : tensor<1x1xf32>
    %5 = arith.divf %4, %3 : tensor<1x1xf32>
    %6 = optim.broadcast %5 : tensor<1x1xf32> to tensor<?x?xf32>
    %7 = arith.mulf %6, %2 : tensor<?x?xf32>
    optim.yield %7, %3 : tensor<?x?xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = optim.model_number 0 : f64
    %1 = optim.splat %0 : tensor<1x1xf32>
    %2 = optim.broadcast %1 : tensor<1x1xf32> to tensor<?x?xf32>
    %3 = arith.subf %arg1, %2 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %4 = optim.model_number 1 : f64
    %5 = optim.splat %4 : tensor<1x1xf32>
    %6 = optim.model_number 2 : f64
    %7 = optim.splat %6 : tensor<1x1xf32>
    %8 = arith.divf %7, %5 : tensor<1x1xf32>
    %9 = optim.broadcast %8 : tensor<1x1xf32> to tensor<?x?xf32>
    %10 = arith.mulf %9, %3 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %11 = optim.splat %arg2 : tensor<?x?xf32>
    %12 = arith.mulf %11, %10 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %13 = arith.subf %arg0, %12 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %13 : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [1.000000e-01] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
  optim.parameter @b shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Sgd
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters ["k"] states [] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    optim.yield %arg0 : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.route @model rule @model patterns ["model"] except [] defaults [1.000000e+00] missing_grad zero
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
  optim.group @g rule @Sgd parameters [@w]
  optim.group @h rule @Sgd parameters [@b]
  optim.group @m rule @model parameters [@model]
  comm.segment @s group @g wave 0 all
  comm.segment @t group @h wave 0 all
  comm.segment @u group @m wave 0 all
  exec.program arena 640 {
    exec.dispatch_parameters @model_scalars of [@m] [#exec.scalars<offset = 512, columns = 1>]
    exec.dispatch_chunks @Sgd_mean_f32_i320 of
      [#exec.table<kind = part_model, from = <@s, full, shards>>,
       #exec.table<kind = part_model, from = <@t, full, shards>>]
      [#exec.shards<gradient>, #exec.line<offset = 0, bytes = 40>, #exec.shards<gradient>, #exec.line<offset = 64, bytes = 40>]
    exec.collect mean of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 40>,
       #exec.table<kind = collect, from = <@t, one, model_parts, kept>, element_bytes = 40>] from [#exec.line<offset = 0, bytes = 40>, #exec.line<offset = 64, bytes = 40>] to <offset = 128, bytes = 40>
    exec.copy <kind = copy, from = <@u, one, line_parts, kept>, to = <@u, one, line_parts to line_sums, sent>, element_bytes = 40> from #exec.workspace<offset = 128, bytes = 40> to #exec.workspace<offset = 256, bytes = 72, start = 0>
    %0 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@u, one, line_parts to line_sums, sent>, to = <@u, one, line_parts to line_sums, received>, element_bytes = 40>] from <offset = 256, bytes = 72> to <offset = 0, bytes = 200>
    exec.await %0
    exec.sum f32 by 38 reduces mean <kind = sum, from = <@u, one, line_parts to line_sums, received>, to = <@u, one, line_sums, kept>, element_bytes = 40> from <offset = 0, bytes = 200, start = 0> to <offset = 256, bytes = 4>
    exec.copy <kind = copy, from = <@u, one, line_sums, kept>, to = <@u, one, line_sums to shards, sent>, element_bytes = 4> from #exec.workspace<offset = 256, bytes = 4> to #exec.workspace<offset = 0, bytes = 36, start = 1>
    %1 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@u, one, line_sums to shards, sent>, to = <@u, one, line_sums to shards, received>, element_bytes = 4>] from <offset = 0, bytes = 36> to <offset = 64, bytes = 36>
    exec.await %1
    exec.copy <kind = copy, from = <@u, one, line_sums to shards, received>, to = <@u, one, shards, kept>, element_bytes = 4> from #exec.workspace<offset = 64, bytes = 36, start = 1> to #exec.workspace<offset = 576, bytes = 4>
    exec.dispatch_parameters @Sgd_scalars of [@g, @h] [#exec.scalars<offset = 128, columns = 1>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 576, bytes = 4>, #exec.scalars<offset = 256, columns = 1>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 576, bytes = 4>]
    exec.dispatch_chunks @Sgd_rms_f32_i640 of
      [#exec.table<kind = part_model, from = <@s, full, shards>>]
      [#exec.scalars<offset = 128, columns = 1>, #exec.shards<gradient>, #exec.line<offset = 0, bytes = 80>]
    exec.dispatch_chunks @Sgd_rms_f32_i640 of
      [#exec.table<kind = part_model, from = <@t, full, shards>>]
      [#exec.scalars<offset = 256, columns = 1>, #exec.shards<gradient>, #exec.line<offset = 128, bytes = 80>]
    exec.collect rms of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>,
       #exec.table<kind = collect, from = <@t, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>, #exec.line<offset = 128, bytes = 80>] to <offset = 384, bytes = 80>
    exec.copy <kind = copy, from = <@u, one, line_parts, kept>, to = <@u, one, line_parts to line_sums, sent>, element_bytes = 80> from #exec.workspace<offset = 384, bytes = 80> to #exec.workspace<offset = 256, bytes = 112, start = 2>
    %2 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@u, one, line_parts to line_sums, sent>, to = <@u, one, line_parts to line_sums, received>, element_bytes = 80>] from <offset = 256, bytes = 112> to <offset = 0, bytes = 240>
    exec.await %2
    exec.sum f32 by 38 reduces rms <kind = sum, from = <@u, one, line_parts to line_sums, received>, to = <@u, one, line_sums, kept>, element_bytes = 80> from <offset = 0, bytes = 240, start = 2> to <offset = 256, bytes = 4>
    exec.copy <kind = copy, from = <@u, one, line_sums, kept>, to = <@u, one, line_sums to shards, sent>, element_bytes = 4> from #exec.workspace<offset = 256, bytes = 4> to #exec.workspace<offset = 0, bytes = 36, start = 3>
    %3 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@u, one, line_sums to shards, sent>, to = <@u, one, line_sums to shards, received>, element_bytes = 4>] from <offset = 0, bytes = 36> to <offset = 64, bytes = 36>
    exec.await %3
    exec.copy <kind = copy, from = <@u, one, line_sums to shards, received>, to = <@u, one, shards, kept>, element_bytes = 4> from #exec.workspace<offset = 64, bytes = 36, start = 3> to #exec.workspace<offset = 128, bytes = 4>
    exec.dispatch_parameters @Sgd_scalars_1 of [@g, @h] [#exec.scalars<offset = 0, columns = 4>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 576, bytes = 4>, #exec.line<offset = 128, bytes = 4>, #exec.scalars<offset = 64, columns = 4>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 576, bytes = 4>, #exec.line<offset = 128, bytes = 4>]
    exec.dispatch_chunks @Sgd_elementwise_f32 of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>,
       #exec.table<kind = shard_chunks, from = <@t, full, shards>>]
      [#exec.scalars<offset = 0, columns = 4>, #exec.shards<parameter>, #exec.shards<gradient>, #exec.scalars<offset = 64, columns = 4>, #exec.shards<parameter>, #exec.shards<gradient>]
    exec.advance_steps
  }
  func.func private @model_scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64) -> f32 {
    %0 = arith.truncf %arg0 : f64 to f32
    return %0 : f32
  }
  func.func private @Sgd_mean_f32_i320(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<f32>) attributes {exec.reduction = #comm.reduction<mean>, exec.sums = 1 : i64} {
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg1 : memref<f32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    return
  }
  func.func private @Sgd_scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64) -> f32 {
    %0 = arith.truncf %arg6 : f64 to f32
    return %0 : f32
  }
  func.func private @Sgd_rms_f32_i640(%arg0: memref<1xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<f32>) attributes {exec.reduction = #comm.reduction<rms>, exec.sums = 1 : i64} {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<1xf32>
    linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg1, %0 : memref<?x?xf32, strided<[?, 1]>>, f32) outs(%arg2 : memref<f32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %1 = arith.subf %in, %in_0 : f32
      linalg.yield %1 : f32
    }
    return
  }
  func.func private @Sgd_scalars_1(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64) -> (f32, f32, f32, f32) {
    %0 = arith.truncf %arg6 : f64 to f32
    %1 = arith.truncf %arg7 : f64 to f32
    %2 = arith.truncf %arg5 : f64 to f32
    %3 = arith.truncf %arg0 : f64 to f32
    return %0, %1, %2, %3 : f32, f32, f32, f32
  }
  func.func private @Sgd_elementwise_f32(%arg0: memref<4xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?x?xf32, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<4xf32>
    %c1 = arith.constant 1 : index
    %1 = memref.load %arg0[%c1] : memref<4xf32>
    %c2 = arith.constant 2 : index
    %2 = memref.load %arg0[%c2] : memref<4xf32>
    %c3 = arith.constant 3 : index
    %3 = memref.load %arg0[%c3] : memref<4xf32>
    linalg.generic {indexing_maps = [#map, #map, #map1, #map1, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %0, %1, %2, %3 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, f32, f32, f32, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %in_3: f32, %in_4: f32, %out: f32):
      %4 = arith.divf %in_3, %in_2 : f32
      %5 = arith.subf %in_0, %in_1 : f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.mulf %in_4, %6 : f32
      %8 = arith.subf %in, %7 : f32
      linalg.yield %8 : f32
    }
    return
  }
}
