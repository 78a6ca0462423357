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

// The model reads the gradients, to which both ranks contribute: their sums, 48 x 4096 elements of f32, are kept beside all waves. Under
// this limit nothing is modelled to fit beside them, and waves that reduce them again take less.
// CHECK-LABEL: module @again attributes {{.*}}comm.reduces_again
// REMARK: gradients-reduced-again {{.*}} kept-bytes=786432, modelled-bytes={{[0-9]+}}, target-bytes=800000
module @again attributes {comm.workspace_limit = 800000 : i64} {
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
  optim.parameter @p0 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p1 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p2 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p3 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p4 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p5 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p6 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p7 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p8 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p9 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p10 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p11 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p12 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p13 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p14 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p15 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p16 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p17 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p18 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p19 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p20 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p21 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p22 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p23 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p24 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p25 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p26 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p27 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p28 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p29 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p30 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p31 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p32 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p33 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p34 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p35 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p36 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p37 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p38 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p39 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p40 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p41 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p42 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p43 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p44 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p45 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p46 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.parameter @p47 shape [128, 64] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.partial_sum] aliases []
  optim.mesh @model axes ["ranks"] sizes [2] ranks [0, 1]
  optim.rule @model hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32> {optim.writes = [unit]}
  }
  optim.parameter @model shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases []
  optim.group @g rule @Matrix parameters [@p0, @p1, @p2, @p3, @p4, @p5, @p6, @p7, @p8, @p9, @p10, @p11, @p12, @p13, @p14, @p15, @p16, @p17, @p18, @p19, @p20, @p21, @p22, @p23, @p24, @p25, @p26, @p27, @p28, @p29, @p30, @p31, @p32, @p33, @p34, @p35, @p36, @p37, @p38, @p39, @p40, @p41, @p42, @p43, @p44, @p45, @p46, @p47] reduced [#optim.shard<0>] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]>]
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
