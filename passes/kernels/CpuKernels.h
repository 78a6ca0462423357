//===- CpuKernels.h - A processor's loops over what kernels compute -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_CPUKERNELS_H
#define STEPC_PASSES_KERNELS_CPUKERNELS_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/KernelBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace stepc::kernels {

/// A function of the kernel ABI (runtime/include/stepc/kernel_abi.h) that does what a kernel of level
/// 5 says of every chunk, or parameter. `dispatches` are all that run it, one at least; those over
/// chunks may get further operands. Emits an error where one does not fit.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerChunkKernel(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
lowerParameterKernel(mlir::func::FuncOp kernel,
                     llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// Clones an elementwise region in two parts: what depends on the element, and what is the same for
/// all elements of a chunk.
class ElementwiseBody {
public:
  /// `firstUniform`: from this argument on, arguments are the same for all elements.
  ElementwiseBody(mlir::Block &body, unsigned firstUniform)
      : body(body), firstUniform(firstUniform) {}

  /// Emits the uniform part once, where the builder stands.
  void emitUniform(KernelBuilder &builder, mlir::ValueRange uniformArguments);
  /// Emits the rest on vectors of `width` elements (0: on scalars); returns what is yielded.
  llvm::SmallVector<mlir::Value> emit(KernelBuilder &builder, mlir::ValueRange arguments,
                                      int64_t width);

private:
  mlir::Block &body;
  unsigned firstUniform;
  mlir::IRMapping uniform;
};

} // namespace stepc::kernels

#endif
