// RUN: stepc-opt %s -split-input-file --optim-balance-owners > %t.first
// RUN: FileCheck %s < %t.first
// RUN: stepc-opt %s -split-input-file --optim-balance-owners --remark-policy=all --remarks-filter=optim-balance-owners -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK
// Twice the same input, twice the same owners.
// RUN: stepc-opt %s -split-input-file --optim-balance-owners | diff %t.first -

// How even the loads are, in per cent of the most loaded rank's, and where blocks are too few.
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=75, blocks=6, ranks=4
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=50, blocks=2, ranks=4
// REMARK: remark: [Missed] ranks-without-blocks | Category:optim-balance-owners | Reason="a block is computed by one rank, and there are fewer than ranks", blocks=2, ranks=4
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=66, blocks=2, ranks=3
// REMARK: remark: [Passed] owners-balanced | Category:optim-balance-owners | balance-percent=92, blocks=4, ranks=2

// Largest first, over all groups together: the two large blocks go to two ranks, and the small ones to the others
// until those have as much.
// CHECK-LABEL: @together
// CHECK: optim.group @small {{.*}} owners [2, 3, 2, 3]
// CHECK: optim.group @large {{.*}} owners [0, 1]
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
optim.group @small rule @Matrix parameters [@s0, @s1, @s2, @s3] strategy owner
optim.group @large rule @Matrix parameters [@l0, @l1] strategy owner
}

// -----

// Of ranks with equal loads the one that holds most of the block is its owner: ranks 2 and 3 hold the second expert.
// CHECK-LABEL: @holders
// CHECK: optim.group @experts {{.*}} owners [0, 2]
module @holders {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.parameter @x shape [2, 8, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.group @experts rule @Matrix parameters [@x] strategy owner
}

// -----

// Owners are balanced over the ranks of the job, wherever meshes put them: rank 1 is position 0 of the other mesh.
// CHECK-LABEL: @meshes
// CHECK: optim.group @first {{.*}} owners [0]
// CHECK: optim.group @other {{.*}} owners [0]
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
optim.group @first rule @Matrix parameters [@a] strategy owner
optim.group @other rule @Matrix parameters [@b] strategy owner
}

// -----

// Each expert of a stack is a block of its own; groups of other strategies and owners that are set stay,
// and count: rank 1 computes @y already, so it gets fewer experts.
// CHECK-LABEL: @blocks
// CHECK: optim.group @stack {{.*}} owners [0, 0, 1, 0]
// CHECK: optim.group @set {{.*}} owners [1]
// CHECK: optim.group @gathered {{.*}} strategy gather{{$}}
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
optim.group @stack rule @Matrix parameters [@x] strategy owner
optim.group @set rule @Matrix parameters [@y] strategy owner owners [1]
optim.group @gathered rule @Matrix parameters [@z] strategy gather
}
