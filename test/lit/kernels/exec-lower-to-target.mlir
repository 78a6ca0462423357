// Products and functions of blocks become what the target's kernels do; equal ones are shared, and all are given the same arguments.
// RUN: stepc-opt %s --split-input-file --exec-lower-to-target | FileCheck %s

// CHECK: module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"}
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  // CHECK: exec.program arena 8192 scratch 5120 {
  exec.program arena 8192 scratch 5120 {
    // CHECK-NEXT: exec.product fused_chain {{.*}} scratch 5120 kernels [#exec.kernel<@[[PACK:[a-z0-9_]*]], items = {{[0-9]+}}>, #exec.kernel<@[[TILES:[a-z0-9_]*]], items = {{[0-9]+}}>]
    exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 0, bytes = 2048, block = tensor<16x32xf32>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>> scratch 5120
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    // CHECK-NEXT: exec.product fused_chain {{.*}} kernels [#exec.kernel<@[[PACK]], items = {{[0-9]+}}>, #exec.kernel<@[[TILES]], items = {{[0-9]+}}>]
    exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 3072, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 3072, bytes = 2048, block = tensor<16x32xf32>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>> scratch 5120
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    // CHECK-NEXT: exec.apply #optim.block_reduce<norm> {{.*}} kernels [#exec.kernel<@stepc_reduce_norm_one_whole_16x32_f32, items = 1>]
    exec.apply #optim.block_reduce<norm> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      to <offset = 2048, bytes = 4, block = tensor<1x1xf32>>
    exec.advance_steps
  }
}

// A kernel calls the function of all shapes with its own. One shape calls it: LLVM may put it in the kernel.
// CHECK: llvm.func internal @[[ALL_PACKS:stepc_product_pack_256f_f32_f32t]](%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64) attributes {dso_local} {
// CHECK: llvm.call @[[SQUARE:stepc_product_square_256f_f32]](
// A transpose is one function of all shapes, which LLVM may not copy.
// CHECK: llvm.func internal @[[SQUARE]]({{.*}}no_inline
// CHECK: llvm.func internal @[[PACK]](%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: %[[M:.*]] = arith.constant 16 : i64
// CHECK-DAG: %[[K:.*]] = arith.constant 32 : i64
// CHECK: llvm.call @[[ALL_PACKS]](%{{.*}}, %{{.*}}, %{{.*}}, %[[M]], %{{.*}}, %[[K]])
// CHECK: math.fma
// CHECK: llvm.func internal @stepc_product_mirror_256f_f32({{.*}}no_inline
// CHECK: llvm.func internal @[[TILES]](
// A reduction is the runtime's: its sums do not depend on the chip.
// CHECK: llvm.func internal @stepc_reduce_norm_one_whole_16x32_f32(%[[LIST:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64)
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 16 : i64
// CHECK-DAG: %[[COLS:.*]] = arith.constant 32 : i64
// CHECK: llvm.call @stepc_rt_reduce(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS]], %[[COLS]], %{{.*}}, %[[LIST]], %[[FIRST]], %[[LAST]])

// -----

// Products of two shapes have one function that computes, which LLVM does not copy into their kernels.
// CHECK: module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"}
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [16, 48] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  optim.group @h rule @R parameters [@b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all
  comm.segment @t group @h all

  exec.program arena 8192 scratch 7680 {
    exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 0, bytes = 2048, block = tensor<16x32xf32>> to <offset = 6144, bytes = 1024, block = tensor<16x16xf32>> scratch 5120
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.product fused_chain of <kind = block_chunks, from = <@t, full, blocks>> <offset = 2048, bytes = 3072, block = tensor<16x48xf32>>
      by <offset = 2048, bytes = 3072, block = tensor<16x48xf32>> to <offset = 6144, bytes = 1024, block = tensor<16x16xf32>> scratch 7680
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.advance_steps
  }
}

// CHECK: llvm.func internal @stepc_product_pack_256f_f32_f32t(
// CHECK: llvm.func internal @stepc_product_pack_256f_16x16x32_f32_f32t(
// CHECK-NEXT: arith.constant
// CHECK: llvm.call @stepc_product_pack_256f_f32_f32t({{.*}}{always_inline}
// CHECK: llvm.func internal @stepc_product_tiles_256f_f32_symmetric(
// CHECK: llvm.func internal @stepc_product_pack_256f_16x16x48_f32_f32t(
// CHECK: llvm.call @stepc_product_pack_256f_f32_f32t({{.*}}{always_inline}
// CHECK: llvm.func internal @stepc_product_256f_16x16x48_f32_symmetric(
// CHECK: llvm.call @stepc_product_tiles_256f_f32_symmetric({{.*}}{always_inline}

