// Faults planted in the text of a valid program (Inputs/scheduled.mlir), one per case. The verifier
// reads nothing but that text, so each must be seen there.
// DEFINE: %{from} = %S/../Inputs/scheduled.mlir
// DEFINE: %{check} = not stepc-opt --comm-verify-plan -o /dev/null 2>&1 | FileCheck %s --check-prefix

// Missing route: no wave has the block of parameter b.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks []/' %{from} | %{check} MISSING
// MISSING: error: 'comm.stage' op expected each block of group @g0 to be handled once by operations of this form, found parameter 'b' handled 0 times

// Doubled route: two waves have the block of parameter a.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks [0, 1]/' %{from} | %{check} DOUBLED
// DOUBLED: error: 'comm.stage' op expected each block of group @g0 to be handled once by operations of this form, found parameter 'a' handled 2 times
// DOUBLED: note: segment @g0_w0 has it here
// DOUBLED: note: segment @g0_w1 has it here

// A block twice in one segment.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks [1, 1]/' %{from} | %{check} TWICE
// TWICE: error: 'comm.segment' op expected distinct blocks, found 1 twice

// Unmatched receive: the first exchange sends what its owner in wave 1 computes, and receives wave 0.
// RUN: sed -e '/to_matrix \(full \)*send/s/@g0_w\([01]\)/@g0_x\1/' -e '/to_matrix order/s/sends .@g0_w\([01]\)/sends [@g0_x\1/' -e 's/g0_x0/g0_w1/' -e 's/g0_x1/g0_w0/' %{from} | %{check} UNMATCHED
// UNMATCHED: error: 'comm.start' op expected rank 0 to send the 32 bytes that rank 0 receives of it, found none
// UNMATCHED: error: 'comm.start' op expected rank 0 to receive the 32 bytes that rank 0 sends it, found 0 bytes

// The same bytes, but of the other parameter: both have one owner here.
// RUN: sed -e '/to_matrix \(full \)*send/s/@g0_w\([01]\)/@g0_x\1/' -e '/to_matrix order/s/sends .@g0_w\([01]\)/sends [@g0_x\1/' -e 's/g0_x0/g0_w1/' -e 's/g0_x1/g0_w0/' -e 's/owners \[0, 1\]/owners [0, 0]/' %{from} | %{check} CROSSED
// CROSSED: error: 'comm.start' op expected element (0, 0) of parameter 'a' as element 0 of the message from rank 0 to rank 0, found element (0, 0) of parameter 'b'
// CROSSED: note: for this operation

// What arrives is another wave's.
// RUN: sed -e '/order 0/s/receives .@g0_w0/receives [@g0_w1/' -e 's/rn0 = comm.extent @g0_w0/rn0 = comm.extent @g0_w1/' %{from} | %{check} OTHER
// OTHER: error: 'comm.copy' op expected the full value of segment @g0_w0 in layout receive to_matrix in a buffer that it reads, found the full value of segment @g0_w1 in layout receive to_matrix
// OTHER: note: written here

// Crossed order of collectives.
// RUN: sed -e 's/order 0/order 9/' -e 's/order 1/order 0/' -e 's/order 9/order 1/' %{from} | %{check} ORDER
// ORDER: error: 'comm.start' op expected order 0, because all ranks start collectives in program order, found 1

// Overlapping live buffers: what wave 1 receives stands where wave 0 arrives.
// RUN: sed -e 's/r1 = comm.buffer offset 320/r1 = comm.buffer offset 192/' %{from} | %{check} OVERLAP
// OVERLAP: error: 'comm.start' op expected a buffer of its own, found bytes 192 to 256 of the workspace shared with a value that lives
// OVERLAP: note: the buffer is here
// OVERLAP: note: the other buffer is here
// OVERLAP: note: the other value is written here
// OVERLAP: note: it is last used here

// What is sent lives until the wait: what wave 1 packs may not stand there.
// RUN: sed -e 's/s1 = comm.buffer offset 256/s1 = comm.buffer offset 128/' %{from} | %{check} LIVESEND
// LIVESEND: error: 'comm.stage' op expected a buffer of its own, found bytes 128 to 160 of the workspace shared with a value that lives

// Workspace beyond the limit.
// RUN: sed -e 's/workspace_limit = 1024/workspace_limit = 512/' %{from} | %{check} LIMIT
// LIMIT: error: 'func.func' op expected a workspace within the limit of 512 bytes per rank, found 640 bytes, and up to 32 of scratch
// LIMIT: note: the limit is set here

