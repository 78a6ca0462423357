// Faults planted in the text of a valid program of level 4 (Inputs/scheduled.mlir), one per case. They are refused by the
// verifiers of its operations, on the way to level 5, or by the proof there. A command has the location of its operation.
// DEFINE: %{from} = %S/../Inputs/scheduled.mlir
// DEFINE: %{exec} = stepc-opt --stepc-exec=target=cpu:x86-64-v3
// DEFINE: %{check} = not stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null 2>&1 | FileCheck %s --check-prefix

// Edits that change nothing give the level 5 of the sound text.
// RUN: %{exec} %{from} -o %t.sound

// Missing route: no wave has the block of parameter b.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks []/' %{from} | %{check} MISSING
// MISSING: error: 'optim.group' op expected each of its 2 blocks in a segment, found 1

// Doubled route: two waves have the block of parameter a.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks [0, 1]/' %{from} | %{check} DOUBLED
// DOUBLED: error: 'comm.segment' op expected each block in one segment, found parameter 'a' in another
// DOUBLED: note: the other segment is here

// A block twice in one segment.
// RUN: sed -e 's/@g0_w1 group @g0 blocks .1./@g0_w1 group @g0 blocks [1, 1]/' %{from} | %{check} TWICE
// TWICE: error: 'comm.segment' op expected distinct blocks, found 1 twice

// An exchange told as a gather, which would bring all blocks to every rank.
// RUN: sed -e 's/start exchange .world order \([01]\)/start all_gather %%world order \1/' %{from} | %{check} GATHERED
// GATHERED: error: 'exec.start' op expected an all-gather by hops that own nothing, found segment @g0_w0 to move from shards to blocks

// Ranks that send to each other and do not meet: each alone; a mesh that nobody uses.
// RUN: sed -e 's/%world = comm.world/%%world = comm.communicator <@world, []>/' %{from} | %{check} ALONE
// ALONE: error: 'exec.start' op expected messages between ranks of the communicator, found one between rank 0 and rank 1, which do not meet in it
// RUN: sed -e 's/%world = comm.world/%%world = comm.communicator <@unused, [<0, 1, 2>]>/' -e 's/^ *optim.mesh .*/&\n  optim.mesh @unused axes ["x"] sizes [2] ranks [0, 1]/' %{from} | %{check} UNUSED
// UNUSED: error: 'comm.start' op expected a communicator of a mesh that some group uses, found @unused
// All of the mesh are the world in other words.
// RUN: sed -e 's/%world = comm.world/%%world = comm.communicator <@world, [<0, 1, 2>]>/' %{from} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null

// Unmatched receive: the first exchange sends what its owner in wave 1 computes, and receives wave 0.
// RUN: sed -e '/^#s0/s/w0/w1/' -e '/^#s1/s/w1/w0/' -e '/.sn0 =/s/w0/w1/' -e '/.sn1 =/s/w1/w0/' -e '/outs(.s0/s/@g0_w0/@g0_w1/;t' -e '/outs(.s1/s/@g0_w1/@g0_w0/' %{from} | %{check} UNMATCHED
// UNMATCHED: error: 'exec.start' op expected rank 0 to send the 32 bytes that rank 0 receives of it, found none

// The same bytes, but of the other parameter: both have one owner here.
// RUN: sed -e '/^#s0/s/w0/w1/' -e '/^#s1/s/w1/w0/' -e '/.sn0 =/s/w0/w1/' -e '/.sn1 =/s/w1/w0/' -e '/outs(.s0/s/@g0_w0/@g0_w1/;t' -e '/outs(.s1/s/@g0_w1/@g0_w0/' -e 's/base \[0, 1\]/base [0, 0]/' %{from} | %{check} CROSSED
// CROSSED: error: 'exec.start' op expected element (0, 0) of parameter 'a' as element 0 of the message from rank 0 to rank 0, found element (0, 0) of parameter 'b'
// CROSSED: note: for this operation

// What arrives is another wave's.
// RUN: sed -e '/^#r0/s/w0/w1/' -e '/.rn0 =/s/w0/w1/' %{from} | %{check} OTHER
// OTHER: error: 'comm.copy' op expected places of one value between which a rank can copy, found #comm.place<@g0_w1, full, shards to blocks, received> and #comm.place<@g0_w0, full, blocks>

