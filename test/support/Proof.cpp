//===- Proof.cpp - A module at level 4, lowered and proven -----------------===//

#include "test/support/Proof.h"

#include "passes/kernels/Passes.h"
#include "passes/plan/PlanOfProgram.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace stepc;

OwningOpRef<ModuleOp> test::lowerToExec(ModuleOp scheduled) {
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(scheduled->clone()));
  PassManager manager(module->getContext());
  manager.enableVerifier(false); // once, below
  kernels::LowerToExecOptions options;
  options.target = "cpu:x86-64-v3";
  manager.addPass(kernels::createLowerToExec(options));
  manager.addPass(kernels::createMergeDispatches());
  if (failed(mlir::verify(*module)) || failed(manager.run(*module)) ||
      failed(mlir::verify(*module)))
    return {};
  return module;
}

plan::Plan test::planOf(ModuleOp exec) { return *planOfProgram(exec); }

LogicalResult test::prove(ModuleOp scheduled, verify::MakeExpand makeExpand) {
  OwningOpRef<ModuleOp> module = lowerToExec(scheduled);
  return success(module && succeeded(verify::verifyProgram(*module, std::move(makeExpand))));
}

std::string test::textOf(ModuleOp exec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  exec->print(os);
  return text;
}
