//===- Lists.h - Tiles of products, and who computes them --------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_LISTS_H
#define STEPC_TEST_PTX_LISTS_H

#include <cstdint>
#include <vector>

namespace stepc::ptx {

/// What a cluster computes at once: 128 rows per block of the cluster and 256 or 128 columns. `flags` has 16 bits for each
/// block, and of these 8 for each consumer: bit c stores chunk c of 64 × 64 directly, bit 4 + c mirrored.
struct Tile {
  uint32_t problem, batch, row, column, blocksOfK, flags, columns, options;
};
static_assert(sizeof(Tile) == 32);

struct TileOptions {
  enum : uint32_t { Addend = 1, Shift = 2 };
};

struct ProductShape {
  uint32_t batches, m, n, k;
};

/// The tiles of one matrix. With `isHalf` they have 128 columns.
std::vector<Tile> tilesOf(const ProductShape &shape, uint32_t problem, uint32_t batch,
                          uint32_t clusterBlocks, bool isSymmetric, bool isHalf, uint32_t options);

struct TileLists {
  std::vector<Tile> tiles;
  std::vector<uint32_t> begins; ///< of each cluster's tiles, and the end of the last one's
};

/// The largest tile first to the cluster with the least to do.
TileLists shareOut(const std::vector<Tile> &tiles, uint32_t clusters);

} // namespace stepc::ptx

#endif
