// Products of one kernel that do not depend on each other begin together. A kernel of warpgroups serves all shapes.
// RUN: stepc-opt %s --exec-join-products | FileCheck %s
// The second product reads what the first one writes. Those behind it join the first, and move to it.
// CHECK: exec.program
// CHECK-NEXT: exec.product {{.*}} to <offset = 1048576, bytes = 131072, {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 1310720, {{.*}} joins
// CHECK-NEXT: exec.product {{.*}} to <offset = 1572864, {{.*}} joins
// CHECK-NEXT: exec.product {{.*}} by {{.*}} to <offset = 2097152, bytes = 262144, {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64}
// Rows of 100 elements have another kernel.
// CHECK-NEXT: exec.product {{.*}} to <offset = 1835008, {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs}
// CHECK-NEXT: exec.advance_steps

// Kernels of mma.sync are of one shape each, and other commands keep their places.
// RUN: sed 's/cuda:sm_90a/cuda:sm_90/' %s | stepc-opt --exec-join-products | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/cuda:sm_90a/cuda:sm_90a,ptx/' %s | stepc-opt --exec-join-products | FileCheck %s --check-prefix=ALONE
// ALONE-NOT: joins
module @net attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 4194304 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 262144, block = tensor<256x512xbf16>> by <offset = 0, bytes = 262144, block = tensor<256x512xbf16>> to <offset = 1048576, bytes = 131072, block = tensor<256x256xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 1048576, bytes = 131072, block = tensor<256x256xbf16>> by <offset = 0, bytes = 262144, block = tensor<256x512xbf16>> to <offset = 2097152, bytes = 262144, block = tensor<256x512xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 262144, bytes = 131072, block = tensor<256x256xbf16>> by <offset = 262144, bytes = 131072, block = tensor<256x256xbf16>> to <offset = 1310720, bytes = 131072, block = tensor<256x256xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 1572864, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 786432, bytes = 20000, block = tensor<100x100xbf16>> by <offset = 786432, bytes = 20000, block = tensor<100x100xbf16>> to <offset = 1835008, bytes = 20000, block = tensor<100x100xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}
