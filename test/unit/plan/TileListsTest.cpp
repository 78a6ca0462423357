//===- TileListsTest.cpp - Lists of tiles ----------------------------------===//

#include "runtime/plan/TileLists.h"
#include "passes/cost/ProductRates.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace stepc::test {

using namespace plan;

namespace {

/// How often each part of 64 × 64 elements of a result is stored: by product, matrix, row and column.
using Stored = std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t>;

struct Counted {
  Stored stored;
  int64_t flops = 0; // of parts that are stored as they are
};

Counted count(const TileLists &lists, const std::vector<TiledProduct> &products, int64_t cluster) {
  Counted counted;
  for (const stepc_product_tile &tile : lists.tiles) {
    const TiledProduct &product = products[size_t(tile.problem)];
    EXPECT_EQ(tile.row % kTilePart, 0);
    EXPECT_EQ(tile.column % kTilePart, 0);
    EXPECT_EQ(bool(tile.options & STEPC_TILE_HAS_ADDEND), product.hasAddend);
    EXPECT_EQ(bool(tile.options & STEPC_TILE_HAS_SHIFT), product.hasShift);
    EXPECT_GE(tile.steps, kLeastTileStages);
    EXPECT_GE(tile.steps * kTileSteps, product.k);
    EXPECT_TRUE(tile.columns == kTileColumns || tile.columns == kTileColumns / 2);
    EXPECT_NE(tile.stores, 0u);
    for (int64_t down = 0; down < 4; ++down)
      for (int64_t across = 0; across < 4; ++across) {
        int64_t row = tile.row + down * kTilePart, column = tile.column + across * kTilePart;
        uint32_t bits = tile.stores >> (8 * down + across);
        bool isInside = down < 2 * cluster && across * kTilePart < tile.columns;
        EXPECT_TRUE(isInside || !(bits & 0x11));
        if (bits & 0x01) {
          ++counted.stored[{tile.problem, tile.matrix, row, column}];
          counted.flops += 2 * product.k * std::min(kTilePart, product.m - row) *
                           std::min(kTilePart, product.n - column);
        }
        if (bits & 0x10) {
          EXPECT_TRUE(product.symmetric);
          ++counted.stored[{tile.problem, tile.matrix, column, row}];
        }
      }
  }
  return counted;
}

/// Expects the times that the tiles of each list add up to, and that these are known without the lists.
void expectTimes(const TileLists &made, const std::vector<TiledProduct> &products,
                 int64_t cluster) {
  double longest = 0, sum = 0;
  for (int64_t list = 0; list < made.count(); ++list) {
    double load = 0;
    for (int32_t i = made.lists[size_t(list)].first; i < made.lists[size_t(list)].last; ++i) {
      const stepc_product_tile &tile = made.tiles[size_t(i)];
      load += tile.steps * (tile.columns == kTileColumns ? 1 : 0.6) + 4;
    }
    longest = std::max(longest, load);
    sum += load;
  }
  EXPECT_EQ(made.times.tiles, int64_t(made.tiles.size()));
  EXPECT_NEAR(made.times.longest, longest, 1e-6 * longest);
  EXPECT_NEAR(made.times.evenShare, sum / double(made.count()), 1e-6 * longest);
  EXPECT_GE(made.times.longest * 1.000001, made.times.evenShare);
  // Two halves take longer than a tile, but one of them may store nothing.
  EXPECT_GE(made.times.longest * 1.000001, made.times.wholeShare * 0.6);
  ListTimes times = ListTimer(cluster).times(products, made.count());
  EXPECT_EQ(times.tiles, made.times.tiles);
  EXPECT_EQ(times.longest, made.times.longest);
  EXPECT_EQ(times.evenShare, made.times.evenShare);
  EXPECT_EQ(times.wholeShare, made.times.wholeShare);
}

void expectEachPartOnce(const std::vector<TiledProduct> &products, int64_t lists, int64_t cluster) {
  TileLists made = tileLists(products, lists, cluster);
  ASSERT_EQ(made.count(), lists);
  int32_t next = 0;
  for (const stepc_tile_list &list : made.lists) {
    EXPECT_EQ(list.first, next);
    EXPECT_EQ(list.problems, int64_t(products.size()));
    next = list.last;
  }
  EXPECT_EQ(next, int64_t(made.tiles.size()));
  expectTimes(made, products, cluster);
  Counted counted = count(made, products, cluster);
  Stored expected;
  int64_t flops = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const TiledProduct &product = products[i];
    flops += product.matrices *
             cost::executedFlops({product.m, product.n, product.k, product.symmetric});
    for (int64_t matrix = 0; matrix < product.matrices; ++matrix)
      for (int64_t row = 0; row < product.m; row += kTilePart)
        for (int64_t column = 0; column < product.n; column += kTilePart)
          expected[{int64_t(i), matrix, row, column}] = 1;
  }
  EXPECT_EQ(counted.stored, expected);
  EXPECT_EQ(counted.flops, flops);
}

