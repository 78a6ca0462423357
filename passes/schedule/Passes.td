//===- Passes.td - Passes from level 3 (comm) to level 4 (scheduled) *- tablegen -*-===//
#ifndef STEPC_PASSES_SCHEDULE_PASSES_TD
#define STEPC_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BufferizeProgram : Pass<"comm-bufferize", "::mlir::ModuleOp"> {
  let summary = "One-Shot bufferization of the program, without copies";
  let description = [{
    Destinations become `memref.alloc`; every operation then writes to its destination. A copy that bufferization would have to insert is
    an error: past this level there is none.

    ```mlir
    %e = tensor.empty(%n) : tensor<?xbf16>
    %s = comm.stage … outs(%e : tensor<?xbf16>) … -> tensor<?xbf16>
    // becomes
    %e = memref.alloc(%n) : memref<?xbf16>
    comm.stage … outs(%e : memref<?xbf16>) …
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"];
}

def PipelineWaves : Pass<"comm-pipeline-waves", "::mlir::ModuleOp"> {
  let summary = "Merge the exchanges of a wave and overlap waves";
  let description = [{
    A chain is operations, collectives, operations, and so on; operations with the collectives behind them are a round. The
    collectives of one wave and round that are of one direction become one `comm.start` and its `comm.wait`, unless their
    communicators have no two ranks in common: then neither do their messages. A start of several kinds, or of values of
    which different ranks share copies, is an exchange. It is on the communicator of its collectives, where they have one,
    and else on all axes of their mesh along which any of them goes, or of several meshes on the world. A collective's own
    communicator holds the ranks of its moves, or is refused. While one round of a wave travels, the round before of
    the next wave is computed. With two rounds the order is: stages in of wave k+1 and the
    start of its exchange, then the wait for wave k, its matrix operations and the start of the way back, then the
    wait and the stages out of wave k−1. A wave that adds up over slabs stays in matrix space for many rounds: two such
    waves take turns there, and the next one begins when the first of them leaves it. Groups of other numbers of hops are not all
    as far in one round: chains that go on to where blocks are computed come first, because other ranks wait for that; then those that
    compute; then those on their way back, which go on with the results of these, in one start where their ranks meet; and last
    stages behind which nothing is sent. Each waits for its own exchanges alone. Elementwise groups run while the first exchange travels. `order` numbers the
    starts. Of a round that brings results back, all chains do what comes before products side by side, operation by
    operation, then each chain its products, then all of them what comes next: so what chains do alike is next to each
    other. Results travel together, so all of them stand in memory at one time in any order. The pass decides nothing: each
    segment's `wave`, set when blocks were divided, and the order of the chains fix the whole order. Scalars come first and
    `comm.advance_steps` last, as it stood.

    Remarks: `waves-pipelined` (passed) with waves and exchanges; `exchange-exposed` (missed) for each exchange that is
    waited for at once, because nothing is left to run while it travels.

    ```mlir
    %x = comm.communicator <@mesh, [<0, 1, 2>]>
    %y = comm.communicator <@mesh, [<1, 1, 4>]>
    comm.stage @g0_w0 …
    comm.exchange %x sends(%s0 : …) receives(%r0 : …)
    comm.stage @g1_w0 …
    comm.exchange %y sends(%s1 : …) receives(%r1 : …)
    // becomes
    comm.stage @g0_w0 …
    comm.stage @g1_w0 …
    %w = comm.communicator <@mesh, [<0, 1, 2>, <1, 1, 4>]>
    %t = comm.start exchange %w order 0 sends(%s0, %s1 : …) receives(%r0, %r1 : …)
    comm.wait %t
    ```
  }];
}

def AssignArena : Pass<"comm-assign-arena", "::mlir::ModuleOp"> {
  let summary = "Decide every buffer's place in one static workspace";
  let description = [{
    A buffer's size is the largest need of any rank. It lives from its first to its last use; sends and receives live until the wait.
    All sends of a start share one buffer, and all its receives (runtime/plan/Parcels.h). So do batches of blocks that
    operations of one kind, side by side, write first and that such operations use last (or products): they are a pool, as
    large as the most that any rank needs of all together (`comm.buffer`).
    Buffers are placed in decreasing order of size at the lowest offset that is free while they live. The arena
    and the scratch that a target may use behind it (passes/cost/ScratchBound.h) must obey the module's
    `comm.workspace_limit`. Nothing is rewritten: places are attributes of the allocations, and the arena's bytes one of the
    step.

    Remark (passed) `workspace-assigned`: the arena's bytes, the most scratch that a target may use, and the bytes of all buffers side by side.

    ```mlir
    func.func @step() {
      %b = memref.alloc(%n) : memref<?xbf16>
    // becomes
    func.func @step() attributes {comm.arena_bytes = 4096 : i64} {
      %b = memref.alloc(%n) {comm.bytes = 4096 : i64, comm.offset = 0 : i64} : memref<?xbf16>
    ```

    `comm.pool` numbers the pools; in each the allocations stand in their order.
  }];
}

def PlaceBuffers : Pass<"comm-place-buffers", "::mlir::ModuleOp"> {
  let summary = "Replace allocations by their places in the workspace";
  let description = [{
    Follows the attributes that `comm-assign-arena` decided. It is an error when the module's `stepc.level` is another than
    comm or scheduled, when the step has no `comm.arena_bytes`, when an
    allocation has no place, or one that does not end inside of the workspace, or when allocations of one `comm.pool` have
    different places. The program is at level scheduled then.

    ```mlir
    %b = memref.alloc(%n) {comm.bytes = 4096 : i64, comm.offset = 0 : i64} : memref<?xbf16>
    %p0 = memref.alloc(%n0) {comm.bytes = 768 : i64, comm.offset = 4096 : i64, comm.pool = 0 : i64} : memref<?x8x16xbf16>
    %p1 = memref.alloc(%n1) {comm.bytes = 768 : i64, comm.offset = 4096 : i64, comm.pool = 0 : i64} : memref<?x4x16xbf16>
    // becomes
    %b = comm.buffer offset 0 bytes 4096 (%n) : memref<?xbf16>
    %p:2 = comm.buffer offset 4096 bytes 768 (%n0, %n1) : memref<?x8x16xbf16>, memref<?x4x16xbf16>
    ```
  }];
  let dependentDialects = ["::stepc::comm::CommDialect"];
}

#endif
