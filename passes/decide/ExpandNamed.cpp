//===- ExpandNamed.cpp - lerp, momentum and decay in arithmetic ------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_EXPANDNAMED
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

struct ExpandLerp : OpRewritePattern<LerpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LerpOp op, PatternRewriter &rewriter) const override {
    Value difference = arith::SubFOp::create(rewriter, op.getLoc(), op.getTo(), op.getFrom());
    Value scaled = arith::MulFOp::create(rewriter, op.getLoc(), op.getWeight(), difference);
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, op.getFrom(), scaled);
    return success();
  }
};

struct ExpandMomentum : OpRewritePattern<MomentumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MomentumOp op, PatternRewriter &rewriter) const override {
    Value decayed = arith::MulFOp::create(rewriter, op.getLoc(), op.getDecay(), op.getState());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, decayed, op.getGradient());
    return success();
  }
};

struct ExpandDecay : OpRewritePattern<DecayOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DecayOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value one = arith::ConstantOp::create(rewriter, loc, rewriter.getF64FloatAttr(1.0));
    Value product = arith::MulFOp::create(rewriter, loc, op.getLr(), op.getWeightDecay());
    Value factor = arith::SubFOp::create(rewriter, loc, one, product);
    Value splat = SplatOp::create(rewriter, loc, op.getParameter().getType(), factor);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, splat, op.getParameter());
    return success();
  }
};

class ExpandNamed : public stepc::decide::impl::ExpandNamedBase<ExpandNamed> {
  FrozenRewritePatternSet patterns;
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<ExpandLerp, ExpandMomentum, ExpandDecay>(context);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    walkAndApplyPatterns(getOperation(), patterns);
    // Erases unused operations, so that no later pass sends values for them.
    IRRewriter rewriter(&getContext());
    for (auto rule : getOperation().getOps<RuleOp>())
      (void)runRegionDCE(rewriter, rule.getBody());
  }
};

} // namespace
