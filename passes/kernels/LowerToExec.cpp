//===- LowerToExec.cpp - Operations to commands and kernels ----------------===//

#include "passes/kernels/Passes.h"
#include "passes/kernels/ProgramBuilder.h"
#include "passes/plan/ValidatePlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_LOWERTOEXEC
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

/// Returns the only function of a scheduled module, @step. Fails if it is missing, is no straight-line code,
/// or does not say how large the workspace is.
FailureOr<func::FuncOp> stepOf(ModuleOp module) {
  if (StringAttr level = comm::levelOf(module); level && level != "scheduled")
    return module.emitOpError("expected level scheduled, found ") << level.getValue();
  func::FuncOp step;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (step) {
      auto diag = function.emitOpError("expected one function, @step, found another");
      diag.attachNote(step.getLoc()) << "the step is here";
      return diag;
    }
    step = function;
  }
  if (!step || step.getSymName() != "step" || step.isExternal()) {
    auto diag = module.emitOpError("expected a function @step with a body, found ");
    return !step                         ? diag << "no function"
           : step.getSymName() != "step" ? diag << "@" << step.getSymName()
                                         : diag << "no body";
  }
  if (!step.getBody().hasOneBlock())
    return step.emitOpError("expected straight-line code, found more than one block");
  if (!step->hasAttr(comm::kArenaAttr))
    return step.emitOpError("expected ")
           << comm::kArenaAttr << ", the workspace per rank, found none";
  return step;
}

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
    FailureOr<func::FuncOp> step = stepOf(module);
    if (failed(step))
      return failure();
    FailureOr<ProgramPlan> program = planFromModule(module);
    // Errors in the plan are reported at the groups and segments of this level.
    if (failed(program) || failed(validatePlan(module, *program, "expected a consistent plan: ")))
      return failure();

    ProgramBuilder builder(module, *program, **made);
    if (failed(builder.lower(step->getBody().front())))
      return failure();
    step->erase();
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
