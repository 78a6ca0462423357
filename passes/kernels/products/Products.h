//===- Products.h - Kernels of products and reductions ----------*- C++ -*-===//
//
// Turns optim.product and optim.block_reduce on memrefs into functions of the kernel ABI
// (runtime/include/stepc/kernel_abi.h). The caller launches what comes back in order,
// each over all slots, and erases the operation.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTS_H
#define STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTS_H

#include "dialects/optim/Optim.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// One kernel over itemsPerBlock items of each slot; arguments[i] is the base pointer of
/// buffers[i], and that of the scratch where there is no value.
struct KernelLaunch {
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::SmallVector<mlir::Value> buffers;
  int64_t itemsPerBlock;
};

/// What an operation becomes.
struct BatchKernels {
  llvm::SmallVector<KernelLaunch> launches;
  /// Memory that the kernels use beside the operands, for each block by itself: packed panels, or
  /// partial results of rows, which threads then share. Not above scratchBoundPerBlock.
  int64_t scratchBytesPerBlock = 0;
};

/// Kernels are found by name among the module's symbols, so equal products share theirs. Nothing is
/// launched for an empty result. Emits an error when an operand is not a contiguous memref.
mlir::FailureOr<BatchKernels> emitProduct(mlir::SymbolTable &symbols, optim::ProductOp op,
                                          const TargetShape &target);

mlir::FailureOr<BatchKernels> emitBlockReduce(mlir::SymbolTable &symbols, optim::BlockReduceOp op,
                                              const TargetShape &target);

} // namespace stepc::kernels

#endif
