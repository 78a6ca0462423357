//===- StepScratch.h - The scratch that a step may take ---------*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_STEPSCRATCH_H
#define STEPC_PASSES_PLAN_STEPSCRATCH_H

#include "passes/plan/PlanFromIR.h"
#include "runtime/plan/Tables.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace stepc {

/// Bytes per computed block that a target may use beside the operands of a product or a function of blocks
/// (passes/cost/ScratchBound.h, or the function itself). Returns 0 for any other operation.
int64_t scratchBoundPerBlock(mlir::Operation *op);

/// Bytes per rank that a target may use as scratch in a step. All products and functions of blocks share one
/// region, because they run one after another. `mostBlocks` returns the most blocks of a segment that any
/// rank computes.
int64_t scratchBound(const ProgramPlan &program, mlir::func::FuncOp step,
                     llvm::function_ref<int64_t(int64_t segment)> mostBlocks);

/// Returns the most blocks of a segment that any rank computes. It expands the plan with the runtime's
/// functions.
class MostBlocks {
public:
  explicit MostBlocks(const ProgramPlan &program)
      : expander(program.plan), ranks(int64_t(program.plan.world().size())) {}
  int64_t operator()(int64_t segment);

private:
  plan::Expander expander;
  int64_t ranks;
  llvm::DenseMap<int64_t, int64_t> known;
};

} // namespace stepc

#endif