// A buffer outside of the workspace.
// RUN: sed -e 's/arena_bytes = 640/arena_bytes = 600/' %{from} | %{check} OUTSIDE
// OUTSIDE: error: 'comm.buffer' op expected a buffer inside of the workspace of 600 bytes, found one that ends at byte 608

// A program that does not say what it needs.
// RUN: sed -e 's/attributes {comm.arena_bytes = 640 : i64}//' %{from} | %{check} NOARENA
// NOARENA: error: 'func.func' op expected comm.arena_bytes, the workspace per rank, found none

// Too small: for what is received, sent, computed, and for the scalars.
// RUN: sed -e 's/r0 = comm.buffer offset 192 bytes 64/r0 = comm.buffer offset 192 bytes 32/' %{from} | %{check} SMALL
// SMALL: error: 'comm.buffer' op expected at least 64 bytes, which rank 0 needs, found 32 bytes
// SMALL: note: used here
// RUN: sed -e 's/k1 = comm.buffer offset 320 bytes 64/k1 = comm.buffer offset 320 bytes 48/' %{from} | %{check} SMALLSEND
// SMALLSEND: error: 'comm.buffer' op expected at least 64 bytes, which rank 1 needs, found 48 bytes
// RUN: sed -e 's/x1 = comm.buffer offset 512 bytes 64/x1 = comm.buffer offset 512 bytes 63/' %{from} | %{check} SMALLBATCH
// SMALLBATCH: error: 'comm.buffer' op expected at least 64 bytes, which rank 1 needs, found 63 bytes
// RUN: sed -e 's/t0 = comm.buffer offset 0 bytes 8/t0 = comm.buffer offset 0 bytes 4/' %{from} | %{check} SMALLSCALARS
// SMALLSCALARS: error: 'comm.buffer' op expected at least 8 bytes, which rank 0 needs, found 4 bytes

// Beyond all numbers.
// RUN: sed -e 's/t0 = comm.buffer offset 0 bytes 8/t0 = comm.buffer offset 9223372036854775744 bytes 128/' %{from} | %{check} WRAPPED
// WRAPPED: error: 'comm.buffer' op expected a buffer inside of the workspace of 640 bytes, found one that ends at byte 9223372036854775872

// A size taken from another segment, direction, layout or kind; from none that exists; from nothing.
// RUN: sed -e 's/sn0 = comm.extent @g0_w0/sn0 = comm.extent @g0_w1/' %{from} | %{check} EXTENT
// EXTENT: error: 'comm.buffer' op expected the size of the full value of segment @g0_w0 in layout send to_matrix, found that of the full value of segment @g0_w1 in layout send to_matrix
// EXTENT: note: the buffer is used for it here
// EXTENT: note: the extent is here
// RUN: sed -e 's/kn1 = comm.extent @g0_w1 to_shards/kn1 = comm.extent @g0_w1 to_matrix/' %{from} | %{check} EXTENTWAY
// EXTENTWAY: error: 'comm.buffer' op expected the size of the full value of segment @g0_w1 in layout send to_shards, found that of the full value of segment @g0_w1 in layout send to_matrix
// RUN: sed -e 's/bn0 = comm.extent @g0_w0 to_matrix full blocks/bn0 = comm.extent @g0_w0 to_matrix full receive/' %{from} | %{check} EXTENTLAYOUT
// EXTENTLAYOUT: error: 'comm.buffer' op expected the size of the computed blocks of segment @g0_w0, found that of the full value of segment @g0_w0 in layout receive to_matrix
// RUN: sed -e 's/rn1 = comm.extent @g0_w1 to_matrix full/rn1 = comm.extent @g0_w1 to_matrix rows/' %{from} | %{check} EXTENTKIND
// EXTENTKIND: error: 'comm.buffer' op expected the size of the full value of segment @g0_w1 in layout receive to_matrix, found that of the rows value of segment @g0_w1 in layout receive to_matrix
// RUN: sed -e 's/sn0 = comm.extent @g0_w0/sn0 = comm.extent @g0_w9/' %{from} | %{check} NOSEGMENT
// NOSEGMENT: error: 'comm.extent' op expected a segment, found no comm.segment named @g0_w9
// RUN: sed -e 's/sn0 = comm.extent @g0_w0 .*/sn0 = arith.constant 16 : index/' %{from} | %{check} NOEXTENT
// NOEXTENT: error: 'comm.buffer' op expected the size of the full value of segment @g0_w0 in layout send to_matrix, found a value that is no comm.extent
// NOEXTENT: note: the value is here
// RUN: sed -e 's/bytes 32 (.sn0) : memref<?xbf16>/bytes 32 : memref<16xbf16>/' -e 's/\(.s0 : memref<\)?/\116/' %{from} | %{check} FIXED
// FIXED: error: 'comm.buffer' op expected the size of the full value of segment @g0_w0 in layout send to_matrix, found a type that fixes it

