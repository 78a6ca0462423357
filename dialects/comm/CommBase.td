//===- CommBase.td - The comm dialect --------------------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMBASE_TD
#define STEPC_DIALECTS_COMM_COMMBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "dialects/optim/PlanEnums.td"

def Comm_Dialect : Dialect {
  let name = "comm";
  let cppNamespace = "::stepc::comm";
  let summary = "One program for all ranks: stages over shards, exchanges, waves, workspace";
  let description = [{
    Levels 3 and 4 of the ladder. A program is one `func.func @step()` that every rank runs; what differs
    between ranks is data, expanded from placements and owners (runtime/plan/Tables.h).

    - A *segment* is the blocks of a group that are handled together.
    - Shards of a whole group are one value, `!comm.shards`: a handle with declared memory effects.
    - Packed values are `tensor<?xT, #comm.place<…>>`, computed blocks `tensor<?xRxCxT, #comm.place<…>>`.
      Both are staged values. They become memrefs, then buffers in one static workspace (`comm.buffer`). The
      place says which value a buffer holds. Operations infer their work from the places of their operands.

    Discardable attributes: `comm.workspace_limit` (on the module) and `comm.arena_bytes` (on the step) are
    bytes per rank. `comm.offset` and `comm.bytes` on a `memref.alloc` say which bytes of the workspace
    `comm-assign-arena` gave it, `comm.pool` in which pool it is.
    Constraints: no other attribute of this dialect; i64 that are not negative; `comm.offset` is a multiple of
    64.
  }];
  let dependentDialects = ["::stepc::optim::OptimDialect", "::mlir::func::FuncDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Comm_Op<string mnemonic, list<Trait> traits = []> : Op<Comm_Dialect, mnemonic, traits>;

// Enumerations of the plan as attributes.
class Comm_PlanEnum<string enumeration, string name, string mnemonic>
    : PlanEnumAttr<Comm_Dialect, "::stepc::plan::" # enumeration, name, mnemonic>;

def Comm_ShardsKind : Comm_PlanEnum<"ShardsKind", "ShardsKind", "shards_kind"> {
  let summary = "which shards of a group";
}

def Comm_Iteration : Comm_PlanEnum<"Distribution::Kind", "Iteration", "iteration"> {
  let summary = "what a stage runs over";
}

def Comm_Walked : Comm_PlanEnum<"ValueKind", "Walked", "walked"> {
  let summary = "the kind of the values whose elements a stage over shards visits";
}

def Comm_Reduction : Comm_PlanEnum<"Reduction", "Reduction", "reduction"> {
  let summary = "what a stage makes of the terms of each line";
}

def Comm_CollectiveKind : Comm_PlanEnum<"CollectiveKind", "CollectiveKind", "collective_kind"> {
  let summary = "how ranks meet";
}

class Comm_Type<string name, string mnemonicName> : TypeDef<Comm_Dialect, name> {
  let mnemonic = mnemonicName;
}

def Comm_Shards : Comm_Type<"Shards", "shards"> {
  let summary = "the local shards of all parameters of a group: a handle to bound memory";
  let description = [{
    ```mlir
    !comm.shards<@g0, f32>               // by the parameters' placements
    !comm.shards<@g0, f32, state_shards> // by the states' own placements
    !comm.shards<@g0, f32, state_blocks> // a state that stays with blocks, on the ranks that compute them
    ```
    Constraints: a distribution of shards.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$group, "::mlir::Type":$elementType,
                        "::stepc::plan::Distribution":$distribution);
  let assemblyFormat = "`<` $group `,` $elementType `` custom<Standing>($distribution) `>`";
  let builders = [TypeBuilder<(ins "::mlir::FlatSymbolRefAttr":$group, "::mlir::Type":$elementType), [{
    return $_get($_ctxt, group, elementType, plan::Distribution());
  }]>];
  let genVerifyDecl = 1;
}

def Comm_Communicator : Comm_Type<"Communicator", "communicator"> {
  let summary = "ranks that meet in collectives";
}

// An instance (what the runtime keeps for one use of a library) has one value of each of the next three
// types. It holds the parameters of all groups.

def Comm_Hyperparameters : Comm_Type<"Hyperparameters", "hyperparameters"> {
  let summary = "the hyperparameters of all parameters, in f64: a handle to bound memory";
}

def Comm_Steps : Comm_Type<"Steps", "steps"> {
  let summary = "how many steps each parameter took: a handle to memory that outlives the step";
}

def Comm_Active : Comm_Type<"Active", "active"> {
  let summary = "which parameters this step does not skip: a handle to flags";
}

def Comm_Token : Comm_Type<"Token", "token"> {
  let summary = "a collective in flight";
}

#endif
