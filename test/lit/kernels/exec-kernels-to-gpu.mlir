// Kernels of level 5 as functions that the blocks of a GPU run. The kernels themselves stay, and so do the commands.
// RUN: stepc-opt %S/../Inputs/exec.mlir --exec-kernels-to-gpu | FileCheck %s
// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]

// A parameter per thread: of those that exist and that the step does not skip.
// CHECK-LABEL: gpu.func @scalars(
// CHECK-SAME: %[[ROWS:.*]]: !llvm.ptr<1>, %[[WORKSPACE:.*]]: !llvm.ptr<1>, %[[RECORDS:.*]]: !llvm.ptr<1>, %[[COUNT:.*]]: i64) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNT]] : i64
// CHECK-NEXT: scf.if %[[EXISTS]]
// CHECK: llvm.getelementptr %[[RECORDS]][
// CHECK: %[[FLAG:.*]] = llvm.getelementptr %{{.*}}[40]
// CHECK: llvm.load %[[FLAG]]
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} -> f64
// CHECK: llvm.store %{{.*}} : f32
// CHECK: gpu.return

// A chunk per block. Where bases, and of several rows the strides, are multiples of 16 bytes, a thread takes eight columns at
// once; the end of a row one by one, by the same operations.
// CHECK-LABEL: gpu.func @in(
// CHECK: %[[BLOCK:.*]] = gpu.block_id
// CHECK: llvm.ptrtoint
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[HEIGHT:.*]], %{{.*}} : i64
// CHECK: arith.select %[[ONE]]
// CHECK: %[[WHOLE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i64
// CHECK: math.ctlz
// CHECK: gpu.thread_id
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[HEIGHT]] step
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WHOLE]] step
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
// CHECK: arith.mulf %{{.*}} : vector<8xf32>
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: arith.mulf %{{.*}} : f32

// Blocks are computed whatever the step skips: no flag is read.
// CHECK-LABEL: gpu.func @blocks(
// CHECK-NOT: [40]
// CHECK: gpu.func @out(

// A row of a copy per block, one kernel for both copies of elements of two bytes. Neither side is shards: no flag is read.
// CHECK-LABEL: gpu.func @stepc_copy_2(
// CHECK-SAME: %[[ROWS:.*]]: !llvm.ptr<1>, %[[FROM:.*]]: !llvm.ptr<1>, %[[TO:.*]]: !llvm.ptr<1>,
// CHECK-NOT: [40]
// CHECK: %[[MOVED:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
// CHECK: llvm.store %[[MOVED]], %{{.*}} {alignment = 16 : i64} : vector<8xi16>
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK-NOT: gpu.func

// A reduction of a small block: lanes find the largest number, split exact squares below a power of two into integers, and add these
// up. More sweeps follow while a square has bits below. Sums of warps meet in the block's memory behind a barrier.
// CHECK-LABEL: gpu.func @stepc_reduce_norm_one_whole_8x4_bf16_m24(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %[[SOURCE:.*]]: !llvm.ptr<1>, %[[OUT:.*]]: !llvm.ptr<1>)
// CHECK-SAME: workgroup(%[[DIGITS:.*]] : memref<256xi64, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK: %[[SLOT:.*]] = gpu.block_id
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: %[[X:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: arith.maxui
// CHECK-COUNT-5: gpu.shuffle {{ *}}xor
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f64
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SQUARE]], %{{.*}} : f64
// CHECK: %[[MOVED:.*]] = arith.addf %{{.*}}, %{{.*}} : f64
// CHECK: %[[WHOLE:.*]] = arith.subf %[[MOVED]], %{{.*}} : f64
// CHECK: arith.subf %{{.*}}, %[[WHOLE]] : f64
// CHECK: scf.while
// CHECK: memref.extract_aligned_pointer_as_index %[[DIGITS]]
// CHECK: gpu.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i64
// CHECK: math.ctlz
// CHECK: math.sqrt
// CHECK: llvm.getelementptr %[[OUT]]

