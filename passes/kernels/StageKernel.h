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

/// An operation of a region that has no elementwise form, or null.
mlir::Operation *findNotElementwise(mlir::Block &body);

/// Makes kernels as functions that no target has touched, one per distinct computation, and names
/// them by rule, stage and types: "Muon_in_f32_bf16".
class KernelCache {
public:
  explicit KernelCache(mlir::ModuleOp module) : module(module), table(module) {}

  /// A function of the row of scalars and of one view per operand of a chunk.
  mlir::FailureOr<StageKernel> stage(comm::StageOp op);
  /// A function of a parameter's numbers of f64 that returns its row of scalars.
  mlir::FailureOr<mlir::func::FuncOp> scalars(comm::ScalarsOp op);

private:
  /// A function like `made`, which goes, or `made` itself under that name (made unique).
  mlir::func::FuncOp share(mlir::func::FuncOp made, const std::string &name,
                           const std::string &kinds);

  mlir::ModuleOp module;
  /// A search through the module for each of thousands of kernels would be quadratic.
  mlir::SymbolTable table;
  llvm::StringMap<int64_t> copies; // of a name: the next to try
  llvm::StringMap<mlir::func::FuncOp> kernels;
};

} // namespace stepc::kernels

#endif
