//===- PlanEnums.td - The plan's enumerations as attributes ----*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_PLANENUMS_TD
#define STEPC_DIALECTS_OPTIM_PLANENUMS_TD

include "mlir/IR/AttrTypeBase.td"

/// An attribute of operations that holds an enumeration of the plan (runtime/model/Enum.h). Getters return
/// the enumeration. Assembly formats of operations have the bare word: `custom<Word>($attribute)`.
class PlanEnumAttr<Dialect dialect, string enumeration, string name, string mnemonicName>
    : AttrDef<dialect, name> {
  let mnemonic = mnemonicName;
  let parameters = (ins AttrParameter<enumeration, "">:$value);
  let assemblyFormat = "`<` $value `>`";
  let returnType = enumeration;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = dialect.cppNamespace # "::" # name # "Attr::get($_builder.getContext(), $0)";
}

#endif
