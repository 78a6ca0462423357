//===- ProductKernels.h - The three functions of a product ------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTKERNELS_H
#define STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTKERNELS_H

#include "passes/kernels/products/Tiling.h"
#include "passes/kernels/products/VectorBuilder.h"

namespace stepc::kernels {

/// What the code of one product depends on.
struct ProductSpec {
  Tiling tiling;
  mlir::Type lhs, rhs, out, addend; ///< storage types; addend null without one
  float alpha, beta;
  bool transposeLhs, transposeRhs, symmetric;
  mlir::Location loc;
};

inline std::string typeName(mlir::Type type) {
  return type.isF32() ? "f32" : type.isBF16() ? "bf16" : "f16";
}

struct Kernel {
  mlir::LLVM::LLVMFuncOp function;
  int64_t itemsPerBlock;
};

/// tile(left panel, right panel, k, tile): the first `cols` columns of one tile over the whole k,
/// into f32 [rowStride][tileCols].
mlir::LLVM::LLVMFuncOp tileFunction(mlir::SymbolTable &symbols, const ProductSpec &spec,
                                    int64_t cols);

/// (lhs, rhs, scratch): packs both operands of every slot, as exact f32.
Kernel packKernel(mlir::SymbolTable &symbols, const ProductSpec &spec);

/// (scratch, out[, addend]): the tiles and their epilogue.
Kernel tilesKernel(mlir::SymbolTable &symbols, const ProductSpec &spec);

} // namespace stepc::kernels

#endif
