//===- ReduceWay.cpp - How a GPU's threads reduce numbers -------------------===//

#include "passes/kernels/gpu/ReduceWay.h"
#include "runtime/sums/Maximum.h"
#include "runtime/sums/Reduce.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace stepc::kernels {

ReduceWay::Values ReduceWay::addLine(ValueRange found, Value first, Value last, int64_t stride,
                                     NumberAt number) {
  return b.loop(first, last, stride, found, [&](Value at, ValueRange found) {
    Value mine = b.add(at, lane());
    return addOfWarp(found, [&](Value i) {
      Value index = b.add(mine, b.mul(i, kWarp)), isThere = b.below(index, last);
      // A lane past the end takes the last number.
      Value taken = number(b.smaller(index, b.add(last, -1)));
      return b.select(isThere, taken, b.number(f32, padding()));
    });
  });
}

ReduceWay::Values ReduceWay::addColumns(ValueRange found, Value rows, NumberAt number) {
  Value warp = b.quotient(b.thread, kWarp);
  return b.loop(b.mul(warp, kDown), rows, kDown * kWarps, found, [&](Value row, ValueRange found) {
    Value count = b.smaller(b.sub(rows, row), kDown);
    return addOfThread(found, count, [&](Value i) { return number(b.add(row, i)); });
  });
}

ReduceWay::Values ReduceWay::overWarps(ValueRange found) {
  Values memories;
  for (Value each : found) {
    Value memory = b.memory(each.getType(), kThreads);
    b.store(each, b.address(memory, each.getType(), b.thread));
    memories.push_back(memory);
  }
  b.barrier();
  Values all = found.size() == ofWarp().size() ? ofWarp() : ofThread();
  for (int64_t i = 0; i < kWarps; ++i) {
    Values other;
    for (auto [memory, each] : llvm::zip(memories, found))
      other.push_back(
          b.load(each.getType(), b.address(memory, each.getType(), b.add(lane(), i * kWarp))));
    all = combine(all, other);
  }
  return all;
}

namespace {

class ExactSum : public ReduceWay {
public:
  ExactSum(SumBuilder &b, plan::Reduction kind, int64_t exponent)
      : ReduceWay(b), kind(kind), exponent(exponent) {}

private:
  using Sum = SumBuilder::Sum;

  Values ofWarp() override { return b.ofWarp().values(); }
  Values ofThread() override { return b.ofThread().values(); }
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
  Value resultOfWarp(ValueRange found, Value count) override {
    return resultOfThread(b.spread(Sum::of(found)).values(), count);
  }
  /// As sums::finish.
  Value resultOfThread(ValueRange found, Value count) override {
    Value sum = b.total(b.carried(Sum::of(found)));
    if (kind == plan::Reduction::Mean || kind == plan::Reduction::Rms)
      sum = arith::DivFOp::create(b, b.loc, sum,
                                  arith::SIToFPOp::create(b, b.loc, b.getF64Type(), count));
    if (sums::termsOf(kind) == sums::Terms::Squares)
      sum = arith::MulFOp::create(b, b.loc, math::SqrtOp::create(b, b.loc, sum),
                                  b.real(std::ldexp(1.0, int(exponent))));
    Value isNaN = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::UNO, sum, sum);
    Value rounded = arith::TruncFOp::create(b, b.loc, f32, sum);
    return b.select(isNaN, b.bits(f32, b.word(0x7fc00000)), rounded);
  }
  void storePart(ValueRange found, Value part) override {
    Values all = b.spread(Sum::of(found)).values();
    b.when(isFirstLane(), [&] { storePartOfThread(all, part); });
  }
  void storePartOfThread(ValueRange found, Value part) override {
    for (auto [i, digit] : llvm::enumerate(b.carried(Sum::of(found))))
      b.store(digit, b.address(part, b.getI32Type(), int64_t(i)), 4);
  }
  Values addPart(ValueRange found, Value part) override {
    Value digits = b.constant(b.kDigits), isDigit = b.below(lane(), digits);
    Value index = b.smaller(lane(), b.kDigits - 1);
    Value digit = b.load(b.getI32Type(), b.address(part, b.getI32Type(), index));
    Value isLast = b.equal(lane(), b.kDigits - 1);
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

  const plan::Reduction kind;
  const int64_t exponent;
};

/// A number is found as an integer that orders numbers, of which NaN is the largest.
class Maximum : public ReduceWay {
public:
  using ReduceWay::ReduceWay;

private:
  static constexpr int64_t kNaN = sums::Maximum::kNaN, kLeast = sums::Maximum::kLeast;

  Value larger(Value a, Value c) { return arith::MaxSIOp::create(b, b.loc, a, c); }
  Value orderOf(Value number) {
    Value bits = b.bits(b.getI32Type(), number);
    Value flip = b.masked(b.signedRight(bits, 31), 0x7fffffff);
    Value order = arith::XOrIOp::create(b, b.loc, bits, flip);
    Value size = b.masked(bits, 0x7fffffff);
    return b.select(b.compare(arith::CmpIPredicate::ugt, size, 0x7f800000), b.word(kNaN), order);
  }

  Values ofWarp() override { return {b.word(kLeast)}; }
  Values ofThread() override { return ofWarp(); }
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
  Value resultOfWarp(ValueRange found, Value count) override {
    auto combine = [&](Value a, Value c) { return larger(a, c); };
    return resultOfThread(b.overWarp(found[0], combine), count);
  }
  Value resultOfThread(ValueRange found, Value) override {
    Value flip = b.masked(b.signedRight(found[0], 31), 0x7fffffff);
    Value bits = arith::XOrIOp::create(b, b.loc, found[0], flip);
    return b.bits(f32, b.select(b.equal(found[0], kNaN), b.word(0x7fc00000), bits));
  }
  void storePart(ValueRange found, Value part) override {
    auto combine = [&](Value a, Value c) { return larger(a, c); };
    Value largest = b.overWarp(found[0], combine);
    b.when(isFirstLane(), [&] { b.store(largest, part, 4); });
  }
  void storePartOfThread(ValueRange found, Value part) override { b.store(found[0], part, 4); }
  Values addPart(ValueRange found, Value part) override {
    return combine(found, b.load(b.getI32Type(), part));
  }
  float padding() const override { return -std::numeric_limits<float>::infinity(); }
};

} // namespace

std::unique_ptr<ReduceWay> ReduceWay::make(SumBuilder &b, plan::Reduction kind, int64_t exponent) {
  if (kind == plan::Reduction::Max)
    return std::make_unique<Maximum>(b);
  return std::make_unique<ExactSum>(b, kind, exponent);
}

} // namespace stepc::kernels
