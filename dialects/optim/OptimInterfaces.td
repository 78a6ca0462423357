//===- OptimInterfaces.td - What placements and strategies answer -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD
#define STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Optim_PlacementInterface : AttrInterface<"PlacementAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    What one mesh axis does to a tensor. Passes hand it to the geometry, which knows what it means and whether it can
    be (runtime/geometry), so a new kind of placement needs no code in a pass.
  }];
  let methods = [
    InterfaceMethod<"The geometry's form of this placement.", "::stepc::plan::Placement", "lower">,
  ];
}

def Optim_StrategyInterface : AttrInterface<"StrategyAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    How the blocks of a group come together to be computed. Passes ask these questions when they decide; what they decide are
    the hops, and nothing below looks at the strategy. What hops cost is one model for all (passes/decide/StrategyModel.h).
    A dialect lists its strategies through StrategyListInterface.
  }];
  let methods = [
    InterfaceMethod<"What users call it: `kName`, which each one declares.", "::llvm::StringRef", "name", (ins),
                    "return ConcreteAttr::kName;">,
    InterfaceMethod<"Empty, or why it cannot bring the blocks of such a group together.", "::std::string", "whyIllegal",
                    (ins "const ::stepc::optim::StrategyQuery &":$query)>,
    InterfaceMethod<[{The hops from the group's shards to whole blocks, without bases: owners are balanced over all groups. Asked
      where it is legal.}], "::std::vector<::stepc::plan::Hop>", "hops", (ins "const ::stepc::optim::StrategyQuery &":$query)>,
    InterfaceMethod<"The slabs that blocks are computed in; none: they come together by the hops.", "::stepc::plan::Slabs", "slabs",
                    (ins "const ::stepc::optim::StrategyQuery &":$query), "", "return {};">,
    InterfaceMethod<"Whether results may round otherwise than on one rank: then it is for fast numerics alone.", "bool",
                    "roundsOtherwise", (ins), "", "return false;">,
    InterfaceMethod<"For people: why it is a good choice there.", "::std::string", "reason",
                    (ins "const ::stepc::optim::StrategyQuery &":$query)>,
  ];
}

#endif
