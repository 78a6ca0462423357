//===- ExpandExponential.cpp - exp and log of f32 --------------------------===//
//
// The reductions and polynomials of Cephes (Moshier), evaluated by fused multiply-adds. MLIR's own
// approximations flush denormal inputs and results. These handle every float.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BitArithmetic.h"
#include "passes/kernels/Expansions.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

using Predicate = arith::CmpFPredicate;

/// coefficients[0] · x^n + … + coefficients[n]
Value polynomial(const Bits &x, Value at, ArrayRef<float> coefficients) {
  Value result = x.constant(coefficients.front());
  for (float coefficient : coefficients.drop_front())
    result = x.fused(result, at, x.constant(coefficient));
  return result;
}

// ln 2 in two parts, the first with so few bits that its products with exponents are exact.
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

/// exp(x) = 2^n · exp(r), |r| ≤ ln 2 / 2.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only tensor arithmetic (f32) is spelled out");
    Bits x{rewriter, op.getLoc(), op.getType()};
    Value input = op.getOperand();
    // Beyond these bounds the result is 0 or infinite. A NaN fails both comparisons and stays.
    Value low = x.constant(-105.0f), high = x.constant(89.0f);
    Value clamped = x.choose(x.compare(Predicate::OLT, input, low), low, input);
    clamped = x.choose(x.compare(Predicate::OGT, clamped, high), high, clamped);
    Value scaled = x.fused(clamped, x.constant(1.44269504088896341f), x.constant(0.5f));
    // The floor of `scaled`, because old chips have no instruction for it.
    Value whole = x.toInteger(scaled), n = x.toFloat(whole);
    Value above = x.compare(Predicate::OGT, n, scaled);
    whole = x.choose(above, x.minus(whole, x.number(1)), whole);
    n = x.choose(above, x.sum(n, x.constant(-1.0f)), n);
    Value r = x.fused(n, x.constant(-kLn2High), clamped);
    r = x.fused(n, x.constant(-kLn2Low), r);
    Value p = polynomial(x, r,
                         {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                          1.6666665459e-1f, 5.0000001201e-1f});
    p = x.sum(x.fused(p, x.product(r, r), r), x.constant(1.0f));
    // Multiplies by 2^n in two steps, because 2^n may be out of range. Only the last product rounds.
    Value first = x.halved(whole), second = x.minus(whole, first);
    for (Value exponent : {first, second})
      p = x.product(p, x.real(x.left(x.plus(exponent, x.number(127)), 23)));
    Value isNumber = x.compare(Predicate::ORD, input, input);
    rewriter.replaceOp(op, x.choose(isNumber, p, x.sum(input, input)));
    return success();
  }
};

/// log(m · 2^e) = log(1 + f) + e · ln 2, √½ ≤ m < √2, f = m − 1.
struct ExpandLog : OpRewritePattern<math::LogOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::LogOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only tensor arithmetic (f32) is spelled out");
    Bits x{rewriter, op.getLoc(), op.getType()};
    Value input = op.getOperand(), zero = x.constant(0.0f);
    Value tiny = x.compare(Predicate::OLT, input, x.constant(0x1p-126f));
    Value normal = x.choose(tiny, x.product(input, x.constant(0x1p23f)), input);
    constexpr int64_t kRootHalf = 0x3f3504f3, kOne = 0x3f800000;
    Value bits = x.plus(x.bits(normal), x.number(kOne - kRootHalf));
    Value exponent = x.minus(x.right(bits, 23), x.choose(tiny, x.number(127 + 23), x.number(127)));
    Value m = x.real(x.plus(x.both(bits, 0x7fffff), x.number(kRootHalf)));
    Value f = x.sum(m, x.constant(-1.0f)), square = x.product(f, f), e = x.toFloat(exponent);
    Value p = polynomial(x, f,
                         {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f,
                          1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f,
                          3.3333331174e-1f});
    p = x.product(x.product(p, f), square);
    p = x.fused(e, x.constant(kLn2Low), p);
    p = x.fused(square, x.constant(-0.5f), p);
    p = x.fused(e, x.constant(kLn2High), x.sum(f, p));
    // Inputs other than positive numbers: +∞ and NaN stay, 0 gives −∞, negative numbers give NaN.
    Value finite = x.compare(Predicate::OLT, input, x.real(x.number(0x7f800000)));
    p = x.choose(finite, p, x.sum(input, input));
    p = x.choose(x.compare(Predicate::OEQ, input, zero), x.real(x.number(int32_t(0xff800000))), p);
    p = x.choose(x.compare(Predicate::OLT, input, zero), x.real(x.number(0x7fc00000)), p);
    rewriter.replaceOp(op, p);
    return success();
  }
};

} // namespace

void populateExpandExponentialPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExp, ExpandLog>(patterns.getContext());
}

} // namespace stepc::kernels
