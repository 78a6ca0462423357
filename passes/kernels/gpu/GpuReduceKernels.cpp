//===- GpuReduceKernels.cpp - #optim.block_reduce by a GPU's blocks --------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/gpu/SumBuilder.h"
#include "passes/kernels/products/Tiling.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

using sums::Phase;
using sums::Remains;

constexpr int64_t kWarps = kThreads / kWarp;
/// The numbers of a line that a lane loads before it adds them up.
constexpr int64_t kAhead = 8;
constexpr int64_t kRun = kAhead * kWarp;
/// The numbers of a column that a thread adds up at once.
constexpr int64_t kDown = 64;

enum : unsigned { kScratch, kSource, kOut, kBuffers };

/// The common part of kernels of sums and of maxima. It shares out a line to the lanes of a warp, and a
/// matrix to warps.
class ReduceEmitter {
public:
  ReduceEmitter(gpu::GPUModuleOp code, exec::ApplyOp op)
      : code(code), reduction(reductionOf(op)),
        type(cast<exec::BatchAttr>(op.getSources()[0]).getType()),
        b(code.getContext(), op.getLoc(), sums::termsOf(reduction.kind)), f32(b.getF32Type()) {}
  virtual ~ReduceEmitter() = default;

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

protected:
  using Values = SmallVector<Value>;

  /// The result of a warp, or of a thread, that has seen no number.
  virtual Values nothing(bool ofWarp) = 0;
  using NumberAt = SumBuilder::NumberAt;
  /// Adds kAhead numbers of each lane of a warp.
  virtual Values addOfWarp(ValueRange found, NumberAt number) = 0;
  /// Adds `count` numbers of a thread.
  virtual Values addOfThread(ValueRange found, Value count, NumberAt number) = 0;
  virtual Values combine(ValueRange found, ValueRange other) = 0;
  /// The result of what a warp found. The first lane has it.
  virtual Value resultOfWarp(ValueRange found, int64_t count) = 0;
  virtual Value resultOfThread(ValueRange found, int64_t count) = 0;
  /// Stores what a warp found of a part, and adds a part that was stored.
  virtual void storePart(ValueRange found, Value part) = 0;
  virtual Values addPart(ValueRange found, Value part) = 0;
  /// Stands for a number past the end of a line.
  virtual float padding() const = 0;

  Value buffer(unsigned index) { return b.function.getArgument(index); }
  Value isFirstLane() { return b.below(lane, 1); }

