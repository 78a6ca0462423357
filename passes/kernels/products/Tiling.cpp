//===- Tiling.cpp - How a product is cut for a chip ------------------------===//

#include "passes/kernels/products/Tiling.h"

#include <algorithm>

namespace stepc::kernels {

Tiling::Tiling(int64_t m, int64_t n, int64_t k, bool fused, const TargetShape &target)
    : m(m), n(n), k(k), fused(fused), lanes(target.vectorBits / 32) {
  // As many accumulators as the registers hold beside two vectors of the right operand and one number of the
  // left: 28 of 32 or 12 of 16. With short vectors there are 8, because a symmetric tile must not have more
  // rows than a vector has lanes.
  tileRows = lanes == 16 ? 14 : lanes == 8 ? 6 : 4;
  tileCols = 2 * lanes;
  rowStride = ceilDivide(tileRows, lanes) * lanes;
  rowPanels = ceilDivide(m, tileRows);
  colPanels = ceilDivide(n, tileCols);
  // An item's left panels stay in the second-level cache while right panels stream by. They take half of a
  // usual cache. Items are small enough that a block of usual size has dozens of them to share.
  constexpr int64_t kCacheBytes = 512 << 10;
  int64_t panelBytes = std::max<int64_t>(1, k * rowStride * 4);
  itemRows = std::clamp<int64_t>(kCacheBytes / panelBytes, 4, 64 / tileRows * 2);
  itemCols = std::max<int64_t>(1, 128 / tileCols);
  auto items = [&] { return ceilDivide(rowPanels, itemRows) * ceilDivide(colPanels, itemCols); };
  auto work = [&] { return itemRows * tileRows * itemCols * tileCols * k; };
  while (itemRows > 1 && items() < 48 && work() > (1 << 21))
    itemRows = ceilDivide(itemRows, 2);
}

} // namespace stepc::kernels
