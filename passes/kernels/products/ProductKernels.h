//===- ProductKernels.h - The three functions of a product ------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTKERNELS_H
#define STEPC_PASSES_KERNELS_PRODUCTS_PRODUCTKERNELS_H

#include "passes/kernels/products/Products.h"
#include "passes/kernels/products/Tiling.h"
#include "passes/kernels/products/VectorBuilder.h"

namespace stepc::kernels {

/// What the code of one product depends on.
struct ProductSpec {
  Tiling tiling;
  mlir::Type lhs, rhs, out, addend; ///< storage types; addend null without one
  bool transposeLhs, transposeRhs, symmetric, hasShift;
  mlir::Location loc;
};

/// The arguments of the kernels of a product, in order. The addend may be missing. After it come the out,
/// stepc_factors and, with a shift, stepc_shift.
enum : int64_t { kScratch, kLhs, kRhs, kAddend };
inline int64_t outArgument(bool hasAddend) { return hasAddend ? kAddend + 1 : kAddend; }
inline int64_t factorsArgument(bool hasAddend) { return outArgument(hasAddend) + 1; }
inline int64_t shiftArgument(bool hasAddend) { return factorsArgument(hasAddend) + 1; }

inline std::string typeName(mlir::Type type) {
  return type.isF32() ? "f32" : type.isBF16() ? "bf16" : "f16";
}

/// The numbers of a Tiling as values, for code that gets the shape as arguments when it runs.
struct TilingValues {
  mlir::Value m, n, k, rowPanels, colPanels, rightOffset, scratchElements;

  TilingValues(VectorBuilder &b, const Tiling &tiling, mlir::Value m, mlir::Value n, mlir::Value k)
      : m(m), n(n), k(k), rowPanels(b.quotientUp(m, tiling.tileRows)),
        colPanels(b.quotientUp(n, tiling.tileCols)) {
    auto aligned = [&](mlir::Value elements) {
      return b.mul(b.quotientUp(elements, Tiling::kAlignment), Tiling::kAlignment);
    };
    rightOffset = aligned(b.mul(b.mul(rowPanels, k), tiling.rowStride));
    scratchElements = b.add(rightOffset, aligned(b.mul(b.mul(colPanels, k), tiling.tileCols)));
  }
};

/// tile(left panel, right panel, k, tile): computes the first `cols` columns of one tile over the whole k,
/// into f32 [rowStride][tileCols].
mlir::LLVM::LLVMFuncOp tileFunction(mlir::SymbolTable &symbols, const ProductSpec &spec,
                                    int64_t cols);

/// The kernel that packs both operands of every slot into the scratch, as exact f32.
Kernel packKernel(mlir::SymbolTable &symbols, const ProductSpec &spec);

/// The kernel that computes tiles and their epilogue, from the scratch into the out.
Kernel tilesKernel(mlir::SymbolTable &symbols, const ProductSpec &spec);

} // namespace stepc::kernels

#endif