  gpu::GPUModuleOp code;
  const sums::BlockReduction reduction;
  const Type type; ///< of the source
  SumBuilder b;
  const Type f32;
  Value warp, lane;

private:
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
    return b.loop(first, last, stride, found, [&](Value at, ValueRange found) {
      Value mine = b.add(at, lane);
      return addOfWarp(found, [&](Value i) {
        Value index = b.add(mine, b.mul(i, kWarp)), isThere = b.below(index, last);
        // A lane past the end loads the last number.
        Value loaded = number(from, b.smaller(index, b.add(last, -1)));
        return b.select(isThere, loaded, b.number(f32, padding()));
      });
    });
  }

  /// Combines what the warps of a GPU block found. The first warp gets it.
  Values overWarps(ValueRange found) {
    SmallVector<Value> memories;
    for (Value each : found) {
      Value memory = b.memory(each.getType(), kThreads);
      b.store(each, b.address(memory, each.getType(), b.thread));
      memories.push_back(memory);
    }
    b.barrier();
    Values all = nothing(/*ofWarp=*/found.size() == nothing(true).size());
    for (int64_t i = 0; i < kWarps; ++i) {
      Values other;
      for (auto [memory, each] : llvm::zip(memories, found))
        other.push_back(
            b.load(each.getType(), b.address(memory, each.getType(), b.add(lane, i * kWarp))));
      all = combine(all, other);
    }
    return all;
  }

  /// What the GPU block finds of numbers [first, last) of the slot's block. The first warp gets it.
  Values overBlock(Value first, Value last) {
    Values found =
        addLine(nothing(true), block(), b.add(first, b.mul(warp, kRun)), last, kRun * kWarps);
    return overWarps(found);
  }
  void inFirstWarp(function_ref<void()> body) { b.when(b.below(b.thread, kWarp), body); }
  void storeResult(Value result, Value index) {
    b.when(isFirstLane(), [&] { b.store(result, b.address(buffer(kOut), f32, index), 4); });
  }

  void emitOne() {
    int64_t count = reduction.rows * reduction.cols;
    Values found = overBlock(b.constant(0), b.constant(count));
    inFirstWarp([&] { storeResult(resultOfWarp(found, count), b.slot); });
  }
  void emitParts() {
    Value first = b.mul(b.item, sums::kPartElements);
    Value last = b.smaller(b.add(first, sums::kPartElements), reduction.rows * reduction.cols);
    Values found = overBlock(first, last);
    inFirstWarp([&] { storePart(found, partAt(b.item)); });
  }
  void emitCombine() {
    Values found = b.loop(warp, b.constant(reduction.parts()), kWarps, nothing(true),
                          [&](Value i, ValueRange found) { return addPart(found, partAt(i)); });
    Values all = overWarps(found);
    inFirstWarp([&] { storeResult(resultOfWarp(all, reduction.rows * reduction.cols), b.slot); });
  }
  Value partAt(Value index) {
    Value part = b.add(b.mul(b.slot, reduction.parts()), index);
    return b.address(buffer(kScratch), b.getI8Type(), b.mul(part, sums::kPartBytes));
  }
  void emitRows() {
    Value row = b.add(b.mul(b.item, kWarps), warp);
    b.when(b.below(row, reduction.rows), [&] {
      Value from = b.element(block(), type, b.mul(row, reduction.cols));
      Values found = addLine(nothing(true), from, b.constant(0), b.constant(reduction.cols), kRun);
      storeResult(resultOfWarp(found, reduction.cols), b.add(b.mul(b.slot, reduction.rows), row));
    });
  }
  /// A lane has a column, and the warps share its rows.
  void emitColumns() {
    Value column = b.add(b.mul(b.item, kWarp), lane);
    Value from = b.element(block(), type, b.smaller(column, reduction.cols - 1));
    Values found = b.loop(b.mul(warp, kDown), b.constant(reduction.rows), kDown * kWarps,
                          nothing(false), [&](Value row, ValueRange found) {
                            Value count = b.smaller(b.sub(b.constant(reduction.rows), row), kDown);
                            return addOfThread(found, count, [&](Value i) {
                              return number(from, b.mul(b.add(row, i), reduction.cols));
                            });
                          });
    Values all = overWarps(found);
    inFirstWarp([&] {
      Value result = resultOfThread(all, reduction.rows);
      b.when(b.below(column, reduction.cols), [&] {
        Value at = b.add(b.mul(b.slot, reduction.cols), column);
        b.store(result, b.address(buffer(kOut), f32, at), 4);
      });
    });
  }
};

class ExactSumEmitter : public ReduceEmitter {
public:
  using ReduceEmitter::ReduceEmitter;

private:
  using Sum = SumBuilder::Sum;

  Values nothing(bool ofWarp) override { return (ofWarp ? b.ofWarp() : b.ofThread()).values(); }
  Values addOfWarp(ValueRange found, NumberAt number) override {
    return b.addOfWarp(Sum::of(found), kAhead, number).values();
  }
  Values addOfThread(ValueRange found, Value count, NumberAt number) override {
    return b.addOfThread(Sum::of(found), count, number).values();
  }
  Values combine(ValueRange found, ValueRange other) override {
    Values all;
    for (auto [a, c] : llvm::zip(found.drop_back(), other.drop_back()))
      all.push_back(b.KernelBuilder::add(a, c));
    all.push_back(b.either(found.back(), other.back()));
    return all;
  }
  Value resultOfWarp(ValueRange found, int64_t count) override {
    return resultOfThread(b.spread(Sum::of(found)).values(), count);
  }
  /// As sums::finish.
  Value resultOfThread(ValueRange found, int64_t count) override {
    Value sum = b.total(b.carried(Sum::of(found)));
    if (reduction.kind == plan::Reduction::Mean || reduction.kind == plan::Reduction::Rms)
      sum = arith::DivFOp::create(b, b.loc, sum, b.real(double(count)));
    if (sums::termsOf(reduction.kind) == sums::Terms::Squares)
      sum = arith::MulFOp::create(b, b.loc, math::SqrtOp::create(b, b.loc, sum),
                                  b.real(std::ldexp(1.0, int(reduction.exponent))));
    Value isNaN = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::UNO, sum, sum);
    Value rounded = arith::TruncFOp::create(b, b.loc, f32, sum);
    return b.select(isNaN, b.bits(f32, b.word(0x7fc00000)), rounded);
  }
  void storePart(ValueRange found, Value part) override {
    Values digits = b.carried(b.spread(Sum::of(found)));
    b.when(isFirstLane(), [&] {
      for (auto [i, digit] : llvm::enumerate(digits))
        b.store(digit, b.address(part, b.getI32Type(), int64_t(i)), 4);
    });
  }
  Values addPart(ValueRange found, Value part) override {
    Value digits = b.constant(b.kDigits), isDigit = b.below(lane, digits);
    Value index = b.smaller(lane, b.kDigits - 1);
    Value digit = b.load(b.getI32Type(), b.address(part, b.getI32Type(), index));
    Value isLast = b.equal(lane, b.kDigits - 1);
    // The highest bits of the last digit are flags, or the sign.
    Value flags = b.right(digit, 29);
    flags = b.select(b.equal(flags, 7), b.word(0), flags);
    flags = b.select(isLast, flags, b.word(0));
    flags = b.overWarp(flags, [&](Value a, Value c) { return b.either(a, c); });
    Value number = b.select(isLast, b.signedWide(digit), b.wide(digit));
    Value isFinite = b.equal(flags, 0);
    number = b.select(b.both(isDigit, isFinite), number, b.constant(0));
    return combine(found, ValueRange{number, flags});
  }
  float padding() const override { return 0.0f; }
};

