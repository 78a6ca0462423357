//===- KeptOwners.h - The owners of the previous plan -----------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_KEPTOWNERS_H
#define STEPC_TOOLS_STEPC_KEPTOWNERS_H

#include "tools/stepc/Report.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::driver {

/// Tells the module which ranks computed the blocks whose states stay with them, by the plan of a library
/// (optim::kKeptOwnersAttr). Returns false after an error.
bool setKeptOwners(mlir::ModuleOp module, const std::string &library, Report &report);

} // namespace stepc::driver

#endif