// Crossed order of collectives.
// RUN: sed -e 's/order 0/order 9/' -e 's/order 1/order 0/' -e 's/order 9/order 1/' %{from} | %{check} ORDER
// ORDER: error: 'comm.start' op expected order 0, because all ranks start collectives in program order, found 1
// ORDER: note: the collective of order 0 is here

// Overlapping live buffers: what wave 1 receives stands where wave 0 arrives.
// RUN: sed -e 's/r1 = comm.buffer offset 384/r1 = comm.buffer offset 192/' %{from} | %{check} OVERLAP
// OVERLAP: error: 'exec.start' op expected exec.await before it is overwritten, found it in flight
// OVERLAP: note: the collective starts here

// What is sent lives until the wait: what wave 1 packs may not stand there.
// RUN: sed -e 's/s1 = comm.buffer offset 320/s1 = comm.buffer offset 128/' %{from} | %{check} LIVESEND
// LIVESEND: error: 'exec.dispatch_chunks' op expected exec.await before it is overwritten, found it in flight
// LIVESEND: note: the collective starts here

// Workspace beyond the limit.
// RUN: sed -e 's/workspace_limit = 1024/workspace_limit = 512/' %{from} | %{check} LIMIT
// LIMIT: error: 'exec.program' op expected a workspace within the limit of 512 bytes per rank, found 768 bytes
// LIMIT: note: the limit is set here

// A buffer outside of the workspace.
// RUN: sed -e 's/arena_bytes = 768/arena_bytes = 700/' %{from} | %{check} OUTSIDE
// OUTSIDE: error: 'exec.start' op expected a consistent program: command 18 (start): expected operands inside of the workspace of 704 bytes, found 64 bytes from byte 704

// A program that does not say what it needs.
// RUN: sed -e 's/attributes {comm.arena_bytes = 768 : i64}//' %{from} | %{check} NOARENA
// NOARENA: error: 'func.func' op expected comm.arena_bytes, the workspace per rank, found none

// Too small: for what is received, sent, computed, and for the scalars.
// RUN: sed -e 's/r0 = comm.buffer offset 192 bytes 128/r0 = comm.buffer offset 192 bytes 64/' %{from} | %{check} SMALL
// SMALL: error: 'exec.start' op expected at least 128 bytes, which rank 0 needs, found 64 bytes
// RUN: sed -e 's/k1 = comm.buffer offset 384 bytes 128/k1 = comm.buffer offset 384 bytes 48/' %{from} | %{check} SMALLSEND
// SMALLSEND: error: 'exec.start' op expected at least 128 bytes, which rank 1 needs, found 48 bytes
// RUN: sed -e 's/x1 = comm.buffer offset 640 bytes 64/x1 = comm.buffer offset 640 bytes 63/' %{from} | %{check} SMALLBATCH
// SMALLBATCH: error: 'exec.copy' op expected at least 64 bytes, which rank 1 needs, found 63 bytes
// (Scalars have no bytes at level 5 but those of their columns.)
// RUN: sed -e 's/t0 = comm.buffer offset 0 bytes 8/t0 = comm.buffer offset 0 bytes 4/' %{from} | %{exec} | diff - %t.sound

// Beyond all numbers.
// RUN: sed -e 's/t0 = comm.buffer offset 0 bytes 8/t0 = comm.buffer offset 9223372036854775744 bytes 128/' %{from} | %{check} WRAPPED
// WRAPPED: error: 'exec.dispatch_parameters' op expected a consistent program: command 0 (parameters): expected operands inside of the workspace of 768 bytes, found 8 bytes from byte 9223372036854775744

