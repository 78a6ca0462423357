//===- PinnedProducts.h - Which algorithms of a table fit a product -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PINNEDPRODUCTS_H
#define STEPC_PASSES_KERNELS_PINNEDPRODUCTS_H

#include "dialects/exec/Exec.h"

namespace stepc::kernels {

/// What decides which algorithms fit a product of blocks, be it an optim.product or an exec.product.
struct ProductShape {
  int64_t m, n, k;
  mlir::Type lhs, rhs, addend, out; ///< element types; `addend` is null if there is none
  bool transposeLhs, transposeRhs, isSymmetric;
};
ProductShape shapeOf(exec::ProductOp op);
ProductShape shapeOf(optim::ProductOp op);

/// The algorithms that a product gets.
struct Pinning {
  llvm::SmallVector<exec::PinnedAlgorithmAttr> algorithms;
  std::string refusal; ///< why there are no algorithms; empty if there are
};

/// Returns a module's table of algorithms, `exec.products`. Null if the module has none. Fails with an error
/// if the attribute is no table.
mlir::FailureOr<mlir::ArrayAttr> tableOfModule(mlir::ModuleOp module);
/// Bytes that an algorithm may use by the module's limit, after an arena of `arenaBytes`.
int64_t mostWorkspace(mlir::ModuleOp module, int64_t arenaBytes);
/// Bytes of scratch that an algorithm's workspace takes.
inline int64_t scratchOf(int64_t workspace) { return plan::aligned(workspace, 256); }
/// The entries of `table` that fit a product, this chip, and at most `mostWorkspace` bytes of workspace.
Pinning pin(mlir::ArrayAttr table, const ProductShape &shape, int64_t chip, int64_t mostWorkspace);

} // namespace stepc::kernels

#endif
