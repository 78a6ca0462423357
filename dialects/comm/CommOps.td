//===- CommOps.td - Operations of the comm dialect -------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMOPS_TD
#define STEPC_DIALECTS_COMM_COMMOPS_TD

include "dialects/comm/CommAttrs.td"
include "dialects/comm/CommInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def LineSums : Type<CPred<"::stepc::comm::areLineSums($_self)">, "integers of 32, 320 or 640 bits each">;
def Buffer : AnyTypeOf<[RankedTensorOf<[F32, BF16, F16, LineSums]>, MemRefOf<[F32, BF16, F16, LineSums]>]>;
def StageInput : AnyTypeOf<[Comm_Shards, Buffer]>;
def BufferMemRef : MemRefOf<[F32, BF16, F16, LineSums]>;
def BufferTensor : RankedTensorOf<[F32, BF16, F16, LineSums]>;
def Comm_Placed : NativeOpTrait<"Placed"> {
  let cppNamespace = "::stepc::comm";
}

//===----------------------------------------------------------------------===//
// Symbols and values
//===----------------------------------------------------------------------===//

def Comm_SegmentOp : Comm_Op<"segment", [Symbol, HasParent<"::mlir::ModuleOp">,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "blocks of a group that are handled together";
  let description = [{
    ```mlir
    comm.segment @g0_w1 group @g0 wave 1 blocks [2, 3]
    comm.segment @g1 group @g1 all
    ```
    Block b of a group is block b mod n of its parameter b div n, n blocks per parameter. Segments of one
    `wave` (0 when none is given) are exchanged together.
    Constraints: the group exists; `all` or `blocks`, not both; blocks in range; the wave between 0 and 2^20 −
    1.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$group, OptionalAttr<I64Attr>:$wave,
                       UnitAttr:$all, OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let assemblyFormat = [{
    $sym_name `group` $group (`wave` $wave^)? (`all` $all^)? (`blocks` $blocks^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Comm_WorldOp : Comm_Op<"world", [Pure]> {
  let summary = "the communicator of all ranks of the library's world";
  let results = (outs Comm_Communicator:$result);
  let assemblyFormat = "attr-dict";
}

def Comm_CommunicatorOp : Comm_Op<"communicator", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a communicator of ranks of one mesh";
  let description = [{
    Every rank of the mesh gets the communicator of the ranks that differ from it only along the factors.
    ```mlir
    %c = comm.communicator <@world, [<1, 1, 4>]>
    ```
    Constraints: the mesh exists; the factors divide its axes, and no two of them overlap.
  }];
  let arguments = (ins Comm_CommunicatorAttr:$ranks);
  let results = (outs Comm_Communicator:$result);
  let assemblyFormat = "$ranks attr-dict";
}

def Comm_ShardsOp : Comm_Op<"shards", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the bound shards of a group's parameters, gradients or one of their states";
  let description = [{
    ```mlir
    %m = comm.shards state @g0 "m" : !comm.shards<@g0, f32>
    ```
    Constraints: the group exists, and the type names it; `state` shards name a state of the group's rule and
    have its type, other shards name none. (The distribution in the type is checked when the plan is built.)
  }];
  let arguments = (ins Comm_ShardsKind:$kind, FlatSymbolRefAttr:$group, OptionalAttr<StrAttr>:$state);
  let results = (outs Comm_Shards:$result);
  let assemblyFormat = "custom<Word>($kind) $group ($state^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

class Comm_HandleOp<string mnemonic, Type type>
    : Comm_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let results = (outs type:$result);
  let assemblyFormat = "attr-dict";
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      set(getResult(), "}] # mnemonic # [{");
    }
  }];
}

def Comm_HyperparametersOp : Comm_HandleOp<"hyperparameters", Comm_Hyperparameters> {
  let summary = "the hyperparameters of all parameters, as bound";
  let description = [{
    For each parameter the value holds as many f64 as its rule has hyperparameters. They may change between
    steps.
    ```mlir
    %hyperparameters = comm.hyperparameters
    ```
  }];
}

def Comm_StepsOp : Comm_HandleOp<"steps", Comm_Steps> {
  let summary = "how many steps each parameter took";
  let description = [{
    ```mlir
    %steps = comm.steps
    ```
  }];
}

def Comm_ActiveOp : Comm_HandleOp<"active", Comm_Active> {
  let summary = "which parameters take this step";
  let description = [{
    One flag per parameter, the same on all ranks. If a parameter is skipped (`missing_grad = skip`), neither
    it nor its states nor its step count change.
    ```mlir
    %active = comm.active
    ```
  }];
}

def Comm_SkipOp : Comm_Op<"skip", [Comm_Placed, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "leaves all parameters out of the rest of a step that the model skips";
  let description = [{
    If the value is not 0, the result has no active parameter, so nothing changes and no step is counted.
    Every rank has the same value.
    ```mlir
    %rest = comm.skip active %active when %s : tensor<?xf32, #comm.place<@model, one, shards, kept>>
    ```
    Constraints: a kept value of f32 and kind one of shards. (The proof checks that the value is the model's,
    and that all that a skipped step must not change is written behind this operation.)
  }];
  let arguments = (ins Comm_Active:$active, Buffer:$value);
  let results = (outs Comm_Active:$rest);
  let assemblyFormat = "`active` $active `when` $value `:` type($value) attr-dict";
  let extraClassDeclaration = [{
    ::mlir::FlatSymbolRefAttr getSegmentAttr() { return placeOf(getValue()).getSymbol(); }
  }];
  let hasVerifier = 1;
}

def Comm_AdvanceStepsOp : Comm_Op<"advance_steps", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "counts this step for every active parameter";
  let description = [{
    Each parameter has one step count, even if several groups have blocks of the parameter. So one operation
    counts for all groups.
    ```mlir
    comm.advance_steps %steps active %active
    ```
    Constraints (level 4): one in a step, after all operations that read the counts or can fail.
  }];
  let arguments = (ins Comm_Steps:$steps, Comm_Active:$active);
  let assemblyFormat = "$steps `active` $active attr-dict";
}

