//===- OptimAttrs.td - Placements, states, meshes --------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMATTRS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMATTRS_TD

include "dialects/optim/OptimBase.td"
include "dialects/optim/OptimEnums.td"
include "dialects/optim/OptimInterfaces.td"

class Optim_Attr<string name, string mnemonicName, list<Trait> traits = []>
    : AttrDef<Optim_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

def Optim_SpaceAttr : EnumAttr<Optim_Dialect, Optim_Space, "space"> {
  let assemblyFormat = "`<` $value `>`";
}

class Optim_Placement<string name, string mnemonicName>
    : Optim_Attr<name, mnemonicName,
        [DeclareAttrInterfaceMethods<Optim_PlacementInterface>]>;

def Optim_Replicate : Optim_Placement<"Replicate", "replicate"> {
  let summary = "every rank along the mesh axis holds the same (`R`)";
  let assemblyFormat = "";
}

def Optim_Shard : Optim_Placement<"Shard", "shard"> {
  let summary = "a tensor axis is split as torch.chunk does (`S(d)`)";
  let parameters = (ins "int64_t":$dim);
  let assemblyFormat = "`<` $dim `>`";
}

def Optim_StridedShard : Optim_Placement<"StridedShard", "strided_shard"> {
  let summary = "a tensor axis is split after later mesh axes (`_S(d, sf)`)";
  let parameters = (ins "int64_t":$dim, "int64_t":$factor);
  let assemblyFormat = "`<` $dim `,` $factor `>`";
}

def Optim_State : Optim_Attr<"State", "state"> {
  let summary = "a state of a rule: name, storage type, shape kind, initial value";
  let description = [{`master` marks the full-precision copy of a low-precision parameter; it
    does not exist for parameters that are f32.}];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::Type":$type,
                        "::stepc::optim::ValueKind":$kind, "::mlir::FloatAttr":$init,
                        "bool":$master);
  let assemblyFormat = "`<` $name `,` $type `,` $kind `,` $init `,` $master `>`";
}

#endif
