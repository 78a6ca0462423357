// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s
// What makes numbers of the model is marked, and nothing else is.
// RUN: stepc-opt %s -split-input-file --comm-distribute | FileCheck %s --check-prefix MARKED

// The scalars that have numbers are a table of the model. Each rank adds up what its elements of each group add to the norm, and
// the ranks add up their sums as parts of a line. Every rank gets the line. The scalars of rules read the table and the line.
// CHECK-LABEL: module @clip
// CHECK: comm.segment @g.w0 group @g wave 0 all
// CHECK: comm.segment @h.w0 group @h wave 0 all
// CHECK: comm.segment @m.w0 group @m wave 0 all
// CHECK: %[[TABLE:.*]] = comm.scalars of %hyperparameters, %steps active %active outs(%{{.*}} : tensor<1x1xf32, #comm.place<@m, scalars>>) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%[[MAX:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: comm.yield %[[MAX]] : f64
// CHECK: %[[GRAD:.*]] = comm.shards gradient @g : <@g, f32>
// CHECK: %[[PART:.*]] = comm.stage @g.w0 over shards reduces norm active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@g.w0, one, model_parts, kept>>) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: comm.yield %[[E]] : f32
// CHECK: %[[GRAD2:.*]] = comm.shards gradient @h : <@h, bf16>
// CHECK: %[[PART2:.*]] = comm.stage @h.w0 over shards reduces norm active %active ins(%[[GRAD2]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@h.w0, one, model_parts, kept>>) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%[[E:.*]]: bf16):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[E]] : bf16 to f32
// CHECK-NEXT: comm.yield %[[WIDE]] : f32
// CHECK: %[[OWN:.*]] = comm.collect norm active %active ins(%[[PART]], %[[PART2]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@m.w0, one, line_parts, kept>>) {comm.of_model}
// CHECK: %[[SENT:.*]] = comm.copy ins(%[[OWN]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@m.w0, one, line_parts to line_sums, sent>>)
// CHECK: %[[RANKS:.*]] = comm.communicator <@model, [<0, 1, 2>]>
// CHECK: %[[CAME:.*]] = comm.exchange %[[RANKS]] sends(%[[SENT]] : {{.*}})
// All 38 elements of the parameters are terms: 8 x 4, and 6.
// CHECK: %[[NORM:.*]] = comm.sum by 38 reduces norm ins(%[[CAME]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, line_sums, kept>>)
// CHECK: %[[BACK:.*]] = comm.copy ins(%[[NORM]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, line_sums to shards, sent>>)
// CHECK: %[[GOT:.*]] = comm.exchange %[[RANKS]] sends(%[[BACK]] : {{.*}})
// CHECK: %[[LINE:.*]] = comm.copy ins(%[[GOT]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@m.w0, one, shards, kept>>)
// CHECK: %[[SCALARS:.*]] = comm.scalars of %hyperparameters, %steps active %active numbers(%[[TABLE]], %[[LINE]] : {{.*}}) outs(%{{.*}} : tensor<1x3xf32, #comm.place<@g, scalars>>) {
// CHECK-NEXT: ^bb0(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[N1:.*]]: f64, %[[N0:.*]]: f64):
// CHECK-NEXT: comm.yield %[[N0]], %[[N1]], %[[LR]] : f64, f64, f64
// A group whose rule reads no number has no operand for any.
// CHECK: comm.scalars of %hyperparameters, %steps active %active outs(%{{.*}} : tensor<1x1xf32, #comm.place<@h, scalars>>) {
// CHECK-NEXT: ^bb0(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK: comm.stage @g.w0 over shards active %active ins({{.*}}) writes({{.*}}) scalars(%[[SCALARS]] : {{.*}}) {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[G:.*]]: f32, %[[TOTAL:.*]]: f32, %[[MOST:.*]]: f32, %[[RATE:.*]]: f32):
// CHECK-NEXT: %[[FACTOR:.*]] = arith.divf %[[MOST]], %[[TOTAL]] : f32
// CHECK-NEXT: arith.mulf %[[FACTOR]], %[[G]] : f32
// No stage visits the elements of what stands for the model.
// CHECK-NOT: comm.stage @m.w0
// CHECK: comm.advance_steps
// MARKED-LABEL: module @clip
// MARKED-COUNT-10: comm.of_model
// MARKED-NOT: comm.of_model
// MARKED-LABEL: module @phases
module @clip {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters ["max_norm"] defaults [1.0] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %max_norm: f64, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %most = optim.splat %max_norm {optim.number = 1 : i64} : tensor<1x1xf32>
    %factor = arith.divf %most, %total : tensor<1x1xf32>
    %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
    %scaled = arith.mulf %factors, %grad : tensor<?x?xf32>
    optim.yield %scaled : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n0 = optim.model_number 0 : f64
    %total = optim.splat %n0 : tensor<1x1xf32>
    %n1 = optim.model_number 1 : f64
    %most = optim.splat %n1 : tensor<1x1xf32>
    %factor = arith.divf %most, %total : tensor<1x1xf32>
    %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
    %scaled = arith.mulf %factors, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %s = optim.splat %lr : tensor<?x?xf32>
    %d = arith.mulf %s, %scaled {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %p = arith.subf %param, %d {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.rule @Decay hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %s = optim.splat %lr : tensor<?x?xf32>
    %p = arith.mulf %s, %param {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [6] batch 0 type f32 gradient bf16 mesh @world placements [#optim.replicate] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters ["max_norm"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %max_norm: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Sgd parameters [@w]
  optim.group @h rule @Decay parameters [@b]
  optim.group @m rule @model parameters [@model]
}

// -----

// A reduction whose terms need another number waits for it: a second pass over the elements, and a second sum of all ranks. Those
// that need none come first, and travel together.
// CHECK-LABEL: module @phases
// CHECK: %[[PARAM:.*]] = comm.shards parameter @g : <@g, bf16>
// CHECK: %[[GRAD:.*]] = comm.shards gradient @g : <@g, bf16>
// CHECK: %[[MEANS:.*]] = comm.stage @g.w0 over shards reduces mean active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xi320, #comm.place<@g.w0, one, model_parts, kept>>)
// CHECK: %[[MOSTS:.*]] = comm.stage @g.w0 over shards reduces max active %active ins(%[[PARAM]] : {{.*}}) outs({{.*}} : tensor<?xi32, #comm.place<@g.w0, one, model_parts, kept>>)
// CHECK: %[[OWN:.*]] = comm.collect mean active %active ins(%[[MEANS]] :
// CHECK: %[[OWNMOST:.*]] = comm.collect max active %active ins(%[[MOSTS]] :
// CHECK: %[[SENT:.*]] = comm.copy ins(%[[OWN]] :
// CHECK: %[[SENTMOST:.*]] = comm.copy ins(%[[OWNMOST]] :
// CHECK: %[[CAME:.*]]:2 = comm.exchange %[[RANKS:.*]] sends(%[[SENT]], %[[SENTMOST]] : {{.*}})
// CHECK: comm.sum by 32 reduces mean ins(%[[CAME]]#0 :
// CHECK: comm.sum by 32 reduces max ins(%[[CAME]]#1 :
// CHECK: %[[GOT:.*]]:2 = comm.exchange %[[RANKS]]
// CHECK: %[[MEAN:.*]] = comm.copy ins(%[[GOT]]#0 :
// CHECK: %[[MOST:.*]] = comm.copy ins(%[[GOT]]#1 :
// CHECK: %[[SCALARS:.*]] = comm.scalars of %hyperparameters, %steps active %active numbers(%[[MEAN]], %[[MOST]] : {{.*}}) outs(%{{.*}} : tensor<1x1xf32, #comm.place<@g, scalars>>) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[M:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT: comm.yield %[[M]] : f64
// CHECK: %[[OFFS:.*]] = comm.stage @g.w0 over shards reduces rms active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@g.w0, one, model_parts, kept>>) scalars(%[[SCALARS]] : {{.*}}) attributes {comm.of_model} {
// CHECK-NEXT: ^bb0(%[[E:.*]]: bf16, %[[S:.*]]: f32):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[E]]
// CHECK-NEXT: %[[OFF:.*]] = arith.subf %[[WIDE]], %[[S]] : f32
// CHECK-NEXT: comm.yield %[[OFF]] : f32
// CHECK: comm.collect rms active %active ins(%[[OFFS]] :
// CHECK: comm.exchange %[[RANKS]]
// CHECK: comm.sum by 32 reduces rms
// CHECK: %[[LAST:.*]] = comm.exchange %[[RANKS]]
// CHECK: %[[RMS:.*]] = comm.copy ins(%[[LAST]] :
// Numbers stand in the order in which they are known.
// CHECK: comm.scalars of %hyperparameters, %steps active %active numbers(%[[MEAN]], %[[MOST]], %[[RMS]] : {{.*}}) outs(%{{.*}} : tensor<1x3xf32, #comm.place<@g, scalars>>) {
// CHECK-NEXT: ^bb0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[M:.*]]: f64, %[[X:.*]]: f64, %[[R:.*]]: f64):
// CHECK-NEXT: comm.yield %[[M]], %[[R]], %[[X]] : f64, f64, f64
// CHECK: comm.stage @g.w0 over shards active %active ins({{.*}}) writes({{.*}})
module @phases {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %mean = optim.reduce mean %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %means = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
    %off = arith.subf %grad, %means : tensor<?x?xf32>
    %rms = optim.reduce rms %off {optim.number = 1 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %most = optim.reduce max %param {optim.number = 2 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %factor = arith.divf %most, %rms : tensor<1x1xf32>
    %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.mulf %off, %factors : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n0 = optim.model_number 0 : f64
    %mean = optim.splat %n0 : tensor<1x1xf32>
    %means = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
    %off = arith.subf %grad, %means {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %n1 = optim.model_number 1 : f64
    %rms = optim.splat %n1 : tensor<1x1xf32>
    %n2 = optim.model_number 2 : f64
    %most = optim.splat %n2 : tensor<1x1xf32>
    %factor = arith.divf %most, %rms : tensor<1x1xf32>
    %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.mulf %off, %factors {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %p = arith.subf %param, %new {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.parameter @w shape [8, 4] batch 0 type bf16 gradient bf16 mesh @world placements [#optim.shard<0>] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Sgd parameters [@w]
  optim.group @m rule @model parameters [@model]
}

// -----

// Contributions to a gradient are added up before they are terms, each wave in its turn, and the rule reads the same sums. The parts
// of all waves are collected at once.
// CHECK-LABEL: module @waves
// CHECK: comm.segment @g.w0 group @g wave 0 blocks [0]
// CHECK: comm.segment @g.w1 group @g wave 1 blocks [1]
// CHECK: comm.segment @m.w0 group @m wave 0 all
// CHECK: %[[GRAD:.*]] = comm.shards gradient @g : <@g, f32, gradient_shards>
// CHECK: %[[SENT:.*]] = comm.copy active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, full, gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: %[[CAME:.*]] = comm.exchange %[[RANKS:.*]] sends(%[[SENT]] : {{.*}}) receives({{.*}}) {comm.of_model}
// CHECK: %[[SUM:.*]] = comm.sum by 2 ins(%[[CAME]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, full, shards, kept>>) {comm.of_model}
// CHECK: %[[PART:.*]] = comm.stage @g.w0 over shards reduces norm active %active ins(%[[SUM]] : {{.*}}) outs({{.*}} : tensor<?xi640, #comm.place<@g.w0, one, model_parts, kept>>) attributes {comm.of_model} {
// CHECK: comm.copy active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w1, full, gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: comm.exchange %[[RANKS]] {{.*}} {comm.of_model}
// CHECK: %[[SUM2:.*]] = comm.sum by 2 {{.*}} {comm.of_model}
// CHECK: %[[PART2:.*]] = comm.stage @g.w1 over shards reduces norm
// CHECK: comm.collect norm active %active ins(%[[PART]], %[[PART2]] :
// CHECK: comm.sum by 64 reduces norm
// CHECK: comm.scalars of {{.*}} numbers(
// CHECK-NOT: comm.of_model
// CHECK-NOT: gradient_shards to shards
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[SUM]] : {{.*}}) outs({{.*}}) scalars(
// CHECK: optim.orthogonalize
// CHECK-NOT: gradient_shards to shards
// CHECK: comm.stage @g.w1 over shards active %active ins(%[[SUM2]] : {{.*}}) outs({{.*}}) scalars(
// CHECK: comm.advance_steps
module @waves {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Muon hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n = optim.model_number 0 : f64
    %total = optim.splat %n : tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %o = optim.orthogonalize %new coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
    %p = arith.subf %param, %o {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
  optim.parameter @b shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Muon parameters [@a, @b] reduced [#optim.shard<0>] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>] waves [0, 1]
  optim.group @m rule @model parameters [@model]
}

// -----

// If sums are not kept, they are made for the model and once more in each wave.
// CHECK-LABEL: module @again
// CHECK-COUNT-2: gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: comm.sum by 64 reduces norm
// CHECK: comm.copy active %active ins(%[[GRAD:.*]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w0, full, gradient_shards to shards, sent>>)
// CHECK: %[[SUM:.*]] = comm.sum by 2
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[SUM]] : {{.*}}) outs({{.*}}) scalars(
// CHECK: comm.copy active %active ins(%[[GRAD]] : {{.*}}) outs({{.*}} : tensor<?xf32, #comm.place<@g.w1, full, gradient_shards to shards, sent>>)
// CHECK: %[[SUM2:.*]] = comm.sum by 2
// CHECK: comm.stage @g.w1 over shards active %active ins(%[[SUM2]] : {{.*}}) outs({{.*}}) scalars(
module @again attributes {comm.reduces_again} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Muon hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n = optim.model_number 0 : f64
    %total = optim.splat %n : tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %o = optim.orthogonalize %new coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
    %p = arith.subf %param, %o {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
  optim.parameter @b shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_average] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Muon parameters [@a, @b] reduced [#optim.shard<0>] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>] waves [0, 1]
  optim.group @m rule @model parameters [@model]
}

// -----

// A number of elements alone is a sum of equal terms: the stage visits the parameter, and reads nothing of it.
// CHECK-LABEL: module @count
// CHECK: %[[PARAM:.*]] = comm.shards parameter @g : <@g, f32>
// CHECK: comm.stage @g.w0 over shards reduces sum active %active ins(%[[PARAM]] : !comm.shards<@g, f32>) outs({{.*}} : tensor<?xi320, #comm.place<@g.w0, one, model_parts, kept>>)
// CHECK-NEXT: ^bb0(%{{.*}}: f32):
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: comm.yield %[[ONE]] : f32
module @count {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %c1 = arith.constant 1.0 : f64
    %one = optim.splat %c1 : tensor<?x?xf32>
    %count = optim.reduce sum %one {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %counts = optim.broadcast %count : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %counts : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n = optim.model_number 0 : f64
    %count = optim.splat %n : tensor<?x?xf32>
    %p = arith.divf %grad, %count {optim.space = #optim.space<in>} : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
  }
  optim.parameter @w shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Sgd parameters [@w]
  optim.group @m rule @model parameters [@model]
}
