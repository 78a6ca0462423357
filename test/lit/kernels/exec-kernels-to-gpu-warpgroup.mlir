// Products on tensor cores for sm_90a: shapes of one form share a kernel, which works off lists of tiles.
// RUN: stepc-opt %s --exec-kernels-to-gpu='chip=sm_90a features=+ptx86' > %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=CHOICE < %t
// RUN: stepc-opt %t --stepc-ptx | FileCheck %s --check-prefix=PTX

// Rows of no whole 16 bytes, few rows, results of f32 with an addend and other chips keep mma.sync.
// CHOICE-DAG: gpu.func @stepc_tiles_bf16_rt_symmetric(
// CHOICE-DAG: gpu.func @stepc_tiles_bf16_to_f32_rt_symmetric(
// CHOICE-DAG: gpu.func @stepc_product_264x264x128_bf16_bf16t_f32_symmetric_plus_f32_tensorcore(
// CHOICE-DAG: gpu.func @stepc_tiles_bf16(
// CHOICE-DAG: gpu.func @stepc_product_100x100x100_bf16_bf16_bf16_plus_bf16_tensorcore(
// CHOICE-DAG: gpu.func @stepc_product_64x512x64_bf16_bf16_bf16_tensorcore(
// CHOICE-NOT: gpu.func @stepc_product_512
// CHOICE-NOT: gpu.func @stepc_product_256
// RUN: stepc-opt %s --exec-kernels-to-gpu='chip=sm_90' | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: stepc_tiles
// PLAIN: gpu.func @stepc_product_512x512x256_bf16_bf16t_bf16_symmetric_tensorcore(

// CHECK: llvm.mlir.global external @stepc_dynamic_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: gpu.func @stepc_tiles_bf16_rt_symmetric(
// CHECK-SAME: %[[PROBLEMS:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>) kernel
// CHECK-SAME: exec.launch = #exec.launch<grid = lists, threads = 384, cluster = 2, dynamic = 230464>
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>

// Four stages, each with a barrier of bytes and one of the eight warps of both blocks that multiply.
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[WARPS:.*]] = arith.constant 16 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ONE]]
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[WARPS]]
// CHECK-COUNT-6: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init

// All threads wait for the kernels before, and let the next one begin.
// CHECK: nvvm.cluster.wait
// CHECK-NEXT: {{.*}}nvvm.read.ptx.sreg.cluster
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents

// One thread loads. The left operand is the block's own, and of the right one both blocks get each box.
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: nvvm.fence.proxy.acquire
// CHECK: nvvm.elect.sync
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {isCTAOnly = true}
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask =

// Two warpgroups multiply: of a stage four times 16 steps, from zero for the first stage. The addend has its stages behind them.
// CHECK: nvvm.setmaxregister increase 240
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>, D[<f32>, <zero>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <col>]
// CHECK-COUNT-3: nvvm.wgmma.mma_async {{.*}} D[<f32>, <one>]
// CHECK-NEXT: nvvm.wgmma.commit.group.sync.aligned

// Results of the tile before are stored between the first stages, as they are and turned.
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<row>
// CHECK: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta

// A half tile has products of 128 columns.
// CHECK: <m = 64, n = 128, k = 16>

// PTX: .target sm_90a
// PTX: .reqnctapercluster
// PTX: setmaxnreg.dec.sync.aligned.u32
// PTX: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
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
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 262144, block = tensor<512x256xbf16>> by <offset = 0, bytes = 262144, block = tensor<512x256xbf16>> to <offset = 1048576, bytes = 524288, block = tensor<512x512xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 131072, block = tensor<256x256xbf16>> by <offset = 0, bytes = 131072, block = tensor<256x256xbf16>> to <offset = 1048576, bytes = 131072, block = tensor<256x256xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 524288, block = tensor<512x512xbf16>> by <offset = 524288, bytes = 262144, block = tensor<512x256xbf16>> plus <offset = 524288, bytes = 262144, block = tensor<512x256xbf16>> to <offset = 1048576, bytes = 262144, block = tensor<512x256xbf16>> {alpha = 1.0 : f64, beta = 2.0 : f64}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 20000, block = tensor<100x100xbf16>> by <offset = 32768, bytes = 20000, block = tensor<100x100xbf16>> plus <offset = 65536, bytes = 20000, block = tensor<100x100xbf16>> to <offset = 1048576, bytes = 20000, block = tensor<100x100xbf16>> {alpha = 1.0 : f64, beta = 2.0 : f64}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 8192, block = tensor<64x64xbf16>> by <offset = 32768, bytes = 65536, block = tensor<64x512xbf16>> to <offset = 1048576, bytes = 65536, block = tensor<64x512xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 67584, block = tensor<264x128xbf16>> by <offset = 0, bytes = 67584, block = tensor<264x128xbf16>> to <offset = 1048576, bytes = 278784, block = tensor<264x264xf32>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 67584, block = tensor<264x128xbf16>> by <offset = 0, bytes = 67584, block = tensor<264x128xbf16>> plus <offset = 524288, bytes = 278784, block = tensor<264x264xf32>> to <offset = 1048576, bytes = 278784, block = tensor<264x264xf32>> {alpha = 1.0 : f64, beta = 1.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}
