// Of slabs the Gram matrices and the norms are added up over ranks, and all else is local.
// RUN: stepc-opt %s --optim-expand-matrix | FileCheck %s
// RUN: sed -e 's/shape \[8, 4\]/shape [4, 4]/' -e 's/sizes \[2, 2\]/sizes [1, 4]/' -e 's/<1, 1, 2>\], 4 to 4/<1, 1, 4>], 1 to 1/' -e 's/?x4x4xbf16/?x1x4xbf16/g' %s > %t.all.mlir
// RUN: stepc-opt %t.all.mlir --optim-expand-matrix | FileCheck %s --check-prefix EVERY
// RUN: sed -e 's/shape \[4, 4\]/shape [5, 4]/' -e 's/1 to 1/1 to 2/' -e 's/?x1x4xbf16/?x2x4xbf16/g' %t.all.mlir > %t.some.mlir
// RUN: stepc-opt %t.some.mlir --optim-expand-matrix | FileCheck %s --check-prefix FEW

// Where a rank has no slab, it takes no part in sums, and neighbours that gathered from it in one start with others would wait.
// EVERY-COUNT-3: comm.all_gather
// EVERY-NOT: comm.all_gather
// FEW-NOT: comm.all_gather
// FEW-COUNT-6: comm.exchange

module {
optim.rule @Muon hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %c = arith.truncf %grad {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
  %o = optim.orthogonalize %c coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xbf16>
  %f = arith.extf %o : tensor<?x?xbf16> to tensor<?x?xf32>
  optim.yield %f : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases []
optim.group @g rule @Muon parameters [@a] strategy #optim.slabs hops [] slabs <rows, [<1, 1, 2>], 4 to 4>
comm.segment @s group @g all

// Among the ranks that have slabs of a block: the norms first, then the squares of what they are of their sum.
// CHECK-LABEL: func.func @slabs
// CHECK-SAME: %[[X:.*]]: tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
// CHECK: %[[N:.*]] = optim.apply #optim.block_reduce<norm, exponent = -24> %[[X]] outs(%{{.*}} : tensor<?x1x1xf32, #comm.place<@s, one, parts>>)
// CHECK: %[[SENT:.*]] = comm.copy ins(%[[N]] : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@s, one, parts to ranges, sent>>)
// CHECK: %[[C:.*]] = comm.communicator <@world, [<1, 1, 2>]>
// CHECK: %[[R:.*]] = comm.exchange %[[C]] sends(%[[SENT]] : {{.*}})
// CHECK: %[[RANGE:.*]] = comm.sum by 1 ins(%[[R]] : tensor<?xf32, #comm.place<@s, one, parts to ranges, received>>) outs(%{{.*}} : tensor<?xf32, #comm.place<@s, one, ranges, kept>>)
// CHECK: %[[LEAVES:.*]] = comm.copy ins(%[[RANGE]] : {{.*}}) outs(%{{.*}} : tensor<?xf32, #comm.place<@s, one, ranges to blocks, sent>>)
// CHECK: %[[ALL:.*]] = comm.all_gather %[[C]] sends(%[[LEAVES]] : {{.*}})
// CHECK: %[[SUM:.*]] = comm.copy ins(%[[ALL]] : {{.*}}) outs(%{{.*}} : tensor<?x1x1xf32, #comm.place<@s, one, blocks>>)
// CHECK: comm.stage @s over blocks ins(%[[N]], %[[SUM]] : {{.*}}) outs(%{{.*}} : tensor<?x1x1xf32, #comm.place<@s, one, parts>>)
// CHECK: arith.divf
// CHECK: comm.exchange %[[C]]
// CHECK: comm.sum by 1
// CHECK: comm.all_gather %[[C]]
// CHECK: comm.stage @s over blocks
// CHECK: math.sqrt
// CHECK: %[[Y:.*]] = comm.stage @s over blocks
// Then of each step the Gram matrix, in f32 until it is whole.
// CHECK: %[[P:.*]] = optim.product %[[Y]], %[[Y]] outs({{.*}} : tensor<?x4x4xf32, #comm.place<@s, gram, parts>>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_lhs}
// CHECK: comm.copy ins(%[[P]] : {{.*}})
// CHECK: comm.exchange %[[C]] sends({{.*}} : tensor<?xf32, #comm.place<@s, gram, parts to ranges, sent>>)
// CHECK: comm.sum by 1 {{.*}} outs(%{{.*}} : tensor<?xf32, #comm.place<@s, gram, ranges, kept>>)
// CHECK: comm.all_gather %[[C]] sends({{.*}} : tensor<?xf32, #comm.place<@s, gram, ranges to blocks, sent>>)
// CHECK: %[[G:.*]] = comm.copy ins({{.*}}) outs(%{{.*}} : tensor<?x4x4xf32, #comm.place<@s, gram, blocks>>)
// CHECK: %[[A:.*]] = comm.stage @s over blocks ins(%[[G]] : {{.*}}) outs(%{{.*}} : tensor<?x4x4xbf16, #comm.place<@s, gram, blocks>>)
// CHECK: %[[B:.*]] = optim.product %[[A]], %[[A]] plus %[[A]] {{.*}}symmetric, transpose_rhs}
// CHECK: %[[O:.*]] = optim.product %[[Y]], %[[B]] plus %[[Y]]
// CHECK: return %[[O]]
func.func @slabs(%x: tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>) -> tensor<?x4x4xbf16, #comm.place<@s, full, blocks>> {
  %o = optim.orthogonalize %x coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
  return %o : tensor<?x4x4xbf16, #comm.place<@s, full, blocks>>
}
}
