//===- PinnedProducts.h - Which algorithms of a table fit a product -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PINNEDPRODUCTS_H
#define STEPC_PASSES_KERNELS_PINNEDPRODUCTS_H

#include "dialects/exec/Exec.h"

namespace stepc::kernels {

/// What decides which algorithms fit a product of blocks, of any level.
struct ProductShape {
  int64_t m, n, k;
  mlir::Type lhs, rhs, addend, out; ///< of elements; addend null without one
  bool transposeLhs, transposeRhs, isSymmetric;
};
ProductShape shapeOf(exec::ProductOp op);
ProductShape shapeOf(optim::ProductOp op);

/// The algorithms that a product gets.
struct Pinning {
  llvm::SmallVector<exec::PinnedAlgorithmAttr> algorithms;
  std::string refusal; ///< why there are none
};

/// A module's table, `exec.products`. Null without one; an error if the attribute is no table.
mlir::FailureOr<mlir::ArrayAttr> tableOfModule(mlir::ModuleOp module);
/// Bytes that an algorithm may use by the module's limit, after an arena of `arenaBytes`.
int64_t mostWorkspace(mlir::ModuleOp module, int64_t arenaBytes);
/// Bytes of scratch that an algorithm's workspace takes.
inline int64_t scratchOf(int64_t workspace) { return plan::aligned(workspace, 256); }
/// The entries of `table` that fit a product, this chip, and at most `mostWorkspace` bytes of workspace.
Pinning pin(mlir::ArrayAttr table, const ProductShape &shape, int64_t chip, int64_t mostWorkspace);

} // namespace stepc::kernels

#endif
