// Rounding by chance: what is made of it for a parameter of bf16 and one of f32, and faults planted in both.
// DEFINE: %{compile} = stepc compile %S/../Inputs/stochastic.optim -m %S/../Inputs/stochastic.json -o -
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: %{compile} --emit exec > %t.mlir
// RUN: stepc-opt --exec-verify-program %t.mlir -o /dev/null
// RUN: FileCheck %s < %t.mlir

// CHECK: optim.rule @Round hyperparameters ["lr", "seed"]
// CHECK: optim.rule @Round.folded {{.*}} written @Round {
// CHECK: optim.random uniform16 {{.*}} call 0
// CHECK: optim.stochastic
// CHECK-NOT: optim.stochastic
// CHECK: optim.yield
// CHECK: optim.group {{.*}} rule @Round{{ }}
// CHECK: optim.group {{.*}} rule @Round.folded{{ }}

// The numbers of one call are not those of another, and not of another distribution.
// RUN: sed '/func.func/,$s/call 1/call 2/' %t.mlir | %{check} CALL
// CALL: error: 'exec.dispatch_chunks' op expected what rule @Round makes of {{.*}}, with the uniform16 numbers of call 1, found the uniform16 numbers of call 2 in its place
// RUN: sed '/func.func/,$s/random uniform16/random uniform/' %t.mlir | %{check} DRAW
// DRAW: error: 'exec.dispatch_chunks' op expected what rule @Round makes of {{.*}}, with the uniform16 numbers of call {{[01]}}, found the uniform numbers of call

// A parameter of f32 that is rounded all the same.
// RUN: %{compile} --emit decided | sed '/optim.group/s/rule @Round.folded/rule @Round/' > %t.decided.mlir
// RUN: not stepc compile %t.decided.mlir -o %t.out 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: {{.*}}expected what rule @Round makes of {{.*}}, with {{.*}}, found the result of
