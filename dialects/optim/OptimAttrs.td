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

def Optim_Blocks : Optim_Attr<"Blocks", "blocks"> {
  let summary = "how each matrix of a parameter is divided into parts, of which each is a block of its own";
  let description = [{
    A part is a list of runs of rows or columns, begin and end of each. A matrix of seven rows whose first two and last one
    are one block:
    ```mlir
    #optim.blocks<rows, [0, 2, 6, 7], [2, 5], [5, 6]>
    ```
    Constraints: an end for each begin. `optim.parameter` checks that each row stands in one part.
  }];
  let parameters = (ins "::stepc::optim::BlockAxis":$axis,
                        ArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$parts);
  let builders = [AttrBuilder<(ins "const ::stepc::plan::Division &":$division)>];
  let assemblyFormat = "`<` $axis `,` $parts `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    plan::Division toPlan() const;
  }];
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
