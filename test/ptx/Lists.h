//===- Lists.h - Lists of tiles to run ---------------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_LISTS_H
#define STEPC_TEST_PTX_LISTS_H

#include "runtime/plan/TileLists.h"
#include "test/ptx/Random.h"

#include <functional>

namespace stepc::ptx {

using Tile = stepc_product_tile;

enum class ListKind {
  Planned, ///< as runtime/plan makes them
  Drawn,   ///< some tiles cut into halves, all in a drawn order and on a drawn cluster
  Halves,  ///< all tiles cut into halves
};

struct ListOptions {
  ListKind kind = ListKind::Planned;
  uint32_t lists = 1;
  /// Changes the tiles before they get their lists, for planted faults.
  std::function<void(std::vector<Tile> &)> edit;
};

/// Lists for clusters of `blocks` blocks. The function that tests get all lists from.
plan::TileLists makeLists(const std::vector<plan::TiledProduct> &products, uint32_t blocks,
                          const ListOptions &options, Random &random);

} // namespace stepc::ptx

#endif
