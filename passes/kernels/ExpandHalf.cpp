//===- ExpandHalf.cpp - f16 conversions in integers ------------------------===//

#include "passes/kernels/BitArithmetic.h"
#include "passes/kernels/Expansions.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

struct ExpandExtend : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not from f16 to f32");
    Bits x{rewriter, op.getLoc(), op.getType()};
    Value half = arith::BitcastOp::create(rewriter, op.getLoc(),
                                          x.withElement(rewriter.getI16Type()), op.getIn());
    half = arith::ExtUIOp::create(rewriter, op.getLoc(), x.integers(), half);
    Value sign = x.left(x.both(half, 0x8000), 16), magnitude = x.left(x.both(half, 0x7fff), 13);
    // Read as a float, the magnitude is too small by a factor of 2^112, even if it is denormal. So the
    // product is exact.
    Value scaled = arith::MulFOp::create(rewriter, op.getLoc(), x.real(magnitude),
                                         x.real(x.number(0x77800000)));
    // Infinity and NaN get an exponent of all ones and keep their payload. A signalling NaN becomes quiet.
    Value special = x.either(magnitude, x.number(0x7f800000));
    Value isNumber = x.less(magnitude, (0x7c00 << 13) + 1);
    special = x.choose(isNumber, special, x.either(special, x.number(0x00400000)));
    Value result = x.choose(x.less(magnitude, 0x7c00 << 13), x.bits(scaled), special);
    rewriter.replaceOp(op, x.real(x.either(result, sign)));
    return success();
  }
};

struct ExpandTruncate : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF16() ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not from f32 to f16");
    Bits x{rewriter, op.getLoc(), op.getIn().getType()};
    Value bits = x.bits(op.getIn());
    Value sign = x.both(x.right(bits, 16), 0x8000), magnitude = x.both(bits, 0x7fffffff);
    // Normal results: rebias, round at bit 13 to nearest, ties to even.
    Value odd = x.both(x.right(magnitude, 13), 1);
    Value normal = x.right(x.plus(x.plus(magnitude, x.number(int32_t(0xc8000fff))), odd), 13);
    // Denormal results: the addition of 0.5 lines their last bit up with the float's, and rounds.
    Value half = x.number(0x3f000000);
    Value sum = arith::AddFOp::create(rewriter, op.getLoc(), x.real(magnitude), x.real(half));
    Value denormal = x.plus(x.bits(sum), x.number(-0x3f000000));
    Value infinite = x.number(0x7c00);
    Value nan = x.either(x.number(0x7e00), x.both(x.right(magnitude, 13), 0x3ff));
    Value result = x.choose(x.less(magnitude, 0x38800000), denormal, normal);
    result = x.choose(x.less(magnitude, 0x47800000), result, infinite);
    result = x.choose(x.less(magnitude, 0x7f800001), result, nan);
    result = x.either(result, sign);
    result = arith::TruncIOp::create(rewriter, op.getLoc(), x.withElement(rewriter.getI16Type()),
                                     result);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), result);
    return success();
  }
};

} // namespace

void populateExpandHalfPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExtend, ExpandTruncate>(patterns.getContext());
}

} // namespace stepc::kernels
