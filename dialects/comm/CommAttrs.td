//===- CommAttrs.td - Where a value stands ---------------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMATTRS_TD
#define STEPC_DIALECTS_COMM_COMMATTRS_TD

include "dialects/comm/CommBase.td"

def Comm_Place : AttrDef<Comm_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "where the elements of a staged value stand";
  let description = [{
    The encoding of every staged tensor, and from bufferization on the memory space of its buffer. Level 5
    strips it.

    ```mlir
    #comm.place<@g0.w0, full, blocks>                     // each computed block, whole: [?, R, C]
    #comm.place<@g0.w0, rows, blocks>                     // a value per row of each: [?, R, 1]
    #comm.place<@g0.w0, full, shards to blocks, sent>     // this rank's shards, packed per receiver: [?]
    #comm.place<@g0.w0, full, shards to blocks, received> // packed per sender: [?]
    #comm.place<@g0.w0, full, state_shards, kept>         // a copy of this rank's shards: [?]
    #comm.place<@g0.w0, gram, blocks>                     // a Gram matrix, n the smaller of R, C: [?, n, n]
    #comm.place<@g0.w0, [cols, 8], blocks>                // of other extents: [?, C, 8]
    #comm.place<@g0.w0, gram, parts>                      // per slab, its part of the Gram matrix: [?, n, n]
    #comm.place<@g0.w0, gram, parts to ranges, sent>      // these, packed for those that add them up: [?]
    #comm.place<@g0.w0, gram, ranges, kept>               // the sums of this rank's range of elements: [?]
    #comm.place<@g0.w0, gram, ranges to blocks, sent>     // these, for all ranks with slabs: [?]
    #comm.place<@g0, scalars>                             // per parameter, on every rank: [n, columns]
    ```
    An extent of a value is `rows`, `cols`, the `smaller` of these, or a constant.
    Distributions are `shards`, `blocks` and, in a group with several hops, `hop <k>`: pieces as hop k leaves
    them. If the placements of the gradient or the states are not the parameter's, their shards are
    `gradient_shards` and `state_shards`. Contributions to a partial gradient are added up in
    `reduced_shards`. Equal lists have the name of the first of parameter, gradient, states and reduced
    gradient.
    A group may have slabs. `blocks` then are these slabs, and `parts` are what ranks add to `one` and `gram`
    values of whole blocks. The ranks that have slabs of the same blocks add up these parts together: each
    adds up one of as many `ranges` of all elements, in the order of the ranks.
    A move leads from one distribution to another. What is sent stands with the holders of the first, what is
    received with those of the second. The symbol names a segment; for scalars it names a group. Shards at
    rest also have a place, but no tensor has it as its type: they are `!comm.shards`.
    Constraints: what is at rest or kept has one distribution, which is no hop's; a move has two. Only
    values of blocks move, and only shards and ranges are kept. Values that no state can have stand in
    blocks, and one and gram values in parts; they move from there to ranges, and from these to blocks.
    (Operations that use the type check a place against its rank and its symbol.)
  }];
  // The place is the plan's, without the number of a segment.
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol, "::stepc::comm::Contents":$contents,
                        "::stepc::plan::Place":$place);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Computed blocks, each whole.
    static PlaceAttr blocks(::mlir::FlatSymbolRefAttr segment, plan::ValueKind kind);
    /// The scalars of a group's parameters.
    static PlaceAttr scalars(::mlir::FlatSymbolRefAttr group);
    /// An end of a move.
    static PlaceAttr packed(::mlir::FlatSymbolRefAttr segment, plan::ValueKind kind, Distribution from,
                            Distribution to, End end);

    /// The place of values that the plan's form stands for, with the name of its segment.
    static PlaceAttr get(::mlir::FlatSymbolRefAttr segment, const plan::Place &place);

    Distribution getFrom() const { return getPlace().from; }
    Distribution getTo() const { return getPlace().to; }
    End getEnd() const { return getPlace().end; }
    bool isScalars() const { return getContents() == Contents::Scalars; }
    bool isPacked() const { return getPlace().isPacked(); }
    bool isMoving() const { return getPlace().isMoving(); }
    /// One item per computed block: batches at rest.
    bool isBatch() const { return !isScalars() && !isPacked(); }
    /// The shape of a value relative to its block. Full for scalars.
    plan::ValueKind getValue() const { return getPlace().value; }
    /// The number of axes that a buffer has there.
    int64_t getBufferRank() const { return isScalars() ? 2 : isPacked() ? 1 : 3; }
    /// The plan's form, with the segment as an index.
    plan::Place toPlan(int64_t segment) const;
  }];
}

def Comm_CommunicatorAttr : AttrDef<Comm_Dialect, "Communicator"> {
  let mnemonic = "communicator";
  let summary = "the ranks of a mesh that differ along factors of its axes alone";
  let description = [{
    Each rank of the mesh stands in one such set of ranks, and the attribute is all of these sets at once: a
    rank meets the others of its own set. A factor `<axis, stride, size>` is as in a hop.

    ```mlir
    #comm.communicator<@world, [<0, 1, 2>, <1, 1, 4>]> // of a mesh of 2 x 4: all of its ranks
    #comm.communicator<@world, [<1, 1, 2>]>            // neighbours along the second axis, two by two
    #comm.communicator<@world, []>                     // each rank alone
    ```
    (Operations that use it check that the mesh exists and that the factors divide its axes.)
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        OptionalArrayRefParameter<"::stepc::plan::Factor">:$factors);
  let assemblyFormat = "`<` $mesh `,` custom<Factors>($factors) `>`";
  let extraClassDeclaration = [{
    /// Either, if they are equal; otherwise the axes along which either goes.
    /// Null (the world) if the meshes differ.
    static CommunicatorAttr join(CommunicatorAttr one, CommunicatorAttr other, const plan::Mesh &mesh);
    /// With the mesh as an index.
    plan::Communicator toPlan(int64_t mesh) const;
  }];
}

#endif
