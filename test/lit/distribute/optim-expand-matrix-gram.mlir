// The Gram form: runs of steps on n × n matrices, of which each begins with X Xᵀ and ends with Q X.
// RUN: stepc-opt %s --optim-expand-matrix | FileCheck %s

module {
optim.rule @Muon hyperparameters ["lr"] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [5, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
optim.group @h rule @Muon parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
optim.group @i rule @Muon parameters [@c] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
comm.segment @t group @h all
comm.segment @u group @i all

// A run of one step, and one of three. The second step of a run shifts the diagonal.
// CHECK-LABEL: func.func @wide
// CHECK: %[[X:.*]] = comm.stage
// CHECK: %[[R:.*]] = optim.product %[[X]], %[[X]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Z:.*]] = optim.product %[[R]], %[[R]] plus %[[R]] outs({{.*}}) {alpha = 3.000000e+00 : f64, beta = 2.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Y:.*]] = optim.product %[[Z]], %[[X]] plus %[[X]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64}
// CHECK: %[[R1:.*]] = optim.product %[[Y]], %[[Y]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Z1:.*]] = optim.product %[[R1]], %[[R1]] plus %[[R1]] outs({{.*}}) {alpha = 6.000000e+00 : f64, beta = 5.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[W1:.*]] = optim.product %[[R1]], %[[Z1]] plus %[[R1]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 4.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[R2:.*]] = optim.product %[[Z1]], %[[W1]] plus %[[W1]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 4.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[P:.*]] = optim.product %[[R2]], %[[R2]] plus %[[R2]] outs({{.*}}) {alpha = 9.000000e+00 : f64, beta = 8.000000e+00 : f64, shift = 7.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Q:.*]] = optim.product %[[Z1]], %[[P]] plus %[[P]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 4.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[W2:.*]] = optim.product %[[R2]], %[[P]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 7.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[R3:.*]] = optim.product %[[P]], %[[W2]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 7.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Z3:.*]] = optim.product %[[R3]], %[[R3]] plus %[[R3]] outs({{.*}}) {alpha = 1.200000e+01 : f64, beta = 1.100000e+01 : f64, symmetric, transpose_rhs}
// CHECK: %[[Q3:.*]] = optim.product %[[Q]], %[[Z3]] plus %[[Q]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 1.000000e+01 : f64, symmetric, transpose_rhs}
// CHECK-NOT: optim.product {{.*}} symmetric
// CHECK: %[[O:.*]] = optim.product %[[Q3]], %[[Y]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64}
// CHECK: return %[[O]]
func.func @wide(%x: tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xbf16, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]] eps 1.0e-07 form gram restarts [1] : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
}

// A tall block is multiplied from the right. 6 is 1.5 times 4, so `auto` is the Gram form. If c is 0, b is a factor of
// products with R, but for the second step of a run.
// CHECK-LABEL: func.func @tall
// CHECK: %[[X:.*]] = comm.stage
// CHECK: %[[R:.*]] = optim.product %[[X]], %[[X]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs}
// CHECK: %[[W:.*]] = optim.product %[[R]], %[[R]] plus %[[R]] outs({{.*}}) {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[R2:.*]] = optim.product %[[R]], %[[W]] plus %[[W]] outs({{.*}}) {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[P:.*]] = optim.product %[[R2]], %[[R2]] plus %[[R2]] outs({{.*}}) {alpha = 0.000000e+00 : f64, beta = 4.000000e+00 : f64, shift = 3.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[Q:.*]] = optim.product %[[R]], %[[P]] plus %[[P]] outs({{.*}}) {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[O:.*]] = optim.product %[[X]], %[[Q]] outs({{.*}}) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64}
// CHECK: return %[[O]]
func.func @tall(%x: tensor<?x6x4xf16, #comm.place<@t, full, blocks>>) -> tensor<?x6x4xf16, #comm.place<@t, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]] eps 1.0e-07 form auto : tensor<?x6x4xf16, #comm.place<@t, full, blocks>>
  return %o : tensor<?x6x4xf16, #comm.place<@t, full, blocks>>
}

// 5 is less than 1.5 times 4, so `auto` is the standard form, whose restarts do nothing.
// CHECK-LABEL: func.func @nearly_square
// CHECK: optim.product {{.*}} transpose_lhs
// CHECK: optim.product
// CHECK: optim.product
// CHECK: optim.product {{.*}} transpose_lhs
// CHECK-NOT: shift
func.func @nearly_square(%x: tensor<?x5x4xf32, #comm.place<@u, full, blocks>>) -> tensor<?x5x4xf32, #comm.place<@u, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]] eps 1.0e-07 form auto restarts [1] : tensor<?x5x4xf32, #comm.place<@u, full, blocks>>
  return %o : tensor<?x5x4xf32, #comm.place<@u, full, blocks>>
}
}
