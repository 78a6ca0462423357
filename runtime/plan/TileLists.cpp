//===- TileLists.cpp - Which cluster computes which tiles -----------------===//

#include "runtime/plan/TileLists.h"
#include "runtime/plan/Checks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

namespace stepc::plan {
namespace {

using Tile = stepc_product_tile;

/// Tenths of a stage of a whole tile, in which times are counted, so that sums are exact.
constexpr int64_t kStage = 10;

/// The time of a tile. A half tile loads the left operand for half as many products, and a tile's results
/// take a while. Both numbers are modelled.
int64_t cost(const Tile &tile) {
  constexpr int64_t kHalf = 6, kResults = 4 * kStage;
  return tile.steps * (tile.columns == kTileColumns ? kStage : kHalf) + kResults;
}

/// The bit of Tile::stores for 64 rows and 64 columns of a tile, stored as they are or transposed.
uint32_t storeBit(int64_t rows, int64_t columns, bool mirrored) {
  return uint32_t(1) << (8 * rows + 4 * mirrored + columns);
}

/// The whole tiles of a matrix of product `number`, sorted so that neighbours in time share rows and columns,
/// which the GPU's cache then holds: bands of eight rows of tiles, column by column.
std::vector<Tile> tilesOf(const TiledProduct &product, size_t number, int64_t cluster) {
  std::vector<Tile> tiles;
  const int64_t rows = kTileRows * cluster, band = 8 * rows;
  auto steps =
      static_cast<int32_t>(std::max(kLeastTileStages, (product.k + kTileSteps - 1) / kTileSteps));
  int32_t options = (product.hasAddend ? STEPC_TILE_HAS_ADDEND : 0) |
                    (product.hasShift ? STEPC_TILE_HAS_SHIFT : 0);
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
        tiles.push_back({static_cast<int32_t>(number), 0, static_cast<int32_t>(row),
                         static_cast<int32_t>(column), steps, stores,
                         static_cast<int32_t>(kTileColumns), options});
    }
  auto key = [&](const Tile &t) { return std::tuple(t.row / band, t.column, t.row); };
  std::sort(tiles.begin(), tiles.end(),
            [&](const Tile &a, const Tile &b) { return key(a) < key(b); });
  return tiles;
}

using Tiles = std::shared_ptr<const std::vector<Tile>>;

/// Equal products of a launch, whose matrices have equal tiles.
struct Stack {
  TiledProduct product;
  Tiles shared; // of one matrix
  int64_t matrices = 0;

