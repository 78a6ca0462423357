// How a GPU starts a kernel stands on the kernel until the plan has it.
// RUN: stepc-opt %s --kernels-embed-plan | FileCheck %s
// CHECK: llvm.mlir.global internal constant @stepc_program_plan("STEPCPLN
// CHECK-NOT: exec.launch

// The chip has to have what the kernel needs.
// RUN: sed 's/cuda:sm_90a/cuda:sm_80/' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=CLUSTER
// CLUSTER: error: 'llvm.func' op on sm_80: expected no clusters, found clusters of 2 blocks
// RUN: sed 's/cuda:sm_90a/cuda:sm_86/; s/cluster = 2, //' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: 'llvm.func' op on sm_86: expected at most 101376 bytes of shared memory for a block, found 205824
// RUN: sed 's/cuda:sm_90a/cuda:sm_100/; s/cluster = 2/cluster = 16/' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: 'llvm.func' op on sm_100: expected clusters of at most 8 blocks, found 16
// RUN: sed 's/cuda:sm_90a/cuda:sm_90a,sm_80/' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: expected one GPU, found 'sm_90a' and 'sm_80'
// RUN: sed 's/ attributes {exec.launch = .*}$//' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'llvm.func' op expected exec.launch on a kernel for GPUs, found none

// RUN: sed 's/threads = 384/threads = 1025/' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=THREADS
// THREADS: error: expected 1 to 1024 threads, found 1025
// RUN: sed 's/grid = items/grid = rows/' %s | not stepc-opt --kernels-embed-plan 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: error: expected items, threads, resident or lists, found rows
module @net attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  llvm.func @k(!llvm.ptr, i64, i64) attributes {exec.launch = #exec.launch<grid = items, threads = 384, cluster = 2, static = 1024, dynamic = 204800>}
  exec.program arena 64 {
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<parameter>]
    exec.advance_steps
  }
}
