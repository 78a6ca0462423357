// What the passes make of a model that skips steps and has a state, for a group on two ranks, at level 5.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module @skips attributes {stepc.chip = "x86-64-v3;+64bit,+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["k"] defaults [1.000000e+00] values [] states [#optim.state<"seen", f32, one, 0.000000e+00 : f64, false>] skips {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64):
    %0 = optim.reduce norm %arg1 {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %1 = optim.splat %arg2 {optim.number = 1 : i64} : tensor<1x1xf32>
    %2 = optim.model_state "seen" {optim.number = 2 : i64} : tensor<1x1xf32>
    %3 = arith.addf %2, %0 : tensor<1x1xf32>
    %4 = arith.cmpf ogt, %0, %1 : tensor<1x1xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f64
    %5 = optim.splat %cst : tensor<1x1xf32>
    %6 = optim.splat %cst_0 : tensor<1x1xf32>
    %7 = arith.select %4, %5, %6 : tensor<1x1xi1>, tensor<1x1xf32>
    optim.yield %arg1, %3, %7 : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = optim.splat %arg2 : tensor<?x?xf32>
    %1 = arith.mulf %0, %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %2 = arith.subf %arg0, %1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %2 : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [1.000000e-01] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters ["k"] states [#optim.state<"seen", f32, one, 0.000000e+00 : f64, false>] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: tensor<1x1xf32>, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64):
    %0 = optim.model_number 0 : f64
    %1 = optim.splat %0 : tensor<1x1xf32>
    %2 = optim.model_number 2 : f64
    %3 = optim.splat %2 : tensor<1x1xf32>
    %4 = arith.addf %3, %1 : tensor<1x1xf32>
    optim.yield %arg0, %4 : tensor<?x?xf32>, tensor<1x1xf32> {optim.writes = [unit, #optim.space<in>]}
  }
  optim.route @model rule @model patterns ["model"] except [] defaults [1.000000e+00] missing_grad zero
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
  optim.group @g rule @Sgd parameters [@w]
  optim.group @m rule @model parameters [@model]
  comm.segment @g.w0 group @g wave 0 all
  comm.segment @m.w0 group @m wave 0 all
  exec.program arena 512 {
    exec.dispatch_parameters @model_scalars of [@m] [#exec.scalars<offset = 384, columns = 1>]
    exec.copy <kind = copy, from = <@m.w0, one, shards>, to = <@m.w0, one, shards, kept>, element_bytes = 4> from #exec.shards<state, "seen"> to #exec.workspace<offset = 448, bytes = 4>
    exec.dispatch_chunks @Sgd_norm_f32_i640 of [#exec.table<kind = part_model, from = <@g.w0, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 0, bytes = 80>]
    exec.collect norm of [#exec.table<kind = collect, from = <@g.w0, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>] to <offset = 128, bytes = 80>
    exec.copy <kind = copy, from = <@m.w0, one, line_parts, kept>, to = <@m.w0, one, line_parts to line_sums, sent>, element_bytes = 80> from #exec.workspace<offset = 128, bytes = 80> to #exec.workspace<offset = 256, bytes = 112, start = 0>
    %0 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@m.w0, one, line_parts to line_sums, sent>, to = <@m.w0, one, line_parts to line_sums, received>, element_bytes = 80>] from <offset = 256, bytes = 112> to <offset = 0, bytes = 240>
    exec.await %0
    exec.sum f32 by 32 reduces norm <kind = sum, from = <@m.w0, one, line_parts to line_sums, received>, to = <@m.w0, one, line_sums, kept>, element_bytes = 80> from <offset = 0, bytes = 240, start = 0> to <offset = 256, bytes = 4>
    exec.copy <kind = copy, from = <@m.w0, one, line_sums, kept>, to = <@m.w0, one, line_sums to shards, sent>, element_bytes = 4> from #exec.workspace<offset = 256, bytes = 4> to #exec.workspace<offset = 0, bytes = 36, start = 1>
    %1 = exec.start exchange on <@model, [<0, 1, 2>]> [#exec.table<kind = message, from = <@m.w0, one, line_sums to shards, sent>, to = <@m.w0, one, line_sums to shards, received>, element_bytes = 4>] from <offset = 0, bytes = 36> to <offset = 64, bytes = 36>
    exec.await %1
    exec.copy <kind = copy, from = <@m.w0, one, line_sums to shards, received>, to = <@m.w0, one, shards, kept>, element_bytes = 4> from #exec.workspace<offset = 64, bytes = 36, start = 1> to #exec.workspace<offset = 128, bytes = 4>
    exec.dispatch_parameters @model_scalars_1 of [@m] [#exec.scalars<offset = 0, columns = 2>, #exec.scalars<offset = 384, columns = 1>, #exec.line<offset = 448, bytes = 4>, #exec.line<offset = 128, bytes = 4>]
    exec.dispatch_chunks @model_lines_f32 of [#exec.table<kind = shard_chunks, from = <@m.w0, one, shards>>] [#exec.scalars<offset = 0, columns = 2>, #exec.shards<state, "seen">]
    exec.dispatch_parameters @model_scalars_2 of [@m] [#exec.scalars<offset = 0, columns = 2>, #exec.scalars<offset = 384, columns = 1>, #exec.line<offset = 448, bytes = 4>, #exec.line<offset = 128, bytes = 4>]
    exec.dispatch_chunks @model_lines_f32_1 of [#exec.table<kind = shard_chunks, from = <@m.w0, one, shards>, to = <@m.w0, one, shards, kept>>] [#exec.scalars<offset = 0, columns = 2>, #exec.workspace<offset = 64, bytes = 4>]
    exec.skip when <offset = 64, bytes = 4>
    exec.dispatch_parameters @Sgd_scalars of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.dispatch_chunks @Sgd_elementwise_f32 of [#exec.table<kind = shard_chunks, from = <@g.w0, full, shards>>] [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>]
    exec.advance_steps
  }
  func.func private @model_scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64) -> f32 {
    %0 = arith.truncf %arg0 : f64 to f32
    return %0 : f32
  }
  func.func private @Sgd_norm_f32_i640(%arg0: memref<?x?xf32, strided<[?, 1]>>, %arg1: memref<f32>) attributes {exec.reduction = #comm.reduction<norm>, exec.sums = 1 : i64} {
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg1 : memref<f32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    return
  }
  func.func private @model_scalars_1(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64) -> (f32, f32) {
    %0 = arith.truncf %arg7 : f64 to f32
    %1 = arith.truncf %arg6 : f64 to f32
    return %0, %1 : f32, f32
  }
  func.func private @model_lines_f32(%arg0: memref<2xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<2xf32>
    %c1 = arith.constant 1 : index
    %1 = memref.load %arg0[%c1] : memref<2xf32>
    linalg.generic {indexing_maps = [#map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : f32, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.addf %in_0, %in : f32
      linalg.yield %2 : f32
    }
    return
  }
  func.func private @model_scalars_2(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64, %arg7: f64) -> (f32, f32) {
    %0 = arith.truncf %arg7 : f64 to f32
    %1 = arith.truncf %arg5 : f64 to f32
    return %0, %1 : f32, f32
  }
  func.func private @model_lines_f32_1(%arg0: memref<2xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<2xf32>
    %c1 = arith.constant 1 : index
    %1 = memref.load %arg0[%c1] : memref<2xf32>
    linalg.generic {indexing_maps = [#map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : f32, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.cmpf ogt, %in, %in_0 : f32
      %cst = arith.constant 1.000000e+00 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      %3 = arith.select %2, %cst, %cst_1 : f32
      linalg.yield %3 : f32
    }
    return
  }
  func.func private @Sgd_scalars(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64) -> f32 {
    %0 = arith.truncf %arg0 : f64 to f32
    return %0 : f32
  }
  func.func private @Sgd_elementwise_f32(%arg0: memref<1xf32>, %arg1: memref<?x?xf32, strided<[?, 1]>>, %arg2: memref<?x?xf32, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<1xf32>
    linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %0 : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, f32) outs(%arg1 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %out: f32):
      %1 = arith.mulf %in_1, %in_0 : f32
      %2 = arith.subf %in, %1 : f32
      linalg.yield %2 : f32
    }
    return
  }
}

