//===- Halves.td - Strategies of a test's dialect --------------*- tablegen -*-===//
#ifndef STEPC_TEST_UNIT_CODEGEN_HALVES_TD
#define STEPC_TEST_UNIT_CODEGEN_HALVES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "dialects/optim/OptimInterfaces.td"

def Halves_Dialect : Dialect {
  let name = "halves";
  let cppNamespace = "::stepc::test";
  let useDefaultAttributePrinterParser = 1;
}

class Halves_Strategy<string name, string mnemonicName, string ownsFirst, string ownsSecond>
    : AttrDef<Halves_Dialect, name, [DeclareAttrInterfaceMethods<Optim_StrategyInterface>]> {
  let mnemonic = mnemonicName;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kName = "}] # mnemonicName # [{";
  }];
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const optim::StrategyQuery &query) const {
      return query.mesh.sizes.empty() || query.mesh.sizes.back() % 2 ? "the last axis has no halves" : "";
    }
    std::vector<plan::Hop> $cppClass::hops(const optim::StrategyQuery &query) const {
      return byHalves(query.mesh, }] # ownsFirst # ", " # ownsSecond # [{);
    }
    std::string $cppClass::reason(const optim::StrategyQuery &) const {
      return "neighbours first";
    }
  }];
}

def Halves_InTurn : Halves_Strategy<"InTurn", "in_turn", "true", "true">;
def Halves_Joined : Halves_Strategy<"Joined", "joined", "false", "true">;
def Halves_Shared : Halves_Strategy<"Shared", "shared", "true", "false">;

#endif
