//===- Passes.td - Passes from level 3 (comm) to level 4 (scheduled) *- tablegen -*-===//
#ifndef STEPC_PASSES_SCHEDULE_PASSES_TD
#define STEPC_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BufferizeProgram : Pass<"comm-bufferize", "::mlir::ModuleOp"> {
  let summary = "One-Shot bufferization of the program, without copies";
  let description = [{
    Destinations become `memref.alloc`; every operation then writes to its destination. It is an error if
    bufferization would have to insert a `memref.copy`: later passes do not support it.

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
    A chain is the program of one segment: operations, collectives, operations, and so on. Operations and the
    collectives after them are a round. The collectives of one wave, round and direction become one
    `comm.start` and its `comm.wait`. Collectives get separate starts if their communicators have no two ranks
    in common, because then no messages would merge. A start is an exchange if it has several kinds of
    collectives, or if different ranks share copies of its values. If its collectives have one communicator,
    the start keeps it. Otherwise it has all axes of their mesh along which any of them moves values, or the
    world if their meshes differ. It is an error if the communicator of a collective lacks ranks of its moves.

    While round r + 1 of a wave travels, round r of the next wave is computed. If waves have one exchange each
    way, the order is: the `in` stages of wave k+1 and the start of its exchange; the wait for wave k, its
    matrix operations and the start of its way back; the wait and the `out` stages of wave k−1. A wave with
    sums over slabs stays in matrix space for many rounds. Two waves of this kind take turns there, and a
    third begins when the first of them leaves matrix space.

    Groups with different numbers of hops do different things in one round. First come chains on the way to
    matrix space, because other ranks wait for their messages. Then come chains that compute, and chains on
    the way back. Both send their results in one start if their ranks meet. Last come stages whose results are
    not sent. Each chain waits only for its own exchanges. Elementwise groups run while the first exchange
    travels. `order` numbers the starts.

    In a round that begins the way back, all chains first do the operations before their products side by
    side. That is, the first operation of each chain comes first, then the second of each, and so on. Then
    each chain does its products, and then all chains do their next operations side by side. So equal
    operations of different chains are next to each other. All results are in memory at one time in any
    order, because they travel together. If the module has `comm.side_by_side`, products stand side by side
    too, in columns of products of one form, as few as cost::columnsOf finds (passes/cost/SideBySide.h). A
    form is the types, the transposes, the symmetry, and whether kernels on warpgroups take the product.
    Chains without exchanges are laid out in the same way. So one launch may serve products of several chains
    (`exec-join-products`). The pass decides nothing: this attribute, the `wave` of each segment and the order
    of the chains fix the whole order. `comm.scalars` come first, and `comm.advance_steps` stays last.

    Remarks: `waves-pipelined` (passed) with the numbers of waves and exchanges; `exchange-exposed` (missed)
    for each exchange whose wait follows at once, because nothing is left to run while it travels.

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
  let summary = "Decide every buffer's offset in one static workspace";
  let description = [{
    A buffer's size is the largest need of any rank. It lives from its first to its last use; sends and
    receives live until the wait. All sends of a start share one buffer, and so do all its receives
    (runtime/plan/Parcels.h). Some batches of blocks also share a buffer, a pool. Operations of one kind,
    side by side, write the batches of a pool first, and operations of one kind, side by side, use them last.
    (Products count as side by side.) If the module has `comm.side_by_side`, buffers of neighbouring products
    of one form live at the same time, so that one launch can serve these products. The size of a pool is the
    most that any one rank needs for all its batches (`comm.buffer`). Buffers get their offsets in decreasing
    order of size, each the lowest offset that is free while it lives. The arena and the scratch that a
    target may use after it (passes/plan/StepScratch.h) together must keep the module's
    `comm.workspace_limit`. The pass only sets attributes: offsets on the allocations, and the bytes of the
    arena on the step.

    Remark (passed) `workspace-assigned`: the arena's bytes, the most scratch that a target may use, and the
    bytes of all buffers side by side.

    ```mlir
    func.func @step() {
      %b = memref.alloc(%n) : memref<?xbf16>
    // becomes
    func.func @step() attributes {comm.arena_bytes = 4096 : i64} {
      %b = memref.alloc(%n) {comm.bytes = 4096 : i64, comm.offset = 0 : i64} : memref<?xbf16>
    ```

    `comm.pool` is the number of an allocation's pool. The batches of a pool are in the order of their
    allocations.
  }];
}

def PlaceBuffers : Pass<"comm-place-buffers", "::mlir::ModuleOp"> {
  let summary = "Replace allocations by parts of the workspace";
  let description = [{
    The pass reads the attributes that `comm-assign-arena` set, and sets the level to scheduled. Errors are:
    the module's `stepc.level` is not comm or scheduled; the step has no `comm.arena_bytes`; an allocation has
    no offset and bytes, or they end outside of the workspace; allocations of one `comm.pool` have different
    offsets or bytes.

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