// Read before the wait.
// RUN: sed -e '/comm.wait .in0/d' -e '/comm.copy @g0_w0 to_matrix/a comm.wait %%in0' %{from} | %{check} EARLY
// EARLY: error: 'comm.copy' op expected comm.wait before what is received is read, found it in flight
// EARLY: note: the exchange starts here
// EARLY: note: it is waited for here

// What is sent is overwritten before the wait.
// RUN: sed -e 's/outs(.s1 : memref<?xbf16>) {/outs(%%s0 : memref<?xbf16>) {/' %{from} | %{check} OVERWRITTEN
// OVERWRITTEN: error: 'comm.stage' op expected comm.wait before what is sent is overwritten, found it in flight

// A wait is missing, or done twice.
// RUN: sed -e '/comm.wait .in1/d' %{from} | %{check} NOWAIT
// NOWAIT: error: 'comm.start' op expected one comm.wait for its token, found 0
// RUN: sed -e '/comm.wait .in1/p' %{from} | %{check} TWOWAITS
// TWOWAITS: error: 'comm.start' op expected one comm.wait for its token, found 2

// A value sent twice; one that arrives and is never read; one read that was never written.
// RUN: sed -e 's/(.s1 : memref<?xbf16>) receives .@g0_w1/(%%s0 : memref<?xbf16>) receives [@g0_w1/' -e '/to_matrix order 1/s/sends .@g0_w1/sends [@g0_w0/' %{from} | %{check} RESENT
// RESENT: error: 'comm.start' op expected each value to be sent once, found the full value of segment @g0_w0 in layout send to_matrix again
// RESENT: note: it is sent here
// RUN: sed -e '/comm.wait .out1/,$s/receive ins(.p0, .o1 : \(.*\), memref<?xbf16>) writes/none ins(%%p0 : \1) writes/' -e '/comm.wait .out1/,$s/.o: bf16, //' -e '/comm.wait .out1/,$s/.f = arith.extf .o : bf16 to f32/%%f = arith.addf %%p, %%p : f32/' %{from} | %{check} UNREAD
// UNREAD: error: 'comm.start' op expected a reader of all that it receives, found none for the full value of segment @g0_w1 in layout receive to_shards
// RUN: sed -e '/block_reduce norm @g0_w0/d' %{from} | %{check} UNWRITTEN
// UNWRITTEN: error: 'comm.stage' op expected the computed blocks of segment @g0_w0 in a buffer that it reads, found nothing
// UNWRITTEN: note: the buffer is here

// An allocation, a copy, a tensor, an operation that level 4 does not have, and a collective in a region.
// RUN: sed -e 's/.r0 = comm.buffer offset 192 bytes 64/%%r0 = memref.alloc/' %{from} | %{check} ALLOC
// ALLOC: error: 'memref.alloc' op expected no allocation past level scheduled, because every buffer has its place in the workspace, found 'memref<?xbf16>'
// RUN: sed -e '/comm.wait .in0/a memref.copy %%t0, %%t0 : memref<2x1xf32> to memref<2x1xf32>' %{from} | %{check} COPY
// COPY: error: 'memref.copy' op expected no copy past level scheduled, found one of 'memref<2x1xf32>', 'memref<2x1xf32>'
// RUN: sed -e '/comm.wait .in0/a %%e = tensor.empty() : tensor<2xf32>' %{from} | %{check} TENSOR
// TENSOR: error: 'tensor.empty' op expected no tensors past level scheduled, because each would become an allocation, found 'tensor<2xf32>'
// RUN: sed -e '/comm.wait .in0/a %%e = memref.cast %%t0 : memref<2x1xf32> to memref<?x1xf32>' %{from} | %{check} FOREIGN
// FOREIGN: error: 'memref.cast' op expected operations of a scheduled program, found one that is none
// RUN: sed -e '/.d = arith.mulf .lr, .g : f32/i %%w = comm.world %%v = comm.start %%w to_matrix order 0 sends [] receives [] kinds []' %{from} | sed -e 's/%w = comm.world %v/%w = comm.world\n%v/' | %{check} REGION
// REGION: error: 'comm.start' op expected collectives in the step itself, because all ranks meet in them, found one in a region

