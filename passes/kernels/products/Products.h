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
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// A kernel over itemsPerBlock items of each slot.
struct Kernel {
  mlir::LLVM::LLVMFuncOp function;
  int64_t itemsPerBlock;
};
using Kernels = llvm::SmallVector<Kernel>;

/// How a product is cut up. It decides speed alone.
struct ProductTile {
  int64_t rows, columns; ///< of the result, that one thread or block adds up
  int64_t steps;         ///< of k that stand in fast memory at once
  int64_t stages;        ///< of so many steps: one is used while others are brought
};

/// Memory that the kernels use beside the operands, for each block by itself: packed panels.
int64_t scratchBytesPerBlock(exec::ProductOp op, const TargetShape &target);

/// Kernels are found by name among the module's symbols, so equal products share theirs. There are
/// none for an empty result.
Kernels emit(mlir::SymbolTable &symbols, exec::ProductOp op, const TargetShape &target);

} // namespace stepc::kernels

#endif
