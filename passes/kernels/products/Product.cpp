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

int64_t elementsPerBlock(Value value) {
  int64_t elements = 1;
  for (int64_t extent : cast<MemRefType>(value.getType()).getShape().drop_front())
    elements *= extent;
  return elements;
}

int64_t productScratchElements(int64_t m, int64_t n, int64_t k, const TargetShape &target) {
  return Tiling(m, n, k, target).scratchElements();
}

FailureOr<SmallVector<KernelLaunch>> emitProduct(SymbolTable &symbols, optim::ProductOp op,
                                                 const TargetShape &target) {
  for (Value value : op->getOperands())
    if (failed(checkContiguous(op, value)))
      return failure();
  auto elementType = [](Value value) { return cast<MemRefType>(value.getType()).getElementType(); };
  auto [m, n, k] = op.getSizes();
  Tiling tiling(m, n, k, target);
  Value out = op.getOuts()[0], scratch = op.getOuts().back();
  if (tiling.scratchElements() > 0) { // nothing is packed of an empty operand
    if (op.getOuts().size() != 2)
      return op.emitOpError("expected scratch as second out, found none");
    if (!elementType(scratch).isF32() || elementsPerBlock(scratch) != tiling.scratchElements())
      return op.emitOpError("expected scratch of ")
             << tiling.scratchElements() << " x f32 per block, found " << scratch.getType();
  }
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
  SmallVector<KernelLaunch> launches;
  if (m == 0 || n == 0)
    return launches;
  if (k > 0) {
    Kernel pack = packKernel(symbols, spec);
    launches.push_back({pack.function, {op.getLhs(), op.getRhs(), scratch}, pack.itemsPerBlock});
  }
  Kernel tiles = tilesKernel(symbols, spec);
  launches.push_back({tiles.function, {scratch, out}, tiles.itemsPerBlock});
  if (op.getAddend())
    launches.back().buffers.push_back(op.getAddend());
  return launches;
}

} // namespace stepc::kernels
