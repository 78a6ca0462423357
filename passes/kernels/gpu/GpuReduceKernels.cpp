//===- GpuReduceKernels.cpp - #optim.block_reduce by a GPU's blocks --------===//
//
// Sixteen threads side by side, half a warp, are the sixteen partial results of a chain: thread j takes every
// sixteenth element from j on. Which elements are added in which order is part of what optim.reduce means, on
// every chip.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/gpu/BlockBuilder.h"
#include "passes/kernels/products/Reducer.h"
#include "passes/kernels/products/Tiling.h"

using namespace mlir;

namespace stepc::kernels {

namespace {

/// The number of loads that a thread begins before it adds the first.
constexpr int64_t kAhead = 8;
/// The number of rows that a GPU block reduces at once, each by half a warp.
constexpr int64_t kRows = kThreads / kPartials;
/// The number of elements of a line that a GPU block loads to its memory at once.
constexpr int64_t kSlab = 4096;
/// About how many elements a GPU block reduces, so that it is worth starting.
constexpr int64_t kBlockElements = 4096;

enum : unsigned { kScratch, kSource, kOut, kBuffers };

class Emitter {
public:
  Emitter(gpu::GPUModuleOp code, const BlockReduction &reduction)
      : code(code), reduction(reduction), b(code.getContext(), reduction.loc),
        r(b, reduction.function), shape(reduction.shape()), f32(b.getF32Type()) {}

  GpuKernels emit() {
    if (reduction.isShared()) {
      add("partials", rowBlocks(), [&] { emitRows(/*raw=*/true); });
      add("combine", 1, [&] { emitCombine(); });
      if (r.squares()) {
        add("rescale", rowBlocks(), [&] { emitRescale(); });
        add("root", 1, [&] { emitRoot(); });
      }
    } else if (reduction.remains() == interpret::Remains::One) {
      add("one", 1, [&] { emitOne(); });
    } else if (reduction.remains() == interpret::Remains::Rows) {
      add("rows", rowBlocks(), [&] { emitRows(/*raw=*/false); });
    } else {
      add("cols", ceilDivide(shape.cols, kWarp), [&] { emitCols(); });
    }
    return std::move(made);
  }

private:
  void add(StringRef what, int64_t blocksPerSlot, function_ref<void()> body) {
    if (blocksPerSlot == 0)
      return;
    std::string name = reduction.kernelName(what);
    auto known = code.lookupSymbol<gpu::GPUFuncOp>(name);
    if (!known) {
      b.begin(code, name, kBuffers, blocksPerSlot);
      slab = {};
      line = b.quotient(b.thread, kPartials);
      lane = b.remainder(b.thread, kPartials);
      body();
      known = b.function;
    }
    made.push_back({known, blocksPerSlot});
  }
  Value buffer(unsigned index) { return b.function.getArgument(index); }
  Value element(unsigned index, Value at) { return b.element(buffer(index), f32, at); }

  //===--- chains ---===//

  /// What an element adds to a chain. `raw` elements are results of chains, and are added as they are.
  Value term(Type type, Value from, Value index, bool raw, Value scale) {
    Value x = b.read(type, b.element(from, type, index), 0);
    return raw ? x : r.term(x, scale);
  }
  /// This thread's partial result over a line of `count` neighbours.
  Value partialOf(Type type, Value from, int64_t count, bool raw, Value scale) {
    Value sum = b.number(f32, r.neutral);
    int64_t step = kPartials * kAhead, whole = count / step * step;
    if (whole)
      sum = b.fold(lane, b.constant(whole), step, sum, [&](Value at, Value sum) {
        SmallVector<Value> terms;
        for (int64_t i = 0; i < kAhead; ++i)
          terms.push_back(term(type, from, b.add(at, i * kPartials), raw, scale));
        for (Value next : terms)
          sum = r.combine(sum, next);
        return sum;
      });
    if (whole < count)
      sum = b.fold(b.add(lane, whole), b.constant(count), kPartials, sum, [&](Value at, Value sum) {
        return r.combine(sum, term(type, from, at, raw, scale));
      });
    return sum;
  }
  /// The result of a chain. The first of its sixteen threads has it to the last bit; in the others a NaN may
  /// be another NaN.
  Value pairwise(Value partial) {
    for (int32_t half = kPartials / 2; half >= 1; half /= 2)
      partial = r.combine(partial, b.exchange(partial, half));
    return partial;
  }
  Value chain(Value row, Value scale) {
    Value from = r.rowOf(shape, buffer(kSource), b.slot, row);
    return pairwise(partialOf(shape.type, from, shape.cols, false, scale));
  }
  /// The chain of one line, by the whole GPU block. All threads bring the line to the block's memory, slab by
  /// slab, and the first warp adds it up. All threads get the result.
  Value longChain(Type type, Value from, int64_t count, bool raw, Value scale) {
    if (!slab)
      slab = b.memory(f32, kSlab);
    Value inFirst = b.below(b.thread, kWarp);
    Value sum = b.fold(b.constant(0), b.constant(count), kSlab, b.number(f32, r.neutral),
                       [&](Value base, Value sum) {
                         Value length = b.smaller(b.sub(b.constant(count), base), kSlab);
                         b.loop(b.thread, length, kThreads, [&](Value i) {
                           b.store(term(type, from, b.add(base, i), raw, scale),
                                   b.address(slab, f32, i), 4);
                         });
                         b.barrier();
                         sum = b.choose(
                             inFirst,
                             [&] {
                               return b.fold(lane, length, kPartials, sum, [&](Value i, Value sum) {
                                 return r.combine(sum, b.load(f32, b.address(slab, f32, i)));
                               });
                             },
                             [&] { return sum; });
                         b.barrier();
                         return sum;
                       });
    b.when(inFirst, [&] {
      Value result = pairwise(sum);
      b.when(isFirst(), [&] { b.store(result, slab, 4); });
    });
    b.barrier();
    Value result = b.load(f32, slab);
    b.barrier();
    return result;
  }