/// The products of one step of Newton–Schulz for matrices r × c.
std::vector<TiledProduct> stepOf(int64_t matrices, int64_t r, int64_t c) {
  return {{matrices, r, r, c, true, false},
          {matrices, r, r, r, true, true},
          {matrices, r, c, r, false, true}};
}

struct Shape {
  int64_t matrices, rows, columns;
};
constexpr Shape kShapes[] = {{1, 1024, 1024},  {1, 2048, 2048},  {1, 4096, 4096},
                             {1, 8192, 8192},  {4, 4096, 4096},  {16, 1024, 1024},
                             {1, 1024, 4096},  {1, 2048, 8192},  {1, 4096, 14336},
                             {128, 768, 2048}, {32, 2048, 5464}, {36, 2048, 6144}};

TEST(TileLists, StoreEachPartOnceOnEveryNumberOfMultiprocessors) {
  for (const Shape &shape : kShapes)
    for (int64_t multiprocessors : {132, 114, 16})
      for (int64_t cluster : {1, 2})
        for (const TiledProduct &product : stepOf(shape.matrices, shape.rows, shape.columns)) {
          SCOPED_TRACE(testing::Message() << shape.matrices << " of " << shape.rows << " x "
                                          << shape.columns << " on " << multiprocessors);
          expectEachPartOnce({product}, multiprocessors / cluster, cluster);
        }
}

TEST(TileLists, OfManyTilesAreNearlyEven) {
  for (const Shape &shape : kShapes)
    for (int64_t clusters : {66, 57, 8})
      for (const TiledProduct &product : stepOf(shape.matrices, shape.rows, shape.columns)) {
        TileLists made = tileLists({&product, 1}, clusters, 2);
        if (int64_t(made.tiles.size()) >= 8 * clusters)
          EXPECT_LE(made.times.longest, 1.06 * made.times.evenShare)
              << shape.matrices << " of " << product.m << " x " << product.n << " x " << product.k
              << " on " << clusters;
      }
}

TEST(TileLists, OfUnequalProductsShareALaunch) {
  // The Gram matrices of a layer of Llama-3-8B.
  std::vector<TiledProduct> layer = {
      {2, 4096, 4096, 4096, true}, {2, 1024, 1024, 4096, true}, {3, 4096, 4096, 14336, true}};
  expectEachPartOnce(layer, 66, 2);
  TileLists made = tileLists(layer, 66, 2);
  EXPECT_LE(made.times.longest, 1.06 * made.times.evenShare);
  EXPECT_LT(made.tiles.size() * sizeof(stepc_product_tile), size_t(64) << 10);
}

TEST(TileLists, OfRandomProductsStoreEachPartOnce) {
  std::mt19937_64 random(7);
  auto draw = [&](int64_t least, int64_t most) {
    return least + int64_t(random() % uint64_t(most - least + 1));
  };
  for (int i = 0; i < 200; ++i) {
    std::vector<TiledProduct> products;
    for (int64_t count = draw(1, 4); count > 0; --count) {
      TiledProduct product{draw(0, 3),    draw(1, 900),    draw(1, 900),
                           draw(1, 2000), draw(0, 1) == 1, draw(0, 1) == 1};
      if (product.symmetric)
        product.n = product.m;
      products.push_back(product);
    }
    SCOPED_TRACE(i);
    expectEachPartOnce(products, draw(1, 70), draw(1, 2));
  }
}

TEST(TileLists, HaveTimesInNoTimeForManyMatrices) {
  // Ten thousand parameters: 1.4 million tiles, of which only a matrix is looked at.
  TiledProduct many{10000, 4096, 4096, 4096, true};
  ListTimer timer(2);
  ListTimes times = timer.times({&many, 1}, 66);
  EXPECT_GE(times.tiles, 1360000);
  EXPECT_LE(times.longest, 1.0001 * times.evenShare);
  EXPECT_EQ(timer.times({}, 66).tiles, 0);
  EXPECT_EQ(timer.times({}, 0).longest, 0);
}

