// RUN: stepc-opt %s --comm-distribute --optim-expand-matrix --comm-bufferize --comm-pipeline-waves | FileCheck %s
// RUN: stepc-opt %s --comm-distribute --optim-expand-matrix --comm-bufferize | FileCheck %s --check-prefix BUFFERS --implicit-check-not=memref.copy

// Parts of numbers and their sum are in memory of their own, as all that has a destination.
// BUFFERS: %[[PART:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xi320, #comm.place<@g.w0, one, model_parts, kept>>
// BUFFERS: comm.stage @g.w0 over shards reduces mean {{.*}} outs(%[[PART]] : {{.*}}) attributes {comm.of_model} {
// BUFFERS: %[[OWN:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?xi320, #comm.place<@m.w0, one, line_parts, kept>>
// BUFFERS: comm.collect mean active %active ins(%[[PART]], %{{.*}}, %{{.*}} : {{.*}}) outs(%[[OWN]] : memref<?xi320, #comm.place<@m.w0, one, line_parts, kept>>) {comm.of_model}{{$}}
// BUFFERS: comm.scalars of {{.*}} numbers(%{{.*}} : memref<?xf32, #comm.place<@m.w0, one, shards, kept>>) outs(%{{.*}} : memref<2x1xf32, #comm.place<@g, scalars>>) attributes {comm.of_model} {

// What makes numbers of the model comes first. Segments of the first wave send together. All wait before the next wave begins, so
// that waves can use the same memory.
// CHECK-LABEL: func.func @step
// CHECK: comm.copy {{.*}} outs(%[[S:.*]] : memref<?xf32, #comm.place<@g.w0, full, gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: comm.copy {{.*}} outs(%[[S2:.*]] : memref<?xf32, #comm.place<@h.w0, full, gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: %[[WORLD:.*]] = comm.communicator <@world, [<0, 1, 2>]>
// CHECK-NEXT: %[[T0:.*]] = comm.start exchange %[[WORLD]] order 0 sends(%[[S]], %[[S2]] :
// CHECK-NEXT: comm.wait %[[T0]]
// CHECK: comm.sum by 1 ins({{.*}}) outs(%[[GW0:.*]] : memref<?xf32, #comm.place<@g.w0, full, shards, kept>>)
// CHECK: comm.stage @g.w0 over shards reduces mean active %active ins(%[[GW0]] :
// CHECK: comm.sum by 1 ins({{.*}}) outs(%[[HW0:.*]] : memref<?xf32, #comm.place<@h.w0, full, shards, kept>>)
// CHECK: comm.stage @h.w0 over shards reduces mean active %active ins(%[[HW0]] :
// CHECK: comm.copy {{.*}} outs(%[[S3:.*]] : memref<?xf32, #comm.place<@g.w1, full, gradient_shards to shards, sent>>) {comm.of_model}
// CHECK: %[[T1:.*]] = comm.start exchange %[[WORLD]] order 1 sends(%[[S3]] :
// CHECK-NEXT: comm.wait %[[T1]]
// CHECK: comm.sum by 1 ins({{.*}}) outs(%[[GW1:.*]] : memref<?xf32, #comm.place<@g.w1, full, shards, kept>>)
// CHECK: comm.stage @g.w1 over shards reduces mean active %active ins(%[[GW1]] :

// The parts of all waves are added up. The ranks add up these sums, and each step waits for the one before.
// CHECK: comm.collect mean active %active ins(%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK: %[[RANKS:.*]] = comm.communicator <@model, [<0, 1, 2>]>
// CHECK: %[[T2:.*]] = comm.start exchange %[[RANKS]] order 2
// CHECK-NEXT: comm.wait %[[T2]]
// CHECK: comm.sum by 70 reduces mean
// CHECK: %[[T3:.*]] = comm.start exchange %[[RANKS]] order 3
// CHECK-NEXT: comm.wait %[[T3]]
// CHECK: comm.copy ins(%{{.*}} : {{.*}}) outs(%[[MEAN:.*]] : memref<?xf32, #comm.place<@m.w0, one, shards, kept>>)

// Terms that need this number make a second pass over both waves. No contribution travels again.
// CHECK: comm.scalars of {{.*}} numbers(%[[MEAN]] : {{.*}}) outs(%{{.*}} : memref<2x1xf32, #comm.place<@g, scalars>>) attributes {comm.of_model}
// CHECK: comm.scalars of {{.*}} numbers(%[[MEAN]] : {{.*}}) outs(%{{.*}} : memref<1x1xf32, #comm.place<@h, scalars>>) attributes {comm.of_model}
// CHECK-NOT: comm.start
// CHECK: comm.stage @g.w0 over shards reduces norm active %active ins(%[[GW0]] :
// CHECK: comm.stage @h.w0 over shards reduces norm active %active ins(%[[HW0]] :
// CHECK: comm.stage @g.w1 over shards reduces norm active %active ins(%[[GW1]] :
// CHECK: comm.collect norm
// CHECK: comm.start exchange %[[RANKS]] order 4
// CHECK: comm.sum by 70 reduces norm
// CHECK: comm.start exchange %[[RANKS]] order 5
// CHECK: comm.copy ins(%{{.*}} : {{.*}}) outs(%[[NORM:.*]] : memref<?xf32, #comm.place<@m.w0, one, shards, kept>>) {comm.of_model}

// The waves of the rules follow, and overlap as ever.
// CHECK-NOT: comm.of_model
// CHECK: comm.scalars of {{.*}} numbers(%[[MEAN]], %[[NORM]] : {{.*}}) outs(%{{.*}} : memref<2x1xf32, #comm.place<@g, scalars>>) {
// CHECK-NOT: comm.of_model
// CHECK: comm.stage @g.w0 over shards active %active ins(%[[GW0]] :
// CHECK: %[[T6:.*]] = comm.start all_gather %[[WORLD]] order 6
// CHECK-NOT: comm.wait
// CHECK: comm.stage @g.w1 over shards active %active ins(%[[GW1]] :
// CHECK-NOT: comm.wait
// CHECK: %[[T7:.*]] = comm.start all_gather %[[WORLD]] order 7
// CHECK-NEXT: comm.wait %[[T6]]
// CHECK: comm.wait %[[T7]]
// CHECK-NOT: comm.of_model
// CHECK: comm.advance_steps
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.model hyperparameters [] defaults [] values [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
  %mean = optim.reduce mean %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  %means = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
  %off = arith.subf %grad, %means : tensor<?x?xf32>
  %total = optim.reduce norm %off {optim.number = 1 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
  %new = arith.divf %grad, %all : tensor<?x?xf32>
  optim.yield %new : tensor<?x?xf32>
}
optim.rule @Muon hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %n = optim.model_number 1 : f64
  %total = optim.splat %n : tensor<1x1xf32>
  %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
  %new = arith.divf %grad, %all {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %s = optim.reduce max %new {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
  %t = optim.broadcast %s : tensor<1x1xf32> to tensor<?x?xf32>
  %p = arith.subf %param, %t {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Sgd hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.route @Muon rule @Muon matrix patterns [] except [] defaults [] missing_grad error
optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases [] route @Muon
optim.parameter @b shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases [] route @Muon
optim.parameter @c shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases [] route @Sgd
optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
optim.rule @model hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
}
optim.route @model rule @model patterns ["model"] except [] defaults [] missing_grad zero
optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model
optim.group @g rule @Muon parameters [@a, @b] reduced [#optim.shard<0>] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>] waves [0, 1]
optim.group @h rule @Sgd parameters [@c] reduced [#optim.shard<0>]
optim.group @m rule @model parameters [@model]
