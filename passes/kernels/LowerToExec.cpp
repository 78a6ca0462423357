//===- LowerToExec.cpp - Operations to commands and kernels ----------------===//

#include "passes/kernels/Passes.h"
#include "passes/kernels/ProgramBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_LOWERTOEXEC
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

struct LowerToExec : impl::LowerToExecBase<LowerToExec> {
  using LowerToExecBase::LowerToExecBase;

  LogicalResult run(ModuleOp module) {
    if (Attribute known = module->getAttr(kChipAttr))
      return module.emitError("expected no ")
             << kChipAttr << " before level exec, because nothing there depends on a chip, found "
             << known;
    llvm::Expected<std::unique_ptr<Target>> made =
        targetOfText(target.empty() ? "cpu" : StringRef(target));
    if (!made)
      return module.emitError(llvm::toString(made.takeError()));
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || step.isExternal() || !step.getBody().hasOneBlock())
      return module.emitError(
          "expected a scheduled program, found no func.func @step of one block");
    if (!step->hasAttr(comm::kArenaAttr))
      return step.emitOpError("expected the attribute ")
             << comm::kArenaAttr << ", which scheduling sets";
    FailureOr<ProgramPlan> program = planFromModule(module);
    if (failed(program))
      return failure();

    ProgramBuilder builder(module, *program, **made);
    if (failed(builder.lower(step.getBody().front())))
      return failure();
    step.erase();
    module->setAttr(kChipAttr, StringAttr::get(&getContext(), (*made)->chip()));
    return success();
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
