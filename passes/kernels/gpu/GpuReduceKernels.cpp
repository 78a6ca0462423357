//===- GpuReduceKernels.cpp - #optim.block_reduce by a GPU's blocks --------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/gpu/ReduceWay.h"
#include "passes/kernels/products/Tiling.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

using sums::Phase;
using sums::Remains;

enum : unsigned { kScratch, kSource, kOut, kBuffers };

/// Shares out a line to the lanes of a warp, and a matrix to warps.
class ReduceEmitter {
public:
  ReduceEmitter(gpu::GPUModuleOp code, exec::ApplyOp op)
      : code(code), reduction(reductionOf(op)),
        type(cast<exec::BatchAttr>(op.getSources()[0]).getType()),
        b(code.getContext(), op.getLoc(), sums::termsOf(reduction.kind)), f32(b.getF32Type()),
        way(ReduceWay::make(b, reduction.kind, reduction.exponent)) {}

  GpuKernels emit() {
    GpuKernels made;
    for (Phase phase : reduction.phases())
      if (int64_t blocks = blocksOf(phase)) {
        std::string name = kernelName(reduction, phase);
        auto known = code.lookupSymbol<gpu::GPUFuncOp>(name);
        if (!known) {
          b.begin(code, name, kBuffers, blocks);
          warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
          emit(phase);
          known = b.function;
        }
        made.push_back({known, blocks});
      }
    return made;
  }

private:
  using Values = ReduceWay::Values;

  Value buffer(unsigned index) { return b.function.getArgument(index); }
  Value isFirstLane() { return b.below(lane, 1); }

  int64_t blocksOf(Phase phase) const {
    if (phase == Phase::Parts)
      return reduction.parts();
    if (phase == Phase::Combine || reduction.remains == Remains::One)
      return 1;
    return reduction.remains == Remains::Rows ? ceilDivide(reduction.rows, kWarps)
                                              : ceilDivide(reduction.cols, kWarp);
  }

  void emit(Phase phase) {
    if (phase == Phase::Combine)
      emitCombine();
    else if (phase == Phase::Parts)
      emitParts();
    else if (reduction.remains == Remains::One)
      emitOne();
    else if (reduction.remains == Remains::Rows)
      emitRows();
    else
      emitColumns();
  }

  /// The address of a slot's block.
  Value block() {
    return b.element(buffer(kSource), type, b.mul(b.slot, reduction.rows * reduction.cols));
  }
  Value number(Value from, Value index) { return b.read(type, b.element(from, type, index), 0); }

  /// Adds numbers [first, last) of a line, of which a warp takes every `stride`-th run.
  Values addLine(Values found, Value from, Value first, Value last, int64_t stride) {
    return way->addLine(found, first, last, stride,
                        [&](Value index) { return number(from, index); });
  }
  /// What the GPU block finds of numbers [first, last) of the slot's block. The first warp gets it.
  Values overBlock(Value first, Value last) {
    Values found =
        addLine(way->ofWarp(), block(), b.add(first, b.mul(warp, kRun)), last, kRun * kWarps);
    return way->overWarps(found);
  }
  void inFirstWarp(function_ref<void()> body) { b.when(b.below(b.thread, kWarp), body); }
  void storeResult(Value result, Value index) {
    b.when(isFirstLane(), [&] { b.store(result, b.address(buffer(kOut), f32, index), 4); });
  }

  void emitOne() {
    int64_t count = reduction.rows * reduction.cols;
    Values found = overBlock(b.constant(0), b.constant(count));
    inFirstWarp([&] { storeResult(way->resultOfWarp(found, b.constant(count)), b.slot); });
  }
  void emitParts() {
    Value first = b.mul(b.item, sums::kPartElements);
    Value last = b.smaller(b.add(first, sums::kPartElements), reduction.rows * reduction.cols);
    Values found = overBlock(first, last);
    inFirstWarp([&] { way->storePart(found, partAt(b.item)); });
  }
  void emitCombine() {
    Values found =
        b.loop(warp, b.constant(reduction.parts()), kWarps, way->ofWarp(),
               [&](Value i, ValueRange found) { return way->addPart(found, partAt(i)); });
    Values all = way->overWarps(found);
    inFirstWarp([&] {
      storeResult(way->resultOfWarp(all, b.constant(reduction.rows * reduction.cols)), b.slot);
    });
  }
  Value partAt(Value index) {
    Value part = b.add(b.mul(b.slot, reduction.parts()), index);
    return b.address(buffer(kScratch), b.getI8Type(), b.mul(part, sums::kPartBytes));
  }
  void emitRows() {
    Value row = b.add(b.mul(b.item, kWarps), warp);
    b.when(b.below(row, reduction.rows), [&] {
      Value from = b.element(block(), type, b.mul(row, reduction.cols));
      Values found = addLine(way->ofWarp(), from, b.constant(0), b.constant(reduction.cols), kRun);
      storeResult(way->resultOfWarp(found, b.constant(reduction.cols)),
                  b.add(b.mul(b.slot, reduction.rows), row));
    });
  }
  /// A lane has a column, and the warps share its rows.
  void emitColumns() {
    Value column = b.add(b.mul(b.item, kWarp), lane);
    Value from = b.element(block(), type, b.smaller(column, reduction.cols - 1));
    Values all =
        way->overWarps(way->addColumns(way->ofThread(), b.constant(reduction.rows), [&](Value row) {
          return number(from, b.mul(row, reduction.cols));
        }));
    inFirstWarp([&] {
      Value result = way->resultOfThread(all, b.constant(reduction.rows));
      b.when(b.below(column, reduction.cols), [&] {
        Value at = b.add(b.mul(b.slot, reduction.cols), column);
        b.store(result, b.address(buffer(kOut), f32, at), 4);
      });
    });
  }

  gpu::GPUModuleOp code;
  const sums::BlockReduction reduction;
  const Type type; ///< of the source
  SumBuilder b;
  const Type f32;
  std::unique_ptr<ReduceWay> way;
  Value warp, lane;
};

} // namespace

GpuKernels ReduceKernels::onGpu(gpu::GPUModuleOp code, exec::ApplyOp op) const {
  return ReduceEmitter(code, op).emit();
}

} // namespace stepc::kernels
