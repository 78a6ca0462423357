// The hops of strategies that need more than one, or less than the whole mesh; and where they are not legal.
// RUN: split-file %s %t
// DEFINE: %{module} =
// DEFINE: %{force} =
// DEFINE: %{assign} = stepc-opt %t/%{module}.mlir --optim-assign-strategies=force='%{force}'
// DEFINE: %{refused} = not stepc-opt %t/%{module}.mlir --mlir-print-op-on-diagnostic=false -o /dev/null --optim-assign-strategies=force='%{force}' 2>&1 | FileCheck %s --check-prefix

// A subgroup is the least part of each axis that holds every block: an axis that shards experts stays as it is, and two
// ranks share each of four blocks that an axis of eight cuts.
// REDEFINE: %{module} = subgroups
// REDEFINE: %{force} = experts=subgroup-gather,fused=subgroup-gather
// RUN: %{assign} | FileCheck %s --check-prefix SUBGROUPS
// SUBGROUPS: optim.group @experts {{.*}} strategy #optim.subgroup_gather hops [#optim.hop<replicated [<1, 1, 4>]>] reason "forced
// SUBGROUPS: optim.group @fused {{.*}} strategy #optim.subgroup_gather hops [#optim.hop<replicated [<0, 1, 2>]>]
// REDEFINE: %{force} = both=subgroup-gather
// RUN: %{refused} ALL
// ALL: error: expected a strategy that is legal to force on 'both', found subgroup-gather: some block lies on all of ep and fsdp
// REDEFINE: %{force} = whole=subgroup-gather
// RUN: %{refused} WHOLE
// WHOLE: found subgroup-gather: each block is whole on its rank
// A state of one value per column stands on all ranks of an axis that shards rows.
// REDEFINE: %{force} = norms=subgroup-gather
// RUN: %{refused} STATES
// STATES: found subgroup-gather: values that drop an axis stand on ranks of several subgroups

// Gathered by all, computed by one: of replicas by those that have the owner.
// REDEFINE: %{force} = even=agrs,copies=agrs
// RUN: %{assign} | FileCheck %s --check-prefix AGRS
// AGRS: optim.group @copies {{.*}} strategy #optim.agrs hops [#optim.hop<owned [<0, 1, 2>] replicated [<1, 1, 4>]>, #optim.hop<owned [<1, 1, 4>]>]
// AGRS: optim.group @even {{.*}} strategy #optim.agrs hops [#optim.hop<replicated [<0, 1, 8>]>, #optim.hop<owned [<0, 1, 8>]>]
// REDEFINE: %{force} = experts=agrs
// RUN: %{refused} MANY
// MANY: found agrs: there are 8 blocks for 8 ranks
// REDEFINE: %{force} = uneven=agrs
// RUN: %{refused} UNEVEN
// UNEVEN: found agrs: shards have from 6 to 18 elements
// REDEFINE: %{force} = whole=agrs
// RUN: %{refused} WHOLE2
// WHOLE2: found agrs: each block is whole on its rank

// A hop for each level of the cluster, innermost first: ranks are placed in nodes of four.
// REDEFINE: %{module} = levels
// REDEFINE: %{force} = a=hierarchical,b=hierarchical
// RUN: %{assign} | FileCheck %s --check-prefix LEVELS
// LEVELS: optim.group @a {{.*}} strategy #optim.hierarchical hops [#optim.hop<owned [<0, 1, 4>]>, #optim.hop<owned [<0, 4, 3>]>] reason "forced
// LEVELS: optim.group @b {{.*}} strategy #optim.hierarchical hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>]>, #optim.hop<owned [<1, 2, 3>]>]
// REDEFINE: %{force} = c=hierarchical
// RUN: %{refused} APART
// APART: found hierarchical: no two levels of the cluster part the ranks of mesh node
// REDEFINE: %{module} = subgroups
// REDEFINE: %{force} = both=hierarchical
// RUN: %{refused} LEVEL
// LEVEL: found hierarchical: the cluster has one level

