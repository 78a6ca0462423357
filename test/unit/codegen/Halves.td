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
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const plan::Group &, const plan::Mesh &mesh, plan::ShardsKind) const {
      return mesh.sizes.empty() || mesh.sizes.back() % 2 ? "the last axis has no halves" : "";
    }
    std::vector<plan::Hop> $cppClass::hops(const plan::Group &, const plan::Mesh &mesh) const {
      return byHalves(mesh, }] # ownsFirst # ", " # ownsSecond # [{);
    }
    std::string $cppClass::reason(const plan::Group &, const plan::Mesh &, plan::ShardsKind) const {
      return "neighbours first";
    }
  }];
}

def Halves_InTurn : Halves_Strategy<"InTurn", "in_turn", "true", "true">;
def Halves_Joined : Halves_Strategy<"Joined", "joined", "false", "true">;
def Halves_Shared : Halves_Strategy<"Shared", "shared", "true", "false">;

#endif