  Stack(const TiledProduct &product, Tiles tiles)
      : product(product), shared(std::move(tiles)), matrices(product.matrices) {}
  const std::vector<Tile> &tiles() const { return *shared; }
  auto shape() const { return std::tuple(product.m, product.n, product.k, product.symmetric); }
};

/// Tiles of equal time.
struct Equal {
  int64_t cost = 0, tiles = 0;
};

/// The load of the longest list if the tiles are shared out with the longest processing time first, as
/// shareOut does.
int64_t longestOf(std::vector<Equal> all, int64_t lists) {
  std::sort(all.begin(), all.end(), [](const Equal &a, const Equal &b) { return a.cost > b.cost; });
  std::vector<int64_t> loads(static_cast<size_t>(lists), 0);
  for (const Equal &each : all) {
    // Each tile goes to the list with the least load. So `each.tiles` of the loads at which a list may get
    // a tile are taken, the least first.
    auto below = [&](int64_t load) { // such loads that are less than `load`
      int64_t count = 0;
      for (int64_t own : loads)
        count += own < load ? (load - own + each.cost - 1) / each.cost : 0;
      return count;
    };
    int64_t least = 0, most = *std::max_element(loads.begin(), loads.end()) +
                              each.cost * (each.tiles / lists + 1);
    while (least < most)
      if (int64_t middle = least + (most - least + 1) / 2; below(middle) <= each.tiles)
        least = middle;
      else
        most = middle - 1;
    int64_t rest = each.tiles - below(least);
    for (int64_t &own : loads) {
      own += own < least ? (least - own + each.cost - 1) / each.cost * each.cost : 0;
      if (own == least && rest > 0) {
        own += each.cost;
        --rest;
      }
    }
  }
  return *std::max_element(loads.begin(), loads.end());
}

/// How many tiles are cut, and the times of the lists then.
struct Cut {
  int64_t tiles = 0, longest = 0;
  int64_t sum = 0, wholeSum = 0; // times of all tiles, with and without the cut
  int64_t made = 0;              // tiles, where halves count as tiles
};

/// The numbers of stacks, those of the cheapest tiles first. The shape decides between equally cheap ones, so
/// that the order of products makes no difference to times.
std::vector<size_t> cheapestFirst(const std::vector<Stack> &stacks) {
  std::vector<size_t> order;
  for (size_t i = 0; i < stacks.size(); ++i)
    if (!stacks[i].tiles().empty() && stacks[i].matrices > 0)
      order.push_back(i);
  auto key = [&](size_t i) { return std::tuple(cost(stacks[i].tiles()[0]), stacks[i].shape(), i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

/// How many tiles to cut so that the longest list is shortest. Tiles are cut in the order of cheapestFirst,
/// the last tiles of a stack first.
Cut cutOf(const std::vector<Stack> &stacks, int64_t lists) {
  int64_t tiles = 0;
  for (const Stack &stack : stacks)
    tiles += stack.matrices * static_cast<int64_t>(stack.tiles().size());
  if (tiles == 0)
    return {};
  const std::vector<size_t> order = cheapestFirst(stacks);
  auto cutSome = [&](int64_t cut) {
    Cut made{cut, 0, 0, 0, 0};
    std::map<int64_t, int64_t> counts; // by cost
    for (size_t i : order) {
      const Stack &stack = stacks[i];
      auto size = static_cast<int64_t>(stack.tiles().size());
      int64_t all = stack.matrices * size, here = std::min(cut, all);
      cut -= here;
      auto halvesFrom = [&](int64_t first) {
        int64_t count = 0;
        for (int64_t tile = first; here > 0 && tile < size; ++tile)
          count += static_cast<int64_t>(halves(stack.tiles()[static_cast<size_t>(tile)]).size());
        return count;
      };
      int64_t halved = here / size * halvesFrom(0) + halvesFrom(size - here % size);
      Tile half = stack.tiles()[0];
      half.columns = static_cast<int32_t>(kTileColumns / 2);
      int64_t whole = cost(stack.tiles()[0]);
      counts[whole] += all - here;
      counts[cost(half)] += halved;
      made.sum += whole * (all - here) + cost(half) * halved;
      made.wholeSum += whole * all;
      made.made += all - here + halved;
    }
    std::vector<Equal> equals;
    for (auto [time, count] : counts)
      equals.push_back({time, count});
    made.longest = longestOf(std::move(equals), lists);
    return made;
  };
  Cut best = cutSome(0);
  for (int64_t cut :
       std::set<int64_t>{tiles % lists, 2 * (tiles % lists), lists / 2, lists, 2 * lists, tiles})
    if (cut > 0 && cut <= tiles)
      if (Cut found = cutSome(cut); found.longest < best.longest)
        best = found;
  return best;
}

/// The tiles of all stacks, of which `cut` are cut.
std::vector<Tile> allTiles(const std::vector<Stack> &stacks, int64_t cut) {
  std::vector<int64_t> halved(stacks.size(), 0);
  for (size_t i : cheapestFirst(stacks)) {
    halved[i] = std::min(cut, stacks[i].matrices * static_cast<int64_t>(stacks[i].tiles().size()));
    cut -= halved[i];
  }
  std::vector<Tile> tiles;
  for (size_t i = 0; i < stacks.size(); ++i) {
    int64_t whole = stacks[i].matrices * static_cast<int64_t>(stacks[i].tiles().size()) - halved[i];
    for (int64_t matrix = 0; matrix < stacks[i].matrices; ++matrix)
      for (Tile tile : stacks[i].tiles()) {
        tile.matrix = static_cast<int32_t>(matrix);
        if (whole-- > 0) {
          tiles.push_back(tile);
        } else {
          TileHalves parts = halves(tile);
          tiles.insert(tiles.end(), parts.begin(), parts.end());
        }
      }
  }
  return tiles;
}

ListTimes timesOf(const Cut &cut, int64_t lists) {
  auto share = [&](int64_t sum) {
    if (sum == 0)
      return 0.0;
    return static_cast<double>(sum) / static_cast<double>(kStage * lists);
  };
  return {cut.made, static_cast<double>(cut.longest) / static_cast<double>(kStage), share(cut.sum),
          share(cut.wholeSum)};
}

/// Longest processing time first: the most expensive tile to the list with the least to do. Returns the
/// numbers of the tiles of each list.
std::vector<std::vector<size_t>> shareOut(const std::vector<Tile> &tiles, int64_t lists) {
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-cost(tiles[a]), a) < std::pair(-cost(tiles[b]), b);
  });
  std::vector<std::vector<size_t>> shares(static_cast<size_t>(lists));
  using Load = std::pair<int64_t, size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (size_t list = 0; list < shares.size(); ++list)
    loads.push({0, list});
  for (size_t tile : order) {
    auto [load, list] = loads.top();
    loads.pop();
    shares[list].push_back(tile);
    loads.push({load + cost(tiles[tile]), list});
  }
  return shares;
}

} // namespace

