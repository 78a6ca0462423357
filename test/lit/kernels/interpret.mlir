// Kernels for the interpreter: functions of one element, which become records of the program's image.
// RUN: stepc-opt %s --exec-lower-to-target --kernels-expand-numerics | FileCheck %s
// RUN: stepc-opt %s --exec-lower-to-target --kernels-expand-numerics --kernels-embed-plan --kernels-verify-level=level=llvm | FileCheck %s --check-prefix=IMAGE

#map = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>
module attributes {stepc.chip = "interpret on x86-64-v3;+avx2,+fma", stepc.level = "exec"} {
  optim.mesh @m axes ["x"] sizes [1] ranks [0]
  optim.rule @R hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [5.000000e-01] missing_grad error
  optim.parameter @w shape [8] batch 0 type bf16 gradient f32 mesh @m placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 64 {
    exec.dispatch_parameters @scalars of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.dispatch_chunks @descend of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>]
    exec.advance_steps
  }

  // Inputs of f64 by value, and a pointer for what is stored.
  // CHECK: llvm.func internal @scalars(%[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %[[ROW:.*]]: !llvm.ptr) attributes {{{.*}}stepc.record =
  // CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[LR]] : f64 to f32
  // CHECK-NEXT: llvm.store %[[ROUNDED]], %[[ROW]] : f32, !llvm.ptr
  func.func private @scalars(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64) -> f32 {
    %0 = arith.truncf %lr : f64 to f32
    return %0 : f32
  }

  // What is read, the column of scalars, and a pointer. Conversions are those of the code for a CPU.
  // CHECK: llvm.func internal @descend(%[[PARAM:.*]]: bf16, %[[GRAD:.*]]: f32, %[[SCALAR:.*]]: f32, %[[OUT:.*]]: !llvm.ptr) attributes {{{.*}}stepc.record =
  // CHECK-NOT: scf.for
  // CHECK: arith.bitcast %[[PARAM]] : bf16 to i16
  // CHECK: arith.mulf %[[SCALAR]], %[[GRAD]] : f32
  // CHECK: llvm.store %{{.*}}, %[[OUT]] : bf16, !llvm.ptr
  func.func private @descend(%arg0: memref<1xf32>, %arg1: memref<?x?xbf16, strided<[?, 1]>>, %arg2: memref<?x?xf32, strided<[?, 1]>>) {
    %c0 = arith.constant 0 : index
    %0 = memref.load %arg0[%c0] : memref<1xf32>
    linalg.generic {indexing_maps = [#map, #map, #one, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %arg2, %0 : memref<?x?xbf16, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>>, f32) outs(%arg1 : memref<?x?xbf16, strided<[?, 1]>>) {
    ^bb0(%in: bf16, %in_0: f32, %in_1: f32, %out: bf16):
      %1 = arith.extf %in : bf16 to f32
      %2 = arith.mulf %in_1, %in_0 : f32
      %3 = arith.subf %1, %2 : f32
      %4 = arith.truncf %3 : f32 to bf16
      linalg.yield %4 : bf16
    }
    return
  }
}

// No function is left. The program leads to the list of images, which leads to the records.
// IMAGE-NOT: llvm.func
// IMAGE: llvm.mlir.global internal constant @stepc_program_target("interpret\00")
// IMAGE: llvm.mlir.global external hidden constant @stepc_device_interpret()
// IMAGE: llvm.mlir.global external hidden constant @stepc_program_interpret()
// IMAGE: llvm.mlir.zero : !llvm.ptr
// IMAGE: llvm.mlir.addressof @stepc_program_images
// IMAGE: llvm.mlir.addressof @stepc_device_interpret
// IMAGE: llvm.mlir.global internal constant @stepc_program_records("{{.*}}scalars{{.*}}descend
// IMAGE: llvm.mlir.global internal constant @stepc_program_chip("interpret\00")
// IMAGE: llvm.mlir.global internal constant @stepc_program_images() {{.*}}!llvm.array<2 x struct<(ptr, i64, i64, i64, ptr, i64, i64, i64)>>
// IMAGE: llvm.mlir.addressof @stepc_program_chip
// IMAGE: llvm.mlir.constant(3 : i64)
// IMAGE: llvm.mlir.addressof @stepc_program_records
// IMAGE-NOT: llvm.func
