//===- Passes.h - From level 3 (comm) to level 4 (scheduled) ----*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_PASSES_H
#define STEPC_PASSES_SCHEDULE_PASSES_H

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>

namespace stepc::schedule {

#define GEN_PASS_DECL
#include "passes/schedule/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/schedule/Passes.h.inc"

/// Registers how our destination-style operations bufferize. The caller must call it once per dialect
/// registry.
void registerBufferizationModels(mlir::DialectRegistry &registry);

/// comm → scheduled. These passes prove nothing: the proof is at level 5.
void buildSchedulePipeline(mlir::OpPassManager &manager);
void registerSchedulePipeline();

} // namespace stepc::schedule

#endif
