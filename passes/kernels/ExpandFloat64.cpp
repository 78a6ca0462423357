//===- ExpandFloat64.cpp - exp, log and powers of f64 ----------------------===//
//
// log(x) is computed as an unevaluated sum of two numbers, accurate to 2^-65, and exp takes such a sum. A
// power is exp(y · log(x)). Both are series without tables, of IEEE operations that every chip has. A fused
// multiply-add is used only for the exact error of a product. Dekker's splitting gives the same error, so
// chips without fused multiply-adds get the same bits.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BitArithmetic.h"
#include "passes/kernels/Expansions.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace stepc::kernels {
namespace {

using Predicate = arith::CmpFPredicate;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// ln 2 in two parts, the first with so few bits that its products with exponents are exact.
constexpr double kDoubleLn2High = 0x1.62e42fefa38p-1, kDoubleLn2Low = 0x1.ef35793c7673p-45;

/// The unevaluated sum of two numbers. The second is at most half a unit in the last place of the first.
struct Pair {
  Value high, low;
};

class Double : public Bits {
public:
  Double(PatternRewriter &rewriter, Location loc, Type shape, bool fuses)
      : Bits{rewriter, loc, shape, /*wide=*/true, fuses} {}

  /// log of a positive, finite number: log(m · 2^e) = 2 atanh(s) + e · ln 2, √½ ≤ m < √2,
  /// s = (m − 1) / (m + 1).
  Pair logarithm(Value input) const {
    Value tiny = compare(Predicate::OLT, input, constant(0x1p-1022));
    Value normal = choose(tiny, product(input, constant(0x1p54)), input);
    constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000;
    Value raised = plus(bits(normal), number(kOne - kRootHalf));
    Value m = real(plus(both(raised, 0xfffffffffffff), number(kRootHalf)));
    Value bias = choose(tiny, constant(1023 + 54), constant(1023));
    Value e = difference(whole(right(raised, 52)), bias);

    Value one = constant(1.0), f = difference(m, one), g = sum(m, one);
    Value gLow = difference(m, difference(g, one));
    Value inverse = arith::DivFOp::create(b, loc, one, g);
    Value sHigh = product(f, inverse), back = product(sHigh, g);
    Value rest = difference(difference(f, back), errorOf(sHigh, g, back));
    rest = difference(rest, product(sHigh, gLow));
    Pair s{sHigh, product(rest, inverse)};

    // atanh(s) = s + s · z · (1/3 + z · (1/5 + z · (1/7 + …))), z = s². Later terms matter less, so
    // the first three are pairs and the others are single numbers.
    Pair z = times(s, s);
    SmallVector<Value> odd;
    for (int k = 7; k <= 25; k += 2)
      odd.push_back(constant(1.0 / k));
    Pair fifth = plus({constant(0x1.999999999999ap-3), constant(-0x1.999999999999ap-57)},
                      product(z.high, polynomial(odd, z.high)));
    Pair third =
        add({constant(0x1.5555555555555p-2), constant(0x1.5555555555555p-56)}, times(z, fifth));
    Pair atanh = add(s, times(s, times(z, third)));
    Value two = constant(2.0);
    Pair result = add({product(e, constant(kDoubleLn2High)), product(e, constant(kDoubleLn2Low))},
                      {product(two, atanh.high), product(two, atanh.low)});
    return larger(result.high, result.low);
  }

  /// exp of a sum: 2^n · exp(r), |r| ≤ ln 2 / 2. The caller handles NaN.
  Value exponential(Pair x) const {
    // Beyond these bounds the result is 0 or infinite.
    Value low = constant(-760.0), high = constant(720.0), none = constant(0.0);
    Value below = compare(Predicate::OLT, x.high, low),
          above = compare(Predicate::OGT, x.high, high);
    Value at = choose(below, low, choose(above, high, x.high));
    Value rest = choose(below, none, choose(above, none, x.low));
    // Adding kRound rounds to a whole number, which is then in the last bits of the sum.
    constexpr double kRound = 0x1.8p52;
    Value shifted = sum(product(at, constant(0x1.71547652b82fep0)), constant(kRound));
    Value n = difference(shifted, constant(kRound));
    Value r = difference(at, product(n, constant(kDoubleLn2High)));
    Pair reduced = larger(r, difference(rest, product(n, constant(kDoubleLn2Low))));
    // exp(r) = 1 + r + r² · (1/2 + r/6 + …)
    SmallVector<Value> factorials;
    double factorial = 1;
    for (int k = 2; k <= 14; ++k)
      factorials.push_back(constant(1 / (factorial *= k)));
    Value square = product(reduced.high, reduced.high);
    Value tail = product(square, polynomial(factorials, reduced.high));
    Value one = constant(1.0);
    Pair head = larger(one, reduced.high);
    Value result = sum(head.high, sum(head.low, sum(tail, reduced.low)));
    // Multiplies by 2^n in two steps, because 2^n may be out of range. Only the last product rounds.
    Value whole = minus(bits(shifted), number(llvm::bit_cast<int64_t>(kRound)));
    Value first = halved(whole), second = minus(whole, first);
    for (Value exponent : {first, second})
      result = product(result, real(left(plus(exponent, number(1023)), 52)));
    return result;
  }

