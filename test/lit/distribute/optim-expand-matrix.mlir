// Matrix operations become products, reductions and stages; Newton–Schulz a norm, a scaling and products.
// RUN: stepc-opt %s --optim-expand-matrix | FileCheck %s

module {
optim.rule @Muon hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %lr : tensor<?x?xf32>
  %m1 = arith.addf %m, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  %c = arith.truncf %m1 {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  %u = arith.mulf %s, %f {optim.space = #optim.space<out>} : tensor<?x?xf32>
  %p = arith.subf %param, %u {optim.space = #optim.space<out>} : tensor<?x?xf32>
  optim.yield %p, %m1 : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, #optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
optim.group @h rule @Muon parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
comm.segment @t group @h all

// A wide block: X over max(norm, eps), then A = X Xᵀ, B = c A A + b A, X = B X + a X; A and B are symmetric.
// CHECK-LABEL: func.func @wide
// CHECK-SAME: %[[X:.*]]: tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
// CHECK: comm.extent <@s, full, blocks>
// CHECK: %[[N:.*]] = optim.apply #optim.block_reduce<norm, exponent = -24> %[[X]] outs(%{{.*}} : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>)
// CHECK: %[[Y:.*]] = comm.stage @s over blocks ins(%[[X]], %[[N]] : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>, tensor<?x1x1xf32, #comm.place<@s, one, blocks>>)
// CHECK-NEXT: ^bb0(%[[E:.*]]: bf16, %[[NE:.*]]: f32):
// CHECK-NEXT: %[[EPS:.*]] = arith.constant 5.96046455E-15 : f32
// CHECK-NEXT: %[[MAX:.*]] = arith.maximumf %[[NE]], %[[EPS]] : f32
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[E]] : bf16 to f32
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[W]], %[[MAX]] : f32
// CHECK-NEXT: %[[SCALE:.*]] = arith.constant 5.96046448E-8 : f32
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[Q]], %[[SCALE]] : f32
// CHECK-NEXT: arith.truncf %[[T]] : f32 to bf16
// CHECK: %[[A:.*]] = optim.product %[[Y]], %[[Y]] outs({{.*}} : tensor<?x4x4xbf16, #comm.place<@s, gram, blocks>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[B:.*]] = optim.product %[[A]], %[[A]] plus %[[A]] outs(%{{.*}}) {alpha = 2.031500e+00 : f64, beta = -4.775000e+00 : f64, symmetric, transpose_rhs}
// CHECK: %[[O:.*]] = optim.product %[[B]], %[[Y]] plus %[[Y]] outs(%{{.*}}) {alpha = 1.000000e+00 : f64, beta = 3.444500e+00 : f64}
// CHECK: return %[[O]] : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
// CHECK-NOT: optim.orthogonalize
func.func @wide(%x: tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xbf16, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x6xbf16, #comm.place<@s, full, blocks>>
}

// An f32 source is normalized in f32 and rounded to f16 once.
// CHECK-LABEL: func.func @half
// CHECK-SAME: %[[X:.*]]: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
// CHECK: optim.apply #optim.block_reduce<norm, exponent = -24> %[[X]]
// CHECK: comm.stage @s over blocks ins(%[[X]], %{{.*}} : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, tensor<?x1x1xf32, #comm.place<@s, one, blocks>>) outs(%{{.*}} : tensor<?x4x6xf16, #comm.place<@s, full, blocks>>)
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32, %{{.*}}: f32):
// CHECK: arith.divf %[[E]], %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: optim.product %{{.*}} outs(%{{.*}} : tensor<?x4x4xf16, #comm.place<@s, gram, blocks>>
func.func @half(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf16, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x4x6xf32, #comm.place<@s, full, blocks>> to tensor<?x4x6xf16, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x6xf16, #comm.place<@s, full, blocks>>
}

// Of a tall block the small products are Xᵀ X, and X B: no transposed copy is made.
// CHECK-LABEL: func.func @tall
// CHECK: %[[Y:.*]] = comm.stage
// CHECK: %[[A:.*]] = optim.product %[[Y]], %[[Y]] outs({{.*}} : tensor<?x4x4xbf16, #comm.place<@t, gram, blocks>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs}
// CHECK: %[[B:.*]] = optim.product %[[A]], %[[A]] plus %[[A]]
// CHECK: optim.product %[[Y]], %[[B]] plus %[[Y]] outs(%{{.*}} : tensor<?x6x4xbf16, #comm.place<@t, full, blocks>>
func.func @tall(%x: tensor<?x6x4xbf16, #comm.place<@t, full, blocks>>) -> tensor<?x6x4xbf16, #comm.place<@t, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x6x4xbf16, #comm.place<@t, full, blocks>>
  return %o : tensor<?x6x4xbf16, #comm.place<@t, full, blocks>>
}

// When c is 0 there is no product A A, and b is the factor of X Xᵀ; in f32 nothing is rounded between.
// CHECK-LABEL: func.func @cubic
// CHECK: arith.divf
// CHECK-NOT: arith.truncf
// CHECK: %[[B:.*]] = optim.product {{.*}} {alpha = -5.000000e-01 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK: optim.product %[[B]], {{.*}} {alpha = 1.000000e+00 : f64, beta = 1.500000e+00 : f64}
// CHECK-NOT: optim.product
func.func @cubic(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
}

// Each step starts from the last one's X; the norm is taken once.
// CHECK-LABEL: func.func @steps
// CHECK: optim.apply
// CHECK: optim.product
// CHECK: %[[X1:.*]] = optim.product {{.*}} beta = 1.500000e+00
// CHECK-NOT: optim.apply
// CHECK: optim.product %[[X1]], %[[X1]]
// CHECK: optim.product {{.*}} plus %[[X1]] {{.*}} beta = 2.500000e+00
func.func @steps(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x6xf32, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [2.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
}

// A reduction is one on a batch.
// CHECK-LABEL: func.func @reduce
// CHECK-SAME: %[[X:.*]]: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>
// CHECK: %[[INIT:.*]] = tensor.empty(%{{.*}}) : tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
// CHECK: %[[R:.*]] = optim.apply #optim.block_reduce<rms> %[[X]] outs(%[[INIT]] : {{.*}}) : {{.*}} -> tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
// CHECK: return %[[R]]
func.func @reduce(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>) -> tensor<?x4x1xf32, #comm.place<@s, rows, blocks>> {
  %r = optim.reduce rms %x : tensor<?x4x6xf32, #comm.place<@s, full, blocks>> to tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
  return %r : tensor<?x4x1xf32, #comm.place<@s, rows, blocks>>
}
}
