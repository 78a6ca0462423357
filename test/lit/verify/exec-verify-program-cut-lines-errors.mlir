// Faults planted in a program that adds up columns and a block of which two ranks have parts (Inputs/cut_lines.mlir).
// DEFINE: %{from} = %S/../Inputs/cut_lines.mlir
// DEFINE: %{check} = not stepc-opt --exec-verify-program -o /dev/null 2>&1 | FileCheck %s --check-prefix
// RUN: stepc-opt --exec-verify-program %{from} -o /dev/null

// RUN: sed 's/by 40 reduces mean/by 20 reduces mean/' %{from} | %{check} TERMS
// TERMS: error: 'exec.dispatch_chunks' op expected what rule @Cut makes of parameter 'a', with the result of a mean, found what is no elementwise operation in its place
// RUN: sed 's/by 40 reduces mean/by 40 reduces sum/' %{from} | %{check} KIND
// KIND: error: 'exec.dispatch_chunks' op expected what rule @Cut makes of parameter 'a', with the result of a mean, found what is no elementwise operation in its place
// RUN: sed 's/by 40 reduces mean/by 40 reduces max/' %{from} | %{check} MAX
// MAX: error: 'exec.dispatch_chunks' op expected what rule @Cut makes of parameter 'a', with the result of a mean, found what is no elementwise operation in its place
// RUN: sed '/@Cut_mean/s/reduction<mean>/reduction<sum>/' %{from} | %{check} KERNEL
// KERNEL: error: 'exec.dispatch_chunks' op expected what rule @Cut makes of parameter 'a', with the result of a mean, found what is no elementwise operation in its place
// RUN: sed '/@Cut_norm/s/exec.sums = 1/exec.sums = 2/' %{from} | %{check} SUMS
// SUMS: error: 'exec.dispatch_chunks' op expected a kernel that writes as many exact sums for each line as its table leads to, 1, found 2
// RUN: sed '/@Cut_mean/s/, exec.sums = 1 : i64//' %{from} | %{check} RESULTS
// RESULTS: error: 'exec.dispatch_chunks' op expected a kernel that writes as many exact sums for each line as its table leads to, 1, found 0
// RUN: sed 's/kind = part_columns/kind = whole_columns/' %{from} | %{check} WHOLE
// WHOLE: error: 'exec.dispatch_chunks' op expected a kernel that writes as many exact sums for each line as its table leads to, 0, found 1
// RUN: sed 's/kind = part_columns/kind = part_rows/' %{from} | %{check} ROWS
// ROWS: error: 'exec.program' op expected consistent tables: table {{.*}}: expected lines of which several ranks have parts, found whole ones
// RUN: sed '/@Cut_mean.* of/s/bytes = 240/bytes = 200/' %{from} | %{check} BYTES
// BYTES: error: 'exec.dispatch_chunks' op expected at least 240 bytes, which rank 0 needs, found 200 bytes
// RUN: sed '/dispatch_chunks @Cut_norm/d' %{from} | %{check} MISSING
// MISSING: error: 'exec.copy' op expected to move elements of 80 bytes, found no value written where it moves from
// RUN: sed 's/#optim.shard<0>/#optim.owned<0>/' %{from} | %{check} OWNED
// OWNED: error: 'exec.program' op expected consistent tables: table 0: expected lines of which several ranks have parts, found whole ones
