// Where results of several segments of a wave are sent back together, the last product writes where the normalized blocks
// stood; a segment that is alone in its wave, or whose ranks keep what they compute, has no need of that.
// RUN: stepc-opt %s --optim-expand-matrix | FileCheck %s

#s0 = #comm.place<@s0, full, blocks>
#s1 = #comm.place<@s1, full, blocks>
#s2 = #comm.place<@s2, full, blocks>
#s3 = #comm.place<@s3, full, blocks>
module {
optim.rule @R hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @d shape [4, 9] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g0 rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
optim.group @g1 rule @R parameters [@c] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
optim.group @g2 rule @R parameters [@d] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
comm.segment @s0 group @g0 wave 0 blocks [0]
comm.segment @s1 group @g1 wave 0 all
comm.segment @s2 group @g0 wave 1 blocks [1]
comm.segment @s3 group @g2 wave 0 all

// CHECK-LABEL: func.func @beside
// CHECK: %[[Y:.*]] = comm.stage @s0
// CHECK: %[[X:.*]] = optim.product %{{.*}}, %[[Y]] plus %[[Y]] outs(%{{.*}})
// CHECK: optim.product %{{.*}}, %[[X]] plus %[[X]] outs(%[[Y]] :
func.func @beside(%x: tensor<?x4x6xf32, #s0>) -> tensor<?x4x6xf32, #s0> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x6xf32, #s0>
  return %o : tensor<?x4x6xf32, #s0>
}

// A single step reads what it would write over.
// CHECK-LABEL: func.func @one_step
// CHECK: %[[Y:.*]] = comm.stage @s1
// CHECK: optim.product %{{.*}}, %[[Y]] plus %[[Y]] outs(%[[O:.*]] :
// CHECK-NOT: outs(%[[Y]]
func.func @one_step(%x: tensor<?x4x8xf32, #s1>) -> tensor<?x4x8xf32, #s1> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x8xf32, #s1>
  return %o : tensor<?x4x8xf32, #s1>
}

// CHECK-LABEL: func.func @alone
// CHECK: %[[Y:.*]] = comm.stage @s2
// CHECK-NOT: outs(%[[Y]]
// CHECK: return
func.func @alone(%x: tensor<?x4x6xf32, #s2>) -> tensor<?x4x6xf32, #s2> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x6xf32, #s2>
  return %o : tensor<?x4x6xf32, #s2>
}

// CHECK-LABEL: func.func @kept
// CHECK: %[[Y:.*]] = comm.stage @s3
// CHECK-NOT: outs(%[[Y]]
// CHECK: return
func.func @kept(%x: tensor<?x4x9xf32, #s3>) -> tensor<?x4x9xf32, #s3> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x9xf32, #s3>
  return %o : tensor<?x4x9xf32, #s3>
}
}
