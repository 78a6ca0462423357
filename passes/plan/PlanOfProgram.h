//===- PlanOfProgram.h - The plan of a module at level exec -----*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_PLANOFPROGRAM_H
#define STEPC_PASSES_PLAN_PLANOFPROGRAM_H

#include "dialects/exec/Exec.h"
#include "runtime/plan/Plan.h"

namespace stepc {

/// The plan of a module at level exec, but for its chip: its symbols, and its program with numbers.
/// Fails, with an error at the operation, where a command names what is not there or does not fit.
mlir::FailureOr<plan::Plan> planOfProgram(mlir::ModuleOp module);

} // namespace stepc

#endif