// A product of blocks: both operands reach the block's memory, whole accesses or elements by a test of the base; a slab is used between
// barriers, the result and its mirror are stored.
// CHECK-LABEL: gpu.func @stepc_product_8x8x8_bf16_bf16t_bf16_symmetric(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr<1>, %[[LEFT:[^:]*]]: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>, %[[PRODUCT:[^:]*]]: !llvm.ptr<1>, %[[FACTORS:[^:]*]]: !llvm.ptr<1>)
// CHECK-SAME: workgroup(%{{.*}} : memref<2304xf32, #gpu.address_space<workgroup>>
// CHECK: %[[BASE:.*]] = llvm.getelementptr %[[LEFT]]
// CHECK: llvm.ptrtoint %[[BASE]]
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xi16>
// CHECK: } else {
// CHECK: llvm.load volatile %{{.*}} : !llvm.ptr<1> -> i16
// CHECK: gpu.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: math.fma %{{.*}} : vector<2xf32>
// CHECK: arith.cmpi sle
// CHECK: llvm.store %{{.*}} : i16, !llvm.ptr<1>
// CHECK: llvm.store %{{.*}} : i16, !llvm.ptr<1>

// The step is counted where the counts stand, a parameter per thread, of those that it does not skip.
// CHECK-LABEL: gpu.func @stepc_advance_steps(%{{.*}}: !llvm.ptr<1>, %{{.*}}: i64)
// CHECK: %[[FLAG:.*]] = llvm.getelementptr %{{.*}}[40]
// CHECK: llvm.load %[[FLAG]]
// CHECK: scf.if
// CHECK: %[[TAKEN:.*]] = llvm.load %{{.*}} -> !llvm.ptr<1>
// CHECK: llvm.load %[[TAKEN]] {{.*}} -> i64
// CHECK: llvm.store %{{.*}}, %[[TAKEN]] {{.*}}i64

// What was there stays.
// CHECK: exec.program
// CHECK: exec.dispatch_parameters @scalars
// CHECK: func.func private @scalars

// Ranks find that they part: a block adds up a seal, of what the step reads, and puts it on messages byte by byte. Another kernel
// compares those that came; it tells the host last that there is a report.
// RUN: stepc-opt %S/../Inputs/exec.mlir --exec-kernels-to-gpu | FileCheck %s --check-prefix SEALS
// SEALS-LABEL: gpu.func @stepc_seal_messages(
// SEALS-SAME: workgroup(%{{.*}} : memref<1024xi64, #gpu.address_space<workgroup>>
// SEALS: %[[NEW:.*]] = arith.cmpi ne
// SEALS: scf.if %[[NEW]]
// SEALS: %[[RECORD:.*]] = llvm.getelementptr %arg4[
// SEALS: %[[TAKEN:.*]] = llvm.getelementptr %[[RECORD]][24]
// SEALS: %[[COUNT:.*]] = llvm.load %[[TAKEN]] {{.*}} -> !llvm.ptr<1>
// SEALS: llvm.load %[[COUNT]] {{.*}} -> i64
// SEALS: arith.muli %{{.*}} : i128
// SEALS: arith.subi %{{.*}} : i128
// SEALS: gpu.barrier
// SEALS: llvm.store %{{.*}} {alignment = 1 : i64} : i8
// SEALS-LABEL: gpu.func @stepc_check_seals(
// SEALS: arith.xori
// SEALS: gpu.barrier
// SEALS: llvm.store %{{.*}}, %{{.*}} atomic release

// Another order of accumulation is not a GPU's.
// RUN: sed 's/fused_chain/rounded_chain/' %S/../Inputs/exec.mlir | not stepc-opt --exec-kernels-to-gpu 2>&1 | FileCheck %s --check-prefix CHAIN
// CHAIN: error: 'exec.product' op expected a product of the accumulation fused_chain or tensorcore, which a GPU has, found rounded_chain

// The GPU's code has a name of its own.
// RUN: sed 's/@sa\b/@kernels/g' %S/../Inputs/exec.mlir | stepc-opt --exec-kernels-to-gpu | FileCheck %s --check-prefix NAME
// NAME: gpu.module @kernels_ [