// Hops are divided where a rank may exchange with few; all that do not obey are refused, by choice or by force.
// REDEFINE: %{module} = peers
// REDEFINE: %{force} = a=hierarchical
// RUN: %{assign} | FileCheck %s --check-prefix PEERS
// PEERS: optim.group @a {{.*}} hops [#optim.hop<owned [<0, 1, 2>]>, #optim.hop<owned [<0, 2, 2>]>, #optim.hop<owned [<0, 4, 2>]>, #optim.hop<owned [<0, 8, 2>]>]
// RUN: stepc-opt %t/peers.mlir --optim-assign-strategies | FileCheck %s --check-prefix CHOSEN
// CHOSEN: optim.group @a {{.*}} strategy #optim.hierarchical {{.*}} reason "fewer peers between domains of the cluster: to one rank in each, and from there to the owner"
// REDEFINE: %{force} = a=owner
// RUN: %{refused} TOOMANY
// TOOMANY: found owner: a rank would exchange with 15 others in a hop, at most 1 are allowed (--max-peers)
// So are sums over slabs, with as many ranks as have slabs of a block.
// RUN: sed -e 's/optim.max_peers = 1/optim.max_peers = 14, stepc.numerics = "fast"/' %t/peers.mlir > %t/slabs.mlir
// REDEFINE: %{module} = slabs
// REDEFINE: %{force} = a=slabs
// RUN: %{refused} SUM
// SUM: found slabs: a rank would exchange with 15 others in a sum, at most 14 are allowed (--max-peers)
// RUN: sed -e 's/optim.max_peers = 1/optim.max_peers = 15, stepc.numerics = "fast"/' %t/peers.mlir > %t/slabs.mlir
// RUN: %{assign} | FileCheck %s --check-prefix SLABS
// SLABS: optim.group @a {{.*}} strategy #optim.slabs hops [] slabs <rows, [<0, 1, 16>], {{[0-9]+}} to {{[0-9]+}}>
// REDEFINE: %{module} = prime
// REDEFINE: %{force} = a=hierarchical
// RUN: %{refused} PRIME
// PRIME: found hierarchical: a prime part of 3 of dp has more ranks than a rank and its 1 peers
// RUN: not stepc-opt %t/prime.mlir --mlir-print-op-on-diagnostic=false -o /dev/null --optim-assign-strategies 2>&1 | FileCheck %s --check-prefix NONE
// All parameters are in one error, and each reason says whose it is.
// NONE: error: expected a strategy that is legal for 'a', 'b1', 'b2' and 2 more, found none
// NONE: note: local: placements [S(0)] cut the blocks
// NONE: note: owner for 'a': a rank would exchange with 11 others in a hop, at most 1 are allowed (--max-peers)
// NONE: note: hierarchical: a prime part
// NONE: note: owner for 'b1', 'b2', 'b3' and 'b4': a rank would exchange with 5 others in a hop, at most 1 are allowed (--max-peers)
// NONE-NOT: error:

