//===- Passes.h - From level 1 (optim) to level 2 (decided) -----*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_PASSES_H
#define STEPC_PASSES_DECIDE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace stepc::decide {

#define GEN_PASS_DECL
#include "passes/decide/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/decide/Passes.h.inc"

struct DecideOptions {
  std::vector<std::string> strategies; ///< PATTERN=STRATEGY, the last match holds
  int64_t waves = 0;                   ///< forces a number of waves; 0: the pass chooses
  /// Modelled workspace to choose waves for, below any limit. 0: no such bound.
  int64_t targetBytes = 0;
};

/// The passes with which the decide pipeline begins: they set each parameter's matrices, blocks and route.
void buildRoutePipeline(mlir::OpPassManager &manager);
/// optim → decided.
void buildDecidePipeline(mlir::OpPassManager &manager, const DecideOptions &options);
void registerDecidePipeline();

} // namespace stepc::decide

#endif
