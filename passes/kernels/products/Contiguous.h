//===- Contiguous.h - What operands of matrix space must be -----*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_CONTIGUOUS_H
#define STEPC_PASSES_KERNELS_PRODUCTS_CONTIGUOUS_H

#include "mlir/IR/Operation.h"

namespace stepc::kernels {

/// Success for a memref with identity layout whose blocks (all axes but the first) are static.
mlir::LogicalResult checkContiguous(mlir::Operation *op, mlir::Value value);

} // namespace stepc::kernels

#endif