//--- subgroups.mlir
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Columns hyperparameters [] states [#optim.state<"v", f32, cols, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<1x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o, %v : tensor<?x?xf32>, tensor<1x?xf32> {optim.writes = [#optim.space<out>, unit]}
}
optim.mesh @world axes ["ep", "fsdp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.mesh @flat axes ["fsdp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @experts shape [8, 12, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases []
optim.parameter @copies shape [12, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases []
optim.parameter @fused shape [64, 6] batch 0 type f32 gradient f32 mesh @flat placements [#optim.shard<0>] blocks <rows, [0, 16], [16, 32], [32, 48], [48, 64]> aliases []
optim.parameter @norms shape [64, 6] batch 0 type f32 gradient f32 mesh @flat placements [#optim.shard<0>] blocks <rows, [0, 16], [16, 32], [32, 48], [48, 64]> aliases []
optim.parameter @even shape [16, 6] batch 0 type f32 gradient f32 mesh @flat placements [#optim.shard<0>] aliases []
optim.parameter @both shape [16, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<0, 4>, #optim.shard<0>] aliases []
optim.parameter @whole shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
optim.parameter @uneven shape [22, 6] batch 0 type f32 gradient f32 mesh @flat placements [#optim.shard<0>] aliases []
optim.group @experts rule @Matrix parameters [@experts]
optim.group @copies rule @Matrix parameters [@copies]
optim.group @fused rule @Matrix parameters [@fused] parts [0, 1, 2, 3]
optim.group @columns rule @Columns parameters [@norms] parts [0, 1, 2, 3]
optim.group @even rule @Matrix parameters [@even]
optim.group @both rule @Matrix parameters [@both]
optim.group @whole rule @Matrix parameters [@whole]
optim.group @uneven rule @Matrix parameters [@uneven]

//--- levels.mlir
optim.cluster levels [#optim.cluster_level<"nvlink", ranks = 4, latency = 3.0e-06, gap = 1.0e-06, bandwidth = 4.5e+11>, #optim.cluster_level<"network", latency = 1.0e-05, gap = 1.0e-05, bandwidth = 5.0e+10>] device <flops = 1.0e+15, memory = 1.0e+13, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @line axes ["dp"] sizes [12] ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
// Rows of ranks 0 to 11 by pairs: (tp, dp) at 2 · dp + tp.
optim.mesh @columns axes ["tp", "dp"] sizes [2, 6] ranks [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
optim.mesh @node axes ["dp"] sizes [4] ranks [4, 5, 6, 7]
optim.parameter @a shape [24, 6] batch 0 type f32 gradient f32 mesh @line placements [#optim.shard<0>] aliases []
optim.parameter @b shape [24, 6] batch 0 type f32 gradient f32 mesh @columns placements [#optim.shard<1>, #optim.shard<0>] aliases []
optim.parameter @c shape [24, 6] batch 0 type f32 gradient f32 mesh @node placements [#optim.shard<0>] aliases []
optim.group @a rule @Matrix parameters [@a]
optim.group @b rule @Matrix parameters [@b]
optim.group @c rule @Matrix parameters [@c]

//--- peers.mlir
module attributes {optim.max_peers = 1 : i64} {
optim.cluster levels [#optim.cluster_level<"nvlink", ranks = 4, latency = 3.0e-06, gap = 1.0e-06, bandwidth = 4.5e+11>, #optim.cluster_level<"network", latency = 1.0e-05, gap = 1.0e-05, bandwidth = 5.0e+10>] device <flops = 1.0e+15, memory = 1.0e+13, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @line axes ["dp"] sizes [16] ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
optim.parameter @a shape [32, 6] batch 0 type f32 gradient f32 mesh @line placements [#optim.shard<0>] aliases []
optim.group @a rule @Matrix parameters [@a]
}

//--- prime.mlir
module attributes {optim.max_peers = 1 : i64} {
optim.cluster levels [#optim.cluster_level<"nvlink", ranks = 4, latency = 3.0e-06, gap = 1.0e-06, bandwidth = 4.5e+11>, #optim.cluster_level<"network", latency = 1.0e-05, gap = 1.0e-05, bandwidth = 5.0e+10>] device <flops = 1.0e+15, memory = 1.0e+13, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @line axes ["dp"] sizes [12] ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
optim.mesh @short axes ["dp"] sizes [6] ranks [0, 1, 2, 3, 4, 5]
optim.parameter @a shape [24, 6] batch 0 type f32 gradient f32 mesh @line placements [#optim.shard<0>] aliases []
optim.parameter @b1 shape [24, 6] batch 0 type f32 gradient f32 mesh @short placements [#optim.shard<0>] aliases []
optim.parameter @b2 shape [24, 6] batch 0 type f32 gradient f32 mesh @short placements [#optim.shard<0>] aliases []
optim.parameter @b3 shape [24, 6] batch 0 type f32 gradient f32 mesh @short placements [#optim.shard<0>] aliases []
optim.parameter @b4 shape [24, 6] batch 0 type f32 gradient f32 mesh @short placements [#optim.shard<0>] aliases []
optim.group @a rule @Matrix parameters [@a]
optim.group @b rule @Matrix parameters [@b1, @b2, @b3, @b4]
}
