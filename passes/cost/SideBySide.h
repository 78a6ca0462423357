//===- SideBySide.h - Which products stand side by side ---------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_SIDEBYSIDE_H
#define STEPC_PASSES_COST_SIDEBYSIDE_H

#include "runtime/plan/Plan.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepc::cost {

/// The properties that products of one launch have in common: their form, and whether a kernel on warpgroups
/// takes them. Such a kernel serves all shapes.
struct LaunchForm {
  plan::ProductForm product;
  bool isForWarpgroups = false;
  auto operator<=>(const LaunchForm &) const = default;
};

/// A product of a chain. Kernels may serve products of one form together, which has a number.
struct ChainProduct {
  int64_t form = 0;
  std::vector<size_t> after; ///< the earlier products of the chain that it has to wait for
};
using Chain = std::vector<ChainProduct>;

/// Places the products of several chains in columns. A product stands behind those that it waits for. All
/// products of a column are of one form, so that one launch can serve them. There are few columns: as few as
/// possible for two chains whose products wait for each other in turn. Returns the column of each product.
std::vector<std::vector<size_t>> columnsOf(const std::vector<Chain> &chains);

} // namespace stepc::cost

#endif
