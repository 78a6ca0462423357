//===- ExpandNumerics.cpp - One sequence per function ----------------------===//
//
// A chip's conversions may flush denormals, a vector library's functions differ from the
// scalar ones in bits: neither may decide what an element becomes.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Expansions.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_EXPANDNUMERICS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

bool isF32(Type type) { return getElementTypeOrSelf(type).isF32(); }

struct ExpandNumerics : impl::ExpandNumericsBase<ExpandNumerics> {
  LogicalResult run(ModuleOp module) {
    auto chip = module->getAttrOfType<StringAttr>(kChipAttr);
    if (!chip)
      return module.emitError("expected the attribute ") << kChipAttr << " on the module, found none";
    llvm::Expected<TargetShape> shape = shapeOfChip(chip);
    if (!shape)
      return module.emitError(llvm::toString(shape.takeError()));

    RewritePatternSet patterns(&getContext());
    populateExpandPowerPatterns(patterns);
    populateExpandExponentialPatterns(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    if (!shape->half)
      populateExpandHalfPatterns(patterns);
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