/// All tiles of these take equal time, but a tile of a symmetric result may have one half.
TEST(TileLists, HaveTimesInAnyOrderOfTheirProducts) {
  std::vector<TiledProduct> products = {
      {2, 4096, 4096, 4096, true}, {3, 1152, 1152, 4096, true}, {1, 2176, 4224, 4096}};
  ListTimer timer(2);
  ListTimes first = timer.times(products, 66);
  std::vector<size_t> order = {0, 1, 2};
  do {
    std::vector<TiledProduct> permuted;
    for (size_t i : order)
      permuted.push_back(products[i]);
    ListTimes times = timer.times(permuted, 66), made = tileLists(permuted, 66, 2).times;
    for (const ListTimes &each : {times, made}) {
      EXPECT_EQ(each.tiles, first.tiles);
      EXPECT_EQ(each.longest, first.longest);
      EXPECT_EQ(each.evenShare, first.evenShare);
    }
    // Equal products as two stacks.
    --permuted.front().matrices;
    permuted.push_back(permuted.front());
    permuted.back().matrices = 1;
    EXPECT_EQ(timer.times(permuted, 66).tiles, first.tiles);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(TileLists, TakeOperandsThatTensorMapsDescribe) {
  using enum DType;
  StoredMatrix left{BF16, 200, 136}, right{BF16, 72, 136}, out{BF16, 200, 72};
  EXPECT_EQ(checkTiles({left, right, out, out}), "");
  // The rows of a transposed operand may have any number, because only its columns are 16 bytes together.
  EXPECT_EQ(checkTiles({{BF16, 101, 200}, {BF16, 101, 72}, {}, out}), "");
  EXPECT_EQ(checkTiles({left, right, {}, {F32, 200, 68}}), "");
  StoredMatrix wrong{BF16, 72, 132};
  EXPECT_EQ(checkTiles({left, wrong, {}, out}),
            "expected rows of whole 16 bytes for a kernel of tiles, found 132 elements of bf16");
  EXPECT_EQ(checkTiles({left, {F16, 72, 136}, {}, out}),
            "expected operands that are all bf16 or all f16 for a kernel of tiles, found f16 "
            "beside bf16");
  EXPECT_EQ(checkTiles({left, right, {}, {F16, 200, 72}}),
            "expected operands that are all bf16 or all f16 for a kernel of tiles, found f16 "
            "beside bf16");
  EXPECT_EQ(
      checkTiles({{F32, 200, 136}, {F32, 72, 136}, {}, {F32, 200, 72}}),
      "expected operands that are all bf16 or all f16 for a kernel of tiles, found f32 beside f32");
  EXPECT_EQ(checkTiles({left, right, out, {F32, 200, 72}}),
            "expected no addend of a result of f32 for a kernel of tiles, found one of bf16");
  EXPECT_EQ(checkTiles({left, {BF16, int64_t(1) << 31, 8}, {}, out}),
            "expected operands of fewer than 2^31 rows and columns for a kernel of tiles, found "
            "2147483648 x 8");
}

TEST(TileLists, FormsComeBackFromTheirBits) {
  std::set<int32_t> seen;
  for (DType type : {DType::BF16, DType::F16})
    for (DType out : {type, DType::F32})
      for (int flags = 0; flags < 8; ++flags) {
        ProductForm form{type, type, out, bool(flags & 1), bool(flags & 2), bool(flags & 4)};
        EXPECT_EQ(checkTileForm(form), "");
        EXPECT_TRUE(tileForm(tileBits(form)) == form);
        seen.insert(tileBits(form));
      }
  EXPECT_EQ(seen.size(), 32u);
}

TEST(TileLists, EndInHalvesIfThatIsShorter) {
  // 136 whole tiles on 66 clusters: some clusters would have three, others two.
  TiledProduct gram{1, 4096, 4096, 4096, true};
  TileLists made = tileLists({&gram, 1}, 66, 2);
  auto isHalf = [](const stepc_product_tile &tile) { return tile.columns == kTileColumns / 2; };
  EXPECT_TRUE(std::any_of(made.tiles.begin(), made.tiles.end(), isHalf));
  EXPECT_GE(made.times.evenShare / made.times.longest, 0.78);
  // Eight tiles for each of eight clusters need none.
  TiledProduct even{1, 2048, 2048, 512, false};
  made = tileLists({&even, 1}, 8, 2);
  EXPECT_TRUE(std::none_of(made.tiles.begin(), made.tiles.end(), isHalf));
}

} // namespace
} // namespace stepc::test
