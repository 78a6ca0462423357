//===- OptimEnums.td - Enumerations of the optim dialect -------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMENUMS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMENUMS_TD

include "dialects/optim/OptimBase.td"

// The numbers are those of runtime/plan/Plan.h; static_asserts in OptimDialect.cpp hold them equal.

class Optim_Enum<string name, string summary, list<I64EnumAttrCase> cases>
    : I64EnumAttr<name, summary, cases> {
  let cppNamespace = "::stepc::optim";
}

def Optim_ValueKind : Optim_Enum<"ValueKind", "shape of a value relative to its block", [
  I64EnumAttrCase<"Full", 0, "full">, I64EnumAttrCase<"Rows", 1, "rows">,
  I64EnumAttrCase<"Cols", 2, "cols">, I64EnumAttrCase<"One", 3, "one">]>;

def Optim_MissingGrad : Optim_Enum<"MissingGrad", "what an absent gradient means", [
  I64EnumAttrCase<"Error", 0, "error">, I64EnumAttrCase<"Skip", 1, "skip">,
  I64EnumAttrCase<"Zero", 2, "zero">]>;

def Optim_BlockAxis : Optim_Enum<"BlockAxis", "which axis of its matrices a parameter is divided along", [
  I64EnumAttrCase<"Rows", 0, "rows">, I64EnumAttrCase<"Columns", 1, "columns">]>;

def Optim_BlockSizes : Optim_Enum<"BlockSizes", "how the sizes of blocks are said", [
  I64EnumAttrCase<"Listed", 0, "listed">, // as many rows (columns) as the numbers say
  I64EnumAttrCase<"Each", 1, "each">,     // as many blocks of this size as there are
  I64EnumAttrCase<"Split", 2, "split">    // so many blocks of equal size
]>;

// Where an operation of a rule runs (level 2).
def Optim_Space : I64Enum<"Space", "where an operation of a rule runs", [
  I64EnumCase<"In", 0, "in">,         // on shards, before the exchange
  I64EnumCase<"Matrix", 1, "matrix">, // on whole blocks
  I64EnumCase<"Out", 2, "out">]> {    // on shards, after the exchange back
  let cppNamespace = "::stepc::optim";
}

def Optim_Reduction : Optim_Enum<"Reduction", "what a reduction computes", [
  I64EnumAttrCase<"Sum", 0, "sum">, I64EnumAttrCase<"Mean", 1, "mean">,
  I64EnumAttrCase<"Rms", 2, "rms">, I64EnumAttrCase<"Norm", 3, "norm">,
  I64EnumAttrCase<"Max", 4, "max">]>;

#endif
