//===- OptimInterfaces.td - What passes ask attributes and operations -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD
#define STEPC_DIALECTS_OPTIM_OPTIMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Optim_PlacementInterface : AttrInterface<"PlacementAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    How one mesh axis divides a tensor. Passes hand the placement to the geometry (runtime/geometry), which
    knows its meaning and whether it is legal. So a new kind of placement needs no code in a pass.
  }];
  let methods = [
    InterfaceMethod<"The geometry's form of this placement.", "::stepc::plan::Placement", "lower">,
  ];
}

def Optim_StrategyInterface : AttrInterface<"StrategyAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    How the blocks of a group come together to be computed. The passes of passes/decide call these methods and
    set the hops of a group. Later passes read only the hops, never the strategy. One model gives the cost of
    hops for all strategies (passes/decide/StrategyModel.h). A dialect lists its strategies through
    StrategyListInterface.
  }];
  let methods = [
    InterfaceMethod<"The name that users give it: `kName`, which each one declares.", "::llvm::StringRef",
                    "name", (ins), "return ConcreteAttr::kName;">,
    InterfaceMethod<"Empty, or why it cannot bring the blocks of such a group together.", "::std::string",
                    "whyIllegal", (ins "const ::stepc::optim::StrategyQuery &":$query)>,
    InterfaceMethod<[{The hops from the group's shards to whole blocks, without bases: owners are balanced
      over all groups. Asked only if it is legal.}], "::std::vector<::stepc::plan::Hop>", "hops",
                    (ins "const ::stepc::optim::StrategyQuery &":$query)>,
    InterfaceMethod<"The slabs in which blocks are computed; none: they come together by the hops.",
                    "::stepc::plan::Slabs", "slabs",
                    (ins "const ::stepc::optim::StrategyQuery &":$query), "", "return {};">,
    InterfaceMethod<"Whether results may round otherwise than on one rank: only for fast numerics.",
                    "bool", "roundsOtherwise", (ins), "", "return false;">,
    InterfaceMethod<"Why it is a good choice there, for people.", "::std::string", "reason",
                    (ins "const ::stepc::optim::StrategyQuery &":$query)>,
  ];
}

def Optim_BlockFunctionInterface : AttrInterface<"BlockFunctionAttrInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    A function of whole blocks that has kernels of its own. `optim.apply` and `exec.apply` compute it. Levels
    3 to 5 and the plan know the function only through these methods. A class in
    passes/kernels/BlockKernels.h makes its kernels. Elements of the sources are extended to f32. The methods
    get blocks as types, for example `tensor<16x8xbf16>`.
  }];
  let methods = [
    InterfaceMethod<"What it makes, for people: norm times 2^-24.", "::std::string", "describe">,
    InterfaceMethod<"Checks that it makes blocks `out` of blocks `sources`; an error says what it expects.",
      "::llvm::LogicalResult", "verifyBlocks",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::llvm::ArrayRef<::mlir::RankedTensorType>":$sources, "::mlir::RankedTensorType":$out)>,
    InterfaceMethod<"Floating-point operations for one block.", "int64_t", "flops",
      (ins "::llvm::ArrayRef<::mlir::RankedTensorType>":$sources, "::mlir::RankedTensorType":$out)>,
    InterfaceMethod<"The most bytes of scratch that its kernels take for one block, on any target.",
      "int64_t", "scratchBound",
      (ins "::llvm::ArrayRef<::mlir::RankedTensorType>":$sources, "::mlir::RankedTensorType":$out)>,
  ];
}

def Optim_MatrixOpInterface : OpInterface<"MatrixOpInterface"> {
  let cppNamespace = "::stepc::optim";
  let description = [{
    An operation of a rule that is not elementwise: each element of its result depends on whole rows, columns
    or blocks. Passes decide where such operations run, expand them and count their cost through these
    methods, so no pass needs to know their names. The proof (passes/verify) and the float64 reference
    (passes/reference) implement each operation a second time, because they have to find errors in this code.
  }];
  let methods = [
    InterfaceMethod<[{Builds the operation from products, functions of blocks and stages, and gives its
      result. The operands are values of the operation's own, in its own element types. `kind` is its result's
      shape.}],
      "::stepc::optim::MatrixValue", "expand",
      (ins "::stepc::optim::MatrixBuilder &":$builder,
           "::llvm::ArrayRef<::stepc::optim::MatrixValue>":$operands,
           "::stepc::plan::ValueKind":$kind)>,
    InterfaceMethod<[{Whether it can also be computed from slabs of blocks, whose products and norms are added
      up over ranks: only for fast numerics.}], "bool", "takesSlabs", (ins), "", "return false;">,
  ];
}

#endif
