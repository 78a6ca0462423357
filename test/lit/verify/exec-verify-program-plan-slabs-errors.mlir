// A step in slabs is proven; each fault that is planted in it is refused.
// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 --remark-policy=all --remarks-filter=exec-verify-program %S/../Inputs/slabs.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVEN
// PROVEN: plan-proven {{.*}} bytes=400, exchanges=6, messages=8, ranks=2

// Bits depend on the ranks.
// RUN: sed -e 's/"fast"/"exact"/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXACT
// EXACT: error: 'optim.group' op expected a consistent plan: group group.0: expected slabs in fast numerics alone, found some in exact ones

// The shards are cut by rows.
// RUN: sed -e 's/slabs <rows/slabs <columns/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: 'optim.group' op expected the slabs of shards that cut the columns of blocks, found placements [S(0)]

// A mean of Gram matrices is not the block's.
// RUN: sed -e 's/comm.sum by 1 ins(%40/comm.sum by 2 ins(%40/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=MEAN
// MEAN: error: 'exec.dispatch_chunks' op expected what rule @Sign makes of parameter 'a', with the result of comm.sum by 1, found the result of comm.sum by 2 in its place
// MEAN: note: the rule yields it here

// Nor is the part of one slab, which its own rank has.
// RUN: sed -e 's/ins(%49 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, blocks>>)/ins(%36 : memref<?x4x4xf32, #comm.place<@group.0.w0, gram, parts>>)/' -e 's/%36 = comm.buffer offset 128 bytes/%36 = comm.buffer offset 384 bytes/' -e 's/arena_bytes = 384/arena_bytes = 448/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=PART
// PART: error: 'exec.dispatch_chunks' op expected what rule @Sign makes of parameter 'a', with the result of comm.sum by 1, found the result of a product times the number 1.000000e+00 in its place
// PART: note: the rule yields it here

// The norm of the block is made of two sums.
// RUN: sed -e '/comm.sum by 1 ins(%24/d' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=NORM
// NORM: error: 'exec.copy' op expected to move elements of 4 bytes, found no value written where it moves from

// What arrived of one slab is no sum.
// RUN: sed -e 's/comm.sum by 1 ins(%40/comm.copy ins(%40/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=COPY
// COPY: error: 'comm.copy' op expected places of one value between which a rank can copy, found #comm.place<@group.0.w0, gram, parts to ranges, received> and #comm.place<@group.0.w0, gram, ranges, kept>

// Literal numbers are the rule's.
// RUN: sed -e 's/alpha = 2.0/alpha = 2.5/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=LITERAL
// LITERAL: error: 'exec.dispatch_chunks' op expected what rule @Sign makes of parameter 'a', with the result of a product times the number 2.000000e+00 plus another times the number -4.000000e+00, found the result of a product times the number 2.500000e+00 plus another times the number -4.000000e+00 in its place
// LITERAL: note: the rule yields it here

// All that have slabs of a block meet.
// RUN: sed -e 's/<@world, .<0, 1, 2>.>/<@world, []>/' %S/../Inputs/slabs.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: 'exec.start' op expected messages between ranks of the communicator, found one between rank 0 and rank 1, which do not meet in it
