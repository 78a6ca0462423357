// Faults planted in a program that skips steps (Inputs/model_skips.mlir).
// DEFINE: %{from} = %S/../Inputs/model_skips.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --exec-verify-program %{from} -o /dev/null

// The step is skipped once, if the model says so.
// RUN: sed -e '/exec.skip/d' -e '/exec.dispatch_chunks @Sgd_elementwise/d' %{from} | %{check} NEVER
// NEVER: error: 'exec.advance_steps' op expected a command before it that skips the step when the model says so, found none
// RUN: sed '/exec.skip/p' %{from} | %{check} TWICE
// TWICE: error: 'exec.skip' op expected one such command in a step, found another
// RUN: sed -e 's/values \[\] skips/values []/' -e '/optim.model hyper/,/^  }/s/optim.yield %arg1, .*/optim.yield %%arg1 : tensor<?x?xf32>/' %{from} | %{check} UNASKED
// UNASKED: error: 'exec.skip' op expected a model that skips steps, found one that does not

// The condition is the model's.
// RUN: sed '/func.func private @model_lines/,/return/s/cmpf ogt/cmpf oge/' %{from} | %{check} CONDITION
// CONDITION: error: 'exec.skip' op expected to skip the step when the model says so, with the result of arith.cmpf, found the result of arith.cmpf in its place
// RUN: sed '/func.func private @model_lines/,/return/s/arith.select %2, %cst, %cst_1/arith.select %%2, %%cst_1, %%cst/' %{from} | %{check} INVERSE
// INVERSE: error: 'exec.skip' op expected to skip the step when the model says so, with {{.*}} in its place
// RUN: sed '/func.func private @model_scalars_1/,/return/s/return %0, %1/return %%1, %%0/' %{from} | %{check} NUMBERS
// NUMBERS: error: 'exec.skip' op expected to skip the step when the model says so, with {{.*}} in its place
// RUN: sed 's/exec.skip when <offset = 64/exec.skip when <offset = 128/' %{from} | %{check} ELSEWHERE
// ELSEWHERE: error: 'exec.skip' op expected to skip the step when the model says so, with {{.*}} in its place
// RUN: sed -e '/exec.dispatch_chunks @model_lines/{h;d}' -e '/exec.skip/{x;H;x}' %{from} | %{check} LATE
// LATE: error: 'exec.skip' op expected to read what is kept of shards, of f32 at byte 64, found none

// A skipped step changes nothing, so all changes come behind the command, and what it needs of all parameters before it.
// RUN: sed -e '/exec.skip/{h;d}' -e '/exec.dispatch_chunks @Sgd_elementwise/{G}' %{from} | %{check} CHANGED
// CHANGED: error: 'exec.dispatch_chunks' op expected no change of parameters and states before the step may be skipped, found one
// RUN: sed -e '/exec.collect/h' -e '/exec.skip/G' %{from} | %{check} COLLECT
// COLLECT: error: 'exec.collect' op expected sums of the whole model before the step may be skipped, because a skipped step leaves all parts out, found one behind that

// The number has its bytes, and stands in the workspace.
// RUN: sed 's/exec.skip when <offset = 64, bytes = 4>/exec.skip when <offset = 64, bytes = 2>/' %{from} | %{check} BYTES
// BYTES: error: 'exec.skip' op expected a consistent program: command 13 (skip): expected a line with 4 bytes, found another operand
// RUN: sed 's/exec.skip when <offset = 64, bytes = 4>/exec.skip when <offset = 4096, bytes = 4>/' %{from} | %{check} OUTSIDE
// OUTSIDE: error: 'exec.skip' op expected a consistent program: command 13 (skip): expected operands inside of the workspace of 448 bytes, found 4 bytes from byte 4096

// The host cannot skip a step whose count a kernel has.
// RUN: sed 's/exec.advance_steps/exec.advance_steps {kernel = @Sgd_scalars}/' %{from} | %{check} HOST
// HOST: error: 'exec.advance_steps' op expected a consistent program:
