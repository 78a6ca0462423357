//===- ChainProduct.cpp - Products in chains of fused multiply-adds --------===//
//
// The GPU block's memory has two slabs (some steps of k) of each operand: one is used while the next is
// fetched. A thread keeps its part of the tile in registers over the whole k. An element is one chain
// wherever it lands.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/GpuProduct.h"
#include "passes/kernels/gpu/ProductOperand.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class ChainProduct : public GpuProduct {
public:
  ChainProduct(exec::ProductOp op, BlockBuilder &b, const Cut &cut)
      : GpuProduct(op, b, cut.tile, cut.group), cut(cut) {}

private:
  ProductOperand operand(exec::BatchAttr batch, unsigned argument, int64_t lines, bool alongK,
                         Value line0, float neutral) {
    Value base = blockOf(argument, batch.getType(), lines * k);
    return {b, cut, {batch.getType(), lines, k, alongK, neutral}, base, line0};
  }

  /// Returns the sums after the steps of a slab: for each row of the thread, a vector per group of columns.
  SmallVector<Value> multiply(ProductOperand &left, ProductOperand &right, Value offset,
                              ValueRange sums) {
    constexpr int64_t kUnroll = 8;
    auto loop = scf::ForOp::create(b, b.loc, b.constant(0), b.constant(cut.slab),
                                   b.constant(kUnroll), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    for (int64_t u = 0; u < kUnroll; ++u) {
      Value step = b.add(loop.getInductionVar(), u);
      Value at = b.add(offset, b.mul(step, cut.pitch()));
      SmallVector<Value> rows = left.groups(at, threadRow);
      SmallVector<Value> columns = right.groups(at, threadColumn);
      for (int64_t i = 0; i < cut.perThread(); ++i) {
        Value x = vector::ExtractOp::create(b, b.loc, rows[i / cut.group], i % cut.group);
        Value row = b.broadcast(x, cut.group);
        for (int64_t g = 0; g < cut.groups; ++g) {
          Value &sum = next[i * cut.groups + g];
          sum = b.fusedOrNot(row, columns[g], sum, /*fused=*/true);
        }
      }
    }
    scf::YieldOp::create(b, b.loc, next);
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  SmallVector<Value> sumsOfThread() {
    SmallVector<Value> sums(cut.perThread() * cut.groups, b.number(b.vector(cut.group), 0.0f));
    if (k == 0)
      return sums;
    // Past the last step the factors are +0 and -0. Their product -0 changes no sum.
    ProductOperand left = operand(op.getLhs(), kLhs, m, !op.getTransposeLhs(), row0, 0.0f);
    ProductOperand right = operand(op.getRhs(), kRhs, n, op.getTransposeRhs(), column0, -0.0f);
    for (ProductOperand *each : {&left, &right})
      each->keep(b.constant(0), each->fetch(b.constant(0)));
    b.barrier();
    int64_t slabs = ceilDivide(k, cut.slab);
    auto offsetOf = [&](Value slab) { return b.mul(b.remainder(slab, 2), cut.slabElements()); };
    if (slabs > 1) {
      auto loop =
          scf::ForOp::create(b, b.loc, b.constant(0), b.constant(slabs - 1), b.constant(1), sums);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value slab = loop.getInductionVar(), following = b.add(slab, 1);
      Value step0 = b.mul(following, cut.slab);
      SmallVector<Value> nextLeft = left.fetch(step0), nextRight = right.fetch(step0);
      SmallVector<Value> next = multiply(left, right, offsetOf(slab), loop.getRegionIterArgs());
      // No thread reads the other slab any more, because all threads were done with it at the last barrier.
      left.keep(offsetOf(following), nextLeft);
      right.keep(offsetOf(following), nextRight);
      b.barrier();
      scf::YieldOp::create(b, b.loc, next);
      sums = llvm::to_vector_of<Value>(loop.getResults());
    }
    return multiply(left, right, b.constant((slabs - 1) % 2 * cut.slabElements()), sums);
  }

  SmallVector<Run> accumulate() override {
    // The threads of a warp form 4 rows of 8, so that they store whole sectors of memory, also in the
    // mirrored half.
    Value warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
    threadRow = b.mul(b.add(b.mul(b.quotient(warp, 2), 4), b.quotient(lane, 8)), cut.group);
    threadColumn = b.mul(b.add(b.mul(b.remainder(warp, 2), 8), b.remainder(lane, 8)), cut.group);
    SmallVector<Value> sums = sumsOfThread();
    SmallVector<Run> runs;
    for (int64_t i = 0; i < cut.perThread(); ++i)
      for (int64_t g = 0; g < cut.groups; ++g)
        runs.push_back({b.add(b.add(row0, threadRow), cut.inTile(i)),
                        b.add(b.add(column0, threadColumn), cut.inTile(g * cut.group)),
                        sums[i * cut.groups + g]});
    return runs;
  }

  /// Transposes squares of group × group elements in registers.
  void mirror(ArrayRef<Run> runs, ArrayRef<Value> results) override {
    auto type = cast<VectorType>(results.front().getType());
    for (int64_t g = 0; g < cut.groups; ++g)
      for (int64_t c = 0; c < cut.group; ++c)
        for (int64_t i = 0; i < cut.perThread(); i += cut.group) {
          SmallVector<Value> line;
          for (int64_t r = i; r < i + cut.group; ++r)
            line.push_back(vector::ExtractOp::create(b, b.loc, results[r * cut.groups + g], c));
          const Run &first = runs[i * cut.groups + g];
          store(vector::FromElementsOp::create(b, b.loc, type, line), b.add(first.column, c),
                first.row);
        }
  }

  Cut cut;
  Value threadRow, threadColumn; ///< the thread's first row and column in the tile
};

} // namespace

std::unique_ptr<GpuProduct> chainProduct(exec::ProductOp op, BlockBuilder &b) {
  return std::make_unique<ChainProduct>(
      op, b, gpuProductTile(op.getSizes()[0], op.getSizes()[1], op.getAccumulation()));
}

} // namespace stepc::kernels
