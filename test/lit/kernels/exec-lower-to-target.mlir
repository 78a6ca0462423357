// Products and reductions become what the target's kernels do; equal ones are shared, and all are given the same arguments.
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
    // CHECK-NEXT: exec.reduce norm {{.*}} kernels [#exec.kernel<@stepc_reduce_norm_one_16x32_f32, items = 1>]
    exec.reduce norm of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      to <offset = 2048, bytes = 4, block = tensor<1x1xf32>>
    exec.advance_steps
  }
}

// CHECK: llvm.func internal @[[PACK]](
// CHECK: llvm.func internal @[[TILES]](
// CHECK: math.fma
// CHECK: llvm.func internal @stepc_reduce_norm_one_16x32_f32(

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
