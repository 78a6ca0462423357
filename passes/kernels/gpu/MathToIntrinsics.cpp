//===- MathToIntrinsics.cpp - IEEE functions that PTX has ------------------===//

#include "passes/kernels/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace stepc::kernels {
#define GEN_PASS_DEF_MATHTOINTRINSICS
#include "passes/kernels/Passes.h.inc"

namespace {

template <typename Op> struct ToIntrinsic : OpRewritePattern<Op> {
  ToIntrinsic(MLIRContext *context, StringRef intrinsic)
      : OpRewritePattern<Op>(context), intrinsic(intrinsic) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(intrinsic), op->getOperands());
    return success();
  }
  StringRef intrinsic;
};

/// Uses an operation that is defined for zero, because that of math is.
struct CountLeadingZeros : OpRewritePattern<math::CountLeadingZerosOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::CountLeadingZerosOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::CountLeadingZerosOp>(op, op.getType(), op.getOperand(),
                                                           /*is_zero_poison=*/false);
    return success();
  }
};

struct MathToIntrinsics : impl::MathToIntrinsicsBase<MathToIntrinsics> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
    set.add<ToIntrinsic<math::FmaOp>>(context, "llvm.fma");
    set.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
    set.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
    set.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
    set.add<ToIntrinsic<arith::MaximumFOp>>(context, "llvm.maximum");
    set.add<ToIntrinsic<arith::MinimumFOp>>(context, "llvm.minimum");
    set.add<CountLeadingZeros>(context);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }
  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace stepc::kernels
