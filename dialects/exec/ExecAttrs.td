//===- ExecAttrs.td - Tables, and what commands read and write -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECATTRS_TD
#define STEPC_DIALECTS_EXEC_EXECATTRS_TD

include "dialects/exec/ExecBase.td"
include "dialects/exec/ExecEnums.td"
include "dialects/exec/ExecInterfaces.td"
include "dialects/comm/CommAttrs.td"
include "dialects/optim/OptimEnums.td"

def Exec_Table : Exec_Attr<"Table", "table"> {
  let summary = "rows that every rank makes for itself from the placements (runtime/plan/Tables.h)";
  let description = [{
    ```mlir
    #exec.table<kind = copy, from = <@g0.w0, full, shards to blocks, received>, to = <@g0.w0, full, blocks>, element_bytes = 2>
    ```
    Equal attributes are one table. `from` and `to` are the places between which a copy or a message moves; of `shard_chunks`,
    `to` is where the staged operands stand. Without `to` it is `from`. `element_bytes` is for messages and copies.
  }];
  let parameters = (ins
    EnumParameter<Exec_TableKind>:$kind,
    "::stepc::comm::PlaceAttr":$from,
    OptionalParameter<"::stepc::comm::PlaceAttr">:$to,
    DefaultValuedParameter<"int64_t", "0">:$element_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

class Exec_Operand<string name, string mnemonicName>
    : Exec_Attr<name, mnemonicName, [DeclareAttrInterfaceMethods<Exec_OperandInterface>]>;

def Exec_Workspace : Exec_Operand<"Workspace", "workspace"> {
  let summary = "a part of the workspace";
  let description = [{
    ```mlir
    #exec.workspace<offset = 4096, bytes = 1024>
    ```
    Constraints: the offset a multiple of 64, and neither negative.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_Scalars : Exec_Operand<"Scalars", "scalars"> {
  let summary = "a table of scalars in the workspace: of each parameter of the group, f32 columns";
  let description = [{
    A kernel over parameters writes the rows, one over chunks reads that of the chunk's parameter.
    ```mlir
    #exec.scalars<offset = 0, columns = 3>
    ```
    Constraints: the offset a multiple of 64 and not negative, nor the columns.
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
    Constraints: a name for a state only, one of the rule's.
  }];
  let parameters = (ins EnumParameter<Comm_ShardsKind>:$kind, OptionalParameter<"::mlir::StringAttr">:$state);
  let assemblyFormat = "`<` $kind (`,` $state^)? `>`";
  let genVerifyDecl = 1;
}

def Exec_BlockRows : Exec_Operand<"BlockRows", "block_rows"> {
  let summary = "the number of rows of the group's blocks";
  let assemblyFormat = "";
}

#endif
