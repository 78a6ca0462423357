//===- Passes.h - From level 2 (decided) to level 3 (comm) ------*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_PASSES_H
#define STEPC_PASSES_DISTRIBUTE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace stepc::distribute {

#define GEN_PASS_DECL
#include "passes/distribute/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/distribute/Passes.h.inc"

/// decided → comm.
void buildDistributePipeline(mlir::OpPassManager &manager);
void registerDistributePipeline();

} // namespace stepc::distribute

#endif