// A size taken from another segment, direction, layout or kind; from none that exists; from nothing.
// RUN: sed -e 's/sn0 = comm.extent <@g0_w0/sn0 = comm.extent <@g0_w1/' %{from} | %{check} EXTENT
// EXTENT: error: 'comm.buffer' op expected the size of #comm.place<@g0_w0, full, shards to blocks, sent>, found that of #comm.place<@g0_w1, full, shards to blocks, sent>
// EXTENT: note: the extent is here
// RUN: sed -e '/.kn1 = /s/blocks to shards/shards to blocks/' %{from} | %{check} EXTENTWAY
// EXTENTWAY: error: 'comm.buffer' op expected the size of #comm.place<@g0_w1, full, blocks to shards, sent>, found that of #comm.place<@g0_w1, full, shards to blocks, sent>
// EXTENTWAY: note: the extent is here
// RUN: sed -e 's/bn0 = comm.extent <@g0_w0, full, blocks>/bn0 = comm.extent <@g0_w0, full, shards to blocks, received>/' %{from} | %{check} EXTENTLAYOUT
// EXTENTLAYOUT: error: 'comm.buffer' op expected the size of #comm.place<@g0_w0, full, blocks>, found that of #comm.place<@g0_w0, full, shards to blocks, received>
// EXTENTLAYOUT: note: the extent is here
// RUN: sed -e '/.rn1 = /s/full/rows/' %{from} | %{check} EXTENTKIND
// EXTENTKIND: error: 'comm.buffer' op expected the size of #comm.place<@g0_w1, full, shards to blocks, received>, found that of #comm.place<@g0_w1, rows, shards to blocks, received>
// EXTENTKIND: note: the extent is here
// RUN: sed -e 's/sn0 = comm.extent <@g0_w0/sn0 = comm.extent <@g0_w9/' %{from} | %{check} NOSEGMENT
// NOSEGMENT: error: 'comm.buffer' op expected the size of #comm.place<@g0_w0, full, shards to blocks, sent>, found that of #comm.place<@g0_w9, full, shards to blocks, sent>
// NOSEGMENT: note: the extent is here
// RUN: sed -e 's/sn0 = comm.extent .*/sn0 = arith.constant 16 : index/' %{from} | %{check} NOEXTENT
// NOEXTENT: error: 'comm.buffer' op expected the size of #comm.place<@g0_w0, full, shards to blocks, sent>, found a value that is no comm.extent
// NOEXTENT: note: the value is here
// RUN: sed -e 's/bytes 64 (.sn0) : memref<?xbf16/bytes 32 : memref<16xbf16/' -e 's/\(.s0 : memref<\)?/\116/' %{from} | %{check} FIXED
// FIXED: error: 'comm.buffer' op expected the size of #comm.place<@g0_w0, full, shards to blocks, sent>, found a type that fixes it

// Read before the wait.
// RUN: sed -e '/comm.wait .in0/d' -e '/comm.copy ins(.r0/a comm.wait %%in0' %{from} | %{check} EARLY
// EARLY: error: 'exec.copy' op expected exec.await before what is received is read, found it in flight
// EARLY: note: the collective starts here

// What is sent is overwritten before the wait.
// RUN: sed -e '/outs(.s1/s/@g0_w1/@g0_w0/' -e 's/outs(.s1 : memref<?xbf16, #s1>) {/outs(%%s0 : memref<?xbf16, #s0>) {/' %{from} | %{check} OVERWRITTEN
// OVERWRITTEN: error: 'exec.dispatch_chunks' op expected exec.await before it is overwritten, found it in flight
// OVERWRITTEN: note: the collective starts here

// A wait is missing, or done twice.
// RUN: sed -e '/comm.wait .in1/d' %{from} | %{check} NOWAIT
// NOWAIT: error: 'comm.start' op expected one comm.wait for its token, found 0
// RUN: sed -e '/comm.wait .in1/p' %{from} | %{check} TWOWAITS
// TWOWAITS: error: 'comm.start' op expected one comm.wait for its token, found 2
// TWOWAITS: note: the token is used here
// TWOWAITS: note: the token is used here

