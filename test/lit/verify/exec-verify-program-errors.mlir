// Faults planted in the commands and kernels of a valid program (Inputs/exec.mlir).
// DEFINE: %{from} = %S/../Inputs/exec.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix

// A number, an operation and a column of scalars in a kernel; an exponent, a factor and a transposition.
// RUN: sed 's/5.96046455E-15/5.96046455E-14/' %{from} | %{check} NUMBER
// NUMBER: error: 'exec.dispatch_chunks' op expected what rule @Small makes of parameter 'a', with the number 5.96046455E-15, found the number 5.96046446E-14 in its place
// NUMBER: note: the rule yields it here
// RUN: sed 's/arith.subf %in, %3/arith.addf %%in, %%3/' %{from} | %{check} OPERATION
// OPERATION: error: 'exec.dispatch_chunks' op expected what rule @Small makes of parameter 'a', with the result of arith.subf, found the result of arith.addf in its place
// RUN: sed 's/arith.mulf %in_2, %2/arith.mulf %%in_1, %%2/' %{from} | %{check} COLUMN
// COLUMN: error: {{.*}} with hyperparameter 'lr', found hyperparameter 'momentum' in its place
// RUN: sed 's/return %0, %1/return %%1, %%0/' %{from} | %{check} SWAPPED
// SWAPPED: error: {{.*}} makes of parameter 'a', with hyperparameter 'lr', found hyperparameter 'momentum' in its place
// RUN: sed 's/exponent = -24/exponent = -23/' %{from} | %{check} EXPONENT
// EXPONENT: error: {{.*}} with the result of a norm times 2^-24, found the result of a norm times 2^-23 in its place
// RUN: sed 's/alpha = 2.0/alpha = 2.5/' %{from} | %{check} FACTOR
// FACTOR: error: {{.*}} with the result of a product times the number 2.000000e+00 plus another times the number -4.000000e+00, found the result of a product times the number 2.500000e+00 plus another times the number -4.000000e+00 in its place
// RUN: sed 's/symmetric, transpose_rhs/symmetric, transpose_lhs/' %{from} | %{check} TRANSPOSED
// TRANSPOSED: error: {{.*}} of parameter 'b', with the result of a product times the number 1.000000e+00, found the result of a product times the number 1.000000e+00 in its place

// Shards of another kind; a command that is missing, or stands elsewhere.
// RUN: sed -e '/@in of/,/traveller/s/state, "m">, #exec.shards<gradient>/gradient>, #exec.shards<state, "m">/' %{from} | %{check} GRADIENT
// GRADIENT: error: 'exec.dispatch_chunks' op expected writes of parameters and states, because gradients belong to the trainer, found one of the gradient
// RUN: sed -e '/@out of/,/traveller/s/shards<parameter>/shards<state, "m">/' %{from} | %{check} STATE
// STATE: error: {{.*}} of parameter 'a', with the result of arith.subf, found the old parameter in its place
// RUN: sed '/exec.apply.*8x4/d' %{from} | %{check} MISSING
// MISSING: error: 'exec.dispatch_chunks' op expected to read blocks of 1 x 1 of f32 at byte 256, found none
// RUN: sed -e '/exec.dispatch_parameters/,/576/{H;d}' -e '/exec.await %0/G' %{from} | %{check} LATE
// LATE: error: 'exec.dispatch_chunks' op expected to read 2 scalars per parameter at byte 512, found none
// RUN: sed -e 's/@scalars of .@ga, @gb./@scalars of [@gb, @ga]/' %{from} | %{check} GROUP
// GROUP: error: 'exec.dispatch_chunks' op expected to read 2 scalars per parameter at byte 512, found 2 scalars per parameter at byte 512
// GROUP: note: it was written here
// RUN: sed -e '/@out of/,/traveller/d' %{from} | %{check} UNREAD
// UNREAD: error: 'exec.start' op expected a reader of all that it receives, found none for what is received, of bf16 at byte 1024

// Another part of the workspace, another layout, bytes that something else stands in, and none at all.
// RUN: sed '/exec.apply.*8x4/s/<offset = 128, bytes = 64/<offset = 192, bytes = 64/' %{from} | %{check} OFFSET
// OFFSET: error: 'exec.apply' op expected to read blocks of 8 x 4 of bf16 at byte 192, found none
// RUN: sed '/exec.apply.*8x4/s/8x4xbf16/4x8xbf16/' %{from} | %{check} LAYOUT
// LAYOUT: error: 'exec.apply' op expected to read blocks of 4 x 8 of bf16 at byte 128, found blocks of 8 x 4 of bf16 at byte 128
// RUN: sed '/@sb.*from #exec.workspace<offset = 1024/s/to #exec.workspace<offset = 256/to #exec.workspace<offset = 128/' %{from} | %{check} OVERWRITTEN
// OVERWRITTEN: error: 'exec.apply' op expected to read blocks of 8 x 8 of bf16 at byte 256, found blocks of 8 x 4 of bf16 at byte 256
// RUN: sed 's/arena 1280 /arena 576 /' %{from} | %{check} OUTSIDE
// OUTSIDE: error: 'exec.dispatch_parameters' op expected operands of some bytes inside of the workspace of 576 bytes, found 8 bytes at byte 576
// RUN: sed -e 's/stepc.level/comm.workspace_limit = 1024, stepc.level/' %{from} | %{check} LIMIT
// LIMIT: error: 'exec.program' op expected a workspace within the limit of 1024 bytes per rank, found 2816 bytes
// LIMIT: note: the limit is set here
// RUN: sed '/exec.copy.*@sa, full, blocks>, element/s/offset = 128, bytes = 64/offset = 128, bytes = 32/' %{from} | %{check} BYTES
// BYTES: error: 'exec.copy' op expected at least 64 bytes, which rank 1 needs, found 32 bytes
// RUN: sed '/exec.product.*8x4/s/scratch 768/scratch 1600/' %{from} | %{check} SCRATCH
// SCRATCH: error: 'exec.product' op expected a consistent program: command {{.*}} expected scratch within the 1536 bytes