def Comm_ExtentOp : Comm_Op<"extent", [Pure, Comm_Placed, SymbolUserOpInterface]> {
  let summary = "this rank's number of elements in a place";
  let description = [{
    For a batch, the number is that of the blocks which the rank computes. The number differs between ranks.
    ```mlir
    %n = comm.extent <@g0, full, shards to blocks, sent>
    ```
    Constraints: the segment exists; no place of scalars, because the type of scalars fixes their size.
  }];
  let arguments = (ins Comm_Place:$place);
  let results = (outs Index:$result);
  let assemblyFormat = "$place attr-dict";
  let hasVerifier = 1;
}

def Comm_BufferOp : Comm_Op<"buffer", [Pure, Comm_Placed, SymbolUserOpInterface]> {
  let summary = "memory of the static workspace (level 4)";
  let description = [{
    `offset` and `bytes` are equal on all ranks; `bytes` is the largest need of any rank. `extents` are the
    rank's dynamic sizes. Packed values share the bytes of all that one `comm.start` sends, or of all that it
    receives. They are views of one buffer. runtime/plan/Parcels.h says where in the buffer the elements of
    each value lie.
    ```mlir
    %b = comm.buffer offset 4096 bytes 1024 (%n)
        : memref<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>
    ```
    A buffer with several results is a pool: batches of blocks that share these bytes. On each rank a batch
    begins where the batch before it ends on this rank, at a multiple of 64. So the size of a pool is the most
    that any one rank needs for all its batches.
    ```mlir
    %p:2 = comm.buffer offset 8192 bytes 2048 (%n0, %n1)
      : memref<?x8x16xbf16, #comm.place<@g0, full, blocks>>,
          memref<?x32x16xbf16, #comm.place<@g1, full, blocks>>
    ```
    Constraints: a place; an offset that is a multiple of 64 and not negative, at least one byte; one extent
    per dynamic dimension, which is the comm.extent of the place. Several results must be batches, whose only
    dynamic dimension is the number of blocks.
  }];
  let arguments = (ins I64Attr:$offset, I64Attr:$bytes, Variadic<Index>:$extents);
  let results = (outs Variadic<AnyMemRef>:$views);
  let assemblyFormat = "`offset` $offset `bytes` $bytes (`(` $extents^ `)`)? attr-dict `:` type($views)";
  let extraClassDeclaration = [{
    bool isPool() { return getViews().size() > 1; }
    /// The extents that are the dynamic sizes of `view`, one of the results.
    ::mlir::ValueRange getExtentsOf(::mlir::Value view);
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

class Comm_DpsOp<string mnemonic, list<Trait> traits = []>
    : Comm_Op<mnemonic, !listconcat([Comm_Placed], traits, [DestinationStyleOpInterface,
        SymbolUserOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>])>;

def Comm_YieldOp : Comm_Op<"yield", [Pure, Terminator, ReturnLike,
                                     ParentOneOf<["StageOp", "ScalarsOp"]>]> {
  let summary = "values of one element, or of one parameter";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Comm_ScalarsOp : Comm_DpsOp<"scalars", [IsolatedFromAbove,
                                             SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "per-parameter scalars of a step, in f64, rounded once to f32";
  let description = [{
    The region runs once per active parameter of the group that the table's place names. Its arguments (all
    f64) are the rule's hyperparameters, the number of this step (the steps that the parameter took, plus
    one), rows, cols, numel, then the numbers of the model that the operand `numbers` list. These are f32,
    widened. It yields f64, one for each column of the table. `init` is this table: [parameters of the group,
    columns].
    ```mlir
    %t = comm.scalars of %hyperparameters, %steps active %active
        outs(%init : tensor<4x1xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield %lr : f64
    } -> tensor<4x1xf32, #comm.place<@g0, scalars>>
    ```
    Constraints: a place of scalars; as many arguments as the rule has hyperparameters plus four, and one for
    each number; as many yields as columns. Numbers are of f32: a table of scalars of one parameter, or one
    value of shards that is kept.
  }];
  let arguments = (ins Comm_Hyperparameters:$hyperparameters, Comm_Steps:$steps, Comm_Active:$active,
                       Variadic<Buffer>:$numbers, Buffer:$init);
  let results = (outs Optional<BufferTensor>:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `of` $hyperparameters `,` $steps `active` $active (`numbers` `(` $numbers^ `:` type($numbers) `)`)?
    `outs` `(` $init `:` type($init) `)` attr-dict-with-keyword $body (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    ::mlir::FlatSymbolRefAttr getGroupAttr() { return placeOf(getInit()).getSymbol(); }
    /// How many numbers an operand of `numbers` has.
    static int64_t countOf(::mlir::Value numbers);
    ::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &symbols);
  }];
  let hasVerifier = 1;
}

def Comm_StageOp : Comm_DpsOp<"stage", [IsolatedFromAbove, AttrSizedOperandSegments,
                                        SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the one elementwise operation: a scalar region over a segment's elements";
  let description = [{
    Over `shards` (or `gradient_shards`, `state_shards`) the stage visits every element that this rank holds
    of the segment's blocks in that distribution, for active parameters. Staged operands give or take the same
    element of the block. They are packed or kept values on the same ranks, or whole blocks. An input may also
    be a *line*: a kept copy of a rows, cols or one value, of which the element's row, column or block has one
    number. Over `blocks` the
    stage visits every element of the rank's computed blocks. Operands are batches and broadcast: [?, R, C],
    [?, R, 1], [?, 1, C] or [?, 1, 1]. Region arguments: one per input (its element type), then the columns
    of the scalar table (f32) for the element's parameter. Yields: one per operand of `writes`, then one per
    out.

    A stage over shards may visit a rows, cols or one value in place of a full one (`of rows`): each number
    that the rank holds of it. Its shard operands are of this kind, its lines of other kinds.

    A stage over shards that `reduces` yields the terms of reductions, of f32. Its one out is a line, and each
    number of it is what `optim.reduce` makes of the terms of this row or column. A rank has all elements of
    each of these rows (columns). If several ranks have elements of the same row, column or block, the out is
    in `line_parts`: each number of it is the exact sum of the rank's terms, an integer of 320 bits, or of 640
    bits for the squares of a norm or rms, or their maximum, of 32 bits. A number of several such sums counts
    as one wide integer.

    If the out is in `model_parts`, the stage adds up what the rank's elements add to a number of the whole
    model: a few exact sums or maxima for each block (`comm.collect`). Of ranks with copies of an element one
    alone has it in its sums.

    An element is read before it is written, so an input may also be written. A batch has room for the longest
    slab. If a stage over shards writes a batch of slabs, the elements behind a shorter slab keep their
    values.
    ```mlir
    %u = comm.stage @g0 over shards active %active
        ins(%g, %m : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>)
        writes(%m : !comm.shards<@g0, f32>)
        outs(%init : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>)
        scalars(%t : tensor<4x1xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%a: f32, %b: f32, %mu: f32):
      %0 = arith.mulf %mu, %b : f32
      %1 = arith.addf %0, %a : f32
      %2 = arith.truncf %1 : f32 to bf16
      comm.yield %1, %2 : f32, bf16
    } -> tensor<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>
    %r = comm.stage @g0 over shards reduces mean active %active ins(%g : !comm.shards<@g0, f32>)
        outs(%line : tensor<?xf32, #comm.place<@g0, rows, shards, kept>>) {
    ^bb0(%a: f32):
      %0 = arith.mulf %a, %a : f32
      comm.yield %0 : f32
    } -> tensor<?xf32, #comm.place<@g0, rows, shards, kept>>
    ```
    Constraints: argument and yield types as above. `of` and `reduces` only over shards, and not both. What
    reduces reads full values, writes no shards and has one out: a line of f32 with a number per row or
    column, or exact sums or maxima with a number per row, column or block. Over shards, a stage has active
    flags, and its shard operands and lines have the distribution that it visits. Over blocks, it has neither
    flags nor shard operands. The place of every staged operand names the segment and is addressable from the
    visited distribution. The scalars are those of the segment's group. Over blocks,
    operands that are not 1 along an axis agree on it,
    and outs have that extent. One result per out tensor.
  }];
  let arguments = (ins FlatSymbolRefAttr:$segment, Comm_Iteration:$iteration, Variadic<StageInput>:$ins,
                       Variadic<Comm_Shards>:$writes, Variadic<Buffer>:$outs, Optional<Buffer>:$scalars,
                       Optional<Comm_Active>:$active, OptionalAttr<Comm_Walked>:$walked,
                       OptionalAttr<Comm_Reduction>:$reduction);
  let results = (outs Variadic<BufferTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $segment `over` custom<Word>($iteration) (`of` custom<Word>($walked)^)?
    (`reduces` custom<Word>($reduction)^)? (`active` $active^)?
    (`ins` `(` $ins^ `:` type($ins) `)`)? (`writes` `(` $writes^ `:` type($writes) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? (`scalars` `(` $scalars^ `:` type($scalars) `)`)?
    attr-dict-with-keyword $body (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// The distribution whose elements the stage visits.
    plan::Distribution getVisited() { return getIteration(); }
    /// Inputs and outs with a place, except for lines.
    ::llvm::SmallVector<::mlir::Value> getStaged();
    /// The kind of the values whose elements the stage visits.
    plan::ValueKind getKind() { return getWalked().value_or(plan::ValueKind::Full); }
    /// Over shards: whether an input is a copy of a rows, cols or one value of which an element that the
    /// stage visits has one number, or an out is a line to which the stage reduces.
    bool isLine(::mlir::Value operand);
    /// Whether an operand is the line to which the stage reduces.
    bool isReduced(::mlir::Value operand) {
      return getReduction() && ::llvm::is_contained(getOuts(), operand);
    }
    ::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &symbols);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Comm_CopyOp : Comm_DpsOp<"copy", [AttrSizedOperandSegments]> {
  let summary = "moves a segment's value from one place to another on one rank";
  let description = [{
    ```mlir
    %x = comm.copy ins(%r : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, received>>)
      outs(%init : tensor<?x8x16xbf16, #comm.place<@g0, full, blocks>>)
      -> tensor<?x8x16xbf16, #comm.place<@g0, full, blocks>>
    comm.copy active %active ins(%v : tensor<?xf32, #comm.place<@g0, rows, blocks to shards, received>>)
        writes(%s : !comm.shards<@g0, f32>)
    %k = comm.copy active %active ins(%g : !comm.shards<@g0, f32>)
        outs(%init : tensor<?xf32, #comm.place<@g0, full, state_shards, kept>>)
      -> tensor<?xf32, #comm.place<@g0, full, state_shards, kept>>
    ```
    One side may be a `!comm.shards` (of the value's kind); the place of the other side names the segment.
    Then only shards of active parameters are copied. A copy between two distributions needs ranks that hold
    by the first all that they must hold by the second. The proof (passes/verify) checks this for every rank.
    Constraints: at least one side has a place; active flags if a side is shards, and only then. Both places
    name one segment and have one kind. A `sent` value is no source, and a `received` value is no target. If a
    side is an end of a move, both sides lie in the distribution of that end; but from a hop's received pieces
    a copy may lead to blocks. Equal element types.
  }];
  let arguments = (ins StageInput:$source, Optional<Comm_Shards>:$target, Optional<Buffer>:$init,
                       Optional<Comm_Active>:$active);
  let results = (outs Optional<BufferTensor>:$result);
  let assemblyFormat = [{
    (`active` $active^)? `ins` `(` $source `:` type($source) `)`
    (`writes` `(` $target^ `:` type($target) `)`)?
    (`outs` `(` $init^ `:` type($init) `)`)? attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    ::mlir::Value getDestination() { return getTarget() ? ::mlir::Value(getTarget()) : getInit(); }
    /// The place of the source or, if the source is shards, that of the destination.
    PlaceAttr getPlace();
    ::mlir::FlatSymbolRefAttr getSegmentAttr() { return getPlace().getSymbol(); }
    /// The plan's form of the places of source and destination, with `segment` as the index of their segment.
    ::std::pair<plan::Place, plan::Place> getPlaces(int64_t segment);
  }];
  let hasVerifier = 1;
}

def Comm_SumOp : Comm_DpsOp<"sum"> {
  let summary = "adds up what ranks contributed to a gradient, to a line, or to a value of blocks with slabs";
  let description = [{
    If a gradient is partial along axes of the mesh, each rank along these axes has a contribution. If a block
    has slabs, each rank with a slab has a part of the block's values, and adds up one range of elements.
    The received contributions or parts are added up in f32 in the order of the mesh (row-major along these
    axes). The sum is divided by `divisor` if that is above 1, and rounded once to the type of the
    contributions.
    ```mlir
    %g = comm.sum by 4
      ins(%r : tensor<?xbf16, #comm.place<@g0, full, gradient_shards to state_shards, received>>)
      outs(%init : tensor<?xbf16, #comm.place<@g0, full, state_shards, kept>>)
      -> tensor<?xbf16, #comm.place<@g0, full, state_shards, kept>>
    ```

    If ranks have parts of the same lines (`line_parts`), the exact sums of their parts are added up, in no
    order. The out has what the reduction makes of them, for lines of `divisor` terms.
    ```mlir
    %m = comm.sum by 4096 reduces mean
      ins(%r : tensor<?xi320, #comm.place<@g0, cols, line_parts to line_sums, received>>)
      outs(%init : tensor<?xf32, #comm.place<@g0, cols, line_sums, kept>>)
      -> tensor<?xf32, #comm.place<@g0, cols, line_sums, kept>>
    ```
    Constraints: the source is received, and the out is kept in the distribution to which the source moved.
    Both are full values of one segment, or parts and ranges (or sums) of one kind; equal element types,
    except that exact sums become f32; `reduces` for these, and for these alone; a divisor of 1 or more. (The
    plan's checks compare distributions and divisor with the group's placements.)
  }];
  let arguments = (ins I64Attr:$divisor, OptionalAttr<Comm_Reduction>:$reduction, Buffer:$source,
                       Buffer:$init);
  let results = (outs Optional<BufferTensor>:$result);
  let assemblyFormat = [{
    `by` $divisor (`reduces` custom<Word>($reduction)^)? `ins` `(` $source `:` type($source) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    ::mlir::FlatSymbolRefAttr getSegmentAttr() { return placeOf(getSource()).getSymbol(); }
  }];
  let hasVerifier = 1;
}

def Comm_CollectOp : Comm_DpsOp<"collect"> {
  let summary = "adds up a rank's parts of a number of the whole model";
  let description = [{
    The sources are exact sums (of max: maxima) that stages over shards made. The result is their sum, the
    rank's part of a value that the ranks of the model's group have in common. Parts of parameters that the
    step skips are left out.
    ```mlir
    %p = comm.collect norm active %active
        ins(%a, %b : tensor<?xi640, #comm.place<@g0, one, model_parts, kept>>,
                     tensor<?xi640, #comm.place<@g1, one, model_parts, kept>>)
        outs(%init : tensor<?xi640, #comm.place<@model, one, line_parts, kept>>)
        -> tensor<?xi640, #comm.place<@model, one, line_parts, kept>>
    ```
    Constraints: kept sources in `model_parts`, a kept out in `line_parts`, of kind one; each is one exact sum
    or maximum of the reduction.
  }];
  let arguments = (ins Comm_Reduction:$reduction, Comm_Active:$active, Variadic<Buffer>:$sources,
                       Buffer:$init);
  let results = (outs Optional<BufferTensor>:$result);
  let assemblyFormat = [{
    custom<Word>($reduction) `active` $active `ins` `(` $sources `:` type($sources) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    ::mlir::FlatSymbolRefAttr getSegmentAttr() { return placeOf(getInit()).getSymbol(); }
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class Comm_CollectiveOp<string mnemonic> : Comm_DpsOp<mnemonic,
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<Comm_CollectiveInterface>]> {
  let arguments = (ins Comm_Communicator:$communicator, Variadic<Buffer>:$sends, Variadic<Buffer>:$receives);
  let results = (outs Variadic<BufferTensor>:$results);
  let assemblyFormat = [{
    $communicator `sends` `(` ($sends^ `:` type($sends))? `)`
    `receives` `(` ($receives^ `:` type($receives))? `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getReceivesMutable(); }
  }];
}

def Comm_ExchangeOp : Comm_CollectiveOp<"exchange"> {
  let summary = "each rank sends exact sizes to the ranks that need them, in one grouped send and receive";
  let description = [{
    ```mlir
    %r = comm.exchange %w sends(%s : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>)
      receives(%i : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, received>>)
      -> tensor<?xbf16, #comm.place<@g0, full, shards to blocks, received>>
    ```
    Constraints: those of the collective interface.
  }];
}

def Comm_AllGatherOp : Comm_CollectiveOp<"all_gather"> {
  let summary = "every rank receives every piece; a rank sends the same bytes to all";
  let description = [{
    ```mlir
    %r = comm.all_gather %w sends(%s : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>)
      receives(%i : tensor<?xbf16, #comm.place<@g0, full, shards to blocks, received>>)
      -> tensor<?xbf16, #comm.place<@g0, full, shards to blocks, received>>
    ```
    Constraints: those of the collective interface.
  }];
}

def Comm_StartOp : Comm_Op<"start", [AttrSizedOperandSegments, Comm_Placed,
      DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
      DeclareOpInterfaceMethods<Comm_CollectiveInterface>, SymbolUserOpInterface]> {
  let summary = "begins a collective and gives its token (level 4)";
  let description = [{
    `order` is the collective's number in the one total order of all ranks, and its tag on the wire. Before
    the token is waited for, sends must not change and receives must not be read. One message goes to each
    peer, so all sends share one part of the workspace, and all receives share another.
    ```mlir
    %t = comm.start exchange %w order 0
        sends(%s : memref<?xbf16, #comm.place<@g0, full, shards to blocks, sent>>)
      receives(%r : memref<?xbf16, #comm.place<@g0, full, shards to blocks, received>>)
    ```
    Constraints: those of the collective interface; memrefs; one comm.wait for the token, in the same block.
  }];
  let arguments = (ins Comm_CollectiveKind:$kind, Comm_Communicator:$communicator, I64Attr:$order,
                       Variadic<BufferMemRef>:$sends, Variadic<BufferMemRef>:$receives);
  let results = (outs Comm_Token:$token);
  let assemblyFormat = [{
    custom<Word>($kind) $communicator `order` $order `sends` `(` ($sends^ `:` type($sends))? `)`
    `receives` `(` ($receives^ `:` type($receives))? `)` attr-dict
  }];
  let hasVerifier = 1;
}

def Comm_WaitOp : Comm_Op<"wait", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "waits until the collective that gave the token is complete";
  let arguments = (ins Comm_Token:$token);
  let assemblyFormat = "$token attr-dict";
}

#endif
