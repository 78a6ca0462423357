// RUN: stepc-opt %s --comm-lower-to-exec=target=cpu:x86-64-v3 | FileCheck %s

// Numbers of the model: the scalars that have numbers, kernels over a rank's parts, what adds these up, what ranks add up, and the
// scalars that read a table and a line of numbers.
// CHECK: exec.program arena 576 {
// CHECK-NEXT: exec.dispatch_parameters @[[TABLE:.*]] of [@m] [#exec.scalars<offset = 512, columns = 1>]
// CHECK-NEXT: exec.dispatch_chunks @[[PARTS:.*]] of [#exec.table<kind = part_model, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 0, bytes = 80>]
// CHECK-NEXT: exec.dispatch_chunks @[[PARTS]] of [#exec.table<kind = part_model, from = <@t, full, shards>>] [#exec.shards<gradient>, #exec.line<offset = 128, bytes = 80>]
// CHECK-NEXT: exec.collect norm of [#exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 80>, #exec.table<kind = collect, from = <@t, one, model_parts, kept>, element_bytes = 80>] from [#exec.line<offset = 0, bytes = 80>, #exec.line<offset = 128, bytes = 80>] to <offset = 384, bytes = 80>{{$}}
// CHECK-NEXT: exec.copy <kind = copy, from = <@u, one, line_parts, kept>, to = <@u, one, line_parts to line_sums, sent>, element_bytes = 80>
// CHECK: exec.sum f32 by 38 reduces norm
// CHECK: exec.dispatch_parameters @[[SCALARS:.*]] of [@g] [#exec.scalars<offset = 0, columns = 3>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 128, bytes = 4>]
// CHECK-NEXT: exec.dispatch_parameters @[[SCALARS]] of [@h] [#exec.scalars<offset = 64, columns = 3>, #exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 128, bytes = 4>]
// CHECK: exec.advance_steps
// CHECK: func.func private @[[TABLE]](%[[MAX:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f32 {
// CHECK-NEXT: arith.truncf %[[MAX]]
// CHECK: func.func private @[[PARTS]](%{{.*}}: memref<?x?xf32, strided<[?, 1]>>, %{{.*}}: memref<f32>) attributes {exec.reduction = #comm.reduction<norm>, exec.sums = 1 : i64} {
// CHECK-NEXT: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]
// CHECK: func.func private @[[SCALARS]](%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[MOST:.*]]: f64, %[[TOTAL:.*]]: f64) -> (f32, f32, f32) {
// CHECK-NEXT: arith.truncf %[[TOTAL]]
// CHECK-NEXT: arith.truncf %[[MOST]]
// CHECK-NEXT: arith.truncf %[[LR]]
module @clip attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["max_norm"] defaults [1.000000e+00] values ["total"] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64):
    %0 = optim.reduce norm %arg1 {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %1 = optim.splat %arg2 {optim.number = 1 : i64} : tensor<1x1xf32>
    %2 = arith.divf %1, %0 : tensor<1x1xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %3 = optim.splat %cst : tensor<1x1xf32>
    %4 = arith.minimumf %3, %2 : tensor<1x1xf32>
    %5 = optim.broadcast %4 : tensor<1x1xf32> to tensor<?x?xf32>
    %6 = arith.mulf %5, %arg1 : tensor<?x?xf32>
    optim.yield %6, %0 : tensor<?x?xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
    %0 = optim.model_number 0 : f64
    %1 = optim.splat %0 : tensor<1x1xf32>
    %2 = optim.model_number 1 : f64
    %3 = optim.splat %2 : tensor<1x1xf32>
    %4 = arith.divf %3, %1 : tensor<1x1xf32>
    %cst = arith.constant 1.000000e+00 : f64
    %5 = optim.splat %cst : tensor<1x1xf32>
    %6 = arith.minimumf %5, %4 : tensor<1x1xf32>
    %7 = optim.broadcast %6 : tensor<1x1xf32> to tensor<?x?xf32>
    %8 = arith.mulf %7, %arg1 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %9 = optim.splat %arg2 : tensor<?x?xf32>
    %10 = arith.mulf %9, %8 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %11 = arith.subf %arg0, %10 {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %11 : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [1.000000e-01] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
  optim.parameter @b shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @Sgd
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters ["max_norm"] states [] {
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
  func.func @step() attributes {comm.arena_bytes = 576 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %0 = comm.buffer offset 512 bytes 4 : memref<1x1xf32, #comm.place<@m, scalars>>
    comm.scalars of %hyperparameters, %steps active %active outs(%0 : memref<1x1xf32, #comm.place<@m, scalars>>) attributes {comm.of_model} {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64):
      comm.yield %arg0 : f64
    }
    %1 = comm.shards gradient @g : <@g, f32>
    %2 = comm.extent <@s, one, model_parts, kept>
    %3 = comm.buffer offset 0 bytes 80(%2) : memref<?xi640, #comm.place<@s, one, model_parts, kept>>
    comm.stage @s over shards reduces norm active %active ins(%1 : !comm.shards<@g, f32>) outs(%3 : memref<?xi640, #comm.place<@s, one, model_parts, kept>>) attributes {comm.of_model} {
    ^bb0(%arg0: f32):
      comm.yield %arg0 : f32
    }
    %4 = comm.shards gradient @h : <@h, f32>
    %5 = comm.extent <@t, one, model_parts, kept>
    %6 = comm.buffer offset 128 bytes 80(%5) : memref<?xi640, #comm.place<@t, one, model_parts, kept>>
    comm.stage @t over shards reduces norm active %active ins(%4 : !comm.shards<@h, f32>) outs(%6 : memref<?xi640, #comm.place<@t, one, model_parts, kept>>) attributes {comm.of_model} {
    ^bb0(%arg0: f32):
      comm.yield %arg0 : f32
    }
    %7 = comm.extent <@u, one, line_parts, kept>
    %8 = comm.buffer offset 384 bytes 80(%7) : memref<?xi640, #comm.place<@u, one, line_parts, kept>>
    comm.collect norm active %active ins(%3, %6 : memref<?xi640, #comm.place<@s, one, model_parts, kept>>, memref<?xi640, #comm.place<@t, one, model_parts, kept>>) outs(%8 : memref<?xi640, #comm.place<@u, one, line_parts, kept>>) {comm.of_model}
    %9 = comm.extent <@u, one, line_parts to line_sums, sent>
    %10 = comm.buffer offset 256 bytes 112(%9) : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, sent>>
    comm.copy ins(%8 : memref<?xi640, #comm.place<@u, one, line_parts, kept>>) outs(%10 : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, sent>>) {comm.of_model}
    %11 = comm.extent <@u, one, line_parts to line_sums, received>
    %12 = comm.buffer offset 0 bytes 240(%11) : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, received>>
    %13 = comm.communicator <@model, [<0, 1, 2>]>
    %14 = comm.start exchange %13 order 0 sends(%10 : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, sent>>) receives(%12 : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, received>>)
    comm.wait %14
    %15 = comm.extent <@u, one, line_sums, kept>
    %16 = comm.buffer offset 256 bytes 4(%15) : memref<?xf32, #comm.place<@u, one, line_sums, kept>>
    comm.sum by 38 reduces norm ins(%12 : memref<?xi640, #comm.place<@u, one, line_parts to line_sums, received>>) outs(%16 : memref<?xf32, #comm.place<@u, one, line_sums, kept>>) {comm.of_model}
    %17 = comm.extent <@u, one, line_sums to shards, sent>
    %18 = comm.buffer offset 0 bytes 36(%17) : memref<?xf32, #comm.place<@u, one, line_sums to shards, sent>>
    comm.copy ins(%16 : memref<?xf32, #comm.place<@u, one, line_sums, kept>>) outs(%18 : memref<?xf32, #comm.place<@u, one, line_sums to shards, sent>>) {comm.of_model}
    %19 = comm.extent <@u, one, line_sums to shards, received>
    %20 = comm.buffer offset 64 bytes 36(%19) : memref<?xf32, #comm.place<@u, one, line_sums to shards, received>>
    %21 = comm.start exchange %13 order 1 sends(%18 : memref<?xf32, #comm.place<@u, one, line_sums to shards, sent>>) receives(%20 : memref<?xf32, #comm.place<@u, one, line_sums to shards, received>>)
    comm.wait %21
    %22 = comm.extent <@u, one, shards, kept>
    %23 = comm.buffer offset 128 bytes 4(%22) : memref<?xf32, #comm.place<@u, one, shards, kept>>
    comm.copy ins(%20 : memref<?xf32, #comm.place<@u, one, line_sums to shards, received>>) outs(%23 : memref<?xf32, #comm.place<@u, one, shards, kept>>) {comm.of_model}
    %24 = comm.buffer offset 0 bytes 12 : memref<1x3xf32, #comm.place<@g, scalars>>
    comm.scalars of %hyperparameters, %steps active %active numbers(%0, %23 : memref<1x1xf32, #comm.place<@m, scalars>>, memref<?xf32, #comm.place<@u, one, shards, kept>>) outs(%24 : memref<1x3xf32, #comm.place<@g, scalars>>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
      comm.yield %arg6, %arg5, %arg0 : f64, f64, f64
    }
    %25 = comm.buffer offset 64 bytes 12 : memref<1x3xf32, #comm.place<@h, scalars>>
    comm.scalars of %hyperparameters, %steps active %active numbers(%0, %23 : memref<1x1xf32, #comm.place<@m, scalars>>, memref<?xf32, #comm.place<@u, one, shards, kept>>) outs(%25 : memref<1x3xf32, #comm.place<@h, scalars>>) {
    ^bb0(%arg0: f64, %arg1: f64, %arg2: f64, %arg3: f64, %arg4: f64, %arg5: f64, %arg6: f64):
      comm.yield %arg6, %arg5, %arg0 : f64, f64, f64
    }
    %26 = comm.shards parameter @g : <@g, f32>
    comm.stage @s over shards active %active ins(%26, %1 : !comm.shards<@g, f32>, !comm.shards<@g, f32>) writes(%26 : !comm.shards<@g, f32>) scalars(%24 : memref<1x3xf32, #comm.place<@g, scalars>>) {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32):
      %cst = arith.constant 1.000000e+00 : f32
      %28 = arith.divf %arg3, %arg2 : f32
      %29 = arith.minimumf %cst, %28 : f32
      %30 = arith.mulf %29, %arg1 : f32
      %31 = arith.mulf %arg4, %30 : f32
      %32 = arith.subf %arg0, %31 : f32
      comm.yield %32 : f32
    }
    %27 = comm.shards parameter @h : <@h, f32>
    comm.stage @t over shards active %active ins(%27, %4 : !comm.shards<@h, f32>, !comm.shards<@h, f32>) writes(%27 : !comm.shards<@h, f32>) scalars(%25 : memref<1x3xf32, #comm.place<@h, scalars>>) {
    ^bb0(%arg0: f32, %arg1: f32, %arg2: f32, %arg3: f32, %arg4: f32):
      %cst = arith.constant 1.000000e+00 : f32
      %28 = arith.divf %arg3, %arg2 : f32
      %29 = arith.minimumf %cst, %28 : f32
      %30 = arith.mulf %29, %arg1 : f32
      %31 = arith.mulf %arg4, %30 : f32
      %32 = arith.subf %arg0, %31 : f32
      comm.yield %32 : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}