// A product of which half is mirrored may not stand over its addend. The tables of a dispatch are walked side by side.
// RUN: sed '/plus.*4x4xbf16>> to/s/to <offset = 320/to <offset = 128/' %{from} | %{check} MIRRORED
// MIRRORED: error: 'exec.product' op expected to write apart from all else that the command reads or writes, found blocks of 4 x 4 of bf16 at byte 128 over blocks of 4 x 4 of bf16 at byte 128
// RUN: sed 's/576, columns/512, columns/' %{from} | %{check} SHARED
// SHARED: error: 'exec.dispatch_parameters' op expected to write apart from all else that the command reads or writes, found 2 scalars per parameter at byte 512 over 2 scalars per parameter at byte 512
// RUN: sed -e 's/#exec.table<kind = shard_chunks, from = <@sb, full, shards>, to = <@sb, full, blocks/#exec.table<kind = shard_chunks, from = <@sa, full, shards>, to = <@sa, full, blocks/' -e '/@out of/,/advance/{s/offset = 576/offset = 512/;s/, traveller = 1//}' %{from} | %{check} TWICE
// TWICE: error: 'exec.dispatch_chunks' op expected shards that one table of a dispatch alone reads or writes, and that it writes once

// What is in flight, and never lands.
// RUN: sed -e '/exec.await %1/d' %{from} | %{check} AWAIT
// AWAIT: error: 'exec.advance_steps' op expected a consistent program: expected each collective to be awaited, found that number 1 never is
// RUN: sed -e '/exec.await %0/{h;d}' -e '/exec.copy.*@sa.*received/G' %{from} | %{check} ARRIVING
// ARRIVING: error: 'exec.copy' op expected exec.await before what is received is read, found it in flight
// ARRIVING: note: the collective starts here
// RUN: sed -e '/exec.start.*blocks to shards/,/advance/{s/to <offset = 1024, bytes = 192>/to <offset = 640, bytes = 224>/;s/offset = 1024, bytes = 192/offset = 640, bytes = 224/}' %{from} | %{check} LEAVING
// LEAVING: error: 'exec.start' op expected exec.await before it is overwritten, found it in flight

// Elements of another size than a table moves, and nothing to move.
// RUN: sed '/exec.copy.*@sa, full, blocks>, element/s/element_bytes = 2/element_bytes = 4/' %{from} | %{check} SIZE
// SIZE: error: 'exec.copy' op expected to move elements of 4 bytes, found 'bf16'
// RUN: sed '/exec.copy.*@sb, full, blocks>, to.*sent/d' %{from} | %{check} NOTHING
// NOTHING: error: 'exec.start' op expected to move elements of 2 bytes, found no value written where it moves from

// A product of which half is computed, and that is not symmetric.
// RUN: sed '/plus.*8x8xbf16>> to <offset = 256/s/3.000000e+00 : f64/3.000000e+00 : f64, symmetric/' %{from} | %{check} HALF
// HALF: error: 'exec.dispatch_chunks' op expected what rule @Small makes of parameter 'b', with the result of a product times the number 1.000000e+00 plus another times the number 3.000000e+00, found the result of a product times the number 1.000000e+00 plus another times the number 3.000000e+00, mirrored in its place

// What no kernel of this level is.
// RUN: sed -e '/private @scalars/,/^  }/d' -e 's/^  exec.program/  llvm.func @scalars() { llvm.return }\n  exec.program/' %{from} | %{check} CODE
// CODE: error: 'exec.dispatch_parameters' op expected a kernel that says what it computes, a func.func of one block, found none named @scalars
// RUN: sed -e 's/"parallel", "parallel"/"parallel", "reduction"/' %{from} | %{check} LOOPS
// LOOPS: error: 'func.func' op expected in a kernel over chunks one linalg.generic over the rows and columns of a chunk
// RUN: sed -e 's/^#one.*/#one = affine_map<(d0, d1) -> ()>\n#turned = affine_map<(d0, d1) -> (d1, d0)>/' -e 's/= .#all, #one, #all./= [#turned, #one, #all]/' %{from} | %{check} MAP
// MAP: error: 'linalg.generic' op expected in a kernel over chunks views of its arguments, and behind them columns of the first, found operand 0 by affine_map<(d0, d1) -> (d1, d0)>
// RUN: sed -e 's/private @blocks/private @other()\n func.func &/' -e '/@blocks(/a func.call @other() : () -> ()' %{from} | %{check} CALL
// CALL: error: 'func.call' op expected in a kernel over chunks one linalg.generic, and loads of scalars before it