// -----

// A chip without fused multiply-adds rounds each product before it is added.
// CHECK: module attributes {stepc.chip = "x86-64;"}
module attributes {stepc.chip = "x86-64;"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  // CHECK: exec.program arena 8192 scratch 5120 {
  exec.program arena 8192 scratch 5120 {
    // CHECK-NEXT: exec.product rounded_chain {{.*}} kernels [#exec.kernel<@[[ROUNDED:stepc_product_pack_[a-z0-9_]*]], items
    exec.product rounded_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 0, bytes = 2048, block = tensor<16x32xf32>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>> scratch 5120
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.advance_steps
  }
}

// CHECK: llvm.func internal @[[ROUNDED]](

// -----

// A GPU's kernels on this machine: threads that wait for each other are functions that the runtime calls, told where in the text they
// wait; pointers are all of one kind.
// CHECK: module attributes {stepc.chip = "emulated:sm_80 on x86-64-v3;+avx2,+fma"}
module attributes {stepc.chip = "emulated:sm_80 on x86-64-v3;+avx2,+fma"} {
  // CHECK: llvm.mlir.global internal constant @stepc_reduce_max_one_whole_16x32_f32_name("stepc_reduce_max_one_whole_16x32_f32\00")
  // CHECK: llvm.func hidden @stepc_rt_emulated_shuffle(!llvm.ptr, i32, i32, i32) -> i32
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  exec.program arena 8192 scratch 5120 {
    // CHECK: exec.apply #optim.block_reduce<max> {{.*}} kernels [#exec.kernel<@stepc_reduce_max_one_whole_16x32_f32, items = 1>]
    exec.apply #optim.block_reduce<max> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      to <offset = 2048, bytes = 4, block = tensor<1x1xf32>>
    // CHECK: exec.apply #optim.block_reduce<sum> {{.*}} kernels [#exec.kernel<@stepc_reduce_sum_columns_whole_16x70_f32, items = 3>]
    exec.apply #optim.block_reduce<sum> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 4480, block = tensor<16x70xf32>>
      to <offset = 4480, bytes = 280, block = tensor<1x70xf32>>
    // A GPU counts steps where they stand.
    // CHECK: exec.advance_steps {kernel = @stepc_advance_steps}
    exec.advance_steps
  }
}

// CHECK: llvm.func internal @stepc_reduce_max_one_whole_16x32_f32(%[[LIST:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64)
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 256 : i64
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 1024 : i64
// CHECK-DAG: %[[THREAD:.*]] = llvm.mlir.addressof @stepc_reduce_max_one_whole_16x32_f32_thread
// CHECK: llvm.call @stepc_rt_emulate(%[[THREAD]], %[[LIST]], %[[FIRST]], %[[LAST]], %[[THREADS]], %[[BYTES]], %{{.*}})
// CHECK: llvm.func internal @stepc_reduce_max_one_whole_16x32_f32_thread(%[[BLOCK:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK-NOT: ptr<
// CHECK: llvm.call @stepc_rt_emulated_barrier(%[[BLOCK]], %{{.*}})
// CHECK: llvm.call @stepc_rt_emulated_shuffle(%[[BLOCK]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: llvm.func internal @stepc_reduce_sum_columns_whole_16x70_f32(
// CHECK: llvm.func internal @stepc_advance_steps(

// -----

// Where races are looked for, each load and store asks first where to do it.
// CHECK: module attributes {stepc.chip = "emulated:sm_80,races on x86-64-v3;+avx2,+fma"}
module attributes {stepc.chip = "emulated:sm_80,races on x86-64-v3;+avx2,+fma"} {
  // CHECK: llvm.func hidden @stepc_rt_emulated_access(!llvm.ptr, i64, i32, i64, i64) -> !llvm.ptr
  exec.program arena 64 {
    // CHECK: exec.advance_steps {kernel = @stepc_advance_steps}
    exec.advance_steps
  }
}

// CHECK: llvm.func internal @stepc_advance_steps(
// CHECK: %[[FROM:.*]] = llvm.call @stepc_rt_emulated_access(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT: llvm.load %[[FROM]] {{.*}} -> i64
// CHECK: %[[WRITES:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[TO:.*]] = llvm.call @stepc_rt_emulated_access(%{{.*}}, %{{.*}}, %[[WRITES]], %{{.*}}, %{{.*}})
// CHECK-NEXT: llvm.store %{{.*}}, %[[TO]]
