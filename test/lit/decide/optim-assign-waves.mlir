// RUN: stepc-opt %s -split-input-file --optim-assign-waves | FileCheck %s
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=waves=2 | FileCheck %s --check-prefix TWO
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=target-bytes=1 | FileCheck %s --check-prefix SMALL
// RUN: stepc-opt %s -split-input-file --optim-assign-waves --remark-policy=all --remarks-filter=optim-assign-waves -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=target-bytes=1 --remark-policy=all --remarks-filter=optim-assign-waves -o /dev/null 2>&1 | FileCheck %s --check-prefix SMALL-REMARK
// RUN: stepc-opt %s -split-input-file --optim-assign-waves=waves=9 --remark-policy=all --remarks-filter=optim-assign-waves -o /dev/null 2>&1 | FileCheck %s --check-prefix NINE-REMARK

// How many waves and why; what could not be had.
// REMARK: remark: [Passed] waves-assigned | Category:optim-assign-waves | Reason="the least workspace within target-bytes whose modelled time is at most 3 % above the best", blocks=4, modelled-bytes=214169, modelled-ns={{[0-9]+}}, one-wave-bytes=214169, target-bytes=5333333333, time-percent-of-best=100, waves=1
// REMARK: remark: [Missed] workspace-above-target | Category:optim-assign-waves | Reason="no number of waves that was tried is modelled to stay within the limit", modelled-bytes=144768, target-bytes=1000, waves=2
// REMARK: remark: [Passed] waves-assigned | Category:optim-assign-waves | Reason="the least workspace, and still above the limit", blocks=4, modelled-bytes=144768, modelled-ns={{[0-9]+}}, one-wave-bytes=214169, target-bytes=1000, time-percent-of-best={{[0-9]+}}, waves=2
// SMALL-REMARK: remark: [Missed] workspace-above-target {{.*}} Reason="no number of waves that was tried is modelled to stay within target-bytes", modelled-bytes=214169, target-bytes=1, waves=1
// SMALL-REMARK: remark: [Passed] waves-assigned {{.*}} Reason="nothing stays within target-bytes; of what takes at most twice the least workspace, the least whose modelled time is at most 3 % above the best", blocks=4
// NINE-REMARK: warning: expected at most 2 waves, as many as 4 blocks can be divided into by their bytes, found 9 forced
// NINE-REMARK: remark: [Passed] waves-assigned | Category:optim-assign-waves | Reason="forced by option waves", blocks=4, {{.*}}, waves=2
// NINE-REMARK: remark: [Missed] workspace-above-target | Category:optim-assign-waves | Reason="the number of waves is forced", modelled-bytes=144768, target-bytes=1000, waves=2

// All fits: one wave. Forced to two, each owner's blocks are divided evenly, in order. Where nothing stays within target-bytes,
// two waves would take two thirds of the workspace and twice the time: one wave, too. The text is at the next level.
// CHECK-LABEL: @fits
// CHECK-SAME: stepc.level = "decided"
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 0]
// TWO-LABEL: @fits
// TWO: optim.group @g {{.*}} waves [0, 0, 1, 1]
// SMALL-LABEL: @fits
// SMALL: optim.group @g {{.*}} waves [0, 0, 0, 0]
module @fits {
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
optim.parameter @a0 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a1 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a2 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a3 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1]>]
}

// -----

// The module's limit holds, not the option: with no room the waves are as many as blocks can be told apart, numbered without
// holes.
// CHECK-LABEL: @limit
// CHECK: optim.group @g {{.*}} waves [0, 0, 1, 1]
// SMALL-LABEL: @limit
// SMALL: optim.group @g {{.*}} waves [0, 0, 1, 1]
module @limit attributes {comm.workspace_limit = 1000 : i64} {
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
optim.parameter @a0 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a1 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a2 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @a3 shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1]>]
}

// -----

// Local blocks are divided per rank that holds them, gathered ones over all; elementwise groups have no waves, and waves
// that are set stay.
// CHECK-LABEL: @strategies
// TWO-LABEL: @strategies
// TWO: optim.group @local {{.*}} waves [0, 1, 0, 1]
// TWO: optim.group @gather {{.*}} waves [0, 1]
// TWO: optim.group @plain {{.*}} reason "r"{{$}}
// TWO: optim.group @set {{.*}} waves [7]
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
optim.parameter @x shape [4, 8, 8] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @y0 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @y1 shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @z shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @s shape [6, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @local rule @Matrix parameters [@x] strategy #optim.local hops []
optim.group @gather rule @Matrix parameters [@y0, @y1] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
optim.group @plain rule @Plain parameters [@z] reason "r"
optim.group @set rule @Matrix parameters [@s] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>] waves [7]
}

// -----

