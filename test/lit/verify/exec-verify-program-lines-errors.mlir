// Faults planted in a program that reduces rows of shards and writes a value per row (Inputs/lines.mlir).
// DEFINE: %{from} = %S/../Inputs/lines.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --exec-verify-program %{from} -o /dev/null

// RUN: sed 's/reduction<mean>/reduction<rms>/' %{from} | %{check} RMS
// RMS: error: 'exec.dispatch_chunks' op expected what rule @Rows makes of parameter 'a', with the result of a mean, found the result of a rms in its place
// RUN: sed 's/kind = whole_rows/kind = line_chunks/' %{from} | %{check} CHUNKS
// CHUNKS: error: 'exec.dispatch_chunks' op expected tables of whole or of parts of lines for kernels that reduce, and for these alone, found line_chunks
// RUN: sed 's/line_chunks/whole_rows/' %{from} | %{check} ALONE
// ALONE: error: 'exec.dispatch_chunks' op expected tables of whole or of parts of lines for kernels that reduce, and for these alone, found whole_rows
// RUN: sed 's/kind = whole_rows/kind = whole_columns/' %{from} | %{check} COLUMNS
// COLUMNS: error: 'exec.dispatch_chunks' op expected a kernel that reduces all terms of each row or column of a table, and writes a value of f32 for each of them
// RUN: sed '/@Rows_mean_f32 of/s/#exec.line<offset = 0, bytes = 8>/#exec.workspace<offset = 0, bytes = 8>/' %{from} | %{check} WORKSPACE
// WORKSPACE: error: 'exec.dispatch_chunks' op expected a kernel that reduces all terms of each row or column of a table, and writes a value of f32 for each of them
// RUN: sed '/@Rows_mean/s/offset = 0, bytes = 8/offset = 0, bytes = 4/' %{from} | %{check} BYTES
// BYTES: error: 'exec.dispatch_chunks' op expected at least 8 bytes, which rank 0 needs, found 4 bytes
// RUN: sed '/dispatch_chunks @Rows_mean/d' %{from} | %{check} MISSING
// MISSING: error: 'exec.dispatch_chunks' op expected to read what is kept of shards, of f32 at byte 0, found none
// RUN: sed 's/"parallel", "reduction"/"reduction", "parallel"/' %{from} | %{check} AXIS
// AXIS: error: 'linalg.generic' op expected a kernel that reduces to write one value per row or column
// RUN: sed 's/ attributes {exec.reduction = #comm.reduction<mean>}//' %{from} | %{check} KERNEL
// KERNEL: error: 'func.func' op expected in a kernel over chunks one linalg.generic over the rows and columns of a chunk
// RUN: sed 's/#optim.shard<0>/#optim.shard<1>/' %{from} | %{check} CUT
// CUT: error: 'exec.dispatch_chunks' op expected whole rows to be reduced, found rows 0:4 and columns 0:3 of parameter 'a' on rank 0
// RUN: sed '/@Rows_lines.*of/d' %{from} | %{check} STATE
// STATE: error: 'optim.yield' op expected what rule @Rows makes of state "v" of parameter 'a', with the result of arith.truncf, found the old state "v" in its place
// RUN: sed '/Rows_elementwise.*of/s/offset = 0, bytes = 8/offset = 64, bytes = 8/' %{from} | %{check} OTHER
// OTHER: error: 'exec.dispatch_chunks' op expected to read what is kept of shards, of f32 at byte 64, found what is kept of shards, of bf16 at byte 64
// RUN: sed 's/from = <@g.w0, full, shards>>\] \[#exec.shards<gradient>, #exec.line<offset = 0/from = <@g.w0, rows, shards>>] [#exec.shards<gradient>, #exec.line<offset = 0/' %{from} | %{check} FULL
// FULL: error: 'exec.program' op expected consistent tables: table 1: expected full values to be reduced, found rows (shards) and rows (shards)