  /// x^y, as C defines it for zeros, infinities, NaN and negative bases.
  Value power(Value x, Value y) const {
    Value zero = constant(0.0), one = constant(1.0), infinity = constant(kInfinity);
    Value base = absolute(x);
    // Clamps the exponent. Beyond these bounds the result is 0, 1 or infinite already, but products would
    // overflow.
    Value large = constant(0x1p65), small = constant(-0x1p65);
    Value exponent = choose(compare(Predicate::OGT, y, large), large, y);
    exponent = choose(compare(Predicate::OLT, exponent, small), small, exponent);
    Pair log = logarithm(base);
    Value high = product(exponent, log.high);
    Value low = sum(errorOf(exponent, log.high, high), product(exponent, log.low));
    Value result = exponential({high, low});
    // Bases 0 and infinity.
    Value isZero = compare(Predicate::OEQ, base, zero);
    Value falls = compare(Predicate::OLT, y, zero);
    Value isEdge = either(isZero, compare(Predicate::OEQ, base, infinity));
    Value grows = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, isZero, falls);
    result = choose(isEdge, choose(grows, infinity, zero), result);
    // Negative bases: odd exponents keep the base's sign, and exponents that are not whole give NaN.
    Value isWhole = wholeNumber(y);
    Value isOdd = conjunction(isWhole, no(wholeNumber(product(y, constant(0.5)))));
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, bits(x), number(0));
    result = choose(conjunction(isNegative, isOdd), negative(result), result);
    Value nan = real(number(0x7ff8000000000000));
    Value lies = conjunction(compare(Predicate::OLT, x, zero), no(isWhole));
    lies = conjunction(lies, compare(Predicate::ONE, base, infinity));
    lies = either(lies, compare(Predicate::UNO, x, y));
    result = choose(lies, nan, result);
    Value isOne = either(compare(Predicate::OEQ, x, one), compare(Predicate::OEQ, y, zero));
    return choose(isOne, one, result);
  }

  /// The logarithm of any number, rounded to one f64. Handles 0, infinity, negative numbers and NaN.
  Value roundedLogarithm(Value x) const {
    Pair log = logarithm(x);
    Value infinity = constant(kInfinity), zero = constant(0.0);
    Value result = choose(compare(Predicate::OLT, x, infinity), log.high, infinity);
    result = choose(compare(Predicate::OEQ, x, zero), constant(-kInfinity), result);
    return choose(compare(Predicate::UGE, x, zero), orNaN(x, result),
                  real(number(0x7ff8000000000000)));
  }
  Value orNaN(Value x, Value result) const {
    return choose(compare(Predicate::ORD, x, x), result, real(number(0x7ff8000000000000)));
  }

