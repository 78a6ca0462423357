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
    #comm.place<@g0.w0, rows, blocks>                     // a value per row of each block: [?, R, 1]
    #comm.place<@g0.w0, full, shards to blocks, sent>     // this rank's shards, packed per receiver: [?]
    #comm.place<@g0.w0, full, shards to blocks, received> // what this rank received, packed per sender: [?]
    #comm.place<@g0.w0, full, state_shards, kept>         // a copy of this rank's shards: [?]
    #comm.place<@g0.w0, gram, blocks>                     // a Gram matrix, n the smaller of R, C: [?, n, n]
    #comm.place<@g0.w0, [cols, 8], blocks>                // a matrix of other extents: [?, C, 8]
    #comm.place<@g0.w0, gram, parts>                      // per slab, its part of the Gram matrix: [?, n, n]
    #comm.place<@g0.w0, gram, parts to ranges, sent>      // parts, packed for ranks that add them up: [?]
    #comm.place<@g0.w0, gram, ranges, kept>               // the sums of this rank's range of elements: [?]
    #comm.place<@g0.w0, gram, ranges to blocks, sent>     // these sums, for all ranks with slabs: [?]
    #comm.place<@g0.w0, cols, line_parts, kept>           // exact sums of this rank's terms of columns: [?]
    #comm.place<@g0.w0, cols, line_sums, kept>            // results of columns that this rank adds up: [?]
    #comm.place<@g0, scalars>                             // per parameter, on every rank: [n, columns]
    ```
    An extent of a value is `rows`, `cols`, `smaller` (the smaller of the two), or a constant.
    Distributions are `shards`, `blocks` and, in a group with several hops, `hop <k>`: pieces as hop k leaves
    them. If the placements of the gradient or the states are not the parameter's, their shards are
    `gradient_shards` and `state_shards`. Contributions to a partial gradient are added up in
    `reduced_shards`. Equal lists have the name of the first of parameter, gradient, states and reduced
    gradient.
    A group may have slabs. In such a group `blocks` are the slabs. `parts` are what each slab adds to a `one`
    or `gram` value of its whole block. The ranks that have slabs of the same blocks divide the elements of
    these values into as many `ranges`. Each rank adds up the parts of its range, in the order of the ranks.
    Several ranks may have elements of the same rows, columns or blocks. `line_parts` are the exact sums or
    maxima that each of them makes of its own. In `line_sums` each of these values is on one of these ranks,
    in equal flat ranges.
    A move leads from one distribution to another. A `sent` value lies on the ranks that hold the first, a
    `received` value on the ranks that hold the second. The symbol names a segment; for scalars it names a
    group. Shards at rest also have a place, but it is in no tensor's type: shards are `!comm.shards`.
    Constraints: a value at rest or kept has one distribution, which is no hop's; a moving value has two. Only
    values of blocks move, and only shards and ranges are kept. Values of a kind that no state can have are
    in blocks. `one` and `gram` values may also be in parts; they move from parts to ranges, and on to blocks.
    Rows, cols and one values may be kept in line_parts; they move to line_sums, and on to shards.
    (Operations that use the type check a place against its rank and its symbol.)
  }];
  // `place` is the plan's form of the place. The index of its segment is -1, because `symbol` names the
  // segment.
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol, "::stepc::comm::Contents":$contents,
                        "::stepc::plan::Place":$place);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The place of computed blocks: one whole value per block.
    static PlaceAttr blocks(::mlir::FlatSymbolRefAttr segment, plan::ValueKind kind);
    /// The place of the scalars of a group's parameters.
    static PlaceAttr scalars(::mlir::FlatSymbolRefAttr group);
    /// The place of values of blocks with these fields: at one end of a move, or (if `end` says so) not
    /// moving.
    static PlaceAttr packed(::mlir::FlatSymbolRefAttr segment, plan::ValueKind kind, Distribution from,
                            Distribution to, End end);

    /// The place whose plan's form is `place`, with the name of its segment in place of the index.
    static PlaceAttr get(::mlir::FlatSymbolRefAttr segment, const plan::Place &place);

    Distribution getFrom() const { return getPlace().from; }
    Distribution getTo() const { return getPlace().to; }
    End getEnd() const { return getPlace().end; }
    bool isScalars() const { return getContents() == Contents::Scalars; }
    bool isPacked() const { return getPlace().isPacked(); }
    bool isMoving() const { return getPlace().isMoving(); }
    /// True for a batch: a value at rest that has one item per computed block (or slab).
    bool isBatch() const { return !isScalars() && !isPacked(); }
    /// The kind of the value, which gives its shape relative to its block. Full for scalars.
    plan::ValueKind getValue() const { return getPlace().value; }
    /// The number of axes of a buffer in this place.
    int64_t getBufferRank() const { return isScalars() ? 2 : isPacked() ? 1 : 3; }
    /// The plan's form of this place, with `segment` as the index of its segment.
    plan::Place toPlan(int64_t segment) const;
  }];
}

def Comm_CommunicatorAttr : AttrDef<Comm_Dialect, "Communicator"> {
  let mnemonic = "communicator";
  let summary = "the ranks of a mesh that differ along factors of its axes alone";
  let description = [{
    Ranks that differ along the factors alone form a set. The attribute stands for all sets of the mesh: each
    rank meets the other ranks of the set that it is in. A factor `<axis, stride, size>` is as in a hop.

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
    /// `one`, if both are equal. Otherwise the ranks that differ along the whole axes in which one or other
    /// has a factor. Null (the world) if the meshes differ.
    static CommunicatorAttr join(CommunicatorAttr one, CommunicatorAttr other, const plan::Mesh &mesh);
    /// The plan's form of this communicator, with `mesh` as the index of its mesh.
    plan::Communicator toPlan(int64_t mesh) const;
  }];
}

#endif
