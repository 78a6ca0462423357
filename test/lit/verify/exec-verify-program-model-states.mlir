// Faults planted in a program that skips steps and has a state of the model (Inputs/model_states.mlir).
// DEFINE: %{from} = %S/../Inputs/model_states.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --exec-verify-program %{from} -o /dev/null

// The state gets the value that the model says, once, and also in a skipped step.
// RUN: sed '/exec.dispatch_chunks @model_lines_f32 of/d' %{from} | %{check} NEVER
// NEVER: error: 'optim.yield' op expected what rule @model makes of state "seen" of parameter 'model', with the result of arith.addf, found the old state "seen" of the model in its place
// RUN: sed -e '/exec.dispatch_chunks @model_lines_f32 of/{h;d}' -e '/exec.skip/G' %{from} | %{check} LATE
// LATE: error: 'exec.dispatch_chunks' op expected changes of the model's states before the step may be skipped, because a skipped step also has them, found one behind that
// RUN: sed '/func.func private @model_lines_f32(/,/return/s/arith.addf/arith.subf/' %{from} | %{check} VALUE
// VALUE: error: 'exec.dispatch_chunks' op expected what rule @model makes of state "seen" of parameter 'model', with the result of arith.addf, found the result of arith.subf in its place

// Numbers are of the old state. It is the model's, and no state of a rule that has the same name.
// RUN: sed -e '/from #exec.shards<state, "seen">/{h;d}' -e '/exec.dispatch_chunks @model_lines_f32 of/G' %{from} | %{check} NEW
// NEW: error: 'exec.dispatch_parameters' op expected to read what is kept of shards, of f32 at byte 448, found none
// RUN: sed '/optim.model hyper/,/^  }/s/arith.addf/arith.mulf/' %{from} | %{check} MODEL
// MODEL: error: 'exec.dispatch_chunks' op expected what rule @model makes of state "seen" of parameter 'model', with the result of arith.mulf, found the result of arith.addf in its place

// The rule that stands for the model has the states of the model, with their initial values.
// RUN: sed '/optim.rule @model/s/0.000000e+00 : f64/1.0 : f64/' %{from} | %{check} INIT
// INIT: error: 'optim.rule' op expected the states of the model, [#optim.state<"seen", f32, one, 0.000000e+00 : f64, false>], found [#optim.state<"seen", f32, one, 1.000000e+00 : f64, false>]
// INIT: note: the model is here
