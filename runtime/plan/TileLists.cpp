//===- TileLists.cpp - Which cluster computes which tiles -----------------===//

#include "runtime/plan/TileLists.h"
#include "runtime/plan/Checks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

namespace stepc::plan {
namespace {

using Tile = stepc_product_tile;

/// The time of a tile, in stages of a whole tile. A half tile loads the left operand for half as many
/// products, and a tile's results take a while. Both numbers are modelled.
double cost(const Tile &tile) {
  constexpr double kHalf = 0.6, kResults = 4;
  return tile.steps * (tile.columns == kTileColumns ? 1.0 : kHalf) + kResults;
}

/// The bit of Tile::stores for 64 rows and 64 columns of a tile, stored as they are or transposed.
uint32_t storeBit(int64_t rows, int64_t columns, bool mirrored) {
  return uint32_t(1) << (8 * rows + 4 * mirrored + columns);
}

void addTiles(const TiledProduct &product, int64_t number, int64_t cluster,
              std::vector<Tile> &tiles) {
  int64_t rows = kTileRows * cluster;
  int32_t steps =
      static_cast<int32_t>(std::max(kLeastTileStages, (product.k + kTileSteps - 1) / kTileSteps));
  int32_t options = (product.hasAddend ? STEPC_TILE_HAS_ADDEND : 0) |
                    (product.hasShift ? STEPC_TILE_HAS_SHIFT : 0);
  for (int64_t matrix = 0; matrix < product.matrices; ++matrix)
    for (int64_t row = 0; row < product.m; row += rows)
      for (int64_t column = 0; column < product.n; column += kTileColumns) {
        uint32_t stores = 0;
        for (int64_t i = 0; i < rows / kTilePart; ++i)
          for (int64_t j = 0; j < kTileColumns / kTilePart; ++j) {
            int64_t partRow = row + i * kTilePart, partColumn = column + j * kTilePart;
            if (partRow >= product.m || partColumn >= product.n ||
                (product.symmetric && partColumn > partRow))
              continue;
            stores |= storeBit(i, j, false);
            if (product.symmetric && partColumn < partRow)
              stores |= storeBit(i, j, true);
          }
        if (stores)
          tiles.push_back({static_cast<int32_t>(number), static_cast<int32_t>(matrix),
                           static_cast<int32_t>(row), static_cast<int32_t>(column), steps, stores,
                           static_cast<int32_t>(kTileColumns), options});
      }
}

/// Sorts tiles so that neighbours in time share rows and columns, which the GPU's cache then holds: bands of
/// eight rows of tiles, column by column.
void sortForCache(std::vector<Tile> &tiles, int64_t cluster) {
  const int64_t band = 8 * kTileRows * cluster;
  auto key = [&](const Tile &t) {
    return std::tuple(t.problem, t.matrix, t.row / band, t.column, t.row);
  };
  std::sort(tiles.begin(), tiles.end(),
            [&](const Tile &a, const Tile &b) { return key(a) < key(b); });
}

struct Shares {
  std::vector<std::vector<size_t>> lists; // of tiles' numbers
  double longest = 0;
};

/// Longest processing time first: the most expensive tile to the list with the least to do.
Shares shareOut(const std::vector<Tile> &tiles, int64_t lists) {
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-cost(tiles[a]), a) < std::pair(-cost(tiles[b]), b);
  });
  Shares shares{std::vector<std::vector<size_t>>(static_cast<size_t>(lists)), 0};
  using Load = std::pair<double, size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (size_t list = 0; list < shares.lists.size(); ++list)
    loads.push({0.0, list});
  for (size_t tile : order) {
    auto [load, list] = loads.top();
    loads.pop();
    shares.lists[list].push_back(tile);
    loads.push({load + cost(tiles[tile]), list});
    shares.longest = std::max(shares.longest, load + cost(tiles[tile]));
  }
  return shares;
}

/// The numbers of tiles, the cheapest first, and the last of equally cheap ones first.
std::vector<size_t> cheapestFirst(const std::vector<Tile> &tiles) {
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(cost(tiles[a]), b) < std::pair(cost(tiles[b]), a);
  });
  return order;
}

/// Replaces the tiles with these numbers by their halves.
std::vector<Tile> withHalves(const std::vector<Tile> &tiles, std::span<const size_t> cut) {
  std::vector<bool> isCut(tiles.size(), false);
  for (size_t tile : cut)
    isCut[tile] = true;
  std::vector<Tile> made;
  for (size_t i = 0; i < tiles.size(); ++i)
    if (isCut[i]) {
      std::vector<Tile> parts = halves(tiles[i]);
      made.insert(made.end(), parts.begin(), parts.end());
    } else {
      made.push_back(tiles[i]);
    }
  return made;
}

} // namespace

