//===- PlaceBuffers.cpp - Allocations become places in the workspace -------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

namespace stepc::schedule {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

struct PlaceAlloc : OpRewritePattern<memref::AllocOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::AllocOp op, PatternRewriter &rewriter) const override {
    auto offset = op->getAttrOfType<IntegerAttr>(kOffsetAttr);
    auto bytes = op->getAttrOfType<IntegerAttr>(kBytesAttr);
    if (!offset || !bytes)
      return rewriter.notifyMatchFailure(op, "no place was decided");
    if (op->hasAttr(kPoolAttr))
      return rewriter.notifyMatchFailure(op, "it stands in a pool");
    rewriter.replaceOpWithNewOp<BufferOp>(op, op->getResultTypes(), offset, bytes,
                                          op.getDynamicSizes());
    return success();
  }
};

/// Verifies that every allocation has an offset and bytes, which lie within the workspace.
LogicalResult checkPlaces(func::FuncOp step) {
  auto arena = step->getAttrOfType<IntegerAttr>(kArenaAttr);
  if (!arena)
    return step.emitOpError("expected ")
           << kArenaAttr << ", which comm-assign-arena sets, found none";
  WalkResult result = step.walk([&](memref::AllocOp alloc) {
    for (StringRef name : {StringRef(kOffsetAttr), StringRef(kBytesAttr)})
      if (!alloc->hasAttr(name)) {
        alloc.emitOpError("expected ") << name << ", which comm-assign-arena sets, found none";
        return WalkResult::interrupt();
      }
    int64_t offset = alloc->getAttrOfType<IntegerAttr>(kOffsetAttr).getInt();
    int64_t bytes = alloc->getAttrOfType<IntegerAttr>(kBytesAttr).getInt();
    if (bytes <= arena.getInt() && offset <= arena.getInt() - bytes)
      return WalkResult::advance();
    auto diag = alloc.emitOpError("expected a place inside of the workspace of ")
                << arena.getInt() << " bytes, found " << bytes << " bytes from byte " << offset;
    diag.attachNote(step.getLoc()) << "the workspace is set here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Replaces the allocations of each pool by one buffer, at the first of these allocations.
LogicalResult placePools(func::FuncOp step) {
  llvm::MapVector<int64_t, SmallVector<memref::AllocOp>> pools;
  // Operations are numbered here once. After each moveBefore, isBeforeInBlock would number the whole block
  // again.
  llvm::DenseMap<Operation *, size_t> position;
  for (Operation &op : step.getOps()) {
    position[&op] = position.size();
    if (auto pool = op.getAttrOfType<IntegerAttr>(kPoolAttr); pool && isa<memref::AllocOp>(op))
      pools[pool.getInt()].push_back(cast<memref::AllocOp>(op));
  }
  for (auto &[number, members] : pools) {
    memref::AllocOp first = members.front();
    OpBuilder builder(first);
    SmallVector<Value> sizes;
    SmallVector<Type> types;
    for (memref::AllocOp member : members) {
      for (StringRef name : {StringRef(kOffsetAttr), StringRef(kBytesAttr)})
        if (member->getAttr(name) != first->getAttr(name)) {
          auto diag = member.emitOpError("expected ")
                      << name << " to be one for all of pool " << number << ", found another";
          diag.attachNote(first.getLoc()) << "the first of the pool is here";
          return diag;
        }
      types.push_back(member.getType());
      for (Value size : member.getDynamicSizes()) {
        auto extent = size.getDefiningOp<ExtentOp>();
        if (!extent)
          return member.emitOpError("expected sizes from comm.extent, found another value");
        size_t &extentAt = position[extent], firstAt = position[first];
        if (firstAt < extentAt) {
          extent->moveBefore(first);
          extentAt = firstAt; // now beside `first`; another pool may need it even earlier
        }
        sizes.push_back(size);
      }
    }
    auto buffer = BufferOp::create(builder, first.getLoc(), types,
                                   first->getAttrOfType<IntegerAttr>(kOffsetAttr),
                                   first->getAttrOfType<IntegerAttr>(kBytesAttr), sizes);
    for (auto [member, view] : llvm::zip_equal(members, buffer.getViews())) {
      member.getResult().replaceAllUsesWith(view);
      member.erase();
    }
  }
  return success();
}

class PlaceBuffers : public schedule::impl::PlaceBuffersBase<PlaceBuffers> {
  FrozenRewritePatternSet patterns;
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<PlaceAlloc>(context);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    if (StringAttr level = levelOf(getOperation());
        level && level != "comm" && level != "scheduled") {
      getOperation().emitOpError("expected level comm or scheduled, found ")
          << level.getValue() << ": only a program that comm-assign-arena has seen has places";
      return signalPassFailure();
    }
    setLevel(getOperation(), "scheduled");
    for (auto step : getOperation().getOps<func::FuncOp>()) {
      if (failed(checkPlaces(step)) || failed(placePools(step)))
        return signalPassFailure();
      walkAndApplyPatterns(step, patterns);
    }
  }
};

} // namespace