  Value isFirst() { return b.below(b.thread, 1); }
  /// Whether a condition holds in any lane of the warp whose number differs from this lane's in these bits
  /// alone.
  Value anyOf(Value condition, ArrayRef<int32_t> lanes) {
    Value flag = arith::ExtUIOp::create(b, b.loc, b.getI32Type(), condition);
    for (int32_t bits : lanes)
      flag = arith::OrIOp::create(b, b.loc, flag, b.exchange(flag, bits));
    return arith::TruncIOp::create(b, b.loc, b.getI1Type(), flag);
  }

  //===--- kernels ---===//

  /// The number of rows of a GPU block, a multiple of kRows.
  int64_t rowsPerBlock() const {
    return kRows *
           std::max<int64_t>(1, kBlockElements / (kRows * std::max<int64_t>(1, shape.cols)));
  }
  int64_t rowBlocks() const { return ceilDivide(shape.rows, rowsPerBlock()); }

  /// Calls body(row, isThere) for the rows of a GPU block. Past the last row, it passes the last row again
  /// and false, so that whole warps come to every exchange.
  void eachRow(function_ref<void(Value, Value)> body) {
    Value first = b.mul(b.item, rowsPerBlock());
    Value count = b.smaller(b.sub(b.constant(shape.rows), first), rowsPerBlock());
    b.loop(b.constant(0), count, kRows, [&](Value base) {
      Value row = b.add(b.add(first, base), line);
      body(b.smaller(row, shape.rows - 1), b.below(row, shape.rows));
    });
  }
  /// Stores a row's result by the row's first thread, if the row exists.
  void storeRow(Value result, unsigned index, Value row, Value isThere) {
    b.when(b.both(isThere, b.below(lane, 1)),
           [&] { b.store(result, element(index, b.add(b.mul(b.slot, shape.rows), row)), 4); });
  }

  /// Emits one result per row. With `raw` this is the chain's value, as f32 into the scratch.
  void emitRows(bool raw) {
    eachRow([&](Value row, Value isThere) {
      auto again = [&](Value scale) { return chain(row, scale); };
      auto any = [&](Value condition) { return anyOf(condition, {int32_t(kPartials)}); };
      Value result = again({});
      if (!raw)
        result = r.result(result, b.getI64IntegerAttr(shape.cols), again, any);
      storeRow(result, raw ? kScratch : kOut, row, isThere);
    });
  }

  Value rowPartials() { return element(kScratch, b.mul(b.slot, shape.rows)); }
  static Value uniform(Value condition) { return condition; }

  /// Emits one result per block, from partial results of rows in the scratch. If squares are added, this is
  /// the chain's value.
  void emitCombine() {
    Value result = longChain(f32, rowPartials(), shape.rows, true, {});
    if (!r.squares())
      result = r.result(result, b.getI64IntegerAttr(shape.rows * shape.cols), nullptr);
    b.when(isFirst(), [&] { b.store(result, element(kOut, b.slot), 4); });
  }

  /// The out has the sum of squares so far. If the sum left its range, emits partial results of scaled rows.
  void emitRescale() {
    auto [outside, scale] = r.scaleOf(b.load(f32, element(kOut, b.slot)));
    b.when(outside, [&, scale = scale] {
      eachRow(
          [&](Value row, Value isThere) { storeRow(chain(row, scale), kScratch, row, isThere); });
    });
  }

  /// Replaces the sum of squares in the out by the result.
  void emitRoot() {
    Value sum = b.load(f32, element(kOut, b.slot));
    // No thread may overwrite the sum before all threads have read it.
    b.barrier();
    Value result = r.result(
        sum, b.getI64IntegerAttr(shape.rows * shape.cols),
        [&](Value) { return longChain(f32, rowPartials(), shape.rows, true, {}); }, uniform);
    b.when(isFirst(), [&] { b.store(result, element(kOut, b.slot), 4); });
  }

