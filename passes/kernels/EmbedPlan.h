//===- EmbedPlan.h - What a module at level llvm says of itself -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EMBEDPLAN_H
#define STEPC_PASSES_KERNELS_EMBEDPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace stepc::kernels {

/// The plan that a module at level llvm carries.
mlir::FailureOr<plan::Plan> embeddedPlan(mlir::ModuleOp module);

/// "my-model" → "my_model_library": the function that a library exports.
std::string entryName(llvm::StringRef library);

} // namespace stepc::kernels

#endif
