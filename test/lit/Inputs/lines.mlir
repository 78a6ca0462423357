#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module @m attributes {stepc.level = "exec", stepc.numerics = "exact"} {
  optim.rule @Rows hyperparameters ["lr"] states [#optim.state<"v", bf16, rows, 0.000000e+00 : f64, false>] needs_matrix {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<?x1xf32>, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64):
    %0 = arith.mulf %arg1, %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %1 = optim.reduce mean %0 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x1xf32>
    %2 = arith.addf %arg2, %1 : tensor<?x1xf32>
    %3 = optim.broadcast %2 : tensor<?x1xf32> to tensor<?x?xf32>
    %4 = arith.divf %arg1, %3 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %5 = arith.subf %arg0, %4 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %5, %2 : tensor<?x?xf32>, tensor<?x1xf32> {optim.writes = [#optim.space<in>, #optim.space<in>]}
  }
  optim.route @Rows rule @Rows matrix patterns [] except [] defaults [1.000000e-01] missing_grad error
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Rows
  optim.group @g rule @Rows parameters [@a]
  comm.segment @g.w0 group @g wave 0 all
  exec.program arena 128 {
    exec.copy <kind = copy, from = <@g.w0, rows, shards>, to = <@g.w0, rows, shards, kept>, element_bytes = 2> from #exec.shards<state, "v"> to #exec.workspace<offset = 64, bytes = 4>
    exec.dispatch_chunks @Rows_mean_f32 of [#exec.table<kind = whole_rows, from = <@g.w0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 0, bytes = 8>]
    exec.dispatch_chunks @Rows_elementwise_f32_bf16 of [#exec.table<kind = line_chunks, from = <@g.w0, full, shards>>] [#exec.shards<parameter>, #exec.shards<gradient>, #exec.line<offset = 64, bytes = 4>, #exec.line<offset = 0, bytes = 8>]
    exec.dispatch_chunks @Rows_lines_bf16_f32 of [#exec.table<kind = shard_chunks, from = <@g.w0, rows, shards>, to = <@g.w0, rows, shards, kept>>] [#exec.shards<state, "v">, #exec.workspace<offset = 0, bytes = 8>]
    exec.advance_steps
  }
  func.func private @Rows_mean_f32(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<?xf32>) attributes {exec.reduction = #comm.reduction<mean>} {
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg1 : memref<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %in : f32
      linalg.yield %0 : f32
    }
    return
  }
  func.func private @Rows_elementwise_f32_bf16(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?xbf16>, %arg3: memref<?xf32>) {
    linalg.generic {indexing_maps = [#map, #map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1, %arg2, %arg3 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, memref<?xbf16>, memref<?xf32>) outs(%arg0 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: bf16, %in_2: f32, %out: f32):
      %0 = arith.extf %in_1 : bf16 to f32
      %1 = arith.addf %0, %in_2 : f32
      %2 = arith.divf %in_0, %1 : f32
      %3 = arith.subf %in, %2 : f32
      linalg.yield %3 : f32
    }
    return
  }
  func.func private @Rows_lines_bf16_f32(%arg0: memref<?x?xbf16, strided<[?, 1]>>, %arg1: memref<?x?xf32, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : memref<?x?xbf16, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>) outs(%arg0 : memref<?x?xbf16, strided<[?, 1]>>) {
    ^bb0(%in: bf16, %in_0: f32, %out: bf16):
      %0 = arith.extf %in : bf16 to f32
      %1 = arith.addf %0, %in_0 : f32
      %2 = arith.truncf %1 : f32 to bf16
      linalg.yield %2 : bf16
    }
    return
  }
}

