// A model with a state, at level 3.
// RUN: stepc-opt %s --comm-distribute | FileCheck %s

// The old state is a number like others, which a copy keeps. The new one is stored before the step may be skipped, with the model's own
// flags.
// CHECK: %[[STATE:.*]] = comm.shards state @m "seen" : <@m, f32>
// CHECK: %[[OLD:.*]] = comm.copy active %active ins(%[[STATE]] : !comm.shards<@m, f32>) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>>) {comm.of_model}
// CHECK: comm.stage @g.w0 over shards reduces norm
// CHECK: %[[TOTAL:.*]] = comm.copy ins({{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>>) {comm.of_model}
// CHECK: %[[TABLE:.*]] = comm.scalars of %hyperparameters, %steps active %active numbers(%{{.*}}, %[[OLD]], %[[TOTAL]] : {{.*}}) outs({{.*}} : tensor<1x2xf32, #comm.place<@m, scalars>>) attributes {comm.of_model} {
// CHECK: comm.stage @m.w0 over shards of one active %active writes(%[[STATE]] : !comm.shards<@m, f32>) scalars(%[[TABLE]] : {{.*}}) attributes {comm.of_model} {
// CHECK: arith.addf
// CHECK: %[[REST:.*]] = comm.skip active %active
// CHECK-NOT: @m "seen"
// CHECK: comm.advance_steps %steps active %[[REST]]
module @skips {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["k"] defaults [1.0] values [] states [#optim.state<"seen", f32, one, 0.0 : f64, false>] skips {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %k: f64, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %most = optim.splat %k {optim.number = 1 : i64} : tensor<1x1xf32>
    %seen = optim.model_state "seen" {optim.number = 2 : i64} : tensor<1x1xf32>
    %more = arith.addf %seen, %total : tensor<1x1xf32>
    %above = arith.cmpf ogt, %total, %most : tensor<1x1xf32>
    %c1 = arith.constant 1.0 : f64
    %c0 = arith.constant 0.0 : f64
    %one = optim.splat %c1 : tensor<1x1xf32>
    %zero = optim.splat %c0 : tensor<1x1xf32>
    %skip = arith.select %above, %one, %zero : tensor<1x1xi1>, tensor<1x1xf32>
    optim.yield %grad, %more, %skip : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
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
  optim.rule @model hyperparameters ["k"] states [#optim.state<"seen", f32, one, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %old: tensor<1x1xf32>, %k: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n0 = optim.model_number 0 : f64
    %total = optim.splat %n0 : tensor<1x1xf32>
    %n2 = optim.model_number 2 : f64
    %seen = optim.splat %n2 : tensor<1x1xf32>
    %more = arith.addf %seen, %total : tensor<1x1xf32>
    optim.yield %param, %more : tensor<?x?xf32>, tensor<1x1xf32> {optim.writes = [unit, #optim.space<in>]}
  }
  optim.route @model rule @model patterns ["model"] except [] defaults [1.0] missing_grad zero
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
  optim.group @g rule @Sgd parameters [@w]
  optim.group @m rule @model parameters [@model]
}