  /// Emits one result per block without scratch. Its bits are those of emitRows and emitCombine. Half a warp
  /// takes every sixteenth row, so it computes one partial result of the chain over rows.
  void emitOne() {
    Value shared = shape.rows == 1 ? Value() : b.memory(f32, kPartials);
    auto block = [&](Value scale) {
      if (shape.rows == 1)
        return longChain(shape.type, r.rowOf(shape, buffer(kSource), b.slot, b.constant(0)),
                         shape.cols, false, scale);
      Value sum = b.fold(
          b.constant(0), b.constant(shape.rows), kRows, b.number(f32, r.neutral),
          [&](Value base, Value sum) {
            Value row = b.add(base, line);
            Value next = r.combine(sum, chain(b.smaller(row, shape.rows - 1), scale));
            return Value(arith::SelectOp::create(b, b.loc, b.below(row, shape.rows), next, sum));
          });
      b.when(b.below(lane, 1), [&] { b.store(sum, b.address(shared, f32, line), 4); });
      b.barrier();
      Value partial = b.load(f32, b.address(shared, f32, lane));
      b.barrier();
      return pairwise(partial);
    };
    Value result =
        r.result(block({}), b.getI64IntegerAttr(shape.rows * shape.cols), block, uniform);
    b.when(isFirst(), [&] { b.store(result, element(kOut, b.slot), 4); });
  }

  /// Emits one result per column. A warp has 32 columns side by side, and two partial results of each.
  void emitCols() {
    constexpr int64_t kWarps = kThreads / kWarp;
    static_assert(2 * kWarps == kPartials, "a block has all partial results of its columns");
    Value warp = b.quotient(b.thread, kWarp), column = b.remainder(b.thread, kWarp);
    Value shared = b.memory(f32, kThreads);
    Value col = b.add(b.mul(b.item, kWarp), column);
    // Lanes past the last column take the last column again.
    Value from =
        b.element(b.element(buffer(kSource), shape.type, b.mul(b.slot, shape.rows * shape.cols)),
                  shape.type, b.smaller(col, shape.cols - 1));
    auto partial = [&](Value first, Value scale) {
      auto take = [&](Value row, Value sum) {
        return r.combine(sum, term(shape.type, from, b.mul(row, shape.cols), false, scale));
      };
      int64_t step = kPartials * kAhead / 2, whole = shape.rows / step * step;
      Value sum = b.number(f32, r.neutral);
      if (whole)
        sum = b.fold(first, b.constant(whole), step, sum, [&](Value row, Value sum) {
          SmallVector<Value> terms;
          for (int64_t i = 0; i < step; i += kPartials)
            terms.push_back(term(shape.type, from, b.mul(b.add(row, i), shape.cols), false, scale));
          for (Value next : terms)
            sum = r.combine(sum, next);
          return sum;
        });
      return b.fold(b.add(first, whole), b.constant(shape.rows), kPartials, sum, take);
    };
    auto block = [&](Value scale) {
      Value sum = r.combine(partial(warp, scale), partial(b.add(warp, kWarps), scale));
      b.store(sum, b.address(shared, f32, b.thread), 4);
      b.barrier();
      SmallVector<Value> sums;
      for (int64_t i = 0; i < kWarps; ++i)
        sums.push_back(b.load(f32, b.address(shared, f32, b.add(column, i * kWarp))));
      b.barrier();
      for (int64_t half = kWarps / 2; half >= 1; half /= 2)
        for (int64_t i = 0; i < half; ++i)
          sums[i] = r.combine(sums[i], sums[i + half]);
      return sums[0];
    };
    // All warps have the same columns, so all decide alike.
    auto any = [&](Value condition) { return anyOf(condition, {16, 8, 4, 2, 1}); };
    Value result = r.result(block({}), b.getI64IntegerAttr(shape.rows), block, any);
    b.when(b.both(b.below(b.thread, kWarp), b.below(col, shape.cols)),
           [&] { b.store(result, element(kOut, b.add(b.mul(b.slot, shape.cols), col)), 4); });
  }

  gpu::GPUModuleOp code;
  const BlockReduction &reduction;
  BlockBuilder b;
  Reducer r;
  Shape shape;
  Type f32;
  GpuKernels made;
  Value line, lane; ///< the number of the thread's half warp, and of the thread in it
  Value slab;
};

} // namespace

GpuKernels ReduceKernels::onGpu(gpu::GPUModuleOp code, exec::ApplyOp op) const {
  BlockReduction reduction(op);
  return Emitter(code, reduction).emit();
}

} // namespace stepc::kernels
