//===- ExpandNumerics.cpp - One sequence per function ----------------------===//
//
// A chip's conversions may flush denormals, a vector library's functions differ from the
// scalar ones in bits: neither may decide what an element becomes.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ExpandHalf.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace stepc::kernels {
#define GEN_PASS_DEF_EXPANDNUMERICS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

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

/// Whole exponents up to this one are products; above, their roundings add up to more than powf's.
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
      auto product = [&](Value a, Value b) { return arith::MulFOp::create(rewriter, loc, a, b).getResult(); };
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
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!vector) {
      rewriter.replaceOpWithNewOp<LLVM::PowOp>(op, base, op.getRhs());
      return success();
    }
    if (vector.getRank() != 1)
      return rewriter.notifyMatchFailure(op, "expected vectors of one axis");
    Value result = ub(rewriter, loc, vector);
    for (int64_t i = 0; i < vector.getDimSize(0); ++i) {
      Value x = vector::ExtractOp::create(rewriter, loc, base, i);
      Value y = vector::ExtractOp::create(rewriter, loc, op.getRhs(), i);
      Value power = LLVM::PowOp::create(rewriter, loc, x, y);
      result = vector::InsertOp::create(rewriter, loc, power, result, i);
    }
    rewriter.replaceOp(op, result);
    return success();
  }

  static Value ub(OpBuilder &b, Location loc, Type type) { return constant(b, loc, type, 0.0); }
};

struct ExpandNumerics : impl::ExpandNumericsBase<ExpandNumerics> {
  LogicalResult run(ModuleOp module) {
    auto chip = module->getAttrOfType<StringAttr>(kChipAttr);
    if (!chip)
      return module.emitError("expected the attribute ") << kChipAttr << " on the module, found none";
    llvm::Expected<TargetShape> shape = shapeOfChip(chip);
    if (!shape)
      return module.emitError(llvm::toString(shape.takeError()));

    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandRsqrt, ExpandPower>(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (!shape->half)
      populateExpandHalfPatterns(patterns);
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) { return name == "math.exp" || name == "math.log"; });
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (failed(applyPatternsGreedily(function, frozen)))
        return function.emitError("expected the expansion of its numerics to end");

    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      WalkResult walk = function.walk([](Operation *op) {
        bool open = isa_and_nonnull<math::MathDialect>(op->getDialect()) && isF32(op->getResult(0).getType()) &&
                    !isa<math::SqrtOp, math::AbsFOp, math::CopySignOp, math::FmaOp, math::FloorOp, math::CeilOp>(op);
        if (!open)
          return WalkResult::advance();
        op->emitOpError("expected a function of f32 with one sequence for vectors and scalars");
        return WalkResult::interrupt();
      });
      if (walk.wasInterrupted())
        return failure();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
