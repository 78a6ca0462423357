//===- HostStep.h - The step function --------------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_HOSTSTEP_H
#define STEPC_PASSES_KERNELS_HOSTSTEP_H

#include "passes/kernels/Phase.h"

namespace stepc::kernels {

/// Writes `llvm.func @stepc_program_step` from the scheduled step: its phases, one after another.
/// A phase is what a group does on one side of an exchange in one wave, or one start or wait;
/// equal phases are one function, so that waves, parameters and groups add data and no code.
class HostStep {
public:
  HostStep(mlir::ModuleOp module, ProgramPlan &program, const TargetShape &shape)
      : module(module), program(program), mostBlocks(program), shape(shape), cache(module),
        b(module.getContext(), mlir::UnknownLoc::get(module.getContext())) {}

  /// Lowers the scheduled step and fills the plan's launches on the way.
  mlir::LogicalResult lower(mlir::Block &step);

private:
  /// What begins a new phase where it changes, and names it.
  std::string keyOf(mlir::Operation *op, int64_t position, std::string &name);
  /// Keeps a phase, or the equal one that is known, and appends its row to the numbers.
  void add(Phase &phase);
  void writeTables();
  void writeStep();

  mlir::ModuleOp module;
  ProgramPlan &program;
  MostBlocks mostBlocks;
  const TargetShape &shape;
  KernelCache cache;
  KernelBuilder b;
  llvm::StringMap<int64_t> known; // fingerprint → phase
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> phases;
  int64_t rows = 0;
  llvm::SmallVector<int64_t> numbers = {0}; // the number of rows, then the rows
};

} // namespace stepc::kernels

#endif
