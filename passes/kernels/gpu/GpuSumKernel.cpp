//===- GpuSumKernel.cpp - A row of a sum of contributions per block ----------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/SumKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/gpu/ReduceWay.h"
#include "runtime/sums/Parts.h"

using namespace mlir;

namespace stepc::kernels {

/// Adds up parts of lines: a warp has a number.
static gpu::GPUFuncOp finishSums(gpu::GPUModuleOp code, exec::SumOp op) {
  plan::Reduction reduction = *op.getReduction();
  SumBuilder b(op.getContext(), op.getLoc(), sums::termsOf(reduction));
  // Arguments: as below.
  b.begin(code, nameOf(op), /*arguments=*/4, /*blocksPerSlot=*/1);
  std::unique_ptr<ReduceWay> way = ReduceWay::make(b, reduction, /*exponent=*/0);
  auto argument = [&](unsigned number) { return b.function.getArgument(number); };
  SumEmitter sum(op, b, argument(0), argument(1), argument(2), b.slot);
  ifActive(b, argument(3), sum.parameter, [&] {
    Value warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
    b.loop(warp, b.mul(sum.rowCount, sum.cols), kWarps, [&](Value number) {
      Value line = arith::DivSIOp::create(b, b.loc, number, sum.cols);
      Value column = b.sub(number, b.mul(line, sum.cols));
      ReduceWay::Values found =
          b.loop(b.constant(0), sum.count, 1, way->ofWarp(), [&](Value part, ValueRange found) {
            Value from = sum.sourceAt(sum.contribution(part), line, column);
            return b.loop(b.constant(0), b.constant(sumsPerValue(op)), 1, found,
                          [&](Value i, ValueRange found) {
                            Value bytes = b.mul(i, sums::bytesOf(reduction));
                            return way->addPart(found, b.address(from, b.getI8Type(), bytes));
                          });
          });
      Value result = way->resultOfWarp(found, b.constant(int64_t(op.getDivisor())));
      b.when(b.below(lane, 1), [&] { b.store(result, sum.targetAt(line, column), 4); });
    });
  });
  return b.function;
}

GpuKernels addGpuSumKernel(gpu::GPUModuleOp code, exec::SumOp op) {
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(nameOf(op)))
    return {{known, 1}};
  if (op.getReduction())
    return {{finishSums(code, op), 1}};
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

GpuKernels addGpuCollectKernel(gpu::GPUModuleOp code, exec::CollectOp op) {
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(nameOf(op)))
    return {{known, 1}};
  plan::Reduction reduction = op.getReduction();
  SumBuilder b(op.getContext(), op.getLoc(), sums::termsOf(reduction));
  // Arguments: the words that list the parts; the workspace; where the sum goes; the records.
  b.begin(code, nameOf(op), /*arguments=*/4, /*blocksPerSlot=*/1);
  std::unique_ptr<ReduceWay> way = ReduceWay::make(b, reduction, /*exponent=*/0);
  Value words = b.function.getArgument(0), records = b.function.getArgument(3);
  Type i64 = b.getI64Type();
  auto word = [&](Value number) { return b.load(i64, b.address(words, i64, number)); };
  // The warps share the parts. All lanes of a warp take the same branch.
  Value warp = b.quotient(b.thread, kWarp), count = word(b.constant(0));
  ReduceWay::Values found =
      b.loop(warp, count, kWarps, way->ofWarp(), [&](Value part, ValueRange found) {
        Value row = b.add(b.mul(part, b.constant(2)), 1);
        Value record = recordOf(b, records, word(row));
        Value active = b.load(i64, fieldOf(b, record, offsetof(stepc_parameter_record, active)));
        Value from = b.address(b.function.getArgument(1), b.getI8Type(), word(b.add(row, 1)));
        ReduceWay::Values with = way->addPart(found, from), kept;
        for (auto [taken, left] : llvm::zip(with, found))
          kept.push_back(b.select(b.differs(active, 0), taken, left));
        return kept;
      });
  ReduceWay::Values all = way->overWarps(found);
  b.when(b.below(b.thread, kWarp), [&] { way->storePart(all, b.function.getArgument(2)); });
  return {{b.function, 1}};
}

} // namespace stepc::kernels