TileHalves halves(const Tile &tile) {
  constexpr uint32_t kFirstColumns = 0x33333333; // two of each four bits
  TileHalves made;
  for (int half = 0; half < 2; ++half) {
    Tile part = tile;
    part.stores = tile.stores >> 2 * half & kFirstColumns;
    part.column += static_cast<int32_t>(half * kTileColumns / 2);
    part.columns = static_cast<int32_t>(kTileColumns / 2);
    if (part.stores)
      made.parts[made.count++] = part;
  }
  return made;
}

ListTimes ListTimer::times(std::span<const TiledProduct> products, int64_t lists) {
  std::vector<Stack> stacks;
  for (const TiledProduct &product : products) {
    Tiles &tiles = known[{product.m, product.n, product.k, product.symmetric}];
    if (!tiles)
      tiles = std::make_shared<const std::vector<Tile>>(tilesOf(product, 0, cluster));
    stacks.emplace_back(product, tiles);
  }
  return timesOf(cutOf(stacks, lists), lists);
}

TileLists tileLists(std::span<const TiledProduct> products, int64_t lists, int64_t cluster) {
  std::vector<Stack> stacks;
  for (size_t i = 0; i < products.size(); ++i)
    stacks.emplace_back(
        products[i], std::make_shared<const std::vector<Tile>>(tilesOf(products[i], i, cluster)));
  Cut cut = cutOf(stacks, lists);
  std::vector<Tile> tiles = allTiles(stacks, cut.tiles);
  TileLists made;
  made.times = timesOf(cut, lists);
  for (const std::vector<size_t> &list : shareOut(tiles, lists)) {
    auto first = static_cast<int32_t>(made.tiles.size());
    for (size_t tile : list)
      made.tiles.push_back(tiles[tile]);
    made.lists.push_back(
        {first, static_cast<int32_t>(made.tiles.size()), static_cast<int32_t>(products.size()), 0});
  }
  return made;
}

std::string checkTileForm(const ProductForm &form, std::optional<DType> addend) {
  DType type = form.lhs;
  for (DType each :
       {type, form.rhs, addend.value_or(type), form.out == DType::F32 ? type : form.out})
    if ((type != DType::BF16 && type != DType::F16) || each != type)
      return "expected operands that are all bf16 or all f16 for a kernel of tiles, found " +
             std::string(name(each)) + " beside " + std::string(name(type));
  return {};
}

std::string checkTiles(const TiledOperands &operands) {
  constexpr int64_t kAccessBytes = 16;
  std::optional<DType> addend;
  if (operands.addend)
    addend = operands.addend->type;
  if (std::string wrong =
          checkTileForm({operands.lhs.type, operands.rhs.type, operands.out.type}, addend);
      !wrong.empty())
    return wrong;
  for (const StoredMatrix *each : {&operands.lhs, &operands.rhs,
                                   operands.addend ? &*operands.addend : nullptr, &operands.out}) {
    if (!each)
      continue;
    if (std::max(each->rows, each->cols) > std::numeric_limits<int32_t>::max())
      return "expected operands of fewer than 2^31 rows and columns for a kernel of tiles, found " +
             std::to_string(each->rows) + " x " + std::to_string(each->cols);
    if (each->cols * byteSize(each->type) % kAccessBytes != 0)
      return "expected rows of whole " + std::to_string(kAccessBytes) +
             " bytes for a kernel of tiles, found " + std::to_string(each->cols) + " elements of " +
             std::string(name(each->type));
  }
  if (operands.out.type == DType::F32 && operands.addend)
    return "expected no addend of a result of f32 for a kernel of tiles, found one of " +
           std::string(name(operands.addend->type));
  return {};
}

TiledOperands tiledOperands(const Product &product) {
  TiledOperands made{product.lhs, product.rhs, {}, product.out};
  if (product.addend)
    made.addend = *product.addend;
  return made;
}

double mostTiles(int64_t rows, int64_t columns, int64_t matrices) {
  // Half tiles are twice as many.
  auto across = [](int64_t extent, int64_t tile) { return double(extent) / double(tile) + 1; };
  return 2 * double(matrices) * across(rows, kTileRows) * across(columns, kTileColumns);
}

std::string checkTiled(const Product &product, int64_t matrices) {
  if (std::string wrong = checkTiles(tiledOperands(product)); !wrong.empty())
    return wrong;
  if (product.accumulation != Accumulation::TensorCore)
    return "expected a product on tensor cores for a kernel of tiles, found one of accumulation " +
           std::string(name(product.accumulation));
  if (mostTiles(product.out.rows, product.out.cols, matrices) > kMostTiles)
    return "expected a product of fewer than 2^31 tiles, found " + std::to_string(matrices) +
           " matrices of " + std::to_string(product.out.rows) + " x " +
           std::to_string(product.out.cols);
  return {};
}

} // namespace stepc::plan
