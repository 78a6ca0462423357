//===- ValidatePlan.h - An inconsistent plan as an error of the IR -*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_VALIDATEPLAN_H
#define STEPC_PASSES_PLAN_VALIDATEPLAN_H

#include "passes/plan/PlanFromIR.h"

namespace stepc {

/// Checks the plan of a module. Emits an error, which begins with `expected`, at the group that is wrong or,
/// if no group is, at the module.
mlir::LogicalResult validatePlan(mlir::ModuleOp module, const ProgramPlan &program,
                                 llvm::StringRef expected);

/// Checks the plan of a module like validatePlan, for errors that a user's input causes, such as too large
/// sizes. The error names parameters, not groups. It is at the first parameter of the wrong group, with notes
/// at others.
mlir::LogicalResult blameParameters(mlir::ModuleOp module, const ProgramPlan &program);

} // namespace stepc

#endif
