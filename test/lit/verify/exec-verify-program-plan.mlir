// The hand-written program: accepted, unchanged, and with a remark that says what was proven.
// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 --remark-policy=all --remarks-filter=exec-verify-program %S/../Inputs/scheduled.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] plan-proven | Category:exec-verify-program | blocks=3, bytes=256, exchanges=4, messages=4, ranks=2, routed-elements=128, workspace-bytes=768
// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 %S/../Inputs/scheduled.mlir -o %t.before
// RUN: stepc-opt --exec-verify-program %t.before -o %t.after
// RUN: diff %t.before %t.after

// Other placements of the same program: columns, replicated, three ranks with an empty shard of the
// bias, and one rank.
// RUN: sed -e 's/\(@[ab] .*\)shard<0>/\1shard<1>/' %S/../Inputs/scheduled.mlir | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null
// RUN: sed -e 's/\(@[ab] .*\)shard<0>/\1replicate/' \
// RUN:   -e 's/s1 = comm.buffer offset 320 bytes 64/s1 = comm.buffer offset 768 bytes 128/' \
// RUN:   -e 's/s0 = comm.buffer offset 128 bytes 64/s0 = comm.buffer offset 896 bytes 128/' \
// RUN:   -e 's/k0 = comm.buffer offset 192 bytes 128/k0 = comm.buffer offset 1024 bytes 256/' \
// RUN:   -e 's/k1 = comm.buffer offset 384 bytes 128/k1 = comm.buffer offset 1280 bytes 256/' \
// RUN:   -e 's/o0 = comm.buffer offset 576 bytes 64/o0 = comm.buffer offset 1536 bytes 96/' \
// RUN:   -e 's/o1 = comm.buffer offset 704 bytes 64/o1 = comm.buffer offset 1664 bytes 96/' \
// RUN:   -e 's/workspace_limit = 1024/workspace_limit = 2048/' -e 's/arena_bytes = 768/arena_bytes = 1792/' %S/../Inputs/scheduled.mlir | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null
// RUN: sed -e 's/sizes \[2\] ranks \[0, 1\]/sizes [3] ranks [4, 9, 2]/' -e 's/<0, 1, 2>/<0, 1, 3>/' -e 's/shape \[7\]/shape [2]/' \
// RUN:   -e 's/\([rk]0 = comm.buffer offset\) 192 bytes 128/\1 768 bytes 192/' -e 's/\([rk]1 = comm.buffer offset\) 384 bytes 128/\1 960 bytes 192/' \
// RUN:   -e 's/workspace_limit = 1024/workspace_limit = 2048/' -e 's/arena_bytes = 768/arena_bytes = 1152/' %S/../Inputs/scheduled.mlir | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null
// RUN: sed -e 's/sizes \[2\] ranks \[0, 1\]/sizes [1] ranks [0]/' -e 's/<0, 1, 2>\] base \[0, 1\]/<0, 1, 1>] base [0, 0]/' \
// RUN:   -e 's/s0 = comm.buffer offset 128 bytes 64/s0 = comm.buffer offset 768 bytes 96/' -e 's/s1 = comm.buffer offset 320 bytes 64/s1 = comm.buffer offset 896 bytes 96/' \
// RUN:   -e 's/o0 = comm.buffer offset 576 bytes 64/o0 = comm.buffer offset 1024 bytes 96/' -e 's/o1 = comm.buffer offset 704 bytes 64/o1 = comm.buffer offset 1152 bytes 96/' \
// RUN:   -e 's/workspace_limit = 1024/workspace_limit = 2048/' -e 's/arena_bytes = 768/arena_bytes = 1280/' %S/../Inputs/scheduled.mlir | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null

// A memory-less operation may stand in the step; a value that the rule gives back unchanged need
// not be written; a master is written with its parameter; every strategy has its program.
// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file %s | FileCheck %s