// A kernel that its dispatch does not fit.
// RUN: sed -e '/@blocks of .*@sa/,/192/s/#exec.workspace<offset = 128, bytes = 64>, //' %{from} | %{check} FEWER
// FEWER: error: 'exec.dispatch_chunks' op expected a consistent program: command 13 (chunks): expected kernel blocks to be called as by an earlier command, found other items or operands
// RUN: sed -e '/exec.dispatch_parameters/,/576/s/columns = 2/columns = 3/' %{from} | %{check} COLUMNS
// COLUMNS: error: 'exec.dispatch_parameters' op expected one table of the scalars that its kernel makes of the 6 numbers of group @ga
// RUN: sed -e '/@out of/,/traveller/s/columns = 2/columns = 1/' %{from} | %{check} MOST
// MOST: error: 'exec.dispatch_chunks' op expected scalars with column 1 as the first operand
// RUN: sed -e '/@out of/,/traveller/s/, to = <@s[ab], full, blocks to shards, received>//' -e '/@out of/,/advance/s/, start = 1\(, traveller = 1\)*//' %{from} | %{check} NOWHERE
// NOWHERE: error: 'exec.dispatch_chunks' op expected rows that lead to operand 2 in the workspace, found a table that does not
// RUN: sed -e '/@out of/,/traveller/s/#exec.shards<parameter>/#exec.line<offset = 0, bytes = 64>/' %{from} | %{check} LINE
// LINE: error: 'exec.dispatch_chunks' op expected a consistent program: command 20 (chunks): expected a table of kind line_chunks or of a reduction, found one of shard_chunks, which leads to no line
// RUN: sed -e '/@out of/,/traveller/s/#exec.shards<parameter>/#exec.scalars<offset = 0, columns = 2>/' %{from} | %{check} VIEW
// VIEW: error: 'exec.dispatch_chunks' op expected a view that its dispatch has, found argument 1
// RUN: sed -e '/private @out/,/return/{s/%arg1: memref<?x?xf32/%%arg1: memref<?x?xbf16/;s/ins(%arg1, %arg2, %0, %1 : memref<?x?xf32/ins(%%arg1, %%arg2, %%0, %%1 : memref<?x?xbf16/;s/outs(%arg1 : memref<?x?xf32/outs(%%arg1 : memref<?x?xbf16/;s/%in: f32/%%in: bf16/;s/%out: f32/%%out: bf16/;s/%4 = .*/%%5 = arith.extf %%in : bf16 to f32\n%%6 = arith.subf %%5, %%3 : f32\n%%4 = arith.truncf %%6 : f32 to bf16/;s/yield %4 : f32/yield %%4 : bf16/}' %{from} | %{check} TYPE
// TYPE: error: 'exec.dispatch_chunks' op expected full shards of 'bf16', found full shards of 'f32'

// Blocks in no segment, and in two.
// RUN: sed 's/@sb group @gb all/@sb group @gb blocks []/' %{from} | %{check} NONE
// NONE: error: 'optim.group' op expected each of its 1 blocks in a segment, found 0
// RUN: sed 's/comm.segment @sa group @ga all/&\n comm.segment @sc group @ga all/' %{from} | %{check} BOTH
// BOTH: error: 'comm.segment' op expected each block in one segment, found parameter 'a' in another

// What the tables do is proven, too.
// RUN: sed -e '/exec.start.*shards to blocks/,/from/s/exchange/all_gather/' %{from} | %{check} GATHER
// GATHER: error: 'exec.start' op expected an all-gather by hops that own nothing, found segment @sa to move from shards to blocks
// RUN: sed -e 's/exec.start exchange/exec.start exchange on <@dp, []>/' %{from} | %{check} ALONE
// ALONE: error: 'exec.start' op expected messages between ranks of the communicator, found one between rank 0 and rank 1, which do not meet in it
// RUN: sed -e 's/exec.start exchange/exec.start exchange on <@unused, []>/' -e 's/optim.mesh .*/&\n optim.mesh @unused axes ["x"] sizes [2] ranks [0, 1]/' %{from} | %{check} UNUSED
// UNUSED: error: 'exec.start' op expected a consistent program: command 2 (start): expected a communicator of a mesh that some group uses, found mesh unused

// Nobody counts the step.
// RUN: sed '/exec.advance_steps/d' %{from} | %{check} UNCOUNTED
// UNCOUNTED: error: {{.*}} to advance the step counts
