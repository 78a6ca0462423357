//===- ExpandNumerics.cpp - One sequence per function ----------------------===//
//
// A chip's conversions may flush denormals, and functions of a vector library differ in bits from scalar
// ones. So kernels use neither.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Expansions.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_EXPANDNUMERICS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

bool isSmall(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

/// Refuses an operation that would leave its result to a chip or a library.
WalkResult check(Operation *op, bool fuses) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return WalkResult::advance();
  // LLVM would turn these into calls of the machine's math library, if it lowers them at all.
  if (isa<arith::RemFOp>(op) || (isa<math::FmaOp>(op) && !fuses) ||
      (isa<math::MathDialect>(op->getDialect()) &&
       !isa<math::SqrtOp, math::AbsFOp, math::FloorOp, math::CopySignOp, math::CountLeadingZerosOp,
            math::FmaOp>(op))) {
    op->emitOpError("expected a function with one sequence for vectors and scalars");
    return WalkResult::interrupt();
  }
  bool small =
      llvm::any_of(op->getOperandTypes(), isSmall) || llvm::any_of(op->getResultTypes(), isSmall);
  bool moves = isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp>(op);
  bool converts =
      isa<arith::ExtFOp, arith::TruncFOp>(op) && // f16, if the chip converts it: bf16 is expanded
      llvm::none_of(op->getOperandTypes(),
                    [](Type t) { return getElementTypeOrSelf(t).isBF16(); }) &&
      llvm::none_of(op->getResultTypes(), [](Type t) { return getElementTypeOrSelf(t).isBF16(); });
  if (small && !moves && !converts) {
    op->emitOpError("expected arithmetic in f32 or f64, found ") << op->getOperandTypes().front();
    return WalkResult::interrupt();
  }
  return WalkResult::advance();
}

} // namespace

LogicalResult expandNumerics(ArrayRef<Operation *> kernels, bool fuses, bool convertsHalf) {
  if (kernels.empty())
    return success();
  RewritePatternSet patterns(kernels.front()->getContext());
  populateExpandPowerPatterns(patterns);
  populateExpandExponentialPatterns(patterns);
  populateExpandFloat64Patterns(patterns, fuses);
  arith::populateExpandBFloat16Patterns(patterns);
  if (!convertsHalf)
    populateExpandHalfPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  for (Operation *kernel : kernels) {
    if (failed(applyPatternsGreedily(kernel, frozen)))
      return kernel->emitError("expected the expansion of its numerics to end");
    if (kernel->walk([&](Operation *op) { return check(op, fuses); }).wasInterrupted())
      return failure();
  }
  return success();
}

namespace {

struct ExpandNumerics : impl::ExpandNumericsBase<ExpandNumerics> {
  LogicalResult run(ModuleOp module) {
    FailureOr<std::unique_ptr<Target>> target = targetOfModule(module);
    if (failed(target))
      return failure();

    SmallVector<Operation *> kernels(module.getOps<LLVM::LLVMFuncOp>());
    for (auto code : module.getOps<gpu::GPUModuleOp>())
      llvm::append_range(kernels, code.getOps<gpu::GPUFuncOp>());
    return expandNumerics(kernels, (*target)->fuses(), (*target)->convertsHalf());
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
