// RUN: stepc-opt %s -split-input-file --optim-assign-strategies | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-assign-strategies='force=b*=owner,b2=gather,r=local' | FileCheck %s --check-prefixes FORCED
// RUN: stepc-opt %s -split-input-file --optim-assign-strategies --remark-policy=all --remarks-filter=optim-assign-strategies -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK
// RUN: stepc-opt %s -split-input-file --optim-assign-strategies='force=b*=owner,b2=gather,r=local' --remark-policy=all --remarks-filter=optim-assign-strategies -o /dev/null 2>&1 | FileCheck %s --check-prefix FORCE-REMARK

// Every group says what was chosen, and why each other strategy was not.
// REMARK: remark: [Passed] strategy-chosen | Category:optim-assign-strategies | Reason="no operation needs a whole matrix", first-parameter=p, group=plain, strategy=elementwise
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="no operation needs a whole matrix, so no blocks come together", group=plain, strategy=local
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="no operation needs a whole matrix, so no blocks come together", group=plain, strategy=owner
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="no operation needs a whole matrix, so no blocks come together", group=plain, strategy=gather
// REMARK: remark: [Passed] strategy-chosen | Category:optim-assign-strategies | Reason="ranks divide the blocks and share the results: modelled to take less time", first-parameter=r, group=replicated, modelled-ns={{[0-9]+}}, strategy=owner
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="it is modelled to take no less time", group=replicated, modelled-ns={{[0-9]+}}, strategy=local
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="it is modelled to take no less time", group=replicated, modelled-ns={{[0-9]+}}, strategy=gather
// REMARK: remark: [Passed] strategy-chosen | Category:optim-assign-strategies | Reason="blocks span ranks: exact routes to a balanced owner", first-parameter=b1, group=sharded, modelled-ns={{[0-9]+}}, strategy=owner
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="placements [S(0)] cut the blocks", group=sharded, strategy=local
// REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="it is modelled to take no less time", group=sharded, modelled-ns={{[0-9]+}}, strategy=gather
// FORCE-REMARK: remark: [Passed] strategy-chosen | Category:optim-assign-strategies | Reason="forced by 'b2=gather'", first-parameter=b2, group=columns, modelled-ns={{[0-9]+}}, strategy=gather
// FORCE-REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="placements [S(1)] cut the blocks", group=columns, strategy=local
// FORCE-REMARK: remark: [Missed] strategy-refused | Category:optim-assign-strategies | Reason="another one is forced", group=columns, modelled-ns={{[0-9]+}}, strategy=owner


// Each strategy, with its reason: none for a rule without matrix operations; local where blocks are whole, as with one
// expert per rank; owner where ranks share a block, and on replicas, of which each then launches half of the products. Forced ones say what forced them, the last
// pattern holds, and what no pattern names is as before.
// CHECK-LABEL: @strategies
// CHECK: optim.group @plain rule @Plain parameters [@p] reason "no operation needs a whole matrix"
// CHECK: optim.group @replicated {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>] reason "ranks divide the blocks
// CHECK: optim.group @experts {{.*}} strategy #optim.local hops [] reason "each block is whole on its rank"
// CHECK: optim.group @sharded {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>] reason "blocks span ranks: exact routes to a balanced owner"
// CHECK: optim.group @columns {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>] reason
// CHECK: optim.group @set {{.*}} strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]{{$}}
// FORCED-LABEL: @strategies
// FORCED: optim.group @plain rule @Plain parameters [@p] reason
// FORCED: optim.group @replicated {{.*}} strategy #optim.local hops [] reason "forced by 'r=local'"
// FORCED: optim.group @experts {{.*}} strategy #optim.local hops [] reason "each block
// FORCED: optim.group @sharded {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>] reason "forced by 'b*=owner'"
// FORCED: optim.group @columns {{.*}} strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>] reason "forced by 'b2=gather'"
module @strategies {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @p shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @r shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @x shape [4, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b1 shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b2 shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @s shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.group @plain rule @Plain parameters [@p]
optim.group @replicated rule @Matrix parameters [@r]
optim.group @experts rule @Matrix parameters [@x]
optim.group @sharded rule @Matrix parameters [@b1]
optim.group @columns rule @Matrix parameters [@b2]
optim.group @set rule @Matrix parameters [@s] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
}
