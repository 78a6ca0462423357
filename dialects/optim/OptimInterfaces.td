//===- OptimInterfaces.td - What every placement answers --------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD
#define STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Optim_PlacementInterface : AttrInterface<"PlacementAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    What one mesh axis does to a tensor. Every placement implements it; passes ask these questions and
    hand the rest to the geometry (`lower`), so a new kind of placement needs no code in a pass.
  }];
  let methods = [
    InterfaceMethod<"The geometry's form of this placement.", "::stepc::plan::Placement", "lower">,
    InterfaceMethod<[{The tensor axis that this placement divides, or nothing.
      `R` → none, `S(d)` → d, `_S(d, sf)` → d.}],
      "::std::optional<int64_t>", "shardedAxis">,
    InterfaceMethod<[{Empty, or why the placement is illegal at mesh axis `position` of `placements` for a tensor of
      that rank on a mesh of those sizes.}],
      "::std::string", "whyIllegal", (ins "int64_t":$position,
        "::llvm::ArrayRef<::mlir::Attribute>":$placements, "int64_t":$rank,
        "::llvm::ArrayRef<int64_t>":$meshSizes)>,
  ];
}

#endif
