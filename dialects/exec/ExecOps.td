//===- ExecOps.td - Operations of the exec dialect -------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECOPS_TD
#define STEPC_DIALECTS_EXEC_EXECOPS_TD

include "dialects/exec/ExecAttrs.td"
include "mlir/IR/SymbolInterfaces.td"

def Exec_Operands : TypedArrayAttrBase<Exec_OperandInterface, "places that a command reads or writes">;
def Exec_Batches : TypedArrayAttrBase<Exec_Batch, "batches of blocks">;
def Exec_Tables : TypedArrayAttrBase<Exec_Table, "tables">;
def Exec_Kernels : TypedArrayAttrBase<Exec_Kernel, "kernels, one after another">;
def Exec_PinnedAlgorithms : TypedArrayAttrBase<Exec_PinnedAlgorithm,
                                              "algorithms, each for another library or GPU">;
def Exec_Pools : TypedArrayAttrBase<Exec_Pool, "pools">;

def Exec_ProgramOp : Exec_Op<"program", [HasParent<"::mlir::ModuleOp">, NoTerminator, SingleBlock,
                                          NoRegionArguments, IsolatedFromAbove]> {
  let summary = "what a step does: commands, in order";
  let description = [{
    Operands are in the workspace or in shards. The workspace is the arena, `arena` bytes for values, and
    after it (at the next multiple of 64) `scratch` bytes that one kernel after another uses. Both sizes are
    equal on all ranks. Chunks (rows of stages' tables) have up to `chunk` elements if they can be cut.
    `pools` are parts of the workspace that several batches share; operands name a pool by its number.
    ```mlir
    exec.program arena 8192 scratch 1536 {
      exec.dispatch_parameters @Muon_scalars of [@g0] [#exec.scalars<offset = 0, columns = 3>]
      exec.advance_steps
    }
    ```
    Constraints: commands only, without attributes that they do not have; neither size is negative; a chunk
    has elements.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$arena,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$scratch,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "plan::kChunkElements">:$chunk,
                       OptionalAttr<Exec_Pools>:$pools);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `arena` $arena (`scratch` $scratch^)? (`chunk` $chunk^)? (`pools` $pools^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

class Exec_CommandOp<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat([HasParent<"ProgramOp">, DeclareOpInterfaceMethods<Exec_CommandInterface>,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Exec_DispatchChunksOp : Exec_CommandOp<"dispatch_chunks"> {
  let summary = "runs a kernel over the chunks of tables";
  let description = [{
    One kernel serves tables of any groups: `args` holds its operands for the first table, then for the
    second, and so on. An operand's offset in the workspace, the row of scalars and the number of a block's
    rows differ between tables. The kernel reads them from the chunk's row of the table. Chunks of parameters
    that a step skips are left out.

    The function of a kernel has one linalg.generic over the rows and columns of a chunk. If it has the
    attribute `exec.reduction`, its region yields terms, and the line that it writes has what this reduction
    makes of the terms of each row or column (`optim.reduce`). The chunks of `whole_rows`
    (`whole_columns`) have all of them. With the attribute `exec.sums` it writes exact sums instead, as many
    for each value, and the chunks of `part_rows` (`part_columns`, `part_blocks`) have what the rank has of
    each row (column, block).
    ```mlir
    exec.dispatch_chunks @Muon_in_f32_bf16
      of [#exec.table<kind = shard_chunks, from = <@g0, full, shards>,
            to = <@g0, full, shards to blocks, sent>>,
          #exec.table<kind = shard_chunks, from = <@g1, full, shards>,
            to = <@g1, full, shards to blocks, sent>>]
      [#exec.shards<gradient>, #exec.workspace<offset = 64, bytes = 1024>,
       #exec.shards<gradient>, #exec.workspace<offset = 1088, bytes = 96>]
    ```
    Constraints: the kernel and the segments exist; at least one table; all tables are of one kind of chunks.
    Every table has as many operands, of the same kinds in the same order. Shards are equal for all tables.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Exec_Tables:$tables, Exec_Operands:$args);
  let assemblyFormat = "$kernel `of` $tables $args attr-dict";
  let hasVerifier = 1;
}

def Exec_DispatchParametersOp : Exec_CommandOp<"dispatch_parameters"> {
  let summary = "runs a kernel over the parameters of groups";
  let description = [{
    Parameters that a step skips are left out. The kernel reads a parameter's record (hyperparameters, step,
    rows, cols, numel: runtime/include/stepc/kernel_abi.h). It writes the parameter's row of its group's
    table of scalars. `args` lists the operands of the first group, then of the second, and so on: the
    table, then numbers of the model that the kernel reads, which are a row of scalars or lines of one value.
    ```mlir
    exec.dispatch_parameters @Muon_scalars of [@g0, @g1]
      [#exec.scalars<offset = 0, columns = 3>, #exec.scalars<offset = 64, columns = 3>]
    exec.dispatch_parameters @AdamW_scalars of [@g2]
      [#exec.scalars<offset = 128, columns = 4>, #exec.line<offset = 192, bytes = 4>]
    ```
    Constraints: the kernel and the groups exist; at least one group; each group has as many operands, of the
    same kinds in the same order, scalars first.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, SymbolRefArrayAttr:$groups, Exec_Operands:$args);
  let assemblyFormat = "$kernel `of` $groups $args attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix space
//===----------------------------------------------------------------------===//

class Exec_BatchOp<string mnemonic> : Exec_CommandOp<mnemonic, [Exec_BatchInterface]> {
  dag common = (ins Exec_Table:$table,
                    DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$scratch,
                    OptionalAttr<Exec_Kernels>:$kernels);
  let hasVerifier = 1;
  code batchDeclaration = "::llvm::SmallVector<::mlir::Attribute> getBatches();";
}

def Exec_ProductOp : Exec_BatchOp<"product"> {
  let summary = "for every computed block: out = alpha · (lhs · rhs) + beta · addend + shift · I";
  let description = [{
    Computes to the last bit what `optim.product` says (dialects/optim/OptimBatchOps.td), in one order of
    accumulation: `fused_chain`, `rounded_chain` or `tensorcore`. The last begins with +0 and adds one
    `mma.sync` of 16 steps of k after another over increasing k, with zeros past the last step. Within an
    `mma.sync` the chip's tensor cores fix the order of additions.
    ```mlir
    exec.product fused_chain of <kind = block_chunks, from = <@g0, full, blocks>>
      <offset = 0, bytes = 256, block = tensor<8x16xbf16>>
      by <offset = 0, bytes = 256, block = tensor<8x16xbf16>>
      to <offset = 256, bytes = 128, block = tensor<8x8xbf16>>
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    ```
    With `joins`, a device may begin the product together with the one before it, in one launch
    (`exec-join-products`). Results are the same.

    A target that has a library of products may run an algorithm of `pinned` instead of the kernels
    (`exec-pin-products`). The algorithm then chooses the order of additions and where it rounds. It uses the
    scratch as its workspace.

    Constraints: the segment exists; a table of `block_chunks`; extents agree; `symmetric` needs a square out,
    and a shift needs `symmetric` and is finite in f32; `tensorcore` needs operands that are both bf16 or both
    f16; the kernels exist. Only products that cuBLASLt computes have `pinned` algorithms, at most one for
    each version, chip and number of multiprocessors. An algorithm needs an alignment of at most 64 bytes,
    which all operands have. A product that joins follows a product of the same types, transposes, symmetry
    and accumulation; neither has algorithms, and the proof finds that none of those that join writes what
    another reads or writes.
  }];
  let arguments = !con((ins Exec_Accumulation:$accumulation, Exec_Batch:$lhs, Exec_Batch:$rhs,
                            OptionalAttr<Exec_Batch>:$addend, Exec_Batch:$out, F64Attr:$alpha, F64Attr:$beta,
                            UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs, UnitAttr:$symmetric,
                            Optim_Shift:$shift, UnitAttr:$joins,
                            OptionalAttr<Exec_PinnedAlgorithms>:$pinned), common);
  let assemblyFormat = [{
    custom<Word>($accumulation) `of` $table $lhs `by` $rhs (`plus` $addend^)? `to` $out (`scratch` $scratch^)?
    (`kernels` $kernels^)? (`pinned` $pinned^)? attr-dict
  }];
  let extraClassDeclaration = batchDeclaration # [{

    /// m, n and k of the product for one block.
    ::std::array<int64_t, 3> getSizes();
    /// Whether tensor cores multiply such operands: both bf16 or both f16.
    static bool tensorCoresTake(mlir::Type lhs, mlir::Type rhs);
    ::llvm::LogicalResult verifyPinned();
  }];
}

def Exec_ApplyOp : Exec_BatchOp<"apply"> {
  let summary = "a function of whole blocks, for every computed block";
  let description = [{
    Computes to the last bit what the function's documentation says (dialects/optim/OptimTensorOps.td).
    ```mlir
    exec.apply #optim.block_reduce<norm> of <kind = block_chunks, from = <@g0, full, blocks>>
      <offset = 0, bytes = 256, block = tensor<8x16xbf16>>
      to <offset = 256, bytes = 4, block = tensor<1x1xf32>>
    ```
    Constraints: the segment exists; a table of `block_chunks`; the function has such an out for such sources;
    the kernels exist.
  }];
  let arguments = !con((ins Optim_BlockFunctionInterface:$function, Exec_Batches:$sources, Exec_Batch:$out),
                       common);
  let assemblyFormat = [{
    $function `of` $table custom<Batches>($sources) `to` $out (`scratch` $scratch^)? (`kernels` $kernels^)?
    attr-dict
  }];
  let extraClassDeclaration = batchDeclaration # [{

    /// One block of each source.
    ::llvm::SmallVector<::mlir::RankedTensorType> getSourceBlocks();
  }];
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

def Exec_CopyOp : Exec_CommandOp<"copy"> {
  let summary = "moves a segment's value between layouts on one rank";
  let description = [{
    ```mlir
    exec.copy #exec.table<kind = copy, from = <@g0, full, shards to blocks, received>,
        to = <@g0, full, blocks>, element_bytes = 2>
      from #exec.workspace<offset = 64, bytes = 1024> to #exec.workspace<offset = 1088, bytes = 1024>
    ```
    A device that does not copy by itself has a `kernel` for it, which `exec-lower-to-target` adds.

    Constraints: the segment exists; a table of kind `copy`. A side is shards if the table's place of it is
    shards at rest, and a part of the workspace otherwise.
  }];
  let arguments = (ins Exec_Table:$table, Exec_OperandInterface:$source, Exec_OperandInterface:$target,
                       OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = "$table `from` $source `to` $target attr-dict";
  let hasVerifier = 1;
}

def Exec_SumOp : Exec_CommandOp<"sum"> {
  let summary = "adds up what ranks contributed to a gradient, or to a value of blocks with slabs";
  let description = [{
    Adds up the contributions, of type `type`, to each element of the table's rows. It adds in f32, in the
    order of the mesh. With a reduction it adds up the exact sums of parts of lines, in no order (`comm.sum`).
    The sum is divided by `divisor` if that is above 1, and rounded once.
    ```mlir
    exec.sum bf16 by 4 #exec.table<kind = sum, from = <@g0, full, gradient_shards to state_shards, received>,
        to = <@g0, full, state_shards, kept>, element_bytes = 2>
      from #exec.workspace<offset = 64, bytes = 1024, start = 0>
      to #exec.workspace<offset = 1088, bytes = 256>
    ```
    `exec-lower-to-target` adds the `kernel`.

    Constraints: the segment exists; a table of kind `sum`, whose `element_bytes` is the type's size or, with
    a reduction, that of its exact sums; a divisor of 1 or more.
  }];
  let arguments = (ins TypeAttrOf<AnyTypeOf<[F32, BF16, F16]>>:$type, I64Attr:$divisor,
                       OptionalAttr<Comm_Reduction>:$reduction, Exec_Table:$table, Exec_Workspace:$source,
                       Exec_Workspace:$target, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = [{
    $type `by` $divisor (`reduces` custom<Word>($reduction)^)? $table `from` $source `to` $target attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_CollectOp : Exec_CommandOp<"collect"> {
  let summary = "adds up a rank's parts of a number of the whole model";
  let description = [{
    Each table lists the parts that a stage of a segment wrote to the source of the same number. Parts of
    parameters that the step skips are left out (`comm.collect`).
    ```mlir
    exec.collect norm
      of [#exec.table<kind = collect, from = <@g0, one, model_parts, kept>, element_bytes = 80>]
      from [#exec.line<offset = 64, bytes = 160>] to #exec.line<offset = 256, bytes = 80>
    ```
    `exec-lower-to-target` adds the `kernel`.

    Constraints: the segments exist; tables of kind `collect`, one for each source, whose `element_bytes` is
    the size of an exact sum or maximum.
  }];
  let arguments = (ins Comm_Reduction:$reduction, Exec_Tables:$tables, Exec_Operands:$sources,
                       Exec_Line:$target, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = [{
    custom<Word>($reduction) `of` $tables `from` $sources `to` $target attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_SkipOp : Exec_CommandOp<"skip"> {
  let summary = "leaves all parameters out of the rest of a step that the model skips";
  let description = [{
    The step is skipped if the number of f32 is not 0 (`comm.skip`).
    ```mlir
    exec.skip when #exec.line<offset = 64, bytes = 4>
    ```
    If kernels run on a GPU, the command has a `kernel`, because the host does not know the number.
    `exec-lower-to-target` adds it.
  }];
  let arguments = (ins Exec_Line:$value, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = "`when` $value attr-dict";
}

def Exec_StartOp : Exec_CommandOp<"start"> {
  let summary = "begins a collective and gives its token";
  let description = [{
    The values of `tables` travel together from one buffer to another, in one message to each peer to which
    any of them goes. The n-th start of the program is collective n on all ranks: n is its number in their one
    total order, and its tag on the wire. `on` says which ranks meet. Without `on` all ranks of the world
    meet.
    ```mlir
    %t = exec.start exchange on <@mesh, [<0, 1, 2>]>
      [#exec.table<kind = message, from = <@g0, full, shards to blocks, sent>,
        to = <@g0, full, shards to blocks, received>, element_bytes = 2>]
      from <offset = 64, bytes = 1024> to <offset = 1088, bytes = 1024>
    ```
    If the host may not touch a device's messages, the command has a `kernel` that writes the seal of each
    message. By the seals ranks find whether they step with equal numbers. `exec-lower-to-target` adds it.

    Constraints: at least one table, of kind `message`, whose segments exist; a communicator's mesh exists and
    the factors divide its axes; the kernel exists.
  }];
  let arguments = (ins Comm_CollectiveKind:$kind, OptionalAttr<Comm_CommunicatorAttr>:$communicator,
                       Exec_Tables:$tables, Exec_Workspace:$source, Exec_Workspace:$target,
                       OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let results = (outs Exec_Token:$token);
  let assemblyFormat = [{
    custom<Word>($kind) (`on` $communicator^)? $tables `from` $source `to` $target attr-dict
  }];
  let hasVerifier = 1;
}

def Exec_AwaitOp : Exec_CommandOp<"await"> {
  let summary = "waits for a collective";
  let description = [{
    ```mlir
    exec.await %t
    ```
    The `kernel` compares the seals of the received messages.

    Constraints: the token of an `exec.start`, awaited once; a kernel that exists, exactly if the start has
    one.
  }];
  let arguments = (ins Exec_Token:$token, OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

def Exec_AdvanceStepsOp : Exec_CommandOp<"advance_steps"> {
  let summary = "counts this step for every parameter that it did not skip";
  let description = [{
    ```mlir
    exec.advance_steps
    ```
    If a device may keep step counts in its own memory, the command has a `kernel` that counts. The kernel
    then makes all parameters active for the next step (`exec.skip`).
    `exec-lower-to-target` adds it.

    Constraints: the last command, so that a step that fails in an earlier command is not counted.
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$kernel);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif
