//===- Passes.td - Passes from level 3 (comm) to level 4 (scheduled) *- tablegen -*-===//
#ifndef STEPC_PASSES_SCHEDULE_PASSES_TD
#define STEPC_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BufferizeProgram : Pass<"comm-bufferize", "::mlir::ModuleOp"> {
  let summary = "One-Shot bufferization of the program, without copies";
  let description = [{
    Destinations become `memref.alloc`; every operation then writes to its destination. It is an error if
    bufferization would have to insert a copy: past this level there is none.

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
    A chain is operations, collectives, operations, and so on. Operations with the collectives behind them are
    a round. The collectives of one wave, round and direction become one `comm.start` and its `comm.wait`.
    They stay apart if their communicators have no two ranks in common, because then no messages merge. A
    start of several kinds of collectives, or of values of which different ranks share copies, is an exchange.
    It is on the communicator of its collectives if they have the same. Otherwise it is on all axes of their
    mesh along which any of them goes, or on the world if their meshes differ. A collective is refused if its
    own communicator lacks ranks of its moves.

    While one round of a wave travels, the round before of the next wave is computed. With two rounds, first
    come the stages in of wave k+1 and the start of its exchange. Then come the wait for wave k, its matrix
    operations and the start of the way back, and last the wait and the stages out of wave k−1. A wave that
    adds up over slabs stays in matrix space for many rounds. Two such waves take turns there, and the next
    one begins when the first of them leaves it.

    Groups with different numbers of hops are at different points in one round. First come chains that go on
    to where blocks are computed, because other ranks wait for that. Then come those that compute, and those
    on their way back, which go on with these results, in one start if their ranks meet. Last come stages
    behind which nothing is sent. Each waits only for its own exchanges. Elementwise groups run while the
    first exchange travels. `order` numbers the starts.

    In a round that brings results back, all chains do what comes before products side by side, operation by
    operation. Then each chain does its products, and then all do what comes next. So operations that chains
    have alike are next to each other. Results travel together, so in any order all of them stand in memory at
    one time. The pass decides nothing: each segment's `wave`, set when blocks were divided, and the order of
    the chains fix the whole order. Scalars come first and `comm.advance_steps` last, as it stood.

    Remarks: `waves-pipelined` (passed) with waves and exchanges; `exchange-exposed` (missed) for each
    exchange that is waited for at once, because nothing is left to run while it travels.

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
    A buffer's size is the largest need of any rank. It lives from its first to its last use; sends and
    receives live until the wait. All sends of a start share one buffer, and so do all its receives
    (runtime/plan/Parcels.h). Batches of blocks may share one as well: those that operations of one kind, side
    by side, write first, and that such operations (or products) use last. They are a pool, as large as the
    most that any rank needs of all together (`comm.buffer`). Buffers are placed in decreasing order of size,
    each at the lowest offset that is free while it lives. The arena, and the scratch that a target may use
    behind it (passes/cost/ScratchBound.h), must obey the module's `comm.workspace_limit`. Nothing is
    rewritten: places are attributes of the allocations, and the arena's bytes one of the step.

    Remark (passed) `workspace-assigned`: the arena's bytes, the most scratch that a target may use, and the
    bytes of all buffers side by side.

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
    Follows the attributes that `comm-assign-arena` decided. It is an error if the module's `stepc.level` is
    not comm or scheduled, or if the step has no `comm.arena_bytes`. So it is if an allocation has no place,
    or one that ends outside of the workspace, or if allocations of one `comm.pool` have different places. The
    program is at level scheduled then.

    ```mlir
    %b = memref.alloc(%n) {comm.bytes = 4096 : i64, comm.offset = 0 : i64} : memref<?xbf16>
    %p0 = memref.alloc(%n0) {comm.bytes = 768 : i64, comm.offset = 4096 : i64, comm.pool = 0 : i64}
        : memref<?x8x16xbf16>
    %p1 = memref.alloc(%n1) {comm.bytes = 768 : i64, comm.offset = 4096 : i64, comm.pool = 0 : i64}
        : memref<?x4x16xbf16>
    // becomes
    %b = comm.buffer offset 0 bytes 4096 (%n) : memref<?xbf16>
    %p:2 = comm.buffer offset 4096 bytes 768 (%n0, %n1) : memref<?x8x16xbf16>, memref<?x4x16xbf16>
    ```
  }];
  let dependentDialects = ["::stepc::comm::CommDialect"];
}

#endif
