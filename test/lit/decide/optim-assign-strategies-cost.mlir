// Among the legal strategies the one is chosen that is modelled to take least.
// RUN: stepc-opt %s -split-input-file --optim-assign-strategies --optim-balance-owners | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-assign-strategies --remark-policy=all --remarks-filter=optim-assign-strategies -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// Replicas divide large matrices and share the results; small ones each computes itself, because messages cost more.
// REMARK: strategy-chosen | {{.*}}Reason="ranks divide the blocks and share the results: modelled to take less time", first-parameter=a, group=large, modelled-ns={{[0-9]+}}, strategy=owner
// REMARK: strategy-refused | {{.*}}Reason="it is modelled to take no less time", group=large, modelled-ns={{[0-9]+}}, strategy=local
// REMARK: strategy-refused | {{.*}}Reason="it is modelled to take no less time", group=large, modelled-ns={{[0-9]+}}, strategy=gather
// REMARK: strategy-chosen | {{.*}}group=small, modelled-ns={{[0-9]+}}, strategy=local
// CHECK-LABEL: @builtin
// CHECK: optim.group @large {{.*}} strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
// CHECK: optim.group @small {{.*}} strategy #optim.local
module @builtin {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @c shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @d shape [16, 16] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @large rule @Matrix parameters [@a, @b]
optim.group @small rule @Matrix parameters [@c, @d]
}

// -----

// With fast devices on a slow network nothing is worth a message.
// CHECK-LABEL: @slow
// CHECK: optim.group @large {{.*}} strategy #optim.local
module @slow {
optim.cluster levels [#optim.cluster_level<"network", latency = 2.0e-05, gap = 2.0e-05, bandwidth = 1.0e+08>] device <flops = 1.0e+15, memory = 1.0e+13, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @b shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @large rule @Matrix parameters [@a, @b]
}

// -----

// Where the way back costs more than computing, every rank computes what arrives.
// CHECK-LABEL: @gathered
// CHECK: optim.group @cut {{.*}} strategy #optim.gather
module @gathered {
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0e+08>] device <flops = 1.0e+15, memory = 1.0e+13, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp", "rep"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.parameter @a shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
optim.group @cut rule @Matrix parameters [@a]
}

// -----

// Groups travel in the same messages: one alone is gathered, because what comes back would cost seven messages more; of four
// together each bears a fourth of them.
// CHECK-LABEL: @alone
// CHECK: optim.group @one {{.*}} strategy #optim.gather
module @alone {
optim.cluster levels [#optim.cluster_level<"network", latency = 2.0e-05, gap = 2.0e-05, bandwidth = 1.25e+10>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [256, 256] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @one rule @Matrix parameters [@a]
}

// -----

// CHECK-LABEL: @together
// CHECK: optim.group @one {{.*}} strategy #optim.owner
// CHECK: optim.group @two {{.*}} strategy #optim.owner
// CHECK: optim.group @three {{.*}} strategy #optim.owner
// CHECK: optim.group @four {{.*}} strategy #optim.owner
module @together {
optim.cluster levels [#optim.cluster_level<"network", latency = 2.0e-05, gap = 2.0e-05, bandwidth = 1.25e+10>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
optim.parameter @a shape [256, 256] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [256, 264] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [256, 272] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [256, 280] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @one rule @Matrix parameters [@a]
optim.group @two rule @Matrix parameters [@b]
optim.group @three rule @Matrix parameters [@c]
optim.group @four rule @Matrix parameters [@d]
}

// -----

// What repeats work must save a tenth.
// REMARK: strategy-chosen | {{.*}}group=replicated, modelled-ns={{[0-9]+}}, strategy=owner
// REMARK: strategy-refused | {{.*}}Reason="it repeats work, and saves less than the tenth that is asked for then", group=replicated, modelled-ns={{[0-9]+}}, strategy=local
// REMARK: strategy-refused | {{.*}}Reason="it repeats work, and saves less than the tenth that is asked for then", group=replicated, modelled-ns={{[0-9]+}}, strategy=gather
// CHECK-LABEL: @tenth
// CHECK: optim.group @replicated {{.*}} strategy #optim.owner
module @tenth {
optim.cluster levels [#optim.cluster_level<"network", latency = 1.5e-06, gap = 1.5e-06, bandwidth = 1.25e+10>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 6.4e+10, launch = 5.0e-06, threads = 16>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @r shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @replicated rule @Matrix parameters [@r]
}

// -----

// What each rank owns it computes, where all have as much: groups of different ranks are computed at a time. Where one
// rank has all of it, it is dealt out.
// CHECK-LABEL: @dealt
// CHECK: optim.group @first {{.*}} strategy #optim.local
// CHECK: optim.group @second {{.*}} strategy #optim.local
// CHECK-LABEL: @piled
// CHECK: optim.group @first {{.*}} strategy #optim.owner
// CHECK: optim.group @second {{.*}} strategy #optim.owner
module @dealt {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @b shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @c shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<1>] aliases []
optim.parameter @d shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<1>] aliases []
optim.group @first rule @Matrix parameters [@a, @b]
optim.group @second rule @Matrix parameters [@c, @d]
}

// -----

module @piled {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @b shape [768, 768] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @c shape [640, 640] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.parameter @d shape [640, 640] batch 0 type f32 gradient f32 mesh @world placements [#optim.owned<0>] aliases []
optim.group @first rule @Matrix parameters [@a, @b]
optim.group @second rule @Matrix parameters [@c, @d]
}
