// Programs that make numbers of a model are proven, as the passes leave them. Each sum has each element once, wherever copies of
// it are.
// DEFINE: %{ladder} = --stepc-distribute --stepc-schedule --stepc-exec=target=cpu:x86-64-v3 --exec-verify-program
// RUN: stepc-opt %s -split-input-file --stepc-decide %{ladder} | FileCheck %s
// Waves, and gradients whose contributions are added up before they are terms.
// RUN: stepc-opt %S/../schedule/comm-pipeline-waves-model.mlir %{ladder} -o /dev/null
// The kernels of other targets make the same numbers.
// RUN: stepc-opt %s -split-input-file --stepc-decide --stepc-distribute --stepc-schedule --stepc-exec=target=cuda:sm_90 --exec-verify-program -o /dev/null
// RUN: stepc-opt %s -split-input-file --stepc-decide --stepc-distribute --stepc-schedule --stepc-exec=target=interpret --exec-verify-program -o /dev/null

// Ranks of a row have copies, ranks of a column have parts; there are uneven shards, a master copy, and values of 16 bits. The 63
// elements count once.
// CHECK-LABEL: module @copies
// CHECK: exec.collect norm of [#exec.table<{{[^>]*}}>, element_bytes = 80>, #exec.table<{{[^>]*}}>, element_bytes = 80>, #exec.table<{{[^>]*}}>, element_bytes = 80>]
// CHECK: exec.sum f32 by 63 reduces norm
module @copies attributes {stepc.level = "optim"} {
  optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [#optim.state<"master", f32, full, 0.0 : f64, true>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %master: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %p = arith.subf %param, %grad : tensor<?x?xf32>
    optim.yield %p, %p : tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad skip
  optim.parameter @a shape [7, 6] batch 0 type bf16 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
  optim.parameter @b shape [12] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
  optim.parameter @c shape [9] batch 0 type f32 gradient f16 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
}

// -----

// Meshes of different ranks have one model: its parameter has an element on each of the four.
// CHECK-LABEL: module @meshes
// CHECK: optim.parameter @model shape [4]
// CHECK: exec.sum f32 by 55 reduces max
module @meshes attributes {stepc.level = "optim"} {
  optim.mesh @first axes ["dp"] sizes [2] ranks [0, 1]
  optim.mesh @second axes ["dp"] sizes [2] ranks [2, 3]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %most = optim.reduce max %param : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %most : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Sgd hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %p = arith.subf %param, %grad : tensor<?x?xf32>
    optim.yield %p : tensor<?x?xf32>
  }
  optim.route @Sgd rule @Sgd rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @first placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [7] batch 0 type f32 gradient f32 mesh @second placements [#optim.replicate] aliases []
}

// -----

// States in shards of their own, a gradient of other shards, matrices of a batch whose shards are joined, and one rank that has all of
// a parameter.
// CHECK-LABEL: module @apart
// CHECK: exec.sum f32 by 250 reduces mean
// CHECK: exec.sum f32 by 250 reduces rms
module @apart attributes {stepc.level = "optim"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %mean = optim.reduce mean %grad : tensor<?x?xf32> to tensor<1x1xf32>
    %means = optim.broadcast %mean : tensor<1x1xf32> to tensor<?x?xf32>
    %off = arith.subf %grad, %means : tensor<?x?xf32>
    %rms = optim.reduce rms %off : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %rms : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %off, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Momentum hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %m1 = arith.addf %m, %grad : tensor<?x?xf32>
    %p = arith.subf %param, %m1 : tensor<?x?xf32>
    optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @Momentum rule @Momentum rest patterns [] except [] defaults [] missing_grad zero
  optim.parameter @a shape [8, 6] batch 0 type bf16 gradient bf16 mesh @world placements [#optim.replicate] state_placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [8, 6] batch 0 type bf16 gradient bf16 mesh @world placements [#optim.replicate] gradient_placements [#optim.shard<0>] state_placements [#optim.shard<0>] aliases []
  optim.parameter @c shape [3, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
  optim.parameter @d shape [10] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<1>] aliases []
}
