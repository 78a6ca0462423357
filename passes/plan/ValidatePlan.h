//===- ValidatePlan.h - An inconsistent plan as an error of the IR -*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_VALIDATEPLAN_H
#define STEPC_PASSES_PLAN_VALIDATEPLAN_H

#include "passes/plan/PlanFromIR.h"

namespace stepc {

/// Checks the plan of a module. An error begins with `expected`; it is the error of the group that is
/// wrong, or of the module.
mlir::LogicalResult validatePlan(mlir::ModuleOp module, const ProgramPlan &program,
                                 llvm::StringRef expected);

/// Checks sizes that a plan cannot hold, with an error in the user's words. It is at the first of the
/// parameters that are too large together, where the manifest has it, with notes at others.
mlir::LogicalResult blameParameters(mlir::ModuleOp module, const ProgramPlan &program);

} // namespace stepc

#endif
