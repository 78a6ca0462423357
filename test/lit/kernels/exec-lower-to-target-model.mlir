// What adds up a rank's parts of a number of the model, and scalars that read numbers (Inputs/model.mlir), for each target.
// RUN: sed 's/stepc.level = "exec"/stepc.chip = "x86-64-v3;+avx2,+fma", &/' %S/../Inputs/model.mlir | stepc-opt --exec-lower-to-target | FileCheck %s
// RUN: sed 's/stepc.level = "exec"/stepc.chip = "interpret on x86-64-v3;+avx2,+fma", &/' %S/../Inputs/model.mlir | stepc-opt --exec-lower-to-target | FileCheck %s --check-prefix INTERPRET
// RUN: sed 's/stepc.level = "exec"/stepc.chip = "emulated:sm_80 on x86-64-v3;+avx2,+fma", &/' %S/../Inputs/model.mlir | stepc-opt --exec-lower-to-target | FileCheck %s --check-prefix EMULATED

// A CPU has one kernel for each reduction, which calls the runtime. The words that list the parts, where they and their sum are, and
// the records, which say what the step skips, are arguments.
// CHECK: llvm.func hidden @stepc_rt_collect_sums(i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK: exec.collect mean of {{.*}} {kernel = @stepc_collect_mean}
// CHECK: exec.collect rms of {{.*}} {kernel = @stepc_collect_rms}
// CHECK-LABEL: llvm.func internal @stepc_collect_mean(
// CHECK-SAME: %[[LIST:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64)
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK: %[[MEAN:.*]] = arith.constant 1 : i64
// CHECK: llvm.getelementptr %[[LIST]][0]
// CHECK: %[[WORDS:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[LIST]][1]
// CHECK: %[[FROM:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[LIST]][3]
// CHECK: %[[RECORDS:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[LIST]][2]
// CHECK: %[[TO:.*]] = llvm.load
// CHECK: llvm.call @stepc_rt_collect_sums(%[[MEAN]], %[[WORDS]], %[[FROM]], %[[RECORDS]], %[[TO]])
// CHECK-LABEL: llvm.func internal @stepc_collect_rms(
// CHECK: %[[RMS:.*]] = arith.constant 2 : i64
// CHECK: llvm.call @stepc_rt_collect_sums(%[[RMS]],

// A row of a kernel that reads two operands of numbers has four words: the record, the scalars, and a word for each. A number is
// an f32, widened.
// CHECK-LABEL: llvm.func internal @Sgd_scalars(
// CHECK-SAME: %[[LIST:.*]]: !llvm.ptr,
// CHECK: llvm.getelementptr %[[LIST]][0]
// CHECK-NEXT: %[[ROWS:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[LIST]][1]
// CHECK-NEXT: %[[WORKSPACE:.*]] = llvm.load
// CHECK: scf.for %[[ITEM:.*]] = %{{.*}} to
// CHECK: vector.from_elements
// CHECK: scf.for %[[ITEM:.*]] = %{{.*}} to
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK-NEXT: %[[WORD:.*]] = arith.muli %[[ITEM]], %[[FOUR]]
// CHECK-NEXT: %[[ROW:.*]] = llvm.getelementptr %[[ROWS]][%[[WORD]]]
// CHECK: llvm.getelementptr %[[ROW]][1]
// CHECK: llvm.getelementptr %[[ROW]][3]
// CHECK-NEXT: %[[AT:.*]] = llvm.load
// CHECK-NEXT: %[[LINE:.*]] = llvm.getelementptr %[[WORKSPACE]][%[[AT]]]
// CHECK-NEXT: %[[NUMBER:.*]] = llvm.getelementptr %[[LINE]][0]
// CHECK-NEXT: %[[VALUE:.*]] = llvm.load %[[NUMBER]] {{.*}} -> f32
// CHECK-NEXT: arith.extf %[[VALUE]] : f32 to f64
// A third operand is a fifth word.
// CHECK-LABEL: llvm.func internal @Sgd_scalars_1(
// CHECK: arith.constant 5 : i64

// The interpreter has a record for each, and a function of one row, which takes numbers behind the four scalars of every rule.
// INTERPRET: exec.collect mean of {{.*}} {kernel = @stepc_collect_mean}
// INTERPRET: llvm.func internal @stepc_collect_mean({{.*}}) attributes {{{.*}}stepc.record =
// INTERPRET: llvm.func internal @stepc_collect_rms({{.*}}) attributes {{{.*}}stepc.record =
// INTERPRET: llvm.func internal @Sgd_scalars(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[NUMBER:.*]]: f64, %[[ROW:.*]]: !llvm.ptr) attributes {{{.*}}stepc.record =
// INTERPRET-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[NUMBER]] : f64 to f32
// INTERPRET-NEXT: llvm.store %[[ROUNDED]], %[[ROW]] : f32, !llvm.ptr

// A GPU's kernel on this machine.
// EMULATED: exec.collect mean of {{.*}} {kernel = @stepc_collect_mean}
// EMULATED: llvm.func internal @stepc_collect_mean({{.*}}) attributes {{{.*}}exec.launch = #exec.launch<threads = 256
// EMULATED: %[[THREAD:.*]] = llvm.mlir.addressof @stepc_collect_mean_thread
// EMULATED: llvm.call @stepc_rt_emulate(%[[THREAD]],
