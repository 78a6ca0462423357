// A model that skips steps, down the ladder.
// RUN: stepc-opt %s --comm-distribute | FileCheck %s
// RUN: stepc-opt %s --comm-distribute --stepc-schedule | FileCheck %s --check-prefix SCHEDULED
// RUN: stepc-opt %s --comm-distribute --stepc-schedule --stepc-exec="target=cpu:x86-64-v3" | FileCheck %s --check-prefix EXEC

// The condition is computed from the model's numbers, with the model's own flags. What follows has the flags that are left.
// CHECK: %[[TABLE:.*]] = comm.scalars of %hyperparameters, %steps active %active outs({{.*}} : tensor<1x1xf32, #comm.place<@m, scalars>>) attributes {comm.of_model} {
// CHECK: %[[LINE:.*]] = comm.copy ins({{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>>)
// CHECK: %[[BOTH:.*]] = comm.scalars of %hyperparameters, %steps active %active numbers(%[[TABLE]], %[[LINE]] : {{.*}}) outs({{.*}} : tensor<1x2xf32, #comm.place<@m, scalars>>) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[N1:.*]]: f64, %[[N0:.*]]: f64):
// CHECK-NEXT: comm.yield %[[N0]], %[[N1]] : f64, f64
// CHECK: %[[VALUE:.*]] = comm.stage @m.w0 over shards of one active %active outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>>) scalars(%[[BOTH]] : {{.*}}) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%[[TOTAL:.*]]: f32, %[[MOST:.*]]: f32):
// CHECK-NEXT: %[[ABOVE:.*]] = arith.cmpf ogt, %[[TOTAL]], %[[MOST]] : f32
// CHECK: %[[SKIP:.*]] = arith.select %[[ABOVE]],
// CHECK-NEXT: comm.yield %[[SKIP]] : f32
// CHECK: %[[REST:.*]] = comm.skip active %active when %[[VALUE]] : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>> {comm.of_model}
// CHECK-NOT: active %active
// CHECK: comm.scalars of %hyperparameters, %steps active %[[REST]] outs({{.*}} : tensor<1x1xf32, #comm.place<@g, scalars>>) {
// CHECK: comm.stage @g.w0 over shards active %[[REST]]
// CHECK: comm.advance_steps %steps active %[[REST]]

// The value is in memory when the command reads it, behind the exchanges of the numbers.
// SCHEDULED-COUNT-2: comm.wait
// SCHEDULED: comm.stage @m.w0 over shards of one active %active outs(%[[VALUE:.*]] : memref<?xf32, #comm.place<@m.w0, one, shards, kept>>)
// SCHEDULED: %[[REST:.*]] = comm.skip active %active when %[[VALUE]] : memref<?xf32, #comm.place<@m.w0, one, shards, kept>>
// SCHEDULED: comm.stage @g.w0 over shards active %[[REST]]
// SCHEDULED: comm.advance_steps %steps active %[[REST]]

// EXEC: exec.dispatch_chunks @model_lines_f32 of {{.*}}#exec.workspace<offset = [[AT:.*]], bytes = 4>
// EXEC-NEXT: exec.skip when <offset = [[AT]], bytes = 4>{{$}}
// EXEC-NEXT: exec.dispatch_parameters @Sgd_scalars
// EXEC: exec.advance_steps{{$}}
module @skips {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["k"] defaults [1.0] values [] skips {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %k: f64, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %most = optim.splat %k {optim.number = 1 : i64} : tensor<1x1xf32>
    %above = arith.cmpf ogt, %total, %most : tensor<1x1xf32>
    %c1 = arith.constant 1.0 : f64
    %c0 = arith.constant 0.0 : f64
    %one = optim.splat %c1 : tensor<1x1xf32>
    %zero = optim.splat %c0 : tensor<1x1xf32>
    %skip = arith.select %above, %one, %zero : tensor<1x1xi1>, tensor<1x1xf32>
    optim.yield %grad, %skip : tensor<?x?xf32>, tensor<1x1xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %s = optim.splat %lr : tensor<?x?xf32>
    %d = arith.mulf %s, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %p = arith.subf %param, %d {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [0.1] missing_grad error
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @Sgd
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters ["k"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %k: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.route @model rule @model patterns ["model"] except [] defaults [1.0] missing_grad zero
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
  optim.group @g rule @Sgd parameters [@w]
  optim.group @m rule @model parameters [@model]
}
