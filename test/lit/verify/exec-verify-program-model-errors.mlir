// Faults planted in a program that makes numbers of a model, the second of which needs the first (Inputs/model.mlir).
// DEFINE: %{from} = %S/../Inputs/model.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --exec-verify-program %{from} -o /dev/null

// Parts are added up in any order, and scalars stand anywhere: these are no faults.
// RUN: sed -e '/exec.collect mean/{N;s/@s,/@z,/;s/@t,/@s,/;s/@z,/@t,/;s/offset = 0, bytes = 40/offset = 99, bytes = 40/;s/offset = 64, bytes = 40/offset = 0, bytes = 40/;s/offset = 99/offset = 64/}' %{from} | stepc-opt --exec-verify-program -o /dev/null
// RUN: sed -e 's/arena 640/arena 704/' -e 's/scalars<offset = 512/scalars<offset = 640/g' %{from} | stepc-opt --exec-verify-program -o /dev/null

// All parts of all groups are added up once.
// RUN: sed '/exec.collect mean/{N;s/,\n.*element_bytes = 40>\]/]/;s/, #exec.line<offset = 64, bytes = 40>//}' %{from} | %{check} MISSING
// MISSING: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// MISSING: note: the rule yields it here
// RUN: sed '/exec.collect mean/{N;s/@t,/@s,/;s/offset = 64, bytes = 40/offset = 0, bytes = 40/}' %{from} | %{check} OTHER
// OTHER: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// RUN: sed '/exec.collect mean/{N;s/\[#exec.table<[^>]*>[^>]*>/&, #exec.table<kind = collect, from = <@s, one, model_parts, kept>, element_bytes = 40>/;s/from \[#exec.line<offset = 0, bytes = 40>/&, #exec.line<offset = 0, bytes = 40>/}' %{from} | %{check} TWICE
// TWICE: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// RUN: sed '/exec.collect mean/{N;s/offset = 0, bytes = 40/offset = 99, bytes = 40/;s/offset = 64, bytes = 40/offset = 0, bytes = 40/;s/offset = 99/offset = 64/}' %{from} | %{check} SWAPPED
// SWAPPED: error: 'exec.collect' op expected to read what is kept of shards, of i320 at byte 64, found what is kept of shards, of i320 at byte 64
// SWAPPED: note: it was written here

// The reduction is the model's in each of the three places that name it, and so is the number of terms.
// RUN: sed '/func.func private @Sgd_mean/s/reduction<mean>/reduction<sum>/' %{from} | %{check} KERNEL
// KERNEL: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found what is no elementwise operation in its place
// RUN: sed 's/exec.collect mean/exec.collect sum/' %{from} | %{check} COLLECT
// COLLECT: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found what is no elementwise operation in its place
// RUN: sed 's/by 38 reduces mean/by 38 reduces sum/' %{from} | %{check} SUM
// SUM: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found what is no elementwise operation in its place
// RUN: sed 's/by 38 reduces rms/by 38 reduces norm/' %{from} | %{check} NORM
// NORM: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found what is no elementwise operation in its place
// RUN: sed 's/by 38 reduces mean/by 32 reduces mean/' %{from} | %{check} DIVISOR
// DIVISOR: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// RUN: sed 's/by 38 reduces rms/by 6 reduces rms/' %{from} | %{check} RMS
// RMS: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place

// The terms are the model's, and so are the scalars.
// RUN: sed '/@Sgd_rms_f32_i640(/,/return/s/arith.subf %in, %in_0/arith.addf %%in, %%in_0/' %{from} | %{check} TERMS
// TERMS: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of arith.subf, found the result of arith.addf in its place
// RUN: sed '/optim.model hyper/,/optim.yield/s/reduce mean/reduce sum/' %{from} | %{check} TEXT
// TEXT: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// RUN: sed '/@model_scalars(/,/return/s/truncf %arg0/truncf %%arg1/' %{from} | %{check} SCALAR
// SCALAR: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with hyperparameter 'k' of the model, found the scalar 'step' of the model in its place

// Rules read the numbers that they name, in the order in which their kernel has them.
// RUN: sed '/@Sgd_scalars_1 of/{s/offset = 576/offset = 99/g;s/offset = 128/offset = 576/g;s/offset = 99/offset = 128/g}' %{from} | %{check} ORDER
// ORDER: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of arith.subf, found the result of arith.divf in its place
// RUN: sed '/@Sgd_scalars of/s/#exec.scalars<offset = 512, columns = 1>, #exec.line<offset = 576, bytes = 4>/#exec.line<offset = 576, bytes = 4>, #exec.scalars<offset = 512, columns = 1>/g' %{from} | %{check} KINDS
// KINDS: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of arith.truncf in its place
// RUN: sed '/@Sgd_scalars of/s/, #exec.line<offset = 576, bytes = 4>//g' %{from} | %{check} COUNT
// COUNT: error: 'exec.dispatch_parameters' op expected one table of the scalars that its kernel makes of the 6 numbers of group @g
// RUN: sed 's/return %0, %1, %2, %3/return %%1, %%0, %%2, %%3/' %{from} | %{check} COLUMN
// COLUMN: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of arith.subf, found the result of arith.divf in its place
// RUN: sed '/optim.rule @Sgd/,/optim.yield/s/model_number 1/model_number 0/' %{from} | %{check} RULE
// RULE: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of a number of the model in its place
// RUN: sed '/optim.rule @Sgd/,/optim.yield/s/model_number 2/model_number 1/' %{from} | %{check} RULESCALAR
// RULESCALAR: error: 'exec.dispatch_chunks' op expected what rule @Sgd makes of parameter 'w', with the result of a number of the model, found the result of arith.truncf in its place

