// A product of the accumulation tensorcore, of bf16 operands that lie in rows of whole accesses of 16 bytes.
// RUN: sed 's/fused_chain/tensorcore/' %S/../Inputs/exec.mlir | stepc-opt --exec-kernels-to-gpu > %t
// RUN: FileCheck %s < %t
// CHECK-LABEL: gpu.func @stepc_product_8x8x8_bf16_bf16t_bf16_symmetric_tensorcore(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %[[LEFT:.*]]: !llvm.ptr<1>, %[[RIGHT:.*]]: !llvm.ptr<1>, %[[OUT:.*]]: !llvm.ptr<1>, %[[FACTORS:.*]]: !llvm.ptr<1>)

// Both operands have three stages of 32 lines and 64 steps in the block's memory, in their own type.
// CHECK-SAME: workgroup(%[[LEFTS:.*]] : memref<6144xi16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[RIGHTS:.*]] : memref<6144xi16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i16
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 16 : i32

// alpha is the first half of what stands in the place of an address behind the operands.
// CHECK: %[[WORD:.*]] = llvm.ptrtoint %[[FACTORS]]
// CHECK: %[[LOW:.*]] = arith.trunci %[[WORD]] : i64 to i32
// CHECK: %[[ALPHA:.*]] = arith.bitcast %[[LOW]] : i32 to f32

// Where the base is a multiple of 16 bytes a copy runs by itself, of no bytes past the ends: then it writes zeros. Elsewhere the
// thread brings element after element to the same place.
// CHECK: %[[BASE:.*]] = llvm.getelementptr %[[LEFT]]
// CHECK: llvm.ptrtoint %[[BASE]]
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK: llvm.getelementptr %[[RIGHT]]
// CHECK: scf.if %[[ALIGNED]]
// CHECK: %[[EXISTS:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: %[[COUNT:.*]] = arith.select %[[EXISTS]], %[[BYTES]], %[[ZERO]] : i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg, %[[COUNT]]
// CHECK: else
// CHECK-COUNT-8: scf.yield %[[NONE]] : i16
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>, !llvm.ptr<3>

// One slab and one that is not there are under way before the first is used; one group may be, then.
// CHECK-COUNT-2: nvvm.cp.async.commit.group
// CHECK: %[[SUMS:.*]]:6 = scf.for
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.cp.async.commit.group

// Four times 16 steps, each added to what the last one made. The right operand is stored as the instruction takes it.
// CHECK: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<row>, num = 2
// CHECK: %[[PART:.*]] = nvvm.mma.sync A[{{.*}} B[{{.*}} C[{{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK: %[[FIRST:.*]] = llvm.extractvalue %[[PART]][0]
// CHECK: nvvm.mma.sync A[{{.*}} C[%[[FIRST]], {{.*}}
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.yield

// Of the diagonal's tile each element that is there, twice, alpha times the sum.
// CHECK: arith.cmpi sle
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUMS]]#2, %[[ALPHA]] : f32
// CHECK: arith.bitcast %[[SCALED]] : f32 to i32
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
// CHECK: gpu.return

// An operand that is stored the other way is turned by the instruction that loads it.
// RUN: FileCheck %s --check-prefix TURNED < %t
// TURNED-LABEL: gpu.func @stepc_product_4x4x8_bf16t_bf16_bf16_symmetric_tensorcore(
// TURNED: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<col>, num = 4
// TURNED: nvvm.ldmatrix %{{.*}} layout = #nvvm.mma_layout<col>, num = 2

// Rows of four elements are no whole accesses: nothing is copied by itself.
// RUN: FileCheck %s --check-prefix ODD < %t
// ODD-LABEL: gpu.func @stepc_product_8x4x4_bf16_bf16_bf16_plus_bf16_tensorcore(
// ODD-NOT: nvvm.cp.async.shared
// ODD: nvvm.mma.sync
// ODD: gpu.return

// Tiles of 128 have slabs of 32 steps: as many bytes of the block's memory, and 4 × 4 products of a warp for each 16 steps. Below the
// diagonal lanes of neighbouring rows exchange what the mirrored half takes.
// RUN: sed 's/fused_chain/tensorcore/; s/4x4xbf16/512x512xbf16/g; s/8x4xbf16/520x512xbf16/g' %S/../Inputs/exec.mlir | stepc-opt --exec-kernels-to-gpu | FileCheck %s --check-prefix LARGE
// LARGE-LABEL: gpu.func @stepc_product_512x512x520_bf16t_bf16_bf16_symmetric_tensorcore(
// LARGE-SAME: workgroup(%{{.*}} : memref<12288xi16, #gpu.address_space<workgroup>> {{.*}}, %{{.*}} : memref<12288xi16, #gpu.address_space<workgroup>>
// LARGE-COUNT-32: nvvm.mma.sync
// LARGE-NOT: nvvm.mma.sync
// LARGE: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xi16>, !llvm.ptr<1>
// LARGE-COUNT-32: gpu.shuffle {{ *}}xor
// LARGE: gpu.return
