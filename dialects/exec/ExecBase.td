//===- ExecBase.td - The exec dialect --------------------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECBASE_TD
#define STEPC_DIALECTS_EXEC_EXECBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::stepc::exec";
  let summary = "The step as data: typed commands on symbols";
  let description = [{
    Level 5 of the ladder. `exec.program` lists what a step does, in order and equal on all ranks. Commands
    name groups, segments, states and kernels by symbol, and tables and memory by typed attributes. So the
    order of other symbols in the module means nothing. Symbols get numbers only when the plan becomes bytes:
    the method `lower` of a command makes the plan's form of it (runtime/plan/Plan.h). The runtime walks the
    commands of the plan.

    Discardable attributes: `exec.products`, on a module up to level scheduled, the entries of a table of
    pinned products; `exec.launch`, on a kernel that a target has made, how a GPU starts it.
  }];
  let dependentDialects = ["::stepc::comm::CommDialect"];
  let extraClassDeclaration = "void registerAttributes();";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

class Exec_Attr<string name, string mnemonicName, list<Trait> traits = []>
    : AttrDef<Exec_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

def Exec_Token : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a collective in flight";
}

#endif
