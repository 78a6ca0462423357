//===- StageKernel.h - Kernels of stages, before any target -----*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_STAGEKERNEL_H
#define STEPC_PASSES_KERNELS_STAGEKERNEL_H

#include "dialects/comm/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringMap.h"

namespace stepc::kernels {

struct StageKernel {
  mlir::func::FuncOp kernel;
  llvm::SmallVector<mlir::Value> operands; ///< of the stage, in the order of the arguments
};

/// Returns the first operation of a region that is not elementwise, or null. Scalars of a parameter stand
/// nowhere, so `ofScalars` no operation may ask where an element stands.
mlir::Operation *findNotElementwise(mlir::Block &body, bool ofScalars = false);

/// Makes kernels as functions without anything of a target, one per distinct computation. Names them by rule,
/// stage and types: "Muon_in_f32_bf16".
class KernelCache {
public:
  explicit KernelCache(mlir::ModuleOp module) : module(module), table(module) {}

  /// A function of the row of scalars and of one view per operand of a chunk.
  mlir::FailureOr<StageKernel> stage(comm::StageOp op);
  /// A function of a parameter's numbers of f64 that returns its row of scalars.
  mlir::FailureOr<mlir::func::FuncOp> scalars(comm::ScalarsOp op);

private:
  /// Returns the known kernel that computes the same, and erases `made`. If there is none, returns `made` and
  /// names it `name`, made unique.
  mlir::func::FuncOp share(mlir::func::FuncOp made, const std::string &name,
                           const std::string &kinds);

  mlir::ModuleOp module;
  /// Finds symbols without a search. A search through the module for each of thousands of kernels would be
  /// quadratic.
  mlir::SymbolTable table;
  llvm::StringMap<int64_t> copies; // per name: the next suffix to try
  llvm::StringMap<mlir::func::FuncOp> kernels;
};

} // namespace stepc::kernels

#endif
