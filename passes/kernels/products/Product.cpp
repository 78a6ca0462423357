//===- Product.cpp - optim.product as kernels ------------------------------===//

#include "passes/kernels/products/Contiguous.h"
#include "passes/kernels/products/ProductKernels.h"
#include "passes/kernels/products/Products.h"

using namespace mlir;

namespace stepc::kernels {

LogicalResult checkContiguous(Operation *op, Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.getLayout().isIdentity() || type.getRank() < 2)
    return op->emitOpError("expected contiguous memrefs of a batch of blocks, found ")
           << value.getType();
  for (int64_t i = 1; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      return op->emitOpError("expected blocks of static extents, found ") << type;
  return success();
}

FailureOr<BatchKernels> emitProduct(SymbolTable &symbols, optim::ProductOp op,
                                    const TargetShape &target) {
  for (Value value : op->getOperands())
    if (failed(checkContiguous(op, value)))
      return failure();
  auto elementType = [](Value value) { return cast<MemRefType>(value.getType()).getElementType(); };
  auto [m, n, k] = op.getSizes();
  Tiling tiling(m, n, k, target);
  Value out = op.getInit(), scratch;
  ProductSpec spec{tiling,
                   elementType(op.getLhs()),
                   elementType(op.getRhs()),
                   elementType(out),
                   op.getAddend() ? elementType(op.getAddend()) : Type(),
                   float(op.getAlpha().convertToDouble()),
                   float(op.getBeta().convertToDouble()),
                   op.getTransposeLhs(),
                   op.getTransposeRhs(),
                   op.getSymmetric(),
                   op.getLoc()};
  BatchKernels kernels;
  if (m == 0 || n == 0)
    return kernels;
  if (k > 0) {
    Kernel pack = packKernel(symbols, spec);
    kernels.launches.push_back(
        {pack.function, {op.getLhs(), op.getRhs(), scratch}, pack.itemsPerBlock});
  }
  Kernel tiles = tilesKernel(symbols, spec);
  kernels.launches.push_back({tiles.function, {scratch, out}, tiles.itemsPerBlock});
  if (op.getAddend())
    kernels.launches.back().buffers.push_back(op.getAddend());
  kernels.scratchBytesPerBlock = 4 * tiling.scratchElements();
  return kernels;
}

} // namespace stepc::kernels
