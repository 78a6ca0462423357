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
/// buffers[i].
struct KernelLaunch {
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::SmallVector<mlir::Value> buffers;
  int64_t itemsPerBlock;
};

/// f32 elements of packing scratch per block that a product of an m × k by a k × n matrix needs as
/// its second out; a multiple of 16, so that blocks keep the alignment of the first.
int64_t productScratchElements(int64_t m, int64_t n, int64_t k, const TargetShape &target);

/// f32 elements per block of a reduction's optional second out: the row partials of a reduction to
/// one value, which rows then share among threads; 0 where there is no use for it.
int64_t reduceScratchElements(int64_t rows, int64_t cols, int64_t resultRows, int64_t resultCols);

/// Kernels are found by name among the module's symbols, so equal products share theirs. Nothing is
/// launched for an empty result. Emits an error when an operand is not a contiguous memref or the
/// scratch is missing or too small.
mlir::FailureOr<llvm::SmallVector<KernelLaunch>>
emitProduct(mlir::SymbolTable &symbols, optim::ProductOp op, const TargetShape &target);

mlir::FailureOr<llvm::SmallVector<KernelLaunch>>
emitBlockReduce(mlir::SymbolTable &symbols, optim::BlockReduceOp op, const TargetShape &target);

} // namespace stepc::kernels

#endif
