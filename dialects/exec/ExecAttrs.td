//===- ExecAttrs.td - Tables, and what commands read and write -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECATTRS_TD
#define STEPC_DIALECTS_EXEC_EXECATTRS_TD

include "dialects/exec/ExecBase.td"
include "dialects/exec/ExecInterfaces.td"
include "dialects/comm/CommAttrs.td"
include "dialects/optim/OptimEnums.td"
include "dialects/optim/OptimInterfaces.td"

def Exec_Accumulation
    : PlanEnumAttr<Exec_Dialect, "::stepc::plan::Accumulation", "Accumulation", "accumulation"> {
  let summary = "in which order a product adds up, and where it rounds";
}

def Exec_Table : Exec_Attr<"Table", "table"> {
  let summary = "rows that every rank makes for itself from the placements (runtime/plan/Tables.h)";
  let description = [{
    ```mlir
    #exec.table<kind = copy, from = <@g0.w0, full, shards to blocks, received>, to = <@g0.w0, full, blocks>,
        element_bytes = 2>
    ```
    Equal attributes are one table. `from` and `to` are the places between which a copy or a message moves.
    For `sum`, `from` is where the contributions lie and `to` where their sums lie. For chunks of shards, `to`
    is the place of the staged operands. If `to` is not given, it equals `from`. A table of kind `message`
    says how many elements of one value go to each peer.
    Constraints: `element_bytes` is 1, 2, 4 or 8 for messages, copies and sums, a multiple of 40 for those of
    parts of lines, and 0 for chunks.
  }];
  let parameters = (ins
    "::stepc::plan::TableKind":$kind,
    "::stepc::comm::PlaceAttr":$from,
    OptionalParameter<"::stepc::comm::PlaceAttr">:$to,
    DefaultValuedParameter<"int64_t", "0">:$element_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_Member : Exec_Attr<"Member", "member"> {
  let summary = "a batch of a pool: the blocks of a segment, and the bytes of each block";
  let description = [{
    ```mlir
    #exec.member<@g0.w0, bytes = 256>
    ```
    Constraints: at least one byte.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$segment, "int64_t":$bytes);
  let assemblyFormat = "`<` $segment `,` `bytes` `=` $bytes `>`";
  let genVerifyDecl = 1;
}

def Exec_Pool : Exec_Attr<"Pool", "pool"> {
  let summary = "a part of the workspace that batches of computed blocks share";
  let description = [{
    On each rank a member begins where the member before it ends on this rank (`plan::RankPool`).
    ```mlir
    #exec.pool<offset = 4096, bytes = 1024, members = [<@g0.w0, bytes = 256>, <@g1.w0, bytes = 64>]>
    ```
    Constraints: an offset that is a multiple of 64 and not negative, and at least one byte.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes, ArrayRefParameter<"MemberAttr">:$members);
  let assemblyFormat =
      "`<` `offset` `=` $offset `,` `bytes` `=` $bytes `,` `members` `=` `[` $members `]` `>`";
  let genVerifyDecl = 1;
}

def Exec_Leading : ArrayRefParameter<"int64_t", "one per operand"> {
  let parser = "[&]() -> ::mlir::FailureOr<::llvm::SmallVector<int64_t>> { "
    "::llvm::SmallVector<int64_t> list; "
    "if (failed($_parser.parseCommaSeparatedList(::mlir::AsmParser::Delimiter::Square, [&] { "
    "return $_parser.parseInteger(list.emplace_back()); }))) return ::mlir::failure(); return list; }()";
  let printer = "$_printer << '['; ::llvm::interleaveComma($_self, $_printer); $_printer << ']'";
}

class Exec_Operand<string name, string mnemonicName>
    : Exec_Attr<name, mnemonicName, [DeclareAttrInterfaceMethods<Exec_OperandInterface>]>;

def Exec_Workspace : Exec_Operand<"Workspace", "workspace"> {
  let summary = "a part of the workspace";
  let description = [{
    Values that travel share the buffer of their start. `start` is the number of the start in the program,
    `traveller` the index of the value in the start's list of tables. runtime/plan/Parcels.h says where in the
    buffer the elements of the value lie.
    ```mlir
    #exec.workspace<offset = 4096, bytes = 1024>
    #exec.workspace<offset = 8192, bytes = 512, start = 0, traveller = 1>
    #exec.workspace<offset = 4096, bytes = 1024, pool = 0, member = 1>
    ```
    A batch may be a member of a pool. `pool` is then the number of the pool in the program, and `member` the
    number of the batch in the pool; offset and bytes are the pool's.
    Constraints: an offset that is a multiple of 64 and not negative, at least one byte, and no negative
    number; a start or a pool, not both.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes,
                        OptionalParameter<"::std::optional<int64_t>">:$start,
                        DefaultValuedParameter<"int64_t", "0">:$traveller,
                        OptionalParameter<"::std::optional<int64_t>">:$pool,
                        DefaultValuedParameter<"int64_t", "0">:$member);
  let builders = [AttrBuilder<(ins "int64_t":$offset, "int64_t":$bytes), [{
    return $_get($_ctxt, offset, bytes, ::std::nullopt, 0, ::std::nullopt, 0);
  }]>];
  let extraClassDeclaration = [{
    /// Whether both have one part of the workspace (a start's buffer or a pool) and share no byte of it.
    bool standsBeside(WorkspaceAttr other) const {
      return (getStart() && getStart() == other.getStart() && getTraveller() != other.getTraveller()) ||
             (getPool() && getPool() == other.getPool() && getMember() != other.getMember());
    }
  }];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_Batch : Exec_Operand<"Batch", "batch"> {
  let summary = "a matrix for each block that a rank computes, in a part of the workspace";
  let description = [{
    ```mlir
    #exec.batch<offset = 4096, bytes = 1024, block = tensor<16x8xbf16>>
    #exec.batch<offset = 4096, bytes = 1024, block = tensor<16x8xbf16>, pool = 0, member = 0>
    ```
    `pool` and `member` of a batch in a pool are as in `#exec.workspace`.
    Constraints: as for `#exec.workspace`; a block of two static axes that are not empty, of f32, bf16 or f16.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes, "::mlir::RankedTensorType":$block,
                        OptionalParameter<"::std::optional<int64_t>">:$pool,
                        DefaultValuedParameter<"int64_t", "0">:$member);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRows() const { return getBlock().getDimSize(0); }
    int64_t getCols() const { return getBlock().getDimSize(1); }
    ::mlir::Type getType() const { return getBlock().getElementType(); }
    ::stepc::plan::Operand toPlan() const;
  }];
}

def Exec_Kernel : Exec_Attr<"Kernel", "kernel"> {
  let summary = "a kernel over `items` items of each computed block";
  let description = [{
    ```mlir
    #exec.kernel<@product_tiles, items = 12>
    ```
    A slot is the number of a block among the blocks that the rank computes. Item i of slot s has the number
    s · items + i.
    Constraints: at least one item.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol, "int64_t":$items);
  let assemblyFormat = "`<` $symbol `,` `items` `=` $items `>`";
  let genVerifyDecl = 1;
}

def Exec_PinnedAlgorithm : Exec_Attr<"PinnedAlgorithm", "pinned_algorithm"> {
  let summary = "an algorithm of cuBLASLt, for one version of it and one GPU";
  let description = [{
    The algorithm computes a product in place of its kernels if three conditions hold: cublasLtGetVersion() is
    `cublaslt`; the GPU is sm_`chip` with that many `multiprocessors`; all operands begin at multiples of
    `alignment` bytes. The other numbers are the algorithm's and its attributes' values
    (cublasLtMatmulAlgoConfigAttributes_t). The algorithm neither splits k nor reduces across such splits.
    `workspace` is the number of bytes of scratch that it may use for all blocks together.
    ```mlir
    #exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16,
        algorithm = 66, tile = 20, stages = 35,
      swizzling = 1, custom_option = 0, inner_shape = 0, cluster_shape = 2, workspace = 4096>
    ```
    Attributes of the algorithm that are not given are 0.
    Constraints: a version, a chip from 80 on and multiprocessors; an alignment that is a power of two up to
    256; no negative number, and no number too large for cuBLASLt's types.
  }];
  let parameters = (ins "::stepc::plan::PinnedAlgorithm":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def Exec_Launch : Exec_Attr<"Launch", "launch"> {
  let summary = "how a GPU starts a kernel";
  let description = [{
    The target sets it on a kernel that it makes, as the discardable attribute `exec.launch`. When the plan
    becomes bytes, it goes into the plan (`plan::LaunchShape`).
    ```mlir
    #exec.launch<threads = 384, cluster = 2, static = 1024, dynamic = 204800>
    ```
    Blocks are thread blocks here. `grid` is `items` (a block for each item), `threads` (a thread for each
    item), `resident` (as many blocks as the chip holds) or `lists` (a cluster for each list of tiles).
    `threads` is the number of threads in a block, `cluster` the number of blocks in a cluster. `static`
    and `dynamic` are bytes of a block's shared memory.
    The defaults are `items`, 1, 1, 0 and 0.
    Constraints: 1 to 1024 threads; 1 to 16 blocks of a cluster; no more bytes than any GPU has.
  }];
  let parameters = (ins "::stepc::plan::LaunchShape":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def Exec_ProductEntry : Exec_Attr<"ProductEntry", "product_entry"> {
  let summary = "an entry of a table of pinned products: which products an algorithm is for";
  let description = [{
    The module's attribute `exec.products` lists all entries of a table. `exec-pin-products` uses the entries
    that fit products of the program. `leading` has the distance between rows, in elements, of each operand:
    left, right, addend (if there is one) and out.
    ```mlir
    #exec.product_entry<m = 48, n = 16, k = 16, lhs = bf16, rhs = bf16, addend = bf16, out = bf16,
        leading = [16, 16, 16, 16],
      algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>>
    ```
    Constraints: extents of at least 1; types that cuBLASLt multiplies (both operands of one type, the out of
    this type or f32, the addend of the out's type); as many leading dimensions as operands, each at least
    as long as a row of its operand.
  }];
  let parameters = (ins "int64_t":$m, "int64_t":$n, "int64_t":$k, "::mlir::Type":$lhs, "::mlir::Type":$rhs,
                        OptionalParameter<"::mlir::Type">:$addend, "::mlir::Type":$out,
                        DefaultValuedParameter<"bool", "false">:$transpose_lhs,
                        DefaultValuedParameter<"bool", "false">:$transpose_rhs,
                        Exec_Leading:$leading, "::stepc::exec::PinnedAlgorithmAttr":$algorithm);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_Scalars : Exec_Operand<"Scalars", "scalars"> {
  let summary = "a table of f32 scalars in the workspace: a row for each parameter of the group";
  let description = [{
    A kernel over parameters writes the rows. A kernel over chunks reads the row of the chunk's parameter.
    ```mlir
    #exec.scalars<offset = 0, columns = 3>
    ```
    Constraints: an offset that is a multiple of 64 and not negative; one to 2^20 columns.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$columns);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_Shards : Exec_Operand<"Shards", "shards"> {
  let summary = "the bound shards of parameters, gradients or a state";
  let description = [{
    ```mlir
    #exec.shards<gradient>
    #exec.shards<state, "m">
    ```
    Constraints: shards that the trainer binds, so not the reduced gradient; for a state the name of a state
    of the rule, for other shards no name.
  }];
  let parameters = (ins "::stepc::plan::ShardsKind":$kind, OptionalParameter<"::mlir::StringAttr">:$state);
  let assemblyFormat = "`<` $kind (`,` $state^)? `>`";
  let genVerifyDecl = 1;
}

def Exec_Line : Exec_Operand<"Line", "line"> {
  let summary = "a copy, in the workspace, of the shards of a value per row, column or block";
  let description = [{
    A kernel over `line_chunks`, `whole_rows` or `whole_columns` reads it. One that reduces also writes one.
    The map by which the kernel's function reads or writes its view says which of the three it is.
    ```mlir
    #exec.line<offset = 4096, bytes = 64>
    ```
    Constraints: an offset that is a multiple of 64 and not negative, and at least one byte.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif
