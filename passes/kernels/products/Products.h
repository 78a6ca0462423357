//===- Products.h - A CPU's kernels of products -----------------*- C++ -*-===//
//
// Functions of the kernel ABI (runtime/include/stepc/kernel_abi.h) for commands on computed blocks, and the
// scratch that they need. All kernels of a command are given the scratch, then its batches in order, and run
// one after another, each over all slots.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTS_H
#define STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTS_H

#include "dialects/exec/Exec.h"
#include "passes/cost/ProductRates.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// A kernel over itemsPerBlock items of each slot.
struct Kernel {
  mlir::LLVM::LLVMFuncOp function;
  int64_t itemsPerBlock;
};
using Kernels = llvm::SmallVector<Kernel>;

/// How a product is cut up, and by which kernel. The cut decides speed alone.
struct ProductTile {
  cost::ProductKernel kernel; ///< Chain also on a CPU
  int64_t rows, columns;      ///< of the result; one CPU thread or GPU block adds them up
  int64_t steps;              ///< steps of k that are in fast memory at once
  int64_t stages;             ///< buffers of `steps` steps: one is used, others are filled
};

/// Bytes of scratch that the kernels of a product need for each block, for packed panels.
int64_t scratchBytesPerBlock(exec::ProductOp op, const TargetShape &target);

/// Returns the kernels of a product, and adds them to the module's symbols if they are missing. Equal
/// products share kernels. If the result is empty, there are none.
Kernels emit(mlir::SymbolTable &symbols, exec::ProductOp op, const TargetShape &target);

} // namespace stepc::kernels

#endif
