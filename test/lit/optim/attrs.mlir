// Every attribute and every case of every enumeration, in text, in generic form and in bytecode.
// RUN: stepc-opt %s | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --emit-bytecode | stepc-opt | FileCheck %s

optim.mesh @world axes ["dp", "tp"] sizes [2, 3] ranks [0, 1, 2, 3, 4, 5]

// Every placement: the strided one is split after a later mesh axis.
// CHECK: optim.parameter @replicated {{.*}} placements [#optim.replicate, #optim.replicate]
// CHECK: optim.parameter @shard {{.*}} placements [#optim.shard<0>, #optim.shard<1>]
// CHECK: optim.parameter @strided {{.*}} placements [#optim.strided_shard<0, 3>, #optim.shard<0>]
// CHECK: optim.parameter @interleaved {{.*}} placements [#optim.shard<0>, #optim.interleaved_shard<0, 2>]
// CHECK: optim.parameter @owned {{.*}} placements [#optim.owned<1>, #optim.flat]
// CHECK: optim.parameter @flat {{.*}} placements [#optim.flat<0, 5, 16>, #optim.replicate] gradient_placements [#optim.partial_sum, #optim.partial_average]
optim.parameter @replicated shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
optim.parameter @shard shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.parameter @strided shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<0, 3>, #optim.shard<0>] aliases []
optim.parameter @interleaved shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.interleaved_shard<0, 2>] aliases []
optim.parameter @owned shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<1>, #optim.flat] aliases []
optim.parameter @flat shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.flat<0, 5, 16>, #optim.replicate] gradient_placements [#optim.partial_sum, #optim.partial_average] aliases []

// Blocks along either axis.
// CHECK: optim.parameter @rows {{.*}} blocks <rows, [0, 1, 3, 4], [1, 3]> aliases
// CHECK: optim.parameter @columns {{.*}} blocks <columns, [0, 3], [3, 4]> aliases
optim.parameter @rows shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] blocks <rows, [0, 1, 3, 4], [1, 3]> aliases []
optim.parameter @columns shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] blocks #optim.blocks<columns, [0, 3], [3, 4]> aliases []

// Blocks of the specification, over those of the manifest.
// CHECK: optim.parameter @over {{.*}} blocks <rows, [0, 2], [2, 4]> specified over <rows, [0, 1], [1, 4]> aliases
optim.parameter @over shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] blocks <rows, [0, 2], [2, 4]> specified over <rows, [0, 1], [1, 4]> aliases []

// Every way to say sizes of blocks.
// CHECK: optim.divide patterns ["*.qkv"] except ["*.bias"] into rows listed [512, 128] repeat 8
// CHECK: optim.divide patterns ["*.q", "*.k"] optional ["*.q"] except [] into columns each [64] repeat 1
// CHECK: optim.divide patterns ["*.up"] except [] into rows split [2] repeat 1
// CHECK: optim.divide patterns ["*.conv"] except [] flatten 1{{$}}
// CHECK: optim.divide patterns ["*.grouped"] except [] flatten 2 into rows split [4] repeat 1
optim.divide patterns ["*.qkv"] except ["*.bias"] into rows listed [512, 128] repeat 8
optim.divide patterns ["*.q", "*.k"] optional ["*.q"] except [] into columns each [64] repeat 1
optim.divide patterns ["*.up"] except [] into rows split [2] repeat 1
optim.divide patterns ["*.conv"] except [] flatten 1
optim.divide patterns ["*.grouped"] except [] flatten 2 into rows split [4] repeat 1

// Several axes that are the rows or the columns of one matrix: the manifest's, the specification's, and the latter over the former.
// CHECK: optim.parameter @conv shape [4, 3, 2, 2] batch 0 flatten 1 type
// CHECK: optim.parameter @conv_stack shape [2, 4, 3, 2] batch 1 flatten 2 specified type
// CHECK: optim.parameter @conv_over shape [4, 3, 2] batch 0 flatten 2 specified over 1 type {{.*}} blocks <rows, [0, 6], [6, 12]> aliases
optim.parameter @conv shape [4, 3, 2, 2] batch 0 flatten 1 type f32 gradient f32 mesh @world placements [#optim.shard<2>, #optim.replicate] aliases []
optim.parameter @conv_stack shape [2, 4, 3, 2] batch 1 flatten 2 specified type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
optim.parameter @conv_over shape [4, 3, 2] batch 0 flatten 2 specified over 1 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] blocks <rows, [0, 6], [6, 12]> aliases []