private:
  Value conjunction(Value v, Value w) const { return arith::AndIOp::create(b, loc, v, w); }
  Value no(Value v) const {
    Value yes = splat(v.getType(), b.getBoolAttr(true));
    return arith::XOrIOp::create(b, loc, v, yes);
  }
  /// An integer below 2^52 as a float.
  Value whole(Value v) const {
    return difference(real(either(v, number(llvm::bit_cast<int64_t>(0x1p52)))), constant(0x1p52));
  }
  Value wholeNumber(Value v) const {
    Value size = absolute(v), unit = constant(0x1p52);
    Value same = compare(Predicate::OEQ, difference(sum(size, unit), unit), size);
    return either(same, compare(Predicate::OGE, size, unit));
  }

  /// v · w − p, exactly, where p = v · w rounded.
  Value errorOf(Value v, Value w, Value p) const {
    if (fuses)
      return fused(v, w, negative(p));
    auto split = [&](Value x) {
      Value scaled = product(x, constant(0x1p27 + 1));
      Value high = difference(scaled, difference(scaled, x));
      return Pair{high, difference(x, high)};
    };
    Pair a = split(v), c = split(w);
    Value rest = sum(difference(product(a.high, c.high), p), product(a.high, c.low));
    return sum(sum(rest, product(a.low, c.high)), product(a.low, c.low));
  }
  /// v + w as a pair. The caller guarantees that v is 0 or has at least the magnitude of w.
  Pair larger(Value v, Value w) const {
    Value high = sum(v, w);
    return {high, sum(difference(v, high), w)};
  }
  Pair plus(Pair v, Value w) const {
    Pair result = larger(v.high, w);
    return {result.high, sum(result.low, v.low)};
  }
  using Bits::plus;
  Pair add(Pair v, Pair w) const {
    Pair result = larger(v.high, w.high);
    return {result.high, sum(result.low, sum(v.low, w.low))};
  }
  Pair times(Pair v, Pair w) const {
    Value high = product(v.high, w.high), error = errorOf(v.high, w.high, high);
    Value cross = sum(product(v.high, w.low), product(v.low, w.high));
    return {high, sum(error, cross)};
  }
  /// coefficients[0] + coefficients[1] · x + …, by Estrin's scheme, which is a short chain of operations.
  Value polynomial(SmallVector<Value> coefficients, Value x) const {
    for (; coefficients.size() > 1; x = product(x, x)) {
      SmallVector<Value> next;
      for (size_t i = 0; i < coefficients.size(); i += 2)
        next.push_back(i + 1 < coefficients.size()
                           ? sum(coefficients[i], product(coefficients[i + 1], x))
                           : coefficients[i]);
      coefficients = std::move(next);
    }
    return coefficients.front();
  }
};

bool isF64(Type type) { return getElementTypeOrSelf(type).isF64(); }

template <typename Op> struct Expand64 : OpRewritePattern<Op> {
  Expand64(MLIRContext *context, bool fuses) : OpRewritePattern<Op>(context), fuses(fuses) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!isF64(op.getType()))
      return rewriter.notifyMatchFailure(op, "not of f64");
    Double x(rewriter, op.getLoc(), op.getType(), fuses);
    if constexpr (std::is_same_v<Op, math::PowFOp>)
      rewriter.replaceOp(op, x.power(op.getLhs(), op.getRhs()));
    else if constexpr (std::is_same_v<Op, math::LogOp>)
      rewriter.replaceOp(op, x.roundedLogarithm(op.getOperand()));
    else
      rewriter.replaceOp(
          op, x.orNaN(op.getOperand(), x.exponential({op.getOperand(), x.constant(0.0)})));
    return success();
  }
  bool fuses;
};

/// f32 v · w + u, rounded once, for chips without fused multiply-adds. The product is exact in f64. The sum
/// is rounded to odd in f64, so that its last bit says whether anything was lost, and then to f32.
struct ExpandFused : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    if (isF64(op.getType()))
      return rewriter.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    Bits x{rewriter, loc, op.getType(), /*wide=*/true};
    auto wide = [&](Value v) { return arith::ExtFOp::create(rewriter, loc, x.floats(), v); };
    Value p = x.product(wide(op.getA()), wide(op.getB())), c = wide(op.getC());
    Value s = x.sum(p, c), part = x.difference(s, p);
    Value lost = x.sum(x.difference(p, x.difference(s, part)), x.difference(c, part));
    Value bits = x.bits(s), zero = x.constant(0.0);
    // Rounds to odd: one step away from zero if what was lost has the sum's sign, otherwise one step towards
    // it.
    Value product = x.product(lost, s);
    Value away = x.compare(Predicate::OGT, product, zero);
    Value step = x.choose(away, x.number(1), x.number(-1));
    Value even = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, x.both(bits, 1),
                                       x.number(0));
    Value moves = arith::AndIOp::create(rewriter, loc, even, x.compare(Predicate::ONE, lost, zero));
    Value odd = x.real(x.choose(moves, x.plus(bits, step), bits));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), odd);
    return success();
  }
};

} // namespace

void populateExpandFloat64Patterns(RewritePatternSet &patterns, bool fuses) {
  patterns.add<Expand64<math::ExpOp>, Expand64<math::LogOp>, Expand64<math::PowFOp>>(
      patterns.getContext(), fuses);
  if (!fuses)
    patterns.add<ExpandFused>(patterns.getContext());
}

} // namespace stepc::kernels