/// A number is found as an integer that orders numbers, of which NaN is the largest.
class MaximumEmitter : public ReduceEmitter {
public:
  using ReduceEmitter::ReduceEmitter;

private:
  static constexpr int64_t kNaN = INT32_MAX, kLeast = int32_t(0xff800000 ^ 0x7fffffff);

  Value larger(Value a, Value c) { return arith::MaxSIOp::create(b, b.loc, a, c); }
  Value orderOf(Value number) {
    Value bits = b.bits(b.getI32Type(), number);
    Value flip = b.masked(b.signedRight(bits, 31), 0x7fffffff);
    Value order = arith::XOrIOp::create(b, b.loc, bits, flip);
    Value size = b.masked(bits, 0x7fffffff);
    return b.select(b.compare(arith::CmpIPredicate::ugt, size, 0x7f800000), b.word(kNaN), order);
  }

  Values nothing(bool) override { return {b.word(kLeast)}; }
  Values addOfWarp(ValueRange found, NumberAt number) override {
    Value largest = found[0];
    for (int64_t i = 0; i < kAhead; ++i)
      largest = larger(largest, orderOf(number(b.constant(i))));
    return {largest};
  }
  Values addOfThread(ValueRange found, Value count, NumberAt number) override {
    return {b.fold(b.constant(0), count, 1, found[0],
                   [&](Value i, Value largest) { return larger(largest, orderOf(number(i))); })};
  }
  Values combine(ValueRange found, ValueRange other) override {
    return {larger(found[0], other[0])};
  }
  Value resultOfWarp(ValueRange found, int64_t count) override {
    auto combine = [&](Value a, Value c) { return larger(a, c); };
    return resultOfThread(b.overWarp(found[0], combine), count);
  }
  Value resultOfThread(ValueRange found, int64_t) override {
    Value flip = b.masked(b.signedRight(found[0], 31), 0x7fffffff);
    Value bits = arith::XOrIOp::create(b, b.loc, found[0], flip);
    return b.bits(f32, b.select(b.equal(found[0], kNaN), b.word(0x7fc00000), bits));
  }
  void storePart(ValueRange found, Value part) override {
    auto combine = [&](Value a, Value c) { return larger(a, c); };
    Value largest = b.overWarp(found[0], combine);
    b.when(isFirstLane(), [&] { b.store(largest, part, 4); });
  }
  Values addPart(ValueRange found, Value part) override {
    return combine(found, b.load(b.getI32Type(), part));
  }
  float padding() const override { return -std::numeric_limits<float>::infinity(); }
};

} // namespace

GpuKernels ReduceKernels::onGpu(gpu::GPUModuleOp code, exec::ApplyOp op) const {
  if (reductionOf(op).kind == plan::Reduction::Max)
    return MaximumEmitter(code, op).emit();
  return ExactSumEmitter(code, op).emit();
}

} // namespace stepc::kernels
