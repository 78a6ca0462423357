//===- SumBuilder.cpp - Exact sums by a GPU's threads -----------------------===//

#include "passes/kernels/gpu/SumBuilder.h"
#include "runtime/sums/Sweep.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace stepc::kernels {

using sums::kWordBits;

/// Adding it rounds a number below 2^51 to an integer, which then stands in the low bits. Terms are scaled,
/// so that one constant serves all warps.
static constexpr double kToInteger = 0x1.8p52;

//===--- a warp ---===//

Value SumBuilder::exchangeWide(Value x, int32_t lanes) {
  Value lower = exchange(low(x), lanes), upper = exchange(low(right(x, 32)), lanes);
  return either(wide(lower), left(wide(upper), 32));
}

Value SumBuilder::overWarp(Value x, Combine combine) {
  bool isWide = x.getType().isInteger(64);
  for (int32_t lanes = kWarp / 2; lanes >= 1; lanes /= 2)
    x = combine(x, isWide ? exchangeWide(x, lanes) : exchange(x, lanes));
  return x;
}

//===--- terms ---===//

Value SumBuilder::term(Value number) {
  Value value = arith::ExtFOp::create(*this, loc, getF64Type(), number);
  return terms == sums::Terms::Squares ? Value(arith::MulFOp::create(*this, loc, value, value))
                                       : value;
}

SumBuilder::Taken SumBuilder::take(Value scaled) {
  Taken taken;
  Value toInteger = real(kToInteger);
  int count = sums::wordsOf(terms);
  for (int k = 0; k < count; ++k) {
    Value moved = arith::AddFOp::create(*this, loc, scaled, toInteger);
    taken.words.push_back(sub(bits(getI64Type(), moved), bits(getI64Type(), toInteger)));
    Value whole = arith::SubFOp::create(*this, loc, moved, toInteger);
    scaled = arith::SubFOp::create(*this, loc, scaled, whole);
    if (k + 1 < count)
      scaled = arith::MulFOp::create(*this, loc, scaled, real(sums::powerOfTwo(kWordBits)));
  }
  taken.rest = scaled;
  return taken;
}

Value SumBuilder::skip(Value scaled, Value sweeps) {
  return fold(constant(0), sweeps, 1, scaled, [&](Value, Value left) -> Value {
    return arith::MulFOp::create(*this, loc, take(left).rest, real(sums::powerOfTwo(kWordBits)));
  });
}

Value SumBuilder::magnitude(Value number) { return masked(bits(getI32Type(), number), 0x7fffffff); }

Value SumBuilder::topOf(Value magnitude) {
  Value exponent = right(magnitude, 23);
  Value top = sub(select(equal(exponent, 0), word(1), exponent), word(126));
  return terms == sums::Terms::Squares ? left(top, 1) : top;
}

Value SumBuilder::scaleOf(Value top) {
  Value exponent = sub(word(kWordBits + 1023), top);
  return bits(getF64Type(), left(wide(exponent), 52));
}

Value SumBuilder::flagOf(Value number) {
  Value size = magnitude(number);
  Value isNegative = compare(arith::CmpIPredicate::slt, bits(getI32Type(), number), 0);
  Value infinite = terms == sums::Terms::Squares ? word(1) : select(isNegative, word(2), word(1));
  Value flag = select(compare(arith::CmpIPredicate::ugt, size, 0x7f800000), word(3), infinite);
  return select(compare(arith::CmpIPredicate::uge, size, 0x7f800000), flag, word(0));
}

Value SumBuilder::pieceOf(Value word, Value exponent, Value digit) {
  Value shift = KernelBuilder::add(exponent, this->word(-unitOf(terms)));
  // What a shift to the right drops is 0. Words of units below are 0, too.
  Value none = this->word(0), low = compare(arith::CmpIPredicate::slt, shift, 0);
  Value dropped = select(low, sub(none, shift), none);
  dropped = arith::MinSIOp::create(*this, loc, dropped, this->word(63));
  word = signedRight(word, wide(dropped));
  shift = select(low, none, shift);
  Value bitsLeft = wide(masked(shift, 31));
  Value lower = left(word, bitsLeft);
  Value upper = signedRight(signedRight(word, sub(constant(63), bitsLeft)), 1);
  Value place = sub(digit, right(shift, 5));
  Value piece = select(equal(place, 2), upper, constant(0));
  piece = select(equal(place, 1), right(lower, 32), piece);
  return select(equal(place, 0), masked(lower, 0xffffffff), piece);
}

//===--- sums ---===//

Value SumBuilder::anyBits(Value number) { return masked(bits(getI64Type(), number), INT64_MAX); }

