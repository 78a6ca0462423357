//===- StepScratch.cpp - The scratch that a step may take ------------------===//

#include "passes/plan/StepScratch.h"

#include "passes/cost/ScratchBound.h"

using namespace mlir;

namespace stepc {

int64_t scratchBoundPerBlock(Operation *op) {
  if (auto product = dyn_cast<optim::ProductOp>(op)) {
    auto [m, n, k] = product.getSizes();
    return cost::productScratchBound(m, n, k);
  }
  if (auto apply = dyn_cast<optim::ApplyOp>(op))
    return apply.getFunction().scratchBound(apply.getSourceBlocks(), apply.getOutBlock());
  return 0;
}

int64_t scratchBound(const ProgramPlan &program, func::FuncOp step,
                     function_ref<int64_t(int64_t segment)> mostBlocks) {
  llvm::MapVector<int64_t, int64_t> perBlock; // per segment: the largest bound
  for (Operation &op : step.getBody().front())
    if (int64_t bytes = scratchBoundPerBlock(&op)) {
      int64_t &most = perBlock[ProgramPlan::find(program.segments, comm::segmentOfBatch(&op))];
      most = std::max(most, bytes);
    }
  int64_t bytes = 0;
  for (auto [segment, most] : perBlock)
    bytes = std::max(bytes, saturatingMul(most, mostBlocks(segment)));
  return bytes;
}

int64_t MostBlocks::operator()(int64_t segment) {
  auto [it, isNew] = known.try_emplace(segment, 0);
  for (int64_t rank = 0; isNew && rank < ranks; ++rank)
    it->second = std::max(it->second, expander.computedBlocks(segment, rank));
  return it->second;
}

} // namespace stepc