// Shards, scalars and blocks of another group or shape; a state that the group lacks.
// RUN: sed -e '/comm.stage @g1_w0/s/.p1, .d1 : !comm.shards<@g1, f32>, !comm.shards<@g1, f32>/%%p1, %%d0 : !comm.shards<@g1, f32>, !comm.shards<@g0, f32>/' %{from} | %{check} SHARDS
// SHARDS: error: 'comm.stage' op expected full shards of group @g1, found full shards of group @g0
// SHARDS: note: the shards are here
// RUN: sed -e 's/scalars(.t1 : memref<1x1xf32>)/scalars(%%t0 : memref<2x1xf32>)/' %{from} | %{check} SCALARS
// SCALARS: error: 'comm.stage' op expected the scalars of group @g1 in a buffer that it reads, found the scalars of group @g0
// RUN: sed -e 's/?x8x4xbf16/?x4x8xbf16/' -e 's/?x8x4xbf16/?x4x8xbf16/' %{from} | %{check} SHAPE
// SHAPE: error: 'comm.copy' op expected a batch of computed blocks of 8 x 4, found 'memref<?x4x8xbf16>'
// RUN: sed -e 's/comm.shards state @g0 "m"/comm.shards state @g0 "v"/' %{from} | %{check} STATE
// STATE: error: 'comm.shards' op expected a state of group @g0, found "v"
// RUN: sed -e 's/@Muon hyperparameters \["lr"\] states \[#optim.state<"m", f32/@Muon hyperparameters ["lr"] states [#optim.state<"m", bf16/' %{from} | %{check} TYPE
// TYPE: error: 'comm.shards' op expected shards of @g0 and bf16, found '!comm.shards<@g0, f32>'

// A stage that forgets to write a state.
// RUN: sed -e 's/writes(.m0 : !comm.shards<@g0, f32>) //' -e 's/comm.yield .m1, .u : f32, bf16/comm.yield %%u : bf16/' %{from} | %{check} FORGETS
// FORGETS: error: 'optim.group' op expected state "m" of every block to be written once, found parameter 'a' written 0 times

// A whole group forgotten.
// RUN: sed -e '/comm.stage @g1_w0/,/^    }/d' %{from} | %{check} FORGOTTEN
// FORGOTTEN: error: 'optim.group' op expected the parameter of every block to be written once, found parameter 'bias' written 0 times

// Wave 1 lacks an operation that wave 0 has.
// RUN: sed -e 's/block_reduce norm @g0_w1/block_reduce max @g0_w1/' %{from} | %{check} UNEQUAL
// UNEQUAL: error: 'optim.block_reduce' op expected each block of group @g0 to be handled once by operations of this form, found parameter 'b' handled 0 times
// UNEQUAL: error: 'optim.block_reduce' op expected each block of group @g0 to be handled once by operations of this form, found parameter 'a' handled 0 times

// A product that overwrites what it reads, a stage that writes one buffer twice, and a reduction in place.
// RUN: sed -e 's/plus .x outs(.z/plus %%x outs(%%x/' %S/comm-verify-plan.mlir | not stepc-opt --comm-verify-plan --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix INPLACE
// INPLACE: error: 'optim.product' op expected an out that is not read by the operation, found it among the inputs
// RUN: sed -e 's/outs(.x : memref<?x3x4xf32>) {/outs(%%x, %%x : memref<?x3x4xf32>, memref<?x3x4xf32>) {/' -e 's/comm.yield %0 : f32/comm.yield %%0, %%0 : f32, f32/' %S/comm-verify-plan.mlir | not stepc-opt --comm-verify-plan --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix SAME
// SAME: error: 'comm.stage' op expected distinct buffers for all that it writes, found one twice
// RUN: sed -e 's/\(.*block_reduce norm @s0 .x0 .*\)/\1\noptim.block_reduce norm @s0 %%n0 outs(%%n0 : memref<?x1x1xf32>) : memref<?x1x1xf32>/' %S/../Inputs/versions.mlir | %{check} REDUCED
// REDUCED: error: 'optim.block_reduce' op expected an out that is not read by the operation, found it among the inputs

// RUN: stepc-opt --comm-verify-plan --split-input-file --verify-diagnostics %s

// Another level.
// expected-error @+1 {{'builtin.module' op expected level scheduled, found comm}}
module @level attributes {stepc.level = "comm"} {
}

// -----

// No program at all.
// expected-error @+1 {{'builtin.module' op expected a function @step with a body}}
module @empty attributes {stepc.level = "scheduled"} {
}

// -----

module @two {
  // expected-note @+1 {{the step is here}}
  func.func @step() {
    return
  }
  // expected-error @+1 {{'func.func' op expected one function, @step, found another}}
  func.func @stop() {
    return
  }
}

// -----

// Branches: ranks could take different ones.
module @branch {
  // expected-error @+1 {{'func.func' op expected straight-line code, found more than one block}}
  func.func @step() {
    return
  ^bb1:
    return
  }
}
