// Faults in what the step computes, planted in the text of valid programs (Inputs/versions.mlir,
// Inputs/scheduled.mlir): a version of the shards too early or too late, a stage that is missing or
// comes twice, a value of another size or computed otherwise.
// DEFINE: %{from} = %S/../Inputs/versions.mlir
// DEFINE: %{check} = not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 %{from} -o /dev/null

// The way out reads `m`, and stands before the stage that writes it (of this wave, the other is fine).
// RUN: sed -e '/\/\/ new m 0/,/end of new m 0/{H;d}' -e '/end of out 0/G' %{from} | %{check} LATE
// LATE: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of arith.addf, found the old state "m" in its place
// LATE: note: the rule yields it here

// The way in reads `w` after the way out has overwritten it.
// RUN: sed -e '/\/\/ into 0/,/end of into 0/{H;d}' -e '/end of new w 0/G' %{from} | %{check} OVERWRITTEN
// OVERWRITTEN: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the old state "w", found the result of arith.addf in its place
// OVERWRITTEN: note: the rule yields it here

// The order of stages that share nothing is free.
// RUN: sed -e '/\/\/ new w 0/,/end of new w 0/{H;d}' -e '/end of out 0/G' %{from} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null

// A stage is missing in one wave, in all of them, or comes twice; two stages write one state.
// RUN: sed -e '/\/\/ new m 0/,/end of new m 0/d' %{from} | %{check} MISSING
// MISSING: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of arith.addf, found the old state "m" in its place
// MISSING: note: the rule yields it here
// RUN: sed -e '/over shards active .active ins(.m, .d/,/^    }/d' %{from} | %{check} NEVER
// NEVER: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of arith.addf, found the old state "m" in its place
// NEVER: note: the rule yields it here
// RUN: sed -e '/\/\/ new m 0/,/end of new m 0/H' -e '/end of new m 0/G' %{from} | %{check} TWICE
// TWICE: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the old state "m", found the result of arith.addf in its place
// TWICE: note: the rule yields it here
// RUN: sed -e '/ins(.p, .x/s/writes(.p : !comm.shards<@g, f32>)/writes(%%p, %%m : !comm.shards<@g, f32>, !comm.shards<@g, f32>)/' -e 's/yield %f : f32/yield %%f, %%e : f32, f32/' %{from} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null

// A state gets the value of another one; gradients are not written.
// RUN: sed -e 's/ins(.w, .d : \(.*\)) writes(.w/ins(%%m, %%d : \1) writes(%%w/' %{from} | %{check} OTHER
// OTHER: error: 'exec.dispatch_chunks' op expected what rule @R makes of state "w" of parameter 'a', with the old state "w", found the result of arith.addf in its place
// OTHER: note: the rule yields it here
// RUN: sed -e 's/writes(.w/writes(%%d/' %{from} | %{check} GRADIENT
// GRADIENT: error: 'exec.dispatch_chunks' op expected writes of parameters and states, because gradients belong to the trainer, found one of the gradient

// What no stage writes must be what the rule gives back.
// RUN: sed -e 's/yield .p1, .m1, .w1/yield %%p1, %%m1, %%m1/' %{from} | %{check} RULE
// RULE: error: 'exec.dispatch_chunks' op expected what rule @R makes of state "w" of parameter 'a', with the old state "m", found the old state "w" in its place
// RULE: note: the rule yields it here

// Another operation, another order of operands, another reduction.
// RUN: sed -e 's/c = arith.divf .a, .b : f32/c = arith.mulf %%a, %%b : f32/' %{from} | %{check} OPERATION
// OPERATION: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of arith.divf, found the result of arith.mulf in its place
// OPERATION: note: the rule yields it here
// RUN: sed -e 's/c = arith.divf .a, .b : f32/c = arith.divf %%b, %%a : f32/' %{from} | %{check} OPERANDS
// OPERANDS: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of arith.subf, found the result of a norm in its place
// OPERANDS: note: the rule yields it here
// RUN: sed -e 's/block_reduce<norm/block_reduce<rms/' %{from} | %{check} REDUCTION
// REDUCTION: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of a norm, found the result of a rms in its place
// REDUCTION: note: the rule yields it here
// Operands of a sum may change places.
// RUN: sed -e 's/c = arith.addf .a, .b : f32/c = arith.addf %%b, %%a : f32/' %{from} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null

