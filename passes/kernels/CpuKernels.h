//===- CpuKernels.h - A processor's loops over what kernels compute -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_CPUKERNELS_H
#define STEPC_PASSES_KERNELS_CPUKERNELS_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// A function of the kernel ABI (runtime/include/stepc/kernel_abi.h) that does what a kernel of level
/// 5 says of every chunk, or parameter. `dispatches` are all that run it, one at least; those over
/// chunks may get further operands. Emits an error where one does not fit.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerChunkKernel(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerParameterKernel(mlir::func::FuncOp kernel,
                     llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// The function of a sum of contributions, whose items are rows; one for all of one type and divisor.
mlir::LLVM::LLVMFuncOp addCpuSumKernel(mlir::SymbolTable &symbols, exec::SumOp op);

} // namespace stepc::kernels

#endif
