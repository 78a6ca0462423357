//===- OptimEnums.td - Enumerations of the optim dialect -------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMENUMS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMENUMS_TD

include "dialects/optim/OptimBase.td"
include "dialects/optim/PlanEnums.td"

// Enumerations of the plan as attributes.
class Optim_PlanEnum<string enumeration, string name, string mnemonic>
    : PlanEnumAttr<Optim_Dialect, "::stepc::plan::" # enumeration, name, mnemonic>;

def Optim_MissingGrad : Optim_PlanEnum<"MissingGrad", "MissingGrad", "missing_grad"> {
  let summary = "what an absent gradient means";
}

def Optim_BlockAxis : Optim_PlanEnum<"Division::Axis", "BlockAxis", "block_axis"> {
  let summary = "which axis of its matrices a parameter is divided along";
}

def Optim_Reduction : Optim_PlanEnum<"Reduction", "Reduction", "reduction"> {
  let summary = "what a reduction computes";
}

def Optim_Form : Optim_PlanEnum<"Form", "Form", "form"> {
  let summary = "how optim.orthogonalize iterates";
}

def Optim_Draw : Optim_PlanEnum<"Draw", "Draw", "draw"> {
  let summary = "the kind of random numbers";
}

def Optim_BlockSizes : Optim_PlanEnum<"BlockSizes", "BlockSizes", "block_sizes"> {
  let summary = "how an optim.divide gives the sizes of blocks";
}

// Where an operation of a rule runs (level 2). It is the only enumeration of this dialect that is not the
// plan's.
def Optim_Space : I64Enum<"Space", "where an operation of a rule runs", [
  I64EnumCase<"In", 0, "in">,         // on shards, before the exchange
  I64EnumCase<"Matrix", 1, "matrix">, // on whole blocks
  I64EnumCase<"Out", 2, "out">]> {    // on shards, after the exchange back
  let cppNamespace = "::stepc::optim";
}

#endif
