//===- ForEachKernel.h - Kernels with all their dispatches ------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_FOREACHKERNEL_H
#define STEPC_PASSES_KERNELS_FOREACHKERNEL_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace stepc::kernels {

/// Calls `handle` for each kernel that dispatches of one kind name, with all of these dispatches, in the
/// order of the program. Fails if a kernel is no function of level 5, or if `handle` fails.
template <typename Dispatch>
mlir::LogicalResult forEachKernel(
    mlir::ModuleOp module, mlir::SymbolTable &symbols,
    llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp, llvm::ArrayRef<Dispatch>)> handle) {
  llvm::MapVector<mlir::StringAttr, llvm::SmallVector<Dispatch>> byKernel;
  for (auto program : module.getOps<exec::ProgramOp>())
    for (auto dispatch : program.template getOps<Dispatch>())
      byKernel[dispatch.getKernelAttr().getAttr()].push_back(dispatch);
  for (auto &[name, dispatches] : byKernel) {
    auto kernel = symbols.lookup<mlir::func::FuncOp>(name);
    if (!kernel || kernel.isExternal() || !kernel.getBody().hasOneBlock())
      return dispatches.front().emitOpError("expected a kernel of level exec, a func.func of one "
                                            "block, found none named ")
             << name;
    if (mlir::failed(handle(kernel, dispatches)))
      return mlir::failure();
  }
  return mlir::success();
}

} // namespace stepc::kernels

#endif
