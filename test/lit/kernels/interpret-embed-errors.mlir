// A kernel that the interpreter cannot carry out is an error where the plan is embedded.
// RUN: stepc-opt %s --split-input-file --kernels-embed-plan -verify-diagnostics

// A kernel that stands in the text already.
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
    exec.advance_steps {kernel = @advance}
  }
  // expected-error @+1 {{'llvm.func' op expected a kernel with the attribute stepc.record}}
  llvm.func internal @advance(%arguments: !llvm.ptr, %from: i64, %to: i64) {
    llvm.return
  }
}
// -----

// An attribute that was written by hand.
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
    exec.advance_steps {kernel = @advance}
  }
  // expected-error @+1 {{'llvm.func' op expected the record of a kernel in stepc.record: expected kernels for the interpreter, found other bytes}}
  llvm.func internal @advance(%arguments: !llvm.ptr, %from: i64, %to: i64) attributes {stepc.record = "text"} {
    llvm.return
  }
}
