//===- ProductRates.h - What products cost ----------------------*- C++ -*-===//
//
// How many operations a product takes, which kernel computes it, and how fast that kernel is.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_PRODUCTRATES_H
#define STEPC_PASSES_COST_PRODUCTRATES_H

#include "runtime/plan/ProductKernel.h"

#include <compare>
#include <cstdint>
#include <string>

namespace stepc::cost {

using plan::ProductKernel;

/// The product of one block: m × k by k × n.
struct BlockProduct {
  int64_t m, n, k;
  bool isSymmetric = false;
  bool hasAddend = false;
  bool isNarrow = true; ///< both operands have the same type of 16 bits, which tensor cores take
  bool isTiled = true;  ///< kernels of tiles take the operands (plan::checkTiles)
  auto operator<=>(const BlockProduct &) const = default;
};

/// Symmetric results are computed in blocks of so many rows and columns.
inline constexpr int64_t kSymmetricEdge = 64;

/// Floating-point operations that kernels execute. For a symmetric result, these are the operations of the
/// blocks of 64 × 64 elements on or below the diagonal. At most the largest int64_t.
int64_t executedFlops(const BlockProduct &shape);
/// Floating-point operations if the whole result is computed. At most the largest int64_t.
int64_t fullFlops(const BlockProduct &shape);

/// Why a kernel on warpgroups does not take a product of so many rows, columns and steps of k; empty if it
/// does.
std::string checkExtents(const BlockProduct &shape);
/// Whether a kernel on warpgroups takes the product, if the device has such kernels: a product of narrow
/// operands with tiles, whose extents checkExtents accepts.
bool isForWarpgroups(const BlockProduct &shape);

/// The kernel for a product, on a device whose fastest kernels are `fastest`. Tensor cores take only narrow
/// operands.
ProductKernel kernelOf(ProductKernel fastest, const BlockProduct &shape);

/// Rows and columns of the result that one multiprocessor computes at a time, and how many multiprocessors
/// share such a tile.
struct ProductPart {
  int64_t rows, columns, sharers;
};
/// The tile of a GPU's kernel. The kernel is not Stated.
ProductPart partOf(ProductKernel kernel, const BlockProduct &shape);

/// Executed operations per second of a kernel that computes many blocks. `stated` is the device's figure:
/// the rate of a vendor's library for large products of 16-bit operands on a GPU.
double rateOf(ProductKernel kernel, double stated, const BlockProduct &shape);

} // namespace stepc::cost

#endif