SmallVector<Value> SumBuilder::takeAll(Value count, Value scale, Value sweeps, NumberAt number) {
  int words = sums::wordsOf(terms);
  SmallVector<Value> start(words + 1, constant(0));
  return loop(constant(0), count, 1, start, [&](Value i, ValueRange before) {
    Value scaled = arith::MulFOp::create(*this, loc, term(number(i)), scale);
    Taken taken = take(skip(scaled, sweeps));
    SmallVector<Value> after;
    for (int k = 0; k < words; ++k)
      after.push_back(KernelBuilder::add(before[k], taken.words[k]));
    after.push_back(either(before[words], anyBits(taken.rest)));
    return after;
  });
}

Value SumBuilder::topBehind(Value top, Value sweeps) {
  return sub(top, low(mul(sweeps, sums::wordsOf(terms) * kWordBits)));
}

Value SumBuilder::isLeft(Value rests, Value sweeps) {
  return both(differs(rests, 0), below(sweeps, kMostSweeps));
}

SumBuilder::Sum SumBuilder::addOfWarp(const Sum &sum, int64_t count, NumberAt number) {
  auto larger = [&](Value a, Value b) -> Value { return arith::MaxUIOp::create(*this, loc, a, b); };
  auto orOf = [&](Value a, Value b) { return either(a, b); };
  auto plus = [&](Value a, Value b) { return KernelBuilder::add(a, b); };
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(number(constant(i)));
  Value largest = word(0);
  for (Value each : numbers)
    largest = larger(largest, magnitude(each));
  largest = overWarp(largest, larger);
  Value lane = low(remainder(thread, kWarp));
  Value isFinite = compare(arith::CmpIPredicate::ult, largest, 0x7f800000);

  auto ifOp = scf::IfOp::create(*this, loc, TypeRange{getI64Type(), getI32Type()}, isFinite,
                                /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(&ifOp.getElseRegion().front());
  Value flags = sum.flags;
  for (Value each : numbers)
    flags = either(flags, flagOf(each));
  scf::YieldOp::create(*this, loc, ValueRange{sum.digits[0], overWarp(flags, orOf)});

  setInsertionPointToStart(&ifOp.getThenRegion().front());
  Value top = topOf(largest), scale = scaleOf(top);
  int words = sums::wordsOf(terms);
  /// Adds what the lanes took to the digit. Returns it, and whether any term has bits below.
  auto gather = [&](Value digit, ValueRange found, Value top) {
    for (int k = 0; k < words; ++k)
      digit = KernelBuilder::add(
          digit, pieceOf(overWarp(found[k], plus), sub(top, word(kWordBits * (k + 1))), lane));
    Value left = either(low(found[words]), low(right(found[words], 32)));
    return SmallVector<Value>{digit, overWarp(left, orOf)};
  };
  SmallVector<Value> found(words + 1, constant(0));
  for (Value each : numbers) {
    Taken taken = take(arith::MulFOp::create(*this, loc, term(each), scale));
    for (int k = 0; k < words; ++k)
      found[k] = KernelBuilder::add(found[k], taken.words[k]);
    found[words] = either(found[words], anyBits(taken.rest));
  }
  SmallVector<Value> start = gather(sum.digits[0], found, top);
  start.push_back(constant(1));
  auto whileOp = scf::WhileOp::create(
      *this, loc, TypeRange(ValueRange(start)), start,
      [&](OpBuilder &, Location, ValueRange values) {
        scf::ConditionOp::create(*this, loc, isLeft(values[1], values[2]), values);
      },
      [&](OpBuilder &, Location, ValueRange values) {
        SmallVector<Value> deeper = takeAll(constant(count), scale, values[2], number);
        SmallVector<Value> next = gather(values[0], deeper, topBehind(top, values[2]));
        next.push_back(add(values[2], 1));
        scf::YieldOp::create(*this, loc, next);
      });
  scf::YieldOp::create(*this, loc, ValueRange{whileOp.getResult(0), sum.flags});
  return Sum::of(ifOp.getResults());
}

SumBuilder::Sum SumBuilder::addOfThread(const Sum &sum, Value count, NumberAt number) {
  Value largest = fold(constant(0), count, 1, word(0), [&](Value i, Value largest) -> Value {
    return arith::MaxUIOp::create(*this, loc, largest, magnitude(number(i)));
  });
  Value isFinite = compare(arith::CmpIPredicate::ult, largest, 0x7f800000);
  SmallVector<Type> types(sum.digits.size(), getI64Type());
  types.push_back(getI32Type());
  auto ifOp = scf::IfOp::create(*this, loc, types, isFinite, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(&ifOp.getElseRegion().front());
  Sum flagged = sum;
  flagged.flags = fold(constant(0), count, 1, sum.flags,
                       [&](Value i, Value flags) { return either(flags, flagOf(number(i))); });
  scf::YieldOp::create(*this, loc, flagged.values());

  setInsertionPointToStart(&ifOp.getThenRegion().front());
  Value top = topOf(largest), scale = scaleOf(top);
  int words = sums::wordsOf(terms);
  SmallVector<Value> start(sum.digits);
  start.push_back(constant(0));
  auto whileOp = scf::WhileOp::create(
      *this, loc, TypeRange(ValueRange(start)), start,
      [&](OpBuilder &, Location, ValueRange values) {
        Value sweeps = values.back();
        SmallVector<Value> found = takeAll(count, scale, sweeps, number);
        SmallVector<Value> next(values.drop_back());
        for (int k = 0; k < words; ++k) {
          Value exponent = sub(topBehind(top, sweeps), word(kWordBits * (k + 1)));
          for (auto [i, digit] : llvm::enumerate(next))
            digit = KernelBuilder::add(digit, pieceOf(found[k], exponent, word(int64_t(i))));
        }
        next.push_back(add(sweeps, 1));
        scf::ConditionOp::create(*this, loc, isLeft(found[words], next.back()), next);
      },
      [&](OpBuilder &, Location, ValueRange values) { scf::YieldOp::create(*this, loc, values); });
  Sum finite{llvm::to_vector(ValueRange(whileOp.getResults()).drop_back()), sum.flags};
  scf::YieldOp::create(*this, loc, finite.values());
  return Sum::of(ifOp.getResults());
}

SumBuilder::Sum SumBuilder::spread(const Sum &sum) {
  // Lane 0 gets digit i from lane i. What other lanes get is of no use.
  Sum all{{}, sum.flags};
  for (int i = 0; i < kDigits; ++i)
    all.digits.push_back(i ? exchangeWide(sum.digits[0], i) : sum.digits[0]);
  return all;
}

SmallVector<Value> SumBuilder::carried(const Sum &sum) {
  Value isFinite = equal(sum.flags, 0), carry = constant(0);
  SmallVector<Value> digits;
  for (Value digit : sum.digits) {
    carry = KernelBuilder::add(carry, digit);
    digits.push_back(select(isFinite, low(carry), word(0)));
    carry = signedRight(carry, 32);
  }
  digits.back() = either(digits.back(), left(sum.flags, 29));
  return digits;
}

Value SumBuilder::total(ValueRange digits) {
  Value zero = word(0), isNegative = compare(arith::CmpIPredicate::slt, digits.back(), 0);
  // The size of the sum: the digits, or what they lack to 2^(32 digits).
  Value flip = select(isNegative, word(-1), zero), carry = wide(select(isNegative, word(1), zero));
  // The highest digit that is not 0, the two below, and whether anything lies below these.
  Value place = zero, top = zero, second = zero, third = zero, rest = zero;
  Value before = zero, beforeThat = zero, lower = zero;
  for (auto [i, digit] : llvm::enumerate(digits)) {
    carry = KernelBuilder::add(carry, wide(arith::XOrIOp::create(*this, loc, digit, flip)));
    Value size = low(carry);
    carry = right(carry, 32);
    Value isHigher = differs(size, 0);
    place = select(isHigher, word(int64_t(i)), place);
    top = select(isHigher, size, top);
    second = select(isHigher, before, second);
    third = select(isHigher, beforeThat, third);
    rest = select(isHigher, lower, rest);
    lower = either(lower, beforeThat);
    beforeThat = before;
    before = size;
  }
  Value lead = math::CountLeadingZerosOp::create(*this, loc, top);
  Value high = either(left(wide(top), 32), wide(second));
  Value number = either(left(high, wide(lead)), right(wide(third), wide(sub(word(32), lead))));
  Value left32 = low(left(wide(third), wide(lead)));
  Value isRest = differs(either(rest, left32), 0);
  // A bit below all that an f64 holds keeps a tie from looking like one.
  number = either(number, wide(isRest));
  Value value = arith::UIToFPOp::create(*this, loc, getF64Type(), number);
  Value exponent = sub(left(sub(place, word(1)), 5), lead);
  exponent = KernelBuilder::add(exponent, word(unitOf(terms) + 1023));
  value = arith::MulFOp::create(*this, loc, value, bits(getF64Type(), left(wide(exponent), 52)));
  value = select(isNegative, arith::NegFOp::create(*this, loc, value), value);
  Value flags = right(digits.back(), 29);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  value = select(equal(flags, 1), real(kInfinity), value);
  value = select(equal(flags, 2), real(-kInfinity), value);
  value = select(equal(flags, 3), real(std::numeric_limits<double>::quiet_NaN()), value);
  // A sum of 0 has no highest bit.
  return select(equal(either(top, flags), 0), real(0), value);
}

} // namespace stepc::kernels
