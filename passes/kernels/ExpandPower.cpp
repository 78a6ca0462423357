//===- ExpandPower.cpp - Powers and reciprocal square roots ----------------===//

#include "passes/kernels/Expansions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace stepc::kernels {
namespace {

bool isF32(Type type) { return getElementTypeOrSelf(type).isF32(); }

Value constant(OpBuilder &b, Location loc, Type type, double value) {
  TypedAttr attribute = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return arith::ConstantOp::create(b, loc, attribute);
}

struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op, PatternRewriter &rewriter) const override {
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    Value one = constant(rewriter, op.getLoc(), op.getType(), 1.0);
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

/// Powers with whole exponents up to this one become products. For larger ones, the roundings of the products
/// add up, while a power in f64 is rounded once.
constexpr double kMostProducts = 4;

struct ExpandPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  static std::optional<double> exponentOf(Value value) {
    if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
      value = broadcast.getSource();
    FloatAttr scalar;
    DenseFPElementsAttr dense;
    if (matchPattern(value, m_Constant(&scalar)))
      return scalar.getValueAsDouble();
    if (matchPattern(value, m_Constant(&dense)) && dense.isSplat())
      return dense.getSplatValue<APFloat>().convertToDouble();
    return std::nullopt;
  }

  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!isF32(op.getType()))
      return rewriter.notifyMatchFailure(op, "only tensor arithmetic (f32) is spelled out");
    Location loc = op.getLoc();
    Value base = op.getLhs();
    std::optional<double> exponent = exponentOf(op.getRhs());
    if (exponent && *exponent == std::trunc(*exponent) && std::abs(*exponent) <= kMostProducts) {
      Value one = constant(rewriter, loc, op.getType(), 1.0), result = one;
      int count = int(std::abs(*exponent));
      auto product = [&](Value a, Value b) {
        return arith::MulFOp::create(rewriter, loc, a, b).getResult();
      };
      if (count == 1)
        result = base;
      else if (count == 2 || count == 3)
        result = product(base, base);
      if (count == 3)
        result = product(result, base);
      if (count == 4) {
        Value square = product(base, base);
        result = product(square, square);
      }
      if (*exponent < 0)
        result = arith::DivFOp::create(rewriter, loc, one, result);
      rewriter.replaceOp(op, result);
      return success();
    }
    // Computes the power in f64, and rounds once.
    Type wide = rewriter.getF64Type();
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      wide = vector.clone(wide);
    Value x = arith::ExtFOp::create(rewriter, loc, wide, base);
    Value y = arith::ExtFOp::create(rewriter, loc, wide, op.getRhs());
    Value power = math::PowFOp::create(rewriter, loc, x, y);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), power);
    return success();
  }
};

} // namespace

void populateExpandPowerPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandRsqrt, ExpandPower>(patterns.getContext());
}

} // namespace stepc::kernels
