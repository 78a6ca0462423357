// RUN: stepc-opt %s -split-input-file --comm-pipeline-waves | FileCheck %s
// RUN: stepc-opt %s -split-input-file --comm-pipeline-waves --remark-policy=all --remarks-filter=comm-pipeline-waves -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// Of two waves and elementwise work every exchange is hidden but the last; of one wave alone none is.
// REMARK: remark: [Passed] waves-pipelined | Category:comm-pipeline-waves | exchanges=4, waves=2
// REMARK: remark: [Missed] exchange-exposed | Category:comm-pipeline-waves | Reason="no elementwise or local group and no other wave is left to run while it travels", direction=to_matrix, order=0, segments="[@g_all, @h_all]"
// REMARK: remark: [Missed] exchange-exposed | Category:comm-pipeline-waves | Reason="it is the last wave's: no later matrix operations run while it travels", direction=to_shards, order=1, segments="[@g_all, @h_all]"
// REMARK: remark: [Passed] waves-pipelined | Category:comm-pipeline-waves | exchanges=2, waves=1

// Two waves overlap: wave 1 is packed and started before wave 0 is waited for, wave 0 is finished after wave 1 is
// computed; elementwise work fills the first exchange; starts are numbered.
// CHECK-LABEL: func.func @two_waves
// CHECK: comm.scalars @e
// CHECK: comm.stage @g_w0 over shards to_matrix send
// CHECK: %[[T0:.*]] = comm.start %{{.*}} to_matrix order 0 sends [@g_w0]
// CHECK: comm.stage @e_all
// CHECK: comm.stage @g_w1 over shards to_matrix send
// CHECK: %[[T1:.*]] = comm.start %{{.*}} to_matrix order 1 sends [@g_w1]
// CHECK: comm.wait %[[T0]]
// CHECK: comm.copy @g_w0 to_matrix full from receive to blocks
// CHECK: comm.copy @g_w0 to_shards full from blocks to send
// CHECK: %[[B0:.*]] = comm.start %{{.*}} to_shards order 2 sends [@g_w0]
// CHECK: comm.wait %[[T1]]
// CHECK: comm.copy @g_w1 to_matrix
// CHECK: comm.copy @g_w1 to_shards
// CHECK: %[[B1:.*]] = comm.start %{{.*}} to_shards order 3 sends [@g_w1]
// CHECK: comm.wait %[[B0]]
// CHECK: comm.stage @g_w0 over shards to_shards receive
// CHECK: comm.wait %[[B1]]
// CHECK: comm.stage @g_w1 over shards to_shards receive
// CHECK-NEXT: ^bb0
// CHECK-NEXT: comm.yield
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NOT: comm.exchange
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
optim.parameter @z shape [3] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @e rule @R parameters [@z] strategy elementwise
comm.segment @g_w0 group @g wave 0 blocks [0]
comm.segment @g_w1 group @g wave 1 blocks [1]
comm.segment @e_all group @e all
func.func @two_waves() {
  %w = comm.world
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent @g_w0 to_matrix full send
  %s0 = memref.alloc(%ns0) : memref<?xf32>
  comm.stage @g_w0 over shards to_matrix send ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent @g_w0 to_matrix full receive
  %r0 = memref.alloc(%nr0) : memref<?xf32>
  comm.exchange %w to_matrix sends [@g_w0] (%s0 : memref<?xf32>) receives [@g_w0] (%r0 : memref<?xf32>) kinds [0]
  %nb0 = comm.extent @g_w0 to_matrix full blocks
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32>
  comm.copy @g_w0 to_matrix full from receive to blocks ins(%r0 : memref<?xf32>) outs(%x0 : memref<?x4x6xf32>)
  %nk0 = comm.extent @g_w0 to_shards full send
  %k0 = memref.alloc(%nk0) : memref<?xf32>
  comm.copy @g_w0 to_shards full from blocks to send ins(%x0 : memref<?x4x6xf32>) outs(%k0 : memref<?xf32>)
  %nq0 = comm.extent @g_w0 to_shards full receive
  %q0 = memref.alloc(%nq0) : memref<?xf32>
  comm.exchange %w to_shards sends [@g_w0] (%k0 : memref<?xf32>) receives [@g_w0] (%q0 : memref<?xf32>) kinds [0]
  comm.stage @g_w0 over shards to_shards receive ins(%q0 : memref<?xf32>) writes(%p0 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p1 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns1 = comm.extent @g_w1 to_matrix full send
  %s1 = memref.alloc(%ns1) : memref<?xf32>
  comm.stage @g_w1 over shards to_matrix send ins(%p1 : !comm.shards<@g, f32>) outs(%s1 : memref<?xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr1 = comm.extent @g_w1 to_matrix full receive
  %r1 = memref.alloc(%nr1) : memref<?xf32>
  comm.exchange %w to_matrix sends [@g_w1] (%s1 : memref<?xf32>) receives [@g_w1] (%r1 : memref<?xf32>) kinds [0]
  %nb1 = comm.extent @g_w1 to_matrix full blocks
  %x1 = memref.alloc(%nb1) : memref<?x4x6xf32>
  comm.copy @g_w1 to_matrix full from receive to blocks ins(%r1 : memref<?xf32>) outs(%x1 : memref<?x4x6xf32>)
  %nk1 = comm.extent @g_w1 to_shards full send
  %k1 = memref.alloc(%nk1) : memref<?xf32>
  comm.copy @g_w1 to_shards full from blocks to send ins(%x1 : memref<?x4x6xf32>) outs(%k1 : memref<?xf32>)
  %nq1 = comm.extent @g_w1 to_shards full receive
  %q1 = memref.alloc(%nq1) : memref<?xf32>
  comm.exchange %w to_shards sends [@g_w1] (%k1 : memref<?xf32>) receives [@g_w1] (%q1 : memref<?xf32>) kinds [0]
  comm.stage @g_w1 over shards to_shards receive ins(%q1 : memref<?xf32>) writes(%p1 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %pe = comm.shards parameter @e : !comm.shards<@e, f32>
  %te = memref.alloc() : memref<1x1xf32>
  comm.scalars @e outs(%te : memref<1x1xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @e_all over shards to_matrix none ins(%pe : !comm.shards<@e, f32>) writes(%pe : !comm.shards<@e, f32>) scalars(%te : memref<1x1xf32>) {
  ^bb0(%a: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}

// -----

// All exchanges of a wave and direction are one start, in the order of the groups.
// CHECK-LABEL: func.func @merged
// CHECK: comm.stage @g_all over shards to_matrix send {{.*}} outs(%[[S0:.*]] : memref<?xf32>)
// CHECK: comm.stage @h_all over shards to_matrix send {{.*}} outs(%[[S1:.*]] : memref<?xf32>)
// CHECK: %[[T:.*]] = comm.start %{{.*}} to_matrix order 0 sends [@g_all, @h_all](%[[S0]], %[[S1]] : memref<?xf32>, memref<?xf32>) receives [@g_all, @h_all](%[[R0:.*]], %[[R1:[a-z0-9_]*]] : memref<?xf32>, memref<?xf32>) kinds [0, 0]
// CHECK-NEXT: comm.wait %[[T]]
// CHECK: comm.copy @g_all to_matrix full from receive to blocks ins(%[[R0]]
// CHECK: comm.copy @h_all to_matrix full from receive to blocks ins(%[[R1]]
// CHECK: %[[B:.*]] = comm.start %{{.*}} to_shards order 1 sends [@g_all, @h_all]
// CHECK-NEXT: comm.wait %[[B]]
// CHECK-NOT: comm.start
// CHECK: comm.stage @g_all over shards to_shards receive
// CHECK: comm.stage @h_all over shards to_shards receive
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @h rule @R parameters [@c] strategy owner owners [1]
comm.segment @g_all group @g all
comm.segment @h_all group @h all
func.func @merged() {
  %w = comm.world
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent @g_all to_matrix full send
  %s0 = memref.alloc(%ns0) : memref<?xf32>
  comm.stage @g_all over shards to_matrix send ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent @g_all to_matrix full receive
  %r0 = memref.alloc(%nr0) : memref<?xf32>
  comm.exchange %w to_matrix sends [@g_all] (%s0 : memref<?xf32>) receives [@g_all] (%r0 : memref<?xf32>) kinds [0]
  %nb0 = comm.extent @g_all to_matrix full blocks
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32>
  comm.copy @g_all to_matrix full from receive to blocks ins(%r0 : memref<?xf32>) outs(%x0 : memref<?x4x6xf32>)
  %nk0 = comm.extent @g_all to_shards full send
  %k0 = memref.alloc(%nk0) : memref<?xf32>
  comm.copy @g_all to_shards full from blocks to send ins(%x0 : memref<?x4x6xf32>) outs(%k0 : memref<?xf32>)
  %nq0 = comm.extent @g_all to_shards full receive
  %q0 = memref.alloc(%nq0) : memref<?xf32>
  comm.exchange %w to_shards sends [@g_all] (%k0 : memref<?xf32>) receives [@g_all] (%q0 : memref<?xf32>) kinds [0]
  comm.stage @g_all over shards to_shards receive ins(%q0 : memref<?xf32>) writes(%p0 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p1 = comm.shards parameter @h : !comm.shards<@h, f32>
  %ns1 = comm.extent @h_all to_matrix full send
  %s1 = memref.alloc(%ns1) : memref<?xf32>
  comm.stage @h_all over shards to_matrix send ins(%p1 : !comm.shards<@h, f32>) outs(%s1 : memref<?xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr1 = comm.extent @h_all to_matrix full receive
  %r1 = memref.alloc(%nr1) : memref<?xf32>
  comm.exchange %w to_matrix sends [@h_all] (%s1 : memref<?xf32>) receives [@h_all] (%r1 : memref<?xf32>) kinds [0]
  %nb1 = comm.extent @h_all to_matrix full blocks
  %x1 = memref.alloc(%nb1) : memref<?x4x6xf32>
  comm.copy @h_all to_matrix full from receive to blocks ins(%r1 : memref<?xf32>) outs(%x1 : memref<?x4x6xf32>)
  %nk1 = comm.extent @h_all to_shards full send
  %k1 = memref.alloc(%nk1) : memref<?xf32>
  comm.copy @h_all to_shards full from blocks to send ins(%x1 : memref<?x4x6xf32>) outs(%k1 : memref<?xf32>)
  %nq1 = comm.extent @h_all to_shards full receive
  %q1 = memref.alloc(%nq1) : memref<?xf32>
  comm.exchange %w to_shards sends [@h_all] (%k1 : memref<?xf32>) receives [@h_all] (%q1 : memref<?xf32>) kinds [0]
  comm.stage @h_all over shards to_shards receive ins(%q1 : memref<?xf32>) writes(%p1 : !comm.shards<@h, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Groups whose blocks are whole here are computed while the exchange travels.
// CHECK-LABEL: func.func @local
// CHECK: %[[T:.*]] = comm.start %{{.*}} to_matrix
// CHECK: comm.stage @l_all over shards to_matrix blocks
// CHECK: comm.stage @l_all over shards to_shards blocks
// CHECK: comm.wait %[[T]]
// CHECK: comm.start %{{.*}} to_shards
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy owner owners [0, 1]
optim.parameter @z shape [2, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @l rule @R parameters [@z] strategy local
comm.segment @g_all group @g all
comm.segment @l_all group @l all
func.func @local() {
  %w = comm.world
  %pl = comm.shards parameter @l : !comm.shards<@l, f32>
  %nl = comm.extent @l_all to_matrix full blocks
  %xl = memref.alloc(%nl) : memref<?x2x2xf32>
  comm.stage @l_all over shards to_matrix blocks ins(%pl : !comm.shards<@l, f32>) outs(%xl : memref<?x2x2xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  comm.stage @l_all over shards to_shards blocks ins(%xl : memref<?x2x2xf32>) writes(%pl : !comm.shards<@l, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent @g_all to_matrix full send
  %s0 = memref.alloc(%ns0) : memref<?xf32>
  comm.stage @g_all over shards to_matrix send ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent @g_all to_matrix full receive
  %r0 = memref.alloc(%nr0) : memref<?xf32>
  comm.exchange %w to_matrix sends [@g_all] (%s0 : memref<?xf32>) receives [@g_all] (%r0 : memref<?xf32>) kinds [0]
  %nb0 = comm.extent @g_all to_matrix full blocks
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32>
  comm.copy @g_all to_matrix full from receive to blocks ins(%r0 : memref<?xf32>) outs(%x0 : memref<?x4x6xf32>)
  %nk0 = comm.extent @g_all to_shards full send
  %k0 = memref.alloc(%nk0) : memref<?xf32>
  comm.copy @g_all to_shards full from blocks to send ins(%x0 : memref<?x4x6xf32>) outs(%k0 : memref<?xf32>)
  %nq0 = comm.extent @g_all to_shards full receive
  %q0 = memref.alloc(%nq0) : memref<?xf32>
  comm.exchange %w to_shards sends [@g_all] (%k0 : memref<?xf32>) receives [@g_all] (%q0 : memref<?xf32>) kinds [0]
  comm.stage @g_all over shards to_shards receive ins(%q0 : memref<?xf32>) writes(%p0 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Without exchanges nothing is started, and what nothing uses is gone.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: comm.world
// CHECK-NOT: comm.start
// CHECK: comm.stage @e_all
// CHECK-NOT: comm.wait
// CHECK: return
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @z shape [3] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @e rule @R parameters [@z] strategy elementwise
comm.segment @e_all group @e all
func.func @nothing() {
  %w = comm.world
  %pe = comm.shards parameter @e : !comm.shards<@e, f32>
  %te = memref.alloc() : memref<1x1xf32>
  comm.scalars @e outs(%te : memref<1x1xf32>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @e_all over shards to_matrix none ins(%pe : !comm.shards<@e, f32>) writes(%pe : !comm.shards<@e, f32>) scalars(%te : memref<1x1xf32>) {
  ^bb0(%a: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}
