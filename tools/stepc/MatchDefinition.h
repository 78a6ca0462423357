//===- MatchDefinition.h - Is a library what a specification says? - C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_MATCHDEFINITION_H
#define STEPC_TOOLS_STEPC_MATCHDEFINITION_H

#include "runtime/plan/Plan.h"
#include "tools/stepc/Report.h"

namespace stepc::driver {

/// Compares what a specification defines (`specified`: its plan at level decided) with the plan
/// that a library carries: rules by name, hyperparameters, states and definition; routes by name,
/// rule, defaults and missing_grad; and the route of each parameter that both have. Strategies,
/// waves and chip may differ, because they do not change what a step means. Returns false after an error,
/// which names the first difference.
bool matchDefinition(const plan::Plan &specified, llvm::StringRef specification,
                     const plan::Plan &library, llvm::StringRef path, Report &report);

} // namespace stepc::driver

#endif