// A value sent twice; one that arrives and is never read; one read that was never written.
// RUN: sed -e 's/sends(.s1 : memref<?xbf16, #s1>)/sends(%%s0 : memref<?xbf16, #s0>)/' %{from} | %{check} RESENT
// RESENT: error: 'comm.start' op expected each value to be sent once, found #comm.place<@g0_w0, full, shards to blocks, sent> again
// RESENT: note: it is sent here
// RUN: sed -e '/comm.wait .out1/,$s/ins(.p0, .o1 : \(.*\), memref<?xbf16, #o1>) writes/ins(%%p0 : \1) writes/' -e '/comm.wait .out1/,$s/.o: bf16, //' -e '/comm.wait .out1/,$s/.f = arith.extf .o : bf16 to f32/%%f = arith.addf %%p, %%p : f32/' %{from} | %{check} UNREAD
// UNREAD: error: 'exec.start' op expected a reader of all that it receives, found none for what is received, of bf16 at byte 704
// RUN: sed -e '/block_reduce<norm> .x0/d' %{from} | %{check} UNWRITTEN
// UNWRITTEN: error: 'exec.dispatch_chunks' op expected to read blocks of 1 x 1 of f32 at byte 512, found none

// What is packed for nobody.
// RUN: sed -e '/out1 = comm.start/d' -e '/comm.wait .out1/d' %{from} | %{check} UNSENT
// UNSENT: error: 'comm.copy' op expected a comm.start that takes what is packed along, found none for #comm.place<@g0_w1, full, blocks to shards, sent>

// Both waves travel with one start (Inputs/together.sed): each side stands in one buffer, with room for all of it.
// RUN: sed -f %S/../Inputs/together.sed %{from} | stepc-opt --stepc-exec=target=cpu:x86-64-v3 -o /dev/null
// RUN: sed -f %S/../Inputs/together.sed %{from} | sed -e 's/s1 = comm.buffer offset 768 bytes 128/s1 = comm.buffer offset 320 bytes 128/' | %{check} TWOBUFFERS
// TWOBUFFERS: error: 'exec.dispatch_chunks' op expected a consistent program: command 3 (chunks): expected value 1 of start 0 in that start's buffer, found another
// RUN: sed -f %S/../Inputs/together.sed %{from} | sed -e 's/\([rs]. = comm.buffer offset [0-9]* bytes\) 128/\1 64/' | %{check} SMALLSHARED
// SMALLSHARED: error: 'exec.start' op expected at least 128 bytes, which rank 0 needs, found 64 bytes
// RUN: sed -f %S/../Inputs/together.sed %{from} | sed -e 's/\(x0 = comm.buffer offset\) 128/\1 896/' | %{check} SHAREDLIVES
// SHAREDLIVES: error: 'exec.start' op expected a reader of all that it receives, found none for what is received, of bf16 at byte 896

// An allocation, a copy, a tensor, an operation that level 4 does not have, and a collective in a region.
// RUN: sed -e 's/.r0 = comm.buffer offset 192 bytes 128/%%r0 = memref.alloc/' %{from} | %{check} ALLOC
// ALLOC: error: 'memref.alloc' op expected operations of a scheduled program, found one that no command or kernel computes
// RUN: sed -e '/comm.wait .in0/a memref.copy %%t0, %%t0 : memref<2x1xf32, #t0> to memref<2x1xf32, #t0>' %{from} | %{check} COPY
// COPY: error: 'memref.copy' op expected operations of a scheduled program, found one that no command or kernel computes
// RUN: sed -e '/comm.wait .in0/a %%e = tensor.empty() : tensor<2xf32>' %{from} | %{check} TENSOR
// TENSOR: error: 'tensor.empty' op expected operations of a scheduled program, found one that no command or kernel computes
// (What nobody uses is not lowered.)
// RUN: sed -e '/comm.wait .in0/a %%e = memref.cast %%t0 : memref<2x1xf32, #t0> to memref<?x1xf32, #t0>' %{from} | %{exec} | diff - %t.sound
// RUN: sed -e '/.d = arith.mulf .lr, .g : f32/i %%w = comm.world\n%%se = comm.extent <@g0_w0, full, shards to blocks, sent>\n%%re = comm.extent <@g0_w0, full, shards to blocks, received>\n%%s = comm.buffer offset 128 bytes 64 (%%se) : memref<?xbf16, #s0>\n%%r = comm.buffer offset 128 bytes 64 (%%re) : memref<?xbf16, #r0>\n%%v = comm.start exchange %%w order 0 sends(%%s : memref<?xbf16, #s0>) receives(%%r : memref<?xbf16, #r0>)\ncomm.wait %%v' %{from} | %{check} REGION
// REGION: error: 'comm.start' op expected order 2, because all ranks start collectives in program order, found 0

