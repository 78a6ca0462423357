//===- PlanOfProgram.h - The plan of a module at level exec -----*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_PLANOFPROGRAM_H
#define STEPC_PASSES_PLAN_PLANOFPROGRAM_H

#include "dialects/exec/Exec.h"
#include "runtime/plan/Plan.h"

namespace stepc {

/// The plan of a module at level exec, without its chip: its symbols, and its program with numbers. If a
/// command names what does not exist or does not fit, it fails with an error at the operation.
mlir::FailureOr<plan::Plan> planOfProgram(mlir::ModuleOp module);

} // namespace stepc

#endif
