// Faults planted in a program whose kernel counts rows and columns, and draws numbers for elements.
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc compile %S/../Inputs/places.optim -m %S/../Inputs/places.json --emit exec -o - > %t.mlir
// RUN: stepc-opt --exec-verify-program %t.mlir -o /dev/null

// RUN: sed 's/kind = rectangle_chunks/kind = shard_chunks/' %t.mlir | %{check} RUNS
// RUNS: error: 'exec.dispatch_chunks' op expected rows that say where an element stands for optim.random, found shard_chunks of full values
// RUN: sed '/func.func/,$s/optim.position rows/optim.position columns/' %t.mlir | %{check} AXIS
// AXIS: error: 'exec.dispatch_chunks' op expected what rule @Places makes of {{.*}}, with the number of the row, found the number of the column in its place
// RUN: sed '/func.func/,$s/call 0/call 1/' %t.mlir | %{check} CALL
// CALL: error: 'exec.dispatch_chunks' op expected what rule @Places makes of {{.*}}, with the normal numbers of call 0, found the normal numbers of call 1 in its place
