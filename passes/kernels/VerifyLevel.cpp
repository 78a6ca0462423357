//===- VerifyLevel.cpp - What may not survive a level ----------------------===//

#include "dialects/exec/Exec.h"
#include "passes/kernels/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_VERIFYLEVEL
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

/// Whether an operation is part of the plan. These operations stay until the plan becomes bytes.
bool isPartOfPlan(Operation *op) {
  return isa<optim::ClusterOp, optim::MeshOp, optim::ModelOp, optim::RuleOp, optim::RouteOp,
             optim::ParameterOp, optim::GroupOp, comm::SegmentOp, exec::ProgramOp>(op);
}

/// Whether an operation has flags that let a compiler reorder, contract or estimate.
bool mayRoundOtherwise(Operation *op) {
  if (auto arith = dyn_cast<arith::ArithFastMathInterface>(op))
    return arith.getFastMathFlagsAttr() &&
           arith.getFastMathFlagsAttr().getValue() != arith::FastMathFlags::none;
  if (auto llvmOp = dyn_cast<LLVM::FastmathFlagsInterface>(op))
    return llvmOp.getFastmathAttr() &&
           llvmOp.getFastmathAttr().getValue() != LLVM::FastmathFlags::none;
  return false;
}

struct VerifyLevel : impl::VerifyLevelBase<VerifyLevel> {
  using VerifyLevelBase::VerifyLevelBase;

  bool isLegal(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (level == "llvm")
      return dialect == "llvm";
    // Kernels are private functions. A public function is a step that was not lowered.
    if (auto function = dyn_cast<func::FuncOp>(op))
      return function.isPrivate();
    return optim::dependsOnPlace(op) || isa<optim::StochasticOp>(op) ||
           llvm::is_contained({"func", "linalg", "memref", "arith", "math"}, dialect);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (level != "exec" && level != "llvm") {
      module.emitError("expected level exec or llvm, found '") << level << "'";
      return signalPassFailure();
    }
    if (module->hasAttr(exec::kProductsAttr)) {
      module.emitError("expected no ")
          << exec::kProductsAttr << " at level " << level << ", which exec-pin-products takes";
      return signalPassFailure();
    }
    WalkResult walk = module.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (level == "exec" && isPartOfPlan(op))
        return WalkResult::skip();
      // Both operations leave it to the chip whether a product is rounded before it is added.
      if (isa<vector::FMAOp, LLVM::FMulAddOp>(op)) {
        op->emitOpError("expected math.fma, or a product and a sum, at level ")
            << level << ", found an operation that rounds once or twice as the chip likes";
        return WalkResult::interrupt();
      }
      if (mayRoundOtherwise(op)) {
        op->emitOpError("expected no fast-math flags at level ")
            << level << ", found " << op->getAttrDictionary();
        return WalkResult::interrupt();
      }
      if (isLegal(op))
        return WalkResult::advance();
      op->emitOpError("expected to be lowered before level ") << level << ", but is still here";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    comm::setLevel(module, level);
  }
};

} // namespace
} // namespace stepc::kernels