std::vector<Tile> halves(const Tile &tile) {
  constexpr uint32_t kFirstColumns = 0x33333333; // two of each four bits
  std::vector<Tile> made;
  for (int half = 0; half < 2; ++half) {
    Tile part = tile;
    part.stores = tile.stores >> 2 * half & kFirstColumns;
    part.column += static_cast<int32_t>(half * kTileColumns / 2);
    part.columns = static_cast<int32_t>(kTileColumns / 2);
    if (part.stores)
      made.push_back(part);
  }
  return made;
}

TileLists tileLists(std::span<const TiledProduct> products, int64_t lists, int64_t cluster) {
  std::vector<Tile> tiles;
  for (size_t i = 0; i < products.size(); ++i)
    addTiles(products[i], static_cast<int64_t>(i), cluster, tiles);
  if (tiles.empty())
    return {{}, {static_cast<size_t>(lists), {0, 0, static_cast<int32_t>(products.size()), 0}}};
  sortForCache(tiles, cluster);
  Shares shares = shareOut(tiles, lists);
  // Halves are taken only where they shorten the longest list.
  auto count = static_cast<size_t>(lists);
  size_t rest = tiles.size() % count;
  const std::vector<Tile> whole = tiles;
  const std::vector<size_t> cheapest = cheapestFirst(whole);
  for (size_t cut : std::set<size_t>{rest, 2 * rest, count / 2, count, 2 * count, whole.size()}) {
    if (cut == 0 || cut > whole.size())
      continue;
    std::vector<Tile> other = withHalves(whole, std::span(cheapest).first(cut));
    Shares found = shareOut(other, lists);
    if (found.longest < shares.longest) {
      shares = std::move(found);
      tiles = std::move(other);
    }
  }
  TileLists made;
  made.longest = shares.longest;
  for (const std::vector<size_t> &list : shares.lists) {
    auto first = static_cast<int32_t>(made.tiles.size());
    for (size_t tile : list)
      made.tiles.push_back(tiles[tile]);
    made.lists.push_back(
        {first, static_cast<int32_t>(made.tiles.size()), static_cast<int32_t>(products.size()), 0});
  }
  for (const Tile &tile : made.tiles)
    made.evenShare += cost(tile) / static_cast<double>(lists);
  return made;
}

double mostTiles(const Product &product, int64_t matrices) {
  // Half tiles are twice as many.
  auto across = [](int64_t extent, int64_t tile) { return double(extent) / double(tile) + 1; };
  return 2 * double(matrices) * across(product.out.rows, kTileRows) *
         across(product.out.cols, kTileColumns);
}

std::string checkTiled(const Product &product, int64_t matrices) {
  constexpr int64_t kAccessBytes = 16;
  DType type = product.lhs.type;
  for (const Operand *operand : product.operands()) {
    if (std::max(operand->rows, operand->cols) > std::numeric_limits<int32_t>::max())
      return "expected operands of fewer than 2^31 rows and columns for a kernel of tiles, found " +
             std::to_string(operand->rows) + " x " + std::to_string(operand->cols);
    bool isWide = operand == &product.out && operand->type == DType::F32;
    if ((type != DType::BF16 && type != DType::F16) || (operand->type != type && !isWide))
      return "expected operands that are all bf16 or all f16 for a kernel of tiles, found " +
             std::string(name(operand->type)) + " beside " + std::string(name(type));
    if (operand->cols * byteSize(operand->type) % kAccessBytes != 0)
      return "expected rows of whole " + std::to_string(kAccessBytes) +
             " bytes for a kernel of tiles, found " + std::to_string(operand->cols) +
             " elements of " + std::string(name(operand->type));
  }
  if (product.out.type == DType::F32 && product.addend)
    return "expected no addend of a result of f32 for a kernel of tiles, found one of " +
           std::string(name(product.addend->type));
  if (product.accumulation != Accumulation::TensorCore)
    return "expected a product on tensor cores for a kernel of tiles, found one of accumulation " +
           std::string(name(product.accumulation));
  if (mostTiles(product, matrices) > kMostTiles)
    return "expected a product of fewer than 2^31 tiles, found " + std::to_string(matrices) +
           " matrices of " + std::to_string(product.out.rows) + " x " +
           std::to_string(product.out.cols);
  return {};
}

} // namespace stepc::plan
