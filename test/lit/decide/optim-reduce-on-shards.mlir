// RUN: stepc-opt %s --optim-cut-spaces --optim-reduce-on-shards | FileCheck %s
// RUN: stepc-opt %s --optim-cut-spaces --optim-reduce-on-shards=force=c*=owner | FileCheck %s --check-prefix FORCED
// RUN: stepc-opt %s --optim-cut-spaces --optim-reduce-on-shards --remark-policy=all --remarks-filter=optim-reduce-on-shards -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// REMARK: remark: [Passed] reduced-on-shards | Category:optim-reduce-on-shards | group=rows, reductions=1, rule=Lines
// REMARK: remark: [Passed] reduced-on-shards | Category:optim-reduce-on-shards | group=columns, reductions=1, rule=Lines
// REMARK: remark: [Passed] reduced-on-shards | Category:optim-reduce-on-shards | group=whole, reductions=2, rule=Lines
// REMARK: remark: [Passed] reduced-on-shards | Category:optim-reduce-on-shards | group=pieces, reductions=1, rule=Lines

// As the user wrote it: for groups that have neither whole rows nor whole columns.
// CHECK-LABEL: optim.rule @Lines hyperparameters
// CHECK: optim.reduce mean {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.reduce max {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.reduce sum {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<matrix>, #optim.space<matrix>]}

// Copies stand behind it, the one that was made last first. Whole rows and columns: the sum of a whole block stays.
// CHECK-LABEL: optim.rule @Lines.on_shards_1 {{.*}} written @Lines
// CHECK: optim.reduce mean {{.*}} {optim.space = #optim.space<out>}
// CHECK: optim.reduce max {{.*}} {optim.space = #optim.space<out>}
// CHECK: optim.reduce sum {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.yield {{.*}} {optim.writes = [#optim.space<out>, #optim.space<out>, #optim.space<out>]}

// Whole columns.
// CHECK-LABEL: optim.rule @Lines.on_shards_0 {{.*}} written @Lines
// CHECK: optim.reduce mean {{.*}} {optim.space = #optim.space<matrix>}
// CHECK: optim.reduce max {{.*}} {optim.space = #optim.space<out>}

// Whole rows.
// CHECK-LABEL: optim.rule @Lines.on_shards {{.*}} written @Lines
// CHECK: optim.reduce mean {{.*}} {optim.space = #optim.space<out>}
// CHECK: optim.reduce max {{.*}} {optim.space = #optim.space<matrix>}

// CHECK: optim.group @rows rule @Lines.on_shards parameters
// CHECK: optim.group @columns rule @Lines.on_shards_0 parameters
// CHECK: optim.group @whole rule @Lines.on_shards_1 parameters
// Rows in two pieces of a shard.
// CHECK: optim.group @pieces rule @Lines.on_shards parameters
// By ranges each rank has the values of all rows, but not their elements.
// CHECK: optim.group @flat rule @Lines parameters

// A strategy that is forced is for what is computed of whole blocks: of the second rule nothing else would be.
// FORCED: optim.group @columns rule @Lines.on_shards_0 parameters
// FORCED: optim.group @other rule @Other.on_shards parameters
// FORCED: optim.group @forced rule @Other parameters
optim.rule @Lines hyperparameters ["lr"]
    states [#optim.state<"r", f32, rows, 0.0 : f64, false>, #optim.state<"c", f32, cols, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %r: tensor<?x1xf32>, %c: tensor<1x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %q = arith.mulf %grad, %grad : tensor<?x?xf32>
  %m = optim.reduce mean %q : tensor<?x?xf32> to tensor<?x1xf32>
  %r1 = arith.addf %r, %m : tensor<?x1xf32>
  %x = optim.reduce max %q : tensor<?x?xf32> to tensor<1x?xf32>
  %c1 = arith.addf %c, %x : tensor<1x?xf32>
  %s = optim.reduce sum %q : tensor<?x?xf32> to tensor<1x1xf32>
  %rb = optim.broadcast %r1 : tensor<?x1xf32> to tensor<?x?xf32>
  %cb = optim.broadcast %c1 : tensor<1x?xf32> to tensor<?x?xf32>
  %sb = optim.broadcast %s : tensor<1x1xf32> to tensor<?x?xf32>
  %a = arith.divf %grad, %rb : tensor<?x?xf32>
  %b = arith.divf %a, %cb : tensor<?x?xf32>
  %d = arith.divf %b, %sb : tensor<?x?xf32>
  %p = arith.subf %param, %d : tensor<?x?xf32>
  optim.yield %p, %r1, %c1 : tensor<?x?xf32>, tensor<?x1xf32>, tensor<1x?xf32>
}
optim.rule @Other hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %x = optim.reduce max %grad : tensor<?x?xf32> to tensor<1x?xf32>
  %b = optim.broadcast %x : tensor<1x?xf32> to tensor<?x?xf32>
  %p = arith.subf %param, %b : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @e shape [2, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @f shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.flat<0, 12, 24>] aliases []
optim.parameter @g shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.interleaved_shard<0, 2>] aliases []
optim.group @rows rule @Lines parameters [@a]
optim.group @columns rule @Lines parameters [@c]
optim.group @whole rule @Lines parameters [@e]
optim.group @pieces rule @Lines parameters [@g]
optim.group @flat rule @Lines parameters [@f]
optim.parameter @o shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @c1 shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @other rule @Other parameters [@o]
optim.group @forced rule @Other parameters [@c1]