// Several groups of several strategies under a limit that one wave just meets.
// CHECK-LABEL: @just_fits
// CHECK: optim.group @a {{.*}} waves [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
// CHECK: optim.group @b {{.*}} waves [0, 0]
// CHECK: optim.group @c {{.*}} waves [0]
// REMARK: waves-assigned {{.*}} Reason="the least workspace within the limit whose modelled time is at most 3 % above the best", blocks=19, modelled-bytes=969728, {{.*}} target-bytes=969728, {{.*}} waves=1
module @just_fits attributes {comm.workspace_limit = 969728 : i64} {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a0 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a1 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a2 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a3 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @b0 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b1 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @a rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]>]
optim.group @b rule @Matrix parameters [@b0, @b1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1, 0]>]
optim.group @c rule @Matrix parameters [@c] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
}

// -----

// With one byte less there are as many waves as the next lower need asks for; blocks of each owner are dealt to them in
// order, those of all ranks by themselves.
// CHECK-LABEL: @one_byte_less
// CHECK: optim.group @a {{.*}} waves [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
// CHECK: optim.group @b {{.*}} waves [1, 1]
// CHECK: optim.group @c {{.*}} waves [1]
// REMARK: waves-assigned {{.*}} Reason="the least workspace within the limit {{.*}}", blocks=19, modelled-bytes=761522, modelled-ns={{[0-9]+}}, one-wave-bytes=969728, target-bytes=969727, {{.*}} waves=2
module @one_byte_less attributes {comm.workspace_limit = 969727 : i64} {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a0 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a1 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a2 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @a3 shape [4, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
optim.parameter @b0 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b1 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [64, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @a rule @Matrix parameters [@a0, @a1, @a2, @a3] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]>]
optim.group @b rule @Matrix parameters [@b0, @b1] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1, 0]>]
optim.group @c rule @Matrix parameters [@c] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
}

// -----

// Large blocks that no rank has to wait for: a wave of a few keeps all threads at work, and one of all would take as many
// times the workspace for nothing. Small ones would leave threads idle: one wave.
// CHECK-LABEL: @large
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7]
// REMARK: waves-assigned {{.*}} Reason="the least workspace within target-bytes whose modelled time is at most 3 % above the best", blocks=24, modelled-bytes=141086283, modelled-ns={{[0-9]+}}, one-wave-bytes=1128690276, target-bytes=5333333333, time-percent-of-best=102, waves=8
module @large {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.1], [1.5, -0.5, 0.1], [1.5, -0.5, 0.1]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @x shape [24, 768, 3072] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @Matrix parameters [@x] strategy #optim.local hops []
}

// -----

// CHECK-LABEL: @small
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
module @small {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.1], [1.5, -0.5, 0.1], [1.5, -0.5, 0.1]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @x shape [16, 64, 64] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.group @g rule @Matrix parameters [@x] strategy #optim.local hops []
}

// -----

// Few products and much to send, where messages travel beside them: with two waves one half travels while the other is
// computed, in less workspace, too.
// CHECK-LABEL: @travels
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 0, 1, 1, 1, 1]
module @travels {
optim.cluster levels [#optim.cluster_level<"network", latency = 2.0e-05, gap = 2.0e-05, bandwidth = 1.25e+10>]
  device <flops = 1.0e+12, memory = 1.0e+11, capacity = 6.4e+10, launch = 5.0e-06, threads = 16, overlaps = true>
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @e shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @f shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @h shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @i shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a, @b, @c, @d, @e, @f, @h, @i] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1, 0, 1, 0, 1]>]
}

// -----

// The same where the thread that computes takes messages in: nothing is gained, and a second wave's launches cost.
// CHECK-LABEL: @waits
// CHECK: optim.group @g {{.*}} waves [0, 0, 0, 0, 0, 0, 0, 0]
module @waits {
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @e shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @f shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @h shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @i shape [512, 512] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Matrix parameters [@a, @b, @c, @d, @e, @f, @h, @i] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1, 0, 1, 0, 1]>]
}

// -----

// The model reads the gradients, to which both ranks contribute: their sums, 2 x 4096 elements of f32, are kept beside all waves. Under
// this limit nothing is modelled to fit beside them.
// CHECK-LABEL: module @again attributes {{.*}}comm.reduces_again
// REMARK: gradients-reduced-again {{.*}} kept-bytes=32768, modelled-bytes={{[0-9]+}}, target-bytes=300000
module @again attributes {comm.workspace_limit = 300000 : i64} {
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Matrix hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
    optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.parameter @a shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @b shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Matrix parameters [@a, @b] reduced [#optim.shard<0>] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
  optim.group @m rule @model parameters [@model]
}

// -----

// The model reads no gradient, so nothing is kept.
// CHECK-LABEL: module @reads_none
// CHECK-NOT: comm.reduces_again
// CHECK: optim.model
module @reads_none attributes {comm.workspace_limit = 300000 : i64} {
  optim.model hyperparameters [] defaults [] values [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
    %total = optim.reduce norm %param {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %new = arith.divf %grad, %all : tensor<?x?xf32>
    optim.yield %new : tensor<?x?xf32>
  }
  optim.rule @Matrix hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
    optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
  }
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.parameter @a shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @b shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Matrix parameters [@a, @b] reduced [#optim.shard<0>] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
  optim.group @m rule @model parameters [@model]
}
