// RUN: stepc-opt %s -split-input-file --comm-pipeline-waves | FileCheck %s
// RUN: stepc-opt %s -split-input-file --comm-pipeline-waves --remark-policy=all --remarks-filter=comm-pipeline-waves -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// Of two waves and elementwise work every exchange is hidden but the last; of one wave alone none is.
// REMARK: remark: [Passed] waves-pipelined | Category:comm-pipeline-waves | exchanges=4, waves=2
// REMARK: remark: [Missed] exchange-exposed | Category:comm-pipeline-waves | Reason="no elementwise or local group and no other wave is left to run while it travels", from=shards, order=0, segments="[@g_all, @h_all]"
// REMARK: remark: [Missed] exchange-exposed | Category:comm-pipeline-waves | Reason="it is the last wave's: no later matrix operations run while it travels", from=blocks, order=1, segments="[@g_all, @h_all]"
// REMARK: remark: [Passed] waves-pipelined | Category:comm-pipeline-waves | exchanges=2, waves=1

// Two waves overlap: wave 1 is packed and started before wave 0 is waited for, wave 0 is finished after wave 1 is
// computed; elementwise work fills the first exchange; starts are numbered.
// CHECK-LABEL: func.func @two_waves
// CHECK: comm.scalars
// CHECK: comm.stage @g_w0 over shards active %active
// CHECK: %[[T0:.*]] = comm.start exchange %{{.*}} order 0 sends
// CHECK: comm.stage @e_all
// CHECK: comm.stage @g_w1 over shards active %active
// CHECK: %[[T1:.*]] = comm.start exchange %{{.*}} order 1 sends
// CHECK: comm.wait %[[T0]]
// CHECK: comm.copy
// CHECK: comm.copy
// CHECK: %[[B0:.*]] = comm.start exchange %{{.*}} order 2 sends
// CHECK: comm.wait %[[T1]]
// CHECK: comm.copy ins(%{{.*}} : memref<{{.*}}<@g_w1, full, shards to blocks, received>
// CHECK: comm.copy ins(%{{.*}} : memref<{{.*}}<@g_w1, full, blocks>
// CHECK: %[[B1:.*]] = comm.start exchange %{{.*}} order 3 sends
// CHECK: comm.wait %[[B0]]
// CHECK: comm.stage @g_w0 over shards active %active
// CHECK: comm.wait %[[B1]]
// CHECK: comm.stage @g_w1 over shards active %active
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
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
optim.parameter @z shape [3] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @e rule @R parameters [@z]
comm.segment @g_w0 group @g wave 0 blocks [0]
comm.segment @g_w1 group @g wave 1 blocks [1]
comm.segment @e_all group @e all
func.func @two_waves() {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %w = comm.world
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent <@g_w0, full, shards to blocks, sent>
  %s0 = memref.alloc(%ns0) : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, sent>>
  comm.stage @g_w0 over shards active %active ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent <@g_w0, full, shards to blocks, received>
  %r0 = memref.alloc(%nr0) : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, received>>
  comm.exchange %w sends(%s0 : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, sent>>) receives(%r0 : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, received>>)
  %nb0 = comm.extent <@g_w0, full, blocks>
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32, #comm.place<@g_w0, full, blocks>>
  comm.copy ins(%r0 : memref<?xf32, #comm.place<@g_w0, full, shards to blocks, received>>) outs(%x0 : memref<?x4x6xf32, #comm.place<@g_w0, full, blocks>>)
  %nk0 = comm.extent <@g_w0, full, blocks to shards, sent>
  %k0 = memref.alloc(%nk0) : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, sent>>
  comm.copy ins(%x0 : memref<?x4x6xf32, #comm.place<@g_w0, full, blocks>>) outs(%k0 : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, sent>>)
  %nq0 = comm.extent <@g_w0, full, blocks to shards, received>
  %q0 = memref.alloc(%nq0) : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, received>>
  comm.exchange %w sends(%k0 : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, sent>>) receives(%q0 : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, received>>)
  comm.stage @g_w0 over shards active %active ins(%q0 : memref<?xf32, #comm.place<@g_w0, full, blocks to shards, received>>) writes(%p0 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p1 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns1 = comm.extent <@g_w1, full, shards to blocks, sent>
  %s1 = memref.alloc(%ns1) : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, sent>>
  comm.stage @g_w1 over shards active %active ins(%p1 : !comm.shards<@g, f32>) outs(%s1 : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr1 = comm.extent <@g_w1, full, shards to blocks, received>
  %r1 = memref.alloc(%nr1) : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, received>>
  comm.exchange %w sends(%s1 : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, sent>>) receives(%r1 : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, received>>)
  %nb1 = comm.extent <@g_w1, full, blocks>
  %x1 = memref.alloc(%nb1) : memref<?x4x6xf32, #comm.place<@g_w1, full, blocks>>
  comm.copy ins(%r1 : memref<?xf32, #comm.place<@g_w1, full, shards to blocks, received>>) outs(%x1 : memref<?x4x6xf32, #comm.place<@g_w1, full, blocks>>)
  %nk1 = comm.extent <@g_w1, full, blocks to shards, sent>
  %k1 = memref.alloc(%nk1) : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, sent>>
  comm.copy ins(%x1 : memref<?x4x6xf32, #comm.place<@g_w1, full, blocks>>) outs(%k1 : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, sent>>)
  %nq1 = comm.extent <@g_w1, full, blocks to shards, received>
  %q1 = memref.alloc(%nq1) : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, received>>
  comm.exchange %w sends(%k1 : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, sent>>) receives(%q1 : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, received>>)
  comm.stage @g_w1 over shards active %active ins(%q1 : memref<?xf32, #comm.place<@g_w1, full, blocks to shards, received>>) writes(%p1 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %pe = comm.shards parameter @e : !comm.shards<@e, f32>
  %te = memref.alloc() : memref<1x1xf32, #comm.place<@e, scalars>>
  comm.scalars of %hyperparameters, %steps active %active outs(%te : memref<1x1xf32, #comm.place<@e, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @e_all over shards active %active ins(%pe : !comm.shards<@e, f32>) writes(%pe : !comm.shards<@e, f32>) scalars(%te : memref<1x1xf32, #comm.place<@e, scalars>>) {
  ^bb0(%a: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}

// -----

// All exchanges of a wave and direction are one start, in the order of the groups.
// CHECK-LABEL: func.func @merged
// CHECK: comm.stage @g_all over shards active %active {{.*}} outs(%[[S0:.*]] : memref<?xf32, #comm.place<{{.*}}>>)
// CHECK: comm.stage @h_all over shards active %active {{.*}} outs(%[[S1:.*]] : memref<?xf32, #comm.place<{{.*}}>>)
// CHECK: %[[T:.*]] = comm.start exchange %{{.*}} order 0 sends(%[[S0]], %[[S1]] : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>) receives(%[[R0:.*]], %[[R1:[a-z0-9_]*]] : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>, memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>)
// CHECK-NEXT: comm.wait %[[T]]
// CHECK: comm.copy ins(%[[R0]]
// CHECK: comm.copy ins(%[[R1]]
// CHECK: %[[B:.*]] = comm.start exchange %{{.*}} order 1 sends
// CHECK-NEXT: comm.wait %[[B]]
// CHECK-NOT: comm.start
// CHECK: comm.stage @g_all over shards active %active
// CHECK: comm.stage @h_all over shards active %active
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @h rule @R parameters [@c] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [1]>]
comm.segment @g_all group @g all
comm.segment @h_all group @h all
func.func @merged() {
  %active = comm.active
  %w = comm.world
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent <@g_all, full, shards to blocks, sent>
  %s0 = memref.alloc(%ns0) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>
  comm.stage @g_all over shards active %active ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent <@g_all, full, shards to blocks, received>
  %r0 = memref.alloc(%nr0) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>
  comm.exchange %w sends(%s0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) receives(%r0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>)
  %nb0 = comm.extent <@g_all, full, blocks>
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>
  comm.copy ins(%r0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>) outs(%x0 : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>)
  %nk0 = comm.extent <@g_all, full, blocks to shards, sent>
  %k0 = memref.alloc(%nk0) : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>
  comm.copy ins(%x0 : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>) outs(%k0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>)
  %nq0 = comm.extent <@g_all, full, blocks to shards, received>
  %q0 = memref.alloc(%nq0) : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>
  comm.exchange %w sends(%k0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>) receives(%q0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>)
  comm.stage @g_all over shards active %active ins(%q0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>) writes(%p0 : !comm.shards<@g, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p1 = comm.shards parameter @h : !comm.shards<@h, f32>
  %ns1 = comm.extent <@h_all, full, shards to blocks, sent>
  %s1 = memref.alloc(%ns1) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>
  comm.stage @h_all over shards active %active ins(%p1 : !comm.shards<@h, f32>) outs(%s1 : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr1 = comm.extent <@h_all, full, shards to blocks, received>
  %r1 = memref.alloc(%nr1) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>
  comm.exchange %w sends(%s1 : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>) receives(%r1 : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>)
  %nb1 = comm.extent <@h_all, full, blocks>
  %x1 = memref.alloc(%nb1) : memref<?x4x6xf32, #comm.place<@h_all, full, blocks>>
  comm.copy ins(%r1 : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>) outs(%x1 : memref<?x4x6xf32, #comm.place<@h_all, full, blocks>>)
  %nk1 = comm.extent <@h_all, full, blocks to shards, sent>
  %k1 = memref.alloc(%nk1) : memref<?xf32, #comm.place<@h_all, full, blocks to shards, sent>>
  comm.copy ins(%x1 : memref<?x4x6xf32, #comm.place<@h_all, full, blocks>>) outs(%k1 : memref<?xf32, #comm.place<@h_all, full, blocks to shards, sent>>)
  %nq1 = comm.extent <@h_all, full, blocks to shards, received>
  %q1 = memref.alloc(%nq1) : memref<?xf32, #comm.place<@h_all, full, blocks to shards, received>>
  comm.exchange %w sends(%k1 : memref<?xf32, #comm.place<@h_all, full, blocks to shards, sent>>) receives(%q1 : memref<?xf32, #comm.place<@h_all, full, blocks to shards, received>>)
  comm.stage @h_all over shards active %active ins(%q1 : memref<?xf32, #comm.place<@h_all, full, blocks to shards, received>>) writes(%p1 : !comm.shards<@h, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  return
}

// -----

// Groups whose blocks are whole here are computed while the exchange travels.
// CHECK-LABEL: func.func @local
// CHECK: %[[T:.*]] = comm.start exchange %{{.*}}
// CHECK: comm.stage @l_all over shards active %active
// CHECK: comm.stage @l_all over shards active %active
// CHECK: comm.wait %[[T]]
// CHECK: comm.start exchange %{{.*}}
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
optim.parameter @z shape [2, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @l rule @R parameters [@z] strategy #optim.local hops []
comm.segment @g_all group @g all
comm.segment @l_all group @l all
func.func @local() {
  %active = comm.active
  %w = comm.world
  %pl = comm.shards parameter @l : !comm.shards<@l, f32>
  %nl = comm.extent <@l_all, full, blocks>
  %xl = memref.alloc(%nl) : memref<?x2x2xf32, #comm.place<@l_all, full, blocks>>
  comm.stage @l_all over shards active %active ins(%pl : !comm.shards<@l, f32>) outs(%xl : memref<?x2x2xf32, #comm.place<@l_all, full, blocks>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  comm.stage @l_all over shards active %active ins(%xl : memref<?x2x2xf32, #comm.place<@l_all, full, blocks>>) writes(%pl : !comm.shards<@l, f32>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %p0 = comm.shards parameter @g : !comm.shards<@g, f32>
  %ns0 = comm.extent <@g_all, full, shards to blocks, sent>
  %s0 = memref.alloc(%ns0) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>
  comm.stage @g_all over shards active %active ins(%p0 : !comm.shards<@g, f32>) outs(%s0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nr0 = comm.extent <@g_all, full, shards to blocks, received>
  %r0 = memref.alloc(%nr0) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>
  comm.exchange %w sends(%s0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) receives(%r0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>)
  %nb0 = comm.extent <@g_all, full, blocks>
  %x0 = memref.alloc(%nb0) : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>
  comm.copy ins(%r0 : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>) outs(%x0 : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>)
  %nk0 = comm.extent <@g_all, full, blocks to shards, sent>
  %k0 = memref.alloc(%nk0) : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>
  comm.copy ins(%x0 : memref<?x4x6xf32, #comm.place<@g_all, full, blocks>>) outs(%k0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>)
  %nq0 = comm.extent <@g_all, full, blocks to shards, received>
  %q0 = memref.alloc(%nq0) : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>
  comm.exchange %w sends(%k0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, sent>>) receives(%q0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>)
  comm.stage @g_all over shards active %active ins(%q0 : memref<?xf32, #comm.place<@g_all, full, blocks to shards, received>>) writes(%p0 : !comm.shards<@g, f32>) {
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
optim.group @e rule @R parameters [@z]
comm.segment @e_all group @e all
func.func @nothing() {
  %hyperparameters = comm.hyperparameters
  %steps = comm.steps
  %active = comm.active
  %w = comm.world
  %pe = comm.shards parameter @e : !comm.shards<@e, f32>
  %te = memref.alloc() : memref<1x1xf32, #comm.place<@e, scalars>>
  comm.scalars of %hyperparameters, %steps active %active outs(%te : memref<1x1xf32, #comm.place<@e, scalars>>) {
  ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    comm.yield %lr : f64
  }
  comm.stage @e_all over shards active %active ins(%pe : !comm.shards<@e, f32>) writes(%pe : !comm.shards<@e, f32>) scalars(%te : memref<1x1xf32, #comm.place<@e, scalars>>) {
  ^bb0(%a: f32, %lr: f32):
    comm.yield %lr : f32
  }
  return
}

// -----

// What is gathered is an exchange beside what other ranks share: one message goes to a peer of both. @h is shared with its row
// of the mesh alone.
// CHECK-LABEL: func.func @copies
// CHECK: comm.start exchange %{{.*}} order 0 sends(%{{.*}}, %{{.*}}, %{{.*}} : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>, memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>)
// CHECK-NOT: comm.start
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["row", "column"] sizes [2, 2] ranks [0, 1, 2, 3]
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases [] route @R
optim.parameter @b shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<1>, #optim.shard<0>] aliases [] route @R
optim.parameter @c shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.shard<0>] aliases [] route @R
optim.group @f rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 2>]>]
optim.group @g rule @R parameters [@b] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 2>]>]
optim.group @h rule @R parameters [@c] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>, <1, 1, 2>]>]
comm.segment @f_all group @f all
comm.segment @g_all group @g all
comm.segment @h_all group @h all
func.func @copies() {
  %active = comm.active
  %w = comm.world
  %pf = comm.shards parameter @f : !comm.shards<@f, f32>
  %nsf = comm.extent <@f_all, full, shards to blocks, sent>
  %sf = memref.alloc(%nsf) : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>
  comm.stage @f_all over shards active %active ins(%pf : !comm.shards<@f, f32>) outs(%sf : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nrf = comm.extent <@f_all, full, shards to blocks, received>
  %rf = memref.alloc(%nrf) : memref<?xf32, #comm.place<@f_all, full, shards to blocks, received>>
  comm.all_gather %w sends(%sf : memref<?xf32, #comm.place<@f_all, full, shards to blocks, sent>>) receives(%rf : memref<?xf32, #comm.place<@f_all, full, shards to blocks, received>>)
  %ph = comm.shards parameter @h : !comm.shards<@h, f32>
  %nsh = comm.extent <@h_all, full, shards to blocks, sent>
  %sh = memref.alloc(%nsh) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>
  comm.stage @h_all over shards active %active ins(%ph : !comm.shards<@h, f32>) outs(%sh : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nrh = comm.extent <@h_all, full, shards to blocks, received>
  %rh = memref.alloc(%nrh) : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>
  comm.all_gather %w sends(%sh : memref<?xf32, #comm.place<@h_all, full, shards to blocks, sent>>) receives(%rh : memref<?xf32, #comm.place<@h_all, full, shards to blocks, received>>)
  %pg = comm.shards parameter @g : !comm.shards<@g, f32>
  %nsg = comm.extent <@g_all, full, shards to blocks, sent>
  %sg = memref.alloc(%nsg) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>
  comm.stage @g_all over shards active %active ins(%pg : !comm.shards<@g, f32>) outs(%sg : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  }
  %nrg = comm.extent <@g_all, full, shards to blocks, received>
  %rg = memref.alloc(%nrg) : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>
  comm.all_gather %w sends(%sg : memref<?xf32, #comm.place<@g_all, full, shards to blocks, sent>>) receives(%rg : memref<?xf32, #comm.place<@g_all, full, shards to blocks, received>>)
  return
}
