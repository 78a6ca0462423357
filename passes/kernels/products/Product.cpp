//===- Product.cpp - exec.product as kernels -------------------------------===//

#include "passes/kernels/products/ProductKernels.h"

using namespace mlir;

namespace stepc::kernels {

static Tiling tilingOf(exec::ProductOp op, const TargetShape &target) {
  auto [m, n, k] = op.getSizes();
  return {m, n, k, op.getAccumulation() == exec::Accumulation::FusedChain, target};
}

int64_t scratchBytesPerBlock(exec::ProductOp op, const TargetShape &target) {
  auto [m, n, k] = op.getSizes();
  return m == 0 || n == 0 ? 0 : 4 * tilingOf(op, target).scratchElements();
}

Kernels emit(SymbolTable &symbols, exec::ProductOp op, const TargetShape &target) {
  ProductSpec spec{tilingOf(op, target),
                   op.getLhs().getType(),
                   op.getRhs().getType(),
                   op.getOut().getType(),
                   op.getAddend() ? op.getAddend()->getType() : Type(),
                   op.getTransposeLhs(),
                   op.getTransposeRhs(),
                   op.getSymmetric(),
                   !op.getShift().isZero(),
                   op.getLoc()};
  Kernels kernels;
  if (spec.tiling.m == 0 || spec.tiling.n == 0)
    return kernels;
  if (spec.tiling.k > 0)
    kernels.push_back(packKernel(symbols, spec));
  kernels.push_back(tilesKernel(symbols, spec));
  return kernels;
}

} // namespace stepc::kernels
