//===- CpuKernels.h - A processor's loops over what kernels compute -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_CPUKERNELS_H
#define STEPC_PASSES_KERNELS_CPUKERNELS_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// Makes a function of the kernel ABI (runtime/include/stepc/kernel_abi.h) that computes what a kernel of
/// level 5 says for every chunk, or parameter. `dispatches` must be all that run the kernel, at least one.
/// Dispatches over chunks may get further operands. Fails with an error if a dispatch does not fit.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerChunkKernel(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerParameterKernel(mlir::func::FuncOp kernel,
                     llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// Returns the function of a sum of contributions, whose items are rows. Sums of one type and divisor share
/// it.
mlir::LLVM::LLVMFuncOp addCpuSumKernel(mlir::SymbolTable &symbols, exec::SumOp op);
/// Returns the kernel that adds up a rank's parts of a number of the model. Adds it if it is missing.
mlir::LLVM::LLVMFuncOp addCpuCollectKernel(mlir::SymbolTable &symbols, exec::CollectOp op);

} // namespace stepc::kernels

#endif