// Local: experts on their ranks, in place, without messages.
// CHECK-LABEL: module @local
module @local attributes {stepc.level = "scheduled"} {
  optim.mesh @world axes ["ep"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %n = optim.reduce norm %grad : tensor<?x?xf32> to tensor<?x1xf32>
    optim.yield %grad, %n : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R matrix patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [5, 3, 2] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @route
  optim.group @g rule @R parameters [@w] strategy #optim.local hops []
  comm.segment @s group @g all
  func.func @step() attributes {comm.arena_bytes = 192 : i64} {
    %steps = comm.steps
    %active = comm.active
    %p = comm.shards parameter @g : !comm.shards<@g, f32>
    %d = comm.shards gradient @g : !comm.shards<@g, f32>
    %v = comm.shards state @g "v" : !comm.shards<@g, f32>
    %n = comm.extent <@s, full, blocks>
    %x = comm.buffer offset 0 bytes 72 (%n) : memref<?x3x2xf32, #comm.place<@s, full, blocks>>
    %r = comm.buffer offset 128 bytes 36 (%n) : memref<?x3x1xf32, #comm.place<@s, rows, blocks>>
    comm.stage @s over shards active %active ins(%d : !comm.shards<@g, f32>) outs(%x : memref<?x3x2xf32, #comm.place<@s, full, blocks>>) {
    ^bb0(%a: f32):
      comm.yield %a : f32
    }
    optim.apply #optim.block_reduce<norm> %x outs(%r : memref<?x3x1xf32, #comm.place<@s, rows, blocks>>) : memref<?x3x2xf32, #comm.place<@s, full, blocks>>
    comm.copy active %active ins(%r : memref<?x3x1xf32, #comm.place<@s, rows, blocks>>) writes(%v : !comm.shards<@g, f32>)
    comm.stage @s over shards active %active ins(%x : memref<?x3x2xf32, #comm.place<@s, full, blocks>>) writes(%p : !comm.shards<@g, f32>) {
    ^bb0(%a: f32):
      comm.yield %a : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

// -----

// Gather: every rank computes both blocks; the way back is its own copy. The rule gives its state
// back unchanged.
// CHECK-LABEL: module @gather
module @gather attributes {stepc.level = "scheduled"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>, #optim.state<"w", f32, full, 0.0 : f64, true>] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %w: tensor<?x?xf32>,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
    %n = arith.subf %param, %o : tensor<?x?xf32>
    optim.yield %n, %m, %w : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @route rule @R matrix patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [3, 4] batch 0 type bf16 gradient f32 mesh @world placements [#optim.shard<1>] aliases [] route @route
  optim.parameter @b shape [3, 4] batch 0 type bf16 gradient f32 mesh @world placements [#optim.shard<1>] aliases [] route @route
  optim.group @g rule @R parameters [@a, @b] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 2>]>]
  comm.segment @s group @g all
  func.func @step() attributes {comm.arena_bytes = 736 : i64} {
    %steps = comm.steps
    %active = comm.active
    %world = comm.world
    %p = comm.shards parameter @g : !comm.shards<@g, bf16>
    %d = comm.shards gradient @g : !comm.shards<@g, f32>
    %w = comm.shards state @g "w" : !comm.shards<@g, f32>
    %n = comm.extent <@s, full, shards to blocks, sent>
    %s = comm.buffer offset 0 bytes 80 (%n) : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>
    comm.stage @s over shards active %active ins(%d : !comm.shards<@g, f32>) outs(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
    ^bb0(%a: f32):
      comm.yield %a : f32
    }
    %nr = comm.extent <@s, full, shards to blocks, received>
    %r = comm.buffer offset 576 bytes 160 (%nr) : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>
    %t = comm.start all_gather %world order 0 sends(%s : memref<?xf32, #comm.place<@s, full, shards to blocks, sent>>) receives(%r : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>)
    comm.wait %t
    %nb = comm.extent <@s, full, blocks>
    %x = comm.buffer offset 192 bytes 96 (%nb) : memref<?x3x4xf32, #comm.place<@s, full, blocks>>
    comm.copy ins(%r : memref<?xf32, #comm.place<@s, full, shards to blocks, received>>) outs(%x : memref<?x3x4xf32, #comm.place<@s, full, blocks>>)
    %e = comm.buffer offset 64 bytes 8 (%nb) : memref<?x1x1xf32, #comm.place<@s, one, blocks>>
    optim.apply #optim.block_reduce<norm, exponent = -24> %x outs(%e : memref<?x1x1xf32, #comm.place<@s, one, blocks>>) : memref<?x3x4xf32, #comm.place<@s, full, blocks>>
    comm.stage @s over blocks ins(%x, %e : memref<?x3x4xf32, #comm.place<@s, full, blocks>>, memref<?x1x1xf32, #comm.place<@s, one, blocks>>) outs(%x : memref<?x3x4xf32, #comm.place<@s, full, blocks>>) {
    ^bb0(%a: f32, %b: f32):
      %floor = arith.constant 0x27D6BF95 : f32
      %m = arith.maximumf %b, %floor : f32
      %q = arith.divf %a, %m : f32
      %scale = arith.constant 0x33800000 : f32
      %0 = arith.mulf %q, %scale : f32
      comm.yield %0 : f32
    }
    %y = comm.buffer offset 320 bytes 72 (%nb) : memref<?x3x3xf32, #comm.place<@s, gram, blocks>>
    optim.product %x, %x outs(%y : memref<?x3x3xf32, #comm.place<@s, gram, blocks>>) {alpha = -0.5, beta = 0.0, transpose_rhs, symmetric} : memref<?x3x4xf32, #comm.place<@s, full, blocks>>, memref<?x3x4xf32, #comm.place<@s, full, blocks>>
    %z = comm.buffer offset 448 bytes 96 (%nb) : memref<?x3x4xf32, #comm.place<@s, full, blocks>>
    optim.product %y, %x plus %x outs(%z : memref<?x3x4xf32, #comm.place<@s, full, blocks>>) {alpha = 1.0, beta = 1.5} : memref<?x3x3xf32, #comm.place<@s, gram, blocks>>, memref<?x3x4xf32, #comm.place<@s, full, blocks>>, memref<?x3x4xf32, #comm.place<@s, full, blocks>>
    comm.stage @s over shards active %active ins(%w, %z : !comm.shards<@g, f32>, memref<?x3x4xf32, #comm.place<@s, full, blocks>>) writes(%w, %p : !comm.shards<@g, f32>, !comm.shards<@g, bf16>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.subf %a, %o : f32
      %1 = arith.truncf %0 : f32 to bf16
      comm.yield %0, %1 : f32, bf16
    }
    comm.advance_steps %steps active %active
    return
  }
}