// Nothing is read before it is written, or where something else stands.
// RUN: sed '/exec.dispatch_chunks @Sgd_mean/,/bytes = 40>\]/d' %{from} | %{check} UNWRITTEN
// UNWRITTEN: error: 'exec.collect' op expected to read what is kept of shards, of i320 at byte 0, found none
// RUN: sed -e '/exec.collect mean/{N;H;d}' -e '/exec.await %0/G' %{from} | %{check} LATE
// LATE: error: 'exec.copy' op expected to move elements of 40 bytes, found no value written where it moves from
// RUN: sed '/exec.dispatch_parameters @model_scalars/d' %{from} | %{check} TABLE
// TABLE: error: 'exec.dispatch_parameters' op expected to read 1 scalars per parameter at byte 512, found none
// RUN: sed -e '/exec.dispatch_parameters @Sgd_scalars of/{h;d}' -e '/exec.dispatch_chunks @Sgd_elementwise/{x;G}' %{from} | %{check} PHASE
// PHASE: error: 'exec.dispatch_chunks' op expected to read 1 scalars per parameter at byte 128, found none
// RUN: sed '/@Sgd_scalars of/s/line<offset = 576, bytes = 4>/line<offset = 256, bytes = 4>/g' %{from} | %{check} UNFINISHED
// UNFINISHED: error: 'exec.dispatch_parameters' op expected to read what is kept of shards, of f32 at byte 256, found what is kept of shards, of f32 at byte 256
// UNFINISHED: note: it was written here
// RUN: sed '/@Sgd_scalars_1 of/s/line<offset = 128, bytes = 4>/line<offset = 512, bytes = 4>/g' %{from} | %{check} SCALARS
// SCALARS: error: 'exec.dispatch_parameters' op expected to read what is kept of shards, of f32 at byte 512, found 1 scalars per parameter at byte 512
// RUN: sed '/exec.collect mean/{N;s/to <offset = 128/to <offset = 0/}' %{from} | %{check} OVER
// OVER: error: 'exec.collect' op expected to write apart from all else that the command reads or writes, found what is kept of shards, of i320 at byte 0 over what is kept of shards, of i320 at byte 0

// Each part has its bytes, and each table its kind.
// RUN: sed '/exec.dispatch_chunks @Sgd_mean/,/bytes/s/offset = 0, bytes = 40/offset = 0, bytes = 36/' %{from} | %{check} WRITES
// WRITES: error: 'exec.dispatch_chunks' op expected at least 40 bytes, which rank 0 needs, found 36 bytes
// RUN: sed '/exec.collect mean/{N;s/#exec.line<offset = 0, bytes = 40>/#exec.line<offset = 0, bytes = 36>/}' %{from} | %{check} READS
// READS: error: 'exec.collect' op expected at least 40 bytes, which rank 0 needs, found 36 bytes
// RUN: sed '/exec.collect mean/{N;s/to <offset = 128, bytes = 40>/to <offset = 128, bytes = 36>/}' %{from} | %{check} TARGET
// TARGET: error: 'exec.collect' op expected a consistent program: command 2 (collect): expected a target of a line with 40 bytes, found another
// RUN: sed '/func.func private @Sgd_mean/s/exec.sums = 1/exec.sums = 2/' %{from} | %{check} SUMS
// SUMS: error: 'exec.dispatch_chunks' op expected a kernel that writes as many exact sums for each line as its table leads to, 1, found 2
// RUN: sed '/exec.dispatch_chunks @Sgd_mean/,/bytes/s/part_model/whole_rows/' %{from} | %{check} WHOLE
// WHOLE: error: 'exec.dispatch_chunks' op expected a kernel that reduces all terms of each row or column of a table, and writes a value of f32 for each of them
// RUN: sed 's/@s, one, model_parts, kept/@s, one, line_parts, kept/' %{from} | %{check} PLACE
// PLACE: error: 'exec.program' op expected consistent tables: table 2: expected the parts of a model's number to be collected, found one (line_parts, kept) and one (line_parts, kept)

// One parameter stands for the model, with an element on each rank. Without a model no command makes or reads its numbers.
// RUN: sed 's/optim.parameter @model shape .2./optim.parameter @model shape [4]/' %{from} | %{check} SHAPE
// SHAPE: error: 'exec.program' op expected consistent tables: expected parameter 'model', which stands for the model, to be the last one, alone in its group, with an element on each rank
// RUN: sed -e 's/optim.group @m rule @model parameters .@model./optim.parameter @z shape [2] batch 0 type f32 gradient f32 mesh @model placements [#optim.shard<0>] aliases [] route @model\n&/' -e 's/parameters .@model./parameters [@model, @z]/' %{from} | %{check} SHAPE
// RUN: sed -e '/optim.model hyper/,/^  }/d' -e 's/optim.model_number [0-9] : f64/arith.constant 1.0 : f64/' %{from} | %{check} NOMODEL
// NOMODEL: error: 'exec.collect' op expected a consistent program: command 2 (collect): expected a plan of a specification with a model, found another
// RUN: sed -e '/optim.model hyper/,/^  }/d' -e 's/optim.model_number [0-9] : f64/arith.constant 1.0 : f64/' -e '/exec.dispatch_chunks @Sgd_mean/,/offset = 576, bytes = 4>$/d' %{from} | %{check} NONUMBERS
// NONUMBERS: error: 'exec.dispatch_parameters' op expected a consistent program: command 1 (parameters): expected no numbers of a model, which the specification does not have, found some