// Shards, scalars and blocks of another group or shape; a state that the group lacks.
// RUN: sed -e '/comm.stage @g1_w0/s/.p1, .d1 : !comm.shards<@g1, f32>, !comm.shards<@g1, f32>/%%p1, %%d0 : !comm.shards<@g1, f32>, !comm.shards<@g0, f32>/' %{from} | %{check} SHARDS
// SHARDS: error: 'comm.stage' op expected shards of group @g1, found shards of group @g0
// SHARDS: note: the shards are here
// RUN: sed -e 's/scalars(.t1 : memref<1x1xf32, #t1>)/scalars(%%t0 : memref<2x1xf32, #t0>)/' %{from} | %{check} SCALARS
// SCALARS: error: 'comm.stage' op expected the scalars of group @g1, found those of @g0
// RUN: sed -e 's/?x8x4xbf16/?x4x8xbf16/' -e 's/?x8x4xbf16/?x4x8xbf16/' %{from} | %{check} SHAPE
// SHAPE: error: 'comm.stage' op expected outs of 8 x 4 (or 1) over the blocks of group g0, found 'memref<?x4x8xbf16, #comm.place<@g0_w0, full, blocks>>'
// RUN: sed -e 's/comm.shards state @g0 "m"/comm.shards state @g0 "v"/' %{from} | %{check} STATE
// STATE: error: 'comm.shards' op expected a state of group @g0, found "v"
// RUN: sed -e 's/@Muon hyperparameters \["lr"\] states \[#optim.state<"m", f32/@Muon hyperparameters ["lr"] states [#optim.state<"m", bf16/' %{from} | %{check} TYPE
// TYPE: error: 'comm.shards' op expected shards of @g0 and 'bf16', found '!comm.shards<@g0, f32>'

// A stage that forgets to write a state.
// RUN: sed -e 's/writes(.m0 : !comm.shards<@g0, f32>) //' -e 's/comm.yield .m1, .u : f32, bf16/comm.yield %%u : bf16/' %{from} | %{check} FORGETS
// FORGETS: error: 'optim.yield' op expected what rule @Muon makes of state "m" of parameter 'a', with the result of arith.addf, found the old state "m" in its place
// FORGETS: note: the rule yields it here

// A whole group forgotten.
// RUN: sed -e '/comm.stage @g1_w0/,/^    }/d' %{from} | %{check} FORGOTTEN
// FORGOTTEN: error: 'optim.yield' op expected what rule @Sgd makes of parameter 'bias', with the result of arith.subf, found the old parameter in its place
// FORGOTTEN: note: the rule yields it here

// Wave 1 lacks an operation that wave 0 has.
// RUN: sed -e 's/block_reduce<norm> .x1/block_reduce<max> %%x1/' %{from} | %{check} UNEQUAL
// UNEQUAL: error: 'exec.dispatch_chunks' op expected what rule @Muon makes of parameter 'b', with the result of a norm, found the result of a max in its place
// UNEQUAL: note: the rule yields it here

// A product that overwrites what it reads, a stage that writes one buffer twice, and a reduction in place.
// RUN: sed -e 's/plus .x outs(.z/plus %%x outs(%%x/' %S/exec-verify-program-plan.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix INPLACE
// INPLACE: error: 'exec.product' op expected to write apart from all else that the command reads or writes, found blocks of 3 x 4 of f32 at byte 192 over blocks of 3 x 4 of f32 at byte 192
// RUN: sed -e 's/outs(.x : \(memref<?x3x4xf32, .*>>\)) {/outs(%%x, %%x : \1, \1) {/' -e 's/comm.yield %0 : f32/comm.yield %%0, %%0 : f32, f32/' %S/exec-verify-program-plan.mlir | not stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix SAME
// SAME: error: 'exec.dispatch_chunks' op expected to write apart from all else that the command reads or writes, found blocks of 3 x 4 of f32 at byte 192 over blocks of 3 x 4 of f32 at byte 192
// RUN: sed -e 's/\(.*block_reduce<norm> .x0 .*\)/\1\noptim.apply #optim.block_reduce<norm> %%n0 outs(%%n0 : memref<?x1x1xf32, #comm.place<@s0, one, blocks>>) : memref<?x1x1xf32, #comm.place<@s0, one, blocks>>/' %S/../Inputs/versions.mlir | %{check} REDUCED
// REDUCED: error: 'exec.apply' op expected to write apart from all else that the command reads or writes, found blocks of 1 x 1 of f32 at byte 64 over blocks of 1 x 1 of f32 at byte 64

