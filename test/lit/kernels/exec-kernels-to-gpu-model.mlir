// What adds up a rank's parts of a number of the model, and scalars that read numbers (Inputs/model.mlir), as a GPU's blocks run them.
// RUN: stepc-opt %S/../Inputs/model.mlir --exec-kernels-to-gpu | FileCheck %s
// RUN: stepc-opt %S/../Inputs/model_skips.mlir --exec-kernels-to-gpu | FileCheck %s --check-prefix SKIPS

// A thread's row has four words. Its fourth leads to a number.
// CHECK-LABEL: gpu.func @Sgd_scalars(
// CHECK-SAME: %[[ROWS:.*]]: !llvm.ptr<1>, %[[WORKSPACE:.*]]: !llvm.ptr<1>, %[[RECORDS:.*]]: !llvm.ptr<1>, %[[COUNT:.*]]: i64) kernel
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK: %[[WORD:.*]] = arith.muli %{{.*}}, %[[FOUR]]
// CHECK-NEXT: llvm.getelementptr %[[ROWS]][%[[WORD]]]
// CHECK: %[[FLAG:.*]] = llvm.getelementptr %{{.*}}[40]
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = llvm.getelementptr %[[ROWS]][
// CHECK: llvm.getelementptr %[[ROW]][1]
// CHECK: %[[TO:.*]] = llvm.getelementptr %[[WORKSPACE]][
// CHECK: llvm.getelementptr %[[ROW]][3]
// CHECK: %[[LINE:.*]] = llvm.getelementptr %[[WORKSPACE]][
// CHECK-NEXT: %[[NUMBER:.*]] = llvm.load %[[LINE]] {{.*}} -> f32
// CHECK-NEXT: llvm.store %[[NUMBER]], %[[TO]] : f32

// One block adds up all parts. Warps take turns; a part of what the step skips is not taken. Sums of warps meet behind a barrier,
// and the first warp stores the sum.
// CHECK-LABEL: gpu.func @stepc_collect_mean(
// CHECK-SAME: %[[WORDS:.*]]: !llvm.ptr<1>, %[[FROM:.*]]: !llvm.ptr<1>, %[[TO:.*]]: !llvm.ptr<1>, %[[RECORDS:.*]]: !llvm.ptr<1>) workgroup(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[WARP:.*]] = arith.divui
// CHECK-NEXT: %[[COUNT:.*]] = llvm.load %[[WORDS]] {{.*}} -> i64
// CHECK-NEXT: %{{.*}} = scf.for %[[PART:.*]] = %[[WARP]] to %[[COUNT]] step
// CHECK: llvm.getelementptr %[[WORDS]][
// CHECK: llvm.getelementptr %[[RECORDS]][
// CHECK: %[[FLAG:.*]] = llvm.getelementptr %{{.*}}[40]
// CHECK-NEXT: %[[ACTIVE:.*]] = llvm.load %[[FLAG]]
// CHECK: llvm.getelementptr %[[FROM]][
// CHECK: %[[TAKEN:.*]] = arith.cmpi ne, %[[ACTIVE]]
// CHECK-NEXT: arith.select %[[TAKEN]]
// CHECK: scf.yield
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: llvm.getelementptr %[[TO]][
// CHECK: llvm.store
// CHECK: gpu.return
// Each reduction has a kernel.
// CHECK: gpu.func @stepc_collect_rms(

// A maximum is one word.
// RUN: sed -e 's/reduces \(mean\|rms\)/reduces max/;s/collect \(mean\|rms\)/collect max/;s/reduction<\(mean\|rms\)>/reduction<max>/' -e 's/bytes = \(40\|80\)>/bytes = 4>/g' %S/../Inputs/model.mlir | stepc-opt --exec-kernels-to-gpu | FileCheck %s --check-prefix MAX
// MAX: gpu.func @stepc_collect_max(
// MAX: scf.for
// MAX: arith.maxsi
// MAX: gpu.barrier
// MAX-NOT: gpu.func @stepc_collect_

// A thread takes a record. If the number is not 0, it marks the record. NaN is no 0.
// SKIPS-LABEL: gpu.func @stepc_skip(
// SKIPS-SAME: %[[RECORDS:.*]]: !llvm.ptr<1>, %[[VALUE:.*]]: !llvm.ptr<1>, %[[COUNT:.*]]: i64) kernel
// SKIPS: %[[ITEM:.*]] = arith.addi
// SKIPS-NEXT: arith.cmpi slt, %[[ITEM]], %[[COUNT]] : i64
// SKIPS-NEXT: scf.if
// SKIPS-NEXT: %[[NUMBER:.*]] = llvm.load %[[VALUE]] {{.*}} -> f32
// SKIPS: %[[SKIPS:.*]] = arith.cmpf une, %[[NUMBER]], %{{.*}} : f32
// SKIPS-NEXT: scf.if %[[SKIPS]]
// SKIPS: %[[FLAG:.*]] = llvm.getelementptr %{{.*}}[40]
// SKIPS-NEXT: llvm.store %{{.*}}, %[[FLAG]]

// What counts the step makes all records active again, for the next replay of a graph.
// SKIPS-LABEL: gpu.func @stepc_advance_steps(
// SKIPS-SAME: %[[RECORDS:.*]]: !llvm.ptr<1>, %[[COUNT:.*]]: i64) kernel
// SKIPS: %[[RECORD:.*]] = llvm.getelementptr %[[RECORDS]][
// SKIPS: scf.if
// SKIPS: llvm.getelementptr %[[RECORD]][48]
// SKIPS: scf.if
// SKIPS: llvm.store %{{.*}}, %{{.*}} : i64
// SKIPS: %[[FLAG:.*]] = llvm.getelementptr %[[RECORD]][40]
// SKIPS-NEXT: llvm.store %{{.*}}, %[[FLAG]]
