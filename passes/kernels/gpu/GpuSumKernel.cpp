//===- GpuSumKernel.cpp - A row of a sum of contributions per block ----------===//

#include "passes/kernels/SumKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {

GpuKernels addGpuSumKernel(gpu::GPUModuleOp code, exec::SumOp op) {
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(nameOf(op)))
    return {{known, 1}};
  KernelBuilder b(op.getContext(), op.getLoc(), kGlobal);
  // Arguments: the rows with the lists; the memory of contributions and of targets; the records.
  SmallVector<Type> arguments(4, b.pointer);
  gpu::GPUFuncOp made = beginGpuKernel(code, nameOf(op), arguments, b);
  SumEmitter sum(op, b, made.getArgument(0), made.getArgument(1), made.getArgument(2),
                 blockIndex(b));
  ifActive(b, made.getArgument(3), sum.parameter, [&] {
    int64_t bytes = sum.elementBytes, width = kWideBytes / bytes;
    // The OR of all addresses at which contributions begin. It is aligned if all of them are.
    auto bits = scf::ForOp::create(b, b.loc, b.constant(0), sum.count, b.constant(1),
                                   ValueRange{b.constant(0)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(bits.getBody());
      Value address = LLVM::PtrToIntOp::create(b, b.loc, b.getI64Type(),
                                               sum.contribution(bits.getInductionVar()));
      scf::YieldOp::create(
          b, b.loc, Value(arith::OrIOp::create(b, b.loc, bits.getRegionIterArgs()[0], address)));
    }
    Value places = LLVM::IntToPtrOp::create(b, b.loc, b.pointer, bits.getResult(0));
    Value size = b.constant(bytes);
    Value isAligned = areAligned(b, sum.rowCount, {places, sum.target},
                                 {b.mul(sum.sourceStride, size), b.mul(sum.targetStride, size)});
    shareOut(
        b, sum.rowCount, sum.cols, width, isAligned, [](Value) {},
        [&](Value line, Value column, bool isWide) {
          sum.emit(line, column, isWide ? width : 0, isWide ? kWideBytes : bytes);
        });
  });
  return {{made, 1}};
}

} // namespace stepc::kernels
