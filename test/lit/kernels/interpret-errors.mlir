// What the interpreter does not know is an error at the operation.
// RUN: stepc-opt %s --split-input-file --exec-lower-to-target --kernels-expand-numerics --kernels-embed-plan -verify-diagnostics

#map = affine_map<(d0, d1) -> (d0, d1)>
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
    exec.dispatch_chunks @divide of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>]
    exec.advance_steps
  }
  func.func private @divide(%arg0: memref<?x?xf32, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : memref<?x?xf32, strided<[?, 1]>>) outs(%arg0 : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.bitcast %in : f32 to i32
      // expected-error @+1 {{'arith.divsi' op expected an operation that the target interpret knows, on i1, i16, i32, i64, f32 and f64}}
      %1 = arith.divsi %0, %0 : i32
      %2 = arith.bitcast %1 : i32 to f32
      linalg.yield %2 : f32
    }
    return
  }
}
