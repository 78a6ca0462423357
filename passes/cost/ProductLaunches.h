//===- ProductLaunches.h - Times of launches of products --------*- C++ -*-===//
//
// The choice of waves, stepc simulate and stepc explain ask here for the time of a launch of products.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_PRODUCTLAUNCHES_H
#define STEPC_PASSES_COST_PRODUCTLAUNCHES_H

#include "passes/cost/Cluster.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/TileLists.h"

#include <map>

namespace stepc::cost {

/// Equal products of `blocks` blocks.
struct LaunchedProduct {
  BlockProduct shape;
  int64_t blocks = 0;
  int64_t blockBytes = 0; ///< bytes of all operands of one block
  auto operator<=>(const LaunchedProduct &) const = default;
};

/// Launches of products on a device, and their times. Times are computed once for each launch that differs.
class ProductLaunches {
public:
  using Products = std::vector<LaunchedProduct>;

  explicit ProductLaunches(const Device &device) : device(device), timer(plan::kTileBlocks) {}

  /// Whether the product's kernel works off lists of tiles, which have the products of a launch.
  bool canJoin(const BlockProduct &shape) const {
    return kernelOf(device.products, shape) == ProductKernel::Warpgroup;
  }
  /// The number of lists of tiles in a launch of products that join. `besideMessages`: whether messages
  /// travel meanwhile, to which lists leave multiprocessors.
  int64_t lists(bool besideMessages) const;
  /// The times of the lists of a launch.
  plan::ListTimes times(const Products &, bool besideMessages);
  /// Seconds that the products' operations take at the rates of their kernels.
  double work(const Products &) const;
  /// Seconds of a product beside its launch: of its operations, or of the memory traffic of its operands.
  double seconds(const LaunchedProduct &product) const;
  /// Seconds of a launch beside its work: its start, and the wait for its last multiprocessor. They may be
  /// below 0, because the rates of kernels are those of whole tiles. Half tiles of narrow results take less.
  double overhead(const Products &, bool besideMessages);
  /// Seconds of a launch and its products.
  double seconds(const Products &, bool besideMessages);

private:
  Device device;
  plan::ListTimer timer;
  std::map<std::pair<bool, Products>, plan::ListTimes> known;
};

/// A launch that serves one or several products of a plan.
struct PlannedLaunch {
  std::vector<size_t> commands; ///< numbers of the products, one after another
  bool besideMessages = false;  ///< whether an exchange is under way
};
/// The launches of a plan's products, in the order of its commands.
std::vector<PlannedLaunch> plannedLaunches(const plan::Plan &plan);

/// The product of one block of a command.
BlockProduct blockProductOf(const plan::Product &product);
/// The products of a command on `blocks` blocks.
LaunchedProduct launchedProduct(const plan::Product &product, int64_t blocks);

} // namespace stepc::cost

#endif