// RUN: stepc-opt --stepc-exec=target=cpu:x86-64-v3 --split-input-file --verify-diagnostics %s

// Another level.
// expected-error @+1 {{'builtin.module' op expected level scheduled, found comm}}
module @level attributes {stepc.level = "comm"} {
}

// -----

// No program at all.
// expected-error @+1 {{'builtin.module' op expected a function @step with a body, found no function}}
module @empty attributes {stepc.level = "scheduled"} {
}

// -----

// Another function is none.
// expected-error @+1 {{'builtin.module' op expected a function @step with a body, found @other}}
module @other attributes {stepc.level = "scheduled"} {
  func.func @other() {
    return
  }
}

// -----

// expected-error @+1 {{'builtin.module' op expected a function @step with a body, found no body}}
module @external attributes {stepc.level = "scheduled"} {
  func.func private @step()
}

// -----

// Hops bring blocks together: the error is the group's.
module @cut attributes {stepc.level = "scheduled"} {
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.mesh @world axes ["dp", "tp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [8, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases [] route @R
  // expected-error @+1 {{'optim.group' op expected a consistent plan: group matrices: expected whole blocks on every rank after its hops, found blocks cut along tp of mesh world}}
  optim.group @matrices rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 2, 2>] base [0]>]
  func.func @step() attributes {comm.arena_bytes = 0 : i64} {
    %steps = comm.steps
    %active = comm.active
    comm.advance_steps %steps active %active
    return
  }
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

// -----

// A product of blocks of two segments.
module @segments {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @route rule @R matrix patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.parameter @b shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a, @b] strategy #optim.local hops []
  comm.segment @s group @g blocks [0]
  comm.segment @t group @g blocks [1]
  func.func @step() attributes {comm.arena_bytes = 128 : i64} {
    %steps = comm.steps
    %active = comm.active
    %n = comm.extent <@s, full, blocks>
    %m = comm.extent <@t, full, blocks>
    %x = comm.buffer offset 0 bytes 64 (%n) : memref<?x4x4xf32, #comm.place<@s, full, blocks>>
    %y = comm.buffer offset 64 bytes 64 (%m) : memref<?x4x4xf32, #comm.place<@t, full, blocks>>
    // expected-error @+1 {{'optim.product' op expected computed blocks of segment @s, found 'memref<?x4x4xf32, #comm.place<@t, full, blocks>>'}}
    optim.product %x, %x outs(%y : memref<?x4x4xf32, #comm.place<@t, full, blocks>>) {alpha = 1.0, beta = 0.0} : memref<?x4x4xf32, #comm.place<@s, full, blocks>>, memref<?x4x4xf32, #comm.place<@s, full, blocks>>
    comm.advance_steps %steps active %active
    return
  }
}

// The step counts advance once, and after all else: never, twice, and before a stage.
// RUN: sed -e '/comm.advance_steps/d' %{from} | %{check} UNCOUNTED
// UNCOUNTED: error: 'exec.dispatch_chunks' op expected a consistent program: expected the last command, and no other, to advance the step counts, found command 22
// RUN: sed -e 's/^ *comm.advance_steps.*/&\n&/' %{from} | %{check} COUNTED-TWICE
// COUNTED-TWICE: error: 'exec.advance_steps' op expected to be the last command, so that no failure follows it
// COUNTED-TWICE: note: this command follows
// RUN: sed -e '/comm.advance_steps/d' -e 's/^ *comm.wait %out1/    comm.advance_steps %%steps active %%active\n&/' %{from} | %{check} COUNTED-EARLY
// COUNTED-EARLY: error: 'exec.advance_steps' op expected to be the last command, so that no failure follows it
// COUNTED-EARLY: note: this command follows