// States of every kind of shape and every storage type, one of them the master.
// CHECK-LABEL: optim.rule @States
// CHECK-SAME: #optim.state<"full", bf16, full, 0.000000e+00 : f64, false>
// CHECK-SAME: #optim.state<"rows", f32, rows, 1.000000e+00 : f64, false>
// CHECK-SAME: #optim.state<"cols", f16, cols, -5.000000e-01 : f64, false>
// CHECK-SAME: #optim.state<"one", f32, one, 0.000000e+00 : f64, false>
// CHECK-SAME: #optim.state<"z", bf16, full, 0.000000e+00 : f64, false start = param>
// CHECK-SAME: #optim.state<"given", f32, one, 0x7FF8000000000000 : f64, false input = true>
// CHECK-SAME: #optim.state<"master", f32, full, 0.000000e+00 : f64, true>
optim.rule @States hyperparameters [] states [
    #optim.state<"full", bf16, full, 0.0 : f64, false>, #optim.state<"rows", f32, rows, 1.0 : f64, false>,
    #optim.state<"cols", f16, cols, -0.5 : f64, false>, #optim.state<"one", f32, one, 0.0 : f64, false>,
    #optim.state<"z", bf16, full, 0.0 : f64, false start = param>,
    #optim.state<"given", f32, one, 0x7FF8000000000000 : f64, false input = true>,
    #optim.state<"master", f32, full, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %full: tensor<?x?xf32>, %r: tensor<?x1xf32>, %c: tensor<1x?xf32>,
     %o: tensor<1x1xf32>, %z: tensor<?x?xf32>, %given: tensor<1x1xf32>, %master: tensor<?x?xf32>, %step: f64, %rows: f64,
     %cols: f64, %numel: f64):
  optim.yield %param, %full, %r, %c, %o, %z, %given, %master
    : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>, tensor<1x?xf32>, tensor<1x1xf32>, tensor<?x?xf32>, tensor<1x1xf32>, tensor<?x?xf32>
}

// A metric may have the name of a hyperparameter.
// CHECK-LABEL: optim.rule @Metrics
// CHECK-SAME: states [#optim.state<"lr", f32, one, 0.000000e+00 : f64, false, metric = true>]
optim.rule @Metrics hyperparameters ["lr"] states [#optim.state<"lr", f32, one, 0.0 : f64, false, metric = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %old: tensor<1x1xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = optim.splat %lr : tensor<1x1xf32>
  optim.yield %param, %one : tensor<?x?xf32>, tensor<1x1xf32>
}

// What an absent gradient means.
// CHECK: missing_grad error
// CHECK: missing_grad skip
// CHECK: missing_grad zero
optim.route @Error rule @States patterns ["a"] except [] defaults [] missing_grad error
optim.route @Skip rule @States patterns ["b"] except [] defaults [] missing_grad skip
optim.route @Zero rule @States patterns ["c"] except [] defaults [] missing_grad zero

// Every strategy.
// CHECK: @g1 {{.*}} strategy #optim.local hops []{{$}}
// CHECK: @g2 {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 3>] base [5]>]
// CHECK: @g3 {{.*}} strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 3>]>]
// CHECK: @g4 {{.*}} strategy #optim.subgroup_gather hops [#optim.hop<replicated [<1, 1, 3>]>]
// CHECK: @g5 {{.*}} strategy #optim.agrs hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 3>]>, #optim.hop<owned [<0, 1, 2>, <1, 1, 3>] base [1]>]
// CHECK: @g6 {{.*}} strategy #optim.hierarchical hops [#optim.hop<owned [<1, 1, 3>] base [1]>, #optim.hop<owned [<0, 1, 2>] base [1]>]
// CHECK: @g7 {{.*}} strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 2 to 2>
optim.group @g1 rule @States parameters [@replicated] strategy #optim.local hops []
optim.group @g2 rule @States parameters [@shard] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 3>] base [5]>]
optim.group @g3 rule @States parameters [@strided] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 3>]>]
optim.group @g4 rule @States parameters [@shard] strategy #optim.subgroup_gather hops [#optim.hop<replicated [<1, 1, 3>]>]
optim.group @g5 rule @States parameters [@shard] strategy #optim.agrs hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 3>]>, #optim.hop<owned [<0, 1, 2>, <1, 1, 3>] base [1]>]
optim.group @g6 rule @States parameters [@shard] strategy #optim.hierarchical hops [#optim.hop<owned [<1, 1, 3>] base [1]>, #optim.hop<owned [<0, 1, 2>] base [1]>]
optim.parameter @slabs shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.group @g7 rule @States parameters [@slabs] strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 2 to 2>

// Every reduction.
// CHECK-LABEL: func.func @reductions
// CHECK: optim.reduce sum
// CHECK: optim.reduce mean
// CHECK: optim.reduce rms
// CHECK: optim.reduce norm
// CHECK: optim.reduce max
func.func @reductions(%x: tensor<?x?xf32>) {
  %a = optim.reduce sum %x : tensor<?x?xf32> to tensor<?x1xf32>
  %b = optim.reduce mean %x : tensor<?x?xf32> to tensor<?x1xf32>
  %c = optim.reduce rms %x : tensor<?x?xf32> to tensor<?x1xf32>
  %d = optim.reduce norm %x : tensor<?x?xf32> to tensor<?x1xf32>
  %e = optim.reduce max %x : tensor<?x?xf32> to tensor<?x1xf32>
  return
}
