//===- Lists.cpp - Tiles of products, and who computes them ----------------===//

#include "test/ptx/Lists.h"

#include <algorithm>
#include <numeric>

namespace stepc::ptx {

std::vector<Tile> tilesOf(const ProductShape &shape, uint32_t problem, uint32_t batch,
                          uint32_t clusterBlocks, bool isSymmetric, bool isHalf, uint32_t options) {
  std::vector<Tile> tiles;
  uint32_t rows = 128 * clusterBlocks, columns = isHalf ? 128 : 256;
  for (uint32_t row = 0; row < shape.m; row += rows)
    for (uint32_t column = 0; column < shape.n; column += columns) {
      if (isSymmetric && column > row + rows - 1)
        continue;
      uint32_t flags = 0;
      for (uint32_t w = 0; w < 2 * clusterBlocks; ++w)
        for (uint32_t c = 0; c < columns / 64; ++c) {
          uint32_t blockRow = row / 64 + w, blockColumn = column / 64 + c;
          if (blockRow * 64 >= shape.m || blockColumn * 64 >= shape.n)
            continue;
          if (!isSymmetric || blockColumn <= blockRow)
            flags |= 1u << (8 * w + c);
          if (isSymmetric && blockColumn < blockRow)
            flags |= 1u << (8 * w + 4 + c);
        }
      tiles.push_back({problem, batch, row, column, std::max(5u, (shape.k + 63) / 64), flags,
                       columns, options});
    }
  return tiles;
}

TileLists shareOut(const std::vector<Tile> &tiles, uint32_t clusters) {
  auto cost = [&](size_t i) {
    return tiles[i].blocksOfK * (tiles[i].columns == 256 ? 1.0 : 0.6) + 4;
  };
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t(0));
  // Equal ones stay in their order.
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(-cost(a), a) < std::pair(-cost(b), b); });
  std::vector<double> loads(clusters);
  std::vector<std::vector<size_t>> lists(clusters);
  for (size_t i : order) {
    auto least = size_t(std::min_element(loads.begin(), loads.end()) - loads.begin());
    loads[least] += cost(i);
    lists[least].push_back(i);
  }
  TileLists made;
  for (auto &list : lists) {
    made.begins.push_back(uint32_t(made.tiles.size()));
    for (size_t i : list)
      made.tiles.push_back(tiles[i]);
  }
  made.begins.push_back(uint32_t(made.tiles.size()));
  return made;
}

} // namespace stepc::ptx