// A number that is not the rule's: of a stage, a product, the scale of a norm, a scalar; in f32, which is what counts.
// DEFINE: %{step} = %S/exec-verify-program-plan.mlir
// DEFINE: %{split} = not stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: sed -e 's/floor = arith.constant 0x27D6BF95/floor = arith.constant 1.0e-08/' %{step} | %{split} FLOOR
// FLOOR: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the number 5.96046455E-15, found the number 9.99999993E-9 in its place
// FLOOR: note: the rule yields it here
// RUN: sed -e 's/beta = 1.5/beta = 1.25/' %{step} | %{split} BETA
// BETA: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of a product times the number 1.000000e+00 plus another times the number 1.500000e+00, found the result of a product times the number 1.000000e+00 plus another times the number 1.250000e+00 in its place
// BETA: note: the rule yields it here
// RUN: sed -e 's/alpha = -0.5/alpha = -0.25/' %{step} | %{split} ALPHA
// ALPHA: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of a product times the number -5.000000e-01, found the result of a product times the number -2.500000e-01 in its place
// ALPHA: note: the rule yields it here
// RUN: sed -e 's/exponent = -24/exponent = -23/' %{step} | %{split} EXPONENT
// EXPONENT: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of a norm times 2^-24, found the result of a norm times 2^-23 in its place
// EXPONENT: note: the rule yields it here
// RUN: sed -e 's/beta = 1.5/beta = 1.5000000001/' %{step} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null
// Edited in the rule, too, it is another optimizer, and proven.
// RUN: sed -e 's/beta = 1.5/beta = 1.25/' -e 's/\[\[1.5, /[[1.25, /' %{step} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null

// A product that is mirrored, but not symmetric; mirroring is a matter of speed where it is.
// RUN: sed -e 's/beta = 0.0, transpose_rhs, symmetric/beta = 0.0, transpose_rhs/' %S/exec-verify-program-plan.mlir | stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null
// RUN: sed -e 's/%x, %x outs/%x, %r2 outs/' -e 's/    .y = comm.buffer/    %%r2 = comm.buffer offset 768 bytes 96 (%%nb) : memref<?x3x4xf32, #comm.place<@s, full, blocks>>\n    comm.stage @s over blocks ins(%%x : memref<?x3x4xf32, #comm.place<@s, full, blocks>>) outs(%%r2 : memref<?x3x4xf32, #comm.place<@s, full, blocks>>) {\n    ^bb0(%%a: f32):\n      %%0 = arith.negf %%a : f32\n      comm.yield %%0 : f32\n    }\n&/' -e 's/bytes = 736/bytes = 864/' %S/exec-verify-program-plan.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix MIRRORED
// MIRRORED: error: 'exec.dispatch_chunks' op expected what rule @R makes of parameter 'a', with the result of a product times the number -5.000000e-01, found the result of a product times the number -5.000000e-01, mirrored in its place

// Stages over blocks: an out that many elements would write, an operand of other extents.
// RUN: sed -e '/over blocks/s/ins(.x0, .n0 : \(.*\), \(memref<?x1x1.*\)) outs(.x0 : .*) {/ins(%%n0, %%x0 : \2, \1) outs(%%n0 : \2) {/' %{from} | %{check} NARROW
// NARROW: error: 'comm.stage' op expected outs of 3 along axis 1, because that is what the stage runs over, found 'memref<?x1x1xf32, #comm.place<@s0, one, blocks>>'
// RUN: sed -e 's/^    .z = comm.buffer.*/&\n    comm.stage @s over blocks ins(%%y : memref<?x3x3xf32, #comm.place<@s, gram, blocks>>) outs(%%z : memref<?x3x4xf32, #comm.place<@s, full, blocks>>) {\n    ^bb0(%%a: f32):\n      comm.yield %%a : f32\n    }/' %S/exec-verify-program-plan.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix EXTENTS
// EXTENTS: error: 'comm.stage' op expected operands of 3 or 1 along axis 2, because that is what the stage runs over, found 'memref<?x3x4xf32, #comm.place<@s, full, blocks>>'

// Segments that share a block, also where no operation names one.
// RUN: sed -e 's/^  comm.segment @s1 .*/&\n  comm.segment @s2 group @g all/' %{from} | %{check} SHARED
// SHARED: error: 'comm.segment' op expected each block in one segment, found parameter 'a' in another
// SHARED: note: the other segment is here
