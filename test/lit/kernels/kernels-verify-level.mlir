// RUN: stepc-opt %s --kernels-verify-level | FileCheck %s

// Symbols of the plan stay, with what a rule has in it; the level is written on the module.
// CHECK: module attributes {stepc.level = "exec"}
module attributes {stepc.level = "scheduled"} {
  optim.rule @R hyperparameters ["lr"] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %s = optim.splat %lr : tensor<?x?xf32>
    optim.yield %s : tensor<?x?xf32>
  }
  exec.program arena 0 {
    exec.advance_steps
  }
}
