// RUN: stepc-opt %s -split-input-file --optim-balance-owners > %t.first
// RUN: FileCheck %s < %t.first
// RUN: stepc-opt %s -split-input-file --optim-balance-owners --remark-policy=all --remarks-filter=optim-balance-owners -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK
// Twice the same input, twice the same owners.
// RUN: stepc-opt %s -split-input-file --optim-balance-owners | diff %t.first -

// How even the loads are, in per cent of the most loaded rank's, and where blocks are too few.
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=75, blocks=6, bound-percent=100, ranks=4
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=50, blocks=2, bound-percent=100, ranks=4
// REMARK: remark: [Missed] ranks-without-blocks | Category:optim-balance-owners | Reason="a block is computed by one rank, and there are fewer than ranks", blocks=2, ranks=4
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=66, blocks=2, bound-percent=100, ranks=3
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent={{[0-9]+}}, blocks=4, bound-percent={{[0-9]+}}, ranks=2
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=100, blocks=5, bound-percent=100, ranks=2

// Largest first, over all groups together: the two large blocks go to two ranks, and the small ones to the others
// until those have as much.
// CHECK-LABEL: @together
// CHECK: optim.group @small {{.*}} base [2, 3, 2, 3]>]
// CHECK: optim.group @large {{.*}} base [0, 1]>]
module @together {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @s0 shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s1 shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s2 shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s3 shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l0 shape [32, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l1 shape [32, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @small rule @Matrix parameters [@s0, @s1, @s2, @s3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>]>]
optim.group @large rule @Matrix parameters [@l0, @l1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>]>]
}

// -----

// Of ranks with equal loads the one that holds most of the block is its owner: ranks 2 and 3 hold the second expert.
// CHECK-LABEL: @holders
// CHECK: optim.group @experts {{.*}} base [0, 2]>]
module @holders {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.parameter @x shape [2, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.group @experts rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>]>]
}

// -----

// Owners are balanced over the ranks of the job, wherever meshes put them: rank 1 is position 0 of the other mesh.
// CHECK-LABEL: @meshes
// CHECK: optim.group @first {{.*}} base [0]>]
// CHECK: optim.group @other {{.*}} base [0]>]
module @meshes {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.mesh @tail axes ["dp"] sizes [2] ranks [1, 2]
optim.parameter @a shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [8, 8] batch 0 type f32 gradient f32 mesh @tail placements [#optim.shard<0>] aliases []
optim.group @first rule @Matrix parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @other rule @Matrix parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}

// -----

// Each expert of a stack is a block of its own; groups of other strategies and owners that are set stay,
// and count: rank 1 computes @y already, so it gets fewer experts.
// CHECK-LABEL: @blocks
// CHECK: optim.group @stack {{.*}} base [0, 0, 1, 0]>]
// CHECK: optim.group @set {{.*}} base [1]>]
// CHECK: optim.group @gathered {{.*}} strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]{{$}}
module @blocks {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @x shape [4, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @y shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @z shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @stack rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @set rule @Matrix parameters [@y] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
optim.group @gathered rule @Matrix parameters [@z] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
}

// -----

// Where hops own a part of the axis alone, a block goes to all ranks that differ along the rest, and each of them is loaded.
// CHECK-LABEL: @halves
// CHECK: optim.group @shared {{.*}} hops [#optim.hop<replicated [<0, 1, 2>]>, #optim.hop<owned [<0, 2, 2>] base [0]>]
// CHECK: optim.group @after {{.*}} base [2, 3]>]
module @halves {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @x shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @y shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @z shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @shared rule @Matrix parameters [@x] strategy #optim.owner hops [#optim.hop<replicated [<0, 1, 2>]>, #optim.hop<owned [<0, 2, 2>]>]
optim.group @after rule @Matrix parameters [@y, @z] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 4>]>]
}

// -----

// Largest first would give the two large blocks to two ranks, and one of these two small ones more: 112 elements of 192. Both
// together, and the three small ones together, are as much each.
// CHECK-LABEL: @pairs
// CHECK: optim.group @small {{.*}} base {{\[(0, 0, 0|1, 1, 1)\]}}>]
// CHECK: optim.group @large {{.*}} base {{\[(0, 0|1, 1)\]}}>]
module @pairs {
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0e+06>]
  device <flops = 1.0e+18, memory = 1.0e+18, capacity = 1.0e+09, launch = 0.0, threads = 1>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @s0 shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s1 shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s2 shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l0 shape [6, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l1 shape [6, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @small rule @Matrix parameters [@s0, @s1, @s2] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @large rule @Matrix parameters [@l0, @l1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}

// -----

// With a limit of states' bytes the longest blocks no longer go where they take least time: each state of 2 × 256 bytes
// and of 64 counts where its block is computed.
// CHECK-LABEL: @limit
// CHECK: optim.group @large {{.*}} base [0, 1]>]
// CHECK: optim.group @small {{.*}} base [{{[01]}}, {{[01]}}]>]
module @limit attributes {optim.state_limit = 320 : i64} {
optim.rule @State hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %v : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [unit, unit]}
}
optim.rule @Matrix hyperparameters [] states [#optim.state<"v", f32, full, 0.0 : f64, false>] needs_matrix written @State block_states ["v"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %u = arith.mulf %v, %grad {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  %o = optim.orthogonalize %u coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o, %u : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<matrix>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @l0 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @l1 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s0 shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @s1 shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @large rule @Matrix parameters [@l0, @l1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
optim.group @small rule @Matrix parameters [@s0, @s1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
}
