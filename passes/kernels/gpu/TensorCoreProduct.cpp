//===- TensorCoreProduct.cpp - Products on tensor cores --------------------===//
//
// The GPU block's memory has a ring of slabs (some steps of k each) of both operands. One slab is used while
// the others are on their way. The eight warps of a GPU block share out its tile, two down and four across.
// Each keeps its part in registers over the whole k, and adds 16 steps of k at a time to it, in order.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/GpuProduct.h"
#include "passes/kernels/gpu/TensorCoreOperand.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

constexpr int64_t kWarpsDown = 2, kWarpsAcross = 4;
static_assert(kWarpsDown * kWarpsAcross * kWarp == kThreads);
/// The extents m, n and k of one instruction.
constexpr int64_t kRows = 16, kColumns = 8, kSteps = 16;

class TensorCoreProduct : public GpuProduct {
public:
  TensorCoreProduct(exec::ProductOp op, BlockBuilder &b, const ProductTile &tile)
      : GpuProduct(op, b, tile.rows, /*width=*/2), ring{tile.rows, tile.steps, tile.stages},
        down(tile.rows / kWarpsDown / kRows), across(tile.columns / kWarpsAcross / kColumns) {}

private:
  TensorCoreOperand operand(exec::BatchAttr batch, unsigned argument, int64_t lines, bool alongK,
                            Value line0, Value warpLine, int64_t warpLines) {
    Value base = blockOf(argument, batch.getType(), lines * k);
    return {b,        ring,     {batch.getType(), lines, k, alongK}, argument == kLhs, base, line0,
            warpLine, warpLines};
  }

  /// Returns the sums after the steps of a slab: this lane's four numbers of each of the warp's parts.
  SmallVector<Value> multiply(TensorCoreOperand &left, TensorCoreOperand &right, Value stage,
                              ValueRange given) {
    SmallVector<Value> sums(given);
    for (int64_t step = 0; step < ring.slab; step += kSteps) {
      auto rows = left.fragments(stage, step), columns = right.fragments(stage, step);
      for (int64_t i = 0; i < down; ++i)
        for (int64_t j = 0; j < across; ++j) {
          auto part = MutableArrayRef(sums).slice((i * across + j) * 4, 4);
          llvm::copy(b.multiplyMatrices(op.getLhs().getType(), rows[i], columns[j], part),
                     part.begin());
        }
    }
    return sums;
  }

  SmallVector<Value> sumsOfThread() {
    SmallVector<Value> sums(down * across * 4, b.number(b.getF32Type(), 0.0f));
    int64_t slabs = ceilDivide(k, ring.slab), ahead = ring.stages - 1;
    if (slabs == 0)
      return sums;
    TensorCoreOperand left =
        operand(op.getLhs(), kLhs, m, !op.getTransposeLhs(), row0, warpRow, ring.tile / kWarpsDown);
    TensorCoreOperand right = operand(op.getRhs(), kRhs, n, op.getTransposeRhs(), column0,
                                      warpColumn, ring.tile / kWarpsAcross);
    auto copy = [&](Value stage, Value slab) {
      left.copy(stage, b.mul(slab, ring.slab));
      right.copy(stage, b.mul(slab, ring.slab));
    };
    for (int64_t slab = 0; slab < ahead; ++slab) {
      if (slab < slabs)
        copy(b.constant(slab * ring.elements()), b.constant(slab));
      b.commitGroup();
    }
    SmallVector<Value> carried = {b.constant(0), b.constant(ahead * ring.elements())};
    llvm::append_range(carried, sums);
    auto loop =
        scf::ForOp::create(b, b.loc, b.constant(0), b.constant(slabs), b.constant(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    // After the barrier, all threads' copies of this slab are complete, and no thread reads the stage that
    // the next copies fill. A group is committed whether or not it has copies, so that always the same number
    // may be under way.
    b.waitGroup(ahead - 1);
    b.barrier();
    Value use = loop.getRegionIterArgs()[0], fill = loop.getRegionIterArgs()[1];
    Value following = b.add(loop.getInductionVar(), ahead);
    b.when(b.below(following, slabs), [&] { copy(fill, following); });
    b.commitGroup();
    SmallVector<Value> next = {nextStage(use), nextStage(fill)};
    llvm::append_range(next, multiply(left, right, use, loop.getRegionIterArgs().drop_front(2)));
    scf::YieldOp::create(b, b.loc, next);
    return llvm::to_vector_of<Value>(loop.getResults().drop_front(2));
  }

  Value nextStage(Value stage) {
    Value next = b.add(stage, ring.elements());
    Value isThere = b.below(next, ring.stages * ring.elements());
    return arith::SelectOp::create(b, b.loc, isThere, next, b.constant(0));
  }

  SmallVector<Run> accumulate() override {
    Value warp = b.quotient(b.thread, kWarp);
    lane = b.remainder(b.thread, kWarp);
    warpRow = b.mul(b.quotient(warp, kWarpsAcross), ring.tile / kWarpsDown);
    warpColumn = b.mul(b.remainder(warp, kWarpsAcross), ring.tile / kWarpsAcross);
    SmallVector<Value> sums = sumsOfThread();
    // In each part, lane i has two neighbours in row i / 4, and two more eight rows further down.
    Value row = b.add(b.add(row0, warpRow), b.quotient(lane, 4));
    Value column = b.add(b.add(column0, warpColumn), b.mul(b.remainder(lane, 4), 2));
    SmallVector<Run> runs;
    for (int64_t i = 0; i < down * across; ++i)
      for (int64_t half = 0; half < 2; ++half) {
        auto pair = ArrayRef(sums).slice(i * 4 + half * 2, 2);
        runs.push_back({b.add(row, i / across * kRows + half * kRows / 2),
                        b.add(column, i % across * kColumns),
                        vector::FromElementsOp::create(b, b.loc, b.vector(2), pair)});
      }
    return runs;
  }

  /// Lanes of neighbouring rows exchange one number each. Then the upper lane has two numbers of one column,
  /// the lower one two of the next.
  void mirror(ArrayRef<Run> runs, ArrayRef<Value> results) override {
    constexpr int32_t kNextRow = 4;
    Value isLower = b.below(b.constant(0), b.remainder(b.quotient(lane, kNextRow), 2));
    auto choose = [&](Value lower, Value upper) -> Value {
      return arith::SelectOp::create(b, b.loc, isLower, lower, upper);
    };
    for (auto [run, result] : llvm::zip_equal(runs, results)) {
      Value first = vector::ExtractOp::create(b, b.loc, result, 0);
      Value second = vector::ExtractOp::create(b, b.loc, result, 1);
      Value given = b.exchangeBits(choose(first, second), kNextRow);
      Value pair =
          vector::FromElementsOp::create(b, b.loc, cast<VectorType>(result.getType()),
                                         ValueRange{choose(given, first), choose(second, given)});
      store(pair, choose(b.add(run.column, 1), run.column), choose(b.add(run.row, -1), run.row));
    }
  }

  TensorCoreOperand::Ring ring;
  int64_t down, across;            ///< parts (16 × 8) of a warp
  Value lane, warpRow, warpColumn; ///< the lane; where the warp's part begins in the tile
};

} // namespace

std::unique_ptr<GpuProduct> tensorCoreProduct(exec::ProductOp op, BlockBuilder &b) {
  return std::make_unique<TensorCoreProduct>(
      op, b, gpuProductTile(op.getSizes()[0], op.getSizes()[1], op.getAccumulation()));
}

} // namespace stepc::kernels
