//===- PlanOfProgram.h - The plan of a module at level exec -----*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_PLANOFPROGRAM_H
#define STEPC_PASSES_PLAN_PLANOFPROGRAM_H

#include "dialects/exec/Exec.h"
#include "runtime/plan/Plan.h"

namespace stepc {

/// The plan of a module at level exec: its symbols and its commands, with numbers for symbols. The plan's
/// chip is not set. Emits an error at a command that names a symbol that does not exist, or that does not fit
/// the plan.
mlir::FailureOr<plan::Plan> planOfProgram(mlir::ModuleOp module);

} // namespace stepc

#endif
